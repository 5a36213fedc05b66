//! Many gets at once: each key's answer is that of a get, and each block is read once.
//! ```text
//! a tree of several runs, of short keys that share much, with deletions, deleted ranges,
//!     expiry; memtables above
//! batches of any length, keys twice, keys of nowhere
//!     -> answers, counters and errors of single gets
//! ```
//! Invariant: a batch sees one moment.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trommel::Environment;
use trommel::stats::QueryStats;
use trommel::storage::{Clock, Memory};
use trommel::testing::{Fault, ManualClock};
use trommel::{Background, Db, GuardKind, Options, Snapshot, SyncPolicy};
use trommel_guards::kinds;

type Key = Vec<u8>;

const CACHE_BYTES: usize = 1 << 20;

fn options(guard: GuardKind, block_cache_bytes: usize) -> Options {
    Options::new()
        .guard(guard)
        .size_ratio(4)
        .block_bytes(256)
        .table_bytes(4096)
        .partition_bytes(8192)
        .compression(false)
        .block_cache_bytes(block_cache_bytes)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped)
}

struct Store {
    disk: Memory,
    clock: Arc<ManualClock>,
    db: Db,
    snapshot: Snapshot,
}

fn open(disk: &Memory, clock: &Arc<ManualClock>, options: Options) -> Db {
    let (storage, clock) = (Arc::new(disk.clone()), Arc::clone(clock) as Arc<dyn Clock>);
    let environment = Environment::new().storage(storage).clock(clock);
    Db::open_with(Path::new("db"), options, environment).expect("opens")
}

/// SplitMix64: the same in every run.
fn spread(n: u64) -> u64 {
    let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Numbers, and beside each of them keys that begin as it does.
fn keys() -> Vec<Key> {
    let number = |n: u64| (n * n * 0x0101_0101).to_be_bytes().to_vec();
    let beside = |key: Key| [key.clone(), [&key[..], &[0]].concat(), key[..7].to_vec()];
    let keys: BTreeSet<Key> = (0..150).flat_map(|n| beside(number(n))).collect();
    keys.into_iter().collect()
}

/// Rounds of writes to a third of the keys each; some versions of one key fill several blocks.
fn store(guard: GuardKind, block_cache_bytes: usize) -> Store {
    let (disk, clock) = (Memory::new(), Arc::new(ManualClock::default()));
    let db = open(&disk, &clock, options(guard, block_cache_bytes));
    let keys = keys();
    let mut snapshot = db.snapshot();
    let mut held = Vec::new();
    for round in 0..11u64 {
        for number in 0..keys.len() as u64 / 3 {
            let drawn = spread(round * 1000 + number);
            let key = &keys[drawn as usize % keys.len()];
            let value = vec![round as u8; 60 + number as usize % 50];
            match drawn >> 32 & 7 {
                0 => db.delete(key).expect("deletes"),
                1 => db.put_ttl(key, &value, Duration::from_secs(drawn >> 40 & 3)).expect("puts"),
                _ => db.put(key, &value).expect("puts"),
            }
        }
        if round % 3 == 1 {
            let from = spread(round) as usize % (keys.len() - 9);
            db.delete_range(&keys[from], &keys[from + 8]).expect("deletes");
        }
        if round == 8 {
            for version in 0..20u8 {
                db.put(&keys[40], [version; 90]).expect("puts");
                held.push(db.snapshot());
            }
            snapshot = db.snapshot();
        }
        if round < 10 {
            db.flush().expect("flushes");
        }
        if round < 6 {
            db.settle().expect("settles");
        }
    }
    clock.advance(Duration::from_secs(2));
    Store { disk, clock, db, snapshot }
}

/// In no order, many of them twice.
fn batch(seed: u64, len: usize) -> Vec<Key> {
    let keys = keys();
    let key = |n: u64| match spread(seed + n) {
        drawn if drawn >> 40 & 7 == 0 => drawn.to_be_bytes().to_vec(),
        drawn => keys[drawn as usize % keys.len()].clone(),
    };
    (0..len as u64).map(key).collect()
}

type Plain = Result<Option<Vec<u8>>, String>;

fn plain(answer: trommel::Result<Option<trommel::Value>>) -> Plain {
    answer.map(|value| value.map(|value| value.to_vec())).map_err(|error| error.to_string())
}

fn one_by_one(db: &Db, keys: &[Key]) -> Vec<Plain> {
    keys.iter().map(|key| plain(db.get(key))).collect()
}

fn together(db: &Db, keys: &[Key]) -> Vec<Plain> {
    db.multi_get(keys).into_iter().map(plain).collect()
}

/// What both ask of the guard and of blocks.
fn costs_of(db: &Db, ask: impl FnOnce(&Db) -> Vec<Plain>) -> (Vec<Plain>, QueryStats) {
    let before = db.stats().expect("open").point;
    let answers = ask(db);
    (answers, db.stats().expect("open").point.since(&before))
}

/// All but what came from the disk.
fn asked(costs: &QueryStats) -> [u64; 5] {
    let runs = [costs.true_positives, costs.false_positives, costs.true_negatives];
    [costs.guard_probes, costs.blocks_read, runs[0], runs[1], runs[2]]
}

#[test]
fn a_batch_answers_and_counts_as_gets_do_under_every_guard() {
    for guard in trommel_guards::all_guards() {
        let store = store(guard, CACHE_BYTES);
        let runs: usize =
            store.db.stats().expect("open").levels.iter().map(|level| level.runs.len()).sum();
        assert!(runs >= 4, "{guard}: {runs} runs");
        for (seed, len) in [0, 1, 15, 16, 17, 128, 1100].into_iter().enumerate() {
            let keys = batch(seed as u64 * 10_000, len);
            let (expected, lone) = costs_of(&store.db, |db| one_by_one(db, &keys));
            let (found, many) = costs_of(&store.db, |db| together(db, &keys));
            assert_eq!(found, expected, "{guard}: {len} keys");
            assert_eq!((many.queries, many.reached_runs), (lone.queries, lone.reached_runs));
            // What was asked decides which sub-filters are in memory, and so what is asked next.
            if guard != GuardKind::Table(kinds::ELASTIC) {
                assert_eq!(asked(&many), asked(&lone), "{guard}: {len} keys");
            }
            let snapshot = |key: &Key| plain(store.snapshot.get(key));
            let expected: Vec<_> = keys.iter().map(snapshot).collect();
            let found: Vec<_> = store.snapshot.multi_get(&keys).into_iter().map(plain).collect();
            assert_eq!(found, expected, "{guard}: {len} keys of a snapshot");
        }
    }
}

#[test]
fn ranges_in_a_batch_answer_as_one_by_one_under_every_guard() {
    let keys = keys();
    let bound = |drawn: u64, key: &Key| match drawn & 3 {
        0 => Bound::Excluded(key.clone()),
        1 if drawn >> 20 & 3 == 0 => Bound::Unbounded,
        _ => Bound::Included(key.clone()),
    };
    // From one key to a near one, to itself, or upside down; points too.
    let range = |n: u64| {
        let drawn = spread(n);
        let from = drawn as usize % (keys.len() - 4);
        let to = from + (drawn >> 33) as usize % 5;
        let (from, to) = if drawn >> 50 & 15 == 0 { (to, from) } else { (from, to) };
        (bound(drawn >> 3, &keys[from]), bound(drawn >> 9, &keys[to]))
    };
    for guard in trommel_guards::all_guards() {
        let store = store(guard, 0);
        let mut said_no = 0;
        for len in [0, 1, 7, 8, 9, 300] {
            let ranges: Vec<(Bound<Key>, Bound<Key>)> = (0..len).map(range).collect();
            let alone =
                |range: &(Bound<Key>, Bound<Key>)| store.db.may_contain_range(range.clone());
            let expected: Vec<bool> =
                ranges.iter().map(|range| alone(range).expect("asks")).collect();
            let found = store.db.multi_may_contain(ranges.clone()).expect("asks");
            assert_eq!(found, expected, "{guard}: {len} ranges");
            said_no += found.iter().filter(|maybe| !**maybe).count();
        }
        assert!(said_no > 10, "{guard}: {said_no} empty ranges were told");
        assert_eq!(
            store.db.stats().expect("open").point,
            QueryStats::default(),
            "no block was read"
        );
    }
}

#[test]
fn a_block_that_several_keys_miss_is_read_once() {
    for guard in [GuardKind::Open, GuardKind::Grf] {
        let Store { disk, clock, db, snapshot } = store(guard, CACHE_BYTES);
        drop((snapshot, db));
        let db = open(&disk, &clock, options(guard, CACHE_BYTES));
        db.compact().expect("compacts");
        drop(db);
        // Nothing is cached, whatever the size of the cache; without one, all are read again by the
        // next batch.
        for (cache, second_time) in [(CACHE_BYTES, 0), (0, 1)] {
            let db = open(&disk, &clock, options(guard, cache));
            let keys = keys();
            let reading = disk.operations();
            let (first, cold) = costs_of(&db, |db| together(db, &keys));
            let reads = disk.operations() - reading;
            assert!(cold.blocks_read > 2 * cold.disk_reads, "{guard}: {cold:?}");
            assert_eq!(reads, cold.disk_reads, "{guard}: a block was read again");
            let (second, again) = costs_of(&db, |db| together(db, &keys));
            assert_eq!(second, first);
            assert_eq!(again.disk_reads, second_time * cold.disk_reads, "{guard}, cache {cache}");
        }
    }
}

#[test]
fn a_damaged_block_is_an_error_for_its_keys_alone() {
    for guard in [GuardKind::Open, GuardKind::Grf, GuardKind::Table(kinds::BLOCKED_BLOOM)] {
        let Store { disk, clock, db, snapshot } = store(guard, 0);
        let tables = disk.list_of("db", ".table");
        let keys = keys();
        let sound = one_by_one(&db, &keys);
        let mut errors = 0;
        for (place, table) in tables.iter().enumerate() {
            disk.flip_bit(table, 40 + 300 * (place as u64 % 3), 3);
            let expected = one_by_one(&db, &keys);
            assert_eq!(together(&db, &keys), expected, "{guard}");
            errors += expected.iter().filter(|answer| answer.is_err()).count();
            assert!(expected.iter().zip(&sound).any(|(now, before)| now == before && now.is_ok()));
        }
        assert!(errors > 0, "{guard}: no damage was met");
        drop((snapshot, db, clock));
    }
}

#[test]
fn a_disk_that_fails_once_costs_no_answer_and_one_that_stays_broken_all_it_is_asked_for() {
    for guard in [GuardKind::Open, GuardKind::Grf, GuardKind::Table(kinds::ELASTIC)] {
        let store = store(guard, 0);
        let keys = batch(77, 200);
        let sound = one_by_one(&store.db, &keys);
        for operations in [0, 1, 5, 20] {
            store.disk.fail_at(operations, Fault::Io);
            let found = together(&store.db, &keys);
            store.disk.mend();
            assert!(found == sound, "{guard}: {operations}: what has failed is tried again");
            store.disk.fail_from(operations, Fault::Io);
            let found = together(&store.db, &keys);
            store.disk.mend();
            let failed = found.iter().filter(|answer| answer.is_err()).count();
            assert!(failed > 0, "{guard}: {operations}");
            let right = |(found, sound): (&Plain, &Plain)| found.is_err() || found == sound;
            assert!(found.iter().zip(&sound).all(right), "{guard}: a wrong answer");
        }
        assert_eq!(together(&store.db, &keys), sound, "{guard}");
    }
}

trait Listed {
    fn list_of(&self, dir: &str, ending: &str) -> Vec<String>;
}

impl Listed for Memory {
    fn list_of(&self, dir: &str, ending: &str) -> Vec<String> {
        let names = trommel::storage::Storage::list(self, Path::new(dir)).expect("lists");
        let path = |name: String| format!("{dir}/{name}");
        names.into_iter().filter(|name| name.ends_with(ending)).map(path).collect()
    }
}
