//! Writes the tables of a flush or a merge: one run, cut into files between user keys.
//! ```text
//! entries      a  c  f | h  k  m | p  t          deleted ranges   [b ....... j)        [q .... z)
//! tables       [b, h)    [h, j)    [q, z)        each has those up to the next one's first key
//! ```
//! Invariant: tables and the ranges that they delete do not overlap. A run that has deleted ranges
//! but no entries has one table.

use std::collections::{BTreeSet, HashMap};

use trommel_filters::{FilterOptions, FlushNumber, Span};

use crate::entries::compression::{Compression, EncoderDictionary};
use crate::entries::entry::Entry;
use crate::entries::expiry::EXPIRY_BYTES;
use crate::entries::held_operands::MadeEntry;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::keys::successor;
use crate::entries::merge_cursor::MergeCursor;
use crate::entries::tombstones::RangeTombstones;
use crate::error::{Error, Result};
use crate::files::table::Table;
use crate::files::table::made_of::MadeOf;
use crate::files::table::writer::{TableSummary, TableWriter};
use crate::files::value_file::ValueFile;
use crate::plan::layout::TableRecord;
use crate::storage::io_mode::Access;
use crate::sync::Arc;
use crate::tree::obsolete_files::Obsolete;
use crate::tree::table_files::TableFiles;

/// The approximate number of value bytes that one step of a merge moves.
const MOVED_BYTES_MAX: u64 = 4 << 20;

/// Writes the entries of one run, in order, into as many tables as they need.
pub(crate) struct RunWriter {
    table_files: Arc<TableFiles>,
    open: Option<(u64, TableWriter)>,
    done: Vec<(u64, TableSummary)>,
    /// All files that were created.
    files: Vec<u64>,
    last_key: Vec<u8>,
    /// The filter of each table, if the options ask for none.
    filter: Option<FilterOptions>,
    /// Bits per key of the run's filters. None: use the options.
    bits_per_key: Option<f64>,
    /// The compression of blocks, and its dictionary. None: use the options, without a dictionary.
    packing: Option<(Compression, Option<Arc<EncoderDictionary>>)>,
    access: Access,
    /// Bytes of the finished tables.
    done_bytes: u64,
    /// The deleted ranges of the run. Finished tables have those before `deleted_up_to`.
    tombstones: RangeTombstones,
    deleted_up_to: Option<Vec<u8>>,
    /// The tables that the run is made of, each with its keys, if tables are to record them.
    made_of: Vec<(u64, KeyBounds)>,
    /// Value files whose values are moved to other files.
    moved_files: Arc<BTreeSet<u64>>,
    /// The files that received moved values. They are held until the tables hold them.
    held: Vec<Arc<ValueFile>>,
    /// Bytes of values moved since the last call of `take_moved_bytes`.
    moved_bytes: u64,
}

/// The tables of a finished run, synced and opened.
#[derive(Default)]
pub(crate) struct RunOutput {
    pub(crate) tables: Vec<(u64, TableSummary)>,
    pub(crate) opened: HashMap<u64, Arc<Table>>,
}

impl RunWriter {
    /// Makes a writer of a run with these deleted ranges. Nothing is written yet.
    pub(crate) fn new(table_files: &Arc<TableFiles>, tombstones: RangeTombstones) -> Self {
        RunWriter {
            table_files: Arc::clone(table_files),
            open: None,
            done: Vec::new(),
            files: Vec::new(),
            last_key: Vec::new(),
            filter: None,
            bits_per_key: None,
            packing: None,
            access: table_files.io.flushes(),
            done_bytes: 0,
            tombstones,
            deleted_up_to: None,
            made_of: Vec::new(),
            moved_files: Arc::default(),
            held: Vec::new(),
            moved_bytes: 0,
        }
    }

    /// Makes each table record which of these tables it is made of.
    #[must_use]
    pub(crate) fn made_of(mut self, tables: Vec<(u64, KeyBounds)>) -> Self {
        self.made_of = tables;
        self
    }

    /// Makes the writer move values out of these files.
    #[must_use]
    pub(crate) fn moving(mut self, files: &Arc<BTreeSet<u64>>) -> Self {
        self.moved_files = Arc::clone(files);
        self
    }

    /// Returns the bytes of values moved since the last call.
    pub(crate) fn take_moved_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.moved_bytes)
    }

    /// Gives tables this filter, if the options ask for none.
    #[must_use]
    pub(crate) fn with_filter(mut self, filter: Option<FilterOptions>) -> Self {
        self.filter = filter;
        self
    }

    /// Sets the bits per key of filters. None: use the options.
    #[must_use]
    pub(crate) fn with_filter_bits(mut self, bits_per_key: Option<f64>) -> Self {
        self.bits_per_key = bits_per_key;
        self
    }

    /// Sets the compression of blocks.
    #[must_use]
    pub(crate) fn packed(
        mut self,
        compression: Compression,
        dictionary: Option<Arc<EncoderDictionary>>,
    ) -> Self {
        self.packing = Some((compression, dictionary));
        self
    }

    /// Marks the run as one that a merge writes.
    #[must_use]
    pub(crate) fn by_a_merge(mut self) -> Self {
        self.access = self.table_files.io.merges();
        self
    }

    /// Adds an entry. All entries of a user key go into one table.
    pub(crate) fn add(&mut self, entry: &Entry<'_>) -> Result<()> {
        let full =
            |writer: &TableWriter| writer.size_bytes() >= self.table_files.options.table_bytes;
        if self.open.as_ref().is_some_and(|(_, writer)| full(writer)) && self.is_new(entry.key) {
            self.cut(entry.key)?;
        }
        if self.open.is_none() {
            // Keys of tables must not overlap.
            if !self.files.is_empty() && *entry.key <= *self.last_key {
                let what = format!("no place for key {}: out of order", entry.key.escape_ascii());
                return Err(Error::corrupt(self.table_files.folder.path(), 0, what));
            }
            self.begin_table()?;
        }
        let moved = if entry.kind.is_apart() { self.moved_value(entry)? } else { None };
        let value = moved.as_deref().unwrap_or(entry.value);
        let (_, writer) = self.open.as_mut().expect("opened above");
        writer.add(&Entry { value, ..*entry })?;
        if self.last_key != entry.key {
            self.last_key.clear();
            self.last_key.extend_from_slice(entry.key);
        }
        Ok(())
    }

    /// Copies the entry's value if its file is being emptied. Returns the value to store instead.
    /// None: the value stays.
    #[cold]
    fn moved_value(&mut self, entry: &Entry<'_>) -> Result<Option<Vec<u8>>> {
        let Some(Ok(at)) = entry.value_ref() else { return Ok(None) };
        if !self.moved_files.contains(&at.file) {
            return Ok(None);
        }
        let Some((to, file)) = self.table_files.values.copy(&at)? else { return Ok(None) };
        self.moved_bytes += at.len;
        if self.held.last().is_none_or(|last| !Arc::ptr_eq(last, &file)) {
            self.held.push(file);
        }
        let time = if entry.kind.has_expiry() { &entry.value[..EXPIRY_BYTES] } else { &[] };
        Ok(Some([time, &to.encode()].concat()))
    }

    /// Adds entries that were computed from others.
    pub(crate) fn add_made(&mut self, made: Vec<MadeEntry>) -> Result<()> {
        made.iter().try_for_each(|made| self.add(&made.entry()))
    }

    /// Adds the entries that `keeps` accepts, up to `entries_max` entries of the cursor. `keeps`
    /// also gets the number of the entry's input. Stops early after moving many bytes of values.
    /// True: the cursor is at its end.
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
            if self.moved_bytes >= MOVED_BYTES_MAX {
                break;
            }
        }
        Ok(false)
    }

    /// Syncs the values that the tables refer to, then the tables and their names. Returns the
    /// tables, opened.
    pub(crate) fn finish(mut self) -> Result<RunOutput> {
        self.table_files.values.store.sync()?;
        if self.open.is_none() && !self.own_tombstones(None).is_empty() {
            self.begin_table()?;
        }
        self.finish_table(None)?;
        let tables = std::mem::take(&mut self.done);
        if !tables.is_empty() {
            self.table_files.folder.sync()?;
        }
        let open =
            |(file, _): &(u64, TableSummary)| Ok((*file, self.table_files.open_new_table(*file)?));
        let opened = tables.iter().map(open).collect::<Result<_>>()?;
        self.files.clear();
        Ok(RunOutput { tables, opened })
    }

    /// Whether an entry of this key begins a new key.
    pub(crate) fn is_new(&self, key: &[u8]) -> bool {
        *self.last_key != *key
    }

    /// Bytes written so far.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.done_bytes + self.open.as_ref().map_or(0, |(_, writer)| writer.size_bytes())
    }

    /// Ends the table. The next entry, with this key, begins another one.
    pub(crate) fn cut(&mut self, next: &[u8]) -> Result<()> {
        self.finish_table(Some(next))
    }

    fn begin_table(&mut self) -> Result<()> {
        let file = self.table_files.new_file();
        let mut options = self.table_files.table_options(self.bits_per_key);
        options.filter = options.filter.or_else(|| self.filter.clone());
        if let Some((compression, dictionary)) = &self.packing {
            (options.compression, options.dictionary) = (*compression, dictionary.clone());
        }
        let folder = &self.table_files.folder;
        let writer = TableWriter::create(folder, file, self.access, &options)?;
        // Not earlier: an existing file of that name belongs to somebody else.
        self.files.push(file);
        self.open = Some((file, writer));
        Ok(())
    }

    /// Finishes the table, with the deleted ranges of the run before `next`, the first key of the
    /// next table. None: all remaining ranges.
    fn finish_table(&mut self, next: Option<&[u8]>) -> Result<()> {
        let Some((file, mut writer)) = self.open.take() else { return Ok(()) };
        if writer.entry_count() > 0 && !self.made_of.is_empty() {
            let (from, to) = (writer.first_key().to_vec(), Some(successor(&self.last_key)));
            let own = KeyBounds { from, to };
            let meets = |keys: &KeyBounds| keys.ends_after(&own.from) && own.ends_after(&keys.from);
            let tables = self.made_of.iter().filter(|(_, keys)| meets(keys));
            writer.set_made_of(MadeOf::new(tables.map(|(file, _)| *file).collect()));
        }
        let own = self.own_tombstones(next);
        if let Some(next) = next {
            self.deleted_up_to = Some(next.to_vec());
        }
        let summary = writer.finish(&own)?;
        self.done_bytes += summary.bytes;
        self.done.push((file, summary));
        Ok(())
    }

    /// Returns the deleted ranges of the run that lie before `next` and that no finished table has.
    fn own_tombstones(&self, next: Option<&[u8]>) -> RangeTombstones {
        self.tombstones.cut(self.deleted_up_to.as_deref(), next)
    }
}

impl Drop for RunWriter {
    /// Removes the files of an unfinished run. Otherwise retries on a full disk would fill it
    /// further.
    fn drop(&mut self) {
        self.files.iter().for_each(|&file| self.table_files.discard(Obsolete::Table(file)));
    }
}

/// Returns the record of a table whose keys all belong to the tree. Its run, level and span are set
/// later.
pub(crate) fn whole_table(
    file: u64,
    (from, to): (Vec<u8>, Vec<u8>),
    entries: u64,
    bytes: u64,
) -> TableRecord {
    TableRecord {
        file,
        run: 0,
        level: 0,
        from,
        to,
        span: Span::of_flush(FlushNumber(0)),
        is_trimmed: false,
        skipped: 0,
        entries,
        file_entries: entries,
        bytes,
    }
}

impl RunOutput {
    /// Removes the tables of the run. Requires: nothing names them.
    pub(crate) fn abandon(&self, table_files: &TableFiles) {
        self.tables.iter().for_each(|(file, _)| table_files.discard(Obsolete::Table(*file)));
    }

    /// Returns the manifest's records of the tables.
    pub(crate) fn records(&self, run: u64, level: usize, span: Span) -> Vec<TableRecord> {
        let record = |(file, summary): &(u64, TableSummary)| {
            let bounds = (summary.from.clone(), summary.to.clone());
            let whole = whole_table(*file, bounds, summary.entries, summary.bytes);
            TableRecord { run, level, span, ..whole }
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
