//! Threads that write and read one store on the real disk, checked against a model, for any length
//! of time.
//! ```text
//! seed -> history: keys, lanes -> round: options -> lanes | readers | keeper -> laws -> next round
//! watchdog: is a thread stuck? does an acknowledged write wait too long for its sync?
//! ```
//! The seed determines what each thread does, but not how threads interleave. So a run cannot be
//! repeated exactly.
//!
//! Invariant: only one lane writes a key, so that lane knows the key's value exactly. The ledger
//! bounds what others may see.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::LabError;
use crate::progress::Progress;
use crate::stress::panics::caught;

pub use plan::{ThreadsFailure, ThreadsPlan, ThreadsReport};

use shared::{Counts, Sabotage, Whole, Wrong};

mod clock;

mod cost;

mod disk;

mod history;

mod keeper;

mod lane_thread;

mod lane_check;

mod ledger;

mod patterns;
mod plan;

mod posts;

mod process;

mod reader;

mod rest;

mod setup;

mod share;

mod shared;

#[cfg(test)]
mod tests;

/// How often the watchdog looks and progress is reported.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The most lanes: each has a number of 8 bits, and some keys.
const THREADS_MAX: usize = 8;

/// Runs histories until the time is over, or one fails. A thread that hangs is left behind.
///
/// # Errors
/// `Plan` if there are too many threads or none; `Folder` if the folder cannot be used.
pub fn stress_threads(
    plan: &ThreadsPlan,
    progress: &mut dyn Progress,
) -> crate::error::Result<ThreadsReport> {
    if !(1..=THREADS_MAX).contains(&plan.threads) {
        let problem = format!("{} threads: there may be 1 to {THREADS_MAX}", plan.threads);
        return Err(LabError::Plan(problem));
    }
    crate::kill::make_empty(&plan.folder)?;
    Ok(run(plan, None, progress))
}

fn run(plan: &ThreadsPlan, lie: Option<Sabotage>, progress: &mut dyn Progress) -> ThreadsReport {
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
    let mut reported = 0;
    while !conductor.is_finished() {
        std::thread::sleep(LOOK_AGAIN);
        if let Some(wrong) = whole.overdue() {
            whole.fail(wrong);
        }
        // A thread that hangs never ends.
        if whole.has_failed() && whole.posts.late(plan.patience).is_some() {
            break;
        }
        let operations = whole.counts.operations.get();
        progress.advance(operations - reported);
        reported = operations;
    }
    report(&whole, start.elapsed())
}

/// Runs history after history.
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
        backups: counts.backups.get(),
        shipments: counts.shipments.get(),
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
