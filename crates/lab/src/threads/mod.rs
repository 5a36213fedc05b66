//! Threads that write and read one store on the real disk, beside a model, for as long as one likes.
//! ```text
//! seed -> history: keys, lanes -> round: options -> lanes | readers | keeper -> laws -> next round
//! watchdog: who is at one thing for too long? which acknowledged write waits too long for its sync?
//! ```
//! What each thread does follows from the seed; how they interleave does not, so a run cannot be repeated to the letter.
//!
//! Invariant: a lane alone writes its keys, so what they are is known exactly; what others may see of them, from the ledger.

mod clock;
mod cost;
mod disk;
mod history;
mod keeper;
mod lane;
mod lane_check;
mod ledger;
mod patterns;
mod posts;
mod process;
mod reader;
mod rest;
mod setup;
mod share;
mod shared;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::error::LabError;
use crate::progress::Progress;
use crate::stress::panics::caught;
use shared::{Counts, Lie, SYNC_SLACK, Whole, Wrong};

/// How often the watchdog looks, and the listener hears of progress.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Nobody may be at one thing for longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Each has a number of 8 bits, and some keys.
const THREADS_MAX: usize = 8;

/// What is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadsPlan {
    /// The first seed.
    pub seed: u64,
    /// Threads that write; beside them half as many read, and one maintains the store.
    pub threads: usize,
    /// No history begins after this time, and the last is cut short.
    pub time: Duration,
    /// The folder, new or empty: it takes the store and its checkpoints.
    pub folder: PathBuf,
    /// Nobody else in this process has stores: then no thread of one may be left.
    pub alone: bool,
    /// Nobody may be at one thing for longer.
    patience: Duration,
    /// How long after the interval a sync may begin.
    sync_slack: Duration,
}

impl ThreadsPlan {
    /// Histories from a seed on, in a folder that is new or empty, for some time.
    pub fn new(seed: u64, threads: usize, time: Duration, folder: PathBuf) -> Self {
        let (patience, sync_slack) = (PATIENCE, SYNC_SLACK);
        ThreadsPlan { seed, threads, time, folder, alone: false, patience, sync_slack }
    }
}

/// What was run, and what was found.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadsReport {
    /// The first seed.
    pub seed: u64,
    /// Threads that wrote.
    pub threads: usize,
    /// Histories that came to their end.
    pub histories: u64,
    /// How often a store was opened.
    pub openings: u64,
    /// Operations of the threads that write.
    pub operations: u64,
    /// Puts and deletions, each key of a batch by itself.
    pub writes: u64,
    /// Answers that were compared.
    pub answers: u64,
    /// Flushes.
    pub flushes: u64,
    /// Merges.
    pub merges: u64,
    /// Checkpoints that were made, opened and compared.
    pub checkpoints: u64,
    /// Stores that were verified, most of them while others wrote.
    pub verified: u64,
    /// How often a store came to rest, and had no file too many.
    pub rests: u64,
    /// The most that the first steps of a scan have cost, in milliseconds of a processor.
    pub step_cpu_ms_max: f64,
    /// The longest that a store at rest had files too many, in milliseconds.
    pub rest_ms_max: f64,
    /// The longest that a log under `Sync::Interval` has waited for a sync to begin, in milliseconds.
    pub unsynced_ms_max: f64,
    /// The most memory of the process between two openings, in bytes.
    pub resident_bytes_max: u64,
    /// The most that files of tables had, in bytes.
    pub table_bytes_max: u64,
    /// Time that all of it took.
    pub seconds: f64,
    /// The first thing that was wrong. None: nothing.
    pub failure: Option<ThreadsFailure>,
}

/// What was wrong.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadsFailure {
    /// The seed of the history.
    pub seed: u64,
    /// What.
    pub wrong: String,
    /// The options of the store then.
    pub setup: String,
    /// What each thread was doing.
    pub threads: Vec<String>,
    /// Where the store is.
    pub left: PathBuf,
    /// The command that runs the same plan again; threads will interleave in another way.
    pub again: String,
}

/// Runs histories until the time is over, or something is wrong. When a thread hangs, it is left behind.
///
/// # Errors
/// `Plan` if there are too many threads or none; `Folder` if the folder cannot be used.
pub fn stress_threads(
    plan: &ThreadsPlan,
    progress: &mut dyn Progress,
) -> crate::Result<ThreadsReport> {
    if !(1..=THREADS_MAX).contains(&plan.threads) {
        let problem = format!("{} threads: there may be 1 to {THREADS_MAX}", plan.threads);
        return Err(LabError::Plan(problem));
    }
    crate::kill::make_empty(&plan.folder)?;
    Ok(run(plan, None, progress))
}

fn run(plan: &ThreadsPlan, lie: Option<Lie>, progress: &mut dyn Progress) -> ThreadsReport {
    let start = Instant::now();
    let whole = Arc::new(Whole {
        plan: plan.clone(),
        lie,
        counts: Counts::default(),
        posts: Default::default(),
        deadline: start + plan.time,
        under_way: Mutex::default(),
        failure: Mutex::default(),
    });
    let conductor = {
        let whole = Arc::clone(&whole);
        std::thread::spawn(move || conduct(&whole))
    };
    progress.stage("operations", 0);
    let mut told = 0;
    while !conductor.is_finished() {
        std::thread::sleep(LOOK_AGAIN);
        if let Some(wrong) = whole.overdue() {
            whole.fail(wrong);
        }
        // Who hangs never ends.
        if whole.has_failed() && whole.posts.late(plan.patience).is_some() {
            break;
        }
        let operations = whole.counts.operations.get();
        progress.advance(operations - told);
        told = operations;
    }
    report(&whole, start.elapsed())
}

/// History after history.
fn conduct(whole: &Arc<Whole>) {
    let post = whole.posts.add("conductor".into());
    let mut seed = whole.plan.seed;
    while !whole.is_late() && !whole.has_failed() {
        if let Err(wrong) = caught(|| history::run(whole, seed, &post)) {
            whole.fail(wrong);
        }
        seed = seed.wrapping_add(1);
    }
    post.set(posts::Doing::Rest);
    *whole.under_way.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

fn report(whole: &Whole, time: Duration) -> ThreadsReport {
    let (plan, counts) = (&whole.plan, &whole.counts);
    let milliseconds = |micro: u64| micro as f64 / 1e3;
    let failure = whole.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
    ThreadsReport {
        seed: plan.seed,
        threads: plan.threads,
        histories: counts.histories.get(),
        openings: counts.openings.get(),
        operations: counts.operations.get(),
        writes: counts.writes.get(),
        answers: counts.answers.get(),
        flushes: counts.flushes.get(),
        merges: counts.merges.get(),
        checkpoints: counts.checkpoints.get(),
        verified: counts.verified.get(),
        rests: counts.rests.get(),
        step_cpu_ms_max: milliseconds(counts.step_cpu_us.get()),
        rest_ms_max: milliseconds(counts.rest_us.get()),
        unsynced_ms_max: milliseconds(counts.unsynced_us.get()),
        resident_bytes_max: counts.resident_bytes.get(),
        table_bytes_max: counts.table_bytes.get(),
        seconds: time.as_secs_f64(),
        failure: failure.map(|wrong| tell(plan, wrong)),
    }
}

fn tell(plan: &ThreadsPlan, Wrong { seed, what, setup, threads }: Wrong) -> ThreadsFailure {
    let (count, time) = (plan.threads, plan.time.as_secs().max(1));
    let again = format!("trommel stress --threads {count} --disk --seconds {time} --seed {seed}");
    ThreadsFailure { seed, wrong: what, setup, threads, left: plan.folder.clone(), again }
}
