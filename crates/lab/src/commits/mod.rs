//! Threads that run transactions on the real disk. Afterwards the transactions are replayed one by
//! one, in commit order.
//! ```text
//! seed -> round: options -> workers: transactions, counters, transfers | keeper: flush, merge
//!      -> replay, by the numbers of commits: every read must be what it was -> next round
//! ```
//! Invariant: a serializable transaction that writes has read the state at its commit. One of
//! snapshot isolation, or one that writes nothing, has read the state at its begin.

mod record;
mod replay;
#[cfg(test)]
mod tests;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use trommel::{Background, Db, Keyspace, KeyspaceOptions, SyncPolicy};

use crate::error::LabError;
use crate::keys::rng::{Rng, scramble};
use crate::keys::spread::spread_key as key;
use crate::progress::Progress;
use crate::stress::panics::caught;
use crate::stress::setup;
use crate::stress::world::Checked;
use record::{ACCOUNTS, BALANCE, COUNTERS, Record, SPACES, number};
use replay::Replayed;
use worker::Worker;

/// The most threads.
const THREADS_MAX: usize = 8;
/// How long the threads of a round work.
const ROUND: Duration = Duration::from_millis(700);
/// Rounds of a history; each opens the store with other options. A plan whose time is over ends a
/// history after the fewest.
const ROUNDS_MIN: u64 = 3;
const ROUNDS_MAX: u64 = 6;
/// The most transactions of a thread in a round, since all are kept until they are replayed.
const TRANSACTIONS_MAX: usize = 20_000;

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitsPlan {
    /// The first seed.
    pub seed: u64,
    /// Threads that run transactions; one more maintains the store.
    pub threads: usize,
    /// The time after which no history begins.
    pub time: Duration,
    /// The folder, new or empty.
    pub folder: PathBuf,
}

/// What ran, and what was found.
#[derive(Clone, Debug, Serialize)]
pub struct CommitsReport {
    /// The first seed.
    pub seed: u64,
    /// Threads that ran transactions.
    pub threads: usize,
    /// Histories that were completed.
    pub histories: u64,
    /// How often a store was opened.
    pub openings: u64,
    /// Committed transactions.
    pub commits: u64,
    /// Transactions that failed because of conflicts or deadlocks.
    pub conflicts: u64,
    /// Reads that were replayed and compared.
    pub reads: u64,
    /// What was added to counters by `fetch_add`, in total.
    pub adds: u64,
    /// Flushes and merges.
    pub flushes: u64,
    /// Merges.
    pub merges: u64,
    /// The time of the whole run.
    pub seconds: f64,
    /// The failure, if there was one.
    pub failure: Option<CommitsFailure>,
}

/// The failure of a history.
#[derive(Clone, Debug, Serialize)]
pub struct CommitsFailure {
    /// The history's seed.
    pub seed: u64,
    /// What differed.
    pub wrong: String,
    /// The options of the store.
    pub setup: String,
    /// The folder in which the store was left.
    pub left: PathBuf,
    /// The command that runs the same plan; threads interleave differently each time.
    pub again: String,
}

/// Runs histories until the time is over, or one fails.
///
/// # Errors
/// `Plan` if there are too many threads or none; `Folder` if the folder cannot be used.
pub fn stress_commits(
    plan: &CommitsPlan,
    progress: &mut dyn Progress,
) -> crate::error::Result<CommitsReport> {
    if !(1..=THREADS_MAX).contains(&plan.threads) {
        let problem = format!("{} threads: there may be 1 to {THREADS_MAX}", plan.threads);
        return Err(LabError::Plan(problem));
    }
    crate::kill::make_empty(&plan.folder)?;
    Ok(run(plan, progress))
}

fn run(plan: &CommitsPlan, progress: &mut dyn Progress) -> CommitsReport {
    let start = Instant::now();
    let mut report = CommitsReport {
        seed: plan.seed,
        threads: plan.threads,
        histories: 0,
        openings: 0,
        commits: 0,
        conflicts: 0,
        reads: 0,
        adds: 0,
        flushes: 0,
        merges: 0,
        seconds: 0.0,
        failure: None,
    };
    progress.stage("commits", 0);
    let mut seed = plan.seed;
    while start.elapsed() < plan.time && report.failure.is_none() {
        let mut history = History::new(plan, seed);
        let wrong = caught(|| history.run(&mut report, progress)).err();
        report.failure = wrong.map(|wrong| history.failure(wrong));
        seed = seed.wrapping_add(1);
    }
    report.seconds = start.elapsed().as_secs_f64();
    report
}

/// A store over several openings, and its expected contents.
struct History<'p> {
    plan: &'p CommitsPlan,
    seed: u64,
    rng: Rng,
    dir: PathBuf,
    /// The options of this round.
    setup: u64,
    state: Replayed,
}

/// An open store, and what its threads share.
pub(super) struct Shared {
    pub(super) db: Db,
    pub(super) spaces: Vec<Keyspace>,
    pub(super) bank: Keyspace,
    pub(super) counters: Keyspace,
    pub(super) is_over: AtomicBool,
    pub(super) commits: AtomicU64,
}

impl<'p> History<'p> {
    fn new(plan: &'p CommitsPlan, seed: u64) -> Self {
        let (rng, dir) = (Rng::new(scramble(seed)), plan.folder.join("store"));
        History { plan, seed, rng, dir, setup: 0, state: Replayed::default() }
    }

    fn failure(&self, wrong: String) -> CommitsFailure {
        let CommitsPlan { threads, time, .. } = self.plan;
        let (seed, seconds) = (self.seed, time.as_secs().max(1));
        CommitsFailure {
            seed,
            wrong,
            setup: setup::tell(&setup::options(self.setup)),
            left: self.plan.folder.clone(),
            again: format!(
                "trommel stress --transactions --threads {threads} --disk --seconds {seconds} --seed {seed}"
            ),
        }
    }

    fn run(&mut self, report: &mut CommitsReport, progress: &mut dyn Progress) -> Checked<()> {
        let start = Instant::now();
        for round in 0..ROUNDS_MAX {
            if round >= ROUNDS_MIN && start.elapsed() >= self.plan.time {
                break;
            }
            self.setup = self.rng.next_u64();
            let shared = self.open().map_err(|error| format!("open: {error}"))?;
            report.openings += 1;
            if round == 0 {
                self.fill(&shared).map_err(|error| format!("the first writes: {error}"))?;
            }
            self.check(&shared)?;
            self.work(&shared, report, progress)?;
            self.check(&shared)?;
            let report_of = |space: &Keyspace| space.stats().map_err(|error| error.to_string());
            for space in &shared.spaces {
                let stats = report_of(space)?;
                (report.flushes, report.merges) =
                    (report.flushes + stats.flushes, report.merges + stats.merges);
            }
            if self.rng.below(2) == 0 {
                shared.db.close().map_err(|error| format!("close: {error}"))?;
            }
        }
        report.histories += 1;
        std::fs::remove_dir_all(&self.dir).map_err(|error| format!("the store stays: {error}"))
    }

    fn open(&mut self) -> trommel::Result<Arc<Shared>> {
        let sync = [SyncPolicy::Never, SyncPolicy::Interval(Duration::from_millis(50))];
        let options = setup::options(self.setup)
            .background(Background::Threads(1 + self.rng.place(2)))
            .sync(sync[self.rng.place(2)])
            // Long enough that a slow disk is no error.
            .lock_timeout(Duration::from_secs(60))
            .merge_operator(record::mixed());
        let db = Db::open(&self.dir, options)?;
        let mut space = |name: &str| {
            let options = KeyspaceOptions::from(setup::options(self.rng.next_u64()));
            db.keyspace(name, options.merge_operator(record::mixed()))
        };
        let mut spaces = vec![Keyspace::clone(&db)];
        for number in 1..SPACES {
            spaces.push(space(&format!("space {number}"))?);
        }
        let (bank, counters) = (space("bank")?, space("counters")?);
        let (is_over, commits) = (AtomicBool::new(false), AtomicU64::new(0));
        Ok(Arc::new(Shared { db, spaces, bank, counters, is_over, commits }))
    }

    fn fill(&self, shared: &Shared) -> trommel::Result<()> {
        for account in 0..ACCOUNTS {
            shared.bank.put(key(account), BALANCE.to_le_bytes())?;
        }
        Ok(())
    }

    /// Lets all threads work for a round, and replays what they committed.
    fn work(
        &mut self,
        shared: &Arc<Shared>,
        report: &mut CommitsReport,
        progress: &mut dyn Progress,
    ) -> Checked<()> {
        let workers: Vec<_> = (0..self.plan.threads)
            .map(|_| {
                let (shared, rng) = (Arc::clone(shared), Rng::new(self.rng.next_u64()));
                std::thread::spawn(move || {
                    let worked = caught(|| {
                        let mut worker = Worker::new(&shared, rng);
                        worker.work(TRANSACTIONS_MAX)?;
                        Ok(worker.into_done())
                    });
                    // A worker that fails ends the round.
                    if worked.is_err() {
                        shared.is_over.store(true, Ordering::SeqCst);
                    }
                    worked
                })
            })
            .collect();
        let kept = self.keep(shared);
        shared.is_over.store(true, Ordering::SeqCst);
        let mut records: Vec<Record> = Vec::new();
        for worker in workers {
            let done = worker.join().map_err(|_| "a thread has panicked".to_string())??;
            report.conflicts += done.conflicts;
            report.adds += done.adds.iter().sum::<u64>();
            records.extend(done.records);
            self.state.add(&done.adds);
        }
        kept?;
        report.commits += records.len() as u64;
        progress.advance(records.len() as u64);
        report.reads += self.state.run_again(records)?;
        Ok(())
    }

    /// Flushes and merges, and checks the bank meanwhile.
    fn keep(&mut self, shared: &Shared) -> Checked<()> {
        let start = Instant::now();
        while start.elapsed() < ROUND && !shared.is_over.load(Ordering::SeqCst) {
            let space = &shared.spaces[self.rng.place(SPACES)];
            let done = match self.rng.below(8) {
                0 | 1 => space.flush(),
                2 => space.compact(),
                3 => shared.bank.flush(),
                4 => shared.counters.flush(),
                _ => check_bank(shared)?,
            };
            done.map_err(|error| format!("the keeper: {error}"))?;
        }
        Ok(())
    }

    /// Compares the whole contents of the store.
    fn check(&self, shared: &Shared) -> Checked<()> {
        let wrong = |error: trommel::Error| format!("read everything: {error}");
        check_bank(shared)?.map_err(wrong)?;
        for (number, space) in shared.spaces.iter().enumerate() {
            self.state.check_space(number, space.iter()).map_err(|wrong| {
                format!("key space {number} is not as its commits, one by one, leave it: {wrong}")
            })?;
        }
        for counter in 0..COUNTERS {
            let found = shared.counters.fetch_add(key(counter), 0).map_err(wrong)?;
            self.state.check_counter(counter, found)?;
        }
        Ok(())
    }
}

/// Checks that transfers kept the sum of all accounts.
fn check_bank(shared: &Shared) -> Checked<trommel::Result<()>> {
    let (mut sum, mut count) = (0, 0);
    for entry in shared.db.snapshot().of(&shared.bank).iter() {
        match entry {
            Ok((_, balance)) => (sum, count) = (sum + number(&balance), count + 1),
            Err(error) => return Ok(Err(error)),
        }
    }
    let expected = BALANCE * ACCOUNTS as i64;
    match (sum, count) == (expected, ACCOUNTS) {
        true => Ok(Ok(())),
        false => Err(format!("{count} accounts have {sum} in all, expected {expected}")),
    }
}
