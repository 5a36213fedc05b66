//! Several merges at once: whatever order their steps are done in, and wherever it is cut short,
//! every answer is right.
//! ```text
//! flush, flush, step 5, step 2, put, step 9, ..., crash, step 1,
//!     ...       a step is of any merge that is open, or opens one
//! ```
//! Invariant: an answer is that of a `BTreeMap` with the same writes.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use trommel::research::Research as _;

use proptest::collection::vec;
use proptest::prelude::*;
use trommel::Environment;
use trommel::options::Granularity;
use trommel::stats::FilterRecovery;
use trommel::storage::{Memory, Storage};
use trommel::testing::{PausePoint, Pauses};
use trommel::tools::DumpItem;
use trommel::{Background, Db, GuardKind, Options, Policy, Snapshot, SyncPolicy};
use trommel_guards::kinds;

type Model = BTreeMap<u16, u32>;

const GUARDS: [GuardKind; 6] = [
    GuardKind::Grf,
    GuardKind::Table(kinds::BLOCKED_BLOOM),
    GuardKind::GrfHuffman,
    GuardKind::Locator(kinds::CHUCKY),
    GuardKind::Open,
    GuardKind::Table(kinds::ELASTIC),
];

fn options(guard: GuardKind) -> Options {
    Options::new()
        .guard(guard)
        .size_ratio(2)
        .write_buffer_bytes(1 << 13)
        .block_bytes(256)
        .table_bytes(4096)
        .compression(false)
        .partition_bytes(2048)
        .merges_at_once(Some(4))
        .merge_piece_bytes(1024)
        .sync(SyncPolicy::Always)
        .background(Background::Stepped)
}

/// As many steps can be gone on with as merges are open.
fn undivided(guard: GuardKind) -> Options {
    options(guard).merge_piece_bytes(1 << 30)
}

fn open(disk: &Memory, options: &Options) -> Db {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with("db", options.clone(), environment).expect("opens")
}

/// Above all others.
const LAST_KEYS: std::ops::Range<u16> = 1000..5000;

fn ingest(db: &Db, version: u32) {
    let entries = LAST_KEYS.map(|key| (key.to_be_bytes(), value(version)));
    db.ingest(entries).expect("ingests");
}

fn value(version: u32) -> Vec<u8> {
    version.to_be_bytes().repeat(1 + version as usize % 9)
}

#[derive(Clone, Debug)]
enum Op {
    /// Keys one after another, from here on, and a flush.
    Write(u16, u8),
    Delete(u16),
    DeleteRange(u16, u8),
    Flush,
    Step(usize),
    TakeSnapshot,
    Compact,
    Crash,
    Reopen(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let key = || 0u16..400;
    prop_oneof![
        10 => (key(), 1u8..60).prop_map(|(key, count)| Op::Write(key, count)),
        2 => key().prop_map(Op::Delete),
        2 => (key(), 1u8..200).prop_map(|(key, count)| Op::DeleteRange(key, count)),
        2 => Just(Op::Flush),
        24 => any::<usize>().prop_map(Op::Step),
        1 => Just(Op::TakeSnapshot),
        1 => Just(Op::Compact),
        2 => Just(Op::Crash),
        1 => any::<usize>().prop_map(Op::Reopen),
    ]
}

struct World {
    disk: Memory,
    options: Options,
    db: Option<Db>,
    model: Model,
    version: u32,
    snapshots: Vec<(Snapshot, Model)>,
    most_merging: u64,
}

impl World {
    fn new(options: Options) -> Self {
        let disk = Memory::new();
        let db = Some(open(&disk, &options));
        let (model, snapshots) = Default::default();
        World { disk, options, db, model, version: 0, snapshots, most_merging: 0 }
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("open between operations")
    }

    fn reopen(&mut self) {
        self.snapshots.clear();
        self.db = None;
        self.db = Some(open(&self.disk, &self.options));
    }

    fn put(&mut self, key: u16) {
        self.version += 1;
        self.db().put(key.to_be_bytes(), value(self.version)).expect("puts");
        self.model.insert(key, self.version);
    }

    /// Puts a last level below all else, as of many flushes.
    fn deepen(&mut self) {
        self.version += 1;
        let version = self.version;
        ingest(self.db(), version);
        self.model.extend(LAST_KEYS.map(|key| (key, version)));
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Write(key, count) => {
                (key..key + u16::from(count)).for_each(|key| self.put(key));
                self.db().flush().expect("flushes");
            }
            Op::Delete(key) => {
                self.db().delete(key.to_be_bytes()).expect("deletes");
                self.model.remove(&key);
            }
            Op::DeleteRange(from, count) => {
                let to = from + u16::from(count);
                self.db().delete_range(from.to_be_bytes(), to.to_be_bytes()).expect("deletes");
                self.model.retain(|key, _| !(from..to).contains(key));
            }
            Op::Flush => self.db().flush().expect("flushes"),
            Op::Step(choice) => {
                self.db().step_any(choice).expect("steps");
                self.most_merging = self.most_merging.max(self.db().stats().expect("open").merging);
            }
            Op::TakeSnapshot => self.snapshots.push((self.db().snapshot(), self.model.clone())),
            Op::Compact => self.db().compact().expect("compacts"),
            Op::Crash => {
                self.disk = self.disk.crash_hard();
                self.reopen();
            }
            Op::Reopen(shift) => {
                let options = self.options.clone();
                self.options = options
                    .guard(GUARDS[shift % GUARDS.len()])
                    .granularity(Granularity::ALL[shift % Granularity::ALL.len()])
                    .merges_at_once([None, Some(2), Some(5)][shift / 3 % 3]);
                self.reopen();
            }
        }
    }

    fn check(&self) {
        for key in 0..480u16 {
            let found = self.db().get(key.to_be_bytes()).expect("reads");
            let expected = self.model.get(&key).map(|&version| value(version));
            assert_eq!(found.as_deref(), expected.as_deref(), "key {key}");
        }
        let scan = |scan: trommel::Scan, model: &Model| {
            let found: Vec<_> = scan.map(|entry| entry.expect("reads")).collect();
            let expected = model.iter().map(|(key, &version)| (key.to_be_bytes(), value(version)));
            let expected: Vec<_> = expected.collect();
            let found: Vec<_> = found.iter().map(|(key, value)| (&key[..], &value[..])).collect();
            let expected: Vec<_> = expected.iter().map(|(k, v)| (&k[..], &v[..])).collect();
            assert_eq!(found, expected);
        };
        scan(self.db().range(..), &self.model);
        for (snapshot, model) in &self.snapshots {
            scan(snapshot.range(..), model);
        }
    }
}

fn run(ops: &[Op], is_deep: bool, options: Options) -> u64 {
    let mut world = World::new(options);
    // A value that is long enough.
    world.version = 6;
    if is_deep {
        world.deepen();
    }
    for (place, op) in ops.iter().enumerate() {
        world.apply(op);
        if matches!(op, Op::Crash | Op::Reopen(_)) || place % 16 == 15 {
            world.check();
        }
    }
    world.db().settle().expect("settles");
    world.check();
    assert_eq!(world.db().verify().expect("verifies").damage, [""; 0]);
    assert_eq!(world.db().stats().expect("open").merging, 0);
    world.most_merging
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 2000, ..Default::default() })]

    #[test]
    fn merges_in_any_order_answer_like_a_map(
        ops in vec(op(), 1..200),
        guard in prop::sample::select(GUARDS.to_vec()),
        policy in prop::sample::select(Policy::NAMES.to_vec()),
        size_ratio in 2u32..4,
        is_deep in any::<bool>(),
        granularity in prop::sample::select(Granularity::ALL.to_vec()),
    ) {
        let policy = Policy::named(policy).expect("a preset");
        run(&ops, is_deep, options(guard).policy(policy).size_ratio(size_ratio).granularity(granularity));
    }
}

#[test]
fn several_merges_are_open_at_once() {
    for guard in GUARDS {
        let mut world = World::new(undivided(guard).size_ratio(5));
        world.version = 6;
        world.deepen();
        for turn in 0..60 {
            world.apply(&Op::Write(turn * 37 % 300, 50));
            if turn % 5 == 4 {
                // What is due is last; if nothing is, it is the oldest merge's turn.
                world.apply(&Op::Step(world.db().stats().expect("open").merging as usize));
                world.check();
            }
        }
        world.db().settle().expect("settles");
        world.check();
        // A guard that merges tell of every key has one at a time.
        let is_reported = matches!(guard, GuardKind::Locator(_) | GuardKind::GrfHuffman);
        assert_eq!(world.most_merging, if is_reported { 1 } else { 4 }, "{guard}");
    }
}

// docs/architecture.md, rule 3: what was flushed or merged since is in the filter when the last
// level's new base is installed.
#[test]
fn a_merge_into_the_last_level_catches_up_with_flushes_and_merges() {
    let options = undivided(GuardKind::Grf).size_ratio(3).partition_bytes(1 << 20);
    let mut world = World::new(options);
    world.version = 6;
    world.deepen();
    // Until the inner levels are full: one step more begins the merge into the last level.
    (0..8).for_each(|turn| {
        world.apply(&Op::Write(turn * 40, 40));
        world.db().settle().expect("settles");
    });
    world.apply(&Op::Write(0, 40));
    world.apply(&Op::Step(0));
    let before = world.db().stats().expect("open");
    assert_eq!((before.merging, before.levels[0].runs.len()), (1, 3));
    // More flushes come, and are merged among themselves: three make a merge due, one step begins
    // it and one ends it.
    for turn in 0..6 {
        world.apply(&Op::Write(turn * 30, 30));
        if turn % 3 == 2 {
            (0..2).for_each(|_| world.apply(&Op::Step(1)));
        }
        world.check();
    }
    let after = world.db().stats().expect("open");
    assert_eq!((after.merging, after.merges), (1, before.merges + 2), "it is still open");
    world.db().settle().expect("settles");
    world.check();
    assert_eq!(world.db().verify().expect("verifies").damage, [""; 0]);
}

#[test] // Level 0 filled up, and writers waited, while the one thread was at a large merge.
fn a_thread_does_small_merges_before_it_goes_on_with_a_large_one() {
    let options = undivided(GuardKind::Grf).size_ratio(3).partition_bytes(1 << 20);
    let mut world = World::new(options.merges_at_once(Some(2)));
    world.version = 6;
    world.deepen();
    (0..8).for_each(|turn| {
        world.apply(&Op::Write(turn * 40, 40));
        world.db().settle().expect("settles");
    });
    world.apply(&Op::Write(0, 40));
    assert!(world.db().step().expect("begins the merge into the last level"));
    let before = world.db().stats().expect("open");
    for turn in 0..3 {
        world.apply(&Op::Write(turn * 30, 30));
    }
    (0..2).for_each(|_| assert!(world.db().step().expect("a step")));
    let after = world.db().stats().expect("open");
    assert_eq!((before.merging, after.merging, after.merges), (1, 1, before.merges + 1));
    world.db().settle().expect("settles");
    world.check();
}

fn write(db: &Db, from: u16) {
    (from..from + 50).for_each(|key| db.put(key.to_be_bytes(), value(7)).expect("puts"));
    db.flush().expect("flushes");
}

fn has_all(db: &Db, keys: u16) -> bool {
    (0..keys).all(|key| db.get(key.to_be_bytes()).expect("reads").is_some())
}

#[test] // A failed merge tried again and again would have kept the other lane from its own.
fn a_merge_that_fails_holds_up_no_other() {
    let disk = Memory::new();
    let options = undivided(GuardKind::Open).size_ratio(4);
    let db = open(&disk, &options);
    ingest(&db, 7);
    (0..8).for_each(|turn| write(&db, turn * 50));
    db.step_any(0).expect("begins");
    db.step_any(1).expect("begins");
    assert_eq!(db.stats().expect("open").merging, 2);
    disk.no_space(true);
    assert!(db.step_any(0).is_err());
    let stats = db.stats().expect("open");
    assert_eq!(stats.merging, 1, "the other one is still open");
    assert!(stats.failure.is_some());
    disk.no_space(false);
    db.settle().expect("settles");
    assert_eq!(db.stats().expect("open").failure, None);
    assert!(has_all(&db, 400));
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
}

/// Holds the first merge back before it is installed, until it is let go.
#[derive(Default)]
struct Gate {
    come: AtomicU64,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn pause(&self) {
        if self.come.fetch_add(1, Ordering::SeqCst) == 0 {
            let closed = self.is_open.lock().expect("no panic");
            drop(self.opened.wait_while(closed, |is_open| !*is_open).expect("no panic"));
        }
    }

    fn open(&self) {
        *self.is_open.lock().expect("no panic") = true;
        self.opened.notify_all();
    }
}

// Threads(2): a merge that pauses before its end does not keep a newer one from beginning and
// ending.
#[test]
fn threads_merge_beside_each_other() {
    let (disk, gate) = (Memory::new(), Arc::new(Gate::default()));
    let stepped = options(GuardKind::Grf);
    let db = open(&disk, &stepped);
    ingest(&db, 7);
    db.close().expect("closes");
    let hook = Arc::clone(&gate);
    let pauses = Pauses::new(move |point| {
        if point == PausePoint::MergePrepared {
            hook.pause();
        }
    });
    let environment = Environment::new().storage(Arc::new(disk.clone())).pauses(pauses);
    let background = Background::Threads(2);
    let options = stepped.background(background).size_ratio(4).merges_at_once(None);
    let db = Db::open_with("db", options, environment).expect("opens");
    (0..4).for_each(|turn| write(&db, turn * 50));
    while gate.come.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    assert_eq!((db.stats().expect("open").merges, db.stats().expect("open").merging), (0, 1));
    (4..12).for_each(|turn| write(&db, turn * 50));
    while db.stats().expect("open").merges == 0 {
        std::thread::yield_now();
    }
    assert!(has_all(&db, 600));
    gate.open();
    db.settle().expect("settles");
    assert!(has_all(&db, 600));
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
}

/// What all tables have, by key and age.
fn entries(disk: &Memory) -> Vec<(Vec<u8>, u64, &'static str, Vec<u8>)> {
    let mut entries = Vec::new();
    let tell = &mut |item: DumpItem<'_>| {
        if let DumpItem::Entry { key, sequence, kind, value, .. } = item {
            entries.push((key.to_vec(), sequence, kind, value.to_vec()));
        }
        ControlFlow::Continue(())
    };
    trommel::tools::dump(disk, "db", tell).expect("dumps");
    // Deleted ranges are cut where tables end.
    entries.retain(|(_, _, kind, _)| *kind != "delete-range");
    entries.sort_unstable();
    entries
}

/// Two stores with the same history, of which one merges in pieces.
fn with_and_without_pieces(ops: &[Op], options: &Options) -> [World; 2] {
    let of = |merges_at_once| {
        let mut world = World::new(options.clone().merges_at_once(merges_at_once));
        world.version = 6;
        world.deepen();
        for op in ops.iter().filter(|op| !matches!(op, Op::Crash | Op::Reopen(_))) {
            world.apply(op);
        }
        world.db().compact().expect("compacts");
        world.check();
        world
    };
    [of(None), of(Some(3))]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 500, ..Default::default() })]

    // What snapshots see, and nothing else, is kept by pieces as by whole merges; deleted ranges
    // lie across them.
    #[test]
    fn pieces_keep_what_whole_merges_keep(
        ops in vec(op(), 1..120),
        granularity in prop::sample::select(Granularity::ALL.to_vec()),
    ) {
        let options = options(GuardKind::Grf).granularity(granularity);
        let [whole, pieces] = with_and_without_pieces(&ops, &options).map(|mut world| {
            world.snapshots.clear();
            world.db = None;
            // What left the tree while it was read is removed at an opening.
            open(&world.disk, &options).close().expect("closes");
            entries(&world.disk)
        });
        prop_assert_eq!(whole, pieces);
    }
}

#[test]
fn a_large_merge_is_done_in_pieces() {
    for granularity in Granularity::ALL {
        let options = options(GuardKind::Grf).granularity(granularity).partition_bytes(1 << 15);
        let mut world = World::new(options);
        world.version = 6;
        world.deepen();
        world.apply(&Op::Write(0, 50));
        world.db().compact().expect("compacts");
        world.check();
        let stats = world.db().stats().expect("open");
        let filters = stats.partitions.iter().filter(|part| part.base_entries > 0).count();
        assert_eq!(filters, stats.partitions.len(), "{granularity}: a part without keys");
        let has_many = stats.partitions.len() > 2;
        assert_eq!(has_many, granularity != Granularity::Full, "{:?}", stats.partitions.len());
        assert_eq!(world.db().verify().expect("verifies").damage, [""; 0]);
        world.db = None;
        world.reopen();
        let recovery = world.db().stats().expect("open").filter_recovery;
        assert_eq!(recovery, FilterRecovery::Image { replayed_tables: 0 }, "{granularity}");
        world.check();
    }
}

// What is left of pieces that were done is removed at once: retries on a full disk would make it
// fuller.
#[test]
fn a_piece_that_fails_leaves_no_files() {
    let disk = Memory::new();
    let options = options(GuardKind::Grf).granularity(Granularity::Full);
    let db = open(&disk, &options);
    ingest(&db, 7);
    (0..2).for_each(|turn| write(&db, turn * 50));
    let files = || disk.list("db".as_ref()).expect("lists");
    let before = files();
    for pieces_done in 0..3 {
        assert!(db.step_any(0).expect("begins"));
        (0..pieces_done).for_each(|_| assert!(db.step_any(1).expect("does a piece")));
        assert!(files().len() >= before.len() + pieces_done);
        disk.no_space(true);
        assert!(db.step_any(0).is_err());
        disk.no_space(false);
        assert_eq!(files(), before, "after {pieces_done} pieces");
        assert_eq!(db.stats().expect("open").merging, 0);
    }
    db.settle().expect("settles");
    assert!(has_all(&db, 100));
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
}
