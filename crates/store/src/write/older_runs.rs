//! The runs below a merge, as the guard knows them. A deletion that hides nothing there can be
//! dropped.
//! ```text
//! newer runs | inputs of the merge | older runs     "may one of you have this key?" -> the guard
//!                                    no: nothing older exists, the deletion is dropped
//! ```
//! Section 4.2 of the GRF paper also drops a deletion early, where it meets its key. But an even
//! older entry may still be below, so here the guard is asked first.
//!
//! Invariant: older runs get no key that they lacked when the merge began. Merges into them only
//! take runs that are older than the inputs.

use trommel_filters::Query;

use crate::files::placed_run::PlacedRun;
use crate::guard::Guard;
use crate::plan::options::Options;
use crate::tree::version::Version;

/// The runs that are older than a merge's inputs, and the guard that answers for them.
#[derive(Clone)]
pub(crate) struct OlderRuns {
    guard: Guard,
    runs: Vec<PlacedRun>,
}

impl OlderRuns {
    /// Returns the runs below the oldest input, which has this number. None: deletions are not to
    /// be dropped early, or the guard cannot prove that a run lacks a key. (A filter per table and
    /// a global filter can.)
    pub(crate) fn of(options: &Options, version: &Version, oldest: u64) -> Option<OlderRuns> {
        let is_asked = match &version.guard {
            Guard::PerTable | Guard::Global(_) => options.eager_tombstones,
            Guard::Open | Guard::Locator(_) => false,
        };
        let place = version.runs.iter().position(|placed| placed.id == oldest)?;
        let runs = version.runs[place + 1..].to_vec();
        is_asked.then(|| OlderRuns { guard: version.guard.clone(), runs })
    }

    /// Whether an older run may have an entry of the key. False proves that none has.
    pub(crate) fn may_have(&self, key: &[u8]) -> bool {
        let answer = self.guard.ask(&Query::Point(key));
        let may_have = |placed: &PlacedRun| {
            answer.may_be_in(placed.span())
                && placed.run.find(key).is_some_and(|table| answer.may_hold(table))
        };
        !answer.is_nowhere() && self.runs.iter().any(may_have)
    }
}
