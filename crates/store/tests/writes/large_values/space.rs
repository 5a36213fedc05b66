//! The space of large values comes back: files go that nobody refers to, and merges move the rest.
//! ```text
//! a.value   [ garbage | live | garbage ]     garbage past its share: live -> b.value, a.value goes
//! ```
//! Invariant: what a snapshot, a scan or a reader needs stays.

use std::path::Path;

use trommel::storage::{Memory, Storage};
use trommel::testing::Fault;
use trommel::{Db, Error, KeyspaceOptions, SyncPolicy};

use super::{
    DIR, Stream, bytes_of, mixed, open, open_with, options, value, value_files, values_since,
};

#[test]
fn what_nobody_refers_to_is_freed() {
    let disk = Memory::new();
    let db = open(&disk);
    db.put("kept", value(1, 5000)).expect("puts");
    db.put("large", value(2, 100_000)).expect("puts");
    db.flush().expect("flushes");
    let snapshot = db.snapshot();
    db.delete("large").expect("deletes");
    db.put("next", value(3, 100_000)).expect("puts");
    db.compact().expect("merges");
    assert_eq!(snapshot.get("large").expect("reads").expect("is there"), value(2, 100_000));
    drop(snapshot);
    db.delete("next").expect("deletes");
    db.compact().expect("merges");
    // The first file has both, the second one the last.
    assert_eq!(value_files(&disk).len(), 1);
    db.delete_range("", "z").expect("deletes");
    let scan = db.iter();
    db.compact().expect("merges");
    drop(scan);
    db.put("other", "short").expect("puts");
    db.compact().expect("merges");
    assert_eq!(value_files(&disk), [""; 0]);
}

// Values are replaced evenly, ten times over: what is on the disk is little more than what is live.
#[test]
fn space_comes_back_under_even_overwriting() {
    const KEYS: u64 = 500;
    for (share, most) in [(0.2, 1.35), (0.5, 1.75)] {
        for last_runs in [1, 9] {
            let policy = format!("tiering last_runs={last_runs}").parse().expect("a policy");
            let disk = Memory::new();
            let options = options()
                .policy(policy)
                .value_garbage_share(share)
                .value_file_bytes(128 << 10)
                .write_buffer_bytes(16 << 10)
                .sync(SyncPolicy::Never);
            let db = open_with(&disk, options);
            let mut newest = std::collections::BTreeMap::new();
            for number in 0..KEYS * 11 {
                // In any order, once all are there.
                let drawn = mixed(number) % KEYS;
                let key = if number < KEYS { number } else { drawn };
                let length = 4000 + (number % 1000) as usize;
                db.put(key.to_be_bytes(), value(number, length)).expect("puts");
                newest.insert(key, (number, length));
                if number % 50 == 0 {
                    db.step().expect("goes on");
                }
            }
            db.settle().expect("comes to rest");
            let live: usize = newest.values().map(|(_, length)| length + 8).sum();
            let there = bytes_of(&disk, ".value") + bytes_of(&disk, ".table");
            let ratio = there as f64 / live as f64;
            println!("share {share}, {last_runs} last runs: {ratio:.3}");
            assert!(ratio < most, "share {share}, {last_runs} last runs: {ratio}");
            for (key, (number, length)) in newest {
                let found = db.get(key.to_be_bytes()).expect("reads").expect("it is there");
                assert!(*found == *value(number, length));
            }
            let stats = db.stats().expect("tells");
            assert_eq!(stats.value_files as usize, value_files(&disk).len());
            assert_eq!(stats.value_bytes as usize, bytes_of(&disk, ".value"));
            assert!(stats.value_garbage_bytes < stats.value_bytes / 2);
            assert!(db.verify().expect("verifies").damage.is_empty());
        }
    }
}

// With a quiet key space beside it all writes are in one log, which its memtable needs.
#[test]
fn logs_keep_values_up_to_a_limit() {
    for is_quiet in [false, true] {
        let disk = Memory::new();
        let kept = 256 << 10;
        let db = open_with(&disk, options().kept_log_bytes(kept).value_file_bytes(32 << 10));
        let quiet = db.keyspace("quiet", trommel::KeyspaceOptions::new()).expect("made");
        if is_quiet {
            quiet.put("a", "short").expect("puts");
        }
        let mut most = 0;
        for number in 0..300 {
            db.put([number as u8 % 4], value(number, 10_000)).expect("puts");
            while db.step().expect("goes on") {}
            let stats = db.stats().expect("open");
            let bytes = stats.kept_log_bytes + stats.kept_value_bytes;
            // Files that take new values do not count.
            assert!(bytes <= kept + (64 << 10), "{number}: {bytes} bytes, {is_quiet}");
            most = most.max(bytes);
        }
        assert!(most > kept / 2, "{most} bytes, {is_quiet}");
        let there = bytes_of(&disk, ".value") as u64;
        assert!(there < kept + (256 << 10), "{there} bytes, {is_quiet}");
        let gone = values_since(&db, 0).map(|told| told.len());
        assert!(matches!(gone, Err(Error::Gone { .. })), "{gone:?}");
        let last = db.snapshot().sequence();
        assert_eq!(values_since(&db, last - 3).expect("tells").len(), 3);
        db.close().expect("closes");
    }
}

#[test]
fn merges_move_the_values_of_the_oldest_files() {
    for (share, is_moved) in
        [(0.0, [false; 4]), (0.5, [true, true, false, false]), (1.0, [true; 4])]
    {
        let disk = Memory::new();
        let db = open_with(&disk, options().value_file_bytes(8 << 10).value_move_oldest(share));
        for number in 0..8 {
            db.put([number as u8], value(number, 5000)).expect("puts");
        }
        let before = value_files(&disk);
        assert_eq!(before.len(), 4, "{before:?}");
        db.compact().expect("merges");
        db.settle().expect("comes to rest");
        let after = value_files(&disk);
        assert_eq!([0, 1, 2, 3].map(|file| !after.contains(&before[file])), is_moved, "{share}");
        for number in 0..8 {
            let found = db.get([number as u8]).expect("reads").expect("it is there");
            assert!(*found == *value(number, 5000));
        }
        assert!(db.verify().expect("verifies").damage.is_empty());
    }
}

// A merge from range to range chose the oldest files anew in each: of the file that its last range
// had begun to move the rest was garbage, for which the next merge was due, without an end.
#[test]
fn a_store_whose_old_values_are_moved_comes_to_rest() {
    let key = |number: u64| format!("{number:0100}");
    for (share, file_bytes) in [(0.3, 16 << 10), (0.5, 64 << 10), (1.0, 1 << 20)] {
        let disk = Memory::new();
        let small = options().value_threshold(256).table_bytes(4096).partition_bytes(8192);
        let small = small.value_file_bytes(file_bytes).value_garbage_share(0.05);
        let db = open_with(&disk, small.value_move_oldest(share));
        for round in 0..2 {
            for number in (0..1000).step_by(1 + 2 * round) {
                db.put(key(number), value(number + round as u64, 300)).expect("puts");
            }
            db.flush().expect("flushes");
        }
        let rests = (0..3_000).any(|_| !db.step().expect("steps"));
        let merges = db.stats().expect("tells").merges;
        assert!(rests, "{share}: {merges} merges, and more are due");
        for number in 0..1000 {
            let found = db.get(key(number)).expect("reads").expect("it is there");
            assert!(found == value(number + u64::from(number % 3 == 0), 300), "{number}");
        }
    }
}

#[test]
fn snapshots_and_damage_outlive_the_moving_of_values() {
    [false, true]
        .into_iter()
        .for_each(snapshots_and_damage_outlive_the_moving_of_values_packed_or_not);
}

fn snapshots_and_damage_outlive_the_moving_of_values_packed_or_not(packs: bool) {
    let disk = Memory::new();
    let db = open_with(&disk, options().compression(packs));
    for number in 0..30 {
        db.put([number as u8], value(number, 3000)).expect("puts");
    }
    db.compact().expect("merges");
    let before = value_files(&disk);
    let snapshot = db.snapshot();
    for number in (0..30).filter(|number| number % 5 > 0) {
        db.put([number as u8], value(100 + number, 3000)).expect("puts");
    }
    db.compact().expect("merges");
    for number in 0..30 {
        let found = snapshot.get([number as u8]).expect("reads").expect("it is there");
        assert_eq!(found, value(number, 3000));
    }
    drop(snapshot);
    db.compact().expect("merges");
    db.compact().expect("merges");
    let after = value_files(&disk);
    assert!(before.iter().any(|file| !after.contains(file)), "{before:?}, then {after:?}");
    for number in 0..30 {
        let new = if number % 5 > 0 { 100 + number } else { number };
        let found = db.get([number as u8]).expect("reads").expect("it is there");
        assert_eq!(found, value(new, 3000));
    }
}

// Each long stream has a file of its own: a process may have fewer files open than a store has.
#[test]
fn files_that_take_no_more_values_are_closed() {
    let disk = Memory::new();
    let db = open_with(&disk, options().value_file_bytes(4096).max_open_files(Some(4)));
    let put = |number: u64| match number % 2 {
        0 => db.put_reader(number.to_be_bytes(), 520 << 10, Stream::new(number, 520 << 10)),
        _ => db.put(number.to_be_bytes(), value(number, 5000)),
    };
    (0..8).try_for_each(put).expect("puts");
    let before = disk.handles().open;
    (8..40).try_for_each(put).expect("puts");
    assert!(disk.handles().open <= before + 4, "{:?}, and before {before}", disk.handles());
    assert!(value_files(&disk).len() >= 20);
    db.checkpoint("copy").expect("copies");
    let found = db.iter().filter(|entry| entry.is_ok()).count();
    assert_eq!(found, 40);
}

// Files that take values are held for those that come: of a dropped key space, none come.
#[test]
fn a_dropped_key_space_leaves_no_value_files_though_somebody_has_a_handle() {
    let disk = Memory::new();
    let db = open(&disk);
    let apart =
        db.keyspace("apart", KeyspaceOptions::new().value_threshold(1 << 10)).expect("made");
    apart.put("a", value(1, 5000)).expect("puts");
    apart.put_reader("b", 600 << 10, Stream::new(2, 600 << 10)).expect("puts");
    assert_eq!(value_files(&disk).len(), 2);
    db.drop_keyspace("apart").expect("drops");
    assert!(matches!(apart.put("a", value(1, 5000)), Err(Error::KeyspaceDropped { .. })));
    assert_eq!(value_files(&disk), [""; 0]);
    drop((apart, db));
}

// Its values waited for a sync that never came, and nobody looked for them.
#[test]
fn a_refused_bulk_load_leaves_no_value_files() {
    let disk = Memory::new();
    let db = open(&disk);
    for _ in 0..3 {
        let refused = db.ingest(["b", "c", "a"].map(|key| (key, value(1, 40_000))));
        assert!(matches!(refused, Err(Error::Unsorted { .. })), "{refused:?}");
        assert_eq!(value_files(&disk), [""; 0]);
    }
    db.close().expect("closes");
    assert_eq!(value_files(&disk), [""; 0]);
}

const MOVED: std::ops::Range<u64> = 0..60;

/// A store with one run, whose every merge moves all values.
fn store_that_moves(disk: &Memory) -> Db {
    let options = options().block_bytes(256).block_cache_bytes(0).value_move_oldest(1.0);
    let db = open_with(disk, options);
    for number in MOVED {
        db.put(format!("{number:0100}"), value(number, 5000)).expect("puts");
    }
    db.compact().expect("merges");
    db
}

fn has_what_was_put(db: &Db) {
    for number in MOVED {
        let found = db.get(format!("{number:0100}")).expect("reads").expect("it is there");
        assert!(*found == *value(number, 5000), "{number}");
    }
}

// Each attempt moved them anew, and its files stayed until the store was opened again.
#[test]
fn a_merge_that_fails_again_and_again_leaves_none_of_the_values_that_it_moved() {
    let disk = Memory::new();
    let db = store_that_moves(&disk);
    let before = bytes_of(&disk, ".value");
    let names = disk.list(Path::new(DIR)).expect("lists");
    let table = names.iter().rfind(|name| name.ends_with(".table")).expect("there is one");
    let table = Path::new(DIR).join(table);
    let middle = disk.file(&table).expect("is there").len() as u64 / 2;
    disk.flip_bit(&table, middle, 3);
    for _ in 0..10 {
        let failed = db.compact();
        assert!(matches!(failed, Err(Error::Corrupt { .. })), "{failed:?}");
        assert_eq!(bytes_of(&disk, ".value"), before);
    }
    disk.flip_bit(&table, middle, 3);
    db.compact().expect("merges");
    has_what_was_put(&db);
}

#[test]
fn a_merge_that_fills_the_disk_leaves_none_of_the_values_that_it_moved() {
    for after in (0..).step_by(5) {
        let disk = Memory::new();
        let db = store_that_moves(&disk);
        let before = bytes_of(&disk, ".value");
        disk.fail_from(after, Fault::NoSpace);
        let merged = (0..3).all(|_| db.compact().is_ok());
        disk.mend();
        if merged {
            assert!(after > 20, "{after}");
            break;
        }
        // Those of an edit that the manifest may have stay until the next edit.
        let left = bytes_of(&disk, ".value");
        assert!(left <= 2 * before, "after {after}: {left} bytes, and {before} before");
        db.put("other", "short").expect("there is room again");
        db.compact().expect("merges");
        assert!(bytes_of(&disk, ".value") <= before, "after {after}");
        has_what_was_put(&db);
    }
}
