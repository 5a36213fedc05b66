//! Which merge is due: a pure function of the layout, the policy and the granularity.
//! ```text
//! someone wants everything merged       all runs, whatever merge of some of them was under way: nothing is written twice
//! a merge by key ranges is under way    what is newer than its inputs comes first, if it stays above the last level; then its next range
//! else                                  whole runs (compaction), or a table of a level (partial)
//! ```
//! Invariant: what was begun is ended, with whatever granularity the store was opened again, or
//! becomes part of a merge of everything.

use crate::plan::layout::{LastMerge, Layout};
use crate::plan::partitions::{Division, Granularity, RangeJob, divide, go_on};
use crate::plan::pick_runs::{MergeJob, Target, merge_all, pick};
use crate::plan::pick_tables;
use crate::plan::policy::Schedule;

/// The merge that is due, of those that `is_free` says may begin. `everything`: someone asked for
/// all runs to be merged into one; the second value says that this is it.
pub(crate) fn next_job(
    layout: &Layout,
    (schedule, division): (&Schedule<'_>, Division),
    everything: bool,
    is_free: &dyn Fn(&MergeJob) -> bool,
) -> Option<(RangeJob, bool)> {
    let by_policy = |layout: &Layout| by_policy(layout, (schedule, division), is_free);
    if everything {
        return Some((divide(layout, merge_all(layout), division), true));
    }
    if let Some(under_way) = &layout.last_merge {
        let newer = by_policy(&without_inputs(layout, under_way));
        // Not into the last level, above which its inputs wait.
        let last = layout.level_count() - 1;
        let goes_above =
            |job: &RangeJob| matches!(job.merge.target, Target::Inner(to) if to < last);
        let newer = newer.filter(goes_above);
        let job = newer.unwrap_or_else(|| go_on(layout, under_way, division));
        return is_free(&job.merge).then_some((job, false));
    }
    by_policy(layout).map(|job| (job, false))
}

/// The merge that is due in a tree without one that is half done.
fn by_policy(
    layout: &Layout,
    (schedule, division): (&Schedule<'_>, Division),
    is_free: &dyn Fn(&MergeJob) -> bool,
) -> Option<RangeJob> {
    match division.granularity {
        Granularity::Full | Granularity::Partitioned => {
            let job = pick(layout, schedule).filter(is_free);
            job.map(|job| divide(layout, job, division))
        }
        Granularity::Partial => pick_tables::pick(layout, schedule, division, is_free),
    }
}

/// The tree as it will be when the merge is done: what is newer than its inputs goes on meanwhile.
fn without_inputs(layout: &Layout, merge: &LastMerge) -> Layout {
    let mut rest = layout.clone();
    rest.runs.retain(|run| !merge.inputs.contains(&run.id));
    rest.last_merge = None;
    rest
}
