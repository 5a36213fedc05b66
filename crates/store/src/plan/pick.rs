//! Which merge is due: a pure function of the layout, the open merges and the options.
//! ```text
//! runs, newest first    f g | c d e | a b    open merges claim [c d e] and [a b]
//! the tree as planned   f g |  cde  |  ab    what the policy sees
//!
//! all runs requested    one merge of all runs, as soon as no other merge is open
//! a merge by ranges     first newer runs, if they stay above the last level; then the next
//!   is under way        range of that merge
//! else                  whole runs (`pick_runs`), or one table of a level (`pick_tables`)
//! ```
//! Open merges claim disjoint stretches of the list of runs, so they may end in any order. The
//! policy sees the tree as it will be when all of them are done. So it neither wants their runs
//! again nor a merge that spans over them.
//!
//! Invariants: no run is claimed twice, not even for different keys: a merge trims a table across
//! an end of its range, and another merge would put the whole table back. A merge that has begun is
//! finished under any granularity, or becomes part of a merge of everything.

use std::borrow::Cow;

use crate::plan::layout::{LastMerge, Layout};
use crate::plan::merge_job::{MergeJob, Target};
use crate::plan::options::Options;
use crate::plan::partitions::{Granularity, first_range, next_range};
use crate::plan::pick_runs::pick_runs;
use crate::plan::pick_tables::pick_tables;
use crate::sync::Arc;

/// Returns the merge that is due beside the open ones. `everything`: all runs are to become one.
/// Requires in that case: there are runs.
pub(crate) fn pick(
    layout: &Layout,
    open: &[Arc<MergeJob>],
    options: &Options,
    everything: bool,
) -> Option<MergeJob> {
    if everything {
        let all = MergeJob::of_runs(&layout.runs, Target::Last);
        return open.is_empty().then(|| first_range(layout, all, options.division()));
    }
    let planned = planned(layout, open);
    let last = planned.level_count() - 1;
    // The level of the oldest run may change while it is rewritten, so no other run may join it
    // then.
    let last_is_claimed = open.iter().any(|claim| claim.target == Target::Last);
    let is_free = |job: &MergeJob| {
        let is_claimed = open.iter().any(|claim| claim.shares_a_run(job));
        !is_claimed && (job.stays_above(last) || !last_is_claimed)
    };
    let Some(under_way) = &planned.last_merge else {
        return candidates(&planned, options).find(is_free);
    };
    let rest = without_inputs(&planned, under_way);
    let newer = candidates(&rest, options).find(is_free);
    // Only above the last level: the inputs of the merge under way wait just above that.
    let newer = newer.filter(|job| job.stays_above(last));
    let next = || next_range(&planned, under_way.clone(), options.division());
    Some(newer.unwrap_or_else(next)).filter(is_free)
}

/// Returns the merges that the policy wants, best first.
fn candidates<'a>(
    layout: &'a Layout,
    options: &'a Options,
) -> Box<dyn Iterator<Item = MergeJob> + 'a> {
    let division = options.division();
    match division.granularity {
        Granularity::Full | Granularity::Partitioned => {
            let runs = pick_runs(layout, &options.schedule(), false);
            Box::new(runs.map(|job| first_range(layout, job, division)).into_iter())
        }
        Granularity::Partial => Box::new(pick_tables(layout, options.schedule(), division)),
    }
}

/// Returns the tree as it will be when all open merges are done.
fn planned<'a>(layout: &'a Layout, open: &[Arc<MergeJob>]) -> Cow<'a, Layout> {
    let mut planned = Cow::Borrowed(layout);
    if !open.is_empty() {
        let layout = planned.to_mut();
        open.iter().for_each(|job| job.foresee(layout));
        layout.order_levels();
    }
    planned
}

/// Returns the tree without the inputs of a merge by key ranges.
fn without_inputs(layout: &Layout, merge: &LastMerge) -> Layout {
    let mut rest = layout.clone();
    rest.runs.retain(|run| !merge.inputs.contains(&run.id));
    rest.last_merge = None;
    rest
}

#[cfg(test)]
mod tests;
