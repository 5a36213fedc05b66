//! The open merges and the submerges of each: which of them wait, and which a thread works on.
//! ```text
//! begin -> open: its submerges run <-> wait -> all done -> installed: its claim is gone
//!               '------> failed: its claim stays until it is tried again
//!               '------> cancelled: its claim is gone when none of its submerges runs
//! ```
//! Invariant: no two open merges share a run.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::plan::merge_job::MergeJob;
use crate::shared::merge_lanes::Lane;
use crate::shared::worker_pool::{RETRY_FIRST, RETRY_LONGEST};
use crate::sync::Arc;
use crate::write::submerge::{MergeOutput, Submerge};

/// The name of an open merge; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MergeId(u64);

/// The merges that are open.
#[derive(Default)]
pub(crate) struct OpenMerges {
    /// In the order in which they began.
    open: Vec<OpenMerge>,
    begun: u64,
    /// Failures that were neither followed by a success nor forgotten.
    failures: Vec<Failure>,
}

struct OpenMerge {
    id: MergeId,
    job: Arc<MergeJob>,
    /// How many submerges there are. None: it is still being planned.
    submerges: Option<usize>,
    /// Those that wait for a thread, in key order.
    waiting: Vec<Submerge>,
    /// How many threads are at a step of one; at first, one that plans the merge.
    running: usize,
    /// What the submerges that are done have written.
    outputs: Vec<MergeOutput>,
    has_failed: bool,
    /// It has failed, and may be tried again; or it was cancelled.
    is_released: bool,
    /// It has failed, and may be tried again from then on.
    retry: Option<Instant>,
    /// None: it has failed.
    lane: Option<Lane>,
}

/// What is to be done after a step.
pub(crate) enum Next {
    /// Other steps follow. What is left is abandoned, if the merge has failed elsewhere.
    GoOn(Leftovers),
    /// All submerges are done.
    Install(Vec<MergeOutput>),
}

/// What a merge that has failed had written.
#[derive(Default)]
pub(crate) struct Leftovers {
    pub(super) submerges: Vec<Submerge>,
    pub(super) outputs: Vec<MergeOutput>,
}

struct Failure {
    job: Arc<MergeJob>,
    error: Error,
    /// How often.
    times: u32,
}

impl OpenMerges {
    /// Closes all merges. What they had written.
    pub(super) fn close_all(&mut self) -> Leftovers {
        let mut left = Leftovers::default();
        self.open.drain(..).for_each(|mut open| open.leave_to(&mut left));
        left
    }

    /// No thread goes on with these merges: those of other stores may begin.
    pub(super) fn give_back_lanes(&mut self) {
        self.open.iter_mut().for_each(|open| open.lane = None);
    }

    pub(crate) fn open_count(&self) -> usize {
        self.open.len()
    }

    /// The jobs of the open merges, whose runs no other merge may take.
    pub(crate) fn jobs(&self) -> Vec<Arc<MergeJob>> {
        self.open.iter().map(|open| Arc::clone(&open.job)).collect()
    }

    /// Opens a merge that is still to be planned.
    pub(crate) fn begin(&mut self, job: Arc<MergeJob>, lane: Lane) -> MergeId {
        let id = MergeId(self.begun);
        self.begun += 1;
        self.open.push(OpenMerge {
            id,
            job,
            submerges: None,
            waiting: Vec::new(),
            running: 1,
            outputs: Vec::new(),
            has_failed: false,
            is_released: false,
            retry: None,
            lane: Some(lane),
        });
        id
    }

    /// A merge was planned. Its submerges are dropped if it was cancelled meanwhile.
    pub(crate) fn planned(&mut self, id: MergeId, submerges: Vec<Submerge>) {
        if let Some(open) = self.find(id) {
            let waiting = if open.has_failed { Vec::new() } else { submerges };
            (open.submerges, open.waiting, open.running) = (Some(waiting.len()), waiting, 0);
        }
        self.close_released();
    }

    /// Cancels all open merges: the merge that comes takes their runs, too. One that is being
    /// installed is not stopped any more; one that has failed waits as before. What they had
    /// written.
    pub(crate) fn cancel(&mut self) -> Leftovers {
        let mut left = Leftovers::default();
        for open in self.open.iter_mut().filter(|open| !open.has_failed) {
            (open.has_failed, open.is_released) = (true, true);
            open.leave_to(&mut left);
        }
        self.close_released();
        left
    }

    /// Takes a submerge that waits. `choice` counts them round, by the order in which merges began
    /// and then by keys. None: the first of the merge that began last, which mostly is the smallest
    /// and delays newer runs.
    pub(crate) fn take(&mut self, choice: Option<usize>) -> Option<(MergeId, Submerge)> {
        let Some(choice) = choice else {
            let newest = self.open.iter_mut().rev().find(|open| !open.waiting.is_empty());
            return newest.map(|open| open.take(0));
        };
        let mut nth = choice.checked_rem(self.waiting_count())?;
        for open in &mut self.open {
            match nth.checked_sub(open.waiting.len()) {
                None => return Some(open.take(nth)),
                Some(behind) => nth = behind,
            }
        }
        None
    }

    /// How many submerges wait for a thread.
    pub(crate) fn waiting_count(&self) -> usize {
        self.open.iter().map(|open| open.waiting.len()).sum()
    }

    /// A step of a submerge is done, and there are more.
    pub(crate) fn put_back(&mut self, id: MergeId, submerge: Submerge) -> Next {
        let Some(open) = self.find(id) else { return Next::GoOn(Leftovers::default()) };
        let at = open.waiting.partition_point(|other| other.place() < submerge.place());
        open.waiting.insert(at, submerge);
        self.step_ended(id)
    }

    /// A submerge is done. After the last one the merge still counts as running: it is installed
    /// next.
    pub(crate) fn ended(&mut self, id: MergeId, output: MergeOutput) -> Next {
        let Some(open) = self.find(id) else { return Next::GoOn(Leftovers::default()) };
        open.outputs.push(output);
        if Some(open.outputs.len()) == open.submerges {
            return Next::Install(std::mem::take(&mut open.outputs));
        }
        self.step_ended(id)
    }

    fn step_ended(&mut self, id: MergeId) -> Next {
        let mut left = Leftovers::default();
        if let Some(open) = self.find(id) {
            open.running -= 1;
            if open.has_failed {
                open.leave_to(&mut left);
            }
        }
        self.close_released();
        Next::GoOn(left)
    }

    /// A merge was installed. Failures of merges that are not open any more are forgotten.
    pub(crate) fn end(&mut self, id: MergeId) {
        self.open.retain(|open| open.id != id);
        let open = &self.open;
        self.failures.retain(|failure| open.iter().any(|o| o.job.shares_a_run(&failure.job)));
    }

    /// A running step of a merge has failed. Its claim stays, so that no other thread tries the
    /// same. How often it has failed by now, and what it had written.
    pub(crate) fn fail(&mut self, id: MergeId, error: Error) -> (u32, Leftovers) {
        let Some(open) = self.find(id) else { return Default::default() };
        let (job, is_first) = (Arc::clone(&open.job), !open.has_failed);
        let is_wanted = is_first || !open.is_released;
        (open.has_failed, open.lane) = (true, None);
        open.running -= 1;
        let mut left = Leftovers::default();
        open.leave_to(&mut left);
        let times = if is_wanted { self.note_failure(job, error, is_first) } else { 0 };
        self.close_released();
        (times, left)
    }

    /// `is_new`: no other submerge of the merge has just failed.
    fn note_failure(&mut self, job: Arc<MergeJob>, error: Error, is_new: bool) -> u32 {
        let is_same = |failure: &&mut Failure| failure.job.shares_a_run(&job);
        let Some(failure) = self.failures.iter_mut().find(is_same) else {
            self.failures.push(Failure { job, error, times: 1 });
            return 1;
        };
        failure.error = error;
        failure.times = failure.times.saturating_add(is_new.into());
        failure.times
    }

    /// A merge that has failed may be tried again, when none of its submerges runs any more.
    pub(crate) fn release(&mut self, id: MergeId) {
        if let Some(open) = self.find(id) {
            open.is_released = true;
        }
        self.close_released();
    }

    /// A merge that has failed so often in a row is left alone for a time, which this returns.
    pub(crate) fn pause(&mut self, id: MergeId, times: u32, now: Instant) -> Duration {
        let doubled = 1u32.checked_shl(times.saturating_sub(1)).unwrap_or(u32::MAX);
        let pause = RETRY_FIRST.saturating_mul(doubled).min(RETRY_LONGEST);
        if let Some(open) = self.find(id) {
            open.retry = Some(now + pause);
        }
        pause
    }

    /// Releases failed merges whose pause is over, or whose failure was forgotten. Whether there
    /// were any, and how long the next one is left alone.
    pub(crate) fn release_paused(&mut self, now: Instant) -> (bool, Option<Duration>) {
        let paused = self.open.iter().filter(|open| open.retry.is_some() && !open.is_released);
        let is_over = |open: &&OpenMerge| open.retry <= Some(now) || !self.has_failed(open.id);
        let (over, paused): (Vec<_>, Vec<_>) = paused.partition(is_over);
        let next = paused.iter().filter_map(|open| open.retry).min();
        let over: Vec<MergeId> = over.iter().map(|open| open.id).collect();
        over.iter().for_each(|&id| self.release(id));
        (!over.is_empty(), next.map(|retry| retry.saturating_duration_since(now)))
    }

    fn close_released(&mut self) {
        self.open.retain(|open| !open.is_released || open.running > 0);
    }

    /// Whether a merge has failed, and the failure was not forgotten.
    pub(crate) fn has_failed(&self, id: MergeId) -> bool {
        let open = self.open.iter().find(|open| open.id == id);
        let is_of = |job: &MergeJob| self.failures.iter().any(|f| f.job.shares_a_run(job));
        open.is_some_and(|open| is_of(&open.job))
    }

    /// The first failure that is known.
    pub(crate) fn failure(&self) -> Option<&Error> {
        self.failures.first().map(|failure| &failure.error)
    }

    /// Failed merges are to be tried again now.
    pub(crate) fn forget_failures(&mut self) {
        self.failures.clear();
    }

    fn find(&mut self, id: MergeId) -> Option<&mut OpenMerge> {
        self.open.iter_mut().find(|open| open.id == id)
    }
}

impl OpenMerge {
    fn take(&mut self, nth: usize) -> (MergeId, Submerge) {
        self.running += 1;
        (self.id, self.waiting.remove(nth))
    }

    fn leave_to(&mut self, left: &mut Leftovers) {
        left.submerges.append(&mut self.waiting);
        left.outputs.append(&mut self.outputs);
    }
}
