//! Merges of one table with what it meets in the next level: what they write, how many runs a query
//! looks at, and that every answer is right between any two steps of them.

use std::sync::Arc;

use trommel::Environment;
use trommel::options::Granularity;
use trommel::stats::{FilterRecovery, Stats};
use trommel::storage::Memory;
use trommel::{Background, Db, GuardKind, Options, Policy, SyncPolicy};
use trommel_guards::kinds;

const KEYS: u64 = 6000;
const FLUSH_KEYS: u64 = 50;

fn options(guard: GuardKind, policy: Policy) -> Options {
    Options::new()
        .guard(guard)
        .policy(policy)
        .size_ratio(4)
        .bits_per_key(20.0)
        .write_buffer_bytes(1 << 20)
        .block_bytes(512)
        .table_bytes(4096)
        .compression(false)
        .granularity(Granularity::Partial)
        .partition_bytes(16 << 10)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped)
}

fn open(disk: &Memory, options: &Options) -> Db {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with("db", options.clone(), environment).expect("opens")
}

/// Each number once, in no order.
fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn value(number: u64) -> [u8; 24] {
    std::array::from_fn(|place| number.to_be_bytes()[place % 8])
}

fn write(db: &Db, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| db.put(key(number), value(number)).expect("writes"));
    db.flush().expect("flushes");
}

fn load(db: &Db, keys: u64) {
    for first in (0..keys).step_by(FLUSH_KEYS as usize) {
        write(db, first..(first + FLUSH_KEYS).min(keys));
        db.settle().expect("settles");
    }
}

/// Every key is there, by get and by scans from both ends; others are not; nothing is damaged.
fn check(db: &Db, keys: u64) {
    let mut sorted: Vec<u64> = (0..keys).collect();
    sorted.sort_unstable_by_key(|&number| key(number));
    for &number in &sorted {
        let found = db.get(key(number)).expect("reads").expect("is there");
        assert_eq!(&found[..], value(number));
    }
    assert!((keys..keys + 500).all(|number| db.get(key(number)).expect("reads").is_none()));
    let scanned = db.range(..).map(|found| found.expect("reads").0);
    assert!(scanned.eq(sorted.iter().map(|&number| key(number).to_vec())), "forward");
    let scanned = db.range(..).rev().map(|found| found.expect("reads").0);
    assert!(scanned.eq(sorted.iter().rev().map(|&number| key(number).to_vec())), "backward");
    let report = db.verify().expect("verifies");
    assert!(report.damage.is_empty(), "{:?}", report.damage);
}

fn levelled() -> [Policy; 2] {
    [Policy::leveling(), Policy::rocksdb()]
}

fn runs(stats: &Stats) -> usize {
    stats.levels.iter().map(|level| level.runs.len()).sum()
}

fn write_amplification(stats: &Stats) -> f64 {
    (stats.bytes_flushed + stats.bytes_merged) as f64 / stats.bytes_flushed as f64
}

#[test]
fn every_answer_is_right_between_any_two_merges() {
    let guards = [
        GuardKind::Open,
        GuardKind::Table(kinds::BLOCKED_BLOOM),
        GuardKind::Table(kinds::SURF_REAL),
        GuardKind::Grf,
        GuardKind::GrfHuffman,
    ];
    let policies = Policy::NAMES.iter().filter_map(|name| Policy::named(name));
    for (guard, policy) in guards.into_iter().flat_map(|g| policies.clone().map(move |p| (g, p))) {
        let disk = Memory::new();
        let db = open(&disk, &options(guard, policy.clone()));
        load(&db, KEYS / 2);
        let mut keys = KEYS / 2;
        for _ in 0..3 {
            write(&db, keys..keys + FLUSH_KEYS);
            keys += FLUSH_KEYS;
            while db.step().expect("steps") {}
            check(&db, keys);
        }
        let stats = db.stats().expect("open");
        assert_eq!(stats.trimmed_tables, 0, "{guard}, {policy:?}");
        db.close().expect("closes");
        let db = open(&disk, &options(guard, policy.clone()));
        check(&db, keys);
        if guard == GuardKind::Grf {
            let recovery = db.stats().expect("open").filter_recovery;
            assert!(matches!(recovery, FilterRecovery::Image { .. }), "{policy:?}: {recovery:?}");
        }
        db.compact().expect("compacts");
        check(&db, keys);
        assert_eq!(runs(&db.stats().expect("open")), 1, "{guard}, {policy:?}");
    }
}

#[test]
fn a_crash_between_two_steps_loses_nothing() {
    for policy in levelled() {
        let mut disk = Memory::new();
        let mut db = open(&disk, &options(GuardKind::Grf, policy.clone()));
        load(&db, KEYS / 2);
        let mut keys = KEYS / 2;
        for steps in 0..12 {
            write(&db, keys..keys + FLUSH_KEYS);
            keys += FLUSH_KEYS;
            for _ in 0..steps % 5 {
                db.step().expect("steps");
            }
            disk = disk.crash_hard();
            drop(db);
            db = open(&disk, &options(GuardKind::Grf, policy.clone()));
            check(&db, keys);
        }
    }
}

#[test] // Runs' spans overlap at the edges, which costs a needless run there.
fn a_get_looks_at_few_needless_runs() {
    for policy in levelled() {
        let disk = Memory::new();
        let db = open(&disk, &options(GuardKind::Grf, policy.clone()));
        load(&db, 4 * KEYS);
        let stats = db.stats().expect("open");
        assert!(stats.levels.len() >= 4, "{:?}", stats.levels.len());
        let before = stats.point;
        for number in 0..4 * KEYS {
            assert!(db.get(key(number)).expect("reads").is_some());
        }
        let after = db.stats().expect("open").point;
        let gets = 4 * KEYS;
        assert_eq!(after.guard_probes - before.guard_probes, gets, "one probe for each get");
        let needless = after.false_positives - before.false_positives;
        let runs = 1.0 + needless as f64 / gets as f64;
        assert!(runs <= 1.25, "{policy:?}: {runs} runs for each get");
    }
}

#[test]
fn levels_stay_full_and_merges_small() {
    for policy in levelled() {
        let disk = Memory::new();
        let db = open(&disk, &options(GuardKind::Open, policy.clone()));
        let mut largest = 0;
        for first in (0..4 * KEYS).step_by(FLUSH_KEYS as usize) {
            write(&db, first..first + FLUSH_KEYS);
            let mut before = db.stats().expect("open").bytes_merged;
            while db.step().expect("steps") {
                let after = db.stats().expect("open").bytes_merged;
                largest = largest.max(after - before);
                before = after;
            }
        }
        let stats = db.stats().expect("open");
        let bytes: Vec<u64> =
            stats.levels.iter().map(|level| level.runs.iter().map(|run| run.bytes).sum()).collect();
        let all: u64 = bytes.iter().sum();
        assert!(largest * 5 < all, "{policy:?}: one merge wrote {largest} of {all} bytes");
        assert!(stats.levels.iter().skip(1).all(|level| level.runs.len() == 1), "{policy:?}");
        let writes = write_amplification(&stats);
        assert!((2.0..16.0).contains(&writes), "{policy:?}: {writes}");
    }
}

#[test]
fn keys_in_order_are_moved_not_rewritten() {
    let disk = Memory::new();
    let db = open(&disk, &options(GuardKind::Grf, Policy::rocksdb()));
    for first in (0..KEYS).step_by(FLUSH_KEYS as usize) {
        for number in first..first + FLUSH_KEYS {
            db.put(number.to_be_bytes(), value(number)).expect("writes");
        }
        db.flush().expect("flushes");
        db.settle().expect("settles");
    }
    let random = open(&Memory::new(), &options(GuardKind::Grf, Policy::rocksdb()));
    load(&random, KEYS);
    let (ordered, random) = (
        write_amplification(&db.stats().expect("open")),
        write_amplification(&random.stats().expect("open")),
    );
    assert!(ordered < 0.75 * random, "{ordered} in order, {random} at random");
    assert!((0..KEYS).all(|number| db.get(number.to_be_bytes()).expect("reads").is_some()));
}

#[test]
fn a_tree_goes_from_one_granularity_to_another() {
    for policy in levelled() {
        let disk = Memory::new();
        let mut keys = 0;
        for granularity in [
            Granularity::Partitioned,
            Granularity::Partial,
            Granularity::Full,
            Granularity::Partial,
            Granularity::Partitioned,
        ] {
            let options = options(GuardKind::Grf, policy.clone()).granularity(granularity);
            let db = open(&disk, &options);
            for _ in 0..25 {
                write(&db, keys..keys + FLUSH_KEYS);
                keys += FLUSH_KEYS;
                db.settle().expect("settles");
            }
            check(&db, keys);
            db.close().expect("closes");
        }
    }
}

#[test]
fn snapshots_deleted_ranges_and_scans_see_their_moment() {
    for guard in [GuardKind::Grf, GuardKind::Open] {
        let disk = Memory::new();
        let db = open(&disk, &options(guard, Policy::rocksdb()));
        load(&db, KEYS);
        let mut sorted: Vec<[u8; 8]> = (0..KEYS).map(key).collect();
        sorted.sort_unstable();
        let snapshot = db.snapshot();
        let (low, high) = (KEYS as usize / 8, KEYS as usize * 7 / 8);
        db.delete_range(sorted[low], sorted[high]).expect("deletes");
        let again: Vec<usize> = (low..high).step_by(37).collect();
        for &place in &again {
            db.put(sorted[place], b"again").expect("writes");
        }
        db.flush().expect("flushes");
        let left = |place: &usize| !(low..high).contains(place) || again.contains(place);
        let left: Vec<Vec<u8>> =
            (0..KEYS as usize).filter(left).map(|place| sorted[place].to_vec()).collect();
        let mut keys = KEYS;
        loop {
            let found: Vec<Vec<u8>> = db
                .range(..)
                .map(|found| found.expect("reads").0)
                .filter(|found| sorted.binary_search_by(|key| key[..].cmp(found)).is_ok())
                .collect();
            assert!(found == left, "{guard}");
            let back = db.range(..).rev().map(|found| found.expect("reads").0);
            let back =
                back.filter(|found| sorted.binary_search_by(|key| key[..].cmp(found)).is_ok());
            assert!(back.eq(left.iter().rev().cloned()), "{guard}");
            let then = snapshot.range(..).map(|found| found.expect("reads").0);
            assert!(then.eq(sorted.iter().map(|key| key.to_vec())), "{guard}");
            if keys > KEYS + 40 * FLUSH_KEYS {
                break;
            }
            write(&db, keys..keys + FLUSH_KEYS);
            keys += FLUSH_KEYS;
            let _ = (0..7).filter(|_| db.step().expect("steps")).count();
        }
        drop(snapshot);
        db.compact().expect("compacts");
        let found = db.range(..).filter(|found| {
            let found = &found.as_ref().expect("reads").0;
            sorted.binary_search_by(|key| key[..].cmp(found)).is_ok()
        });
        assert_eq!(found.count(), left.len(), "{guard}");
    }
}

// Level 0 was emptied first, whatever the others were like: level 1 grew, and every merge into it
// rewrote it.
#[test]
fn writers_that_do_not_wait_make_no_level_grow() {
    const FLUSH: u64 = 1000;
    let options = options(GuardKind::Open, Policy::rocksdb()).table_bytes(16 << 10);
    let db = open(&Memory::new(), &options);
    let mut level_0_most = 0;
    for first in (0..160 * FLUSH).step_by(FLUSH as usize) {
        write(&db, first..first + FLUSH);
        // A step merges four flushes: too few steps.
        let _ = (0..3).filter(|_| db.step().expect("steps")).count();
        let stats = db.stats().expect("open");
        if stats.levels.len() > 2 {
            let entries = |level: usize| -> u64 {
                stats.levels[level].runs.iter().map(|run| run.entries).sum()
            };
            level_0_most = level_0_most.max(entries(0));
            // Twelve flushes are its share, and four come at once.
            assert!(entries(1) <= 16 * FLUSH, "{} entries in level 1", entries(1));
        }
    }
    assert!(level_0_most > 8 * FLUSH, "merges did not lag behind: {level_0_most}");
}
