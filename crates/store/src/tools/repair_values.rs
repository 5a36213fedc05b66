//! Finds references whose values are lost, and the value files that nothing refers to. Entries of
//! lost values are lost, too.
//!
//! Invariant: files are only read.

use std::collections::BTreeSet;

use crate::entries::entry::Entry;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::memtable::MemtableSize;
use crate::error::{Error, Result};
use crate::files::distinct_keys::for_each_entry;
use crate::files::log_replay::replay_logs;
use crate::files::names::{numbers_of, value_name};
use crate::files::table::Table;
use crate::files::value_files::StoreValues;
use crate::plan::store_layout::StoreLayout;
use crate::storage::open_folder::OpenFolder;
use crate::sync::Arc;
use crate::tree::found_chain::found_chain;
use crate::tree::table_files::TableFiles;

/// A value that cannot be read.
pub(crate) struct LostValue {
    /// The number of its file, which may be missing.
    pub(crate) file: u64,
    pub(crate) what: String,
}

/// Returns what is wrong with the value that an entry refers to. None: it is sound, or the entry
/// refers to none.
pub(crate) fn lost_value(values: &StoreValues, entry: &Entry<'_>) -> Result<Option<LostValue>> {
    let Some(Ok(at)) = entry.value_ref() else { return Ok(None) };
    let checked = values.found(at.file).and_then(|file| file.check(values.files(), &at));
    match checked {
        Ok(()) => Ok(None),
        Err(error @ (Error::Corrupt { .. } | Error::FileMissing { .. })) => {
            let what = format!("the value of {} is lost: {error}", entry.key.escape_ascii());
            Ok(Some(LostValue { file: at.file, what }))
        }
        Err(other) => Err(other),
    }
}

/// Returns what is wrong with values that logged writes refer to and that are in no table.
pub(crate) fn lost_in_logs(
    files: (&OpenFolder, &StoreValues),
    names: &[String],
    layout: &StoreLayout,
) -> Result<Vec<Error>> {
    if numbers_of(names, value_name).is_empty() {
        return Ok(Vec::new());
    }
    let replayed = match replay_logs(files, names, layout, &|_| MemtableSize::of(0)) {
        Err(error) if error.tells_of_damage() => return Ok(vec![error]),
        replayed => replayed?,
    };
    let mut lost = Vec::new();
    for memtable in replayed.trees.values().flatten() {
        for at in memtable.memtable.entries().filter_map(|entry| entry.value_ref()?.ok()) {
            let checked = files.1.found(at.file).and_then(|it| it.check(files.1.files(), &at));
            match checked {
                Err(error) if error.tells_of_damage() => lost.push(error),
                checked => checked?,
            }
        }
    }
    Ok(lost)
}

/// Returns the value files that a store's tables and logs refer to, logs that are kept included.
pub(crate) fn referred_files(
    files_of: &dyn Fn(KeyspaceId) -> Arc<TableFiles>,
    names: &[String],
    store: &StoreLayout,
) -> Result<BTreeSet<u64>> {
    let mut referred = BTreeSet::new();
    for (id, keyspace) in &store.keyspaces {
        let files = files_of(*id);
        for record in keyspace.tree.runs.iter().flat_map(|run| &run.tables) {
            let table = files.open_table(record.file)?;
            referred.extend(table.named_values().iter().map(|(file, _)| file));
        }
    }
    let main = files_of(KeyspaceId::DEFAULT);
    let files = (&main.folder, &*main.values.store);
    let replayed = replay_logs(files, names, store, &|_| MemtableSize::of(0))?;
    for memtable in replayed.trees.values().flatten() {
        referred.extend(memtable.values.all().iter().map(|(file, _)| file.number()));
    }
    let chain = found_chain(files, names, (&replayed, replayed.last()), store, u64::MAX);
    referred.extend(chain.values.files().map(|file| file.number()));
    Ok(referred)
}

/// Whether any entry of a table refers to a lost value.
pub(crate) fn has_lost_values(values: &StoreValues, table: &Arc<Table>) -> Result<bool> {
    let mut is_lost = false;
    if !table.named_values().is_empty() {
        for_each_entry(&mut table.cursor().fill_cache(false), |entry| {
            is_lost |= lost_value(values, entry)?.is_some();
            Ok(())
        })?;
    }
    Ok(is_lost)
}
