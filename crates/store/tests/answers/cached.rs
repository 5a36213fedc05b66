//! Gets that read nothing: each answer is a get's, or none is given.
//! ```text
//! cold cache -> None, or what memory tells    get -> the block is cached -> the get's answer
//! ```
//! Invariant: the disk is not touched, and what is not answered is not counted.

use std::path::Path;
use std::sync::Arc;

use trommel::merge_operators::Concat;
use trommel::storage::Memory;
use trommel::testing::Fault;
use trommel::{Background, Db, Environment, Error, Options, SyncPolicy};

const KEYS: u32 = 2_000;

fn options() -> Options {
    Options::new()
        .size_ratio(4)
        .block_bytes(512)
        .value_threshold(1000)
        .merge_operator(Concat::new(""))
        .sync(SyncPolicy::Never)
        .background(Background::Stepped)
}

fn open(disk: &Memory, options: Options) -> Db {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with(Path::new("db"), options, environment).expect("opens")
}

fn key(number: u32) -> [u8; 4] {
    (number * 2).to_be_bytes()
}

/// Several runs: values, deletions, operands, values apart; and a memtable.
fn fill(db: &Db) {
    for round in 0..5 {
        for number in (round..KEYS).step_by(3) {
            match number % 7 {
                0 => db.delete(key(number)).expect("deletes"),
                1 => db.merge(key(number), [b'x'; 9]).expect("merges"),
                2 => db.put(key(number), [round as u8; 1500]).expect("puts"),
                _ => db.put(key(number), [round as u8; 40]).expect("puts"),
            }
        }
        if round < 4 {
            db.flush().expect("flushes");
        }
    }
}

#[test]
fn what_memory_tells_is_what_a_get_says_and_nothing_is_read() {
    for guard in trommel_guards::all_guards() {
        let disk = Memory::new();
        let db = open(&disk, options().guard(guard));
        fill(&db);
        db.close().expect("closes");
        let db = open(&disk, options().guard(guard));
        let mut known = [0; 3];
        for asked in 0..2 * KEYS + 2 {
            let asked = asked.to_be_bytes();
            let before = (disk.operations(), db.stats().expect("open").point.queries);
            let cached = db.get_if_cached(asked).map(|cached| cached.expect("nothing is read"));
            let after = (disk.operations(), db.stats().expect("open").point.queries);
            assert_eq!(after, (before.0, before.1 + u64::from(cached.is_some())), "{guard}");
            let value = db.get(asked).expect("reads");
            assert!(cached.as_ref().is_none_or(|cached| *cached == value), "{guard}: {asked:?}");
            known[0] += u32::from(cached.is_some());
            // Its blocks are in the cache now.
            let again = db.get_if_cached(asked).map(|cached| cached.expect("nothing is read"));
            let is_elsewhere =
                value.as_ref().is_some_and(|it| it.len() > 1000 || it.contains(&b'x'));
            assert!(again.is_some() || is_elsewhere, "{guard}: {asked:?}");
            assert!(again.is_none_or(|cached| cached == value), "{guard}: {asked:?}");
            let of_snapshot = db.snapshot().get_if_cached(asked).map(|it| it.expect("is told"));
            assert_eq!(of_snapshot, db.get_if_cached(asked).map(|it| it.expect("is told")));
            known[1] += u32::from(value.is_none());
            known[2] += u32::from(is_elsewhere);
        }
        let [cached, without, elsewhere] = known;
        assert!(cached > 1000 && without > 2000 && elsewhere > 100, "{guard}: {known:?}");
    }
}

#[test]
fn a_broken_disk_and_a_closed_store_are_told() {
    let disk = Memory::new();
    let db = open(&disk, options().block_cache_bytes(0));
    fill(&db);
    db.flush().expect("flushes");
    disk.fail_from(0, Fault::Io);
    for number in 0..KEYS {
        assert!(db.get_if_cached(key(number)).is_none_or(|cached| cached.is_ok()), "{number}");
    }
    disk.mend();
    db.close().expect("closes");
    assert!(matches!(db.get_if_cached("a"), Some(Err(Error::Closed { .. }))));
}
