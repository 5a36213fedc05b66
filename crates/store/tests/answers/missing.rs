//! Files that a store needs and that are gone: each is named, by opening and, all of them, without
//! opening.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trommel::Environment;
use trommel::storage::{Memory, Storage};
use trommel::tools::{VerifyReport, repair_with, verify_files_with};
use trommel::{Answer, Background, Db, Error, GuardKind, Options, SyncPolicy};

const DIR: &str = "db";

fn environment(disk: &Memory) -> Environment {
    Environment::new().storage(Arc::new(disk.clone()))
}

fn options() -> Options {
    Options::new()
        .guard(GuardKind::Grf)
        .size_ratio(30)
        .write_buffer_bytes(4 << 10)
        .sync(SyncPolicy::Always)
        .background(Background::Stepped)
}

fn open(disk: &Memory) -> trommel::Result<Db> {
    Db::open_with(DIR, options(), environment(disk))
}

fn verify(disk: &Memory) -> VerifyReport {
    verify_files_with(DIR, &environment(disk)).expect("verifying itself goes through")
}

/// Four tables, the image of a filter, and three logs: two of memtables that are not flushed.
fn busy() -> Memory {
    let disk = Memory::new();
    let db = open(&disk).expect("opens");
    for round in 0..4 {
        (0..20).for_each(|n| db.put(format!("{round} {n:02}"), "v").expect("puts"));
        db.flush().expect("flushes");
    }
    while files(&disk, ".wal").len() < 3 {
        let key = db.stats().expect("open").sequence;
        db.put(format!("log {key:05}"), "x".repeat(100)).expect("puts");
    }
    db.put("last", "one").expect("puts");
    // What a kill leaves: closing would write an image.
    let files = disk.crash_hard();
    drop(db);
    files
}

fn files(disk: &Memory, ending: &str) -> Vec<PathBuf> {
    let names = disk.list(Path::new(DIR)).expect("lists").into_iter();
    names.filter(|name| name.ends_with(ending)).map(|name| Path::new(DIR).join(name)).collect()
}

fn missing_message(path: &Path) -> String {
    format!("{} is missing: ", path.display())
}

#[track_caller]
fn refused(disk: &Memory, missing: &Path) {
    match open(disk) {
        Err(Error::FileMissing { path, .. }) => assert_eq!(path, missing),
        other => panic!("{missing:?}: {other:?}"),
    }
}

#[test]
fn a_sound_store_is_told_file_by_file_what_it_holds() {
    let disk = busy();
    let report = verify(&disk);
    assert_eq!(report.damage, [""; 0]);
    assert_eq!((report.tables, report.entries, report.logs.files), (4, 80, 3));
    let db = open(&disk).expect("opens");
    let opened = db.verify().expect("verifies");
    assert_eq!(opened.logs.files, 1, "opening has flushed the others");
    assert_eq!(report.entries + report.logs.entries, opened.entries + opened.logs.entries);
    assert_eq!(opened.memtable_entries, Some(opened.logs.entries));
    let stats = db.stats().expect("open");
    assert_eq!((stats.logs, stats.log_bytes), (1, opened.logs.bytes));
    assert_eq!(stats.memtable_entries, opened.logs.entries);
    assert!(matches!(verify_files_with(DIR, &environment(&disk)), Err(Error::Locked { .. })));
}

#[test]
fn what_is_written_to_logs_is_counted_as_it_is_written() {
    let disk = Memory::new();
    let db = open(&disk).expect("opens");
    assert_eq!(
        (db.stats().expect("open").logs, db.stats().expect("open").log_bytes),
        (0, 0),
        "nothing was written"
    );
    let mut sealed = 0;
    for number in 0..200 {
        db.put(format!("{number:03}"), "x".repeat(50)).expect("puts");
        let (stats, logs) = (db.stats().expect("open"), files(&disk, ".wal"));
        let bytes: usize = logs.iter().map(|log| disk.file(log).expect("there").len()).sum();
        assert_eq!((stats.logs, stats.log_bytes), (logs.len() as u64, bytes as u64), "{number}");
        assert_eq!(stats.memtable_entries, number + 1);
        sealed = sealed.max(stats.memtables - 1);
    }
    assert!(sealed > 0, "several logs");
    db.flush().expect("flushes");
    let stats = db.stats().expect("open");
    assert_eq!((stats.memtable_entries, stats.logs), (0, 1), "the empty one that comes next");
}

#[test]
fn every_table_that_is_gone_is_named() {
    let disk = busy();
    let tables = files(&disk, ".table");
    for (place, table) in tables.iter().enumerate() {
        disk.remove(table).expect("removes");
        let report = verify(&disk);
        assert_eq!(report.damage.len(), place + 1, "{:?}", report.damage);
        for gone in &tables[..=place] {
            assert!(
                report.damage.iter().any(|line| line.starts_with(&missing_message(gone))),
                "{gone:?}"
            );
        }
    }
    assert!(matches!(open(&disk), Err(Error::FileMissing { .. })));
    let repaired = repair_with(DIR, &environment(&disk)).expect("repairs");
    assert_eq!(repaired.lost.len(), tables.len());
    assert_eq!(verify(&disk).damage, [""; 0]);
}

#[test]
fn what_is_gone_hides_no_damage() {
    let disk = busy();
    let (tables, logs) = (files(&disk, ".table"), files(&disk, ".wal"));
    disk.remove(&tables[0]).expect("removes");
    disk.flip_bit(&tables[1], 10, 0);
    disk.flip_bit(&logs[0], 40, 0);
    let damage = verify(&disk).damage;
    for words in [missing_message(&tables[0]), format!("{} is damaged", tables[1].display())] {
        assert!(damage.iter().any(|line| line.starts_with(&words)), "{words}: {damage:?}");
    }
    let words = format!("{} is damaged", logs[0].display());
    assert!(damage.iter().any(|line| line.starts_with(&words)), "{words}: {damage:?}");
}

#[test] // It was "damaged at byte 0".
fn an_image_of_the_filter_that_is_gone_is_missing() {
    let disk = Memory::new();
    let db = open(&disk).expect("opens");
    db.put("key", "value").and_then(|()| db.compact()).expect("merges");
    db.close().expect("closes");
    let image = files(&disk, ".filter").pop().expect("an image");
    disk.remove(&image).expect("removes");
    let of_files = verify(&disk).damage;
    assert!(
        of_files.len() == 1 && of_files[0].starts_with(&missing_message(&image)),
        "{of_files:?}"
    );
    let db = open(&disk).expect("opens");
    let stats = db.stats().expect("open");
    assert_eq!(stats.filter_recovery.to_string(), "rebuilt: the image is missing");
    assert!(
        stats.guard.damaged[0].starts_with(&missing_message(&image)),
        "{:?}",
        stats.guard.damaged
    );
    assert_eq!(db.verify().expect("verifies").damage, of_files);
    drop(db);
    let report = repair_with(DIR, &environment(&disk)).expect("repairs");
    assert!(report.changed && report.lost.is_empty() && report.doubts.is_empty(), "{report:?}");
    assert_eq!(verify(&disk).damage, [""; 0]);
}

/// Removes a log: opening, verifying and repairing tell of it, and the store goes on without.
fn is_missed(disk: &Memory, log: &Path) {
    disk.remove(log).expect("removes");
    refused(disk, log);
    let damage = verify(disk).damage;
    assert!(damage.len() == 1 && damage[0].starts_with(&missing_message(log)), "{damage:?}");
    let lost = repair_with(DIR, &environment(disk)).expect("repairs").lost;
    let name = log.file_name().expect("a file").to_string_lossy();
    assert!(lost.len() == 1 && lost[0].file == *name, "{log:?}: {lost:?}");
    assert_eq!(verify(disk).damage, [""; 0]);
    let db = open(disk).expect("opens");
    db.put("after", "it").expect("puts");
    db.close().expect("closes");
    assert_eq!(repair_with(DIR, &environment(disk)).expect("looks").lost, []);
}

#[test]
fn every_log_that_is_gone_is_missed() {
    for place in 0..3 {
        let disk = busy();
        let logs = files(&disk, ".wal");
        is_missed(&disk, &logs[place]);
    }
}

#[test] // It was like one that was never made.
fn the_only_log_that_is_gone_is_missed() {
    for closes in [true, false] {
        let disk = Memory::new();
        let db = open(&disk).expect("opens");
        db.put("key", "value").expect("puts");
        let left = if closes { disk.clone() } else { disk.crash_hard() };
        db.close().expect("closes");
        let logs = files(&left, ".wal");
        assert_eq!(logs.len(), 1);
        is_missed(&left, &logs[0]);
    }
}

#[test]
fn a_log_is_missed_from_its_first_write_on() {
    let disk = Memory::new();
    let db = open(&disk).expect("opens");
    for number in 0..400 {
        db.put(format!("{number:03}"), "x".repeat(50)).expect("puts");
        let left = disk.crash_hard();
        let newest = files(&left, ".wal").pop().expect("there");
        left.remove(&newest).expect("removes");
        refused(&left, &newest);
    }
}

#[test]
fn the_log_of_a_checkpoint_is_missed() {
    let disk = Memory::new();
    let db = open(&disk).expect("opens");
    db.put("key", "value").expect("puts");
    db.checkpoint("copy").expect("copies");
    let names = disk.list(Path::new("copy")).expect("lists");
    let log = names.iter().find(|name| name.ends_with(".wal")).expect("a log");
    let log = Path::new("copy").join(log);
    disk.remove(&log).expect("removes");
    match Db::open_with("copy", options(), environment(&disk)) {
        Err(Error::FileMissing { path, .. }) => assert_eq!(path, log),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_log_that_has_lost_its_beginning_is_damaged() {
    let disk = busy();
    let newest = files(&disk, ".wal").pop().expect("there");
    disk.put_file(&newest, b"".as_slice());
    match open(&disk) {
        Err(Error::Corrupt { path, .. }) => assert_eq!(path, newest),
        other => panic!("{other:?}"),
    }
    let damage = verify(&disk).damage;
    assert!(damage.len() == 1 && damage[0].contains("first record"), "{damage:?}");
    assert_eq!(repair_with(DIR, &environment(&disk)).expect("repairs").lost.len(), 1);
    open(&disk).expect("opens");
}

#[test]
fn a_manifest_that_is_gone_hides_no_damage() {
    let disk = busy();
    let manifest = Path::new(DIR).join("MANIFEST");
    disk.remove(&manifest).expect("removes");
    refused(&disk, &manifest);
    assert_eq!(verify(&disk).damage.len(), 1);
    let tables = files(&disk, ".table");
    disk.flip_bit(&tables[2], 10, 0);
    let damage = verify(&disk).damage;
    assert!(damage.len() == 2 && damage[0].starts_with(&missing_message(&manifest)), "{damage:?}");
}

#[test] // It "has files, but no MANIFEST" for those who repair, while opening made a store there.
fn where_a_store_was_only_begun_there_is_none() {
    let disk = Memory::new();
    drop(open(&disk).expect("opens"));
    for path in disk.list(Path::new(DIR)).expect("lists") {
        if path != "LOCK" {
            disk.remove(&Path::new(DIR).join(path)).expect("removes");
        }
    }
    let is_missing = |error: Option<Error>| matches!(error, Some(Error::Missing { .. }));
    assert!(is_missing(verify_files_with(DIR, &environment(&disk)).err()));
    assert!(is_missing(repair_with(DIR, &environment(&disk)).err()));
    let options = options().create_if_missing(false);
    assert!(is_missing(Db::open_with(DIR, options, environment(&disk)).err()));
    open(&disk).expect("makes one");
}

#[test]
fn a_folder_of_something_else_is_not_verified() {
    let disk = Memory::new();
    assert!(matches!(
        verify_files_with("nowhere", &environment(&disk)),
        Err(Error::Missing { .. })
    ));
    disk.put_file("other/letter.txt", b"dear".as_slice());
    assert!(matches!(
        verify_files_with("other", &environment(&disk)),
        Err(Error::NotAStore { .. })
    ));
    assert_eq!(disk.list(Path::new("other")).expect("lists"), ["letter.txt"], "nothing is made");
}

#[test] // It was told as an error of the disk, for which there is no `repair`.
fn a_table_that_goes_while_the_store_is_open_is_told_as_missing_when_it_is_opened_again() {
    let disk = busy();
    let options = options().max_open_files(Some(1)).block_cache_bytes(0);
    let db = Db::open_with(DIR, options, environment(&disk)).expect("opens");
    let tables = files(&disk, ".table");
    for table in &tables {
        disk.remove(table).expect("removes");
    }
    let keys: Vec<_> = (0..4).map(|round| format!("{round} 07")).collect();
    let mut queue = db.queue(2);
    keys.iter().for_each(|key| queue.submit_get(key, 0));
    let of_queue = std::iter::from_fn(|| queue.wait()).map(|answered| match answered.answer {
        Answer::Value(found) => found,
        other => panic!("{other:?}"),
    });
    let found: Vec<_> = of_queue.chain(db.multi_get(&keys)).collect();
    let found = found.into_iter().chain(keys.iter().map(|key| db.get(key)));
    let mut missing: Vec<_> = found.filter_map(Result::err).collect();
    missing.extend(db.range(..).filter_map(Result::err));
    // The one that is open is read on.
    assert!(missing.len() > 3, "{missing:?}");
    for error in missing {
        assert!(error.tells_of_damage(), "{error}");
        let Error::FileMissing { path, .. } = &error else { panic!("{error:?}") };
        assert!(tables.contains(path), "{error}");
    }
}
