//! The files of tables: their names, and how they are opened, read and written.
//! ```text
//! manifest  ─ each table that it names ─> open, bounds as in the manifest ─> a table, with a
//!                                                                            sound filter or none
//! ```
//! Invariant: each file number is used for one file only.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};

use trommel_filters::{FilterKind, FilterOptions, RunLocatorKind};

use crate::entries::keyspace_id::KeyspaceId;
use crate::error::{Error, Result};
use crate::files::cache::CacheShare;
use crate::files::cached_values::CachedValues;
use crate::files::table::Table;
use crate::files::table::writer::TableOptions;
use crate::files::value_files::{StoreValues, ValueFiles};
use crate::files::wal::LogFolder;
use crate::guard::empty_ranges::EmptyRanges;
use crate::plan::layout::{Layout, TableRecord};
use crate::plan::options::Options;
use crate::storage::exhausted::share_of_process;
use crate::storage::io_mode::IoStats;
use crate::storage::open_files::OpenFiles;
use crate::storage::open_folder::OpenFolder;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, lock};
use crate::tree::obsolete_files::Obsolete;

/// The folder of the tables of a key space, and everything that is needed to write and open them.
pub(crate) struct TableFiles {
    pub(crate) folder: OpenFolder,
    /// The key space of the tables.
    pub(crate) keyspace: KeyspaceId,
    pub(crate) cache: Arc<CacheShare>,
    pub(crate) options: Arc<Options>,
    /// How tables are read and written.
    pub(crate) io: IoStats,
    /// The open files of tables.
    pub(crate) files: Arc<OpenFiles>,
    pub(crate) empty_ranges: EmptyRanges,
    /// The value files of its key space.
    pub(crate) values: ValueFiles,
    /// Values of these files that gets have read recently.
    pub(crate) cached_values: CachedValues,
    next_file: Arc<AtomicU64>,
    /// Files of the store that nothing names but that could not be removed.
    left_over: Arc<Mutex<Vec<Obsolete>>>,
}

fn values_of(store: Arc<StoreValues>, keyspace: KeyspaceId, options: &Options) -> ValueFiles {
    let compression = [false, true].map(|is_moved| options.packing(is_moved).compression);
    ValueFiles::new(store, keyspace, options.value_file_bytes, compression)
}

fn cached_values(cache: &Arc<CacheShare>, files: &OpenFiles, options: &Options) -> CachedValues {
    CachedValues::new(Arc::clone(cache), files.life(), options.value_threshold)
}

impl TableFiles {
    /// Makes the tables' state for this kind of I/O. Requires: the storage has granted it.
    pub(crate) fn new(
        folder: OpenFolder,
        options: &Arc<Options>,
        cache: Arc<CacheShare>,
        io: IoStats,
        next_file: u64,
    ) -> Self {
        // As many as the options allow, or else as many as the process has room for.
        let files_max = options.max_open_files.unwrap_or_else(share_of_process);
        let files = OpenFiles::new(folder.clone(), io.reads(), files_max);
        let next_file = Arc::new(AtomicU64::new(next_file));
        let empty_ranges = EmptyRanges::new(options);
        let (keyspace, options) = (KeyspaceId::DEFAULT, Arc::clone(options));
        let store = StoreValues::new(folder.clone(), Arc::clone(&files), Arc::clone(&next_file));
        let values = values_of(Arc::new(store), keyspace, &options);
        let cached_values = cached_values(&cache, &files, &options);
        TableFiles {
            folder,
            keyspace,
            cache,
            options,
            io,
            files,
            empty_ranges,
            values,
            cached_values,
            next_file,
            left_over: Arc::default(),
        }
    }

    /// Returns the folder for logs, and how logs are written.
    pub(crate) fn log_folder(&self) -> LogFolder<'_> {
        (&self.folder, self.options.log_access())
    }

    /// Makes the same for the tree of another key space of the store.
    pub(crate) fn sharing(&self, keyspace: KeyspaceId, options: &Arc<Options>) -> Self {
        let cache = self.cache.another();
        TableFiles {
            folder: self.folder.clone(),
            keyspace,
            cached_values: cached_values(&cache, &self.files, options),
            cache,
            options: Arc::clone(options),
            io: self.io,
            files: Arc::clone(&self.files),
            empty_ranges: EmptyRanges::new(options),
            values: values_of(Arc::clone(&self.values.store), keyspace, options),
            next_file: Arc::clone(&self.next_file),
            left_over: Arc::clone(&self.left_over),
        }
    }

    /// Returns a new file number.
    pub(crate) fn new_file(&self) -> u64 {
        self.next_file.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the least number that no file has.
    pub(crate) fn next_file(&self) -> u64 {
        self.next_file.load(Ordering::Relaxed)
    }

    /// Makes a table hold its value files. Requires: they are held, or no value file is removed
    /// meanwhile.
    fn hold_values(&self, table: &Table) -> Result<()> {
        if table.named_values().is_empty() {
            return Ok(());
        }
        let found = |(number, _)| {
            let file = self.values.store.found(number)?;
            if file.keyspace() != self.keyspace {
                let what = format!("it has values of key space number {}", file.keyspace().0);
                return Err(Error::corrupt(file.path(), 0, what));
            }
            Ok(file)
        };
        let files = table.named_values().iter().map(found).collect::<Result<_>>()?;
        table.hold_values(files);
        Ok(())
    }

    /// Removes a file that nothing names: now, or in a later sweep.
    pub(crate) fn discard(&self, file: Obsolete) {
        // The thread may be panicking. A storage that panics counts as a failure.
        let is_gone = catch_unwind(AssertUnwindSafe(|| self.remove(file))).unwrap_or(false);
        if !is_gone {
            lock(&self.left_over).push(file);
        }
    }

    /// Removes a file. True: the file no longer exists.
    pub(crate) fn remove(&self, file: Obsolete) -> bool {
        let removed = self.folder.remove(&file.name());
        removed.map_or_else(|error| error.kind() == ErrorKind::NotFound, |()| true)
    }

    /// Removes the files that could not be removed before. True: some still exist.
    pub(crate) fn sweep_left_over(&self) -> bool {
        // A concurrent sweep finds nothing to do.
        let files = std::mem::take(&mut *lock(&self.left_over));
        let stay: Vec<_> = files.into_iter().filter(|&file| !self.remove(file)).collect();
        let some_stay = !stay.is_empty();
        lock(&self.left_over).extend(stay);
        some_stay
    }

    pub(crate) fn open_table(&self, file: u64) -> Result<Arc<Table>> {
        self.open_table_with(file, self.options.guard.table_filter())
    }

    /// Like `open_table`, with a filter of this kind, if the table has one.
    pub(crate) fn open_table_with(
        &self,
        file: u64,
        filter: Option<&'static dyn FilterKind>,
    ) -> Result<Arc<Table>> {
        let cache = Arc::clone(&self.cache);
        let table = Table::open(&self.files, file, cache, filter)?;
        self.load_first_sub_filters(&table)?;
        Ok(table)
    }

    /// Opens a table that was just written. Its values are held by somebody, or a repair writes the
    /// table.
    pub(crate) fn open_new_table(&self, file: u64) -> Result<Arc<Table>> {
        let table = self.open_table(file)?;
        self.hold_values(&table)?;
        Ok(table)
    }

    /// Loads the first sub-filters of a table whose filter consists of sub-filters: as many as an
    /// equal share of the memory allows.
    pub(crate) fn load_first_sub_filters(&self, table: &Table) -> Result<()> {
        let Some(sub_filters) = table.sub_filters() else { return Ok(()) };
        let share = table.entry_count() as f64 * self.options.bits_per_key / 8.0;
        let share = share - sub_filters.directory_bytes() as f64;
        let count = share / sub_filters.of_table().sub_filter_bytes.max(1) as f64;
        table.load_sub_filters(count as u8)
    }

    /// `bits_per_key`: the bits of the filter, if not all runs have the same.
    pub(crate) fn table_options(&self, bits_per_key: Option<f64>) -> TableOptions {
        let bits_per_key = bits_per_key.unwrap_or(self.options.bits_per_key);
        let filter = self.options.guard.table_filter();
        let filter = filter.filter(|_| bits_per_key >= FILTER_BITS_LEAST);
        TableOptions {
            block_bytes: self.options.block_bytes,
            compression: self.options.compression,
            dictionary: None,
            keyspace: self.keyspace,
            hashes: self.options.guard.locator().is_some_and(RunLocatorKind::takes_hashes),
            filter: filter.map(|kind| {
                let options = FilterOptions {
                    questions: self.empty_ranges.kept(),
                    ..FilterOptions::new(kind, bits_per_key).tuned(self.options.filter.clone())
                };
                kind.sub_filters().map_or(options.clone(), |parts| parts.on_disk(options))
            }),
        }
    }
}

/// Below this many bits per key, a filter answers "maybe" so often that probing it does not pay.
const FILTER_BITS_LEAST: f64 = 0.5;

/// A filter that cannot be used.
#[derive(Clone)]
pub(crate) struct DamagedFilter {
    /// The table with the filter, or the image of the global filter.
    pub(crate) file: u64,
    /// What is wrong, with file and place.
    pub(crate) what: String,
}

pub(crate) type OpenTables = (HashMap<u64, Arc<Table>>, Vec<DamagedFilter>);

/// Opens every table. A table with a damaged filter is used without the filter.
pub(crate) fn open_tables(files: &TableFiles, layout: &Layout) -> Result<OpenTables> {
    open_others(files, layout, HashMap::new())
}

/// Opens every table that is not in `opened`.
pub(crate) fn open_others(
    files: &TableFiles,
    layout: &Layout,
    mut opened: HashMap<u64, Arc<Table>>,
) -> Result<OpenTables> {
    let mut damaged = Vec::new();
    for record in layout.runs.iter().flat_map(|run| &run.tables) {
        if let Some(table) = opened.get(&record.file) {
            check_bounds(table, record)?;
            continue;
        }
        let table = match files.open_table(record.file) {
            Ok(table) => table,
            Err(error @ Error::Corrupt { .. }) => {
                let without = files.open_table_with(record.file, None);
                let Ok(table) = without else { return Err(error) };
                damaged.push(DamagedFilter { file: record.file, what: error.to_string() });
                table
            }
            Err(error) => return Err(table_missing(error, record)),
        };
        check_bounds(&table, record)?;
        files.hold_values(&table)?;
        opened.insert(record.file, table);
    }
    Ok((opened, damaged))
}

/// Turns the error of an absent table into `FileMissing`, since the manifest names the table.
pub(crate) fn table_missing(error: Error, record: &TableRecord) -> Error {
    let entries = record.entries;
    match error {
        Error::Io { path, source } if source.kind() == ErrorKind::NotFound => {
            let what = format!("the manifest names it, with {entries} entries");
            Error::FileMissing { path, what }
        }
        other => other,
    }
}

pub(crate) fn check_bounds(table: &Table, record: &TableRecord) -> Result<()> {
    let (from, to) = table.key_bounds();
    let fits = match record.is_trimmed {
        true => from <= record.from && record.to <= to && table.has_piece(record),
        false => (&from, &to) == (&record.from, &record.to),
    };
    let same = fits && table.entry_count() == record.file_entries;
    let what = "its keys are not those that the manifest names: another store's table?";
    if same { Ok(()) } else { Err(Error::corrupt(table.path(), 0, what)) }
}
