//! Progress of a long call, reported to its caller, who may stop it.
//! ```text
//! verify, repair, ... --> Steps::advance --> the caller's listener --> go on, or Error::Cancelled
//! ```
//! Invariants: what is done never exceeds the total. After a refusal the call does nothing more.

use std::ops::ControlFlow;

use crate::error::{Error, Result};

/// The progress of a call. Each call has its own unit: entries for `verify` and `compact`, tables
/// for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// What is done.
    pub done: u64,
    /// The total to be done.
    pub total: u64,
}

/// A listener of progress. `Break` stops the call with [`Error::Cancelled`].
pub type OnProgress<'a> = dyn FnMut(Progress) -> ControlFlow<()> + 'a;

/// The progress of one call.
pub(crate) struct Steps<'a, 'l> {
    listener: &'a mut OnProgress<'l>,
    progress: Progress,
}

impl<'a, 'l> Steps<'a, 'l> {
    pub(crate) fn new(listener: &'a mut OnProgress<'l>) -> Self {
        Steps { listener, progress: Progress::default() }
    }

    /// Begins work of this many steps.
    pub(crate) fn begin(&mut self, total: u64) -> Result<()> {
        self.progress = Progress { done: 0, total };
        self.advance(0)
    }

    /// Reports that this many more steps are done.
    pub(crate) fn advance(&mut self, steps: u64) -> Result<()> {
        self.reach(self.progress.done.saturating_add(steps))
    }

    /// Reports that this many steps are done in total.
    pub(crate) fn reach(&mut self, done: u64) -> Result<()> {
        self.progress.done = done.min(self.progress.total);
        match (self.listener)(self.progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Cancelled),
        }
    }
}

/// A listener for callers who need none.
pub(crate) fn unheard(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
