//! A store that was opened by a relative path, in a process that changes its working directory.
//! ```text
//! home/db   open     chdir other     put, flush, compact, checkpoint
//!           home/db grows; other/db is as it was
//! other/db
//! ```
//! One test: the working directory is the whole process's.

use std::collections::BTreeMap;
use std::path::Path;

use trommel::{Background, Db, GuardKind, Options, SyncPolicy};

fn open(path: impl AsRef<Path>) -> Db {
    let options = Options::new()
        .guard(GuardKind::Grf)
        .size_ratio(2)
        .sync(SyncPolicy::Always)
        .background(Background::Stepped);
    Db::open(path, options).expect("opens")
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

/// Every file below a folder, with its bytes.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).expect("lists").map(|entry| entry.expect("an entry"));
    let file = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, std::fs::read(entry.path()).expect("reads"))
    };
    entries.map(file).collect()
}

#[test]
fn a_store_stays_where_it_was_opened_when_the_process_goes_elsewhere() {
    let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::env::set_current_dir(other.path()).expect("goes");
    let neighbour = open("db");
    write(&neighbour, 0..100, "neighbour");
    neighbour.close().expect("closes");

    std::env::set_current_dir(home.path()).expect("goes");
    let db = open("db");
    write(&db, 0..50, "own");
    std::env::set_current_dir(other.path()).expect("goes");
    let before = files(Path::new("db"));
    write(&db, 50..200, "own");
    write(&db, 0..200, "own");
    holds(&db, 0..201, "own");
    db.checkpoint("copy").expect("a new path is one of the working directory of now");
    assert_eq!(db.path(), Path::new("db"), "the path that it was opened by");
    assert!(files(Path::new("db")) == before, "the other store's folder was touched");

    holds(&open(other.path().join("copy")), 0..201, "own");
    holds(&open("db"), 0..101, "neighbour");
    db.close().expect("closes");
    holds(&open(home.path().join("db")), 0..201, "own");
}
