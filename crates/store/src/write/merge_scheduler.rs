//! Decides which merge a thread works on: begins merges that are due, and continues open ones.
//! ```text
//! pick(layout, open jobs) -> open -> a submerge runs -> one step -> it waits again, or is done
//!                                                                   -> all done: installed
//! ```
//! Invariant: a failed merge has not changed the tree. All of its inputs still exist, and it starts
//! over.

use crate::error::Error;
use crate::events::Event;
use crate::plan::merge_job::{MergeJob, Target};
use crate::plan::pick::pick;
use crate::shared::merge_lanes::Lane;
use crate::shared::worker_pool::WorkKind;
use crate::sync::{Arc, Ordering, current, lock};
use crate::write::engine::Engine;
use crate::write::merge_plan::MergePlan;
use crate::write::open_merges::{AfterStep, Leftovers, MergeId};
use crate::write::submerge::{MergeOutput, Submerge};
use crate::write::work::Work;

impl Leftovers {
    /// Removes the tables. Value files that nobody holds any more are left to the next sweep.
    pub(crate) fn abandon(self, engine: &Engine) {
        self.submerges.into_iter().for_each(|submerge| submerge.abandon(engine));
        self.outputs.into_iter().for_each(|output| output.abandon(engine));
    }
}

/// A failed merge, how often it has failed so far, and its last error.
pub(crate) struct Failed {
    pub(crate) merge: MergeId,
    pub(crate) times: u32,
    pub(crate) error: Error,
}

impl Engine {
    /// Runs one step of merging. Begins a merge that is due, so that large ones do not delay small
    /// ones, or continues an open one. `choice` picks among them; a due merge is the last choice.
    /// Returns false if there is none, or other threads run all of them. A merge that fails stays
    /// open until it is released.
    pub(crate) fn merge_step(&self, choice: Option<usize>) -> Result<bool, Failed> {
        let mut work = lock(&self.work);
        let is_open = choice.is_some_and(|choice| choice < work.merges.waiting_count());
        let due = if is_open { None } else { self.next_merge(&work) };
        if let Some((job, lane)) = due.and_then(|job| Some((Arc::new(job), self.take_lane()?))) {
            // The merge of everything begins now, or was not requested.
            work.merge_everything = false;
            let id = work.merges.begin(Arc::clone(&job), lane);
            let step = MergeStep::begin(self, &mut work, id, None);
            drop(work);
            return self.begin_merge(step, job);
        }
        let Some((id, submerge)) = work.merges.take(choice) else { return Ok(false) };
        let step = MergeStep::begin(self, &mut work, id, Some(submerge));
        drop(work);
        let done = self.go_on_merging(step)?;
        self.sweep_or_call();
        Ok(done)
    }

    /// Takes the right to begin a merge. None: the store is called once a lane may be free.
    fn take_lane(&self) -> Option<Lane> {
        self.lanes.take(&self.workers, || self.lag().waits_for_merges(self.run_limits))
    }

    fn begin_merge(&self, mut step: MergeStep<'_>, job: Arc<MergeJob>) -> Result<bool, Failed> {
        let plan = MergePlan::new(self, job).map_err(|error| step.failed(error))?;
        lock(&self.work).merges.planned(step.id, Submerge::all(&Arc::new(plan)));
        step.is_done = true;
        Ok(true)
    }

    fn go_on_merging(&self, mut step: MergeStep<'_>) -> Result<bool, Failed> {
        let submerge = step.submerge.as_mut().expect("the caller has taken one");
        let done = submerge.step(self);
        let read = submerge.take_read();
        self.counters.merged_entries.fetch_add(read.entries, Ordering::Relaxed);
        let stepped = self.has_stepped(step, done);
        // Last: a clock that panics takes no output with it.
        self.rate_limiter.spend(read.bytes, self.env.clock.now());
        stepped
    }

    /// Goes on after a step of a submerge: it waits for its next one, or its merge is installed.
    fn has_stepped(
        &self,
        mut step: MergeStep<'_>,
        done: Result<Option<MergeOutput>, Error>,
    ) -> Result<bool, Failed> {
        let id = step.id;
        let done = done.map_err(|error| step.failed(error))?;
        let submerge = step.submerge.take().expect("as above");
        let plan = Arc::clone(submerge.plan());
        let mut work = lock(&self.work);
        let next = match done {
            None => work.merges.put_back(id, submerge),
            Some(output) => work.merges.ended(id, output),
        };
        drop(work);
        match next {
            AfterStep::GoOn(left) => {
                step.is_done = true;
                left.abandon(self);
            }
            AfterStep::Install(outputs) => {
                let bytes = outputs.iter().map(|output| output.run.bytes()).sum();
                plan.install(self, outputs).map_err(|error| step.failed(error))?;
                self.counters.merges.fetch_add(1, Ordering::Relaxed);
                lock(&self.work).merges.end(id);
                step.is_done = true;
                let (runs, time) = (plan.runs(), self.since(plan.begun()));
                self.env.tell(Event::Merged { runs, bytes, time });
            }
        }
        Ok(true)
    }

    /// Returns the merge that is due, if another one may be open.
    fn next_merge(&self, work: &Work) -> Option<MergeJob> {
        let options = &self.table_files.options;
        if work.merges.open_count() >= options.open_merges_max() {
            return None;
        }
        let layout = Arc::clone(&self.current.pin().layout);
        // The tree may be empty by now, if everything was deleted.
        let open = work.merges.jobs();
        let is_for_values = self.is_value_merge_due()
            && layout.last_merge.is_none()
            && open.iter().all(|job| job.target != Target::Last);
        let everything = (work.merge_everything || is_for_values) && !layout.runs.is_empty();
        pick(&layout, &open, options, everything)
    }

    /// Returns the number of steps to choose from: those of waiting submerges, and a merge that is
    /// due.
    pub(crate) fn merge_choices(&self, work: &Work) -> usize {
        work.merges.waiting_count() + usize::from(self.next_merge(work).is_some())
    }

    /// Whether a merge is open or due.
    pub(crate) fn has_merges(&self, work: &Work) -> bool {
        work.merges.open_count() > 0 || self.next_merge(work).is_some()
    }

    /// Returns the number of open merges.
    pub(crate) fn open_merges(&self) -> usize {
        lock(&self.work).merges.open_count()
    }

    /// Returns the runs that open merges have claimed.
    pub(crate) fn claimed_runs(&self) -> Vec<u64> {
        let jobs = lock(&self.work).merges.jobs();
        jobs.iter().flat_map(|job| job.inputs.iter().copied()).collect()
    }
}

/// A step of a merge that this thread runs. If a panic drops it, the merge has failed and may be
/// retried.
struct MergeStep<'c> {
    engine: &'c Engine,
    id: MergeId,
    submerge: Option<Submerge>,
    is_done: bool,
}

impl<'c> MergeStep<'c> {
    fn begin(engine: &'c Engine, work: &mut Work, id: MergeId, submerge: Option<Submerge>) -> Self {
        work.merging.push(current().id());
        MergeStep { engine, id, submerge, is_done: false }
    }

    fn failed(&mut self, error: Error) -> Failed {
        self.is_done = true;
        let (engine, merge) = (self.engine, self.id);
        let (times, mut left) = lock(&engine.work).merges.fail(merge, error.clone());
        left.submerges.extend(self.submerge.take());
        left.abandon(engine);
        engine.workers.call(&[WorkKind::Keep]);
        engine.work_has_changed();
        engine.env.tell_failure("a merge", &error);
        Failed { merge, times, error }
    }
}

impl Drop for MergeStep<'_> {
    fn drop(&mut self) {
        let mut work = lock(&self.engine.work);
        let own = work.merging.iter().position(|thread| *thread == current().id());
        own.map(|place| work.merging.swap_remove(place));
        let left = (!self.is_done).then(|| {
            let (_, left) = work.merges.fail(self.id, Error::panicked("a merge"));
            work.merges.release(self.id);
            left
        });
        drop(work);
        if let Some(mut left) = left {
            left.submerges.extend(self.submerge.take());
            left.abandon(self.engine);
            self.engine.workers.call(&[WorkKind::Keep]);
        }
        self.engine.work_has_changed();
    }
}
