//! Ranges as people write them: every form of bounds, prefixes, ends, and scans that skip. A map
//! says what is right. Batches that are read before they are written are in `indexed_batch.rs`.

mod indexed_batch;

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};
use std::path::Path;
use std::sync::Arc;

use trommel::Environment;
use trommel::storage::Memory;
use trommel::{
    Answer, Background, Db, GuardKind, KeyBounds, KeyValue, Options, Scan, Snapshot, SyncPolicy,
};

type Key = Vec<u8>;
type Map = BTreeMap<Key, Vec<u8>>;

fn open(guard: GuardKind) -> Db {
    let options = Options::new()
        .guard(guard)
        .block_bytes(256)
        .size_ratio(4)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped);
    let environment = Environment::new().storage(Arc::new(Memory::new()));
    Db::open_with(Path::new("db"), options, environment).expect("opens")
}

/// SplitMix64: the same in every run.
fn spread(n: u64) -> u64 {
    let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Keys of up to five of four bytes: prefixes and neighbours of each other.
fn crowded(number: u64) -> Key {
    let random = spread(number);
    let len = random % 6;
    (0..len).map(|at| [0, b'a', 0xfe, 0xff][(random >> (8 + 2 * at)) as usize % 4]).collect()
}

/// A store in several runs and in memory, with deletions, and what is in it.
fn filled(guard: GuardKind) -> (Db, Map) {
    let (db, mut map) = (open(guard), Map::new());
    for number in 0..900u64 {
        let key = crowded(number);
        if number % 7 == 3 {
            db.delete(&key).expect("deletes");
            map.remove(&key);
        } else {
            db.put(&key, number.to_le_bytes()).expect("puts");
            map.insert(key, number.to_le_bytes().to_vec());
        }
        if number % 200 == 199 {
            db.flush().expect("flushes");
        }
    }
    (db, map)
}

fn guards() -> [GuardKind; 3] {
    [GuardKind::Grf, GuardKind::Open, "blocked-bloom".parse().expect("a guard")]
}

fn entries(scan: impl Iterator<Item = trommel::Result<KeyValue>>) -> Vec<(Key, Vec<u8>)> {
    scan.map(|entry| entry.map(|(key, value)| (key, value.to_vec())).expect("reads")).collect()
}

fn owned(entry: Option<KeyValue>) -> Option<(Key, Vec<u8>)> {
    entry.map(|(key, value)| (key, value.to_vec()))
}

#[test]
fn all_forms_of_bounds_need_no_types() {
    let db = open(GuardKind::Grf);
    for key in ["a", "b", "c", "d"] {
        db.put(key, key).expect("puts");
    }
    let keys = |scan: Scan| -> String {
        entries(scan).into_iter().map(|(key, _)| String::from_utf8(key).expect("text")).collect()
    };
    assert_eq!(keys(db.range(..)), "abcd");
    assert_eq!(keys(db.iter()), "abcd");
    assert_eq!(keys(db.range("b"..)), "bcd");
    assert_eq!(keys(db.range(.."c")), "ab");
    assert_eq!(keys(db.range(..="c")), "abc");
    assert_eq!(keys(db.range("b".."d")), "bc");
    assert_eq!(keys(db.range("b"..="d")), "bcd");
    assert_eq!(keys(db.range((Excluded("a"), Included("c")))), "bc");
    assert_eq!(keys(db.range(b"b".to_vec()..)), "bcd");
    assert_eq!(keys(db.range(KeyBounds::all())), "abcd");
    assert_eq!(keys(db.range(KeyBounds::prefix("b"))), "b");
    assert!(db.may_contain_range(..).expect("asks"));
    assert_eq!(db.estimate_count(..).expect("counts"), 4);
    assert_eq!(db.multi_may_contain(["a".."b", "x".."y"]).expect("asks"), [true, false]);
    let mut queue = db.queue(2);
    queue.submit_range(.., 9, 1);
    assert!(matches!(queue.wait().map(|a| a.answer), Some(Answer::Entries(Ok(e))) if e.len() == 4));
}

#[test]
fn prefixes_and_ends_are_those_of_a_map() {
    for guard in guards() {
        let (db, map) = filled(guard);
        let snapshot = db.snapshot();
        let first = map.first_key_value().map(|(key, value)| (key.clone(), value.clone()));
        let last = map.last_key_value().map(|(key, value)| (key.clone(), value.clone()));
        assert_eq!(owned(db.first_key_value().expect("reads")), first, "{guard}");
        assert_eq!(owned(db.last_key_value().expect("reads")), last, "{guard}");
        for number in 0..300 {
            let prefix = crowded(5000 + number);
            let expected: Vec<(Key, Vec<u8>)> = map
                .iter()
                .filter(|(key, _)| key.starts_with(&prefix))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            assert_eq!(entries(db.prefix(&prefix)), expected, "{guard}: {prefix:x?}");
            let backward: Vec<_> = entries(db.prefix(&prefix).rev()).into_iter().rev().collect();
            assert_eq!(backward, expected, "{guard}: {prefix:x?}");
            assert_eq!(entries(snapshot.prefix(&prefix)), expected, "{guard}: {prefix:x?}");
            let is_there = map.contains_key(&prefix);
            assert_eq!(db.contains_key(&prefix).expect("reads"), is_there, "{guard}");
            assert_eq!(snapshot.contains_key(&prefix).expect("reads"), is_there, "{guard}");
            let may = db.may_contain_range(KeyBounds::prefix(&prefix)).expect("asks");
            assert!(may || expected.is_empty(), "{guard}: {prefix:x?}");
        }
    }
    let db = open(GuardKind::Grf);
    assert!(db.first_key_value().expect("reads").is_none());
    assert!(db.last_key_value().expect("reads").is_none());
}

/// Steps from both ends and skips, beside those of a map's range.
fn assert_walk(db: &Db, map: &Map, seed: u64, guard: GuardKind) {
    let (mut low, mut high) = (crowded(seed), crowded(seed + 1));
    if low > high {
        std::mem::swap(&mut low, &mut high);
    }
    let mut scan = db.range(&low..&high);
    let mut left: Vec<(&Key, &Vec<u8>)> = map.range(low..high).collect();
    for step in 0..12 {
        let random = spread(seed * 100 + step);
        let key = crowded(random >> 8);
        let (found, expected) = match random % 4 {
            0 => {
                scan.seek(&key);
                left.retain(|(other, _)| **other >= key);
                continue;
            }
            1 => {
                scan.seek_back(&key);
                left.retain(|(other, _)| **other <= key);
                continue;
            }
            2 => (scan.next(), (!left.is_empty()).then(|| left.remove(0))),
            _ => (scan.next_back(), left.pop()),
        };
        let found = owned(found.transpose().expect("reads"));
        let expected = expected.map(|(key, value)| (key.clone(), value.clone()));
        assert_eq!(found, expected, "{guard}: seed {seed}, step {step}");
        if expected.is_none() {
            break;
        }
    }
}

#[test]
fn scans_that_skip_give_what_is_left() {
    for guard in guards() {
        let (db, map) = filled(guard);
        (0..600).for_each(|seed| assert_walk(&db, &map, 10_000 + 2 * seed, guard));
    }
}

/// Whatever has been written since, merged and flushed.
fn assert_as_it_was(snapshot: &Snapshot, map: &Map, guard: GuardKind) {
    let mut queue = snapshot.queue(4);
    for (tag, key) in (0..).map(|number| (number, crowded(number))).take(300) {
        queue.submit_get(&key, tag);
    }
    queue.submit_range(KeyBounds::all(), usize::MAX, u64::MAX);
    let mut answers = 0;
    while let Some(answered) = queue.wait() {
        answers += 1;
        match answered.answer {
            Answer::Value(value) => {
                let value = value.expect("reads").map(|value| value.to_vec());
                assert_eq!(value.as_ref(), map.get(&crowded(answered.tag)), "{guard}");
            }
            Answer::Entries(found) => {
                let found = entries(found.expect("reads").into_iter().map(Ok));
                let expected: Vec<_> =
                    map.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
                assert_eq!(found, expected, "{guard}");
            }
        }
    }
    assert_eq!(answers, 301);
    for number in 0..100 {
        let prefix = crowded(7000 + number);
        let bounds = KeyBounds::prefix(&prefix);
        let count = map.keys().filter(|key| key.starts_with(&prefix)).count() as u64;
        let counted = snapshot.approximate_count(&bounds).expect("counts");
        assert!(counted.most >= count, "{guard}: {prefix:x?} {counted:?} {count}");
        let may = snapshot.may_contain_range(&bounds).expect("asks");
        assert!(may || count == 0, "{guard}: {prefix:x?}");
        assert_eq!(snapshot.multi_may_contain([&bounds]).expect("asks"), [may]);
    }
}

#[test]
fn a_snapshot_answers_everything_as_of_its_moment() {
    for guard in guards() {
        let (db, map) = filled(guard);
        let snapshot = db.snapshot();
        for number in 0..900 {
            let key = crowded(20_000 + number);
            match number % 3 {
                0 => db.delete(&key).expect("deletes"),
                _ => db.put(&key, "newer").expect("puts"),
            }
            if number == 450 {
                assert_as_it_was(&snapshot, &map, guard);
                db.flush().expect("flushes");
            }
        }
        assert_as_it_was(&snapshot, &map, guard);
        db.compact().expect("merges");
        assert_as_it_was(&snapshot, &map, guard);
    }
}

/// What is newer than a snapshot is no proof that it has anything.
#[test]
fn a_snapshot_of_nothing_counts_nothing_for_sure() {
    let db = open(GuardKind::Grf);
    let snapshot = db.snapshot();
    db.put("key", "value").expect("puts");
    assert_eq!(snapshot.approximate_count(..).expect("counts").most, 0);
    db.flush().expect("flushes");
    assert_eq!(snapshot.approximate_count(..).expect("counts").least, 0);
    assert_eq!(db.approximate_count(..).expect("counts").least, 1);
    assert!(snapshot.first_key_value().expect("reads").is_none());
}
