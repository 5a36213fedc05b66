//! `bench readers`: the CPU time of a get when several threads read at once, beside a paced writer.
//! ```text
//! round 1   [1 reader]  [N readers]   round 2   [N readers]  [1 reader]   ...   CPU time of a get
//! writer    puts until it has had its share of a core, then sleeps; all the time, beside both
//! ```
//! Invariants: each thread's own CPU clock counts. Waiting for a core therefore costs nothing,
//! while contention on cache lines does. The writer only rewrites stored values, so every answer is
//! known and checked.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use trommel::{Db, GuardKind, Options, SyncPolicy};

use crate::bench::fill::fill;
use crate::error::{LabError, Result};
use crate::keys::rng::{Rng, scattered_key, scramble};
use crate::keys::values::fill_value;
use crate::median::median;
use crate::progress::Progress;

/// What to measure.
#[derive(Clone, Debug)]
pub struct ReadersPlan {
    /// The store's guard.
    pub guard: GuardKind,
    /// Keys in the store.
    pub keys: u64,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// The number of readers that is compared with one reader.
    pub threads: usize,
    /// Gets of each reader in a round; every second one is of a stored key.
    pub queries: u64,
    /// Rounds, each with both numbers of readers.
    pub rounds: usize,
    /// The writer's share of a core; 0: no writes.
    pub writer_share: f64,
    /// Capacity of the block cache, in bytes.
    pub block_cache_bytes: usize,
    /// Capacity of the memtable, in bytes.
    pub write_buffer_bytes: usize,
    /// Seed of keys and questions.
    pub seed: u64,
    /// The store's folder: a new one.
    pub folder: PathBuf,
}

/// What `bench readers` measured. Field names are an interface.
#[derive(Clone, Debug, Serialize)]
pub struct ReadersReport {
    /// The guard.
    pub guard: &'static str,
    /// Keys in the store.
    pub keys: u64,
    /// The number of readers that was compared with one reader.
    pub threads: u64,
    /// Gets of each reader in a round.
    pub queries: u64,
    /// Rounds; the median counts.
    pub rounds: u64,
    /// CPU time of a get with one reader, in nanoseconds.
    pub cpu_ns_one: f64,
    /// CPU time of a get with all readers, in nanoseconds.
    pub cpu_ns_many: f64,
    /// `cpu_ns_many` divided by `cpu_ns_one`: the median over the rounds.
    pub ratio: f64,
    /// Gets per second with one reader.
    pub gets_per_s_one: f64,
    /// Gets per second of all readers together.
    pub gets_per_s_many: f64,
    /// The writer's actual share of a core.
    pub writer_share: f64,
    /// Writes of the writer.
    pub writes: u64,
    /// Flushes during the reads.
    pub flushes: u64,
    /// Merges during the reads.
    pub merges: u64,
    /// Blocks that one get asked for.
    pub blocks_per_get: f64,
    /// Wrong answers. Must be 0.
    pub wrong_answers: u64,
}

/// Runs the benchmark. The store stays in `plan.folder`.
pub fn bench_readers(plan: &ReadersPlan, progress: &mut dyn Progress) -> Result<ReadersReport> {
    check(plan)?;
    let options = Options::new()
        .guard(plan.guard)
        .block_cache_bytes(plan.block_cache_bytes)
        .write_buffer_bytes(plan.write_buffer_bytes)
        .learn_questions(false)
        .sync(SyncPolicy::Interval(Duration::from_secs(1)));
    let db = Db::open(&plan.folder, options)?;
    fill(&db, (plan.keys, plan.value_bytes), |place| key_of(plan, place), progress)?;
    // Warms the cache, so that both sides find it equally warm.
    read(&db, plan, plan.threads)?;
    let (before, over) = (db.stats()?, AtomicBool::new(false));
    let (writer, sides) = std::thread::scope(|scope| {
        let writing = scope.spawn(|| write_paced(&db, plan, &over));
        let sides = measure(&db, plan, progress);
        over.store(true, Ordering::Relaxed);
        (writing.join().expect("the writer does not panic"), sides)
    });
    let (writer, sides, stats) = (writer?, sides?, db.stats()?);
    let mut ratios: Vec<f64> =
        sides.iter().map(|[one, many]| many.cpu_ns_per_get() / one.cpu_ns_per_get()).collect();
    let of = |side: usize, what: fn(&Reading) -> f64| {
        median(&mut sides.iter().map(|sides| what(&sides[side])).collect::<Vec<_>>())
    };
    let points = stats.point.since(&before.point);
    Ok(ReadersReport {
        guard: plan.guard.name(),
        keys: plan.keys,
        threads: plan.threads as u64,
        queries: plan.queries,
        rounds: plan.rounds as u64,
        cpu_ns_one: of(0, Reading::cpu_ns_per_get),
        cpu_ns_many: of(1, Reading::cpu_ns_per_get),
        ratio: median(&mut ratios),
        gets_per_s_one: of(0, Reading::gets_per_s),
        gets_per_s_many: of(1, Reading::gets_per_s),
        writer_share: writer.share,
        writes: writer.writes,
        flushes: stats.flushes - before.flushes,
        merges: stats.merges - before.merges,
        blocks_per_get: points.blocks_read as f64 / points.queries.max(1) as f64,
        wrong_answers: sides.iter().flatten().map(|reading| reading.wrong).sum(),
    })
}

fn check(plan: &ReadersPlan) -> Result<()> {
    let wrong = |problem: &str| Err(LabError::Plan(problem.to_string()));
    if !(1..=256).contains(&plan.threads) {
        return wrong("1 to 256 threads");
    }
    if plan.keys == 0 || plan.queries == 0 || plan.rounds == 0 {
        return wrong("a key, a query and a round are the least to measure");
    }
    if !(0.0..=1.0).contains(&plan.writer_share) {
        return wrong("the writer's share of a core is 0 to 1");
    }
    Ok(())
}

/// Returns the key of a place. Places from `plan.keys` on are not in the store.
fn key_of(plan: &ReadersPlan, place: u64) -> [u8; 8] {
    scattered_key(plan.seed, place)
}

/// The totals of all readers of one measurement.
#[derive(Clone, Copy, Debug)]
struct Reading {
    gets: u64,
    cpu: Duration,
    elapsed: Duration,
    wrong: u64,
}

impl Reading {
    fn cpu_ns_per_get(&self) -> f64 {
        self.cpu.as_nanos() as f64 / self.gets as f64
    }

    fn gets_per_s(&self) -> f64 {
        self.gets as f64 / self.elapsed.as_secs_f64()
    }
}

/// Measures one reader and all readers, in turns.
fn measure(db: &Db, plan: &ReadersPlan, progress: &mut dyn Progress) -> Result<Vec<[Reading; 2]>> {
    progress.stage("reading", plan.rounds as u64);
    let round = |round: usize| {
        let (first, second) =
            if round.is_multiple_of(2) { (1, plan.threads) } else { (plan.threads, 1) };
        let sides = [read(db, plan, first)?, read(db, plan, second)?];
        progress.advance(1);
        Ok(if first == 1 { sides } else { [sides[1], sides[0]] })
    };
    (0..plan.rounds).map(round).collect()
}

fn read(db: &Db, plan: &ReadersPlan, threads: usize) -> Result<Reading> {
    let start = Instant::now();
    let shares = std::thread::scope(|scope| {
        let reader = |thread| scope.spawn(move || read_share(db, plan, thread));
        let readers: Vec<_> = (0..threads).map(reader).collect();
        let joined = readers.into_iter().map(|reader| reader.join().expect("no reader panics"));
        joined.collect::<Result<Vec<_>>>()
    })?;
    let elapsed = start.elapsed();
    let cpu = shares.iter().map(|share| share.0).sum();
    let wrong = shares.iter().map(|share| share.1).sum();
    Ok(Reading { gets: plan.queries * threads as u64, cpu, elapsed, wrong })
}

/// Reads as one reader. Returns its CPU time and its wrong answers.
fn read_share(db: &Db, plan: &ReadersPlan, thread: usize) -> Result<(Duration, u64)> {
    let mut rng = Rng::new(plan.seed ^ scramble(thread as u64 + 1));
    let (mut wrong, mut value) = (0, Vec::new());
    let start = cpu_time();
    for query in 0..plan.queries {
        let there = query % 2 == 0;
        let key = key_of(plan, rng.below(plan.keys) + if there { 0 } else { plan.keys });
        let found = db.get(key)?;
        let is_right = match &found {
            Some(found) if there => {
                fill_value(&mut value, &key, plan.value_bytes);
                **found == value[..]
            }
            other => other.is_some() == there,
        };
        wrong += u64::from(!is_right);
    }
    Ok((cpu_time() - start, wrong))
}

/// Returns the CPU time that this thread has used.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The writer's totals.
struct Written {
    writes: u64,
    share: f64,
}

/// Rewrites stored keys with their own values, in bursts of about a millisecond.
fn write_paced(db: &Db, plan: &ReadersPlan, over: &AtomicBool) -> Result<Written> {
    const BURST: u64 = 50;
    let (start, cpu_start) = (Instant::now(), cpu_time());
    let mut rng = Rng::new(plan.seed ^ scramble(0));
    let (mut writes, mut value) = (0, Vec::new());
    // At least one burst, however soon the readers end.
    let is_owed = |writes: u64| writes == 0 && plan.writer_share > 0.0;
    while is_owed(writes) || !over.load(Ordering::Relaxed) {
        let had = (cpu_time() - cpu_start).as_secs_f64();
        let due = start.elapsed().as_secs_f64() * plan.writer_share;
        if !is_owed(writes) && (had > due || plan.writer_share == 0.0) {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        for _ in 0..BURST {
            let key = key_of(plan, rng.below(plan.keys));
            fill_value(&mut value, &key, plan.value_bytes);
            db.put(key, &value)?;
        }
        writes += BURST;
    }
    let share = (cpu_time() - cpu_start).as_secs_f64() / start.elapsed().as_secs_f64();
    Ok(Written { writes, share })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    fn plan(folder: PathBuf) -> ReadersPlan {
        ReadersPlan {
            guard: GuardKind::Grf,
            keys: 3000,
            value_bytes: 20,
            threads: 3,
            queries: 2000,
            rounds: 2,
            writer_share: 0.2,
            block_cache_bytes: 1 << 20,
            write_buffer_bytes: 16 << 10,
            seed: 7,
            folder,
        }
    }

    #[test]
    fn answers_are_right_and_times_are_there() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let report =
            bench_readers(&plan(folder.path().join("store")), &mut Silent).expect("measures");
        assert_eq!(report.wrong_answers, 0, "{report:?}");
        assert!(report.cpu_ns_one > 0.0 && report.cpu_ns_many > 0.0 && report.ratio > 0.0);
        assert!(report.writes > 0 && report.writer_share > 0.0, "{report:?}");
    }

    #[test]
    fn a_wrong_answer_is_counted() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let plan = ReadersPlan { keys: 1, threads: 1, ..plan(folder.path().join("store")) };
        let db = Db::open(&plan.folder, Options::default()).expect("opens");
        assert_eq!(read(&db, &plan, 1).expect("reads").wrong, plan.queries / 2);
        let key_of_place = |place| key_of(&plan, place);
        fill(&db, (1, plan.value_bytes), key_of_place, &mut Silent).expect("fills");
        assert_eq!(read(&db, &plan, 1).expect("reads").wrong, 0);
        db.put(key_of(&plan, 0), "another value").expect("puts");
        assert_eq!(read(&db, &plan, 2).expect("reads").wrong, plan.queries);
    }

    #[test]
    fn plans_that_make_no_sense_are_refused() {
        let sound = plan(PathBuf::from("nowhere"));
        for wrong in [
            ReadersPlan { threads: 0, ..sound.clone() },
            ReadersPlan { queries: 0, ..sound.clone() },
            ReadersPlan { writer_share: f64::NAN, ..sound },
        ] {
            assert!(matches!(bench_readers(&wrong, &mut Silent), Err(LabError::Plan(_))));
        }
    }
}
