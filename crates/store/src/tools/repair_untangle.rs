//! Merges tables that share keys and ages: those that merges left over, or took a part of.
//! ```text
//! table 4     a7 b8                     left over from the merge that made table 6
//! table 6     [a7 a2] b8                lost its block "a7": now a2 b8
//! neither     6 before 4: a2 hides a7   4 before 6: wrong where 6 has what came after 4
//! so          a7 a2 b8                  one table of both
//! ```
//! It is unknown which of two such tables has the newer entries for all of their keys. A merge may
//! have trimmed one of them, or taken one table of a level and left others. Also, a deletion of a
//! range may hide entries of the other. Invariant: a merged table holds each entry that any of its
//! inputs had, once.

use trommel_filters::{FlushNumber, Span};

use crate::entries::entry::Sequence;
use crate::entries::merge_cursor::MergeCursor;
use crate::entries::tombstones::RangeTombstones;
use crate::error::Result;
use crate::files::run_table::RunTable;
use crate::sync::Arc;
use crate::tools::repair_layout::{TableFacts, by_age, runs_of};
use crate::tree::run_writer::{RunOutput, RunWriter};
use crate::tree::table_files::TableFiles;

/// The result.
#[derive(Default)]
pub(crate) struct Untangled {
    pub(crate) facts: Vec<TableFacts>,
    /// Tables that were merged into others.
    pub(crate) merged: Vec<u64>,
}

/// Merges the tables of one age that share keys, and returns all others as they are. The new files
/// are added to `written`.
pub(crate) fn untangle(
    table_files: &Arc<TableFiles>,
    facts: Vec<TableFacts>,
    written: &mut Vec<u64>,
) -> Result<Untangled> {
    let mut untangled = Untangled::default();
    for group in by_age(facts) {
        if runs_of(group.clone()).len() == 1 {
            untangled.facts.extend(group);
            continue;
        }
        let output = merge(table_files, &group)?;
        written.extend(output.tables.iter().map(|(file, _)| *file));
        untangled.facts.extend(output.opened.values().map(|table| TableFacts::of(table)));
        let mut files: Vec<u64> = group.iter().map(|table| table.piece.file).collect();
        files.sort_unstable();
        files.dedup();
        untangled.merged.extend(files);
    }
    Ok(untangled)
}

fn merge(table_files: &Arc<TableFiles>, group: &[TableFacts]) -> Result<RunOutput> {
    let span = Span::of_flush(FlushNumber(0));
    let tables = group.iter().map(|facts| {
        let table = table_files.open_table(facts.piece.file)?;
        Ok(RunTable::of_record(table, &facts.record(0, 0, span)))
    });
    let tables = tables.collect::<Result<Vec<_>>>()?;
    let mut cursor = MergeCursor::over(tables.iter().map(|table| table.cursor().end_to_end()))?;
    let tombstones = tables.iter().flat_map(|table| table.tombstones().pieces());
    // A store is not read during its repair, so no older entry needs to stay visible.
    let mut writer = RunWriter::new(table_files, RangeTombstones::visible_at(tombstones, &[]));
    let mut last: Option<(Vec<u8>, Sequence)> = None;
    writer.write_kept(&mut cursor, usize::MAX, |_, entry, _| {
        let is_new =
            last.as_ref().is_none_or(|(key, at)| (&**key, *at) != (entry.key, entry.sequence));
        if is_new {
            last = Some((entry.key.to_vec(), entry.sequence));
        }
        Ok(is_new)
    })?;
    writer.finish()
}
