//! One kind of work alone, for a profiler; or merges whose reads and writes overlap beside merges
//! whose do not.
//! ```text
//! valgrind --tool=callgrind --collect-atstart=no \
//!     --toggle-collect='*measured*' target/release/examples/profile get-hit 100000
//! # the same data in ten key spaces; with 0, in the default one
//! target/release/examples/profile get-hit 100000 10
//! target/release/examples/profile overlap 600000 DIR            past the system's cache, in turns
//! target/release/examples/profile logs 1000000 DIR              mapped logs beside written ones
//! # a log that is cut, in one memtable, beside two that are not
//! target/release/examples/profile cut 1000000
//! ```
//! Invariant: what is done within `measured` is of one kind; everything it needs was read before.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use trommel::Environment;
use trommel::options::{DirectIo, Overlap};
use trommel::storage::Memory;
use trommel::{Background, Batch, Db, GuardKind, Keyspace, Options, Result, SyncPolicy};

const VALUE: [u8; 100] = [7; 100];
/// Beside the large one, which has all but one of so many parts.
const RUNS: u64 = 11;
/// Of one size, which become one.
const MERGED_RUNS: u64 = 12;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let count = args.get(2).and_then(|count| count.parse().ok());
    let done = match (args.get(1).map(String::as_str), count, args.get(3)) {
        (Some("overlap"), Some(count), Some(dir)) => overlap(count, Path::new(dir)),
        (Some("logs"), Some(count), Some(dir)) => logs(count, Path::new(dir)),
        (Some("cut"), Some(count), None) => cut(count),
        (Some(kind), Some(count), None) if kind.starts_with("cut-") => cut_kind(kind, count),
        (Some("spaces"), Some(count), None) => compare_spaces(count),
        (Some(kind), Some(count), None) => one_kind(kind, count, 0),
        (Some(kind), Some(count), Some(spaces)) => {
            one_kind(kind, count, spaces.parse().expect("how many key spaces"))
        }
        _ => panic!(
            "what: put, get-hit, get-miss, seek, seek-back, next, flush, merge, threads COUNT [SPACES]; spaces COUNT; cut COUNT; \
             cut-writes, cut-first, cut-last, cut-get, each with -spread and -ordered too, COUNT; overlap ENTRIES DIR; logs COUNT DIR"
        ),
    };
    done.expect("it is done");
}

/// SplitMix64: the same in every run.
fn spread(n: u64) -> [u8; 8] {
    let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)).to_be_bytes()
}

fn options() -> Options {
    Options::new()
        .guard(GuardKind::Grf)
        .size_ratio(20)
        .block_cache_bytes(1 << 30)
        .compression(false)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped)
}

/// The same data, in so many key spaces.
struct World {
    db: Db,
    spaces: Vec<Keyspace>,
    count: u64,
}

impl World {
    /// `spaces`: beside the default one, which is used alone if there are none.
    fn new(spaces: u64, count: u64) -> Result<World> {
        let environment = Environment::new().storage(Arc::new(Memory::new()));
        let db = Db::open_with(Path::new("db"), options(), environment)?;
        let named = |n: u64| db.keyspace(format!("key space {n}"), options().into());
        let spaces = match spaces {
            0 => vec![Keyspace::clone(&db)],
            spaces => (0..spaces).map(named).collect::<Result<_>>()?,
        };
        Ok(World { db, spaces, count })
    }

    /// The key space of the nth key.
    fn of(&self, n: u64) -> &Keyspace {
        &self.spaces[(n % self.spaces.len() as u64) as usize]
    }

    fn put(&self, n: u64) -> Result<()> {
        self.of(n).put(spread(n), VALUE)
    }

    /// Writes keys: most into one run, the others into small ones, the last of which is still in
    /// memory.
    fn fill(&self) -> Result<()> {
        let (count, newer_count) = (self.count, self.count / RUNS);
        for n in 0..count {
            self.put(n)?;
            if n + 1 == count - newer_count {
                self.db.flush()?;
                self.db.compact()?;
            } else if n + newer_count > count && n % (newer_count / RUNS) == 0 {
                self.db.flush()?;
            }
        }
        Ok(())
    }

    fn gets(&self, from: u64) -> Result<()> {
        let mut keys = from..from + self.count;
        keys.try_for_each(|n| self.of(n).get(spread(n)).map(drop))
    }

    fn work(&self, kind: &str) -> Result<()> {
        let count = self.count;
        let first = |n: u64| self.of(n).range(spread(n)..).next().transpose().map(drop);
        let last = |n: u64| self.of(n).range(..spread(n)).next_back().transpose().map(drop);
        let walk = |space: &Keyspace| space.range(..).try_for_each(|entry| entry.map(drop));
        match kind {
            "put" => (2 * count..3 * count).try_for_each(|n| self.put(n)),
            "flush" => self.db.flush(),
            "merge" => self.db.compact(),
            "get-hit" => self.gets(0),
            "get-miss" => self.gets(count),
            "seek" => (count..2 * count).try_for_each(first),
            "seek-back" => (count..2 * count).try_for_each(last),
            "next" => self.spaces.iter().try_for_each(walk),
            "threads" => threads(&self.db, count),
            other => panic!("{other} is nothing that can be measured"),
        }
    }
}

#[inline(never)]
fn measured<T>(f: impl FnOnce() -> T) -> T {
    f()
}

fn one_kind(kind: &str, count: u64, spaces: u64) -> Result<()> {
    let world = World::new(spaces, count)?;
    world.fill()?;
    match kind {
        "put" => {}
        "flush" => world.work("put")?,
        _ => {
            world.db.flush()?;
            world.work("next")?;
        }
    }
    measured(|| world.work(kind))?;
    println!("{:?}", world.of(0).stats()?.open_seek);
    Ok(())
}

/// What an operation takes, in the default key space, in one other and in ten, in turns.
fn compare_spaces(count: u64) -> Result<()> {
    let worlds = [0, 1, 10].map(|spaces| World::new(spaces, count));
    let worlds = worlds.into_iter().collect::<Result<Vec<_>>>()?;
    for world in &worlds {
        world.fill()?;
        world.db.flush()?;
        world.work("next")?;
    }
    for kind in ["get-hit", "get-miss", "seek", "next", "put", "flush"] {
        let rounds = if matches!(kind, "put" | "flush") { 1 } else { 7 };
        let mut least = [f64::INFINITY; 3];
        for _ in 0..rounds {
            for (world, least) in worlds.iter().zip(&mut least) {
                let start = thread_ns();
                world.work(kind)?;
                *least = least.min((thread_ns() - start) as f64 / count as f64);
            }
        }
        let [default, one, ten] = least;
        let (of_default, of_one) = (ten / default, ten / one);
        println!(
            "{kind:>9}, ns of CPU: default {default:>6.0}, one {one:>6.0}, ten {ten:>6.0}: \
             {of_default:.3} of the default one, {of_one:.3} of one"
        );
    }
    Ok(())
}

/// The processor's time that this thread has had, in nanoseconds.
fn thread_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    text.split(' ').next().and_then(|first| first.parse().ok()).expect("a number")
}

/// Which key something drawn is, of so many.
type Place = fn(u64, u64) -> u64;

/// Cached gets of several threads at once, by the processor's time that one takes: of keys that are
/// all alike hot, of few that are (the logarithm of a key's place is uniform, nearly Zipf's law),
/// and of one.
fn threads(db: &Db, count: u64) -> Result<()> {
    let spreads: [(&str, Place); 3] = [
        ("uniform", |drawn, count| drawn % count),
        ("log-uniform", |drawn, count| {
            (count as f64).powf(drawn as f64 / u64::MAX as f64) as u64 - 1
        }),
        ("one key", |_, _| 0),
    ];
    for round in 0..5 {
        for (name, place) in spreads {
            for thread_count in [1, 2] {
                let ask = |thread: u64| {
                    let start = (thread_ns(), Instant::now());
                    for n in 0..count {
                        let drawn = u64::from_be_bytes(spread(n ^ (thread << 40)));
                        db.get(spread(place(drawn, count))).expect("it is there").expect("a value");
                    }
                    ((thread_ns() - start.0) / count, start.1.elapsed())
                };
                let asked: Vec<_> = std::thread::scope(|scope| {
                    let asking = (0..thread_count).map(|thread| scope.spawn(move || ask(thread)));
                    let asking: Vec<_> = asking.collect();
                    asking.into_iter().map(|asking| asking.join().expect("no panic")).collect()
                });
                println!("{round} {name:>11}, {thread_count} at once: ns of CPU, time {asked:?}");
            }
        }
    }
    Ok(())
}

/// A store with room for all in one memtable.
fn large_memtable() -> Result<Db> {
    let environment = Environment::new().storage(Arc::new(Memory::new()));
    let options = options().write_buffer_bytes(1 << 30);
    Db::open_with(Path::new("db"), options, environment)
}

/// What is written after each entry of a log.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Second {
    /// The deletion of all that is a thousand entries older.
    Cut,
    /// An entry anywhere.
    Spread,
    /// The next entry of another log.
    Ordered,
}

/// The nth pair of writes.
fn write_pair(db: &Db, n: u64, second: Second) -> Result<()> {
    db.put(n.to_be_bytes(), VALUE)?;
    match (second, n.checked_sub(1000)) {
        (Second::Cut, Some(end)) => db.delete_range(0u64.to_be_bytes(), end.to_be_bytes()),
        (Second::Cut | Second::Ordered, _) => db.put((n | 1 << 62).to_be_bytes(), VALUE),
        (Second::Spread, _) => db.put(spread(n), VALUE),
    }
}

fn first(db: &Db) -> Result<()> {
    db.range(..).next().transpose().map(drop)
}

fn last(db: &Db) -> Result<()> {
    db.range(..u64::MAX.to_be_bytes()).next_back().transpose().map(drop)
}

/// One kind of work on a memtable of so many pairs, for a profiler.
fn cut_kind(kind: &str, count: u64) -> Result<()> {
    let twin = |end, second| kind.strip_suffix(end).map(|kind| (kind, second));
    let (kind, second) = twin("-spread", Second::Spread)
        .or_else(|| twin("-ordered", Second::Ordered))
        .unwrap_or((kind, Second::Cut));
    let db = large_memtable()?;
    let write = |range: std::ops::Range<u64>| {
        range.into_iter().try_for_each(|n| write_pair(&db, n, second))
    };
    write(0..count)?;
    let asked = 10_000;
    match kind {
        "cut-writes" => measured(|| write(count..count + asked)),
        "cut-first" => measured(|| (0..asked).try_for_each(|_| first(&db))),
        "cut-last" => measured(|| (0..asked).try_for_each(|_| last(&db))),
        "cut-get" => measured(|| {
            (0..asked).try_for_each(|n| db.get((n * count / asked).to_be_bytes()).map(drop))
        }),
        other => panic!("{other} is nothing that can be measured"),
    }
}

/// What writes, first steps of scans and gets take, with deletions that overlap and without.
fn cut(count: u64) -> Result<()> {
    for round in 0..3 {
        let seconds =
            [(Second::Ordered, "ordered"), (Second::Spread, "spread"), (Second::Cut, "cut")];
        for (second, name) in seconds {
            let db = large_memtable()?;
            let start = Instant::now();
            (0..count).try_for_each(|n| write_pair(&db, n, second))?;
            let written = start.elapsed();
            let asked = 10_000;
            let time = |work: &dyn Fn(u64) -> Result<()>| {
                let start = Instant::now();
                (0..asked).try_for_each(work).map(|()| start.elapsed() / asked as u32)
            };
            let get = |n: u64| db.get((n * count / asked).to_be_bytes()).map(drop);
            println!(
                "{round} {name:>7}: {written:>9.2?} for all writes; first step {:?}, last {:?}, get {:?}; {} bytes",
                time(&|_| first(&db))?,
                time(&|_| last(&db))?,
                time(&get)?,
                db.stats()?.memtable_bytes,
            );
        }
    }
    Ok(())
}

fn overlap(count: u64, dir: &Path) -> Result<()> {
    let options =
        |overlap| options().direct(DirectIo::ALL).overlap(overlap).block_cache_bytes(1 << 20);
    let filled = Db::open(dir.join("filled"), options(Overlap::Pool))?;
    for n in 0..count {
        filled.put(spread(n), VALUE)?;
        if (n + 1) % (count / MERGED_RUNS) == 0 {
            filled.flush()?;
        }
    }
    for round in 0..9 {
        for overlap in [Overlap::OneByOne, Overlap::Pool] {
            let copy = dir.join(format!("{round}-{}", overlap.name()));
            filled.checkpoint(&copy)?;
            let db = Db::open(&copy, options(overlap))?;
            let start = Instant::now();
            measured(|| db.compact())?;
            let compacted = start.elapsed();
            let start = Instant::now();
            db.range(..).try_for_each(|entry| entry.map(drop))?;
            let scanned = start.elapsed();
            let io = db.stats()?.io;
            println!(
                "{:>10} merge {compacted:>10.2?} scan {scanned:>10.2?} {io:?}",
                overlap.name()
            );
        }
    }
    Ok(())
}

/// Puts into a memtable that has room for all, and a hundredth of them with a sync each: the time
/// of one, in nanoseconds.
fn logs(count: u64, dir: &Path) -> Result<()> {
    for round in 0..5 {
        for is_mapped in [true, false] {
            let options = options().mapped_log(is_mapped).write_buffer_bytes(4 << 30);
            let db = Db::open(dir.join(format!("{round}-{is_mapped}")), options)?;
            let start = (thread_ns(), Instant::now());
            (0..count).try_for_each(|n| db.put(spread(n), VALUE))?;
            let (of_cpu, put) = ((thread_ns() - start.0) / count, start.1.elapsed());
            let (start, synced) = (Instant::now(), count / 100);
            for n in 0..synced {
                let mut batch = Batch::new();
                batch.put(spread(n), VALUE);
                db.write_synced(batch)?;
            }
            let ns = |time: Duration, count| time.as_nanos() / u128::from(count);
            let (put, synced) = (ns(put, count), ns(start.elapsed(), synced));
            println!(
                "{round} mapped {is_mapped:>5}: put {put:>5} ({of_cpu} of CPU), synced {synced}"
            );
        }
    }
    Ok(())
}
