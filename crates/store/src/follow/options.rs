//! Options of a follower, and how far it is behind.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::plan::options::Options;
use crate::plan::options::keyspace::KeyspaceOptions;

/// Options of a follower.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FollowOptions {
    /// Options of the whole store and of its default key space. An option that is not set is as the
    /// store keeps it. Only those for reads matter: the cache, the limit of open files, the merge
    /// operator, the guard.
    pub options: Options,
    /// Options of other key spaces, by name: mainly merge operators of one's own.
    pub keyspaces: BTreeMap<String, KeyspaceOptions>,
    /// How often a thread catches up. Less: fresher reads, but more work: a few reads of open
    /// files, even if nothing is new. None: no thread; only [`catch_up`](crate::Follower::catch_up)
    /// moves on.
    pub interval: Option<Duration>,
}

impl FollowOptions {
    /// The defaults: options as the store keeps them, and no thread.
    pub fn new() -> Self {
        FollowOptions::default()
    }

    /// Sets [`options`](FollowOptions::options).
    #[must_use]
    pub fn options(self, options: Options) -> Self {
        FollowOptions { options, ..self }
    }

    /// Sets the options of one key space: see [`keyspaces`](FollowOptions::keyspaces).
    #[must_use]
    pub fn keyspace(mut self, name: impl Into<String>, options: KeyspaceOptions) -> Self {
        self.keyspaces.insert(name.into(), options);
        self
    }

    /// Sets [`interval`](FollowOptions::interval).
    #[must_use]
    pub fn interval(self, interval: impl Into<Option<Duration>>) -> Self {
        FollowOptions { interval: interval.into(), ..self }
    }
}

/// How far a follower is behind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Staleness {
    /// The number of the newest write that reads see.
    pub sequence: u64,
    /// The time since the last look that succeeded.
    pub since_look: Duration,
    /// The time since a look found something new. An idle writer writes nothing, so this shows
    /// whether the writer is at work.
    pub since_news: Duration,
    /// Why the last look failed. None: it succeeded.
    pub failure: Option<String>,
}
