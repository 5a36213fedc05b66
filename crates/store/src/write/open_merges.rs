//! The open merges and their submerges: which of these wait, and which are being run by a thread.
//! ```text
//! begin -> open: its submerges run <-> wait -> all done -> installed: its claim ends
//!               '------> failed: its claim lasts until it is retried
//!               '------> cancelled: its claim ends when none of its submerges runs
//! ```
//! Invariant: no two open merges share a run.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::plan::merge_job::MergeJob;
use crate::shared::merge_lanes::Lane;
use crate::shared::worker_pool::{RETRY_FIRST, RETRY_LONGEST};
use crate::sync::Arc;
use crate::write::submerge::{MergeOutput, Submerge};

/// The id of an open merge; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MergeId(u64);

/// The open merges.
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
    /// The number of submerges. None: the merge is still being planned.
    submerges: Option<usize>,
    /// Submerges that wait for a thread, in key order.
    waiting: Vec<Submerge>,
    /// The number of threads that run a step of a submerge. At first, one thread plans the merge.
    running: usize,
    /// The outputs of finished submerges.
    outputs: Vec<MergeOutput>,
    has_failed: bool,
    /// It has failed and may be retried, or it was cancelled.
    is_released: bool,
    /// It has failed, and may be retried from this time on.
    retry: Option<Instant>,
    /// None: it has failed.
    lane: Option<Lane>,
}

/// What to do after a step.
pub(crate) enum AfterStep {
    /// Other steps follow. If the merge has failed elsewhere, the leftovers must be abandoned.
    GoOn(Leftovers),
    /// All submerges are done.
    Install(Vec<MergeOutput>),
}

/// What a failed or cancelled merge had written.
#[derive(Default)]
pub(crate) struct Leftovers {
    pub(super) submerges: Vec<Submerge>,
    pub(super) outputs: Vec<MergeOutput>,
}

struct Failure {
    job: Arc<MergeJob>,
    error: Error,
    /// How often it has failed.
    times: u32,
}

impl OpenMerges {
    /// Closes all merges. Returns what they had written.
    pub(super) fn close_all(&mut self) -> Leftovers {
        let mut left = Leftovers::default();
        self.open.drain(..).for_each(|mut open| open.leave_to(&mut left));
        left
    }

    /// Gives the lanes of all merges back, so that other stores may begin merges. No thread
    /// continues these.
    pub(super) fn give_back_lanes(&mut self) {
        self.open.iter_mut().for_each(|open| open.lane = None);
    }

    pub(crate) fn open_count(&self) -> usize {
        self.open.len()
    }

    /// Returns the jobs of the open merges. No other merge may take their runs.
    pub(crate) fn jobs(&self) -> Vec<Arc<MergeJob>> {
        self.open.iter().map(|open| Arc::clone(&open.job)).collect()
    }

    /// Opens a merge that is yet to be planned.
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

    /// Adds the submerges of a planned merge. They are dropped if the merge was cancelled
    /// meanwhile.
    pub(crate) fn planned(&mut self, id: MergeId, submerges: Vec<Submerge>) {
        if let Some(open) = self.find(id) {
            let waiting = if open.has_failed { Vec::new() } else { submerges };
            (open.submerges, open.waiting, open.running) = (Some(waiting.len()), waiting, 0);
        }
        self.close_released();
    }

    /// Cancels all open merges, since the next merge takes their runs, too. One that is being
    /// installed cannot be stopped any more; one that has failed keeps waiting. Returns what they
    /// had written.
    pub(crate) fn cancel(&mut self) -> Leftovers {
        let mut left = Leftovers::default();
        for open in self.open.iter_mut().filter(|open| !open.has_failed) {
            (open.has_failed, open.is_released) = (true, true);
            open.leave_to(&mut left);
        }
        self.close_released();
        left
    }

    /// Takes a waiting submerge. `choice` picks one, modulo their number, in the order in which
    /// merges began and then by keys. None: takes the first submerge of the merge that began last.
    /// That one is mostly the smallest, and delays newer runs.
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

    /// Returns the number of submerges that wait for a thread.
    pub(crate) fn waiting_count(&self) -> usize {
        self.open.iter().map(|open| open.waiting.len()).sum()
    }

    /// Puts a submerge back after a step that was not its last.
    pub(crate) fn put_back(&mut self, id: MergeId, submerge: Submerge) -> AfterStep {
        let Some(open) = self.find(id) else { return AfterStep::GoOn(Leftovers::default()) };
        let at = open.waiting.partition_point(|other| other.place() < submerge.place());
        open.waiting.insert(at, submerge);
        self.step_ended(id)
    }

    /// Ends a submerge. After the last one, the merge still counts as running, since it is
    /// installed next.
    pub(crate) fn ended(&mut self, id: MergeId, output: MergeOutput) -> AfterStep {
        let Some(open) = self.find(id) else { return AfterStep::GoOn(Leftovers::default()) };
        open.outputs.push(output);
        if Some(open.outputs.len()) == open.submerges {
            return AfterStep::Install(std::mem::take(&mut open.outputs));
        }
        self.step_ended(id)
    }

    fn step_ended(&mut self, id: MergeId) -> AfterStep {
        let mut left = Leftovers::default();
        if let Some(open) = self.find(id) {
            open.running -= 1;
            if open.has_failed {
                open.leave_to(&mut left);
            }
        }
        self.close_released();
        AfterStep::GoOn(left)
    }

    /// Closes a merge that was installed. Forgets failures of merges that are no longer open.
    pub(crate) fn end(&mut self, id: MergeId) {
        self.open.retain(|open| open.id != id);
        let open = &self.open;
        self.failures.retain(|failure| open.iter().any(|o| o.job.shares_a_run(&failure.job)));
    }

    /// Notes that a running step of a merge has failed. Its claim stays, so that no other thread
    /// repeats the failure. Returns how often it has failed so far, and what it had written.
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

    /// Records a failure. `is_new`: no other submerge of the merge has just failed. Returns how
    /// often the merge has failed.
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

    /// Lets a failed merge be retried, once none of its submerges runs any more.
    pub(crate) fn release(&mut self, id: MergeId) {
        if let Some(open) = self.find(id) {
            open.is_released = true;
        }
        self.close_released();
    }

    /// Returns the pause before a merge is retried that has failed `times` times in a row.
    pub(crate) fn pause(&mut self, id: MergeId, times: u32, now: Instant) -> Duration {
        let doubled = 1u32.checked_shl(times.saturating_sub(1)).unwrap_or(u32::MAX);
        let pause = RETRY_FIRST.saturating_mul(doubled).min(RETRY_LONGEST);
        if let Some(open) = self.find(id) {
            open.retry = Some(now + pause);
        }
        pause
    }

    /// Releases failed merges whose pause is over, or whose failure was forgotten. Returns whether
    /// there were any, and the time until the next pause is over.
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

    /// Returns the first known failure.
    pub(crate) fn failure(&self) -> Option<&Error> {
        self.failures.first().map(|failure| &failure.error)
    }

    /// Forgets failures, so that failed merges are retried now.
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
