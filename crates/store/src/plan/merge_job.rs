//! A merge as plain data: which runs it takes, which of their keys, and where its output goes.
//! ```text
//!               inputs   moved, of the newer ones   range, of the oldest one
//! whole runs    c d e    all keys                   all keys
//! a partition   c d e    [k, p)                     [k, p)
//! one table     d e      [l, n), a table of d       [k, p), the tables of e that it meets
//! ```
//! The job of an open merge is also its claim: no other merge may take one of its runs.
//!
//! Invariants: the inputs are a contiguous stretch of the list of runs, and the output takes their
//! place (ordering rule 1); `moved` lies in `range`.

use crate::entries::key_bounds::KeyBounds;
use crate::plan::layout::{LastMerge, Layout, RunRecord};

/// Where the output of a merge goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Into this level, which may be the last one, but not as the oldest run: all that is older
    /// stays.
    Inner(usize),
    /// The last level: the inputs include the oldest run, and the output is the oldest run.
    Last,
}

/// All that a merge does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MergeJob {
    /// Ids of runs, newest first.
    pub(crate) inputs: Vec<u64>,
    pub(crate) target: Target,
    /// The keys of the oldest input that it rewrites.
    pub(crate) range: KeyBounds,
    /// The keys of the other inputs that it merges.
    pub(crate) moved: KeyBounds,
    /// The output becomes part of the oldest input, which keeps its id.
    pub(crate) joins: bool,
    /// The progress that is on record when the job is done. None: no merge from partition to
    /// partition.
    pub(crate) progress: Option<LastMerge>,
}

impl MergeJob {
    /// The merge of whole runs into one.
    pub(crate) fn whole(inputs: Vec<u64>, target: Target) -> Self {
        let (range, moved) = (KeyBounds::all(), KeyBounds::all());
        MergeJob { inputs, target, range, moved, joins: false, progress: None }
    }

    pub(crate) fn of_runs(inputs: &[RunRecord], target: Target) -> Self {
        Self::whole(inputs.iter().map(|run| run.id).collect(), target)
    }

    /// Whether two merges have a run in common.
    pub(crate) fn shares_a_run(&self, other: &MergeJob) -> bool {
        self.inputs.iter().any(|input| other.inputs.contains(input))
    }

    /// Whether its output stays above this level.
    pub(crate) fn stays_above(&self, level: usize) -> bool {
        matches!(self.target, Target::Inner(to) if to < level)
    }

    /// Changes a layout to what it will be when the merge is done: its runs become one, which has
    /// the oldest one's id. A merge that takes single tables, or is installed already, changes
    /// nothing.
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
            // Only the span and the number of entries of this run are read.
            run.tables.extend(taken.into_iter().flat_map(|run| run.tables));
        }
    }
}
