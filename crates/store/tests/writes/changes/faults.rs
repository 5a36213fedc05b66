//! Logs that fail, are damaged, or are found by another process: a feed passes nothing over.
//! ```text
//! log 1 [a b | failed        log 2 [b c ...       stray 3 [c        -->  a b c, once
//! ```
//! Invariant: nothing is told that a power cut could take back.

use std::path::Path;
use std::sync::Arc;

use trommel::storage::Memory;
use trommel::testing::Fault;
use trommel::{Batch, Environment, Error};

use super::{changes_since, is_gone, keys_since, keyspace, logs, open, open_after_crash};

/// A trap: where the newest log begins says nothing of what the one before could not keep.
#[test]
fn an_empty_new_log_counts_no_numbers_as_told() {
    let disk = Memory::new();
    let db = open(&disk);
    db.put("a", "1").expect("puts");
    db.sync().expect("syncs");
    let mut feed = db.changes_since(0).expect("nothing is gone");
    feed.next_batch().expect("reads").expect("it is durable");
    // Acknowledged, in memory and in a log that fails then.
    db.put("b", "2").expect("puts");
    db.put("c", "3").expect("puts");
    disk.fail_at(0, Fault::Io);
    db.sync().expect_err("the disk refuses");
    assert_eq!((feed.next_batch().expect("reads"), feed.sequence()), (None, 1));
    db.sync().expect("a new log has what was in memory");
    let batch = feed.next_batch().expect("reads").expect("it is durable");
    let delivered: Vec<u64> = batch.changes.iter().map(|change| change.sequence).collect();
    assert_eq!((delivered, feed.sequence()), (vec![2, 3], 3));
    assert_eq!(feed.next_batch().expect("reads"), None);
    drop((feed, db));
    assert_eq!(keys_since(&open_after_crash(&disk.crash_hard()), 0), ["a", "b", "c"]);
}

#[test]
fn after_a_failed_log_numbers_are_told_once() {
    for fail in 0..40 {
        for kind in [Fault::Io, Fault::NoSpace] {
            let disk = Memory::new();
            let db = open(&disk);
            let other = keyspace(&db, "other");
            let (mut acknowledged, mut feed) = (Vec::new(), db.changes_since(0).expect("is new"));
            disk.fail_at(fail, kind);
            let mut delivered = Vec::new();
            for number in 1..=20u64 {
                let mut batch = Batch::new();
                batch.put(format!("{number:02}"), "x").to(&other).put(format!("{number:02}"), "x");
                let written =
                    if number % 3 == 0 { db.write_synced(batch) } else { db.write(batch) };
                if written.is_ok() {
                    acknowledged.push(number);
                }
                if number % 8 == 0 {
                    let _ = other.flush();
                }
                while let Ok(Some(batch)) = feed.next_batch() {
                    delivered.extend(batch.changes);
                }
            }
            disk.mend();
            db.sync().expect("the disk is well");
            while let Some(batch) = feed.next_batch().expect("reads") {
                delivered.extend(batch.changes);
            }
            let pairs: Vec<u64> = delivered
                .chunks(2)
                .map(|two| {
                    assert_eq!((two.len(), &two[0].key), (2, &two[1].key), "half a batch");
                    String::from_utf8_lossy(&two[0].key).parse().expect("a number")
                })
                .collect();
            assert_eq!(pairs, acknowledged, "operation {fail}");
        }
    }
}

/// A trap: a crash, or a disk that refuses, leaves a log that nobody follows.
#[test]
fn a_stray_log_is_no_part_of_a_feed() {
    let mut strays = 0;
    for fail in 0..20 {
        let disk = Memory::new();
        let db = open(&disk);
        let mut feed = db.changes_since(0).expect("is new");
        // Else the log after the failed one has all, and nobody needs those before it.
        db.put("0", "1").expect("puts");
        db.flush().expect("flushes");
        db.put("a", "1").expect("puts");
        // The next log is made, but the manifest cannot name it.
        disk.fail_at(fail, Fault::NoSpace);
        let _ = db.flush();
        disk.mend();
        db.put("b", "1").expect("puts");
        db.flush().expect("flushes");
        db.put("c", "1").expect("puts");
        db.sync().expect("syncs");
        let delivered: usize = feed.by_ref().map(|batch| batch.expect("reads").changes.len()).sum();
        assert_eq!((delivered, feed.sequence()), (4, 4), "operation {fail}");
        strays += usize::from(logs(&disk).len() > 4);
        let after = disk.crash_hard();
        drop((feed, db));
        assert_eq!(
            keys_since(&open_after_crash(&after), 0),
            ["0", "a", "b", "c"],
            "operation {fail}"
        );
    }
    assert!(strays > 0, "no operation has left a log");
}

// A log that was made anew says that all of it is durable; its name may not have been.
#[test]
fn nothing_is_told_that_a_power_cut_takes_back_after_a_killed_process() {
    for fail in 0..20 {
        let disk = Memory::new();
        let db = open(&disk);
        (0..10).for_each(|number: u32| db.put(number.to_be_bytes(), "1").expect("puts"));
        let disk = disk.kill();
        let db = open(&disk);
        disk.fail_at(fail, Fault::Io);
        let _ = db.put("next", "1").and_then(|()| db.sync());
        let disk = disk.kill();
        let db = open(&disk);
        let mut feed = db.changes_since(0).expect("is there");
        feed.by_ref().for_each(|batch| drop(batch.expect("reads")));
        for cut in [disk.crash_hard(), disk.crash(fail)] {
            let there = open(&cut).snapshot().sequence();
            assert!(feed.sequence() <= there, "operation {fail}: {there} of {}", feed.sequence());
        }
    }
}

#[test]
fn what_a_killed_process_has_not_synced_is_told_when_it_is_durable() {
    let disk = Memory::new();
    let db = open(&disk);
    db.put("a", "1").expect("puts");
    db.sync().expect("syncs");
    db.put("b", "2").expect("puts");
    db.put("c", "2").expect("puts");
    let killed = disk.kill();
    drop(db);
    let db = open(&killed);
    let mut feed = db.changes_since(0).expect("nothing is gone");
    let delivered: Vec<u64> = feed.by_ref().map(|batch| batch.expect("reads").sequence()).collect();
    assert_eq!(delivered, [1], "a power cut could take back the others");
    db.sync().expect("syncs");
    let delivered: Vec<u64> = feed.by_ref().map(|batch| batch.expect("reads").sequence()).collect();
    assert_eq!(delivered, [2, 3]);
    let after = killed.crash_hard();
    drop((feed, db));
    assert_eq!(keys_since(&open(&after), 0), ["a", "b", "c"]);
}

#[test]
fn a_damaged_log_is_told_with_its_place_and_nothing_is_passed_over() {
    let disk = Memory::new();
    let db = open(&disk);
    for number in 0..3u64 {
        db.put(number.to_be_bytes(), "x").expect("puts");
    }
    db.flush().expect("flushes");
    db.put("d", "x").expect("puts");
    db.sync().expect("syncs");
    let mut feed = db.changes_since(0).expect("is there");
    let log = Path::new("db").join(&logs(&disk)[0]);
    let whole = disk.file(&log).expect("is there");
    disk.flip_bit(&log, whole.len() as u64 - 3, 1);
    match feed.next_batch() {
        Err(Error::Corrupt { path, offset, .. }) => assert!(path == log && offset > 12),
        other => panic!("{other:?}"),
    }
    assert_eq!(feed.sequence(), 0);
    assert!(!db.verify().expect("reads").damage.is_empty(), "verify tells it");
    disk.put_file(&log, whole);
    assert!(feed.next().is_none(), "as an iterator it ends");
    assert_eq!(feed.map(|batch| batch.expect("reads").changes.len()).sum::<usize>(), 4);
    assert_eq!(db.verify().expect("reads").damage, [""; 0]);
    // One that is missing is told, too.
    let mut feed = db.changes_since(0).expect("is there");
    disk.remove(&log).expect("removes");
    assert!(matches!(feed.next_batch(), Err(Error::FileMissing { .. })));
}

#[test]
fn a_damaged_log_that_is_kept_costs_a_repair_nothing_but_the_feed() {
    let disk = Memory::new();
    let db = open(&disk);
    for number in 0..4u64 {
        db.put(number.to_be_bytes(), "x").expect("puts");
        db.flush().expect("flushes");
    }
    db.close().expect("closes");
    drop(db);
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    let verify = || trommel::tools::verify_files_with("db", &environment).expect("reads").damage;
    assert_eq!(verify(), [""; 0]);
    let log = Path::new("db").join(&logs(&disk)[1]);
    disk.flip_bit(&log, 40, 1);
    assert_eq!(verify().len(), 1);
    let report = trommel::tools::repair_with("db", &environment).expect("repairs");
    assert_eq!(
        (report.lost.len(), report.doubts.len(), report.changed),
        (0, 0, true),
        "{report:?}"
    );
    assert_eq!(verify(), [""; 0]);
    let db = open(&disk);
    assert_eq!((db.iter().count(), is_gone(db.changes_since(1))), (4, 3));
    assert_eq!(changes_since(&db, 2).expect("is there").0.len(), 2);
}
