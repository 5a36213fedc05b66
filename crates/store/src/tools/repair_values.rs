//! Finds references whose values are lost. Their entries are lost, too.
//!
//! Invariant: files are only read.

use crate::entries::entry::Entry;
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

/// Returns what is wrong with the value that an entry refers to. None: it is sound, or the entry
/// refers to none.
pub(crate) fn lost_value(values: &StoreValues, entry: &Entry<'_>) -> Result<Option<String>> {
    let Some(Ok(at)) = entry.value_ref() else { return Ok(None) };
    let checked = values.found(at.file).and_then(|file| file.check(values.files(), &at));
    match checked {
        Ok(()) => Ok(None),
        Err(error @ (Error::Corrupt { .. } | Error::FileMissing { .. })) => {
            Ok(Some(format!("the value of {} is lost: {error}", entry.key.escape_ascii())))
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
