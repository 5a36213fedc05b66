//! What a store needs from outside that cannot be plain data: storage, clock, listener, resources
//! that it shares.

use std::fmt;

use crate::error::Error;
use crate::events::{Event, Listener, Listening};
use crate::shared::resources::Resources;
use crate::storage::clock::{Clock, SystemClock};
use crate::storage::disk::Disk;
use crate::storage::pauses::Pauses;
use crate::storage::traits::Storage;
use crate::sync::Arc;

/// Where a store gets its files and its time from, who hears of it, and what it shares with other
/// stores.
#[derive(Clone)]
#[non_exhaustive]
pub struct Environment {
    /// Where the files are.
    pub storage: Arc<dyn Storage>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What is called when a thread reaches a gap between two steps.
    pub pauses: Pauses,
    pub(crate) listening: Listening,
    pub(crate) resources: Option<Resources>,
    /// Whether a store of an older version is opened, too, and then read alone.
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
    /// The real disk, the system's clock, no pauses.
    pub fn new() -> Environment {
        Environment::default()
    }

    /// This environment with its files elsewhere.
    #[must_use]
    pub fn storage(self, storage: Arc<dyn Storage>) -> Self {
        Environment { storage, ..self }
    }

    /// This environment with another clock.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Environment { clock, ..self }
    }

    /// This environment with a listener, which hears what happens in the store.
    #[must_use]
    pub fn listener(self, listener: Arc<dyn Listener>) -> Self {
        Environment { listening: Listening(Some(listener)), ..self }
    }

    /// This environment with resources that stores share.
    #[must_use]
    pub fn resources(self, resources: &Resources) -> Self {
        Environment { resources: Some(resources.clone()), ..self }
    }

    /// This environment with pauses.
    #[must_use]
    pub fn pauses(self, pauses: Pauses) -> Self {
        Environment { pauses, ..self }
    }
}

impl Environment {
    /// Tells the listener.
    pub(crate) fn tell(&self, event: Event<'_>) {
        self.listening.tell(event);
    }

    /// Tells the listener what has failed, where it has.
    pub(crate) fn tell_failure(&self, work: &str, error: &Error) {
        self.tell(Event::Failed { work, error });
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").finish_non_exhaustive()
    }
}
