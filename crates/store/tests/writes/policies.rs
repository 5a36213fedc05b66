//! Trees of every policy: one question for each query, one run for each entry that matches, and the
//! way from one to another.
//! ```text
//! flushes of keys that no other flush has -> policy -> gets and scans: probes, runs searched
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use trommel::Environment;
use trommel::stats::{FilterRecovery, QueryStats};
use trommel::storage::Memory;
use trommel::{Background, Db, GuardKind, Options, Policy, SyncPolicy};
use trommel_guards::kinds;

fn options(policy: Policy, guard: GuardKind) -> Options {
    Options::new()
        .size_ratio(4)
        .policy(policy)
        .guard(guard)
        .bits_per_key(30.0)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped)
}

fn open(disk: &Memory, options: &Options) -> Db {
    let storage = Arc::new(disk.clone());
    let environment = Environment::new().storage(storage);
    Db::open_with(Path::new("db"), options.clone(), environment).expect("opens")
}

fn presets() -> impl Iterator<Item = (&'static str, Policy)> {
    let names = Policy::NAMES.into_iter().chain(["levelled-from:2"]);
    names.map(|name| (name, Policy::named(name).expect("a preset")))
}

/// Spread over all numbers; no two alike.
fn key(number: u64) -> [u8; 8] {
    (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

const FLUSH_KEYS: u64 = 50;

/// Flushes keys that are not there yet, and merges.
fn flush_new(db: &Db, flush: u64) {
    for number in flush * FLUSH_KEYS..(flush + 1) * FLUSH_KEYS {
        db.put(key(number), number.to_be_bytes()).expect("puts");
    }
    db.flush().expect("flushes");
    db.settle().expect("merges");
}

fn searched(stats: &QueryStats) -> u64 {
    stats.true_positives + stats.false_positives
}

#[test] // In deterministic trees a code names one run, and the guard is asked once.
fn every_preset_has_one_candidate_for_each_entry_and_one_probe_for_each_query() {
    // Chucky has a slot for each run: it would search all runs that found none.
    let chucky = GuardKind::Locator(kinds::CHUCKY);
    for guard in [GuardKind::Grf, GuardKind::GrfHuffman, chucky] {
        for (name, policy) in presets() {
            let db = open(&Memory::new(), &options(policy, guard));
            for flush in 0..101 {
                flush_new(&db, flush);
                if flush % 20 != 0 {
                    continue;
                }
                let (before, keys) = (db.stats().expect("open").point, (flush + 1) * FLUSH_KEYS);
                for number in 0..keys {
                    let found = db.get(key(number)).expect("gets").expect("is there");
                    assert_eq!(found[..], number.to_be_bytes());
                }
                let point = db.stats().expect("open").point.since(&before);
                assert_eq!(point.guard_probes, keys, "{guard}, {name}");
                assert_eq!(point.true_positives, keys);
                let needless = point.false_positives as f64 / keys as f64;
                assert!(needless <= 0.004, "{guard}, {name}, flush {flush}: {needless}");
            }
        }
    }
}

#[test]
fn ranges_ask_once_and_search_the_runs_of_their_keys() {
    for (name, policy) in presets() {
        let db = open(&Memory::new(), &options(policy, GuardKind::Grf));
        let flushes = 93;
        (0..flushes).for_each(|flush| flush_new(&db, flush));
        for key in (0..flushes * FLUSH_KEYS).map(key) {
            let found: Vec<_> = db.range(key..=key).map(|e| e.expect("reads").0).collect();
            assert_eq!(found, [key]);
        }
        let stats = db.stats().expect("open").closed_seek;
        assert_eq!(stats.guard_probes, stats.queries, "{name}");
        let candidates = searched(&stats) as f64 / stats.queries as f64;
        assert!((1.0..1.05).contains(&candidates), "{name}: {candidates} runs for each range");
    }
}

// What is merged into the last level beside its oldest run must still hide what that run has.
#[test]
fn deletions_outlive_merges_that_leave_the_oldest_run() {
    for last_runs in [2, 3, u32::MAX] {
        let policy = Policy::tiering().last_runs(last_runs);
        let db = open(&Memory::new(), &options(policy, GuardKind::Grf));
        for flush in 0..70 {
            flush_new(&db, flush);
            if flush == 17 {
                (0..FLUSH_KEYS).for_each(|number| db.delete(key(number)).expect("deletes"));
            }
            let deleted = (0..FLUSH_KEYS).filter(|&n| db.get(key(n)).expect("gets").is_none());
            let expected = if flush < 17 { 0 } else { FLUSH_KEYS };
            assert_eq!(deleted.count() as u64, expected, "{last_runs} runs, flush {flush}");
        }
        let entries = |db: &Db| -> u64 {
            let levels = db.stats().expect("open").levels;
            levels.iter().flat_map(|level| &level.runs).map(|run| run.entries).sum()
        };
        db.compact().expect("compacts");
        assert_eq!(entries(&db), 69 * FLUSH_KEYS, "deletions go when all is merged");
    }
}

fn assert_in_shape(db: &Db, case: &str) {
    for level in &db.stats().expect("open").levels {
        let runs = level.runs.len() as u64;
        // Where flushes join runs, none waits for long; else as many wait as units are missing.
        assert!(runs <= level.runs_max, "{case}: {runs} runs in level {}", level.level);
    }
}

// Policy, ratio and guard change at an opening; merges move the tree there, answers stay
// right.
#[test]
fn a_store_moves_from_any_policy_to_any_other() {
    let others =
        [Policy::leveling().ratios(vec![2, 3]).last_runs(2), Policy::rocksdb().delay_merges(true)];
    let policies: Vec<_> = presets().map(|(_, policy)| policy).chain(others).collect();
    let (disk, mut model, mut write) = (Memory::new(), BTreeMap::new(), 0u64);
    for turn in 0..policies.len() * policies.len() {
        // Each policy after each other one.
        let (step, from) = (turn / policies.len(), turn % policies.len());
        let policy = policies[(from * (step + 1)) % policies.len()].clone();
        let guard = [GuardKind::Grf, GuardKind::Locator(kinds::CHUCKY), GuardKind::Open][turn % 3];
        let size_ratio = 2 + (turn as u32 * 7) % 5;
        let case = format!("turn {turn}: {} of {size_ratio}", policy.name());
        let db = open(&disk, &options(policy, guard).size_ratio(size_ratio));
        db.settle().expect("merges");
        for _ in 0..12 {
            for _ in 0..20 {
                write += 1;
                let key = key(write * write % 701);
                if write % 7 == 0 {
                    db.delete(key).expect("deletes");
                    model.remove(&key);
                } else {
                    db.put(key, write.to_be_bytes()).expect("puts");
                    model.insert(key, write.to_be_bytes());
                }
            }
            db.flush().expect("flushes");
            db.settle().expect("merges");
        }
        let found: Vec<_> = db.range(..).map(|entry| entry.expect("reads")).collect();
        assert!(
            found
                .iter()
                .map(|(k, v)| (&k[..], &v[..]))
                .eq(model.iter().map(|(k, v)| (&k[..], &v[..]))),
            "{case}"
        );
        for number in 0..701 {
            let value = db.get(key(number)).expect("gets");
            assert_eq!(value.as_deref(), model.get(&key(number)).map(|v| &v[..]), "{case}");
        }
        db.compact().expect("compacts");
        assert_in_shape(&db, &case);
        assert_eq!(db.verify().expect("verifies").damage, [""; 0], "{case}");
        db.close().expect("closes");
    }
}

// Of several runs of the last level, the filter's base has the oldest; the others' keys come from
// its image, too.
#[test]
fn filters_of_tiered_trees_come_from_their_images() {
    let (disk, options) = (Memory::new(), options(Policy::tiering(), GuardKind::Grf));
    for rounds in 1..6 {
        let db = open(&disk, &options);
        let recovery = db.stats().expect("open").filter_recovery;
        let came = matches!(recovery, FilterRecovery::Image { .. } | FilterRecovery::Nothing);
        assert!(came, "{recovery}");
        for flush in (rounds - 1) * 13..rounds * 13 {
            flush_new(&db, flush);
        }
        db.close().expect("closes");
    }
    let db = open(&disk, &options);
    let last = db.stats().expect("open").levels.pop().expect("a level");
    assert_eq!((last.level, last.runs.len(), last.runs_max), (3, 1, 3));
    for number in 0..5 * 13 * FLUSH_KEYS {
        assert!(db.get(key(number)).expect("gets").is_some());
    }
}

#[test] // Dynamic level sizes: the last level's number follows its entries, up and down.
fn levels_appear_and_go_with_the_data() {
    for (name, policy) in presets() {
        let db = open(&Memory::new(), &options(policy, GuardKind::Grf));
        (0..100).for_each(|flush| flush_new(&db, flush));
        let levels = db.stats().expect("open").levels.len();
        assert_eq!(levels, 4, "{name}: 100 flushes, 4 to a level");
        let (mut number, mut least) = (0, levels);
        for _ in 0..300 {
            for _ in 0..FLUSH_KEYS {
                db.delete(key(number % (97 * FLUSH_KEYS))).expect("deletes");
                number += 1;
            }
            db.flush().expect("flushes");
            db.settle().expect("merges");
            least = least.min(db.stats().expect("open").levels.len());
        }
        assert!(least < levels, "{name}");
        for number in 97 * FLUSH_KEYS..100 * FLUSH_KEYS {
            assert!(db.get(key(number)).expect("gets").is_some(), "{name}");
        }
    }
}
