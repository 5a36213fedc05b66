//! Folders that are renamed, replaced and linked while their stores are open.
//! ```text
//! db --rename--> moved       the open store follows its folder
//! db (a new store)           has the path, and all to itself
//! ```
//! Invariant: an open store writes into the folder that it was opened in, whatever that is called,
//! and nowhere else.
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use trommel::options::DirectIo;
use trommel::tools::{peek, repair};
use trommel::{Background, Db, Error, GuardKind, Options, SyncPolicy};

const BACKGROUNDS: [Background; 2] = [Background::Stepped, Background::Threads(2)];

fn open_with(path: &Path, options: Options) -> Result<Db, Error> {
    Db::open(path, options.size_ratio(2).sync(SyncPolicy::Always))
}

fn open(path: &Path, background: Background) -> Db {
    let options = Options::new().guard(GuardKind::Grf).background(background);
    open_with(path, options).expect("opens")
}

fn write(db: &Db, rows: std::ops::Range<u32>, value: &str) {
    for flush in rows.clone().collect::<Vec<_>>().chunks(20) {
        flush.iter().for_each(|row| db.put(row.to_be_bytes(), value).expect("puts"));
        db.flush().expect("flushes");
    }
    db.compact().expect("merges");
    db.put(rows.end.to_be_bytes(), value).expect("puts");
}

fn holds(db: &Db, rows: std::ops::Range<u32>, value: &str) {
    for row in rows {
        let found = db.get(row.to_be_bytes()).expect("gets");
        assert_eq!(found.as_deref(), Some(value.as_bytes()), "row {row}");
    }
    let report = db.verify().expect("reads everything");
    assert_eq!(report.damage, Vec::<String>::new());
}

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).expect("lists").map(|entry| entry.expect("an entry"));
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read(entry.path()).unwrap_or_default())
    };
    entries.map(file).collect()
}

#[test]
fn an_open_store_follows_its_renamed_folder_and_a_new_one_in_its_place_is_whole() {
    for background in BACKGROUNDS {
        for direct in [DirectIo::default(), DirectIo::ALL] {
            let root = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
            let (path, moved) = (root.path().join("db"), root.path().join("moved"));
            let options = Options::new().direct(direct).background(background);
            let old = open_with(&path, options.clone()).expect("opens");
            write(&old, 0..60, "old");
            fs::rename(&path, &moved).expect("renames");
            let new = open_with(&path, options.clone()).expect("the path is free");
            for round in 0..3 {
                write(&old, 40 * round..100 + 40 * round, "old");
                write(&new, 30 * round..80 + 30 * round, "new");
            }
            holds(&old, 0..181, "old");
            holds(&new, 0..141, "new");
            assert!(matches!(open_with(&moved, options.clone()), Err(Error::Locked { .. })));
            assert!(matches!(open_with(&path, options.clone()), Err(Error::Locked { .. })));
            old.checkpoint(root.path().join("copy")).expect("makes a checkpoint");
            old.close().expect("closes");
            new.close().expect("closes");
            holds(&open(&moved, background), 0..181, "old");
            holds(&open(&path, background), 0..141, "new");
            holds(&open(&root.path().join("copy"), background), 0..181, "old");
        }
    }
}

#[test]
fn an_open_store_follows_a_folder_above_it_that_is_renamed() {
    for background in BACKGROUNDS {
        let root = tempfile::tempdir().unwrap();
        let above = root.path().join("above");
        let db = open(&above.join("db"), background);
        write(&db, 0..60, "own");
        fs::rename(&above, root.path().join("elsewhere")).expect("renames");
        write(&db, 60..200, "own");
        holds(&db, 0..201, "own");
        db.close().expect("closes");
        assert!(!above.exists(), "nobody has made the old folder again");
        holds(&open(&root.path().join("elsewhere").join("db"), background), 0..201, "own");
    }
}

#[test]
fn a_link_to_a_folder_may_be_turned_elsewhere_while_its_store_is_open() {
    for background in BACKGROUNDS {
        let root = tempfile::tempdir().unwrap();
        let [first, second, link] = ["first", "second", "link"].map(|name| root.path().join(name));
        let other = open(&second, background);
        write(&other, 0..100, "second");
        other.close().expect("closes");
        let before = files(&second);

        fs::create_dir(&first).expect("makes a folder");
        symlink(&first, &link).expect("links");
        let db = open(&link, background);
        write(&db, 0..60, "first");
        fs::remove_file(&link).expect("removes");
        symlink(&second, &link).expect("links");
        write(&db, 20..150, "first");
        holds(&db, 0..151, "first");
        db.close().expect("closes");
        assert!(files(&second) == before, "the other store's folder was touched");
        holds(&open(&first, background), 0..151, "first");
        holds(&open(&link, background), 0..101, "second");
    }
}

#[test]
fn a_folder_that_is_removed_while_its_store_is_open_gives_errors_and_is_not_made_again() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("db");
    let db = open(&path, Background::Stepped);
    write(&db, 0..60, "own");
    fs::remove_dir_all(&path).expect("removes");
    let other = open(&path, Background::Stepped);
    write(&other, 0..50, "other");
    let before = files(&path);
    (0..40u32).for_each(|row| drop(db.put(row.to_be_bytes(), "late")));
    assert!(db.flush().is_err(), "a folder without a name takes no files");
    drop(db);
    assert!(files(&path) == before, "the new store's folder was touched");
    holds(&other, 0..51, "other");
}

#[test]
fn a_store_stays_locked_when_its_locks_file_is_removed() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("db");
    let db = open(&path, Background::Stepped);
    write(&db, 0..60, "own");
    for is_replaced in [false, true] {
        fs::remove_file(path.join("LOCK")).expect("removes");
        if is_replaced {
            fs::write(path.join("LOCK"), "").expect("writes");
        }
        assert!(matches!(open_with(&path, Options::default()), Err(Error::Locked { .. })));
        assert!(matches!(repair(&path), Err(Error::Locked { .. })));
    }
    write(&db, 0..60, "own");
    db.close().expect("closes");
    holds(&open(&path, Background::Stepped), 0..61, "own");
}

#[test]
fn what_crashes_have_left_is_made_anew_and_files_of_others_are_not_touched() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("db");
    let db = open(&path, Background::Stepped);
    write(&db, 0..60, "own");
    // The next edit begins a new manifest, the first write a new log: both under names that a crash
    // has left.
    db.close().expect("closes");
    fs::write(path.join("MANIFEST.new"), "half").expect("writes");
    let newest = |kind: &str| {
        let names = files(&path).into_keys().filter(|name| name.ends_with(kind));
        let numbers = names.filter_map(|name| name.split('.').next()?.parse::<u64>().ok());
        numbers.max().unwrap_or(0)
    };
    fs::write(path.join(format!("{:06}.wal.new", newest(".wal"))), "half").expect("writes");
    let db = open(&path, Background::Stepped);
    write(&db, 0..60, "again");
    // A number that is the store's next one, taken by somebody else.
    let next = newest("").max(newest(".table")).max(newest(".wal")).max(newest(".filter")) + 1;
    let taken: Vec<_> = (next..next + 3).map(|n| path.join(format!("{n:06}.table"))).collect();
    taken.iter().for_each(|path| fs::write(path, "somebody's").expect("writes"));
    db.put("key", "value").expect("puts");
    let mut refused = 0;
    while let Err(error) = db.flush() {
        let Error::Io { path, source } = &error else { panic!("{error}") };
        assert!(taken.contains(path), "{error}");
        assert_eq!(source.kind(), std::io::ErrorKind::AlreadyExists, "{error}");
        refused += 1;
        assert!(refused <= 3, "another number is taken for the next attempt: {error}");
    }
    assert!(refused > 0, "no number was taken: {:?}", files(&path).keys());
    for path in &taken {
        assert_eq!(fs::read(path).expect("is there"), b"somebody's");
    }
    holds(&db, 0..61, "again");
    assert!(peek(&path).is_ok());
    db.close().expect("closes");
    assert!(!repair(&path).expect("is sound").changed);
}
