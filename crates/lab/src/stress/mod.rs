//! Deterministic simulation. A seed gives one history of a store on a simulated disk, with crashes,
//! faults and changes of options. After every step, the store is compared with a model.
//! ```text
//! seed -> history -> world: store | model -> fine, or what differs -> shortened history
//! seeds in parallel, each in one thread from its beginning to its end
//! ```
//! Invariant: the same seed and number of steps always give the same history and the same answers.

mod backup_book;
mod backups;
mod beside;
pub(crate) mod check;
mod copies;
pub(crate) mod draw;
mod followers;
pub(crate) mod held;
pub(crate) mod held_list;
mod journal;
pub(crate) mod keys;
pub(crate) mod model;
pub(crate) mod operands;
pub(crate) mod operation;
pub(crate) mod panics;
pub(crate) mod ranges;
mod rot;
pub(crate) mod setup;
mod shorten;
pub(crate) mod simulation;
mod transactions;
pub(crate) mod values;
pub(crate) mod world;
pub(crate) mod writer;

#[cfg(test)]
mod below;
#[cfg(test)]
mod metamorphic;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use draw::History;
use operation::StressStep;
use serde::Serialize;
use simulation::{Failing, Simulation, run_seed, run_steps};
use world::{Checked, Done, Door, World};

use crate::progress::Progress;

/// How long a failing history is shortened.
const SHORTEN_TIME: Duration = Duration::from_secs(60);
/// How often progress is reported.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// The kind of histories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryKind {
    /// One tree, with all operations on it.
    #[default]
    Tree,
    /// Several key spaces, concurrent transactions, and conditional writes.
    Transactions,
}

/// The histories to run.
#[derive(Clone, Debug, PartialEq)]
pub struct StressPlan {
    /// The first seed.
    pub seed: u64,
    /// How many seeds, from the first on; None: no limit, and there must be a time.
    pub seeds: Option<u64>,
    /// Steps of each history.
    pub steps: u32,
    /// The time after which no history begins.
    pub time: Option<Duration>,
    /// The kind of histories.
    pub kind: HistoryKind,
}

/// What ran, and what was found.
#[derive(Clone, Debug, Serialize)]
pub struct StressReport {
    /// The first seed.
    pub seed: u64,
    /// Histories that were completed.
    pub seeds: u64,
    /// Steps of each history.
    pub steps: u32,
    /// Operations in all.
    pub operations: u64,
    /// Answers that were compared with the model.
    pub answers: u64,
    /// Errors while the disk could fail.
    pub errors: u64,
    /// How often a store was reopened.
    pub reopened: u64,
    /// How often that followed a power cut.
    pub power_cuts: u64,
    /// Copies with a flipped bit that were opened and read.
    pub rotten: u64,
    /// Checkpoints that were made and compared with the store.
    pub checkpoints: u64,
    /// Copies that were repaired, with damage or without.
    pub repairs: u64,
    /// Followers that were opened.
    pub followers: u64,
    /// Reads of followers that were compared with the model at their number.
    pub followed: u64,
    /// Reads of followers, and shipments, that failed because files were removed.
    pub gone: u64,
    /// Generations of backups.
    pub backups: u64,
    /// Shipments of changes.
    pub shipped: u64,
    /// Generations and later states that were restored and compared with the model.
    pub restored: u64,
    /// Flushes of all stores.
    pub flushes: u64,
    /// Merges of all stores.
    pub merges: u64,
    /// Committed transactions.
    pub commits: u64,
    /// Transactions that had to fail, and did.
    pub conflicts: u64,
    /// Reads for update and writes that were refused because a transaction had locked a key.
    pub lock_timeouts: u64,
    /// Operations of the simulated disks.
    pub disk_operations: u64,
    /// The time of the whole run.
    pub seconds: f64,
    /// Operations per second, of all threads together.
    pub ops_per_s: f64,
    /// The first failure, if there was one.
    pub failure: Option<StressFailure>,
}

/// A failing history.
#[derive(Clone, Debug, Serialize)]
pub struct StressFailure {
    /// Its seed.
    pub seed: u64,
    /// The step after which the failure was found.
    pub step: u32,
    /// What differed.
    pub wrong: String,
    /// The options with which the store was first opened.
    pub setup: String,
    /// The steps that are needed for the failure, as text.
    pub history: Vec<String>,
    /// What differs when only these steps run.
    pub wrong_in_short: String,
    /// The command that repeats the failure.
    pub again: String,
}

/// Runs histories on all threads of the machine until one fails.
///
/// # Errors
/// `Plan` if the plan has no end.
pub fn stress(
    plan: &StressPlan,
    progress: &mut dyn Progress,
) -> crate::error::Result<StressReport> {
    if plan.seeds.is_none() && plan.time.is_none() {
        return Err(crate::error::LabError::Plan(
            "without a number of seeds there must be a time".into(),
        ));
    }
    Ok(run(plan, open_door, progress))
}

fn open_door(disk: trommel::storage::Memory) -> Arc<dyn trommel::storage::Storage> {
    Arc::new(disk)
}

/// The state that the threads share.
struct SharedWork<'p, H: Simulation> {
    plan: &'p StressPlan,
    door: Door,
    start: Instant,
    begun: AtomicU64,
    operations: AtomicU64,
    failed: AtomicBool,
    results: Mutex<Results<H::Step>>,
}

struct Results<S> {
    done: Done,
    seeds: u64,
    failure: Option<(u64, Failing<S>)>,
}

fn run(plan: &StressPlan, door: Door, progress: &mut dyn Progress) -> StressReport {
    match plan.kind {
        HistoryKind::Tree => run_all::<History>(plan, door, progress),
        HistoryKind::Transactions => run_all::<transactions::History>(plan, door, progress),
    }
}

fn run_all<H: Simulation>(
    plan: &StressPlan,
    door: Door,
    progress: &mut dyn Progress,
) -> StressReport {
    let results = Results { done: Done::default(), seeds: 0, failure: None };
    let shared = SharedWork::<H> {
        plan,
        door,
        start: Instant::now(),
        begun: AtomicU64::new(0),
        operations: AtomicU64::new(0),
        failed: AtomicBool::new(false),
        results: Mutex::new(results),
    };
    let total = plan.seeds.unwrap_or(0) * u64::from(plan.steps);
    progress.stage("operations", total);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| shared.work())).collect();
        let mut reported = 0;
        while !workers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            std::thread::sleep(TELL_EVERY);
            let operations = shared.operations.load(Ordering::Relaxed);
            progress.advance(operations - reported);
            reported = operations;
        }
    });
    shared.report()
}

impl<H: Simulation> SharedWork<'_, H> {
    /// Runs history after history on one thread.
    fn work(&self) {
        while let Some(seed) = self.next_seed() {
            let outcome = run_seed::<H>(seed, self.plan.steps, self.door, &self.operations);
            let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
            match outcome {
                Ok(done) => results.add(&done),
                Err(failing) => {
                    self.failed.store(true, Ordering::Relaxed);
                    // The failure with the smallest seed counts, whichever thread was faster.
                    if results.failure.as_ref().is_none_or(|(other, _)| seed < *other) {
                        results.failure = Some((seed, failing));
                    }
                }
            }
        }
    }

    fn next_seed(&self) -> Option<u64> {
        let late = self.plan.time.is_some_and(|time| self.start.elapsed() >= time);
        if late || self.failed.load(Ordering::Relaxed) {
            return None;
        }
        let place = self.begun.fetch_add(1, Ordering::Relaxed);
        let wanted = self.plan.seeds.is_none_or(|seeds| place < seeds);
        wanted.then(|| self.plan.seed.wrapping_add(place))
    }

    fn report(self) -> StressReport {
        let results = self.results.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (done, seconds) = (results.done, self.start.elapsed().as_secs_f64());
        let StressPlan { seed, steps, .. } = *self.plan;
        let tell = |(seed, failing)| tell_failure::<H>(seed, steps, self.door, failing);
        StressReport {
            seed,
            seeds: results.seeds,
            steps,
            operations: done.operations,
            answers: done.answers,
            errors: done.errors,
            reopened: done.reopened,
            power_cuts: done.power_cuts,
            rotten: done.rotten,
            checkpoints: done.checkpoints,
            repairs: done.repairs,
            followers: done.followers,
            followed: done.followed,
            gone: done.gone,
            backups: done.backups,
            shipped: done.shipped,
            restored: done.restored,
            flushes: done.flushes,
            merges: done.merges,
            commits: done.commits,
            conflicts: done.conflicts,
            lock_timeouts: done.lock_timeouts,
            disk_operations: done.disk_operations,
            seconds,
            ops_per_s: done.operations as f64 / seconds,
            failure: results.failure.map(tell),
        }
    }
}

impl<S> Results<S> {
    fn add(&mut self, done: &Done) {
        let sum = &mut self.done;
        self.seeds += 1;
        sum.operations += done.operations;
        sum.answers += done.answers;
        sum.errors += done.errors;
        sum.reopened += done.reopened;
        sum.power_cuts += done.power_cuts;
        sum.rotten += done.rotten;
        sum.checkpoints += done.checkpoints;
        sum.repairs += done.repairs;
        sum.followers += done.followers;
        sum.followed += done.followed;
        sum.gone += done.gone;
        sum.backups += done.backups;
        sum.shipped += done.shipped;
        sum.restored += done.restored;
        sum.flushes += done.flushes;
        sum.merges += done.merges;
        sum.disk_operations += done.disk_operations;
        sum.commits += done.commits;
        sum.conflicts += done.conflicts;
        sum.lock_timeouts += done.lock_timeouts;
    }
}

impl Simulation for History {
    type Step = StressStep;
    type World<'h> = World<'h>;

    fn draw(seed: u64, steps: u32) -> Self {
        draw::history(seed, steps)
    }

    fn steps(&self) -> &[StressStep] {
        &self.steps
    }

    fn number(step: &StressStep) -> u32 {
        step.number
    }

    fn simpler(step: &StressStep) -> Vec<StressStep> {
        let numbered = |operation| StressStep { number: step.number, operation };
        shorten::simpler(&step.operation).into_iter().map(numbered).collect()
    }

    fn begin(&self, door: Door) -> Checked<World<'_>> {
        World::new(&self.keys, self.setup, door)
    }

    fn apply(world: &mut World<'_>, step: &StressStep) -> Checked<()> {
        world.apply(step)?;
        world.check_after(step)
    }

    fn finish(world: World<'_>) -> Checked<Done> {
        world.finish()
    }

    fn tell(&self, step: &StressStep) -> String {
        operation::tell(step, &self.keys)
    }

    fn tell_setup(&self) -> String {
        let options = setup::of_tree(self.setup);
        format!("{}, logs of {} bytes kept", setup::tell(&options), options.kept_log_bytes)
    }

    fn again(seed: u64, steps: u32) -> String {
        format!("trommel stress --seed {seed} --steps {steps}")
    }
}

/// Shortens a failing history, and describes it.
fn tell_failure<H: Simulation>(
    seed: u64,
    steps: u32,
    door: Door,
    failing: Failing<H::Step>,
) -> StressFailure {
    let history = H::draw(seed, steps);
    let (step, wrong) = (failing.at, failing.wrong.clone());
    let nobody = AtomicU64::new(0);
    let short = shorten::shorten::<H>(failing, SHORTEN_TIME, &mut |steps| {
        run_steps(&history, steps, door, &nobody).err()
    });
    StressFailure {
        seed,
        step,
        wrong,
        setup: history.tell_setup(),
        history: short.steps.iter().map(|step| history.tell(step)).collect(),
        wrong_in_short: short.wrong,
        again: H::again(seed, steps),
    }
}
