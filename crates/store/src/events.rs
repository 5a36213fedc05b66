//! Events: notifications of what happens in a store, delivered as it happens.
//! ```text
//! open, flush, merge, slowed or stopped writer, failure, close  --Event-->  Listener::event
//! ```
//! Invariant: a listener does not affect the store. One that panics still receives the next event.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use crate::error::Error;
use crate::sync::Arc;

/// Receives the events of a store: see [`Environment::listener`].
///
/// [`Environment::listener`]: crate::Environment::listener
pub trait Listener: Send + Sync {
    /// Handles an event. The thread that caused the event makes this call and waits for it to
    /// return; other threads may in turn wait for that thread. So an implementation must be quick.
    /// It must not call this store, nor a store that shares [`Resources`](crate::Resources) with
    /// it.
    fn event(&self, event: &Event<'_>);
}

/// Something that happened in a store.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'e> {
    /// The store was opened and its logs were replayed.
    Opened {
        /// The store's folder.
        path: &'e Path,
        /// The number of runs on disk.
        runs: usize,
        /// How long opening took.
        time: Duration,
    },
    /// A memtable was flushed to a new run.
    Flushed {
        /// Bytes of the new run.
        bytes: u64,
        /// Time since the flush began.
        time: Duration,
    },
    /// Runs, or a key range of them, were merged.
    Merged {
        /// The number of input runs.
        runs: usize,
        /// Bytes of the output.
        bytes: u64,
        /// Time since the merge began. Several merges can run at once.
        time: Duration,
    },
    /// A writer was slowed down because flushes or merges lag behind.
    WriterSlowed {
        /// The length of the delay.
        time: Duration,
    },
    /// Writers are stopped until flushes or merges have caught up.
    WritersStopped,
    /// Stopped writers resume.
    WritersGoOn {
        /// How long they were stopped.
        time: Duration,
    },
    /// Background work failed; it will be retried.
    Failed {
        /// The work that failed.
        work: &'e str,
        /// The failure.
        error: &'e Error,
    },
    /// The store was closed.
    Closed {
        /// The store's folder.
        path: &'e Path,
    },
}

/// The listener that events go to, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Listening(pub(crate) Option<Arc<dyn Listener>>);

impl Listening {
    pub(crate) fn tell(&self, event: Event<'_>) {
        if let Some(listener) = &self.0 {
            let _ = catch_unwind(AssertUnwindSafe(|| listener.event(&event)));
        }
    }
}
