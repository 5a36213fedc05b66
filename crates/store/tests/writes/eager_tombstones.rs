//! Deletions that hide nothing go in the next merge, and no other ones do.
//! ```text
//! level 0   [k deleted] [k = 1]  merge -> nothing      level 1   [k = 0]  the deletion stays
//! ```
//! Invariant: every reader sees what it would see if deletions stayed.

use std::collections::BTreeMap;
use std::sync::Arc;

use trommel::Environment;
use trommel::storage::Memory;
use trommel::{Background, Db, GuardKind, Options, Policy, SyncPolicy};

/// Guards that are asked: a global filter, and filters of tables.
const ASKED: [GuardKind; 4] =
    [GuardKind::Grf, GuardKind::GrfHuffman, GuardKind::BLOOM, GuardKind::BLOCKED_BLOOM];

fn open(disk: &Memory, guard: GuardKind, eager_tombstones: bool) -> Db {
    let options = Options::new()
        .guard(guard)
        .eager_tombstones(eager_tombstones)
        .size_ratio(3)
        .policy(Policy::lazy_leveling())
        .bits_per_key(20.0)
        .write_buffer_bytes(1 << 20)
        .block_bytes(256)
        .sync(SyncPolicy::Always)
        .background(Background::Stepped);
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with("db", options, environment).expect("opens")
}

fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(2_654_435_761).to_be_bytes()
}

fn flush(db: &Db) {
    db.flush().expect("flushes");
    db.settle().expect("settles");
}

fn put(db: &Db, numbers: std::ops::Range<u32>) {
    numbers.for_each(|number| db.put(key(number), number.to_be_bytes()).expect("puts"));
    flush(db);
}

fn delete(db: &Db, numbers: std::ops::Range<u32>) {
    numbers.for_each(|number| db.delete(key(number)).expect("deletes"));
    flush(db);
}

fn entries(db: &Db) -> u64 {
    db.stats().expect("open").entries()
}

/// Three flushes are the last level; the next three become a run of level 1.
fn with_a_last_level(guard: GuardKind, eager: bool) -> (Memory, Db) {
    let disk = Memory::new();
    let db = open(&disk, guard, eager);
    (0..9).for_each(|flush| put(&db, 1000 + 100 * flush..1100 + 100 * flush));
    assert_eq!(db.stats().expect("open").run_count(), 1, "{guard}: the last level alone");
    (disk, db)
}

#[test]
fn a_deletion_that_hides_nothing_goes_with_what_it_hides() {
    for guard in ASKED {
        let left = |eager| {
            let (_, db) = with_a_last_level(guard, eager);
            let before = entries(&db);
            put(&db, 0..300);
            delete(&db, 0..300);
            put(&db, 300..310);
            assert!((0..300).all(|number| db.get(key(number)).expect("reads").is_none()));
            entries(&db) - before
        };
        assert_eq!(left(false), 310, "{guard}: deletions stay above the last level");
        // A filter of twenty bits errs on few of three hundred.
        assert!((10..30).contains(&left(true)), "{guard}: {}", left(true));
    }
}

#[test]
fn a_deletion_of_what_is_below_stays() {
    for guard in ASKED {
        let (disk, db) = with_a_last_level(guard, true);
        let before = entries(&db);
        delete(&db, 1000..1200);
        put(&db, 0..10);
        put(&db, 10..20);
        assert_eq!(entries(&db) - before, 220, "{guard}");
        drop(db);
        let db = open(&disk, guard, true);
        assert!((1000..1200).all(|number| db.get(key(number)).expect("reads").is_none()));
        assert!((1200..1900).all(|number| db.get(key(number)).expect("reads").is_some()));
    }
}

#[test]
fn what_a_snapshot_sees_stays() {
    for guard in ASKED {
        let (_, db) = with_a_last_level(guard, true);
        put(&db, 0..100);
        let snapshot = db.snapshot();
        delete(&db, 0..100);
        put(&db, 300..310);
        for number in 0..100 {
            assert!(snapshot.get(key(number)).expect("reads").is_some(), "{guard}: {number}");
            assert!(db.get(key(number)).expect("reads").is_none(), "{guard}: {number}");
        }
    }
}

#[test]
fn a_run_of_nothing_but_deletions_of_nothing_leaves_no_run() {
    for guard in ASKED {
        let (disk, db) = with_a_last_level(guard, true);
        (0..3).for_each(|_| delete(&db, 0..5));
        let left = db.stats().expect("open").run_count();
        assert!(left <= 2, "{guard}: {left} runs");
        put(&db, 0..5);
        db.delete_range(key(0), [0xff; 5]).expect("deletes");
        (0..9).for_each(|turn| put(&db, 10 * turn..10 * turn + 5));
        drop(db);
        let db = open(&disk, guard, true);
        let found: BTreeMap<Vec<u8>, u32> = db
            .range(..)
            .map(|entry| entry.expect("reads"))
            .map(|(key, value)| (key.to_vec(), u32::from_be_bytes(value[..].try_into().unwrap())))
            .collect();
        let expected = (0..9).flat_map(|turn| 10 * turn..10 * turn + 5);
        let expected: BTreeMap<Vec<u8>, u32> =
            expected.map(|number| (key(number).to_vec(), number)).collect();
        assert_eq!(found, expected, "{guard}");
    }
}
