//! Progress of a long call: told to its caller, who may stop it.
//! ```text
//! verify, repair, ... --> Steps::advance --> the caller's listener --> go on, or Error::Cancelled
//! ```
//! Invariants: what is done never exceeds the total. After a refusal the call does nothing more.

use std::ops::ControlFlow;

use crate::error::{Error, Result};

/// How far a call has come. The unit is the call's own: entries for `verify` and
/// `compact`, tables for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// What is done.
    pub done: u64,
    /// All there is to do.
    pub total: u64,
}

/// Hears how far a call has come. `Break` stops it: it ends with [`Error::Cancelled`].
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

    /// Begins work of so many steps.
    pub(crate) fn begin(&mut self, total: u64) -> Result<()> {
        self.progress = Progress { done: 0, total };
        self.advance(0)
    }

    /// So many more steps are done.
    pub(crate) fn advance(&mut self, steps: u64) -> Result<()> {
        self.reach(self.progress.done.saturating_add(steps))
    }

    /// So many steps are done.
    pub(crate) fn reach(&mut self, done: u64) -> Result<()> {
        self.progress.done = done.min(self.progress.total);
        match (self.listener)(self.progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Cancelled),
        }
    }
}

/// For callers who do not listen.
pub(crate) fn unheard(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
