//! Rights: those that new files give, and those that this process has not.
//!
//! The work is done by processes of their own, since masks and users are those of a whole process.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use trommel::{Background, Db, FollowOptions};

use crate::ground::{
    CALLS, ROWS, contents, copy_store, make_store, names, names_it, newest, options, value,
};

pub(crate) fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).expect("is there").permissions().mode() & 0o777
}

/// Set in a process that a test here has started to do its work, with other rights: where it is to
/// do it.
const CHILD: &str = "TROMMEL_HOSTILE_FOLDER";

pub(crate) fn child_of() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// Runs a test of this program in a process of its own.
pub(crate) fn run_child(mut command: Command, test: &str, place: &Path) {
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(CHILD, place);
    let done = command.output().expect("starts");
    let stdout = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && stdout.contains("1 passed"), "{stdout}\n{errors}");
}

pub(crate) fn this_program() -> PathBuf {
    std::env::current_exe().expect("has a path")
}

#[test]
fn new_files_give_no_more_rights_than_their_folder() {
    let Some(root) = child_of() else {
        // Without a mask of the process's own, so that it is the store that gives no more.
        let root = tempfile::tempdir().expect("a temporary folder");
        let mut shell = Command::new("sh");
        shell.args(["-c", "umask 000; exec \"$0\" \"$@\""]).arg(this_program());
        run_child(shell, "rights::new_files_give_no_more_rights_than_their_folder", root.path());
        return;
    };
    for (of_folder, of_files) in
        [(0o700, 0o600), (0o750, 0o640), (0o755, 0o644), (0o770, 0o660), (0o777, 0o666)]
    {
        let path = root.join(format!("{of_folder:o}"));
        fs::create_dir(&path).expect("makes a folder");
        fs::set_permissions(&path, fs::Permissions::from_mode(of_folder)).expect("sets");
        make_store(&path);
        for name in names(&path) {
            assert_eq!(mode_of(&path.join(&name)), of_files, "{name} in a folder of {of_folder:o}");
        }
    }
}

/// Somebody without rights of their own.
pub(crate) const NOBODY: u32 = 65534;

#[test]
fn files_and_folders_without_the_right_to_them_are_errors_that_name_them() {
    let test = "rights::files_and_folders_without_the_right_to_them_are_errors_that_name_them";
    let Some(root) = child_of() else {
        let root = tempfile::tempdir().expect("a temporary folder");
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).expect("sets");
        let mut command = Command::new(this_program());
        let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        if is_root {
            // Root may do everything: somebody else does the work, with a program that they can
            // read.
            let program = root.path().join("program");
            fs::copy(this_program(), &program).expect("copies");
            command = Command::new(program);
            command.uid(NOBODY).gid(NOBODY);
        }
        let sound = root.path().join("sound");
        make_store(&sound);
        for name in ["MANIFEST", &newest(&sound, ".table"), &newest(&sound, ".wal")] {
            // All files are theirs but one.
            let path = root.path().join(format!("without {name}"));
            copy_store(&sound, &path);
            fs::set_permissions(path.join(name), fs::Permissions::from_mode(0o000)).expect("sets");
            if is_root {
                chown(&path, Some(NOBODY), Some(NOBODY)).expect("gives");
                for other in names(&path).iter().filter(|other| *other != name) {
                    chown(path.join(other), Some(NOBODY), Some(NOBODY)).expect("gives");
                }
            }
        }
        // As it stays: read-only, its files too.
        for name in names(&sound) {
            let readable = fs::Permissions::from_mode(0o444);
            fs::set_permissions(sound.join(name), readable).expect("sets");
        }
        fs::set_permissions(&sound, fs::Permissions::from_mode(0o555)).expect("sets");
        run_child(command, test, root.path());
        fs::set_permissions(&sound, fs::Permissions::from_mode(0o755)).expect("sets");
        return;
    };
    let others = fs::read_dir(&root).expect("lists").map(|entry| entry.expect("an entry").path());
    for path in others.filter(|path| path.is_dir()) {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let Some(file) = name.strip_prefix("without ") else { continue };
        for (call, f) in CALLS {
            match f(&path) {
                Ok(_) => assert!(call == "peek" && file != "MANIFEST", "{name}, {call}"),
                Err(error) => assert!(names_it(&error, file), "{name}, {call}: {error}"),
            }
        }
    }
    // Of a folder that is read-only everything can be seen that changes nothing.
    let sound = root.join("sound");
    for (call, f) in CALLS {
        match f(&sound) {
            Ok(_) => assert!(["follow", "peek", "dump"].contains(&call), "{call}"),
            Err(error) => {
                assert!(["open", "repair"].contains(&call), "{call}: {error}");
                assert!(names_it(&error, "LOCK"), "{call}: {error}");
                assert!(error.to_string().contains("open a copy"), "{call}: {error}");
            }
        }
    }
}

#[test]
fn a_folder_that_takes_no_files_is_read_and_says_so_to_who_writes() {
    let test = "rights::a_folder_that_takes_no_files_is_read_and_says_so_to_who_writes";
    let Some(root) = child_of() else {
        let root = tempfile::tempdir().expect("a temporary folder");
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).expect("sets");
        let mut command = Command::new(this_program());
        let sound = root.path().join("sound");
        make_store(&sound);
        if fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
            let program = root.path().join("program");
            fs::copy(this_program(), &program).expect("copies");
            command = Command::new(program);
            command.uid(NOBODY).gid(NOBODY);
            for name in names(&sound) {
                chown(sound.join(name), Some(NOBODY), Some(NOBODY)).expect("gives");
            }
        }
        fs::set_permissions(&sound, fs::Permissions::from_mode(0o555)).expect("sets");
        run_child(command, test, root.path());
        fs::set_permissions(&sound, fs::Permissions::from_mode(0o755)).expect("sets");
        return;
    };
    // Its files may be written, the lock's too; but none can be made.
    let sound = root.join("sound");
    let before = contents(&sound);
    for background in [Background::Stepped, Background::Threads(1)] {
        let db = Db::open(&sound, options().background(background)).expect("opens");
        let reads = || {
            for row in 0..ROWS {
                assert_eq!(
                    db.get(row.to_be_bytes()).expect("reads").as_deref(),
                    Some(&*value(row))
                );
            }
            assert_eq!(db.range(..).filter(Result::is_ok).count(), ROWS as usize);
            assert!(db.verify().expect("reads").damage.is_empty());
        };
        reads();
        for _ in 0..3 {
            let refused = [db.put("late", "value"), db.flush(), db.compact()];
            for (nth, refused) in refused.into_iter().enumerate() {
                let message = refused.expect_err("no file can be made").to_string();
                assert!(
                    message.contains("Permission denied") && message.contains("sound"),
                    "{nth}: {message}"
                );
            }
        }
        reads();
        assert!(db.get("late").expect("reads").is_none());
        db.close().expect("nothing is owed");
        assert!(contents(&sound) == before, "something was changed");
    }
}

/// A value that is apart.
fn long_value(row: u32) -> Vec<u8> {
    value(row).repeat(100)
}

/// A store of which half is in tables, and half in its log.
fn make_store_with_values_apart(path: &Path) {
    let db = Db::open(path, options().value_threshold(256)).expect("opens");
    for row in 0..ROWS {
        db.put(row.to_be_bytes(), long_value(row)).expect("puts");
        if row == ROWS / 2 {
            db.flush().expect("flushes");
        }
    }
    db.close().expect("closes");
    newest(path, ".value");
}

#[test]
fn a_store_of_somebody_else_in_a_folder_that_takes_no_files_is_followed() {
    let test = "rights::a_store_of_somebody_else_in_a_folder_that_takes_no_files_is_followed";
    let Some(root) = child_of() else {
        let root = tempfile::tempdir().expect("a temporary folder");
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).expect("sets");
        let mut command = Command::new(this_program());
        if fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
            let program = root.path().join("program");
            fs::copy(this_program(), &program).expect("copies");
            command = Command::new(program);
            command.uid(NOBODY).gid(NOBODY);
        }
        let theirs = root.path().join("theirs");
        make_store_with_values_apart(&theirs);
        for name in names(&theirs) {
            let readable = fs::Permissions::from_mode(0o444);
            fs::set_permissions(theirs.join(name), readable).expect("sets");
        }
        fs::set_permissions(&theirs, fs::Permissions::from_mode(0o555)).expect("sets");
        run_child(command, test, root.path());
        fs::set_permissions(&theirs, fs::Permissions::from_mode(0o755)).expect("sets");
        return;
    };
    let theirs = root.join("theirs");
    let before = contents(&theirs);
    let follower = Db::follow(&theirs, FollowOptions::new()).expect("needs no right to write");
    follower.catch_up().expect("reads");
    for row in 0..ROWS {
        let found = follower.get(row.to_be_bytes()).expect("reads");
        assert_eq!(found.as_deref(), Some(&*long_value(row)), "row {row}");
    }
    assert_eq!(follower.verify().expect("reads").damage, [""; 0]);
    follower.close().expect("closes");
    assert!(contents(&theirs) == before, "something was changed");
}
