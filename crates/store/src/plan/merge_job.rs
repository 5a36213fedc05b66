//! A merge as plain data: the runs it takes, the keys of them, and where its output goes.
//! ```text
//!               inputs   moved (newer inputs)       range (oldest input)
//! whole runs    c d e    all keys                   all keys
//! a partition   c d e    [k, p)                     [k, p)
//! one table     d e      [l, n), a table of d       [k, p), the tables of e that it overlaps
//! ```
//! The job of an open merge is also its claim: no other merge may take any of its runs.
//!
//! Invariants: the inputs are a contiguous stretch of the list of runs, and the output takes their
//! place (ordering rule 1); `moved` lies in `range`.

use crate::entries::key_bounds::KeyBounds;
use crate::plan::layout::{LastMerge, Layout, RunRecord};

/// Where the output of a merge goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An inner level (which may be the last one), but not as the oldest run: all older runs stay.
    Inner(usize),
    /// The last level. The inputs include the oldest run, and the output becomes the oldest run.
    Last,
}

/// The description of one merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MergeJob {
    /// Ids of runs, newest first.
    pub(crate) inputs: Vec<u64>,
    pub(crate) target: Target,
    /// The keys of the oldest input that it rewrites.
    pub(crate) range: KeyBounds,
    /// The keys of the other inputs that it merges.
    pub(crate) moved: KeyBounds,
    /// Whether the output becomes part of the oldest input, which keeps its id.
    pub(crate) joins: bool,
    /// The progress to record when the job is done. None: the merge does not proceed by partitions.
    pub(crate) progress: Option<LastMerge>,
}

impl MergeJob {
    /// Returns the merge of whole runs into one.
    pub(crate) fn whole(inputs: Vec<u64>, target: Target) -> Self {
        let (range, moved) = (KeyBounds::all(), KeyBounds::all());
        MergeJob { inputs, target, range, moved, joins: false, progress: None }
    }

    pub(crate) fn of_runs(inputs: &[RunRecord], target: Target) -> Self {
        Self::whole(inputs.iter().map(|run| run.id).collect(), target)
    }

    /// Whether the two merges share an input.
    pub(crate) fn shares_a_run(&self, other: &MergeJob) -> bool {
        self.inputs.iter().any(|input| other.inputs.contains(input))
    }

    /// Whether the output stays above this level.
    pub(crate) fn stays_above(&self, level: usize) -> bool {
        matches!(self.target, Target::Inner(to) if to < level)
    }

    /// Changes a layout to what it will be when the merge is done: the inputs become one run with
    /// the id of the oldest one. A merge of single tables changes nothing, nor does an installed
    /// one.
    pub(crate) fn foresee(&self, layout: &mut Layout) {
        let Some((oldest, newer)) = self.inputs.split_last() else { return };
        if !self.moved.is_all() && self.progress.is_none() {
            return;
        }
        let (taken, rest): (Vec<_>, Vec<_>) =
            layout.runs.drain(..).partition(|run| newer.contains(&run.id));
        layout.runs = rest;
        let output = layout.runs.iter_mut().find(|run| run.id == *oldest);
        if let (Some(run), Target::Inner(level)) = (output, self.target) {
            run.level = level;
            // Only the span and the number of entries of this run are read from here on.
            run.tables.extend(taken.into_iter().flat_map(|run| run.tables));
        }
    }
}
