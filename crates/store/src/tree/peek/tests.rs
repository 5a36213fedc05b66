//! A look sees what the owner sees, and changes nothing.

use super::*;
use crate::db::Db;
use crate::plan::background::Background;
use crate::plan::options::Options;
use crate::shared::environment::Environment;
use crate::storage::memory::Memory;
use crate::sync::Arc;

fn open(disk: &Memory) -> Db {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    let options = Options::new().size_ratio(3).background(Background::Stepped);
    Db::open_with("db", options, environment).expect("opens")
}

/// Returns the same runs as the owner's statistics show them.
fn as_owner_reports(db: &Db) -> Vec<RunPeek> {
    let levels = db.stats().expect("open").levels.into_iter();
    let of_level = |level: crate::stats::LevelStats| {
        let at = level.level;
        level.runs.into_iter().map(move |run| RunPeek {
            level: at,
            tables: run.tables,
            entries: run.entries,
            bytes: run.bytes,
            span: run.span,
        })
    };
    levels.flat_map(of_level).collect()
}

#[test]
fn an_onlooker_sees_the_owners_tree_after_every_step() {
    let disk = Memory::new();
    let db = open(&disk);
    for flush in 0..20u64 {
        (0..30).for_each(|n: u64| db.put((n * 20 + flush).to_be_bytes(), "value").expect("puts"));
        db.flush().expect("flushes");
        loop {
            let seen = peek_with(&disk, Path::new("db")).expect("is there");
            assert_eq!((&seen.runs, seen.flushes), (&as_owner_reports(&db), flush + 1));
            assert_eq!(seen.sequence, db.stats().expect("open").sequence);
            if !db.step().expect("steps") {
                break;
            }
        }
    }
    assert!(db.stats().expect("open").levels.len() > 1, "a tree that grew");
    let files = || {
        let mut names = disk.list(Path::new("db")).expect("lists");
        names.sort();
        let read =
            |name: &String| crate::files::record::read_all(&OpenFolder::on(&disk, "db"), name);
        let bytes: Vec<_> = names.iter().map(|name| read(name).expect("reads")).collect();
        (names, bytes)
    };
    let before = files();
    peek_with(&disk, Path::new("db")).expect("is there");
    assert!(before == files(), "looking has written something");
}

#[test]
fn an_edit_that_is_half_written_is_none_yet() {
    let disk = Memory::new();
    let db = open(&disk);
    db.put("key", "value").expect("puts");
    db.flush().expect("flushes");
    let whole = peek_with(&disk, Path::new("db")).expect("is there");
    assert_eq!((whole.runs.len(), whole.runs[0].span, whole.runs[0].entries), (1, (0, 1), 1));
    // A second flush, of whose edit the onlooker finds all bytes but the last.
    db.put("kez", "value").expect("puts");
    db.flush().expect("flushes");
    let manifest = crate::files::manifest::MANIFEST_NAME;
    let bytes =
        crate::files::record::read_all(&OpenFolder::on(&disk, "db"), manifest).expect("reads");
    let torn = Memory::new();
    torn.create_dir(Path::new("db")).expect("makes the folder");
    let mut file = OpenFolder::on(&torn, "db").create(manifest).expect("creates");
    file.append(&bytes[..bytes.len() - 1]).expect("writes");
    assert_eq!(peek_with(&torn, Path::new("db")).expect("reads what is whole"), whole);
}

#[test]
fn where_no_store_is_nothing_is_seen() {
    let disk = Memory::new();
    let seen = peek_with(&disk, Path::new("db"));
    assert!(matches!(seen, Err(Error::Missing { .. })), "{seen:?}");
    assert!(disk.list(Path::new("db")).is_err(), "no folder was made");
}
