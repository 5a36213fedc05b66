//! Who holds a tree for long, counted by kind.
//! ```text
//! scans 2   pinned trees 0   followers 1     for all versions between two that lose tables
//! ```
//! Invariant: a count is how many hold such a version now.

use crate::sync::{AtomicU64, Ordering};

/// Who holds a tree for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    Scan,
    PinnedTree,
    /// Of a pinned tree that a follower was given.
    Follower,
}

/// How many hold a tree, by kind. Versions share it as long as no table leaves.
#[derive(Default)]
pub(crate) struct Holders([AtomicU64; 3]);

impl Holders {
    pub(super) fn of(&self, kind: Holder) -> &AtomicU64 {
        &self.0[kind as usize]
    }

    pub(super) fn count(&self, kind: Holder) -> u64 {
        self.of(kind).load(Ordering::Relaxed)
    }
}
