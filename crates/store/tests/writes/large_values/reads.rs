//! Large values are read as any others are: by gets, many at once, and scans from both ends.
//! ```text
//! reference   in memory | in the log | in a table | merged     -->  its value, with its own key
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trommel::storage::Memory;
use trommel::{Db, Environment, SyncPolicy};

use super::{DIR, bytes_of, mixed, open, open_with, options, value, value_files};

const LENGTHS: [usize; 6] = [1 << 10, 5000, 64 << 10, (64 << 10) + 1, 300_000, 3 << 20];

#[test]
fn values_of_any_length_are_read_from_memory_tables_and_logs() {
    [false, true]
        .into_iter()
        .for_each(values_of_any_length_are_read_from_memory_tables_and_logs_packed_or_not);
}

fn values_of_any_length_are_read_from_memory_tables_and_logs_packed_or_not(packs: bool) {
    let disk = Memory::new();
    let db = open_with(&disk, options().compression(packs));
    let check = |db: &Db, what: &str| {
        for (number, len) in LENGTHS.into_iter().enumerate() {
            let found = db.get([number as u8]).expect("reads").expect(what);
            assert!(*found == *value(number as u64, len), "{what}: {len} bytes");
        }
        let all: Vec<_> = db.iter().map(|entry| entry.expect("reads").1.len()).collect();
        assert_eq!(all, LENGTHS, "{what}");
        let back: Vec<_> = db.iter().rev().map(|entry| entry.expect("reads").1.len()).collect();
        assert_eq!(back, LENGTHS.iter().rev().copied().collect::<Vec<_>>(), "{what}");
        let keys: Vec<[u8; 1]> = (0..LENGTHS.len()).map(|number| [number as u8]).collect();
        let many = db.multi_get(&keys);
        let lengths = many.into_iter().map(|it| it.expect("reads").expect(what).len());
        assert!(lengths.eq(LENGTHS), "{what}");
        assert!(db.verify().expect("verifies").damage.is_empty(), "{what}");
    };
    for (number, len) in LENGTHS.into_iter().enumerate() {
        db.put([number as u8], value(number as u64, len)).expect("puts");
    }
    check(&db, "in memory");
    let logged = bytes_of(&disk, ".wal");
    assert!(logged < 1000, "{logged} bytes of log");
    drop(db);
    let db = open_with(&disk, options().compression(packs));
    check(&db, "in the log");
    db.flush().expect("flushes");
    check(&db, "in a table");
    db.compact().expect("merges");
    check(&db, "merged");
    let tables = bytes_of(&disk, ".table");
    assert!(tables < 2000, "{tables} bytes of tables");
    drop(db);
    check(&open_with(&disk, options().compression(packs)), "opened");
}

/// Entries of a range, from both ends, while the range changes under the scan.
fn check_scan(db: &Db, all: &BTreeMap<u64, Vec<u8>>, numbers: std::ops::Range<u64>, turn: u64) {
    let bounds = numbers.start.to_be_bytes()..numbers.end.to_be_bytes();
    let mut expected: VecDeque<_> = all.range(numbers).collect();
    let mut scan = db.range(bounds);
    let mut step = turn;
    loop {
        step += 1;
        // From the front, mostly; now and then some are passed.
        let (found, wanted) = match mixed(step) % 7 {
            0..4 => (scan.next(), expected.pop_front()),
            4..6 => (scan.next_back(), expected.pop_back()),
            _ => {
                let to = expected.front().map_or(0, |(number, _)| **number + step % 5);
                expected.retain(|(number, _)| **number >= to);
                scan.seek(to.to_be_bytes());
                continue;
            }
        };
        if step.is_multiple_of(11) {
            db.step().expect("merges");
        }
        let found = found.map(|entry| entry.expect("reads"));
        assert_eq!(found.is_some(), wanted.is_some(), "turn {turn}, step {step}");
        let (Some((key, value)), Some((number, own))) = (found, wanted) else { return };
        assert_eq!(key, number.to_be_bytes(), "turn {turn}, step {step}");
        assert!(*value == **own, "turn {turn}, {number}");
    }
}

#[test]
fn scans_from_both_ends_come_to_values_wherever_they_are() {
    for packs in [false, true] {
        let disk = Memory::new();
        let with = options().compression(packs).sync(SyncPolicy::Never).block_bytes(512);
        let db = open_with(&disk, with.write_buffer_bytes(8 << 10));
        let mut all = BTreeMap::new();
        for turn in 0..600u64 {
            let key = mixed(turn) % 100;
            if mixed(turn + 7).is_multiple_of(5) {
                db.delete(key.to_be_bytes()).expect("deletes");
                all.remove(&key);
            } else {
                // Stretches of long values, of short ones, and of both.
                let is_long = key % 50 < 20 || key % 50 < 40 && turn.is_multiple_of(2);
                let own = value(turn, if is_long { 1500 } else { 20 });
                db.put(key.to_be_bytes(), &own).expect("puts");
                all.insert(key, own);
            }
            if turn.is_multiple_of(3) {
                let from = mixed(turn + 1) % 100;
                check_scan(&db, &all, from..from + mixed(turn + 2) % 60, turn);
            }
        }
    }
}

/// What a scan has found before it is asked for may have expired when it is.
#[test]
fn a_value_that_expires_during_a_scan_is_not_given() {
    let (disk, clock) = (Memory::new(), Arc::new(trommel::testing::ManualClock::default()));
    let environment = Environment::default().storage(Arc::new(disk)).clock(clock.clone());
    let db = Db::open_with(DIR, options(), environment).expect("opens");
    for number in 0..20u64 {
        let seconds = Duration::from_secs(if number % 4 == 3 { 5 } else { 50 });
        db.put_ttl(number.to_be_bytes(), value(number, 2000), seconds).expect("puts");
    }
    for back in [false, true] {
        db.flush().expect("flushes");
        let mut scan = db.iter();
        let mut next = || if back { scan.next_back() } else { scan.next() };
        let first: Vec<_> =
            (0..6).map(|_| next().expect("there are more").expect("reads")).collect();
        assert_eq!(first.len(), 6);
        clock.advance(Duration::from_secs(6));
        let rest = std::iter::from_fn(next).map(|entry| entry.expect("reads").0);
        let expired = rest.filter(|key| key[7] % 4 == 3).count();
        assert_eq!(expired, 0, "{back}");
        for number in (0..20u64).filter(|number| number % 4 == 3) {
            let seconds = Duration::from_secs(5);
            db.put_ttl(number.to_be_bytes(), value(number, 2000), seconds).expect("puts");
        }
    }
}

#[test]
fn a_scan_of_keys_alone_reads_no_value() {
    let disk = Memory::new();
    let db = open(&disk);
    for number in 0..20u8 {
        db.put([number], value(u64::from(number), 5000)).expect("puts");
    }
    db.flush().expect("flushes");
    let bytes_read = || db.stats().expect("tells").open_seek.bytes_read;
    let before = bytes_read();
    assert_eq!(db.iter().keys_only().count(), 20);
    assert!(bytes_read() - before < 5000);
    assert!(db.iter().keys_only().all(|entry| entry.expect("reads").1.is_empty()));
}

#[test]
fn whether_a_key_is_there_is_told_without_its_value() {
    let (disk, clock) = (Memory::new(), Arc::new(trommel::testing::ManualClock::default()));
    let environment = Environment::default().storage(Arc::new(disk.clone())).clock(clock.clone());
    let db = Db::open_with(DIR, options(), environment).expect("opens");
    db.put("stays", value(1, 5000)).expect("puts");
    db.put_ttl("expires", value(2, 5000), Duration::from_secs(9)).expect("puts");
    db.flush().expect("flushes");
    for name in value_files(&disk) {
        disk.flip_bit(Path::new(DIR).join(&name), 2000, 1);
    }
    let snapshot = db.snapshot();
    for is_there in [true, false] {
        assert!(db.contains_key("stays").expect("tells"));
        assert_eq!(db.contains_key("expires").expect("tells"), is_there);
        assert_eq!(snapshot.contains_key("expires").expect("tells"), is_there);
        assert!(!db.contains_key("missing").expect("tells"));
        clock.advance(Duration::from_secs(9));
    }
    let error = db.get("stays").expect_err("its bytes were changed");
    assert!(error.tells_of_damage(), "{error}");
}

// Entries that are found ahead have keys of their own, which are not those of the value in hand.
#[test]
fn a_scan_gives_each_value_with_its_own_key() {
    let disk = Memory::new();
    let db = open(&disk);
    for number in 0..40 {
        let len = if number % 4 == 3 { 10 } else { 2000 };
        db.put([number as u8], value(number, len)).expect("puts");
    }
    for place in ["in memory", "in a table"] {
        let check = |entry: trommel::Result<trommel::KeyValue>| {
            let (key, found) = entry.expect("reads");
            let number = u64::from(key[0]);
            let len = if number % 4 == 3 { 10 } else { 2000 };
            assert!(*found == *value(number, len), "{place}: another value than that of {number}");
            number
        };
        assert!(db.iter().map(check).eq(0..40), "{place}");
        assert!(db.iter().rev().map(check).eq((0..40).rev()), "{place}, backward");
        db.flush().expect("flushes");
    }
}

#[test]
fn values_that_are_read_again_come_from_the_cache() {
    let disk = Memory::new();
    let db = open_with(&disk, options().block_cache_bytes(256 << 10));
    for number in 0..20u64 {
        db.put(number.to_be_bytes(), value(number, 8000)).expect("puts");
    }
    db.flush().expect("flushes");
    let reads = |db: &Db| db.stats().expect("tells").point.value_reads;
    let get_all = |db: &Db, from: u64| {
        for number in 0..20u64 {
            let found = db.get(number.to_be_bytes()).expect("reads").expect("it was put");
            assert!(*found == *value(from + number, 8000), "value {number}");
        }
    };
    get_all(&db, 0);
    let before = reads(&db);
    get_all(&db, 0);
    assert_eq!(reads(&db), before, "all are in the cache");
    assert!(db.stats().expect("tells").cache_bytes > 20 * 8000);
    // Others take their place, in the same files and in new ones.
    for number in 0..20u64 {
        db.put(number.to_be_bytes(), value(100 + number, 8000)).expect("puts");
    }
    get_all(&db, 100);
    db.compact().expect("merges");
    db.settle().expect("settles");
    get_all(&db, 100);
    assert!(db.stats().expect("tells").cache_bytes <= 256 << 10);
}

/// Values apart were counted as blocks from the disk, and so more of these than were asked for.
#[test]
fn a_value_apart_that_is_read_is_no_block() {
    let db = open_with(&Memory::new(), options().block_cache_bytes(0));
    db.put("a", value(1, 8000)).expect("puts");
    for flushed in [false, true] {
        let before = db.stats().expect("tells").point;
        assert!(db.get("a").expect("reads").is_some());
        let point = db.stats().expect("tells").point.since(&before);
        assert_eq!(point.value_reads, 1);
        assert_eq!((point.blocks_read, point.cache_hits()), (u64::from(flushed), 0));
        assert!((8000..8200).contains(&point.bytes_read) || flushed, "{point:?}");
        db.flush().expect("flushes");
    }
}

#[test]
fn a_scan_gives_each_value_apart_with_its_own_key() {
    let disk = Memory::new();
    let db = open(&disk);
    let is_right = |number: u64, (key, found): (Vec<u8>, trommel::Value)| {
        assert_eq!(key, number.to_be_bytes(), "key {number}");
        assert!(*found == *value(number, 2000 + number as usize), "value {number}");
    };
    for number in 0..60u64 {
        db.put(number.to_be_bytes(), value(number, 2000 + number as usize)).expect("puts");
    }
    let check = |db: &Db| {
        let mut all = db.iter();
        (0..60)
            .for_each(|number| is_right(number, all.next().expect("it is there").expect("reads")));
        assert!(all.next().is_none());
        let mut back = db.iter().rev();
        let mut turned = db.iter();
        for number in 0..60 {
            is_right(59 - number, back.next().expect("it is there").expect("reads"));
            let (turn, end) = (number / 2, number % 2 == 1);
            let next = if end { turned.next_back() } else { turned.next() };
            let expected = if end { 59 - turn } else { turn };
            is_right(expected, next.expect("it is there").expect("reads"));
        }
        assert!(back.next().is_none() && turned.next().is_none());
    };
    check(&db);
    db.flush().expect("flushes");
    // A merge between any two steps has the scan begin anew behind what it gave.
    for stop in 0..5 {
        let mut scan = db.iter();
        let mut give = |numbers: std::ops::Range<u64>| {
            for number in numbers {
                is_right(number, scan.next().expect("it is there").expect("reads"));
            }
        };
        give(0..stop);
        db.compact().expect("merges");
        give(stop..60);
    }
    check(&db);
}

/// Values apart are read last and in the order of their places; each comes to its own key.
#[test]
fn many_keys_at_once_have_their_own_values_in_any_order() {
    let (disk, clock) = (Memory::new(), Arc::new(trommel::testing::ManualClock::default()));
    let environment = Environment::default().storage(Arc::new(disk)).clock(clock.clone());
    let db = Db::open_with(DIR, options(), environment).expect("opens");
    let put = |number: u64| {
        let key = number.to_be_bytes();
        match number % 4 {
            0 => db.put(key, b"short"),
            1 => db.put(key, value(number, 2000 + number as usize)),
            2 => db.put_ttl(key, value(number, 3000), Duration::from_secs(1)),
            _ => db.put_ttl(key, value(number, 4000), Duration::from_secs(100_000)),
        }
        .expect("puts");
    };
    // Some in tables, the last ones in memory, in an order that is not that of their keys.
    let numbers = || (0..600).map(|number: u64| number * 7 % 600);
    numbers().for_each(put);
    db.flush().expect("flushes");
    numbers().filter(|number| number % 5 == 0).for_each(put);
    clock.advance(Duration::from_secs(10));
    let asked: Vec<u64> = (0..900).map(|number: u64| number * 11 % 700).collect();
    let keys: Vec<_> = asked.iter().map(|number| number.to_be_bytes()).collect();
    let found = db.multi_get(&keys).into_iter().map(|found| found.expect("reads"));
    for (number, found) in asked.into_iter().zip(found) {
        let expected = match number % 4 {
            _ if number >= 600 => None,
            0 => Some(b"short".to_vec()),
            1 => Some(value(number, 2000 + number as usize)),
            2 => None,
            _ => Some(value(number, 4000)),
        };
        assert!(found.as_deref() == expected.as_deref(), "{number}");
    }
}
