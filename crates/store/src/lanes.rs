//! The merges that are open: who has which in hand, and which one is begun next.
//! ```text
//! next_beside(layout, claims) -> open -> in hand <-> idle -> installed: its claim is gone
//!                                           '------> failed: its claim stays until it is tried again
//! ```
//! Invariants: what is open has a claim, and no two claims share a run. A merge that has failed has not changed the tree: its inputs
//! are all there, and it begins anew.

use crate::background::Work;
use crate::claims::{Claim, next_beside};
use crate::core::Core;
use crate::error::Error;
use crate::merging::MergeTask;
use crate::partitions::RangeJob;
use crate::sync::{Arc, Ordering, lock};

/// The name of an open merge; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MergeId(u64);

/// The merges that are open.
#[derive(Default)]
pub(crate) struct Lanes {
    /// In the order in which they began.
    open: Vec<OpenMerge>,
    begun: u64,
    /// What has failed, until it succeeds or someone wants to know whether it still does.
    failures: Vec<Failure>,
}

struct OpenMerge {
    id: MergeId,
    claim: Claim,
    /// None: someone has it in hand, or it has failed.
    idle: Option<MergeTask>,
}

struct Failure {
    claim: Claim,
    what: String,
    /// How often.
    times: u32,
}

/// A merge that has failed, how often by now, and its last error.
pub(crate) struct Failed {
    pub(crate) merge: MergeId,
    pub(crate) times: u32,
    pub(crate) error: Error,
}

impl Core {
    /// One step of merging: begins a merge that is due, so that large ones do not hold up small ones, or goes on with one that is
    /// open; `choice` says with which, what is due being the last of them. False: there is none, or others have all in hand. A
    /// merge that fails stays open until someone releases it.
    pub(crate) fn merge_step(&self, choice: Option<usize>) -> Result<bool, Failed> {
        let mut work = lock(&self.work);
        let is_open = choice.is_some_and(|choice| choice < work.merges.idle_count());
        let due = if is_open { None } else { self.next_merge(&work) };
        if let Some((job, is_everything)) = due {
            work.merge_everything &= !is_everything;
            let id = work.merges.begin(Claim::of(&job));
            drop(work);
            return self.begin_merge(id, job);
        }
        let Some((id, task)) = work.merges.take(choice) else { return Ok(false) };
        drop(work);
        self.go_on_merging(id, task)
    }

    fn begin_merge(&self, id: MergeId, job: RangeJob) -> Result<bool, Failed> {
        let task = MergeTask::new(self, job).map_err(|error| self.merge_failed(id, error))?;
        lock(&self.work).merges.put_back(id, task);
        self.work_changed.notify_all();
        Ok(true)
    }

    fn go_on_merging(&self, id: MergeId, mut task: MergeTask) -> Result<bool, Failed> {
        let done = task.step(self);
        self.pacer.spend(task.take_read_bytes(), self.env.clock.now());
        match done {
            Ok(true) => {
                self.counters.merges.fetch_add(1, Ordering::Relaxed);
                lock(&self.work).merges.end(id);
            }
            Ok(false) => lock(&self.work).merges.put_back(id, task),
            Err(error) => return Err(self.merge_failed(id, error)),
        }
        self.work_changed.notify_all();
        Ok(true)
    }

    fn merge_failed(&self, merge: MergeId, error: Error) -> Failed {
        let times = lock(&self.work).merges.fail(merge, error.to_string());
        self.work_changed.notify_all();
        Failed { merge, times, error }
    }

    /// The merge that is due, if there is a lane for it, and whether it is the one of everything.
    fn next_merge(&self, work: &Work) -> Option<(RangeJob, bool)> {
        let options = &self.shelf.options;
        if work.merges.open_count() >= options.merge_lanes() {
            return None;
        }
        let layout = Arc::clone(&self.current.pin().layout);
        // Everything may have been deleted since someone asked.
        let everything = work.merge_everything && !layout.runs.is_empty();
        let (schedule, claims) = (options.schedule(), work.merges.claims());
        next_beside(&layout, &claims, (&schedule, options.division()), everything)
    }

    /// How many merges there are of which a step can be done now.
    pub(crate) fn merge_choices(&self, work: &Work) -> usize {
        work.merges.idle_count() + usize::from(self.next_merge(work).is_some())
    }

    /// Whether a merge is open or due.
    pub(crate) fn has_merges(&self, work: &Work) -> bool {
        work.merges.open_count() > 0 || self.next_merge(work).is_some()
    }

    /// How many merges are open.
    pub(crate) fn open_merges(&self) -> usize {
        lock(&self.work).merges.open_count()
    }
}

impl Lanes {
    pub(crate) fn open_count(&self) -> usize {
        self.open.len()
    }

    /// What is not to be merged by anyone else.
    pub(crate) fn claims(&self) -> Vec<Claim> {
        self.open.iter().map(|open| open.claim.clone()).collect()
    }

    /// Opens a merge, which is in hand.
    pub(crate) fn begin(&mut self, claim: Claim) -> MergeId {
        let id = MergeId(self.begun);
        self.begun += 1;
        self.open.push(OpenMerge { id, claim, idle: None });
        id
    }

    /// Takes in hand what is idle: of that, in the order in which it began, number `choice`, counted round; None: what began last,
    /// which is the least to do, mostly, and has newer runs wait for it.
    pub(crate) fn take(&mut self, choice: Option<usize>) -> Option<(MergeId, MergeTask)> {
        let idle = || self.open.iter().enumerate().filter(|(_, open)| open.idle.is_some());
        let count = idle().count();
        let nth = choice.map_or(count.checked_sub(1), |choice| choice.checked_rem(count))?;
        let (at, _) = idle().nth(nth)?;
        let open = &mut self.open[at];
        open.idle.take().map(|task| (open.id, task))
    }

    /// How many merges wait to be taken in hand.
    pub(crate) fn idle_count(&self) -> usize {
        self.open.iter().filter(|open| open.idle.is_some()).count()
    }

    /// Someone has done a step of it.
    pub(crate) fn put_back(&mut self, id: MergeId, task: MergeTask) {
        if let Some(open) = self.find(id) {
            open.idle = Some(task);
        }
    }

    /// It was installed. What has failed before and waits for nobody to try it again may not be wanted any more.
    pub(crate) fn end(&mut self, id: MergeId) {
        self.close(id);
        let open = &self.open;
        let is_open = |failed: &Claim| open.iter().any(|o| o.claim.shares_a_run(failed.inputs()));
        self.failures.retain(|failure| is_open(&failure.claim));
    }

    /// It has failed. Its claim stays, so that nobody else tries the same; how often it has failed by now.
    pub(crate) fn fail(&mut self, id: MergeId, what: String) -> u32 {
        let Some(claim) = self.find(id).map(|open| open.claim.clone()) else { return 0 };
        let same = |failure: &&mut Failure| failure.claim.shares_a_run(claim.inputs());
        match self.failures.iter_mut().find(same) {
            Some(failure) => {
                (failure.times, failure.what) = (failure.times.saturating_add(1), what);
                failure.times
            }
            None => {
                self.failures.push(Failure { claim, what, times: 1 });
                1
            }
        }
    }

    /// What has failed may be tried again.
    pub(crate) fn release(&mut self, id: MergeId) {
        self.close(id);
    }

    /// Whether it has failed, and nobody has forgotten that.
    pub(crate) fn has_failed(&self, id: MergeId) -> bool {
        let open = self.open.iter().find(|open| open.id == id);
        open.is_some_and(|open| {
            self.failures.iter().any(|failure| failure.claim.shares_a_run(open.claim.inputs()))
        })
    }

    /// The first failure that is known.
    pub(crate) fn failure(&self) -> Option<&String> {
        self.failures.first().map(|failure| &failure.what)
    }

    /// What has failed is to be tried again now.
    pub(crate) fn forget_failures(&mut self) {
        self.failures.clear();
    }

    fn find(&mut self, id: MergeId) -> Option<&mut OpenMerge> {
        self.open.iter_mut().find(|open| open.id == id)
    }

    fn close(&mut self, id: MergeId) -> Option<OpenMerge> {
        let at = self.open.iter().position(|open| open.id == id)?;
        Some(self.open.remove(at))
    }
}
