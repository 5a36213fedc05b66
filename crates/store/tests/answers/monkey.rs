//! The option `monkey`: one budget of filter memory for the tree, small runs first.
//! ```text
//! the same writes, T = 4: 63 flushes = 3 runs + 3 runs + the last      with and without monkey
//! gets of absent keys -> needless runs                                 several times fewer with it
//! filter memory       -> bits per key of the whole tree         no more with it, after every flush
//! ```
//! Invariant: answers are the same.

use std::path::Path;
use std::sync::Arc;

use trommel::Environment;
use trommel::filters::FilterKind;
use trommel::stats::Stats;
use trommel::storage::Memory;
use trommel::{Background, Db, GuardKind, Options, SyncPolicy};
use trommel_guards::kinds;

const FLUSHES: u64 = 63;
const FLUSH_KEYS: u64 = 200;
const BITS_PER_KEY: f64 = 8.0;
/// A filter is rounded up to a whole number of these.
const UNIT_BITS: f64 = 512.0;

fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn open(disk: &Memory, kind: &'static dyn FilterKind, monkey: bool) -> Db {
    let options = Options::new()
        .guard(GuardKind::Table(kind))
        .bits_per_key(BITS_PER_KEY)
        .monkey(monkey)
        .size_ratio(4)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped);
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with(Path::new("db"), options, environment).expect("opens")
}

/// Writes flushes number `from` to `to`; the filters keep within their budget all the time.
fn write(db: &Db, from: u64, to: u64) {
    for flush in from..to {
        for number in flush * FLUSH_KEYS..(flush + 1) * FLUSH_KEYS {
            db.put(key(number), [b'.'; 20]).expect("puts");
        }
        db.flush().expect("flushes");
        db.settle().expect("settles");
        let (entries, runs) = sizes(&db.stats().expect("open"));
        let most = entries as f64 * BITS_PER_KEY + runs as f64 * UNIT_BITS;
        let spent = db.stats().expect("open").guard.memory_bytes as f64 * 8.0;
        assert!(spent <= most, "after flush {flush}: {spent} bits of {most}");
    }
}

/// Entries and runs.
fn sizes(stats: &Stats) -> (u64, usize) {
    let runs: Vec<_> = stats.levels.iter().flat_map(|level| &level.runs).collect();
    (runs.iter().map(|run| run.entries).sum(), runs.len())
}

/// Runs that are searched needlessly for absent keys. Keys that are there are found.
fn needless(db: &Db) -> u64 {
    let keys = FLUSHES * FLUSH_KEYS;
    for number in 0..keys {
        assert!(db.get(key(number)).expect("gets").is_some(), "lost {number}");
    }
    let before = db.stats().expect("open").point.false_positives;
    for number in keys..keys + 20_000 {
        assert!(db.get(key(number)).expect("gets").is_none(), "found {number}");
    }
    db.stats().expect("open").point.false_positives - before
}

#[test]
fn small_runs_first_and_no_more_memory() {
    // Theory for Bloom: 0.36. Lines of 512 bits give small runs more than their share anyway.
    for (kind, bound) in [(kinds::BLOOM, 0.5), (kinds::BLOCKED_BLOOM, 0.6)] {
        let stores = [false, true].map(|monkey| {
            let db = open(&Memory::new(), kind, monkey);
            write(&db, 0, FLUSHES);
            assert_eq!(
                sizes(&db.stats().expect("open")),
                (FLUSHES * FLUSH_KEYS, 7),
                "{}",
                kind.name()
            );
            db
        });
        let [uniform, monkey] = stores.each_ref().map(needless);
        let bound = uniform as f64 * bound;
        assert!((monkey as f64) < bound, "{}: {monkey}, uniform {uniform}", kind.name());
    }
}

#[test]
fn a_store_may_begin_with_it_and_end() {
    let disk = Memory::new();
    for (session, monkey) in (0..).zip([false, true, false, true]) {
        let db = open(&disk, kinds::BLOOM, monkey);
        write(&db, session * 16, (session * 16 + 16).min(FLUSHES));
        db.close().expect("closes");
    }
    let db = open(&disk, kinds::BLOCKED_BLOOM, true);
    needless(&db);
}

/// Of one bit per key the inner runs need all: the last one is written without a filter, and found
/// all the same.
#[test]
fn a_run_that_would_get_hardly_any_bits_gets_no_filter() {
    let options = Options::new()
        .guard(GuardKind::Table(kinds::BINARY_FUSE))
        .bits_per_key(1.0)
        .monkey(true)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped);
    let environment = Environment::new().storage(Arc::new(Memory::new()));
    let db = Db::open_with(Path::new("db"), options, environment).expect("opens");
    for flush in 0..100u64 {
        for number in flush * 50..(flush + 1) * 50 {
            db.put(key(number), b"").expect("puts");
        }
        db.flush().expect("flushes");
        db.settle().expect("settles");
    }
    let stats = db.stats().expect("open");
    assert_eq!((sizes(&stats), stats.guard.memory_bytes), ((5000, 1), 0));
    assert!((0..5000).all(|number| db.get(key(number)).expect("gets").is_some()));
    assert_eq!(stats.guard.damaged, Vec::<String>::new());
}
