//! The value files that logs refer to, held for change feeds.
//! ```text
//! log 7      log 8      log 9, the newest      file a: named by 7 and 8, so held for 8
//! [a a b     a b b      memtable: its own]     file b: for 8
//!  '- let go: none yet  '- let go: a and b
//! ```
//! Logs are let go oldest first, so a file is held for the last log that names it. While a memtable
//! has entries of a log, it holds their files itself.

use std::collections::BTreeMap;

use crate::files::value_file::ValueFile;
use crate::sync::Arc;

/// The value files that logs hold.
#[derive(Default)]
pub(crate) struct LogValues {
    /// By the last log that names a file, and the file's number.
    files: BTreeMap<(u64, u64), Arc<ValueFile>>,
    /// The log for which each file is held.
    logs: BTreeMap<u64, u64>,
}

impl LogValues {
    /// Holds a file for a log that names it.
    pub(crate) fn hold(&mut self, log: u64, file: Arc<ValueFile>) {
        let number = file.number();
        if self.logs.get(&number).is_some_and(|held_for| *held_for >= log) {
            return;
        }
        if let Some(held_for) = self.logs.insert(number, log) {
            self.files.remove(&(held_for, number));
        }
        file.set_held_by_log(true);
        self.files.insert((log, number), file);
    }

    /// Stops holding the files for logs up to this one, and returns them.
    pub(crate) fn let_go_through(&mut self, log: u64) -> Vec<Arc<ValueFile>> {
        let needed = self.files.split_off(&(log.saturating_add(1), 0));
        let gone = std::mem::replace(&mut self.files, needed);
        for ((_, number), file) in &gone {
            file.set_held_by_log(false);
            self.logs.remove(number);
        }
        gone.into_values().collect()
    }

    /// Returns the oldest log for which a file is held.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.files.first_key_value().map(|((log, _), _)| *log)
    }

    /// Returns the files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Arc<ValueFile>> {
        self.files.values()
    }
}

/// Returns the bytes of those files that nobody else holds.
pub(crate) fn bytes_held_alone<'f>(files: impl Iterator<Item = &'f Arc<ValueFile>>) -> u64 {
    let alone = files.filter(|file| Arc::strong_count(file) == 1);
    alone.map(|file| file.len()).sum()
}
