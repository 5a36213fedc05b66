//! Laws of cost: what each operation may cost more when there is ten times as much of something.
//! ```text
//! pattern     of 1x and of 10x     deletions that overlap, versions of a key, tombstones, snapshots, runs, partitions, reads in a queue
//! operation   its steps, allocations, allocated bytes, blocks and calls of the disk in both
//! law         constant or logarithm: about as much    linear: ten times as much (and a logarithm)
//! ```
//! Nothing is timed. The list of laws stands in docs/reliability.md. Invariant: every operation of the public interface is in
//! `OPERATIONS` or in `WHOLE`, and is held to `Law::Log` unless `law_of` says for what pattern it is not, and why.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use allocation_counter::measure;

use crate::cost::steps_of;
use crate::{
    Background, Batch, Db, Environment, GuardKind, Memory, Options, Snapshot, Stats, Sync,
};

const VALUE: [u8; 20] = [7; 20];
/// Keys before and behind those of the pattern.
const NEIGHBOURS: u64 = 100;
/// Of an operation; counted are the cheapest of some rows: now and then one pays for what comes after it.
const ROWS: usize = 4;
const IN_A_ROW: u64 = 16;

/// What the cost may grow by when there is ten times as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Law {
    Log,
    Linear,
}

/// What was counted.
#[derive(Clone, Copy, Debug)]
struct Cost {
    steps: u64,
    allocations: u64,
    bytes: u64,
    blocks: u64,
    disk_calls: u64,
}

impl Cost {
    fn parts(self) -> [(&'static str, u64, u64); 5] {
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

    /// What is wrong with the cost of ten times as much. (A logarithm grows by less than a half from 1,000 to 10,000.)
    fn breaks(self, large: Cost, law: Law) -> Option<String> {
        let factor = match law {
            Law::Log => 2,
            Law::Linear => 20,
        };
        let parts = self.parts().into_iter().zip(large.parts());
        let broken = |((what, small, slack), (_, large, _))| {
            (large > factor * small + slack).then(|| format!("{what}: {small}, then {large}"))
        };
        parts.filter_map(broken).next()
    }
}

fn blocks_of(stats: &Stats) -> u64 {
    [stats.point, stats.open_seek, stats.closed_seek].iter().map(|kind| kind.blocks_read).sum()
}

/// A store and who reads it.
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
    fn new(change: impl FnOnce(&mut Options)) -> World {
        let mut options = Options {
            guard: GuardKind::Grf,
            block_bytes: 512,
            table_bytes: 16 << 10,
            block_cache_bytes: 0,
            write_buffer_bytes: 32 << 20,
            sync: Sync::Never,
            background: Background::Stepped,
            slow_down_runs: Some(10_000),
            ..Options::default()
        };
        change(&mut options);
        let mut world =
            World { disk: Memory::new(), options, db: None, held: Vec::new(), checkpoints: 0 };
        world.open();
        for n in 0..NEIGHBOURS {
            [b'a', b'z'].iter().for_each(|area| world.put(*area, n));
        }
        world
    }

    fn open(&mut self) {
        let storage = Arc::new(self.disk.clone());
        let environment = Environment { storage, ..Environment::default() };
        let opened = Db::open_with(Path::new("db"), self.options.clone(), environment);
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

    /// So many keys, then the deletion of a range with them, which reaches into the next two.
    fn stagger(&self, range: u64, keys: u64) {
        (0..keys).for_each(|at| self.put(b'm', 1000 * range + 500 + at));
        self.delete_range(1000 * range, 1000 * range + 2500);
    }

    fn hold(&mut self) {
        self.held.push(self.db().snapshot());
    }

    /// Reads at the oldest snapshot that is held, at one between, and at the newest; or at a new one.
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

#[path = "cost_laws_patterns.rs"]
mod patterns;
use patterns::{HELD, HELD_CUT, PATTERNS, Pattern, RUNS, TOMBSTONES};

/// An operation, of which some are done in a row; told which it is of all.
type Operation = (&'static str, fn(&mut World, u64));

/// Those that cost about as much whatever there is.
const OPERATIONS: &[Operation] = &[
    ("get, there", |world, i| assert!(world.db().get(key(b'z', i)).expect("gets").is_some())),
    ("get, not there", |world, i| assert!(world.db().get(key(b'b', i)).expect("gets").is_none())),
    ("get, in the pattern", |world, i| drop(world.db().get(key(b'm', i % 8)).expect("gets"))),
    ("multi_get", |world, i| {
        let keys: Vec<_> = (0..8).map(|at| key(b'm', at * i)).collect();
        assert!(world.db().multi_get(&keys).into_iter().all(|got| got.is_ok()));
    }),
    ("snapshot get", |world, i| {
        world.at_snapshots(|snapshot| {
            assert!(snapshot.get(key(b'a', i)).expect("gets").is_some());
            drop(snapshot.get(key(b'm', i)).expect("gets"));
            assert!(snapshot.multi_get(&[key(b'm', 5)]).into_iter().all(|got| got.is_ok()));
        });
    }),
    ("range, first step", |world, _| {
        assert!(world.db().range(key(b'm', 0)..).next().expect("there").is_ok());
    }),
    ("range, first step back", |world, _| {
        assert!(world.db().range(..key(b'n', 0)).next_back().expect("there").is_ok());
    }),
    ("range, closed", |world, i| {
        let found = world.db().range(key(b'm', i)..key(b'm', i + 3)).next();
        assert!(found.is_none_or(|found| found.is_ok()));
    }),
    ("next", |world, _| {
        assert!(world.db().range::<&[u8]>(..).take(150).all(|entry| entry.is_ok()));
    }),
    ("next_back", |world, _| {
        assert!(world.db().range::<&[u8]>(..).rev().take(150).all(|entry| entry.is_ok()));
    }),
    ("snapshot range", |world, _| {
        world.at_snapshots(|snapshot| {
            assert!(snapshot.range::<&[u8]>(..).take(120).all(|entry| entry.is_ok()));
            assert!(snapshot.range::<&[u8]>(..).rev().take(120).all(|entry| entry.is_ok()));
        });
    }),
    ("snapshot, taken and dropped", |world, _| drop(world.db().snapshot())),
    ("queue", |world, i| {
        let mut queue = world.db().queue(4);
        queue.submit_get(key(b'm', 5), i);
        queue.submit_get(key(b'z', i), i);
        queue.submit_range(key(b'z', 0).., 3, i);
        while queue.wait().is_some() {}
    }),
    ("approximate_count, count", |world, i| {
        let range = key(b'z', i)..key(b'z', i + 5);
        let most = world.db().approximate_count(range.clone()).expect("counts").most;
        assert!(most >= 5 && world.db().count(range).expect("counts") <= most);
    }),
    ("may_contain_range, multi_may_contain", |world, i| {
        assert!(world.db().may_contain_range(key(b'z', i)..).expect("asks"));
        let ranges = [key(b'm', i)..key(b'm', i + 1), key(b'b', 0)..key(b'c', 0)];
        assert_eq!(world.db().multi_may_contain(&ranges).expect("asks").len(), 2);
    }),
    ("put", |world, i| world.put(b'z', i)),
    ("put_ttl", |world, i| {
        let hour = Duration::from_secs(3600);
        world.db().put_ttl(key(b'z', i), VALUE, hour).expect("puts");
    }),
    ("delete", |world, i| world.db().delete(key(b'y', i)).expect("deletes")),
    ("delete_range", |world, i| world.delete_range(i % 4, 5 * i + 9)),
    ("write", |world, i| {
        let mut batch = Batch::new();
        batch
            .put(key(b'z', i), VALUE)
            .delete(key(b'y', i))
            .delete_range(key(b'm', i), key(b'n', i));
        world.db().write(batch).expect("writes");
    }),
    ("sync", |world, i| {
        world.put(b'z', i);
        world.db().sync().expect("syncs");
    }),
    ("stats", |world, _| assert!(world.db().stats().expect("open").sequence > 0)),
];

/// Those that go over all that there is, in this order.
const WHOLE: &[Operation] = &[
    ("checkpoint", |world, _| {
        world.checkpoints += 1;
        let dir = format!("copy{}", world.checkpoints);
        world.db().checkpoint(dir).expect("copies");
    }),
    ("close", |world, _| {
        world.held.clear();
        world.db.take().expect("it is open").close().expect("closes");
    }),
    ("open", |world, _| world.open()),
    ("flush", |world, _| world.db().flush().expect("flushes")),
    ("verify", |world, _| assert!(world.db().verify().expect("reads").damage.is_empty())),
    ("ingest", |world, _| {
        let entries = (0..100).map(|n| (key(b'x', n), VALUE));
        assert_eq!(world.db().ingest(entries).expect("loads"), 100);
    }),
    ("settle, compact", |world, _| {
        world.db().settle().expect("merges");
        world.db().compact().expect("merges");
    }),
];

/// What is not a logarithm, and why.
fn law_of(pattern: &str, operation: &str) -> Law {
    let scans = ["range", "next", "snapshot range", "queue"];
    let is_scan = scans.iter().any(|scan| operation.starts_with(scan));
    match (pattern, operation) {
        // Each is another key, of which nobody knows whether it hides something.
        (TOMBSTONES, _) if is_scan => Law::Linear,
        // Keys that were written after it are looked at one by one.
        (HELD | HELD_CUT, "snapshot range") => Law::Linear,
        // Each run is another place to look at.
        (RUNS, _) => Law::Linear,
        // One number for each table, and for each partition.
        ("partitions", "stats") => Law::Linear,
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

/// What breaks its law.
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

/// Reads that are under way cost nothing but their room.
#[test]
fn a_queue_costs_a_query_as_much_whatever_its_depth() {
    let mut world = World::new(|_| {});
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
