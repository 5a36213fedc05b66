//! Merges tables that share keys and ages: a merge has left them behind, or taken a part of them.
//! ```text
//! table 4     a7 b8                     left behind by the merge that made table 6
//! table 6     [a7 a2] b8                lost its block "a7": now a2 b8
//! neither     6 before 4: a2 hides a7   4 before 6: wrong where 6 has entries that came after 4
//! so          a7 a2 b8                  one table of both
//! ```
//! It is unknown which of two such tables has the newer entries, and this may differ by key. A
//! merge may have trimmed one of them, or taken one table of a level and left others. Also, a range
//! deletion may hide entries of the other table.
//!
//! A merge may have combined operands of one table into an entry of another. So a table that
//! records which tables it was made of replaces these, for its own keys. Invariant: a merged table
//! has each entry of any of its inputs exactly once, except for entries that another input
//! replaces.

use std::cmp::Reverse;
use std::collections::HashMap;

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

/// The result of `untangle`.
#[derive(Default)]
pub(crate) struct Untangled {
    pub(crate) facts: Vec<TableFacts>,
    /// Tables that were merged into others.
    pub(crate) merged: Vec<u64>,
}

/// Merges the tables of one age that share keys, and returns all others as they are. Adds the new
/// files to `written`.
pub(crate) fn untangle(
    table_files: &Arc<TableFiles>,
    facts: Vec<TableFacts>,
    written: &mut Vec<u64>,
) -> Result<Untangled> {
    let mut untangled = Untangled::default();
    for group in by_age(age(facts)) {
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
    // If two tables have the same entry, the one of the newer file is kept: it may combine more
    // operands.
    let mut group: Vec<&TableFacts> = group.iter().collect();
    group.sort_by_key(|facts| Reverse(facts.was));
    let replaced = Replaced::by(group.iter().copied());
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
    writer.write_kept(&mut cursor, usize::MAX, |_, entry, input| {
        let is_new =
            last.as_ref().is_none_or(|(key, at)| (&**key, *at) != (entry.key, entry.sequence));
        if is_new {
            last = Some((entry.key.to_vec(), entry.sequence));
        }
        let is_within =
            |newer: &&TableFacts| *newer.piece.from <= *entry.key && *entry.key < *newer.piece.to;
        Ok(is_new && !replaced.of(group[input].was).iter().any(is_within))
    })?;
    writer.finish()
}

/// The tables that were made of a table, by its number.
struct Replaced<'f>(HashMap<u64, Vec<&'f TableFacts>>);

impl<'f> Replaced<'f> {
    fn by(facts: impl Iterator<Item = &'f TableFacts>) -> Self {
        let mut all: HashMap<u64, Vec<&TableFacts>> = HashMap::new();
        for newer in facts {
            newer.made_of.files().for_each(|file| all.entry(file).or_default().push(newer));
        }
        Replaced(all)
    }

    fn of(&self, file: u64) -> &[&'f TableFacts] {
        self.0.get(&file).map_or(&[], |newer| &newer[..])
    }
}

/// Makes tables as old as those that they replace. Merges may have moved all entries of that age
/// into other tables.
fn age(facts: Vec<TableFacts>) -> Vec<TableFacts> {
    let mut least: HashMap<u64, Sequence> = HashMap::new();
    let replaced = Replaced::by(facts.iter());
    for older in &facts {
        for newer in replaced.of(older.was).iter().filter(|newer| newer.shares_keys(older)) {
            let least = least.entry(newer.was).or_insert(Sequence::MAX);
            *least = older.sequences.0.min(*least);
        }
    }
    let aged = |facts: TableFacts| {
        let (own, last) = facts.sequences;
        let least = least.get(&facts.was).map_or(own, |least| own.min(*least));
        TableFacts { sequences: (least, last), ..facts }
    };
    facts.into_iter().map(aged).collect()
}
