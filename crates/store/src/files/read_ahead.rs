//! The memory of runs that a scan is about to come to: asked for of all of them before any is
//! waited for.
//! ```text
//! one run      fences ~~> slot ~~> block ~~> its first entry      three waits, one after the other
//! a scan       fences of all runs ~~> slots of all ~~> blocks of all ~~> first entries
//! ```
//! Invariant: nothing depends on it but time. What is not in the cache is not read for it.

use crate::files::run::Run;

/// How far on the way to a run's entry memory was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Approach {
    Fences,
    Slot,
    Block,
}

impl Approach {
    pub(crate) const ALL: [Approach; 3] = [Approach::Fences, Approach::Slot, Approach::Block];

    /// Asks for the memory of this step of runs that are sought near these keys; None: near their
    /// ends.
    pub(crate) fn ask<'a>(self, runs: impl Iterator<Item = (&'a Run, Option<&'a [u8]>)>) {
        runs.for_each(|(run, key)| run.ask_for(key, self));
    }
}
