//! What to merge next: a pure function of the layout. Lazy leveling with full merges.
//! ```text
//! level 0      T runs wait      -> their merge is a carry ...
//! level 1      T - 1 runs: full -> ... which takes this level along ...
//! last level   one run          -> ... and, where all inner levels are full, the last one too
//! ```
//! Invariants: a merge takes a contiguous stretch of the list of runs, and in level 0 exactly the
//! oldest T runs, however many newer ones wait. The number of levels follows the data.

use crate::layout::{Layout, RunRecord};

/// Where the output of a merge goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An inner level, as its newest run.
    Inner(usize),
    /// The last level: the inputs include the oldest run, and the output is the oldest run.
    Last,
}

/// Runs to merge into one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MergeJob {
    /// Their ids, newest first: a contiguous stretch of the layout.
    pub(crate) inputs: Vec<u64>,
    pub(crate) target: Target,
}

/// The merge that is due. None: the tree is in shape.
pub(crate) fn pick(layout: &Layout, size_ratio: u32) -> Option<MergeJob> {
    let ratio = size_ratio as usize;
    let last = layout.level_count() - 1;
    if last == 0 {
        return (layout.runs.len() > 1).then(|| merge_all(layout));
    }
    let waiting = layout.runs_in(0);
    if waiting < ratio {
        return None;
    }
    let mut target = 1;
    while target < last && layout.runs_in(target) + 1 >= ratio {
        target += 1;
    }
    let from = waiting - ratio;
    let older_than_target = |run: &RunRecord| run.level >= target;
    let to = layout.runs.iter().position(older_than_target).unwrap_or(layout.runs.len());
    if target == last {
        let inputs = layout.runs[from..].iter().map(|run| run.id).collect();
        return Some(MergeJob { inputs, target: Target::Last });
    }
    let inputs = layout.runs[from..to].iter().map(|run| run.id).collect();
    Some(MergeJob { inputs, target: Target::Inner(target) })
}

/// The merge of everything. Requires: there are runs.
pub(crate) fn merge_all(layout: &Layout) -> MergeJob {
    let inputs = layout.runs.iter().map(|run| run.id).collect();
    MergeJob { inputs, target: Target::Last }
}

/// The level of the last run after a merge into it: the least that is not yet full, where a level l
/// holds T^(l+1) flushes of the size that the merged inner runs had. Rounded, because entries that
/// replace each other make a level a little smaller than its flushes.
pub(crate) fn last_level(
    inner: &[&RunRecord],
    output_entries: u64,
    size_ratio: u32,
) -> Option<usize> {
    let flushes: u64 = inner.iter().map(|run| run.flush_count()).sum();
    let entries: u64 = inner.iter().map(|run| run.entries()).sum();
    if flushes == 0 || entries == 0 {
        return None;
    }
    Some(level_holding(output_entries as f64 * flushes as f64 / entries as f64, size_ratio))
}

/// The level of a last run of so many flushes.
pub(crate) fn level_holding(flushes: f64, size_ratio: u32) -> usize {
    let ratio = f64::from(size_ratio);
    let mut level = 0;
    let mut full = ratio - 0.5;
    while flushes >= full && level < 60 {
        level += 1;
        full *= ratio;
    }
    level
}

/// The share of all entries that the inner levels have just before the next merge into a last level of so many entries, if
/// flushes stay as large as those of the `inner` runs. None: that is not known.
pub(crate) fn overlay_share(
    inner: &[&RunRecord],
    last_entries: u64,
    size_ratio: u32,
) -> Option<f64> {
    let level = last_level(inner, last_entries, size_ratio)?;
    let flushes: u64 = inner.iter().map(|run| run.flush_count()).sum();
    let entries: u64 = inner.iter().map(|run| run.entries()).sum();
    let most_flushes = f64::from(size_ratio).powi(level as i32) - 1.0;
    let most_entries = most_flushes * entries as f64 / flushes as f64;
    Some(most_entries / (most_entries + last_entries as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Edit;
    use crate::layout::tests::table;

    /// Runs a tree by whole flushes of one entry each; gives the number of runs per level after each.
    fn shapes(size_ratio: u32, flushes: u64) -> (Layout, Vec<Vec<usize>>) {
        let mut layout = Layout::default();
        let mut shapes = Vec::new();
        let mut next_file = 0;
        for flush in 0..flushes {
            next_file += 1;
            let added = vec![table(next_file, next_file, 0, flush, flush + 1)];
            layout = layout.apply(&Edit { added, ..Edit::default() }).expect("fits");
            while let Some(job) = pick(&layout, size_ratio) {
                next_file += 1;
                layout = merge(&layout, &job, next_file, size_ratio);
            }
            shapes.push(layout.shape().digits());
        }
        (layout, shapes)
    }

    fn merge(layout: &Layout, job: &MergeJob, file: u64, size_ratio: u32) -> Layout {
        let inputs: Vec<_> =
            layout.runs.iter().filter(|run| job.inputs.contains(&run.id)).collect();
        let lo = inputs.iter().map(|run| run.span().lo().0).min().expect("inputs");
        let hi = inputs.iter().map(|run| run.span().hi().0).max().expect("inputs");
        let inner = &inputs[..inputs.len() - 1];
        let level = match job.target {
            Target::Inner(level) => level,
            Target::Last => last_level(inner, hi - lo, size_ratio).expect("inner runs"),
        };
        let removed = inputs.iter().flat_map(|run| &run.tables).map(|table| table.file).collect();
        let added = vec![table(file, file, level, lo, hi)];
        layout.apply(&Edit { removed, added, ..Edit::default() }).expect("fits")
    }

    #[test] // GRF paper, section 4.2 and DESIGN 2: the shape is the number of flushes in base T.
    fn the_shape_is_an_odometer_of_flushes() {
        let (_, shapes) = shapes(10, 2345);
        for (count, shape) in (1u64..).zip(&shapes) {
            let digits = format!("{count}").len();
            assert_eq!(shape.len(), digits, "after {count} flushes");
            assert_eq!(shape[digits - 1], 1, "after {count} flushes");
            for (level, &runs) in shape[..digits - 1].iter().enumerate() {
                let digit = count / 10u64.pow(level as u32) % 10;
                assert_eq!(runs as u64, digit, "level {level} after {count} flushes");
            }
        }
    }

    #[test] // GRF paper, Figure 7 (T = 4): 2211, a flush makes 3211, the next one 0311.
    fn figure_7_flush_and_carry() {
        // 64 flushes are in the last level; then 2 runs in level 2, 2 in 1 and 2 in 0 is 42 more.
        let (_, shapes) = shapes(4, 64 + 16 + 8 + 4);
        let after = |flushes: usize| shapes[flushes - 1].clone();
        assert_eq!(after(64 + 16 + 8 + 2), [2, 2, 1, 1]);
        assert_eq!(after(64 + 16 + 8 + 3), [3, 2, 1, 1]);
        assert_eq!(after(64 + 16 + 8 + 4), [0, 3, 1, 1]);
    }

    #[test] // GRF paper, Figure 7, end of the round: every run goes into the last level, 0001.
    fn figure_7_the_last_flush_of_a_round() {
        let (_, shapes) = shapes(4, 128);
        assert_eq!(shapes[126], [3, 3, 3, 1]);
        assert_eq!(shapes[127], [0, 0, 0, 1]);
    }

    #[test]
    fn newer_runs_wait_while_a_block_is_merged() {
        let mut layout = Layout::default();
        let oldest = table(1, 1, 2, 0, 100);
        let waiting = (0..7).map(|n| table(10 + n, 10 + n, 0, 100 + n, 101 + n));
        let added = std::iter::once(oldest).chain(waiting).collect();
        layout = layout.apply(&Edit { added, ..Edit::default() }).expect("fits");
        let job = pick(&layout, 4).expect("seven wait, four merge");
        assert_eq!(job.inputs, [13, 12, 11, 10]);
        assert_eq!(job.target, Target::Inner(1));
    }

    #[test]
    fn overwrites_do_not_make_levels() {
        let flush = table(1, 1, 0, 7, 8);
        let run = RunRecord { id: 1, level: 0, tables: vec![flush] };
        assert_eq!(last_level(&[&run], 1, 10), Some(0));
        assert_eq!(last_level(&[&run], 10, 10), Some(1));
        assert_eq!(last_level(&[&run], 100, 10), Some(2));
        assert_eq!(last_level(&[], 100, 10), None);
    }
}
