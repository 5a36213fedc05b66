//! Merges of key ranges: which range a merge rewrites, and where its output is cut.
//! ```text
//! full          all keys at once                         needs as much disk again as the tree has
//! partitioned   last level  [ 1 ][ 2 ][ 3 ][ 4 ]         a merge into it goes from partition to partition (Spooky):
//!               inner runs  [ . ][ . ][---------]        these two are done, and what they had in inner runs is gone
//!                                ^ done_to
//! partial       one table of a level goes into the level below it: see `partial`
//! ```
//! A partitioned merge is a list of merges, each of which is installed by itself. How far it has
//! come stands in the layout: so what comes next is a pure function of that, a store that was
//! opened again goes on where it was, and between two partitions newer runs are merged among
//! themselves.
//!
//! Invariant: ranges begin and end where partitions do, so that a part of the filter is rebuilt
//! whole.

use std::fmt;
use std::str::FromStr;

use trommel_filters::Span;

use crate::entries::key_bounds::KeyBounds;
use crate::error::{Error, Result};
use crate::plan::layout::{LastMerge, Layout, RunRecord, TableRecord};
use crate::plan::pick_runs::{MergeJob, Target};

/// How much of a level a merge rewrites at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Granularity {
    /// `full`: all of it. A merge into the last level needs as much disk again as the store takes,
    /// until it is done.
    Full,
    /// `partitioned`: inner levels all at once; the last level partition by partition, so that no
    /// merge needs more than a few partitions of disk.
    Partitioned,
    /// `partial`: as LevelDB and RocksDB do, one table of a level at a time goes into the level
    /// below it, where both have one run; other levels as under `partitioned`. Merges are small,
    /// levels are always nearly full, and runs' spans overlap, so a global filter may name a run
    /// too many.
    Partial,
}

impl Granularity {
    /// Every one there is.
    pub const ALL: [Granularity; 3] =
        [Granularity::Full, Granularity::Partitioned, Granularity::Partial];

    /// The name that people write.
    pub fn name(self) -> &'static str {
        match self {
            Granularity::Full => "full",
            Granularity::Partitioned => "partitioned",
            Granularity::Partial => "partial",
        }
    }
}

impl fmt::Display for Granularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Granularity {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|granularity| granularity.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(Granularity::name).join(", ");
            let problem = format!("there is no granularity '{name}'; there are: {known}");
            Error::Option { option: "granularity", problem }
        })
    }
}

/// A merge, and the keys that it rewrites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RangeJob {
    pub(crate) merge: MergeJob,
    pub(crate) range: KeyBounds,
    /// What a merge by key ranges notes when this range is done; None: it is no such merge.
    pub(crate) noted: Option<LastMerge>,
    /// Of the inputs but the oldest, only these keys are merged, which lie in the range.
    pub(crate) moved: KeyBounds,
    /// The output becomes a piece of the oldest input, which stays the run that it is.
    pub(crate) joins: bool,
}

impl RangeJob {
    pub(crate) fn full(merge: MergeJob) -> Self {
        let (range, moved) = (KeyBounds::all(), KeyBounds::all());
        RangeJob { merge, range, noted: None, moved, joins: false }
    }

    /// One table of a run, with these keys, and of the next run those in the range.
    pub(crate) fn partial(
        merge: MergeJob,
        range: KeyBounds,
        moved: KeyBounds,
        joins: bool,
    ) -> Self {
        RangeJob { merge, range, noted: None, moved, joins }
    }
}

/// How merges are divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Division {
    pub(crate) granularity: Granularity,
    pub(crate) partition_bytes: u64,
    pub(crate) table_bytes: u64,
}

impl Division {
    /// How many partitions so many bytes of the last level make.
    pub(crate) fn partitions_of(self, bytes: u64) -> u64 {
        let partitions = match self.granularity {
            Granularity::Full => 1,
            Granularity::Partitioned => {
                let wanted = self.partition_bytes.max(1);
                bytes.saturating_add(wanted / 2) / wanted
            }
            // Each a table: none is left over that is small.
            Granularity::Partial => bytes.div_ceil(self.table_bytes.max(1)),
        };
        partitions.max(1)
    }
}

/// A merge, or the first range of it.
pub(crate) fn divide(layout: &Layout, merge: MergeJob, division: Division) -> RangeJob {
    let has_partitions = !layout.cuts.is_empty() && division.granularity != Granularity::Full;
    let (Some((&oldest, inner)), true) = (merge.inputs.split_last(), has_partitions) else {
        return RangeJob::full(merge);
    };
    let is_last = merge.target == Target::Last;
    let Some(run) = layout.runs.last().filter(|run| is_last && run.id == oldest) else {
        return RangeJob::full(merge);
    };
    let records = || layout.runs.iter().filter(|run| inner.contains(&run.id));
    // The oldest run may be merged alone, to be rid of what nobody sees.
    let span = records().map(RunRecord::span).reduce(Span::hull).unwrap_or(run.span());
    let entries = records().map(RunRecord::entries).sum::<u64>() + moved_entries(layout, inner);
    let noted = LastMerge { oldest, inputs: inner.to_vec(), done_to: Vec::new(), span, entries };
    range_job(layout, noted, division)
}

/// What a merge that is under way has moved out of these runs: levels are told by what the runs
/// were.
fn moved_entries(layout: &Layout, runs: &[u64]) -> u64 {
    let Some(merge) = &layout.last_merge else { return 0 };
    let is_input = |run: &&RunRecord| merge.inputs.contains(&run.id) && runs.contains(&run.id);
    let left = layout.runs.iter().filter(is_input).map(RunRecord::entries).sum();
    if left == 0 { 0 } else { merge.entries.saturating_sub(left) }
}

/// The next range of a merge that is under way. With another granularity than it began with, all
/// that is left is one range.
pub(crate) fn go_on(layout: &Layout, merge: &LastMerge, division: Division) -> RangeJob {
    range_job(layout, merge.clone(), division)
}

fn range_job(layout: &Layout, merge: LastMerge, division: Division) -> RangeJob {
    let is_there = |id: &u64| layout.runs.iter().any(|run| run.id == *id);
    let inputs: Vec<u64> = merge.inputs.iter().copied().filter(is_there).collect();
    let from = range_start(layout, &merge);
    let to = range_end(layout, &from, division);
    let range = KeyBounds { from, to };
    if range.is_all() {
        let inputs = inputs.into_iter().chain([merge.oldest]).collect();
        return RangeJob::full(MergeJob { inputs, target: Target::Last });
    }
    // Behind the last key of its inputs nothing is rewritten.
    let goes_on = range.behind().is_some_and(|rest| has_more(layout, &merge, &rest));
    let done_to = range.to.clone().filter(|_| goes_on).unwrap_or_default();
    let noted = LastMerge { done_to, ..merge };
    let inputs = inputs.into_iter().chain([noted.oldest]).collect();
    let (merge, moved) = (MergeJob { inputs, target: Target::Last }, range.clone());
    RangeJob { merge, range, noted: Some(noted), moved, joins: true }
}

/// Where the partition begins that has the next key of the merge's inputs: those before it are not
/// rewritten for nothing.
fn range_start(layout: &Layout, merge: &LastMerge) -> Vec<u8> {
    let left = KeyBounds { from: merge.done_to.clone(), to: None };
    let inputs = layout.runs.iter().filter(|run| merge.inputs.contains(&run.id));
    let firsts = inputs.filter_map(|run| run.within(&left).first()).map(|table| &table.from);
    let Some(first) = firsts.min() else { return left.from };
    let after = layout.cuts.partition_point(|cut| cut <= first);
    let begins = after.checked_sub(1).map_or_else(Vec::new, |at| layout.cuts[at].clone());
    begins.max(left.from)
}

/// Where a range of a merge ends: partitions that have become small go together. None: where all
/// keys end.
fn range_end(layout: &Layout, from: &[u8], division: Division) -> Option<Vec<u8>> {
    if division.granularity == Granularity::Full {
        return None;
    }
    let oldest = layout.runs.last()?;
    let first = layout.cuts.partition_point(|cut| **cut <= *from);
    let range = |cut: &[u8]| KeyBounds { from: from.to_vec(), to: Some(cut.to_vec()) };
    let enough = |cut: &&Vec<u8>| {
        let tables = oldest.within(&range(cut)).iter();
        tables.map(TableRecord::bytes_within).sum::<u64>() >= division.partition_bytes / 2
    };
    layout.cuts[first..].iter().find(enough).cloned()
}

/// Whether a merge has keys to merge in a range. The oldest run alone is merged to its end.
fn has_more(layout: &Layout, merge: &LastMerge, range: &KeyBounds) -> bool {
    let ids = &merge.inputs;
    let mut inputs = layout.runs.iter().filter(|run| ids.contains(&run.id));
    ids.is_empty() || inputs.any(|run| !run.within(range).is_empty())
}

/// What the inputs of a merge were when it began, as one run: levels are told by that.
pub(crate) fn as_begun(merge: &LastMerge) -> RunRecord {
    let (file, run, level, span) = (0, 0, 0, merge.span);
    let (entries, file_entries, bytes) = (merge.entries, merge.entries, 0);
    let (from, to) = (Vec::new(), Vec::new());
    let table = TableRecord {
        file,
        run,
        level,
        from,
        to,
        span,
        is_trimmed: false,
        skipped: 0,
        entries,
        file_entries,
        bytes,
    };
    RunRecord { id: run, level, tables: vec![table] }
}

/// Tells where the output of a merge into the last level is cut: into partitions of about the same
/// size.
pub(crate) struct Cutter {
    /// Bytes of a partition.
    target: u64,
    /// Bytes of the output, about.
    expected: u64,
    /// Bytes before the last cut.
    cut_at: u64,
    /// The first key of each partition but the first.
    pub(crate) cuts: Vec<Vec<u8>>,
}

impl Cutter {
    /// For inputs of so many bytes.
    pub(crate) fn new(division: Division, input_bytes: u64) -> Self {
        Cutter {
            target: input_bytes / division.partitions_of(input_bytes),
            expected: input_bytes,
            cut_at: 0,
            cuts: Vec::new(),
        }
    }

    /// Never.
    pub(crate) fn none() -> Self {
        Cutter { target: u64::MAX, expected: 0, cut_at: 0, cuts: Vec::new() }
    }

    /// Whether the next partition begins here, after so many bytes.
    pub(crate) fn is_due(&self, written: u64) -> bool {
        written.saturating_sub(self.cut_at) >= self.target.max(1)
            && written.saturating_add(self.target / 2) <= self.expected
    }

    /// The next partition begins at `key`, after so many bytes.
    pub(crate) fn cut(&mut self, written: u64, key: &[u8]) {
        self.cut_at = written;
        self.cuts.push(key.to_vec());
    }
}
