//! Follows the logs of a store that another process writes, and reads what is new in them.
//! ```text
//! 7, read up to here | group | group      9: after 7, of which this many bytes count
//!                                            group | group | the last one: not yet
//! ```
//! A failed write may leave a whole group that was refused. Nothing is appended behind it. So the
//! last group of the newest log counts only once a valid record follows it. Groups that repeat
//! others, and empty groups, contain nothing that may have been refused.
//!
//! Invariants: nothing is written. Each log is read after its predecessor, up to where that one
//! counts. A log that the manifest does not name yet has no visible writes.

use std::collections::BTreeMap;

use crate::entries::entry::Sequence;
use crate::error::{Error, Result};
use crate::files::log_check::{beginning_lost, live_logs};
use crate::files::names::wal_name;
use crate::files::record::{Records, record_size};
use crate::files::wal::{self, HEADER_SIZE, OnGroup, Predecessor, WalBatch};
use crate::plan::store_layout::LogNumbers;
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::ReadAt;
use crate::sync::Arc;

/// How far the logs that are still needed were read.
#[derive(Default)]
pub(crate) struct LogTail {
    read: BTreeMap<u64, u64>,
}

/// An unread part of a log.
pub(crate) struct Stretch {
    number: u64,
    file: Arc<dyn ReadAt>,
    from: u64,
    /// Where the log ends, as the next one tells. `None`: it is the newest.
    end: Option<u64>,
}

/// How the reading of a stretch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    /// The offset of the first group that was not taken.
    pub(crate) to: u64,
    /// Whether the reader refused a group.
    pub(crate) was_stopped: bool,
    /// Where the log's whole groups end, whether they count or not.
    pub(crate) whole: u64,
}

impl LogTail {
    /// Notes that a log was read up to an offset.
    pub(crate) fn note(&mut self, number: u64, to: u64) {
        self.read.insert(number, to);
    }

    /// Forgets the logs below `live`, which are no longer needed.
    pub(crate) fn forget_below(&mut self, live: u64) {
        self.read = self.read.split_off(&live);
    }

    /// Returns the number of needed logs, and the number of their bytes that were read.
    pub(crate) fn sizes(&self) -> (u64, u64) {
        (self.read.len() as u64, self.read.values().sum())
    }

    /// Returns the stretches to read next, from old to new. `None`: a needed log does not follow
    /// those that were read, so all live logs must be read again.
    pub(crate) fn next(
        &self,
        folder: &OpenFolder,
        logs: LogNumbers,
    ) -> Result<Option<Vec<Stretch>>> {
        let mut stretches = Vec::new();
        let Some(newest) = logs.needed() else { return Ok(Some(stretches)) };
        let (mut number, mut end) = (newest, None);
        loop {
            let name = wal_name(number);
            let (file, path) = (folder.open_file(&name)?, folder.path_of(&name));
            if let Some(from) = self.read.get(&number) {
                stretches.push(Stretch { number, file, from: *from, end });
                stretches.reverse();
                return Ok(Some(stretches));
            }
            let before = wal::beginning(&*file, &path, number)?;
            let Predecessor { wal, valid_bytes, .. } =
                before.ok_or_else(|| beginning_lost(folder, number))?;
            if wal >= number || valid_bytes == 0 || wal < logs.live {
                return Ok(None);
            }
            stretches.push(Stretch { number, file, from: HEADER_SIZE as u64, end });
            (number, end) = (wal, Some(valid_bytes));
        }
    }
}

impl Stretch {
    /// The number of its log.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Reads the groups that count. `sure`: no write up to this number was refused.
    pub(crate) fn read(
        &self,
        folder: &OpenFolder,
        sure: Sequence,
        f: &mut OnGroup<'_>,
    ) -> Result<Read> {
        let path = &*folder.path_of(&wal_name(self.number));
        let file = || Arc::clone(&self.file);
        let Ends { counted: end, whole } = match self.end {
            Some(end) => Ends { counted: end, whole: end },
            None => ends(folder, (self.number, file()), self.from, sure)?,
        };
        if end <= self.from {
            return Ok(Read { to: self.from, was_stopped: false, whole });
        }
        let to = wal::read_between((file(), path), self.number, (self.from, end), f)?;
        Ok(Read { to, was_stopped: to < end, whole })
    }
}

/// Returns the logs to read from scratch, from old to new, and where the newest one ends.
pub(crate) fn all_live(
    folder: &OpenFolder,
    logs: LogNumbers,
    sure: Sequence,
) -> Result<(Vec<String>, Option<u64>)> {
    let names = folder.list()?;
    // A manifest that a repair wrote names no newest log.
    let known = |number: &u64| logs.newest == 0 || *number <= logs.newest;
    let mut numbers = live_logs(&names, logs);
    numbers.retain(known);
    while let Some(&newest) = numbers.last() {
        let file = folder.open_file(&wal_name(newest))?;
        let first = HEADER_SIZE as u64;
        let end = ends(folder, (newest, file), first, sure)?.counted;
        if end > first {
            return Ok((numbers.into_iter().map(wal_name).collect(), Some(end)));
        }
        // The log is being created, unless the manifest requires it.
        if logs.needed() == Some(newest) {
            return Err(beginning_lost(folder, newest));
        }
        numbers.pop();
    }
    Ok((Vec::new(), None))
}

/// Where the groups of the newest log end: those that count, and all whole ones. (The file may be
/// longer.)
struct Ends {
    counted: u64,
    whole: u64,
}

fn ends(
    folder: &OpenFolder,
    (number, file): (u64, Arc<dyn ReadAt>),
    from: u64,
    sure: Sequence,
) -> Result<Ends> {
    let path = &*folder.path_of(&wal_name(number));
    let mut records = Records::of(file, path, number)?;
    let (mut at, mut end) = (from, from);
    while let Some(payload) = records.at(at)? {
        let next = at + record_size(payload.len());
        // The first record is not a group.
        let counts = at == HEADER_SIZE as u64 || {
            let group = WalBatch::decode(payload);
            let group =
                group.map_err(|wrong| Error::corrupt(path, at, format!("log record, {wrong}")))?;
            group.entries.is_empty() || group.repeats || group.first <= sure
        };
        end = if counts { next } else { at };
        at = next;
    }
    Ok(Ends { counted: end, whole: at })
}
