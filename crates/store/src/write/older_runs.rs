//! The runs below a merge, as the guard knows them: a deletion that hides nothing there can go.
//! ```text
//! newer runs | inputs of the merge | older runs     "may one of you have this key?" -> the guard
//!                                    no: nothing older exists, the deletion is dropped
//! ```
//! Section 4.2 of the GRF paper handles deletions eagerly, too, where a deletion meets its key. An
//! older entry may still be below then, so the guard is asked first.
//! Invariant: older runs get no key that they did not have when the merge began. What merges move
//! down there comes from runs that are older than the inputs.

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
    /// Below the oldest input, which has this number. None: deletions are not to be dropped early,
    /// or the guard is none that proves that a run lacks a key: a filter for each table, or a
    /// global one.
    pub(crate) fn of(options: &Options, version: &Version, oldest: u64) -> Option<OlderRuns> {
        let is_asked = match &version.guard {
            Guard::PerTable | Guard::Global(_) => options.eager_tombstones,
            Guard::Open | Guard::Locator(_) => false,
        };
        let place = version.runs.iter().position(|placed| placed.id == oldest)?;
        let runs = version.runs[place + 1..].to_vec();
        is_asked.then(|| OlderRuns { guard: version.guard.clone(), runs })
    }

    /// False: no older run has an entry of the key.
    pub(crate) fn may_have(&self, key: &[u8]) -> bool {
        let answer = self.guard.ask(&Query::Point(key));
        let may_have = |placed: &PlacedRun| {
            answer.may_be_in(placed.span())
                && placed.run.find(key).is_some_and(|table| answer.may_hold(table))
        };
        !answer.is_nowhere() && self.runs.iter().any(may_have)
    }
}
