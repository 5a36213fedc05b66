//! What is in memory is read without allocating, without touching the disk, and without asking what
//! time it is.
//! ```text
//! get         memtables, guard, fences, cached blocks -> a value
//!             no allocation, no call of storage or clock
//! seek, next  the first step opens cursors; from the second on       the same
//! ```
//! All input and output goes through the storage, all time through the clock, and nothing waits
//! here for a lock: so a get makes no system call. Invariant: everything was asked for once before
//! it counts.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use allocation_counter::measure;
use trommel::Environment;
use trommel::options::FilterTuning;
use trommel::storage::{Clock, Memory};
use trommel::{Background, Db, GuardKind, Options, SyncPolicy};
use trommel_guards::ElasticOptions;

/// Counts its callers.
#[derive(Default)]
struct CountingClock(AtomicU64);

impl Clock for CountingClock {
    fn now(&self) -> Duration {
        self.0.fetch_add(1, Ordering::Relaxed);
        Duration::ZERO
    }
}

struct Store {
    disk: Memory,
    clock: Arc<CountingClock>,
    db: Db,
    keys: Vec<Vec<u8>>,
    missing: Vec<Vec<u8>>,
}

/// SplitMix64: the same in every run.
fn spread(n: u64) -> u64 {
    let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Several runs of several blocks each; some keys are in memory, and some in a deleted range.
fn store(guard: GuardKind) -> Store {
    let (disk, clock) = (Memory::new(), Arc::new(CountingClock::default()));
    let options = Options::new()
        .guard(guard)
        .size_ratio(5)
        .block_bytes(512)
        .block_cache_bytes(8 << 20)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped)
        // A get that is counted may read a sub-filter.
        .filter(
            FilterTuning::new()
                .with(ElasticOptions { sample_gets: u32::MAX, ..ElasticOptions::default() }),
        );
    let (storage, of_store) = (Arc::new(disk.clone()), Arc::clone(&clock) as Arc<dyn Clock>);
    let environment = Environment::new().storage(storage).clock(of_store);
    let db = Db::open_with(Path::new("db"), options, environment).expect("opens");
    let key = |n: u64| spread(n).to_be_bytes().to_vec();
    let keys: Vec<Vec<u8>> = (0..4200).map(key).collect();
    for keys in keys.chunks(300) {
        keys.iter().for_each(|key| db.put(key, [7; 40]).expect("puts"));
        if keys[0] == key(1200) {
            db.delete_range([0x20], [0x28]).expect("deletes");
        }
        if keys[0] != key(3900) {
            db.flush().expect("flushes");
            db.settle().expect("settles");
        }
    }
    Store { disk, clock, db, keys, missing: (10_000..13_000).map(key).collect() }
}

/// Allocations, operations of the disk and questions to the clock.
fn costs(store: &Store, mut act: impl FnMut()) -> [u64; 3] {
    let before = (store.disk.operations(), store.clock.0.load(Ordering::Relaxed));
    let allocations = measure(&mut act).count_total;
    let after = (store.disk.operations(), store.clock.0.load(Ordering::Relaxed));
    [allocations, after.0 - before.0, after.1 - before.1]
}

#[test]
fn a_warm_get_allocates_nothing_and_makes_no_system_call() {
    for guard in trommel_guards::all_guards() {
        let store = store(guard);
        let runs: usize =
            store.db.stats().expect("open").levels.iter().map(|level| level.runs.len()).sum();
        assert!(runs >= 3, "{guard}: {runs} runs");
        let snapshot = store.db.snapshot();
        let ask_all = || {
            let ask = |key: &Vec<u8>| {
                let value = store.db.get(key).expect("gets");
                assert_eq!(value, snapshot.get(key).expect("gets"));
                usize::from(value.is_some())
            };
            let hits: usize = store.keys.iter().map(ask).sum();
            assert!((4100..4200).contains(&hits), "{guard}: {hits}");
            assert_eq!(store.missing.iter().map(ask).sum::<usize>(), 0, "{guard}");
        };
        let first = costs(&store, ask_all);
        assert!(first[1] > 0, "{guard}: blocks were to be read");
        assert_eq!(costs(&store, ask_all), [0; 3], "{guard}");
    }
}

/// What steps of a scan cost that begins at a key, when it has come to every run.
fn costs_of_steps(store: &Store, from: &[u8], backward: bool) -> [u64; 3] {
    // A run allocates its cursor when the scan comes to its first key; of fourteen keys one is of a
    // run of the newest.
    const FIRST: usize = 250;
    const STEPS: usize = 60;
    let mut scan = if backward { store.db.range(..from) } else { store.db.range(from..) };
    let mut step = || {
        let entry = if backward { scan.next_back_lent() } else { scan.next_lent() };
        entry.is_some_and(|entry| !entry.expect("reads").1.is_empty())
    };
    (0..FIRST).for_each(|_| assert!(step(), "the scan goes on"));
    costs(store, || (0..STEPS).for_each(|_| assert!(step(), "the scan goes on")))
}

#[test]
fn a_warm_step_of_a_scan_allocates_nothing() {
    for guard in trommel_guards::all_guards() {
        let store = store(guard);
        // Far from both ends, and from the deleted range.
        let inner = |key: &&Vec<u8>| (0x48..0xb8).contains(&key[0]);
        let froms: Vec<&Vec<u8>> = store.keys.iter().filter(inner).step_by(40).collect();
        assert!(froms.len() > 30);
        for backward in [false, true] {
            let all = || froms.iter().map(|from| costs_of_steps(&store, from, backward));
            all().for_each(drop);
            let costs: Vec<[u64; 3]> = all().filter(|costs| *costs != [0; 3]).collect();
            assert_eq!(costs, [[0; 3]; 0], "{guard}, backward: {backward}");
        }
    }
}

#[test]
fn lent_keys_are_those_of_the_iterator() {
    for guard in [GuardKind::Open, GuardKind::Grf] {
        let store = store(guard);
        let range = || store.db.range([0x10u8]..[0x60]);
        let owned: Vec<_> = range().map(|entry| entry.expect("reads")).collect();
        assert!(owned.len() > 100);
        let (mut forward, mut backward) = (range(), range());
        for (key, value) in &owned {
            let (lent, found) = forward.next_lent().expect("goes on").expect("reads");
            assert_eq!((lent, &found), (&key[..], value));
        }
        for (key, value) in owned.iter().rev() {
            let (lent, found) = backward.next_back_lent().expect("goes on").expect("reads");
            assert_eq!((lent, &found), (&key[..], value));
        }
        assert!(forward.next_lent().is_none() && backward.next_back_lent().is_none());
    }
}
