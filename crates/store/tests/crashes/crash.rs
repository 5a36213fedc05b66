//! Crashes on the simulated disk: what was acknowledged with sync survives, and what is lost
//! without it is a suffix of the writes, never one in the middle, never half a batch.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use trommel::Environment;
use trommel::storage::{Memory, Storage};
use trommel::testing::Fault;
use trommel::{Background, Batch, Db, Error, Options, SyncPolicy};

const DIR: &str = "db";

fn options(sync: SyncPolicy) -> Options {
    Options::new()
        .size_ratio(3)
        .write_buffer_bytes(2048)
        .block_bytes(256)
        .sync(sync)
        .background(Background::Stepped)
}

fn open(disk: &Memory, options: &Options) -> trommel::Result<Db> {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with(Path::new(DIR), options.clone(), environment)
}

/// Writes batch after batch: each sets two keys to its number, and a third that names it.
fn write_batches(db: &Db, from: u32, count: u32) -> trommel::Result<()> {
    for number in from..from + count {
        let mut batch = Batch::new();
        batch.put("left", number.to_be_bytes()).put("right", number.to_be_bytes());
        batch.put(format!("batch {number:05}"), vec![b'.'; number as usize % 90]);
        db.write(batch)?;
        if number % 7 == 0 {
            db.step()?;
        }
    }
    Ok(())
}

/// How many batches are there. Panics if they are not a prefix of those written, or one is in half.
fn batches_found(db: &Db) -> u32 {
    let number = |key: &str| {
        let value = db.get(key).expect("gets")?;
        Some(u32::from_be_bytes(value[..].try_into().expect("four bytes")))
    };
    let (left, right) = (number("left"), number("right"));
    assert_eq!(left, right, "half a batch");
    let count = left.map_or(0, |last| last + 1);
    let found: Vec<_> = db.range("batch ".."batch~").map(|e| e.expect("reads").0).collect();
    let expected: Vec<_> = (0..count).map(|n| format!("batch {n:05}").into_bytes()).collect();
    assert_eq!(found, expected, "a write in the middle is missing");
    count
}

/// The folders that were made for it must be synced in those that they are in.
#[test]
fn a_new_store_survives_a_power_cut_with_its_folder() {
    for dir in ["db", "a/b/db", "/a/b/db"] {
        for made_before in [false, true] {
            let disk = Memory::new();
            if made_before {
                // As a process leaves it that was killed at once.
                disk.create_dir(Path::new(dir)).expect("makes the folder");
                disk.sync_dir(Path::new("a")).ok();
            }
            let open = |disk: &Memory| {
                let storage = Arc::new(disk.clone());
                let environment = Environment::new().storage(storage);
                Db::open_with(Path::new(dir), options(SyncPolicy::Always), environment)
            };
            let db = open(&disk).expect("opens a new store");
            db.put("drum", "turns").expect("puts");
            let after = disk.crash_hard();
            drop(db);
            let db = open(&after).expect("opens what the crash has left");
            assert_eq!(db.get("drum").expect("gets").as_deref(), Some(&b"turns"[..]), "{dir}");
        }
    }
}

#[test]
fn synced_writes_survive_any_crash() {
    for seed in 0..60 {
        let mut disk = Memory::new();
        let mut written = 0;
        for generation in 0..5 {
            let db = open(&disk, &options(SyncPolicy::Always)).expect("opens");
            assert_eq!(batches_found(&db), written, "seed {seed}, generation {generation}");
            let count = (seed as u32 * 13 + generation * 29) % 70;
            write_batches(&db, written, count).expect("writes");
            written += count;
            // The power goes while the store is open.
            disk = disk.crash(seed * 10 + u64::from(generation));
            drop(db);
        }
    }
}

#[test]
fn a_crash_without_sync_loses_a_suffix() {
    let mut lost = 0;
    for seed in 0..120 {
        let disk = Memory::new();
        let db = open(&disk, &options(SyncPolicy::Never)).expect("opens");
        write_batches(&db, 0, 100).expect("writes");
        let disk = disk.crash(seed);
        drop(db);
        let db = open(&disk, &options(SyncPolicy::Never)).expect("opens");
        let found = batches_found(&db);
        assert!(found <= 100);
        lost += 100 - found;
        // What was recovered stays, and writing goes on behind it.
        write_batches(&db, found, 10).expect("writes");
        drop(db);
        let db = open(&disk, &options(SyncPolicy::Never)).expect("opens");
        assert_eq!(batches_found(&db), found + 10, "seed {seed}");
    }
    assert!(lost > 0, "the test never lost anything: it does not test loss");
}

#[test]
fn later_pages_of_a_log_may_survive_earlier_ones() {
    let big = options(SyncPolicy::Never).write_buffer_bytes(1 << 20);
    for (synced, refused) in [(0, false), (10, false), (40, true)] {
        let disk = Memory::new();
        let db = open(&disk, &big).expect("opens");
        write_batches(&db, 0, synced).expect("writes");
        db.sync().expect("syncs");
        let names = disk.list(Path::new(DIR)).expect("lists");
        let log =
            names.iter().find(|name| name.ends_with(".wal")).map(|log| Path::new(DIR).join(log));
        write_batches(&db, synced, 50 - synced).expect("writes");
        let disk = disk.kill();
        drop(db);
        // The page was not written yet when the power went. With 40 synced, it surely was: that is
        // damage.
        let log = log.unwrap_or_else(|| Path::new(DIR).join("000001.wal"));
        let mut bytes = disk.file(&log).expect("the log");
        bytes[2048..3072].fill(0);
        disk.put_file(&log, bytes);
        match open(&disk, &big) {
            Ok(db) => assert!((10..50).contains(&batches_found(&db)) && !refused),
            Err(error) => assert!(matches!(error, Error::Corrupt { .. }) && refused, "{error}"),
        }
    }
}

#[test]
fn one_failed_operation_loses_nothing_that_was_acknowledged() {
    // Let the n-th operation fail, for every n until the history runs through without meeting it.
    for fault in [Fault::Io, Fault::NoSpace] {
        for n in 0.. {
            let disk = Memory::new();
            disk.create_dir(Path::new(DIR)).expect("makes the folder");
            disk.fail_at(n, fault);
            let acknowledged = history_with_a_fault(&disk);
            let met = disk.operations() > n;
            let disk = disk.crash(n);
            let db = open(&disk, &options(SyncPolicy::Always)).expect("opens after the fault");
            let found = batches_found(&db);
            // The batch that failed may be there, as a whole.
            assert!(
                (acknowledged..=acknowledged + 1).contains(&found),
                "{fault:?} at {n}: {found}"
            );
            drop(db);
            if !met {
                break;
            }
        }
    }
}

/// Opens and writes until something fails once; goes on if it can. Gives how many batches were
/// acknowledged.
fn history_with_a_fault(disk: &Memory) -> u32 {
    let Ok(db) = open(disk, &options(SyncPolicy::Always)) else { return 0 };
    let mut acknowledged = 0;
    while acknowledged < 60 {
        if write_batches(&db, acknowledged, 1).is_err() {
            // The same batch again: the fault is over. If it was in already, it is in twice, as
            // one.
            let read = db.get("left").expect("reads go on after a fault");
            let seen = read.map_or(0, |v| u32::from_be_bytes(v[..].try_into().expect("four")) + 1);
            assert!(seen == acknowledged || seen == acknowledged + 1);
            write_batches(&db, acknowledged, 1).expect("writing goes on after a fault");
        }
        acknowledged += 1;
    }
    db.settle().or_else(|_| db.settle()).expect("background work goes on after a fault");
    disk.fail_at(1 << 40, Fault::Io);
    assert_eq!(batches_found(&db), acknowledged);
    acknowledged
}

#[test]
fn a_full_disk_stops_writes_and_not_reads() {
    let disk = Memory::new();
    let db = open(&disk, &options(SyncPolicy::Always)).expect("opens");
    write_batches(&db, 0, 50).expect("writes");
    disk.no_space(true);
    for _ in 0..3 {
        let refused = db.put("more", vec![b'x'; 4096]);
        assert!(matches!(refused, Err(Error::Io { .. } | Error::Stopped { .. })), "{refused:?}");
        assert_eq!(batches_found(&db), 50);
    }
    disk.no_space(false);
    write_batches(&db, 50, 50).expect("space has come back");
    drop(db);
    let db = open(&disk.crash_hard(), &options(SyncPolicy::Always)).expect("opens");
    assert_eq!(batches_found(&db), 100);
}

#[test]
fn a_store_on_a_full_disk_can_be_opened_and_read() {
    let disk = Memory::new();
    let db = open(&disk, &options(SyncPolicy::Always)).expect("opens");
    write_batches(&db, 0, 80).expect("writes");
    drop(db);
    disk.no_space(true);
    let db = open(&disk, &options(SyncPolicy::Always)).expect("opening writes nothing");
    assert_eq!(batches_found(&db), 80);
    assert!(db.put("more", "x").is_err());
    assert_eq!(batches_found(&db), 80);
    drop(db);
    disk.no_space(false);
    let db = open(&disk, &options(SyncPolicy::Always)).expect("opens");
    assert_eq!(batches_found(&db), 80);
}

#[test]
fn opening_again_and_again_leaves_one_log() {
    let disk = Memory::new();
    let logs = |disk: &Memory| {
        let names = disk.list(Path::new(DIR)).expect("lists");
        names.into_iter().filter(|name| name.contains(".wal")).collect::<Vec<_>>()
    };
    let big = options(SyncPolicy::Always).write_buffer_bytes(1 << 20);
    for number in 0..20 {
        let db = open(&disk, &big).expect("opens");
        write_batches(&db, number, 1).expect("writes");
        drop(db);
        assert_eq!(logs(&disk).len(), 1, "{:?}", logs(&disk));
    }
    let path = Path::new(DIR).join(&logs(&disk)[0]);
    let before = disk.file(&path).expect("is there");
    let db = open(&disk.crash(1), &big).expect("opens");
    assert_eq!(batches_found(&db), 20);
    drop(db);
    assert_eq!(disk.file(&path).expect("is there"), before, "reading has written");
}

#[test]
fn files_that_no_layout_names_are_removed() {
    let disk = Memory::new();
    let db = open(&disk, &options(SyncPolicy::Always)).expect("opens");
    write_batches(&db, 0, 80).expect("writes");
    drop(db);
    disk.put_file(Path::new(DIR).join("999999.table"), b"left by a crash".as_slice());
    // A number that no store gives is that of a foreign file.
    let foreign = Path::new(DIR).join(format!("{}.table", u64::MAX));
    disk.put_file(&foreign, b"no table".as_slice());
    drop(open(&disk, &options(SyncPolicy::Always)).expect("opens"));
    assert_eq!(disk.file(Path::new(DIR).join("999999.table")), None);
    assert!(disk.file(&foreign).is_some());
}

#[test]
fn a_store_is_open_once_and_other_folders_are_refused() {
    let disk = Memory::new();
    let db = open(&disk, &options(SyncPolicy::Always)).expect("opens");
    assert!(matches!(open(&disk, &options(SyncPolicy::Always)), Err(Error::Locked { .. })));
    drop(db);
    drop(open(&disk, &options(SyncPolicy::Always)).expect("opens when the other is closed"));
    let elsewhere = Memory::new();
    elsewhere.create_dir(Path::new(DIR)).expect("makes the folder");
    let missing = options(SyncPolicy::Always).create_if_missing(false);
    assert!(matches!(open(&elsewhere, &missing), Err(Error::Missing { .. })));
    elsewhere.put_file(Path::new(DIR).join("letter.txt"), b"dear".as_slice());
    assert!(matches!(open(&elsewhere, &options(SyncPolicy::Always)), Err(Error::NotAStore { .. })));
    assert_eq!(elsewhere.list(Path::new(DIR)).expect("lists"), ["letter.txt"]);
}

#[test]
fn guards_agree_after_a_crash() {
    for guard in trommel_guards::all_guards() {
        let disk = Memory::new();
        let with_guard = options(SyncPolicy::Always).guard(guard);
        let db = open(&disk, &with_guard).expect("opens");
        write_batches(&db, 0, 150).expect("writes");
        let disk = disk.crash(7);
        drop(db);
        let db = open(&disk, &with_guard).expect("opens");
        assert_eq!(batches_found(&db), 150);
        let all: BTreeMap<_, _> = db.range(..).map(|e| e.expect("reads")).collect();
        assert_eq!(all.len(), 152);
        assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
    }
}
