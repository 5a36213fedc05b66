//! What a merge reads of its inputs, and what stays of them.
//! ```text
//! newer input    [ a | b ][ c ][ d ]        merged: c                    trimmed: nothing, c is a table
//! oldest input     [ e ][  f  ][ g  ]       merged: e f g, which c meets
//! staying        of the newer input, what lies beside c where e, f and g do: it is merged another time
//! ```
//! Invariant: what is merged, what is trimmed and the tables that neither has to do with are all of the inputs.

use std::collections::HashSet;

use crate::error::Result;
use crate::key_bounds::KeyBounds;
use crate::layout::{Layout, TableRecord};
use crate::tombstones::RangeTombstones;
use crate::version::PlacedRun;

/// The inputs of a merge of key ranges.
pub(crate) struct Pieces {
    /// What is merged, newest first: of the inputs that have something there.
    pub(crate) inputs: Vec<PlacedRun>,
    /// What newer inputs have beside that, within the range of the oldest one.
    pub(crate) staying: Vec<PlacedRun>,
    /// What stays of tables that are merged in part.
    pub(crate) trimmed: Vec<TableRecord>,
}

impl Pieces {
    /// Of runs, newest first: those keys of the newer ones, and those of the oldest one, which has the others in it.
    pub(crate) fn of(
        layout: &Layout,
        runs: &[PlacedRun],
        (newer, oldest): (&KeyBounds, &KeyBounds),
    ) -> Result<Pieces> {
        let (mut inputs, mut staying, mut trimmed) = (Vec::new(), Vec::new(), Vec::new());
        for (place, placed) in runs.iter().enumerate() {
            let is_oldest = place + 1 == runs.len();
            let merged = if is_oldest { oldest } else { newer };
            inputs.extend(placed.within(merged)?);
            trimmed.extend(trimmed_records(layout, placed, merged)?);
            for beside in newer.beside(oldest).iter().filter(|_| !is_oldest) {
                staying.extend(placed.within(beside)?);
            }
        }
        Ok(Pieces { inputs, staying, trimmed })
    }
}

/// What stays of the tables of a run that have some of their keys in a range, and others outside of it.
fn trimmed_records(
    layout: &Layout,
    placed: &PlacedRun,
    range: &KeyBounds,
) -> Result<Vec<TableRecord>> {
    let mut trimmed = Vec::new();
    let record = layout.runs.iter().find(|run| run.id == placed.id);
    let (Some(inside), Some(run)) = (placed.run.clip(range)?, record) else { return Ok(trimmed) };
    let files: HashSet<u64> = inside.tables().iter().map(|table| table.table.file()).collect();
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

/// The ranges that runs delete.
pub(crate) fn tombstones_of(runs: &[PlacedRun]) -> RangeTombstones {
    let tables = runs.iter().flat_map(|placed| placed.run.tables());
    RangeTombstones::of(tables.flat_map(|table| table.tombstones().pieces()))
}
