//! The background work of an open store, and its failures.
//! ```text
//! flush     at most one: its task, the thread that runs it, its last failure
//! merges    those that are open
//! refit     at most one: a part of the filter that is rebuilt with other bits
//! ```
//! Invariant: a thread that holds the lock of `Work` sees all work in progress.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::shared::worker_pool::{RETRY_FIRST, RETRY_LONGEST};
use crate::sync::ThreadId;
use crate::write::flush::FlushTask;
use crate::write::open_merges::OpenMerges;
use crate::write::refit::RefitWork;

/// Background work in progress, and its failures.
#[derive(Default)]
pub(crate) struct Work {
    pub(super) flush: FlushWork,
    pub(crate) merges: OpenMerges,
    /// None: no part has been considered yet, as in most key spaces.
    pub(super) refit: Option<Box<RefitWork>>,
    /// The threads that run a step of a merge.
    pub(crate) merging: Vec<ThreadId>,
    /// The next merge is to merge everything into one run.
    pub(crate) merge_everything: bool,
    /// How often such a merge was given up.
    pub(crate) given_up: u64,
    pub(super) stopping: bool,
    /// The panic of a thread that flushes or merges, until that thread starts again.
    pub(super) panicked: Option<Error>,
    /// The number of stopped writers, and since when there is one.
    pub(super) stopped_writers: usize,
    pub(super) stopped_since: Duration,
}

impl Work {
    /// Returns the first failure that stops work.
    pub(super) fn failure(&self) -> Option<&Error> {
        let of_work = self.flush.failure().or_else(|| self.merges.failure());
        self.panicked.as_ref().or(of_work)
    }
}

/// The state of flushing: at most one flush at a time.
#[derive(Default)]
pub(super) struct FlushWork {
    /// The flush in progress. While a thread runs a step of it, the task is not here.
    pub(super) task: Option<FlushTask>,
    /// The thread that runs a step.
    pub(super) busy: Option<ThreadId>,
    /// The last failure, until a flush succeeds.
    pub(super) failure: Option<Error>,
    /// A caller wants a new step: what failed before may succeed now.
    pub(super) is_asked_again: bool,
    /// When a failed flush is retried, and the pause until then.
    retry: Option<(Instant, Duration)>,
}

impl FlushWork {
    /// Returns the last failure, unless a requested step has yet to begin.
    pub(super) fn failure(&self) -> Option<&Error> {
        self.failure.as_ref().filter(|_| !self.is_asked_again)
    }

    /// Returns how long a thread has to wait before it retries. None: it need not wait.
    pub(super) fn pause_left(&self, now: Instant) -> Option<Duration> {
        let (retry, _) = self.retry.filter(|_| self.failure().is_some())?;
        retry.checked_duration_since(now).filter(|left| !left.is_zero())
    }

    /// Returns the pause after a failed step. It doubles with each consecutive failure.
    pub(super) fn pause(&mut self, now: Instant) -> Duration {
        let doubled = self.retry.map_or(RETRY_FIRST, |(_, last)| 2 * last);
        let pause = doubled.min(RETRY_LONGEST);
        self.retry = Some((now + pause, pause));
        pause
    }

    /// Ends the pauses after a successful step.
    pub(super) fn forget_pause(&mut self) {
        self.retry = None;
    }

    /// Marks the beginning of a step by `thread`.
    pub(super) fn begin(&mut self, thread: ThreadId) {
        self.busy = Some(thread);
        if std::mem::take(&mut self.is_asked_again) {
            self.failure = None;
        }
    }
}
