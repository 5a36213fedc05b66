//! Damaged tables that share keys and ages with others: what merges have left over.
//! ```text
//! table 4     a7 b8                     left over from the merge that made table 6
//! table 6     [a7 a2] b8                of whose block "a7" a repair has saved nothing: a2 b8
//! neither     6 before 4: a2 hides a7   4 before 6: wrong where 6 has what came after 4
//! so          a7 a2 b8                  one table of both
//! ```
//! A table that a merge of a key range has trimmed is such a case as well, where no manifest tells what was trimmed off.
//! The same where one of them deletes ranges: then all of its age are one table, as they were one run.
//! Invariant: tables that are merged here hold each entry that any of them had, once.

use crate::cursor::Cursor;
use crate::entry::Sequence;
use crate::error::Result;
use crate::merge::MergeCursor;
use crate::output::{RunOutput, RunWriter, RunWriterState, Shelf};
use crate::repair_layout::{TableFacts, by_age, runs_of};
use crate::tombstones::RangeTombstones;

/// What became of tables.
#[derive(Default)]
pub(crate) struct Untangled {
    pub(crate) facts: Vec<TableFacts>,
    /// Tables that others were made of.
    pub(crate) merged: Vec<u64>,
}

/// The tables, but for those of one age that share keys, where one of them is in `written`: it may have lost entries, and what
/// takes the place of all of them was merged from what they have. The new files are added to `written`.
pub(crate) fn untangle(
    shelf: &Shelf,
    facts: Vec<TableFacts>,
    written: &mut Vec<u64>,
) -> Result<Untangled> {
    let mut untangled = Untangled::default();
    for group in by_age(facts) {
        // What came from logs has the newest entry of each of its keys.
        let is_partial = |table: &TableFacts| !table.is_newest && written.contains(&table.file);
        // What a range deletion of an older run hides in a newer one would come back when a merge has dropped the deletion.
        let must_merge = |table: &TableFacts| is_partial(table) || table.deletes_ranges;
        let runs = runs_of(group.clone());
        if runs.len() == 1 || !(group.iter().any(must_merge) || is_crossed(&runs)) {
            untangled.facts.extend(group);
            continue;
        }
        let output = merge(shelf, &group)?;
        written.extend(output.tables.iter().map(|(file, _)| *file));
        untangled.facts.extend(output.opened.values().map(|table| TableFacts::of(table)));
        untangled.merged.extend(group.iter().map(|table| table.file));
    }
    Ok(untangled)
}

/// Whether of two tables that share keys the one with the newest entry was written first. Merges write newer tables with
/// newer entries, but for one case: a merge of a key range has trimmed the first, which has newer entries elsewhere, and keys
/// that the second one has since.
fn is_crossed(runs: &[Vec<TableFacts>]) -> bool {
    let is_crossed_by = |newer: &TableFacts, older: &TableFacts| {
        !newer.is_newest && newer.file < older.file && newer.shares_keys(older)
    };
    let pairs = runs.iter().enumerate().flat_map(|(at, newer)| {
        newer.iter().flat_map(move |table| runs[at + 1..].iter().flatten().map(move |o| (table, o)))
    });
    pairs.into_iter().any(|(newer, older)| is_crossed_by(newer, older))
}

fn merge(shelf: &Shelf, group: &[TableFacts]) -> Result<RunOutput> {
    let tables = group.iter().map(|table| shelf.open_table(table.file));
    let tables = tables.collect::<Result<Vec<_>>>()?;
    let cursors = tables.iter().map(|table| {
        let cursor: Box<dyn Cursor + Send> = Box::new(table.cursor().fill_cache(false));
        cursor
    });
    let mut cursor = MergeCursor::new(cursors.collect())?;
    let tombstones = tables.iter().flat_map(|table| table.tombstones().pieces());
    let state = RunWriterState::default().deleting(RangeTombstones::of(tombstones));
    let mut writer = RunWriter::new(shelf, state);
    let mut last: Option<(Vec<u8>, Sequence)> = None;
    while let Some(entry) = cursor.entry() {
        let is_new =
            last.as_ref().is_none_or(|(key, at)| (&**key, *at) != (entry.key, entry.sequence));
        if is_new {
            writer.add(&entry)?;
            last = Some((entry.key.to_vec(), entry.sequence));
        }
        cursor.next()?;
    }
    writer.finish()
}
