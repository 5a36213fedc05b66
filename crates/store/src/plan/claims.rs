//! Which merges may be open at once.
//! ```text
//! runs, newest first    f g | c d e | a b        merges [c d e] and [a b] are open: each claims its runs
//! the tree as planned   f g |  cde  | ab         what the policy sees; it picks next among the runs that nobody claims
//! ```
//! A claim follows from its job alone. Each merge takes a contiguous stretch of the list of runs
//! and its output takes that place (ordering rule 1), so merges of disjoint stretches may end in
//! any order; and the policy is asked about the tree as it will be when all of them are done, so
//! that it wants neither their runs again nor what would pass over them.
//!
//! Invariant: no run is claimed twice. Not even for different keys: a table across the ends of a
//! range is cut by its merge, and the other one would put back what it knows of it.

use crate::plan::layout::Layout;
use crate::plan::partitions::{Division, RangeJob};
use crate::plan::pick::next_job;
use crate::plan::pick_runs::{MergeJob, Target};
use crate::plan::policy::Schedule;

/// The runs that an open merge has taken, and what they become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    merge: MergeJob,
    /// Whether these runs are one when it is done, or when all ranges are that it is one of. Else
    /// it takes some tables of them.
    takes_whole_runs: bool,
}

impl Claim {
    pub(crate) fn of(job: &RangeJob) -> Self {
        let takes_whole_runs = job.moved.is_all() || job.noted.is_some();
        Claim { merge: job.merge.clone(), takes_whole_runs }
    }

    /// Whether a merge would take one of its runs.
    pub(crate) fn meets(&self, job: &MergeJob) -> bool {
        self.shares_a_run(&job.inputs)
    }

    pub(crate) fn shares_a_run(&self, runs: &[u64]) -> bool {
        self.merge.inputs.iter().any(|input| runs.contains(input))
    }

    pub(crate) fn inputs(&self) -> &[u64] {
        &self.merge.inputs
    }

    fn is_last(&self) -> bool {
        self.merge.target == Target::Last
    }

    /// Puts in the place of its runs the one that they become, under the oldest one's id. A merge
    /// that was installed a moment ago changes nothing: its runs are not there.
    fn carry_out(&self, layout: &mut Layout) {
        let Some((oldest, newer)) = self.merge.inputs.split_last() else { return };
        if !self.takes_whole_runs {
            return;
        }
        let (taken, rest): (Vec<_>, Vec<_>) =
            layout.runs.drain(..).partition(|run| newer.contains(&run.id));
        layout.runs = rest;
        let becomes = layout.runs.iter_mut().find(|run| run.id == *oldest);
        if let (Some(run), Target::Inner(level)) = (becomes, self.merge.target) {
            run.level = level;
            // For its span and its entries: nobody asks where in this run a key is.
            run.tables.extend(taken.into_iter().flat_map(|run| run.tables));
        }
    }
}

/// The tree as it will be when all open merges are done.
fn planned(layout: &Layout, claims: &[Claim]) -> Layout {
    let mut planned = layout.clone();
    claims.iter().for_each(|claim| claim.carry_out(&mut planned));
    planned.order_levels();
    planned
}

/// The merge that is due beside those that have claimed their runs. `everything`: someone asked for
/// all runs to be merged into one; the second value says that this is it.
pub(crate) fn next_beside(
    layout: &Layout,
    claims: &[Claim],
    (schedule, division): (&Schedule<'_>, Division),
    everything: bool,
) -> Option<(RangeJob, bool)> {
    if claims.is_empty() {
        return next_job(layout, (schedule, division), everything, &|_| true);
    }
    if everything {
        // It takes all runs: when nobody has one any more.
        return None;
    }
    let planned = planned(layout, claims);
    let last = planned.level_count() - 1;
    // Not another run of the last level while the oldest one is rewritten, and its level may become
    // another one.
    let last_is_claimed = claims.iter().any(Claim::is_last);
    let is_free = |job: &MergeJob| {
        let goes_above = matches!(job.target, Target::Inner(to) if to < last);
        !claims.iter().any(|claim| claim.meets(job)) && (goes_above || !last_is_claimed)
    };
    next_job(&planned, (schedule, division), false, &is_free)
}

#[cfg(test)]
mod tests;
