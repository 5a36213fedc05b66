//! Prefetches the memory of the runs that a scan is about to read: one step for all runs before the
//! next.
//! ```text
//! one run      fences ~~> slot ~~> block ~~> its first entry      three waits, one after the other
//! a scan       fences of all runs ~~> slots of all ~~> blocks of all ~~> first entries
//! ```
//! Invariant: it affects only the time. Blocks that are not cached are not read for it.

use crate::files::run::Run;

/// A step on the way to an entry of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Approach {
    Fences,
    Slot,
    Block,
}

impl Approach {
    pub(crate) const ALL: [Approach; 3] = [Approach::Fences, Approach::Slot, Approach::Block];

    /// Prefetches the memory of this step for runs, near a key or, for `None`, near their ends.
    pub(crate) fn prefetch<'a>(self, runs: impl Iterator<Item = (&'a Run, Option<&'a [u8]>)>) {
        runs.for_each(|(run, key)| run.prefetch(key, self));
    }
}
