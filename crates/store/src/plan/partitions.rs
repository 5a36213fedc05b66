//! Partitions of the last level: which key range a merge rewrites, and where its output is cut.
//! ```text
//! full          all keys at once                   needs as much free disk as the tree takes
//! partitioned   last level  [ 1 ][ 2 ][ 3 ][ 4 ]   a merge goes from partition to partition
//!               inner runs  [ . ][ . ][--------]   (Spooky): here two are done, and the inner
//!                                 ^ done_to        runs have lost the keys of these two
//! partial       one table of a level goes into the level below: see `pick_tables`
//! ```
//! A partitioned merge is a sequence of merges, each installed by itself. The layout records its
//! progress, so the next range is a pure function of the layout. A reopened store continues where
//! it stopped, and newer runs can be merged between two partitions.
//!
//! Invariant: ranges begin and end at partition boundaries, so that each filter part is rebuilt as
//! a whole.

use std::fmt;
use std::str::FromStr;

use trommel_filters::Span;

use crate::entries::key_bounds::KeyBounds;
use crate::plan::layout::{LastMerge, Layout, RunRecord, TableRecord};
use crate::plan::merge_job::{MergeJob, Target};

/// How much of a level a merge rewrites at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Granularity {
    /// `full`: the whole level. A merge into the last level temporarily needs as much free disk as
    /// the store takes.
    Full,
    /// `partitioned`: inner levels as a whole, the last level partition by partition. So no merge
    /// needs more free disk than a few partitions.
    Partitioned,
    /// `partial`: as in LevelDB and RocksDB, one table of a level at a time goes into the level
    /// below, where both levels have one run. Other levels are merged as under `partitioned`.
    /// Merges are small, and levels are always nearly full. But spans of runs overlap, so a global
    /// filter may name a run too many.
    Partial,
}

impl Granularity {
    /// All granularities.
    pub const ALL: [Granularity; 3] =
        [Granularity::Full, Granularity::Partitioned, Granularity::Partial];

    /// Returns the name as users write it.
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
    /// A text that lists the known granularities.
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|granularity| granularity.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(Granularity::name).join(", ");
            format!("there is no granularity '{name}'; there are: {known}")
        })
    }
}

/// The options that decide how merges are divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Division {
    pub(crate) granularity: Granularity,
    pub(crate) partition_bytes: u64,
    pub(crate) table_bytes: u64,
}

impl Division {
    /// Returns the number of partitions for this many bytes in the last level.
    pub(crate) fn partitions_of(self, bytes: u64) -> u64 {
        let partitions = match self.granularity {
            Granularity::Full => 1,
            Granularity::Partitioned => {
                let wanted = self.partition_bytes.max(1);
                bytes.saturating_add(wanted / 2) / wanted
            }
            // Each table is a partition; rounding up leaves no small remainder.
            Granularity::Partial => bytes.div_ceil(self.table_bytes.max(1)),
        };
        partitions.max(1)
    }
}

/// Returns the merge of whole runs, or its first range if the last level has partitions.
pub(crate) fn first_range(layout: &Layout, merge: MergeJob, division: Division) -> MergeJob {
    let has_partitions = !layout.cuts.is_empty() && division.granularity != Granularity::Full;
    let oldest = layout.runs.last().filter(|_| has_partitions && merge.target == Target::Last);
    let Some((oldest, (&id, inner))) = oldest.zip(merge.inputs.split_last()) else { return merge };
    if oldest.id != id {
        return merge;
    }
    let records = || layout.runs.iter().filter(|run| inner.contains(&run.id));
    // The oldest run may be merged alone, to drop entries that no reader sees.
    let span = records().map(RunRecord::span).reduce(Span::hull).unwrap_or(oldest.span());
    let entries = records().map(RunRecord::entries).sum::<u64>() + moved_entries(layout, inner);
    let (inputs, done_to) = (inner.to_vec(), Vec::new());
    next_range(layout, LastMerge { oldest: id, inputs, done_to, span, entries }, division)
}

/// Counts the entries that a merge under way has moved out of these runs. The level of its output
/// follows from the entries that the runs had when it began.
fn moved_entries(layout: &Layout, runs: &[u64]) -> u64 {
    let Some(merge) = &layout.last_merge else { return 0 };
    let is_input = |run: &&RunRecord| merge.inputs.contains(&run.id) && runs.contains(&run.id);
    let left = layout.runs.iter().filter(is_input).map(RunRecord::entries).sum();
    if left == 0 { 0 } else { merge.entries.saturating_sub(left) }
}

/// Returns the next range of a merge under way. If the granularity is now `full`, the whole rest is
/// one range.
pub(crate) fn next_range(layout: &Layout, merge: LastMerge, division: Division) -> MergeJob {
    let is_there = |id: &u64| layout.runs.iter().any(|run| run.id == *id);
    let inputs = merge.inputs.iter().copied().filter(is_there).chain([merge.oldest]);
    let job = MergeJob::whole(inputs.collect(), Target::Last);
    let from = range_start(layout, &merge);
    let to = range_end(layout, &from, division);
    let range = KeyBounds { from, to };
    if range.is_all() {
        return job;
    }
    // Nothing is rewritten behind the last key of the inputs.
    let goes_on = range.behind().is_some_and(|rest| has_more(layout, &merge, &rest));
    let done_to = range.to.clone().filter(|_| goes_on).unwrap_or_default();
    let progress = Some(LastMerge { done_to, ..merge });
    MergeJob { moved: range.clone(), range, joins: true, progress, ..job }
}

/// Returns the lower bound of the partition that holds the next key of the merge's inputs.
/// Partitions before it need no rewriting.
fn range_start(layout: &Layout, merge: &LastMerge) -> Vec<u8> {
    let left = KeyBounds { from: merge.done_to.clone(), to: None };
    let inputs = layout.runs.iter().filter(|run| merge.inputs.contains(&run.id));
    let firsts = inputs.filter_map(|run| run.within(&left).first()).map(|table| &table.from);
    let Some(first) = firsts.min() else { return left.from };
    let after = layout.cuts.partition_point(|cut| cut <= first);
    let begins = after.checked_sub(1).map_or_else(Vec::new, |at| layout.cuts[at].clone());
    begins.max(left.from)
}

/// Returns the upper bound of the merge's next range, which spans several partitions if they have
/// become small. None: the end of the key space.
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

/// Whether a merge has keys left in a range. The oldest run alone is always merged to its end.
fn has_more(layout: &Layout, merge: &LastMerge, range: &KeyBounds) -> bool {
    let ids = &merge.inputs;
    let mut inputs = layout.runs.iter().filter(|run| ids.contains(&run.id));
    ids.is_empty() || inputs.any(|run| !run.within(range).is_empty())
}

/// Cuts the output of a merge into the last level into partitions of similar size.
pub(crate) struct Cutter {
    /// Bytes per partition.
    target: u64,
    /// Expected bytes of the output.
    expected: u64,
    /// Bytes written before the last cut.
    cut_at: u64,
    /// The first keys of all partitions but the first.
    pub(crate) cuts: Vec<Vec<u8>>,
}

impl Cutter {
    /// Makes a cutter for inputs of this many bytes.
    pub(crate) fn new(division: Division, input_bytes: u64) -> Self {
        Cutter {
            target: input_bytes / division.partitions_of(input_bytes),
            expected: input_bytes,
            cut_at: 0,
            cuts: Vec::new(),
        }
    }

    /// Makes a cutter that never cuts.
    pub(crate) fn none() -> Self {
        Cutter { target: u64::MAX, expected: 0, cut_at: 0, cuts: Vec::new() }
    }

    /// Whether the next partition should begin now, after this many written bytes.
    pub(crate) fn is_due(&self, written: u64) -> bool {
        written.saturating_sub(self.cut_at) >= self.target.max(1)
            && written.saturating_add(self.target / 2) <= self.expected
    }

    /// Begins the next partition at `key`, after this many written bytes.
    pub(crate) fn cut(&mut self, written: u64, key: &[u8]) {
        self.cut_at = written;
        self.cuts.push(key.to_vec());
    }
}
