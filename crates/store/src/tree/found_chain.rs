//! Finds the logs that a change feed can read in a store that is opened.
//! ```text
//! 9, the newest   "after 7, of which 4096 bytes count"
//! 7               "after 6, of which 512 bytes count"
//! 6               all of it is in tables: kept if `kept_bytes` allows
//! 8               no log follows it: a crash has left it
//! ```
//! The value files that these logs name are found, too. For that, kept logs are read as a whole if
//! there are value files.
//!
//! Invariant: if a log that only change feeds need cannot be read, the chain ends there, without an
//! error. If a value file cannot be, no log holds it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::entries::entry::Sequence;
use crate::error::{Error, Result};
use crate::files::log_replay::Replayed;
use crate::files::names::{numbers_of, value_name, wal_name};
use crate::files::value_files::StoreValues;
use crate::files::wal::{self, Predecessor};
use crate::plan::store_layout::StoreLayout;
use crate::storage::open_folder::OpenFolder;
use crate::tree::live_logs::KeptLogs;
use crate::tree::log_chain::{ChainedLog, LogChain, ReadableEnd};
use crate::tree::log_values::LogValues;

/// The logs that were found.
pub(crate) struct FoundChain {
    pub(crate) chain: LogChain,
    pub(crate) kept: KeptLogs,
    pub(crate) values: LogValues,
}

/// Follows the logs from the newest one back. `last`: the newest write of the store. `kept_bytes`:
/// the most bytes of logs that only change feeds need. Requires: the store is being opened, or read
/// by a tool.
pub(crate) fn found_chain(
    (folder, values): (&OpenFolder, &StoreValues),
    names: &[String],
    (replayed, last): (&Replayed, Sequence),
    layout: &StoreLayout,
    kept_bytes: u64,
) -> FoundChain {
    let (mut logs, mut kept) = (VecDeque::<ChainedLog>::new(), KeptLogs::default());
    let mut kept_ends = BTreeMap::new();
    let newest = replayed.logs.last();
    let mut next = newest.map(|log| (log.number, log.before, ReadableEnd::Said(log.said_bytes)));
    while let Some((number, before, end)) = next.take() {
        let Some(after) = before.last else { break };
        logs.push_front(ChainedLog { number, after, end });
        let Predecessor { wal, valid_bytes, .. } = before;
        if wal >= number || valid_bytes == 0 {
            break;
        }
        let known = replayed.logs.iter().find(|log| log.number == wal).map(|log| log.before);
        let found = known.or_else(|| {
            let is_there = wal < layout.logs.live && names.contains(&wal_name(wal));
            let found = is_there.then(|| beginning(folder, wal, valid_bytes).ok())??;
            kept_ends.insert(wal, valid_bytes);
            // Behind these bytes the file has only zeros, left by a process that was killed.
            kept.add_within(wal, valid_bytes, kept_bytes).then_some(found)
        });
        let found = found.filter(|found| found.last <= Some(after));
        next = found.map(|found| (wal, found, ReadableEnd::At(valid_bytes)));
    }
    let mut held = LogValues::default();
    if kept_bytes > 0 && !numbers_of(names, value_name).is_empty() {
        for ChainedLog { number, .. } in &logs {
            let named = match replayed.logs.iter().find(|log| log.number == *number) {
                Some(log) => log.values.clone(),
                None => value_files_of(folder, *number, kept_ends[number]),
            };
            let files = named.into_iter().filter_map(|file| values.found(file).ok());
            files.for_each(|file| held.hold(*number, file));
        }
    }
    FoundChain { chain: LogChain::new(logs, last, layout.logs.unlogged), kept, values: held }
}

/// Returns the value files that a log names, up to where it can be read.
fn value_files_of(folder: &OpenFolder, number: u64, valid_bytes: u64) -> BTreeSet<u64> {
    let mut named = BTreeSet::new();
    let _ = wal::replay(folder, number, Some(valid_bytes), &mut |group| {
        named.extend(group.value_files());
        Ok(())
    });
    named
}

/// Reads what a log says about its predecessor. Returns an error if the log has fewer than
/// `valid_bytes`.
fn beginning(folder: &OpenFolder, number: u64, valid_bytes: u64) -> Result<Predecessor> {
    let name = wal_name(number);
    let (file, path) = (folder.open_file(&name)?, folder.path_of(&name));
    let bytes = file.size().map_err(Error::io(&path))?;
    match wal::beginning(&*file, &path, number)? {
        Some(before) if bytes >= valid_bytes => Ok(before),
        _ => Err(Error::corrupt(path, bytes, "the log ends too early")),
    }
}
