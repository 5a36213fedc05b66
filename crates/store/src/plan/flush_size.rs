//! Entries of a usual flush, from which the number of levels and the filter's shares follow.
//! ```text
//! flush size 100, last run of 12,000 entries  ->  120 flushes  ->  level 2 where T = 10
//! ```
//! Runs tell the mean size as long as their spans do not overlap. Under partial merges they do, and
//! the records of flushes tell the median.
//!
//! Invariant: the size follows from the layout alone.

use std::iter::Sum;

use crate::plan::layout::{FlushRecord, LastMerge, Layout, RunRecord};
use crate::plan::merge_job::MergeJob;
use crate::plan::partitions::Granularity;
use crate::plan::policy::Schedule;

/// Entries of a usual flush. None: that is not known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FlushSize(Option<f64>);

/// How many flushes and entries a run has, or several.
pub(crate) struct RunSize {
    flushes: u64,
    entries: u64,
}

impl RunSize {
    pub(crate) fn of(run: &RunRecord) -> Self {
        RunSize { flushes: run.flush_count(), entries: run.entries() }
    }

    /// What the inputs of a merge were when it began.
    fn of_inputs(merge: &LastMerge) -> Self {
        let LastMerge { span, entries, .. } = *merge;
        RunSize { flushes: span.hi().0 - span.lo().0, entries }
    }
}

impl Sum for RunSize {
    fn sum<I: Iterator<Item = RunSize>>(sizes: I) -> RunSize {
        let none = RunSize { flushes: 0, entries: 0 };
        sizes.fold(none, |sum, size| RunSize {
            flushes: sum.flushes + size.flushes,
            entries: sum.entries + size.entries,
        })
    }
}

/// The share of all entries that is above the oldest run just before that is merged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OverlayShare {
    /// Before the next merge of it.
    pub(crate) now: f64,
    /// When its level is full.
    pub(crate) full: f64,
}

impl FlushSize {
    /// The size in a tree with these runs above its oldest one.
    pub(crate) fn of_tree(layout: &Layout, newer: &[RunRecord], granularity: Granularity) -> Self {
        Self::told_by(layout, granularity, newer.iter().map(RunSize::of).sum())
    }

    /// The size in the newer inputs of a merge.
    pub(crate) fn of_inputs(layout: &Layout, job: &MergeJob, granularity: Granularity) -> Self {
        let newer = job.inputs.split_last().map_or(&[][..], |(_, newer)| newer);
        let is_newer = |run: &&RunRecord| newer.contains(&run.id);
        let of_runs = || layout.runs.iter().filter(is_newer).map(RunSize::of).sum();
        let size = job.progress.as_ref().map_or_else(of_runs, RunSize::of_inputs);
        Self::told_by(layout, granularity, size)
    }

    fn told_by(layout: &Layout, granularity: Granularity, runs: RunSize) -> Self {
        match granularity {
            Granularity::Partial => Self::median(layout),
            Granularity::Full | Granularity::Partitioned => Self::mean(runs),
        }
    }

    /// The mean in runs whose spans do not overlap.
    pub(crate) fn mean(runs: RunSize) -> Self {
        let RunSize { flushes, entries } = runs;
        FlushSize((flushes > 0 && entries > 0).then(|| entries as f64 / flushes as f64))
    }

    /// The median of the flushes on record: those that are newer than the oldest run.
    pub(crate) fn median(layout: &Layout) -> Self {
        let firsts = layout.flushes.iter().map(|record: &FlushRecord| record.first.0);
        let ends = firsts.clone().skip(1).chain([layout.last_sequence.0 + 1]);
        let mut sizes: Vec<u64> =
            firsts.zip(ends).map(|(first, end)| end.saturating_sub(first)).collect();
        // Not the mean: one ingest may have as many as a thousand flushes.
        let middle = sizes.len() / 2;
        let median = (!sizes.is_empty()).then(|| *sizes.select_nth_unstable(middle).1);
        FlushSize(median.map(|median| median.max(1) as f64))
    }

    pub(crate) fn entries(self) -> Option<f64> {
        self.0
    }

    /// The level of an oldest run of so many entries.
    pub(crate) fn last_level(self, entries: u64, schedule: &Schedule<'_>) -> Option<usize> {
        self.0.map(|flush| schedule.level_holding(entries as f64 / flush))
    }

    /// The share above an oldest run of so many entries.
    pub(crate) fn overlay_share(
        self,
        last_entries: u64,
        schedule: &Schedule<'_>,
    ) -> Option<OverlayShare> {
        let level = self.last_level(last_entries, schedule)?;
        let most_entries = schedule.overlay_flushes(level) * self.0?;
        let now = most_entries / (most_entries + last_entries as f64);
        Some(OverlayShare { now, full: schedule.full_overlay_share(level) })
    }
}
