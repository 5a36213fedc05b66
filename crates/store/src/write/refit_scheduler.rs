//! Schedules refits: the rebuilding of filter parts that should have other bits.
//! ```text
//! look -> no part is worth it: look again after more queries, flushes or merges
//!   ^  '-> build -> install
//!   '------ pause ------'
//! ```
//! In stepped mode there are no pauses. Invariants: one part is rebuilt at a time. A failure is
//! reported, and leaves the part as it is.

use std::time::Duration;

use crate::plan::background::Background;
use crate::shared::worker_pool::RETRY_LONGEST;
use crate::sync::{current, lock, now};
use crate::write::engine::Engine;
use crate::write::refit::{Refit, RefitWork, Seen};
use crate::write::work::Work;

/// The number of further queries after which parts are considered again.
const LOOK_EACH: u64 = 1024;
/// How often threads consider parts, at most. Queries do not wake them.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Building takes at most one part in this many of the thread's time.
const TIME_SHARE: u32 = 10;

/// A step that this thread runs. Once it is dropped, even by a panic, another step may follow.
struct RefitStep<'c> {
    engine: &'c Engine,
    task: Option<Refit>,
    found_nothing: Option<Seen>,
    pause: Option<Duration>,
}

impl Drop for RefitStep<'_> {
    fn drop(&mut self) {
        let mut work = lock(&self.engine.work);
        let is_stepped = self.engine.table_files.options.background == Background::Stepped;
        work.refit = Some(Box::new(RefitWork {
            task: self.task.take(),
            busy: None,
            found_nothing: self.found_nothing,
            // In stepped mode, steps depend only on earlier steps, not on time.
            not_before: self.pause.filter(|_| !is_stepped).map(|pause| now() + pause),
        }));
        drop(work);
        self.engine.work_has_changed();
    }
}

impl Engine {
    /// Runs one step: builds a part, or installs it. Returns false if no part is worth it, or
    /// another thread runs a step. A failure is reported and stops nothing: the part stays as it
    /// is.
    pub(crate) fn refit_step(&self) -> bool {
        let mut work = lock(&self.work);
        if !self.is_refit_due(&work) {
            return false;
        }
        let refit = work.refit.get_or_insert_default();
        refit.busy = Some(current().id());
        let (task, start) = (refit.task.take(), now());
        drop(work);
        let mut step = RefitStep { engine: self, task: None, found_nothing: None, pause: None };
        let seen = self.seen();
        let done = match task {
            Some(task) => task.install(self).map(|()| true),
            None => Refit::build(self).map(|built| {
                step.task = built;
                step.task.is_some()
            }),
        };
        let Ok(has_done) = done.inspect_err(|error| self.env.tell_failure("a filter", error))
        else {
            (step.found_nothing, step.pause) = (seen, Some(RETRY_LONGEST));
            return true;
        };
        match &step.task {
            Some(built) => {
                let bytes = built.base_bytes(&self.current.pin());
                self.rate_limiter.spend(bytes, self.env.clock.now());
            }
            None if has_done => step.pause = Some((now() - start) * (TIME_SHARE - 1)),
            None => (step.found_nothing, step.pause) = (seen, Some(LOOK_AGAIN)),
        }
        has_done
    }

    /// Whether a part is being rebuilt, or parts should be considered.
    pub(crate) fn is_refit_due(&self, work: &Work) -> bool {
        if self.empty_query_sample.recent().is_none() {
            return false;
        }
        let Some(refit) = work.refit.as_deref() else { return true };
        let is_to_look = || refit.pause_left().is_none() && refit.found_nothing != self.seen();
        refit.busy.is_none() && (refit.task.is_some() || is_to_look())
    }

    /// Returns when a thread considers parts again. None: never, since recent queries are not
    /// sampled.
    pub(crate) fn next_refit_look(&self) -> Option<Duration> {
        self.empty_query_sample.recent()?;
        let work = lock(&self.work);
        Some(work.refit.as_deref().and_then(RefitWork::pause_left).unwrap_or(LOOK_AGAIN))
    }

    fn seen(&self) -> Option<Seen> {
        let questions = self.empty_query_sample.recent()?.noted() / LOOK_EACH;
        let now = self.current.pin();
        let (flushes, merge_epoch) = (now.layout.next_flush.0, now.merge_epoch);
        Some(Seen { questions, flushes, merge_epoch })
    }
}
