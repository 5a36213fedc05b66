//! The part of its inputs that a merge reads, and the part that is left.
//! ```text
//! newer input    [ a | b ][ c ][ d ]    merged: c            trimmed: nothing, c is a table
//! oldest input     [ e ][  f  ][ g  ]   merged: e, f and g, which c overlaps
//! staying        what the newer input has beside c in the range of e, f and g: another merge takes
//!                it
//! ```
//! Invariant: what is merged, what is trimmed, and the tables that the merge leaves alone together
//! make up the inputs.

use std::collections::{BTreeSet, HashSet};

use trommel_filters::Span;

use crate::entries::entry::Sequence;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::tombstones::RangeTombstones;
use crate::error::Result;
use crate::files::placed_run::PlacedRun;
use crate::plan::layout::{Layout, TableRecord};
use crate::plan::merge_job::MergeJob;

/// The inputs of a merge.
pub(crate) struct MergeInputs {
    /// What is merged, newest first, of the inputs that have keys there.
    pub(crate) merged: Vec<PlacedRun>,
    /// What else the newer inputs have within the range of the oldest one.
    pub(crate) staying: Vec<PlacedRun>,
    /// The files of tables that are merged as a whole or in part, or that the output replaces.
    pub(crate) removed: Vec<u64>,
    /// What is left of these tables.
    pub(crate) trimmed: Vec<TableRecord>,
}

impl MergeInputs {
    /// Returns the inputs of a job. `runs`: its runs, newest first.
    pub(crate) fn of(layout: &Layout, runs: &[PlacedRun], job: &MergeJob) -> Result<MergeInputs> {
        let (mut merged, mut staying) = (Vec::new(), Vec::new());
        let (mut removed, mut trimmed) = (BTreeSet::new(), Vec::new());
        for (place, placed) in runs.iter().enumerate() {
            let is_oldest = place + 1 == runs.len();
            if job.joins && !is_oldest {
                for beside in job.moved.beside(&job.range) {
                    staying.extend(placed.within(&beside)?);
                }
            }
            let joined = (job.joins && is_oldest).then_some(&job.range);
            let range = joined.unwrap_or(&job.moved);
            let input = placed.within(range)?;
            let files = files_of(layout, placed, &input, joined);
            trimmed.extend(trimmed_records(layout, placed, range, &files)?);
            removed.extend(files);
            merged.extend(input);
        }
        Ok(MergeInputs { merged, staying, removed: removed.into_iter().collect(), trimmed })
    }

    /// Returns the span of what is merged.
    pub(crate) fn span(&self) -> Span {
        let spans = self.merged.iter().map(PlacedRun::span);
        spans.reduce(Span::hull).expect("a merge has inputs")
    }
}

/// Returns the files of a run that are merged. If the output joins the run, they include a file
/// that has no key in the range, but keys on both sides.
fn files_of(
    layout: &Layout,
    placed: &PlacedRun,
    input: &Option<PlacedRun>,
    joined: Option<&KeyBounds>,
) -> HashSet<u64> {
    let tables = input.iter().flat_map(|input| input.run.tables());
    let around =
        layout.run(placed.id).zip(joined).map_or(&[][..], |(run, range)| run.within(range));
    let around = around.iter().map(|record| record.file);
    tables.map(|table| table.table.file()).chain(around).collect()
}

/// Returns the records of what is left of tables that have keys inside and outside of a range.
fn trimmed_records(
    layout: &Layout,
    placed: &PlacedRun,
    range: &KeyBounds,
    files: &HashSet<u64>,
) -> Result<Vec<TableRecord>> {
    let mut trimmed = Vec::new();
    let Some(run) = layout.run(placed.id) else { return Ok(trimmed) };
    let tables = placed.run.tables().iter().zip(&run.tables);
    for (table, record) in tables.filter(|(_, record)| files.contains(&record.file)) {
        for outside in range.beside(&KeyBounds::all()) {
            trimmed.extend(table.clip(&outside)?.map(|rest| rest.record(record)));
        }
    }
    Ok(trimmed)
}

/// Returns the record of the only table of the runs. None: they have another number of tables.
pub(crate) fn only_table(layout: &Layout, runs: &[PlacedRun]) -> Option<TableRecord> {
    let [placed] = runs else { return None };
    let [table] = placed.run.tables() else { return None };
    let run = layout.run(placed.id)?;
    run.tables.iter().find(|record| record.file == table.table.file()).cloned()
}

/// Returns the ranges that runs delete, as readers at one of these sequence numbers, or later, see
/// them.
pub(crate) fn tombstones_of(runs: &[PlacedRun], snapshots: &[Sequence]) -> RangeTombstones {
    let tables = runs.iter().flat_map(|placed| placed.run.tables());
    let pieces = tables.flat_map(|table| table.tombstones().pieces());
    RangeTombstones::visible_at(pieces, snapshots)
}
