//! What is being done in an open store, and what has gone wrong.
//! ```text
//! flush     at most one: its task, the thread that runs it, its last failure
//! merges    those that are open
//! refit     at most one: a part of the filter that gets other bits
//! ```
//! Invariant: a thread that holds its lock sees all work that is under way.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::shared::worker_pool::{RETRY_FIRST, RETRY_LONGEST};
use crate::sync::ThreadId;
use crate::write::flush::FlushTask;
use crate::write::open_merges::OpenMerges;
use crate::write::refit::RefitWork;

/// What is being done, and what went wrong.
#[derive(Default)]
pub(crate) struct Work {
    pub(super) flush: FlushWork,
    pub(crate) merges: OpenMerges,
    /// None: no part was looked at yet, as in most key spaces.
    pub(super) refit: Option<Box<RefitWork>>,
    /// The threads that run a step of a merge.
    pub(crate) merging: Vec<ThreadId>,
    /// Everything is to be merged into one run.
    pub(crate) merge_everything: bool,
    /// How often that was given up.
    pub(crate) given_up: u64,
    pub(super) stopping: bool,
    /// A thread that flushes or merges has panicked, and has not begun anew yet.
    pub(super) panicked: Option<Error>,
    /// How many writers are stopped, and since when one is.
    pub(super) stopped_writers: usize,
    pub(super) stopped_since: Duration,
}

impl Work {
    /// The first thing that is known to stop work.
    pub(super) fn failure(&self) -> Option<&Error> {
        let of_work = self.flush.failure().or_else(|| self.merges.failure());
        self.panicked.as_ref().or(of_work)
    }
}

/// The flush: at most one at a time.
#[derive(Default)]
pub(super) struct FlushWork {
    /// Between two steps. While a thread runs a step of it, the task is not here.
    pub(super) task: Option<FlushTask>,
    /// The thread that runs a step.
    pub(super) busy: Option<ThreadId>,
    /// The last failure, until a flush succeeds.
    pub(super) failure: Option<Error>,
    /// A caller wants a step that begins from now on: what failed before it may succeed now.
    pub(super) is_asked_again: bool,
    /// When it is tried again after the last failure, and the pause until then.
    retry: Option<(Instant, Duration)>,
}

impl FlushWork {
    /// The last failure, unless a step that was asked for has yet to begin.
    pub(super) fn failure(&self) -> Option<&Error> {
        self.failure.as_ref().filter(|_| !self.is_asked_again)
    }

    /// How long a thread waits before it tries again. None: it need not wait.
    pub(super) fn pause_left(&self, now: Instant) -> Option<Duration> {
        let (retry, _) = self.retry.filter(|_| self.failure().is_some())?;
        retry.checked_duration_since(now).filter(|left| !left.is_zero())
    }

    /// The pause after a failed step: longer with each failure in a row.
    pub(super) fn pause(&mut self, now: Instant) -> Duration {
        let doubled = self.retry.map_or(RETRY_FIRST, |(_, last)| 2 * last);
        let pause = doubled.min(RETRY_LONGEST);
        self.retry = Some((now + pause, pause));
        pause
    }

    /// A step went well.
    pub(super) fn forget_pause(&mut self) {
        self.retry = None;
    }

    /// A thread begins a step.
    pub(super) fn begin(&mut self, thread: ThreadId) {
        self.busy = Some(thread);
        if std::mem::take(&mut self.is_asked_again) {
            self.failure = None;
        }
    }
}
