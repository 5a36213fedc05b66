//! Laws of cost: how much more each operation may cost when there is ten times as much of
//! something.
//! ```text
//! pattern     1x and 10x of: overlapping deletions, versions of a key, snapshots, runs, ...
//! operation   its steps, allocations, allocated bytes, blocks and disk operations in both
//! law         constant or logarithmic: about as much     linear: ten times as much (times a log)
//! ```
//! Nothing is timed. The laws are listed in docs/performance.md. Invariant: every operation of the
//! public interface is in `OPERATIONS`, in `WHOLE`, in `OF_BATCHES`, or in a file of its own. Those
//! in `OPERATIONS` obey `Law::Log`, unless `law_of` names a pattern for which they do not, and why.

use std::path::Path;
use std::sync::Arc;

use allocation_counter::measure;

use crate::cost::steps_of;
use crate::entries::merge_operator::Concat;
use crate::shared::environment::Environment;
use crate::stats::Stats;
use crate::storage::memory::Memory;
use crate::{Background, Batch, Db, GuardKind, Options, Snapshot, SyncPolicy};

const VALUE: [u8; 20] = [7; 20];
/// The number of keys before, and of keys behind those of the pattern.
const NEIGHBOURS: u64 = 100;
/// The operations in a row, and the rows. The cheapest row counts, since an operation sometimes
/// pays for later ones.
const ROWS: usize = 4;
const IN_A_ROW: u64 = 16;

/// How the cost may grow when there is ten times as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Law {
    Log,
    Linear,
}

/// The counted cost.
#[derive(Clone, Copy, Debug)]
struct Cost {
    steps: u64,
    allocations: u64,
    bytes: u64,
    blocks: u64,
    disk_calls: u64,
}

/// The name of a count, its value, and the excess that is never too much.
type Part = (&'static str, u64, u64);

/// Returns what is too expensive with ten times as much. (A logarithm grows by less than a half
/// from 1,000 to 10,000.)
fn breaks<const N: usize>(small: [Part; N], large: [Part; N], law: Law) -> Option<String> {
    let factor = match law {
        Law::Log => 2,
        Law::Linear => 20,
    };
    let broken = |((what, small, slack), (_, large, _)): (Part, Part)| {
        (large > factor * small + slack).then(|| format!("{what}: {small}, then {large}"))
    };
    small.into_iter().zip(large).find_map(broken)
}

impl Cost {
    fn parts(self) -> [Part; 5] {
        [
            ("steps", self.steps, 200),
            ("allocations", self.allocations, 100),
            ("bytes", self.bytes, 6000),
            ("blocks", self.blocks, 20),
            ("calls of the disk", self.disk_calls, 10),
        ]
    }

    fn least(self, other: Cost) -> Cost {
        Cost {
            steps: self.steps.min(other.steps),
            allocations: self.allocations.min(other.allocations),
            bytes: self.bytes.min(other.bytes),
            blocks: self.blocks.min(other.blocks),
            disk_calls: self.disk_calls.min(other.disk_calls),
        }
    }

    /// Returns what is too expensive with ten times as much.
    fn breaks(self, large: Cost, law: Law) -> Option<String> {
        breaks(self.parts(), large.parts(), law)
    }
}

fn blocks_of(stats: &Stats) -> u64 {
    [stats.point, stats.open_seek, stats.closed_seek].iter().map(|kind| kind.blocks_read).sum()
}

/// A store with its readers.
struct World {
    disk: Memory,
    options: Options,
    db: Option<Db>,
    held: Vec<Snapshot>,
    checkpoints: u64,
}

fn key(area: u8, n: u64) -> [u8; 9] {
    let mut key = [area; 9];
    key[1..].copy_from_slice(&n.to_be_bytes());
    key
}

impl World {
    fn new(tune: impl FnOnce(Options) -> Options) -> World {
        let options = Options::new()
            .guard(GuardKind::Grf)
            .block_bytes(512)
            .table_bytes(16 << 10)
            .merge_operator(Concat::new(""))
            .block_cache_bytes(0)
            .write_buffer_bytes(32 << 20)
            .sync(SyncPolicy::Never)
            .background(Background::Stepped)
            .slow_down_runs(Some(10_000));
        let options = tune(options);
        let mut world =
            World { disk: Memory::new(), options, db: None, held: Vec::new(), checkpoints: 0 };
        world.open();
        for n in 0..NEIGHBOURS {
            [b'a', b'z'].iter().for_each(|area| world.put(*area, n));
        }
        world
    }

    fn environment(&self) -> Environment {
        Environment::new().storage(Arc::new(self.disk.clone()))
    }

    fn open(&mut self) {
        let opened = Db::open_with(Path::new("db"), self.options.clone(), self.environment());
        self.db = Some(opened.expect("opens"));
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("it is open")
    }

    fn put(&self, area: u8, n: u64) {
        self.db().put(key(area, n), VALUE).expect("puts");
    }

    fn delete_range(&self, from: u64, to: u64) {
        self.db().delete_range(key(b'm', from), key(b'm', to)).expect("deletes");
    }

    /// Puts this many keys, then deletes a range with them that reaches into the next two ranges.
    fn stagger(&self, range: u64, keys: u64) {
        (0..keys).for_each(|at| self.put(b'm', 1000 * range + 500 + at));
        self.delete_range(1000 * range, 1000 * range + 2500);
    }

    fn hold(&mut self) {
        self.held.push(self.db().snapshot());
    }

    /// Reads at the oldest, a middle and the newest held snapshot, or at a new one if none is held.
    fn at_snapshots(&self, read: impl Fn(&Snapshot)) {
        match self.held.as_slice() {
            [] => read(&self.db().snapshot()),
            held => [0, held.len() / 2, held.len() - 1].iter().for_each(|at| read(&held[*at])),
        }
    }

    fn cost(&mut self, work: impl FnOnce(&mut World)) -> Cost {
        let blocks =
            |world: &World| world.db.as_ref().map_or(0, |db| blocks_of(&db.stats().expect("open")));
        let before = (blocks(self), self.disk.operations());
        let mut steps = 0;
        let allocated = measure(|| ((), steps) = steps_of(|| work(self)));
        let disk_calls = self.disk.operations() - before.1;
        Cost {
            steps,
            allocations: allocated.count_total,
            bytes: allocated.bytes_total,
            blocks: blocks(self).saturating_sub(before.0),
            disk_calls,
        }
    }
}

mod patterns;
use patterns::{HELD, HELD_CUT, OF_KEYSPACES, PATTERNS, Pattern, RUNS, TOMBSTONES};

mod operations;
use operations::{FLUSH_OF_ONE, OF_BATCHES, OPERATIONS, Operation, WHOLE};

mod copies;
mod counted;
mod files;
mod large_values;
mod rebuilding;

/// The beginnings of operations that look at every run. Writes, syncs and snapshots do not.
const OF_EACH_RUN: [&str; 18] = [
    "get",
    "contains_key",
    "multi_get",
    "snapshot get",
    "range",
    "iter",
    "first_key_value",
    "last_key_value",
    "next",
    "snapshot range",
    "queue",
    "approximate_count",
    "may_contain_range",
    "trace_guard",
    "pinned_tree",
    "follow_tree",
    "stats",
    "transaction",
];

/// Returns the law of an operation under a pattern, with the reasons for laws other than `Log`.
fn law_of(pattern: &str, operation: &str) -> Law {
    let scans =
        ["range", "iter", "first_key_value", "last_key_value", "next", "snapshot range", "queue"];
    let is_scan = scans.iter().any(|scan| operation.starts_with(scan));
    let looks_at_runs = OF_EACH_RUN.iter().any(|kind| operation.starts_with(kind));
    match (pattern, operation) {
        // Each tombstone has another key, and it is unknown whether it hides something.
        (TOMBSTONES, _) if is_scan => Law::Linear,
        // The last block is searched to its end: it holds one entry, or many.
        (_, "last_key_value") => Law::Linear,
        // Keys that were written after the snapshot are passed one by one.
        (HELD | HELD_CUT, "snapshot range") => Law::Linear,
        // Each run is one more place to search.
        (RUNS, _) if looks_at_runs => Law::Linear,
        // A flush keeps what each snapshot sees. Other key spaces do not matter.
        (pattern, FLUSH_OF_ONE) if !OF_KEYSPACES.contains(&pattern) => Law::Linear,
        // There is one number for each table, and for each partition.
        ("partitions", "stats" | "pinned_tree, told whole") => Law::Linear,
        // The tables up to those asked are counted, and all of them are returned.
        ("partitions", "pinned_tree, asked") => Law::Linear,
        _ => Law::Log,
    }
}

fn cost_of(world: &mut World, (_, operation): &Operation) -> Cost {
    let mut rows = (0..ROWS as u64).map(|row| {
        world.cost(|world| {
            (row * IN_A_ROW..(row + 1) * IN_A_ROW).for_each(|i| operation(world, i));
        })
    });
    let first = rows.next().expect("a row");
    rows.fold(first, Cost::least)
}

/// Returns the operations that break their law.
fn broken(pattern: &Pattern) -> Vec<String> {
    let mut broken = Vec::new();
    let mut worlds = [World::new(pattern.options), World::new(pattern.options)];
    let mut compare = |name: &str, law: Law, costs: [Cost; 2]| {
        let [small, large] = costs;
        if let Some(wrong) = small.breaks(large, law) {
            broken.push(format!("{}: {name} ({law:?}): {wrong}", pattern.name));
        }
    };
    let counts = [pattern.small, 10 * pattern.small];
    let [small, large] = &mut worlds;
    let built = [(small, counts[0]), (large, counts[1])]
        .map(|(world, count)| world.cost(|world| (pattern.build)(world, count)));
    compare("all writes of it", Law::Linear, built);
    for operation in OPERATIONS {
        let costs = worlds.each_mut().map(|world| cost_of(world, operation));
        compare(operation.0, law_of(pattern.name, operation.0), costs);
    }
    for operation in WHOLE {
        let costs = worlds.each_mut().map(|world| world.cost(|world| operation.1(world, 0)));
        compare(operation.0, Law::Linear, costs);
    }
    broken
}

#[test]
fn ten_times_as_much_costs_no_more_than_its_law() {
    let broken: Vec<String> = PATTERNS.iter().flat_map(broken).collect();
    assert!(broken.is_empty(), "{} laws are broken:\n{}", broken.len(), broken.join("\n"));
}

/// Reads in flight cost nothing but their memory.
#[test]
fn a_queue_costs_a_query_as_much_whatever_its_depth() {
    let mut world = World::new(|options| options);
    (0..5000).for_each(|n| world.put(b'm', n));
    world.db().compact().expect("compacts");
    let costs = [100u64, 1000].map(|count| {
        world.cost(|world| {
            let mut queue = world.db().queue(count as usize);
            (0..count).for_each(|n| queue.submit_get(key(b'm', n * 4999 / count), n));
            assert_eq!(std::iter::from_fn(|| queue.wait()).count() as u64, count);
        })
    });
    assert_eq!(costs[0].breaks(costs[1], Law::Linear), None);
    let each = costs[1].steps / 1000;
    assert!(each < 60, "{each} steps for a get");
}

/// Makes a batch of this many writes, with room for some more.
fn batch_of(writes: u64) -> Batch {
    let mut batch = Batch::new();
    (0..writes).for_each(|n| {
        batch.put(key(b'm', n), VALUE);
    });
    batch
}

/// A batch allocates only when it is full, and doubles its memory then.
#[test]
fn a_write_of_a_batch_costs_no_more_for_those_before_it() {
    let mut world = World::new(|options| options);
    for writes in [1000, 10_000] {
        let built = world.cost(|_| drop(batch_of(writes)));
        let doublings = 2 * u64::from((writes * 29).ilog2());
        assert!(built.allocations <= doublings, "{writes}: {} allocations", built.allocations);
        // A condition is not a write: it has its own memory.
        for (name, operation) in OF_BATCHES.iter().filter(|it| it.0 != "only_if") {
            let cost = of_batch(&mut world, writes, operation);
            let taken = (cost.allocations, cost.bytes);
            assert_eq!(taken, (0, 0), "{name}, {writes} writes before it");
        }
    }
}

/// What stays takes memory in pieces: entries, and the places where searches begin.
#[test]
fn a_put_allocates_nothing_for_itself() {
    let disk = counted::Counted::new();
    let options = Options::new().sync(SyncPolicy::Never).background(Background::Stepped);
    let db = Db::open_with("db", options, disk.environment()).expect("opens");
    let puts = |from: u64| {
        (from..from + 1000).for_each(|n| db.put(key(b'm', n), VALUE).expect("puts"));
    };
    puts(0);
    let ((), used) = disk.used(|| puts(1000));
    assert!(used.allocations < 100, "{used:?}");
}

/// Returns the cost of some operations on a batch that has this many writes.
fn of_batch(world: &mut World, writes: u64, operation: &fn(&mut Batch, u64)) -> Cost {
    let mut batch = batch_of(writes);
    world.cost(|_| (0..IN_A_ROW).for_each(|i| operation(&mut batch, i)))
}

/// The log has the batch in one record, and each write is an insert into the memtable.
#[test]
fn a_batch_costs_as_much_as_its_writes() {
    let costs = [1000, 10_000].map(|writes| {
        let mut world = World::new(|options| options);
        let batch = batch_of(writes);
        world.cost(|world| world.db().write(batch).expect("writes"))
    });
    assert_eq!(costs[0].breaks(costs[1], Law::Linear), None);
    assert!(costs[1].disk_calls <= costs[0].disk_calls, "{costs:?}");
}
