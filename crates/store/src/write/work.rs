//! What is being done in an open store, and what has gone wrong.
//! ```text
//! flush     at most one: its task, the thread that runs it, its last failure
//! merges    those that are open
//! ```
//! Invariant: a thread that holds its lock sees all work that is under way.

use crate::error::Error;
use crate::sync::ThreadId;
use crate::write::flush::FlushTask;
use crate::write::open_merges::OpenMerges;

/// What is being done, and what went wrong.
#[derive(Default)]
pub(crate) struct Work {
    pub(super) flush: FlushWork,
    pub(crate) merges: OpenMerges,
    /// The threads that run a step of a merge.
    pub(crate) merging: Vec<ThreadId>,
    /// Everything is to be merged into one run.
    pub(crate) merge_everything: bool,
    pub(super) stopping: bool,
    /// A thread that flushes or merges has panicked, and has not begun anew yet.
    pub(super) panicked: Option<Error>,
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
}

impl FlushWork {
    /// The last failure, unless a step that was asked for has yet to begin.
    pub(super) fn failure(&self) -> Option<&Error> {
        self.failure.as_ref().filter(|_| !self.is_asked_again)
    }

    /// A thread begins a step.
    pub(super) fn begin(&mut self, thread: ThreadId) {
        self.busy = Some(thread);
        if std::mem::take(&mut self.is_asked_again) {
            self.failure = None;
        }
    }
}

/// The kinds of work: the keeper's comes without steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Flush,
    Merge,
    Keeper,
}
