//! Checks the files of a store that is not open, whether it opens or not, and finds everything that
//! is missing or damaged.
//! ```text
//! sound MANIFEST     its tables, images and logs exist, are those that it names, and are sound
//! damaged MANIFEST   the tables in the folder that have not left the tree are sound
//! ```
//! Invariants: files are only read, and no damage hides damage to another file. An opening is
//! stricter: it fails at the first error. `Db::verify` checks more: the ages of entries across
//! runs, and the guard's answer for every key.

use std::path::Path;

use crate::error::Result;
use crate::files::cache::BlockCache;
use crate::files::distinct_keys::for_each_entry;
use crate::files::log_check::LogCheck;
use crate::files::manifest::Manifest;
use crate::files::names::{file_number, numbers_of, table_name};
use crate::files::store_folder::{lock_folder, manifest_missing, store_folder};
use crate::files::table::Table;
use crate::plan::guard_kind::GuardKind;
use crate::plan::layout::TableRecord;
use crate::plan::options::Options;
use crate::plan::store_layout::StoreLayout;
use crate::shared::environment::Environment;
use crate::storage::io_mode::IoStats;
use crate::sync::Arc;
use crate::tools::progress::{OnProgress, Steps, unheard};
use crate::tools::repair_manifest::FoundManifest;
use crate::tools::repair_values::lost_in_logs;
use crate::tools::verify::{VerifyReport, check_size, report_damage};
use crate::tree::guard_image;
use crate::tree::table_files::{TableFiles, check_bounds, table_missing};

/// Checks the files of the store in a folder. See [`verify_files_with`].
pub fn verify_files(path: impl AsRef<Path>) -> Result<VerifyReport> {
    verify_files_with(path, &Environment::default())
}

/// Reads every file of a store that is not open, and reports everything that is missing or damaged.
/// Also works if the store does not open: [`Db::open`](crate::Db::open) fails at the first such
/// file.
///
/// # Errors
/// `Locked`: the store is open (then [`Db::verify`](crate::Db::verify) checks more). `Missing` or
/// `NotAStore`: there is no store. `Version`: another version of Trommel wrote it. `Io`: the disk
/// refuses. Damage is no error: it is in the report.
pub fn verify_files_with(
    path: impl AsRef<Path>,
    environment: &Environment,
) -> Result<VerifyReport> {
    verify_files_with_progress(path, environment, &mut unheard)
}

/// Like [`verify_files_with`], and reports how many tables are done.
///
/// # Errors
/// `Cancelled`: the listener stopped it. Others as for [`verify_files_with`].
pub fn verify_files_with_progress(
    path: impl AsRef<Path>,
    environment: &Environment,
    listener: &mut OnProgress<'_>,
) -> Result<VerifyReport> {
    let folder = store_folder(&*environment.storage, path.as_ref())?;
    let _lock = lock_folder(&folder)?;
    let names = folder.list()?;
    let options = Arc::new(Options::new().guard(GuardKind::Open));
    let cache = Arc::new(BlockCache::new(options.block_cache_bytes as u64)).share();
    let table_files = TableFiles::new(folder.clone(), &options, cache, IoStats::default(), 1);
    let (report, steps) = (VerifyReport::default(), Steps::new(listener));
    let mut check = FilesCheck { table_files, names, report, steps };
    match Manifest::read(&folder) {
        Ok(Some(layout)) => check.tree(&layout)?,
        Ok(None) => {
            let of_a_store = check.names.iter().find(|name| file_number(name).is_some());
            let missing =
                manifest_missing(folder.path(), of_a_store.map_or("the rest", String::as_str));
            check.report.note(Err(missing))?;
            check.tables_here(&FoundManifest::default())?;
        }
        Err(error) => {
            check.report.note(Err(error))?;
            check.tables_here(&FoundManifest::read(&folder)?)?;
        }
    }
    Ok(check.report)
}

/// A check in progress.
struct FilesCheck<'a, 'l> {
    table_files: TableFiles,
    /// The files in the folder.
    names: Vec<String>,
    report: VerifyReport,
    steps: Steps<'a, 'l>,
}

impl FilesCheck<'_, '_> {
    /// Checks everything that a manifest names.
    fn tree(&mut self, layout: &StoreLayout) -> Result<()> {
        let mut last = None;
        let trees = || layout.trees();
        let records = || trees().flat_map(|tree| &tree.runs).flat_map(|run| &run.tables);
        self.steps.begin(records().count() as u64)?;
        for record in records() {
            let checked = self.table(record, last.as_ref() != Some(&record.file));
            self.report.note(checked)?;
            self.steps.advance(1)?;
            last = Some(record.file);
        }
        for record in trees().flat_map(|tree| &tree.images) {
            let read = guard_image::read(&self.table_files.folder, record);
            self.report.note(read.map(drop))?;
        }
        self.values_of_logs(layout)?;
        self.logs(layout, true)
    }

    fn logs(&mut self, layout: &StoreLayout, misses_logs: bool) -> Result<()> {
        let check = LogCheck { folder: &self.table_files.folder, layout, misses_logs };
        let report = &mut self.report;
        report.logs =
            check.run(&self.names, &mut |error| report_damage(&mut report.damage, error))?;
        Ok(())
    }

    /// `is_whole`: its entries are read, too. They are not for another piece of the same table.
    fn table(&mut self, record: &TableRecord, is_whole: bool) -> Result<()> {
        let table = self.open(record.file).map_err(|error| table_missing(error, record))?;
        self.report.tables += 1;
        self.report.entries += record.entries;
        self.report.bytes += record.bytes_within();
        check_size(&table, record)?;
        check_bounds(&table, record)?;
        if is_whole { table.verify().and_then(|()| self.values(&table)) } else { Ok(()) }
    }

    /// Reads the values that entries of a table refer to.
    fn values(&mut self, table: &Arc<Table>) -> Result<()> {
        if table.named_values().is_empty() {
            return Ok(());
        }
        let store = Arc::clone(&self.table_files.values.store);
        for_each_entry(&mut table.cursor().fill_cache(false), |entry| {
            let Some(Ok(at)) = entry.value_ref() else { return Ok(()) };
            let checked = store.found(at.file).and_then(|file| file.check(store.files(), &at));
            self.report.note(checked)
        })
    }

    /// Checks the values that entries of logs refer to.
    fn values_of_logs(&mut self, layout: &StoreLayout) -> Result<()> {
        let files = (&self.table_files.folder, &*self.table_files.values.store);
        let lost = lost_in_logs(files, &self.names, layout)?;
        lost.into_iter().try_for_each(|error| self.report.note(Err(error)))
    }

    /// Checks every table in the folder if there is no sound manifest. Leaves out those that left
    /// the tree, as far as edits are readable.
    fn tables_here(&mut self, manifest: &FoundManifest) -> Result<()> {
        let files = numbers_of(&self.names, table_name);
        self.steps.begin(files.len() as u64)?;
        for file in files {
            self.steps.advance(1)?;
            if manifest.removed.contains(&file) {
                continue;
            }
            let opened = self.open(file);
            if let Ok(table) = &opened {
                self.report.tables += 1;
                self.report.entries += table.entry_count();
                self.report.bytes += table.bytes();
            }
            let checked = opened.and_then(|table| {
                table.verify()?;
                self.values(&table)
            });
            self.report.note(checked)?;
        }
        // Every log in the folder may be needed. Whether the entries of a missing log were in
        // tables is unknown.
        self.logs(&StoreLayout::default(), false)
    }

    fn open(&self, file: u64) -> Result<Arc<Table>> {
        self.table_files.open_table_with(file, None)
    }
}
