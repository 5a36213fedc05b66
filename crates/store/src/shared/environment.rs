//! What a store gets from outside that is not plain data: storage, clock, listener, shared
//! resources.

use std::fmt;

use crate::error::Error;
use crate::events::{Event, Listener, Listening};
use crate::shared::resources::Resources;
use crate::storage::clock::{Clock, SystemClock};
use crate::storage::disk::Disk;
use crate::storage::pauses::Pauses;
use crate::storage::traits::Storage;
use crate::sync::Arc;

/// The storage and the clock of a store, the listener of its events, and the resources that it
/// shares with other stores.
#[derive(Clone)]
#[non_exhaustive]
pub struct Environment {
    /// The storage of the files.
    pub storage: Arc<dyn Storage>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Called when a thread is between two steps.
    pub pauses: Pauses,
    pub(crate) listening: Listening,
    pub(crate) resources: Option<Resources>,
    /// Whether a store of an older format version is opened, too, and then only read.
    pub(crate) reads_older: bool,
}

impl Default for Environment {
    fn default() -> Self {
        let clock = Arc::new(SystemClock::new());
        Environment {
            storage: Arc::new(Disk),
            clock,
            pauses: Pauses::default(),
            listening: Listening::default(),
            resources: None,
            reads_older: false,
        }
    }
}

impl Environment {
    /// The system's disk and clock, without pauses.
    pub fn new() -> Environment {
        Environment::default()
    }

    /// Returns this environment with another storage.
    #[must_use]
    pub fn storage(self, storage: Arc<dyn Storage>) -> Self {
        Environment { storage, ..self }
    }

    /// Returns this environment with another clock.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Environment { clock, ..self }
    }

    /// Returns this environment with a listener, which hears of events in the store.
    #[must_use]
    pub fn listener(self, listener: Arc<dyn Listener>) -> Self {
        Environment { listening: Listening(Some(listener)), ..self }
    }

    /// Returns this environment with shared resources.
    #[must_use]
    pub fn resources(self, resources: &Resources) -> Self {
        Environment { resources: Some(resources.clone()), ..self }
    }

    /// Returns this environment with pauses.
    #[must_use]
    pub fn pauses(self, pauses: Pauses) -> Self {
        Environment { pauses, ..self }
    }
}

impl Environment {
    /// Reports an event to the listener.
    pub(crate) fn tell(&self, event: Event<'_>) {
        self.listening.tell(event);
    }

    /// Reports to the listener that some work has failed.
    pub(crate) fn tell_failure(&self, work: &str, error: &Error) {
        self.tell(Event::Failed { work, error });
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").finish_non_exhaustive()
    }
}
