//! The tables that a flush or a merge writes: one run, cut into files between user keys.
//! ```text
//! entries      a  c  f | h  k  m | p  t          deleted ranges   [b ....... j)        [q .... z)
//! tables       [b, h)    [h, j)    [q, z)        each has those up to the next one's first key
//! ```
//! Invariant: tables, with the ranges that they delete, do not overlap. A run without entries that
//! deletes ranges has one table.

use std::collections::HashMap;

use trommel_filters::{FilterOptions, Span};

use crate::entries::entry::{Entry, Sequence};
use crate::entries::merge_cursor::MergeCursor;
use crate::entries::tombstones::RangeTombstones;
use crate::error::{Error, Result};
use crate::files::table::Table;
use crate::files::table::writer::{TableSummary, TableWriter};
use crate::plan::layout::TableRecord;
use crate::storage::io_mode::WrittenBy;
use crate::sync::Arc;
use crate::tree::table_files::TableFiles;

/// Writes the entries of one run, in order, into as many tables as they need.
pub(crate) struct RunWriter<'a> {
    table_files: &'a TableFiles,
    state: RunWriterState,
}

/// The part of a [`RunWriter`] that lives on between the steps of a merge.
#[derive(Default)]
pub(crate) struct RunWriterState {
    open: Option<(u64, TableWriter)>,
    done: Vec<(u64, TableSummary)>,
    /// All files that were begun.
    files: Vec<u64>,
    last_key: Vec<u8>,
    /// The filter of each table, if the options ask for none.
    filter: Option<FilterOptions>,
    /// Bits per key of the run's filters; None: as the options say.
    bits_per_key: Option<f64>,
    by: WrittenBy,
    /// Bytes of the tables that are done.
    done_bytes: u64,
    /// The ranges that the run deletes. The tables that are done have those before a key.
    tombstones: RangeTombstones,
    deleted_up_to: Option<Vec<u8>>,
}

impl RunWriterState {
    /// Nothing is written yet. Tables get this filter if the options ask for none.
    pub(crate) fn with_filter(filter: Option<FilterOptions>) -> Self {
        RunWriterState { filter, ..RunWriterState::default() }
    }

    /// Nothing written yet; filters of so many bits per key, or as the options say.
    pub(crate) fn with_filter_bits(bits_per_key: Option<f64>) -> Self {
        RunWriterState { bits_per_key, ..RunWriterState::default() }
    }

    /// The run is written by a merge.
    #[must_use]
    pub(crate) fn by_a_merge(self) -> Self {
        RunWriterState { by: WrittenBy::Merge, ..self }
    }

    /// The run deletes these ranges too.
    #[must_use]
    pub(crate) fn deleting(self, tombstones: RangeTombstones) -> Self {
        RunWriterState { tombstones, ..self }
    }
}

/// The tables of a finished run, synced and opened.
#[derive(Default)]
pub(crate) struct RunOutput {
    pub(crate) tables: Vec<(u64, TableSummary)>,
    pub(crate) opened: HashMap<u64, Arc<Table>>,
}

impl<'a> RunWriter<'a> {
    pub(crate) fn new(table_files: &'a TableFiles, state: RunWriterState) -> Self {
        RunWriter { table_files, state }
    }

    /// Puts the writer aside until the next step.
    pub(crate) fn pause(mut self) -> RunWriterState {
        std::mem::take(&mut self.state)
    }

    /// Adds an entry. A user key's entries never cross a table.
    pub(crate) fn add(&mut self, entry: &Entry<'_>) -> Result<()> {
        let state = &mut self.state;
        let full =
            |writer: &TableWriter| writer.size_bytes() >= self.table_files.options.table_bytes;
        if state.open.as_ref().is_some_and(|(_, writer)| full(writer))
            && state.last_key != entry.key
        {
            finish_table(state, Some(entry.key))?;
        }
        if state.open.is_none() {
            // The keys of tables must not overlap.
            if !state.files.is_empty() && *entry.key <= *state.last_key {
                let what = format!("no place for key {}: out of order", entry.key.escape_ascii());
                return Err(Error::corrupt(self.table_files.folder.path(), 0, what));
            }
            begin_table(self.table_files, state)?;
        }
        let (_, writer) = state.open.as_mut().expect("opened above");
        writer.add(entry)?;
        if state.last_key != entry.key {
            state.last_key.clear();
            state.last_key.extend_from_slice(entry.key);
        }
        Ok(())
    }

    /// Writes those of the next entries that `keeps` accepts; the number is that of the entry's
    /// input. True: the cursor has come to its end, within so many entries.
    pub(crate) fn write_kept(
        &mut self,
        cursor: &mut MergeCursor,
        entries_max: usize,
        mut keeps: impl FnMut(&mut Self, &Entry<'_>, usize) -> Result<bool>,
    ) -> Result<bool> {
        for _ in 0..entries_max {
            let Some(entry) = cursor.entry() else { return Ok(true) };
            if keeps(self, &entry, cursor.input())? {
                self.add(&entry)?;
            }
            cursor.next()?;
        }
        Ok(false)
    }

    /// Syncs the tables and their names, and opens them.
    pub(crate) fn finish(mut self) -> Result<RunOutput> {
        if self.state.open.is_none() && !own_tombstones(&self.state, None).is_empty() {
            begin_table(self.table_files, &mut self.state)?;
        }
        finish_table(&mut self.state, None)?;
        let tables = std::mem::take(&mut self.state.done);
        if !tables.is_empty() {
            self.table_files.folder.sync()?;
        }
        let open =
            |(file, _): &(u64, TableSummary)| Ok((*file, self.table_files.open_table(*file)?));
        let opened = tables.iter().map(open).collect::<Result<_>>()?;
        self.state.files.clear();
        Ok(RunOutput { tables, opened })
    }

    /// Whether an entry of this key begins a new key.
    pub(crate) fn is_new(&self, key: &[u8]) -> bool {
        *self.state.last_key != *key
    }

    /// Bytes written so far.
    pub(crate) fn written_bytes(&self) -> u64 {
        let open = self.state.open.as_ref().map_or(0, |(_, writer)| writer.size_bytes());
        self.state.done_bytes + open
    }

    /// Ends the table: the next entry, with this key, begins another one.
    pub(crate) fn cut(&mut self, next: &[u8]) -> Result<()> {
        finish_table(&mut self.state, Some(next))
    }
}

impl Drop for RunWriter<'_> {
    /// A run that failed half-way leaves no files: retries on a full disk would make it fuller.
    fn drop(&mut self) {
        self.state.files.iter().for_each(|&file| self.table_files.discard(file));
    }
}

fn begin_table(table_files: &TableFiles, state: &mut RunWriterState) -> Result<()> {
    let file = table_files.new_file();
    let mut options = table_files.table_options(state.bits_per_key);
    options.filter = options.filter.or_else(|| state.filter.clone());
    let access = table_files.io.writes(state.by);
    let writer = TableWriter::create(&table_files.folder, file, access, &options)?;
    // Not earlier: a file that was there before is another's.
    state.files.push(file);
    state.open = Some((file, writer));
    Ok(())
}

/// Gives the table the ranges that the run deletes before `next`, the first key of the table after
/// it. None: all that are left.
fn finish_table(state: &mut RunWriterState, next: Option<&[u8]>) -> Result<()> {
    let Some((file, writer)) = state.open.take() else { return Ok(()) };
    let own = own_tombstones(state, next);
    if let Some(next) = next {
        state.deleted_up_to = Some(next.to_vec());
    }
    let summary = writer.finish(&own)?;
    state.done_bytes += summary.bytes;
    state.done.push((file, summary));
    Ok(())
}

/// The ranges that the run deletes before `next` and that no finished table has.
fn own_tombstones(state: &RunWriterState, next: Option<&[u8]>) -> RangeTombstones {
    state.tombstones.cut(state.deleted_up_to.as_deref(), next)
}

impl RunOutput {
    /// Removes its tables. Requires: nothing names them.
    pub(crate) fn abandon(&self, table_files: &TableFiles) {
        self.tables.iter().for_each(|(file, _)| table_files.discard(*file));
    }

    /// The tables as the manifest knows them. `span`: the flushes of a table, by the sequence
    /// numbers of its entries.
    pub(crate) fn records(
        &self,
        run: u64,
        level: usize,
        span: impl Fn((Sequence, Sequence)) -> Span,
    ) -> Vec<TableRecord> {
        let record = |(file, summary): &(u64, TableSummary)| TableRecord {
            file: *file,
            run,
            level,
            from: summary.from.clone(),
            to: summary.to.clone(),
            span: span(summary.sequences),
            is_trimmed: false,
            skipped: 0,
            entries: summary.entries,
            file_entries: summary.entries,
            bytes: summary.bytes,
        };
        self.tables.iter().map(record).collect()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.tables.iter().map(|(_, summary)| summary.bytes).sum()
    }

    pub(crate) fn entries(&self) -> u64 {
        self.tables.iter().map(|(_, summary)| summary.entries).sum()
    }

    pub(crate) fn filter_seconds(&self) -> f64 {
        self.tables.iter().map(|(_, summary)| summary.filter_seconds).sum()
    }
}
