//! What many key spaces cost: to make, to open, to have; and what several cost more than one.
//! ```text
//! target/release/examples/keyspaces many 10000 DIR        times, bytes of heap for each
//! target/release/examples/keyspaces many 10000            the same, with files in memory
//! valgrind --tool=dhat target/release/examples/keyspaces hold 1000       what they have at the end
//! target/release/examples/keyspaces compare 200000        times, one and ten in turns
//! valgrind --tool=callgrind --collect-atstart=no \
//!     --toggle-collect='*measured*' target/release/examples/keyspaces ten get-hit 100000
//! ```
//! Invariant: what is compared has the same data in all, in the same order.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use allocation_counter::measure;
use trommel::storage::Memory;
use trommel::{
    Background, Db, Environment, GuardKind, Keyspace, KeyspaceOptions, Options, Result, SyncPolicy,
};

const VALUE: [u8; 100] = [7; 100];
/// Rows of a scan.
const ROWS: usize = 50;
const KINDS: [&str; 6] = ["put", "get-hit", "get-miss", "seek", "scan", "flush"];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let count = |text: &str| text.parse().expect("a number");
    let done = match args[..] {
        ["many", spaces] => many(count(spaces), None),
        ["many", spaces, dir] => many(count(spaces), Some(Path::new(dir))),
        ["hold", spaces] => hold(count(spaces)),
        ["compare", rows] => compare(count(rows)),
        ["default", kind, rows] => one_kind(0, kind, count(rows)),
        ["one", kind, rows] => one_kind(1, kind, count(rows)),
        ["ten", kind, rows] => one_kind(10, kind, count(rows)),
        _ => panic!(
            "what: many SPACES [DIR]; hold SPACES; compare ROWS; default, one, ten {KINDS:?} ROWS"
        ),
    };
    done.expect("it is done");
}

/// Tells how long some work takes, for each of so many, and what heap this thread has then more.
fn timed<T>(what: &str, spaces: u64, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let (mut done, mut work, start) = (None, Some(work), Instant::now());
    let taken = measure(|| done = work.take().map(|work| work()));
    let (time, heap) = (start.elapsed(), taken.bytes_current / spaces as i64);
    println!("{what:<34}{time:>10.2?}  {heap:>7} bytes of heap more, for each");
    done.expect("it was called")
}

/// Makes so many, opens them, writes a key into each, and opens them again.
fn many(spaces: u64, dir: Option<&Path>) -> Result<()> {
    let disk = Memory::new();
    let open = || match dir {
        Some(dir) => Db::open(dir, Options::new()),
        None => {
            let environment = Environment::new().storage(Arc::new(disk.clone()));
            Db::open_with("db", Options::new().background(Background::Stepped), environment)
        }
    };
    let handles = |db: &Db| -> Result<Vec<Keyspace>> {
        let name = |n| format!("key space number {n}");
        (0..spaces).map(|n| db.keyspace(name(n), KeyspaceOptions::new())).collect()
    };
    let db = open()?;
    let all = timed("make, with handles", spaces, || handles(&db))?;
    drop(all);
    timed("close", spaces, || db.close())?;
    let db = timed("open, all empty", spaces, open)?;
    let all = timed("take a handle of each", spaces, || handles(&db))?;
    timed("get from each", spaces, || all.iter().try_for_each(|it| it.get("key").map(drop)))?;
    timed("put into each", spaces, || all.iter().try_for_each(|it| it.put("key", VALUE)))?;
    timed("100,000 puts into one", 100_000, || {
        (0..100_000u64).try_for_each(|n| all[0].put(n.to_be_bytes(), VALUE))
    })?;
    drop(all);
    timed("close, all in the log", spaces, || db.close())?;
    let db = timed("open, all in the log", spaces, open)?;
    timed("flush", spaces, || db.flush())?;
    timed("close, all in tables", spaces, || db.close())?;
    let db = timed("open, all in tables", spaces, open)?;
    let all = timed("take a handle of each", spaces, || handles(&db))?;
    timed("get from each", spaces, || {
        all.iter().try_for_each(|it| it.get("key").map(|got| assert!(got.is_some())))
    })?;
    timed("put into each", spaces, || all.iter().try_for_each(|it| it.put("key", VALUE)))?;
    drop(all);
    timed("close", spaces, || db.close())
}

/// Has so many that are empty, and ends while they are open.
fn hold(spaces: u64) -> Result<()> {
    let environment = Environment::new().storage(Arc::new(Memory::new()));
    let db = Db::open_with("db", Options::new().background(Background::Stepped), environment)?;
    let named = |n| db.keyspace(format!("key space number {n}"), KeyspaceOptions::new());
    let all = (0..spaces).map(named).collect::<Result<Vec<_>>>()?;
    std::mem::forget((db, all));
    Ok(())
}

/// SplitMix64: the same in every run.
fn spread(n: u64) -> [u8; 8] {
    let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)).to_be_bytes()
}

/// A store with so many key spaces beside the default one, which is used alone if there are none.
struct World {
    db: Db,
    spaces: Vec<Keyspace>,
    rows: u64,
}

impl World {
    fn new(spaces: u64, rows: u64) -> Result<World> {
        let options = Options::new()
            .guard(GuardKind::Grf)
            .block_cache_bytes(1 << 30)
            .compression(false)
            .sync(SyncPolicy::Never)
            .background(Background::Stepped);
        let environment = Environment::new().storage(Arc::new(Memory::new()));
        let db = Db::open_with("db", options, environment)?;
        let own = || KeyspaceOptions::new().guard(GuardKind::Grf).compression(false);
        let named = |n: u64| db.keyspace(format!("key space {n}"), own());
        let spaces = match spaces {
            0 => vec![(*db).clone()],
            spaces => (0..spaces).map(named).collect::<Result<_>>()?,
        };
        Ok(World { db, spaces, rows })
    }

    /// The key space of a row.
    fn of(&self, n: u64) -> &Keyspace {
        &self.spaces[(n % self.spaces.len() as u64) as usize]
    }

    fn put(&self, rows: std::ops::Range<u64>) -> Result<()> {
        rows.into_iter().try_for_each(|n| self.of(n).put(spread(n), VALUE))
    }

    /// Two thirds in one run of each, the others in a second one.
    fn fill(&self) -> Result<()> {
        self.put(0..self.rows * 2 / 3)?;
        self.db.compact()?;
        self.put(self.rows * 2 / 3..self.rows)?;
        self.db.flush()
    }

    fn work(&self, kind: &str) -> Result<()> {
        let rows = self.rows;
        let gets =
            |from: u64| (from..from + rows).try_for_each(|n| self.of(n).get(spread(n)).map(drop));
        let scans = |count: u64, rows: usize| {
            (0..count).try_for_each(|n| {
                self.of(n)
                    .range(spread(rows as u64 + n)..)
                    .take(rows)
                    .try_for_each(|it| it.map(drop))
            })
        };
        match kind {
            "put" => self.put(rows..2 * rows),
            "get-hit" => gets(0),
            "get-miss" => gets(2 * rows),
            "seek" => scans(rows, 1),
            "scan" => scans(rows / ROWS as u64, ROWS),
            "flush" => self.db.flush(),
            other => panic!("{other} is nothing that can be measured"),
        }
    }
}

#[inline(never)]
fn measured<T>(f: impl FnOnce() -> T) -> T {
    f()
}

fn one_kind(spaces: u64, kind: &str, rows: u64) -> Result<()> {
    let world = World::new(spaces, rows)?;
    world.fill()?;
    match kind {
        "put" => {}
        "flush" => world.put(rows..2 * rows)?,
        // Of what was read before.
        kind => world.work(kind)?,
    }
    measured(|| world.work(kind))
}

/// The times of all kinds of work, for an operation, in the default key space, in one other and in
/// ten, in turns.
fn compare(rows: u64) -> Result<()> {
    let worlds = [0, 1, 10].map(|spaces| World::new(spaces, rows));
    let worlds = worlds.into_iter().collect::<Result<Vec<_>>>()?;
    worlds.iter().try_for_each(World::fill)?;
    for kind in KINDS {
        let mut least = [Duration::MAX; 3];
        for _ in 0..if matches!(kind, "put" | "flush") { 1 } else { 7 } {
            for (world, least) in worlds.iter().zip(&mut least) {
                let start = Instant::now();
                world.work(kind)?;
                *least = start.elapsed().min(*least);
            }
        }
        let [default, one, ten] = least.map(|time| time.as_secs_f64() / rows as f64 * 1e9);
        println!(
            "{kind:>9}: default {default:>7.0} ns, one {one:>7.0}, ten {ten:>7.0}: {:.3} of one",
            ten / one
        );
    }
    Ok(())
}
