//! Files that may be read, and that another user owns.
//! ```text
//! who             the folder's owner      the files' owner
//! root            nobody                  nobody              as ever
//! nobody          nobody                  root                as ever: theirs are replaced
//! nobody          nobody                  root, LOCK too      read-only: an error that names LOCK
//! nobody          root, sticky            root                names stay taken: an error, or done
//! ```
//! Invariant: new files have the rights that their folder gives, and old ones stay what they were.
//! What was acknowledged is there.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use trommel::tools::verify_files;
use trommel::{Db, Error};

use crate::ground::{CALLS, ROWS, make_store, names, names_it, options, value};
use crate::rights::{NOBODY, child_of, mode_of, run_child, this_program};

const ROOT: u32 = 0;
const LATE: [&str; 3] = ["late 1", "late 2", "late 3"];

fn is_root() -> bool {
    owner_of(Path::new("/proc/self")) == ROOT
}

fn owner_of(path: &Path) -> u32 {
    fs::metadata(path).expect("is there").uid()
}

/// Runs a test again in a process without a mask, as root or as nobody. A folder: this is it.
/// Nobody but root can do that.
fn in_own_process(test: &str, user: u32, make: impl FnOnce(&Path)) -> Option<PathBuf> {
    if let Some(root) = child_of() {
        return Some(root);
    }
    if !is_root() {
        eprintln!("SKIPPED: {test}: only root can give files away");
        return None;
    }
    let root = tempfile::tempdir().expect("a temporary folder");
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o777)).expect("sets");
    make(root.path());
    // With a program that they can read.
    let program = root.path().join("program");
    fs::copy(this_program(), &program).expect("copies");
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 000; exec \"$0\" \"$@\""]).arg(program).uid(user).gid(user);
    run_child(shell, test, root.path());
    None
}

/// A store whose folder and whose files have these owners. The files may be read by all.
fn store_of(path: &Path, (of_folder, mode): (u32, u32), of_files: u32) {
    make_store(path);
    for name in names(path) {
        let file = path.join(name);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("sets");
        chown(&file, Some(of_files), Some(of_files)).expect("gives");
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("sets");
    chown(path, Some(of_folder), Some(of_folder)).expect("gives");
}

fn give_lock(path: &Path, user: u32) {
    chown(path.join("LOCK"), Some(user), Some(user)).expect("gives");
}

/// Every row is right, and of the late ones those that were acknowledged are there.
fn read_all(db: &Db, acknowledged: &[&str]) {
    for row in 0..ROWS {
        assert_eq!(db.get(row.to_be_bytes()).expect("gets").as_deref(), Some(&*value(row)));
    }
    for key in acknowledged {
        assert_eq!(db.get(key).expect("gets").as_deref(), Some(&b"value"[..]), "{key}");
    }
    assert!(db.range(..).filter(Result::is_ok).count() >= ROWS as usize);
    assert_eq!(db.verify().expect("reads").damage, [""; 0]);
}

/// Writes, flushes and merges. What was acknowledged, and what was refused.
fn write(db: &Db) -> (Vec<&'static str>, Vec<Error>) {
    let (mut acknowledged, mut refused) = (Vec::new(), Vec::new());
    for key in LATE {
        match db.put(key, "value") {
            Ok(()) => acknowledged.push(key),
            Err(error) => refused.push(error),
        }
        refused.extend([db.flush(), db.compact()].into_iter().filter_map(Result::err));
    }
    (acknowledged, refused)
}

/// The whole life of a store that is used as if all of it were one's own.
fn live(path: &Path) {
    let (uid, old) = (owner_of(Path::new("/proc/self")), names(path));
    let owners: Vec<u32> = old.iter().map(|name| owner_of(&path.join(name))).collect();
    assert_eq!(verify_files(path).expect("reads").damage, [""; 0]);
    let db = Db::open(path, options()).expect("opens");
    read_all(&db, &[]);
    // Of what is not one's own, a second name may not be had.
    let early = path.with_extension("early");
    db.checkpoint(&early).expect("makes a checkpoint of their files");
    let (acknowledged, refused) = write(&db);
    assert!(refused.is_empty() && acknowledged == LATE, "{refused:?}");
    read_all(&db, &LATE);
    let copy = path.with_extension("copy");
    db.checkpoint(&copy).expect("makes a checkpoint");
    db.close().expect("closes");
    read_all(&Db::open(&early, options()).expect("opens"), &[]);
    for (dir, is_copy) in [(path, false), (&copy, true)] {
        let of_files = mode_of(dir) & 0o666;
        for name in names(dir) {
            let (file, was) = (dir.join(&name), old.iter().position(|old| *old == name));
            // The manifest is replaced; what else has an old name is the old file. Copies may be
            // links.
            match was.filter(|_| name != "MANIFEST" && !is_copy) {
                Some(was) => assert_eq!((owner_of(&file), mode_of(&file)), (owners[was], 0o644)),
                None if is_copy => assert_eq!(mode_of(&file) & !of_files, 0, "{name}"),
                None => assert_eq!((owner_of(&file), mode_of(&file)), (uid, of_files), "{name}"),
            }
        }
        for (call, f) in CALLS {
            f(dir).unwrap_or_else(|error| panic!("{call} of {}: {error}", dir.display()));
        }
        let db = Db::open(dir, options()).expect("opens");
        read_all(&db, &LATE);
        db.close().expect("closes");
    }
}

#[test]
fn root_uses_what_another_owns() {
    let test = "owners::root_uses_what_another_owns";
    let make = |root: &Path| store_of(&root.join("theirs"), (NOBODY, 0o755), NOBODY);
    if let Some(root) = in_own_process(test, ROOT, make) {
        live(&root.join("theirs"));
    }
}

#[test]
fn files_that_may_only_be_read_are_replaced_in_a_folder_of_ones_own() {
    let test = "owners::files_that_may_only_be_read_are_replaced_in_a_folder_of_ones_own";
    let make = |root: &Path| {
        for mode in [0o755, 0o700, 0o770] {
            let path = root.join(format!("{mode:o}"));
            store_of(&path, (NOBODY, mode), ROOT);
            give_lock(&path, NOBODY);
        }
        store_of(&root.join("locked"), (NOBODY, 0o755), ROOT);
    };
    let Some(root) = in_own_process(test, NOBODY, make) else { return };
    for mode in ["755", "700", "770"] {
        live(&root.join(mode));
    }
    for (call, f) in CALLS {
        match f(&root.join("locked")) {
            Ok(_) => assert!(["follow", "peek", "dump"].contains(&call), "{call}"),
            Err(error) => {
                assert!(names_it(&error, "LOCK"), "{call}: {error}");
                assert!(error.to_string().contains("open a copy"), "{call}: {error}");
            }
        }
    }
}

#[test]
fn what_cannot_be_taken_away_in_a_sticky_folder_is_told_and_nothing_is_lost() {
    let test = "owners::what_cannot_be_taken_away_in_a_sticky_folder_is_told_and_nothing_is_lost";
    let make = |root: &Path| {
        store_of(&root.join("sticky"), (ROOT, 0o1777), ROOT);
        give_lock(&root.join("sticky"), NOBODY);
    };
    let Some(root) = in_own_process(test, NOBODY, make) else { return };
    let path = root.join("sticky");
    let mut known: Vec<&str> = Vec::new();
    for _ in 0..2 {
        let db = Db::open(&path, options()).expect("opens");
        read_all(&db, &known);
        let (acknowledged, refused) = write(&db);
        assert!(!refused.is_empty(), "the manifest is root's, and was replaced");
        for error in refused {
            let message = error.to_string();
            assert!(message.contains("sticky") && message.contains("not permitted"), "{message}");
        }
        known.extend(acknowledged);
        read_all(&db, &known);
        // What it owes it says.
        drop(db.close());
    }
    let db = Db::open(&path, options()).expect("opens");
    read_all(&db, &known);
}
