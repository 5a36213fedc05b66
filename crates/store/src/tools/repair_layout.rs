//! Builds a tree from what tables say about themselves, without a manifest.
//! ```text
//! sequence numbers   |-- run of tables 3, 4 --|   |-- 9 --|   |--- 11 ---|
//!                                                               |- 12 -|   11 and 12: one flush
//! tree               flush 0, level 1             flush 1     flush 2: two runs if they share keys
//! ```
//! Invariants: the runs of a sound tree have disjoint intervals of sequence numbers. So tables
//! whose intervals overlap belong to one run, or a merge has left one of them behind. Either way
//! they all get one flush number, and each entry's flush lies in its table's span. Of two tables
//! that share keys, the newer one is in the newer run.

use trommel_filters::{FlushNumber, Span};

use crate::entries::entry::Sequence;
use crate::files::table::Table;
use crate::files::table::made_of::MadeOf;
use crate::plan::layout::{FlushRecord, Layout, RunRecord, TableRecord};
use crate::tree::run_writer::whole_table;

/// What a table says about itself. For a trimmed table, also what the manifest says about a piece
/// of it.
#[derive(Clone, Debug)]
pub(crate) struct TableFacts {
    /// The table or the piece. Its run, level and span are not known yet.
    pub(crate) piece: TableRecord,
    pub(crate) sequences: (Sequence, Sequence),
    /// The file whose entries it has. This is another file if that one was damaged.
    pub(crate) was: u64,
    /// The tables that it was made of, if it has all that these had for its keys.
    pub(crate) made_of: MadeOf,
    /// Whether it was made of logs, and so has the newest entry of each of its keys.
    pub(crate) is_newest: bool,
}

impl TableFacts {
    pub(crate) fn of(table: &Table) -> Self {
        let (entries, bytes) = (table.entry_count(), table.bytes());
        let piece = whole_table(table.file(), table.key_bounds(), entries, bytes);
        let (sequences, was) = (table.properties().sequences, table.file());
        TableFacts { piece, sequences, was, made_of: MadeOf::default(), is_newest: false }
    }

    /// Describes the piece of a trimmed table that the record names. The rest was merged into other
    /// tables.
    pub(crate) fn of_piece(table: &Table, record: Option<&TableRecord>) -> Self {
        let whole = TableFacts::of(table);
        let fits = |record: &&TableRecord| {
            record.is_trimmed
                && whole.piece.from <= record.from
                && record.to <= whole.piece.to
                && record.file_entries == whole.piece.file_entries
                && table.has_piece(record)
        };
        let Some(record) = record.filter(fits) else { return whole };
        let (file, bytes) = (whole.piece.file, whole.piece.bytes);
        TableFacts { piece: TableRecord { file, bytes, ..record.clone() }, ..whole }
    }

    pub(crate) fn shares_keys(&self, other: &TableFacts) -> bool {
        self.piece.from < other.piece.to && other.piece.from < self.piece.to
    }

    /// Returns the table's record for a manifest.
    pub(crate) fn record(&self, run: u64, level: usize, span: Span) -> TableRecord {
        TableRecord { run, level, span, ..self.piece.clone() }
    }
}

/// Returns the tree of these tables, and the files of tables that share keys and ages with a newer
/// table. The caller sets the numbers of files and logs.
pub(crate) fn layout_of(tables: Vec<TableFacts>) -> (Layout, Vec<u64>) {
    let mut layout = Layout::default();
    let mut doubtful = Vec::new();
    for (flush, tables) in (0..).map(FlushNumber).zip(by_age(tables)) {
        let span = Span::of_flush(flush);
        let least = tables.iter().map(|table| table.sequences.0).min().expect("not empty");
        layout.flushes.push(FlushRecord { flush, first: least });
        let runs = runs_of(tables);
        doubtful.extend(runs[1..].iter().flatten().map(|table| table.piece.file));
        // The loop begins with the oldest run, and inserts newer ones before it.
        for run in runs.iter().rev() {
            let level = usize::from(layout.runs.is_empty());
            layout.runs.insert(0, run_record(run, level, span));
        }
        layout.next_flush = flush.next();
    }
    (layout, doubtful)
}

/// Groups tables whose intervals of sequence numbers overlap, oldest group first.
pub(crate) fn by_age(mut tables: Vec<TableFacts>) -> Vec<Vec<TableFacts>> {
    tables.sort_by_key(|table| table.sequences);
    let mut groups: Vec<Vec<TableFacts>> = Vec::new();
    let mut greatest = Sequence(0);
    for table in tables {
        let (least, last) = table.sequences;
        match groups.last_mut() {
            Some(group) if least <= greatest => group.push(table),
            _ => groups.push(vec![table]),
        }
        greatest = greatest.max(last);
    }
    groups
}

/// Distributes tables of one age to runs, newest first. Tables that share no keys are in one run.
pub(crate) fn runs_of(mut tables: Vec<TableFacts>) -> Vec<Vec<TableFacts>> {
    tables.sort_by_key(|table| {
        std::cmp::Reverse((table.is_newest, table.sequences.1, table.piece.file))
    });
    let mut runs: Vec<Vec<TableFacts>> = Vec::new();
    for table in tables {
        let shares = |run: &Vec<TableFacts>| run.iter().any(|other| other.shares_keys(&table));
        // Behind every newer table with which it shares keys.
        let place = runs.iter().rposition(shares).map_or(0, |newer| newer + 1);
        match runs.get_mut(place) {
            Some(run) => run.push(table),
            None => runs.push(vec![table]),
        }
    }
    runs
}

fn run_record(tables: &[TableFacts], level: usize, span: Span) -> RunRecord {
    let id = tables.iter().map(|table| table.piece.file).min().expect("not empty");
    let mut tables: Vec<_> = tables.iter().map(|table| table.record(id, level, span)).collect();
    tables.sort_by(|one, other| one.from.cmp(&other.from));
    RunRecord { id, level, tables }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(file: u64, keys: (&str, &str), sequences: (u64, u64)) -> TableFacts {
        let piece = TableRecord {
            from: keys.0.into(),
            to: crate::entries::keys::successor(keys.1.as_ref()),
            ..crate::plan::layout::tests::table(file, 0, 0, 0, 1)
        };
        let sequences = (Sequence(sequences.0), Sequence(sequences.1));
        TableFacts { piece, sequences, was: file, made_of: MadeOf::default(), is_newest: false }
    }

    /// Returns the files of each run, newest first, with level and span.
    fn runs(layout: &Layout) -> Vec<(Vec<u64>, usize, u64, u64)> {
        let span = |run: &RunRecord| (run.span().lo().0, run.span().hi().0);
        let runs = layout.runs.iter();
        runs.map(|run| (run.files(), run.level, span(run).0, span(run).1)).collect()
    }

    #[test]
    fn runs_are_told_apart_by_age_and_tables_of_a_run_stay_together() {
        let tables = vec![
            table(11, ("a", "z"), (61, 70)),
            table(4, ("m", "z"), (2, 50)),
            table(9, ("b", "c"), (51, 60)),
            table(3, ("a", "k"), (1, 49)),
        ];
        let (layout, doubtful) = layout_of(tables);
        assert_eq!(runs(&layout), [(vec![11], 0, 2, 3), (vec![9], 0, 1, 2), (vec![3, 4], 1, 0, 1)]);
        assert_eq!(doubtful, [0u64; 0]);
        let firsts: Vec<_> = layout.flushes.iter().map(|record| record.first.0).collect();
        assert_eq!((firsts, layout.next_flush), (vec![1, 51, 61], FlushNumber(3)));
        let edit = layout.as_edit();
        assert_eq!(Layout::default().apply(&edit), Ok(layout), "a manifest can tell of it");
    }

    #[test]
    fn what_a_merge_has_left_over_is_older_than_what_it_made() {
        let tables = vec![
            table(5, ("a", "z"), (10, 20)),
            table(6, ("a", "z"), (21, 30)),
            table(7, ("a", "z"), (10, 30)),
        ];
        let (layout, doubtful) = layout_of(tables);
        assert_eq!(runs(&layout), [(vec![7], 0, 0, 1), (vec![6], 0, 0, 1), (vec![5], 1, 0, 1)]);
        assert_eq!(doubtful, [6, 5]);
        assert_eq!(Layout::default().apply(&layout.as_edit()), Ok(layout));
    }

    #[test]
    fn what_came_from_logs_is_newest() {
        let log = TableFacts { is_newest: true, ..table(9, ("c", "d"), (15, 25)) };
        let (layout, doubtful) = layout_of(vec![log, table(5, ("a", "z"), (10, 30))]);
        assert_eq!(runs(&layout), [(vec![9], 0, 0, 1), (vec![5], 1, 0, 1)]);
        assert_eq!(doubtful, [5]);
    }

    #[test]
    fn no_tables_are_an_empty_tree() {
        assert_eq!(layout_of(Vec::new()), (Layout::default(), Vec::new()));
    }
}
