//! What a merge reads of its inputs, and what stays of them.
//! ```text
//! newer input    [ a | b ][ c ][ d ]        merged: c                    trimmed: nothing, c is a table
//! oldest input     [ e ][  f  ][ g  ]       merged: e f g, which c meets
//! staying        of the newer input, what lies beside c where e, f and g do: it is merged another time
//! ```
//! Invariant: what is merged, what is trimmed and the tables that neither has to do with are all of
//! the inputs.

use std::collections::{BTreeSet, HashSet};

use crate::entries::entry::Sequence;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::tombstones::RangeTombstones;
use crate::error::Result;
use crate::files::placed_run::PlacedRun;
use crate::plan::layout::{Layout, TableRecord};

/// The inputs of a merge of key ranges.
pub(crate) struct MergeInputs {
    /// What is merged, newest first: of the inputs that have something there.
    pub(crate) inputs: Vec<PlacedRun>,
    /// What newer inputs have beside that, within the range of the oldest one.
    pub(crate) staying: Vec<PlacedRun>,
    /// The files of tables that are merged, or in part, or make way for what is.
    pub(crate) removed: Vec<u64>,
    /// What stays of them.
    pub(crate) trimmed: Vec<TableRecord>,
}

impl MergeInputs {
    /// Of runs, newest first: the keys that are `moved`. `joined`: the output becomes a piece of
    /// the oldest run, of which these keys are merged, which have the others in them. Else it is
    /// merged as the other runs are.
    pub(crate) fn of(
        layout: &Layout,
        runs: &[PlacedRun],
        moved: &KeyBounds,
        joined: Option<&KeyBounds>,
    ) -> Result<MergeInputs> {
        let (mut inputs, mut staying) = (Vec::new(), Vec::new());
        let (mut removed, mut trimmed) = (BTreeSet::new(), Vec::new());
        for (place, placed) in runs.iter().enumerate() {
            let is_oldest = place + 1 == runs.len();
            for beside in joined.filter(|_| !is_oldest).iter().flat_map(|all| moved.beside(all)) {
                staying.extend(placed.within(&beside)?);
            }
            let joined = joined.filter(|_| is_oldest);
            let merged = joined.unwrap_or(moved);
            let input = placed.within(merged)?;
            let files = files_of(layout, placed, &input, joined);
            trimmed.extend(trimmed_records(layout, placed, merged, &files)?);
            removed.extend(files);
            inputs.extend(input);
        }
        Ok(MergeInputs { inputs, staying, removed: removed.into_iter().collect(), trimmed })
    }
}

/// The files of what is merged of a run. One that has nothing there, but something on both sides,
/// makes way too where the output becomes a piece of its run.
fn files_of(
    layout: &Layout,
    placed: &PlacedRun,
    input: &Option<PlacedRun>,
    joined: Option<&KeyBounds>,
) -> HashSet<u64> {
    let tables = input.iter().flat_map(|input| input.run.tables());
    let run = layout.runs.iter().find(|run| run.id == placed.id);
    let around = run.zip(joined).map_or(&[][..], |(run, range)| run.within(range));
    let around = around.iter().map(|record| record.file);
    tables.map(|table| table.table.file()).chain(around).collect()
}

/// What stays of tables of a run that have some of their keys in a range, and others outside of it.
fn trimmed_records(
    layout: &Layout,
    placed: &PlacedRun,
    range: &KeyBounds,
    files: &HashSet<u64>,
) -> Result<Vec<TableRecord>> {
    let mut trimmed = Vec::new();
    let record = layout.runs.iter().find(|run| run.id == placed.id);
    let Some(run) = record else { return Ok(trimmed) };
    let tables = placed.run.tables().iter().zip(&run.tables);
    for (table, record) in tables.filter(|(_, record)| files.contains(&record.file)) {
        for outside in [range.before(), range.behind()].into_iter().flatten() {
            trimmed.extend(table.clip(&outside)?.map(|rest| rest.record(record)));
        }
    }
    Ok(trimmed)
}

/// The record of the only table of all runs; None: they have another number of tables.
pub(crate) fn only_table(layout: &Layout, runs: &[PlacedRun]) -> Option<TableRecord> {
    let [placed] = runs else { return None };
    let [table] = placed.run.tables() else { return None };
    let run = layout.runs.iter().find(|run| run.id == placed.id)?;
    run.tables.iter().find(|record| record.file == table.table.file()).cloned()
}

/// The ranges that runs delete, as far as anyone sees it who reads at one of these numbers or
/// later.
pub(crate) fn tombstones_of(runs: &[PlacedRun], snapshots: &[Sequence]) -> RangeTombstones {
    let tables = runs.iter().flat_map(|placed| placed.run.tables());
    let pieces = tables.flat_map(|table| table.tombstones().pieces());
    RangeTombstones::visible_at(pieces, snapshots)
}
