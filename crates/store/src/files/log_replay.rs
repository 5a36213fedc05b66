//! Reads logs back: each becomes a memtable.
//! ```text
//! 000007.wal -> memtable
//! 000009.wal, "7 has 4096 bytes" -> memtable      only the newest may have a torn tail
//! ```
//! Invariant: a log has all the bytes that the next log says it has. Fewer bytes are an error.

use crate::entries::entry::Sequence;
use crate::entries::memtable::{Memtable, MemtableSize};
use crate::error::{Error, Result};
use crate::files::log_check::{LogCounts, beginning_lost, live_logs, missing, missing_newest};
use crate::files::names::wal_name;
use crate::files::wal::{self, Predecessor};
use crate::plan::store_layout::LogNumbers;
use crate::storage::open_folder::OpenFolder;
use crate::sync::Arc;

/// A log that was read back.
pub(crate) struct Replayed {
    pub(crate) number: u64,
    pub(crate) before: Predecessor,
    pub(crate) memtable: Arc<Memtable>,
    pub(crate) first: Sequence,
    pub(crate) last: Sequence,
    pub(crate) counts: LogCounts,
}

impl Replayed {
    pub(crate) fn nothing(number: u64, size: MemtableSize) -> Self {
        let memtable = Arc::new(Memtable::sized(size));
        let before = Predecessor { wal: 0, valid_bytes: 0 };
        let (first, last, counts) = (Sequence::MAX, Sequence(0), LogCounts::default());
        Replayed { number, before, memtable, first, last, counts }
    }
}

/// Reads the live logs, oldest first. Each log must have all the bytes that the next one says it
/// has. Only the last may have a torn tail.
pub(crate) fn replay_logs(
    folder: &OpenFolder,
    names: &[String],
    record: LogNumbers,
    size: MemtableSize,
) -> Result<Vec<Replayed>> {
    let numbers = live_logs(names, record);
    let needed = record.needed();
    if let Some(gone) = needed.filter(|needed| !numbers.contains(needed)) {
        return Err(missing_newest(folder, gone));
    }
    // A log that was torn before it could name its predecessor has no acknowledged writes, unless
    // it is on record.
    let mut logs: Vec<Replayed> = Vec::new();
    for &number in &numbers {
        match wal::predecessor(folder, number)? {
            Some(before) => {
                check_no_gap(folder, &numbers, &logs, (number, before), record)?;
                logs.push(Replayed { before, ..Replayed::nothing(number, size) });
            }
            None if needed == Some(number) => return Err(beginning_lost(folder, number)),
            None => {}
        }
    }
    for place in 0..logs.len() {
        let next = logs.get(place + 1).map(|next| next.before);
        let valid = next.filter(|next| next.wal == logs[place].number);
        replay_log(folder, &mut logs[place], valid.map(|next| next.valid_bytes))?;
    }
    Ok(logs)
}

/// Fails if the log before this one is missing or damaged: it is neither read nor in tables.
fn check_no_gap(
    folder: &OpenFolder,
    numbers: &[u64],
    logs: &[Replayed],
    (number, before): (u64, Predecessor),
    record: LogNumbers,
) -> Result<()> {
    let is_live = before.wal >= record.live && before.valid_bytes > 0;
    if !is_live || logs.iter().any(|log| log.number == before.wal) {
        return Ok(());
    }
    if !numbers.contains(&before.wal) {
        return Err(missing(folder, number, before));
    }
    let (follower, bytes) = (wal_name(number), before.valid_bytes);
    let what = format!("the log ends here, but {follower} says it has {bytes} bytes");
    Err(Error::corrupt(folder.path_of(&wal_name(before.wal)), 0, what))
}

fn replay_log(folder: &OpenFolder, log: &mut Replayed, valid: Option<u64>) -> Result<()> {
    let bytes = wal::replay(folder, log.number, valid, &mut |batch| {
        if batch.first <= log.last {
            let what = "a group of writes that is older than the one before it";
            return Err(Error::corrupt(folder.path_of(&wal_name(log.number)), 0, what));
        }
        for entry in &batch.entries {
            log.memtable.insert(entry.key, entry.sequence, entry.kind, entry.value);
            log.first = log.first.min(entry.sequence);
            log.last = log.last.max(entry.sequence);
        }
        log.counts.add_group(batch.entries.len());
        Ok(())
    })?;
    (log.counts.files, log.counts.bytes) = (1, bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::entries::entry::Kind;
    use crate::files::wal::Wal;
    use crate::storage::memory::Memory;
    use crate::storage::traits::Storage as _;

    #[test]
    fn a_log_that_repeats_itself_is_damaged() {
        let (disk, dir) = (Memory::new(), Path::new("db"));
        let size = MemtableSize::of(64 << 20);
        disk.create_dir(dir).expect("makes the folder");
        let none = Predecessor { wal: 0, valid_bytes: 0 };
        let folder = OpenFolder::on(&disk, dir);
        let mut log = Wal::create(&folder, 7, none).expect("creates");
        for (first, goes_on) in [(5, true), (6, true), (6, false)] {
            let entry = (Kind::Put, &b"key"[..], &b"value"[..]);
            log.append(Sequence(first), 1, std::iter::once(entry)).expect("appends");
            let names = disk.list(dir).expect("lists");
            let read = replay_logs(&folder, &names, LogNumbers::default(), size);
            assert_eq!(read.is_ok(), goes_on, "after {first}");
        }
    }
}
