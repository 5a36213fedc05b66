//! The usual number of entries of a flush. The level count and the filter's shares follow from it.
//! ```text
//! flush size 100, last run of 12,000 entries  ->  120 flushes  ->  level 2 where T = 10
//! ```
//! The size is the mean over the runs as long as their spans do not overlap. Partial merges make
//! spans overlap; then the size is the median of the recorded flushes.
//!
//! Invariant: the size follows from the layout alone.

use crate::plan::layout::{FlushRecord, LastMerge, Layout, RunRecord};
use crate::plan::merge_job::MergeJob;
use crate::plan::partitions::Granularity;
use crate::plan::policy::Schedule;

/// The usual number of entries of a flush. None: not known yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FlushSize(Option<f64>);

/// The share of all entries that lies above the oldest run just before that run is merged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OverlayShare {
    /// Before the next merge of the oldest run.
    pub(crate) now: f64,
    /// When the oldest run's level is full.
    pub(crate) full: f64,
}

impl FlushSize {
    /// Returns the size for a tree with these runs above its oldest one.
    pub(crate) fn of_tree<'r>(
        layout: &Layout,
        newer: impl IntoIterator<Item = &'r RunRecord>,
        granularity: Granularity,
    ) -> Self {
        match granularity {
            Granularity::Partial => Self::median(layout),
            Granularity::Full | Granularity::Partitioned => Self::mean(newer),
        }
    }

    /// Returns the size in the newer inputs of a merge, as they were when the merge began.
    pub(crate) fn of_inputs(layout: &Layout, job: &MergeJob, granularity: Granularity) -> Self {
        match &job.progress {
            Some(LastMerge { span, entries, .. }) if granularity != Granularity::Partial => {
                Self::quotient(*entries, span.hi().0 - span.lo().0)
            }
            _ => {
                let newer = job.inputs.split_last().map_or(&[][..], |(_, newer)| newer);
                let is_newer = |run: &&RunRecord| newer.contains(&run.id);
                Self::of_tree(layout, layout.runs.iter().filter(is_newer), granularity)
            }
        }
    }

    /// Returns the mean over runs whose spans do not overlap.
    pub(crate) fn mean<'r>(runs: impl IntoIterator<Item = &'r RunRecord>) -> Self {
        let sizes = runs.into_iter().map(|run| (run.entries(), run.flush_count()));
        let (entries, flushes) = sizes.fold((0, 0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
        Self::quotient(entries, flushes)
    }

    fn quotient(entries: u64, flushes: u64) -> Self {
        FlushSize((flushes > 0 && entries > 0).then(|| entries as f64 / flushes as f64))
    }

    /// Returns the median of the recorded flushes, which are those newer than the oldest run.
    pub(crate) fn median(layout: &Layout) -> Self {
        let firsts = layout.flushes.iter().map(|record: &FlushRecord| record.first.0);
        let ends = firsts.clone().skip(1).chain([layout.last_sequence.0 + 1]);
        let mut sizes: Vec<u64> =
            firsts.zip(ends).map(|(first, end)| end.saturating_sub(first)).collect();
        // Not the mean: one ingest may have as many entries as a thousand flushes.
        let middle = sizes.len() / 2;
        let median = (!sizes.is_empty()).then(|| *sizes.select_nth_unstable(middle).1);
        FlushSize(median.map(|median| median.max(1) as f64))
    }

    pub(crate) fn entries(self) -> Option<f64> {
        self.0
    }

    /// Returns the level of an oldest run with this many entries.
    pub(crate) fn last_level(self, entries: u64, schedule: &Schedule<'_>) -> Option<usize> {
        self.0.map(|flush| schedule.level_holding(entries as f64 / flush))
    }

    /// Returns the share above an oldest run with this many entries.
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
