//! How a store is followed, and how far a follower is behind.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::plan::options::Options;
use crate::plan::options::keyspace::KeyspaceOptions;

/// How a store is followed.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FollowOptions {
    /// Those of the whole store, and of its default key space: what is not set is as the store
    /// keeps it. Of use are those that reads have: the cache, how many files may be open, the merge
    /// operator, the guard.
    pub options: Options,
    /// Of other key spaces, by their names: merge operators of one's own, above all.
    pub keyspaces: BTreeMap<String, KeyspaceOptions>,
    /// How often a thread catches up. A shorter time: less stale, more work while nothing is new,
    /// which is a few reads of open files. None: nobody does but
    /// [`catch_up`](crate::Follower::catch_up).
    pub interval: Option<Duration>,
}

impl FollowOptions {
    /// The defaults: options as the store keeps them, no thread.
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
    /// The time since the follower last looked, and all went well.
    pub since_look: Duration,
    /// The time since such a look found something new of the writer. A writer that is idle writes
    /// nothing, so it tells of one that is at work.
    pub since_news: Duration,
    /// Why the last look has failed. None: it went well.
    pub failure: Option<String>,
}
