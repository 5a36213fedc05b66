//! Counts and checks the entries of logs that are in no table yet.
//! ```text
//! names -> live logs, newest first -> groups, ages, missing logs
//!          (each log tells how many bytes of the previous log count)
//! ```
//! Invariants: files are only read. Damage is reported to the caller and does not end the walk.

use std::io::ErrorKind;

use crate::entries::entry::Sequence;
use crate::error::{Error, Result};
use crate::files::names::{numbers_of, wal_name};
use crate::files::wal::{self, Predecessor};
use crate::plan::store_layout::LogNumbers;
use crate::plan::store_layout::StoreLayout;
use crate::storage::open_folder::OpenFolder;

/// What logs contain that is in no table yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogCounts {
    /// Number of files.
    pub files: u64,
    /// Bytes that count. Those that a crash or a failed write left at an end do not.
    pub bytes: u64,
    /// Number of groups of writes that were logged together.
    pub groups: u64,
    /// Number of writes: puts and deletions.
    pub entries: u64,
}

impl LogCounts {
    /// Counts a group with this many writes.
    pub(crate) fn add_group(&mut self, entries: usize) {
        self.groups += u64::from(entries > 0);
        self.entries += entries as u64;
    }

    pub(crate) fn add(&mut self, other: LogCounts) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.groups += other.groups;
        self.entries += other.entries;
    }
}

/// Returns the numbers of the logs with entries that are in no table, oldest first.
pub(crate) fn live_logs(names: &[String], record: LogNumbers) -> Vec<u64> {
    let mut numbers = numbers_of(names, wal_name);
    numbers.retain(|&number| number >= record.live);
    numbers
}

/// A walk over the logs of a folder.
pub(crate) struct LogCheck<'a> {
    pub(crate) folder: &'a OpenFolder,
    pub(crate) layout: &'a StoreLayout,
    /// Whether a missing live log is lost. This holds if no flush runs meanwhile and the layout is
    /// known.
    pub(crate) misses_logs: bool,
}

impl LogCheck<'_> {
    /// Reads every live log among `names`, and calls `damage` with each error.
    pub(crate) fn run(
        &self,
        names: &[String],
        damage: &mut dyn FnMut(Error) -> Result<()>,
    ) -> Result<LogCounts> {
        let numbers = live_logs(names, self.layout.logs);
        let mut counts = LogCounts::default();
        let needed = self.layout.logs.needed().filter(|_| self.misses_logs);
        if let Some(gone) = needed.filter(|needed| !numbers.contains(needed)) {
            damage(missing_newest(self.folder, gone))?;
        }
        // Newest first, since each log tells how many bytes of the previous log count.
        let mut valid = None;
        for &number in numbers.iter().rev() {
            let before = match wal::predecessor(self.folder, number) {
                Ok(before) => before,
                Err(error) if self.has_gone(&error) => continue,
                Err(error) => {
                    damage(error)?;
                    continue;
                }
            };
            if before.is_none() && needed == Some(number) {
                damage(beginning_lost(self.folder, number))?;
            }
            if let Some(gone) = before.filter(|before| self.is_gone(&numbers, *before)) {
                damage(missing(self.folder, number, gone))?;
            }
            let own = valid.and_then(|(wal, bytes)| (wal == number).then_some(bytes));
            valid = before.map(|before| (before.wal, before.valid_bytes));
            match self.check_log(number, own, &mut counts) {
                Err(error) if self.has_gone(&error) => {}
                checked => {
                    counts.files += 1;
                    checked.or_else(&mut *damage)?;
                }
            }
        }
        self.check_kept(names, valid, &mut |_, error| damage(error))?;
        Ok(counts)
    }

    /// Returns the damaged logs that only change feeds can need.
    pub(crate) fn damaged_kept(&self, names: &[String]) -> Result<Vec<u64>> {
        let mut damaged = Vec::new();
        let oldest = live_logs(names, self.layout.logs).first().copied();
        let before = oldest.map(|oldest| self.beginning(oldest));
        let Some(Ok(Some(before))) = before else { return Ok(damaged) };
        let follows = Some((before.wal, before.valid_bytes));
        self.check_kept(names, follows, &mut |number, error| {
            error.tells_of_damage().then(|| damaged.push(number)).ok_or(error)
        })?;
        Ok(damaged)
    }

    /// Reads the logs that are kept for change feeds: the chain of predecessors of the oldest
    /// needed log. `newest` is the newest of them, and the number of its bytes that count.
    fn check_kept(
        &self,
        names: &[String],
        newest: Option<(u64, u64)>,
        damage: &mut dyn FnMut(u64, Error) -> Result<()>,
    ) -> Result<()> {
        let mut next = newest;
        let is_kept = |&(number, bytes): &(u64, u64)| {
            bytes > 0 && number < self.layout.logs.live && names.contains(&wal_name(number))
        };
        while let Some((number, bytes)) = next.take().filter(is_kept) {
            let read = wal::replay(self.folder, number, Some(bytes), &mut |_| Ok(()));
            let read = read.and_then(|_| self.beginning(number));
            match read {
                Ok(before) => {
                    let before = before.filter(|before| before.wal < number);
                    next = before.map(|before| (before.wal, before.valid_bytes));
                }
                // The log was removed meanwhile.
                Err(error) if self.has_gone(&error) => {}
                Err(error) => damage(number, error)?,
            }
        }
        Ok(())
    }

    fn beginning(&self, number: u64) -> Result<Option<Predecessor>> {
        let name = wal_name(number);
        wal::beginning(&*self.folder.open_file(&name)?, &self.folder.path_of(&name), number)
    }

    fn is_gone(&self, numbers: &[u64], before: Predecessor) -> bool {
        let is_needed = before.valid_bytes > 0 && before.wal >= self.layout.logs.live;
        self.misses_logs && is_needed && !numbers.contains(&before.wal)
    }

    /// Whether a flush that was installed meanwhile has removed the log.
    fn has_gone(&self, error: &Error) -> bool {
        let is_gone = |kind| kind == ErrorKind::NotFound && !self.misses_logs;
        matches!(error, Error::Io { source, .. } if is_gone(source.kind()))
    }

    fn check_log(
        &self,
        number: u64,
        valid_bytes: Option<u64>,
        counts: &mut LogCounts,
    ) -> Result<()> {
        let path = self.folder.path_of(&wal_name(number));
        let wrong = |what: &str| Err(Error::corrupt(&path, 0, what));
        // The newest sequence number in tables. All entries of the log must be newer. With several
        // key spaces a log continues when one of them is flushed, so this is checked only with one.
        let is_alone = self.layout.next_keyspace == 1;
        let in_tables = self.layout.default_tree().last_sequence;
        let mut last = Sequence(0);
        let mut seen = LogCounts::default();
        let read = wal::replay(self.folder, number, valid_bytes, &mut |group| {
            if group.first <= last && !group.repeats {
                return wrong("a group of writes that is older than the one before it");
            }
            // Repeated entries of an older log may have been flushed meanwhile.
            let is_new = is_alone && !group.repeats && !group.entries.is_empty();
            if is_new && group.first <= in_tables {
                return wrong("a group of writes that is older than what is in tables");
            }
            last = group.entries.last().map_or(last, |entry| last.max(entry.sequence));
            seen.add_group(group.entries.len());
            Ok(())
        });
        seen.bytes = *read.as_ref().unwrap_or(&0);
        counts.add(seen);
        read.map(drop)
    }
}

/// The error for a missing newest log.
pub(crate) fn missing_newest(folder: &OpenFolder, gone: u64) -> Error {
    let what = "the manifest tells that it was made, and what was written to it is in no table";
    Error::FileMissing { path: folder.path_of(&wal_name(gone)), what: what.into() }
}

/// The error for a log that has lost its first record, although it was durable.
pub(crate) fn beginning_lost(folder: &OpenFolder, number: u64) -> Error {
    let what = "the log's first record is missing; the manifest tells that it was durable";
    Error::corrupt(folder.path_of(&wal_name(number)), 0, what)
}

/// The error for a missing log that has a successor.
pub(crate) fn missing(folder: &OpenFolder, follower: u64, gone: Predecessor) -> Error {
    let (follower, bytes) = (wal_name(follower), gone.valid_bytes);
    let what = format!(
        "{follower} follows it, and {bytes} bytes of it are in no table that the manifest names"
    );
    Error::FileMissing { path: folder.path_of(&wal_name(gone.wal)), what }
}
