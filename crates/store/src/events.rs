//! What happens in a store, told while it happens.
//! ```text
//! open, flush, merge, slowed or stopped writer, failure, close  --Event-->  Listener::event
//! ```
//! Invariant: a listener changes nothing. One that panics is told the next event all the same.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use crate::error::Error;
use crate::sync::Arc;

/// Hears what happens in a store: see [`Environment::listener`].
///
/// [`Environment::listener`]: crate::Environment::listener
pub trait Listener: Send + Sync {
    /// Something has happened. It is called by the thread that did it, which goes on when this
    /// returns; others may wait for that one. So it must be quick, and must not call the store, or
    /// one that shares [`Resources`](crate::Resources) with it.
    fn event(&self, event: &Event<'_>);
}

/// What has happened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'e> {
    /// A store is open: its logs were replayed.
    Opened {
        /// Its folder.
        path: &'e Path,
        /// Its runs on disk.
        runs: usize,
        /// How long it took.
        time: Duration,
    },
    /// What was in memory has become a run.
    Flushed {
        /// Of the new run.
        bytes: u64,
        /// Since the flush began.
        time: Duration,
    },
    /// Runs were merged, or a range of them.
    Merged {
        /// How many runs there were.
        runs: usize,
        /// What was written in their place.
        bytes: u64,
        /// Since the merge began. Several merges can be under way at once.
        time: Duration,
    },
    /// A writer was slowed down, since flushes or merges lag behind.
    WriterSlowed {
        /// By so much.
        time: Duration,
    },
    /// Writers are stopped until flushes or merges have caught up.
    WritersStopped,
    /// A writer that was stopped goes on.
    WritersGoOn {
        /// So long it was stopped.
        time: Duration,
    },
    /// Background work has failed, and will be tried again.
    Failed {
        /// Which work.
        work: &'e str,
        /// Why.
        error: &'e Error,
    },
    /// The store is closed.
    Closed {
        /// Its folder.
        path: &'e Path,
    },
}

/// Who is told of events, if anyone.
#[derive(Clone, Default)]
pub(crate) struct Listening(pub(crate) Option<Arc<dyn Listener>>);

impl Listening {
    pub(crate) fn tell(&self, event: Event<'_>) {
        if let Some(listener) = &self.0 {
            let _ = catch_unwind(AssertUnwindSafe(|| listener.event(&event)));
        }
    }
}
