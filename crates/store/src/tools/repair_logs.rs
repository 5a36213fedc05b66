//! Saves writes from damaged logs.
//! ```text
//! log 7   group 1..3 | group 4..5 | #### | group 9..9 |     saved: 1..5, 9
//!                                    '-- lost: at most 3 writes
//! ```
//! Invariants: a group is saved as a whole or not at all. Groups that do not count, as a later log
//! says, are left out.

use std::collections::BTreeMap;

use crate::entries::cursor::Reads;
use crate::entries::entry::{Entry, Kind, Sequence, order};
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::tombstones::{RangeDelete, RangeTombstones};
use crate::error::{Error, Result};
use crate::files::fragments::{Fragment, LogRecord, log_fragments, log_fragments_that_count};
use crate::files::names::wal_name;
use crate::files::record::read_all;
use crate::files::table::Table;
use crate::files::value_files::StoreValues;
use crate::files::wal::{Predecessor, VERSION, WalBatch, older_version};
use crate::plan::store_layout::StoreLayout;
use crate::storage::open_folder::OpenFolder;
use crate::sync::Arc;
use crate::tools::repair_report::{Doubt, Loss, RepairReport};
use crate::tools::repair_values::{LostValue, lost_value};
use crate::tree::run_writer::{RunOutput, RunWriter};
use crate::tree::table_files::TableFiles;

/// A write that was saved from a log.
pub(crate) struct SavedWrite {
    pub(crate) key: Vec<u8>,
    pub(crate) sequence: Sequence,
    pub(crate) kind: Kind,
    pub(crate) value: Vec<u8>,
}

impl SavedWrite {
    fn of(entry: &Entry<'_>) -> Self {
        let &Entry { key, sequence, kind, value } = entry;
        SavedWrite { key: key.to_vec(), sequence, kind, value: value.to_vec() }
    }

    pub(crate) fn entry(&self) -> Entry<'_> {
        let SavedWrite { key, sequence, kind, value } = self;
        Entry { key, sequence: *sequence, kind: *kind, value }
    }
}

type Keeps<'k> = dyn FnMut(KeyspaceId, &Entry<'_>) -> Result<bool> + 'k;

/// The writes of each key space, in the order of entries.
pub(crate) type SavedWrites = BTreeMap<KeyspaceId, Vec<SavedWrite>>;

/// Returns the writes of these logs that `keeps` accepts. Losses go into the report. `known`: the
/// manifest's layout, if it is trusted.
pub(crate) fn save_writes(
    (folder, values): (&OpenFolder, &StoreValues),
    numbers: &[u64],
    known: Option<&StoreLayout>,
    report: &mut RepairReport,
    keeps: &mut Keeps<'_>,
) -> Result<SavedWrites> {
    let mut befores = BTreeMap::new();
    for &number in numbers {
        let name = wal_name(number);
        let bytes = read_all(folder, &name)?;
        if let Some(found) = older_version(&bytes) {
            let path = folder.path_of(&name);
            return Err(Error::Version { path, found, known: VERSION });
        }
        if let Some(Fragment::Whole { item: LogRecord::Predecessor(before), .. }) =
            log_fragments(&bytes, number).next()
        {
            befores.insert(number, before);
        }
    }
    let mut saver = Saver { report, last: known.map(|known| known.last_sequence().0), open: None };
    let (mut saved, mut lost_values) = (SavedWrites::new(), Vec::new());
    for &number in numbers {
        if let Some(before) = befores.get(&number) {
            saver.look_for(numbers, known.map(|known| known.logs.live), number, *before);
        }
        let counts = befores.values().find(|before| before.wal == number);
        let counts = counts.map(|before| before.valid_bytes);
        let bytes = read_all(folder, &wal_name(number))?;
        for fragment in log_fragments_that_count(&bytes, number, counts) {
            let Some(group) = saver.next(number, counts, fragment) else { continue };
            for (keyspace, entry) in group.writes() {
                if !keeps(keyspace, entry)? {
                    continue;
                }
                if let Some(lost) = lost_value(values, entry)? {
                    lost_values.push((number, lost));
                } else {
                    saved.entry(keyspace).or_default().push(SavedWrite::of(entry));
                }
            }
        }
    }
    let newest = known.and_then(|known| known.logs.needed());
    if let Some(gone) = newest.filter(|newest| !befores.contains_key(newest)) {
        // How much it held is unknown.
        let begins = if numbers.contains(&gone) { "the log's beginning" } else { "the log" };
        saver.lose(wal_name(gone), 0, format!("{begins} is missing"));
    }
    saver.drop_empty_losses();
    for (log, LostValue { file, what }) in lost_values {
        report.lost_in_values.insert(file);
        report.lost.push(Loss { file: wal_name(log), offset: 0, what, entries: Some(1) });
    }
    for writes in saved.values_mut() {
        writes.sort_by(|one, other| order((&one.key, one.sequence), (&other.key, other.sequence)));
        writes.dedup_by(|one, other| one.sequence == other.sequence && one.key == other.key);
    }
    Ok(saved)
}

/// Writes sorted entries and deletions of ranges as a run. None: there are none.
pub(crate) fn write_run(
    table_files: &Arc<TableFiles>,
    writes: &[SavedWrite],
) -> Result<Option<RunOutput>> {
    if writes.is_empty() {
        return Ok(None);
    }
    let is_range = |entry: &Entry<'_>| entry.kind == Kind::DeleteRange;
    let (deletes, entries): (Vec<_>, Vec<_>) =
        writes.iter().map(SavedWrite::entry).partition(is_range);
    let deletes = deletes.iter().map(|delete| RangeDelete {
        from: delete.key,
        to: delete.value,
        sequence: delete.sequence,
    });
    // A store is not read during its repair, so no older entry needs to stay visible.
    let mut writer = RunWriter::new(table_files, RangeTombstones::visible_at(deletes, &[]));
    entries.iter().try_for_each(|entry| writer.add(entry))?;
    writer.finish().map(Some)
}

/// Follows the sequence numbers through logs, to count what is lost where.
struct Saver<'r> {
    report: &'r mut RepairReport,
    /// The newest sequence number so far.
    last: Option<u64>,
    /// The first of the losses since then.
    open: Option<usize>,
}

impl Saver<'_> {
    /// Returns the group of a fragment, if it has one that counts.
    fn next<'a>(
        &mut self,
        number: u64,
        counts: Option<u64>,
        fragment: Fragment<LogRecord<'a>>,
    ) -> Option<WalBatch<'a>> {
        let (name, offset) = (wal_name(number), fragment.offset());
        if counts.is_some_and(|counts| offset >= counts) {
            return None;
        }
        match fragment {
            Fragment::Whole { item: LogRecord::Predecessor(_), .. } => {}
            // Repeated writes have no place in the sequence of numbers.
            Fragment::Whole { item: LogRecord::Group(group), .. } if group.repeats => {
                return Some(group);
            }
            Fragment::Whole { item: LogRecord::Group(group), .. } => {
                self.close(group.first.0);
                self.last = self.last.max(group.next().0.checked_sub(1));
                return Some(group);
            }
            Fragment::Damaged { what, entries: Some(0), .. } => {
                self.report.notes.push(format!("{name}: byte {offset}: {what}"));
            }
            Fragment::Damaged { what, .. } => self.lose(name, offset, what),
            Fragment::Torn { are_zeros: true, .. } if counts.is_none() => {}
            Fragment::Torn { bytes, .. } => {
                let bytes = bytes.end - offset;
                let what = format!("no valid record in the last {bytes} bytes");
                if counts.is_some() {
                    self.lose(name, offset, what);
                } else if bytes > 0 {
                    let note = format!("{name}: byte {offset}: {what}, as a crash leaves them");
                    self.report.notes.push(note);
                }
            }
        }
        None
    }

    fn lose(&mut self, file: String, offset: u64, what: String) {
        self.open.get_or_insert(self.report.lost.len());
        self.report.lost.push(Loss { file, offset, what, entries: None });
    }

    /// Ends the losses before a group with this first number. Failed writes may also have used
    /// numbers.
    fn close(&mut self, first: u64) {
        let Some(open) = self.open.take() else { return };
        let missing = self.last.and_then(|last| first.checked_sub(last + 1));
        let (one, others) = self.report.lost[open..].split_first_mut().expect("a loss is open");
        one.entries = missing;
        // Adjacent losses share one count, which the first one gets.
        others.iter_mut().for_each(|other| other.entries = missing.filter(|&count| count == 0));
    }

    /// Reports the predecessor of a log, if it is missing.
    fn look_for(&mut self, numbers: &[u64], live: Option<u64>, number: u64, before: Predecessor) {
        if before.wal == 0 || before.valid_bytes == 0 || numbers.contains(&before.wal) {
            return;
        }
        let name = wal_name(before.wal);
        match live {
            Some(live) if before.wal >= live => self.lose(name, 0, "the log is missing".into()),
            Some(_) => {}
            None => {
                let follower = wal_name(number);
                let what = format!(
                    "it is not here, and {follower} follows it: all of it was in tables, or it is lost"
                );
                self.report.doubts.push(Doubt { file: name, offset: None, what });
            }
        }
    }

    /// Turns damage that costs no writes from a loss into a note.
    fn drop_empty_losses(&mut self) {
        let is_empty = |loss: &mut Loss| loss.entries == Some(0) && loss.file.ends_with(".wal");
        let empty = self.report.lost.extract_if(.., is_empty);
        self.report.notes.extend(empty.map(|loss| format!("{loss} (no writes)")));
    }
}

/// Whether no table has this entry or a newer one of its key. So entries that are in no table are
/// kept, whatever tables are left, and never replace newer ones.
pub(crate) fn is_newer_than_all(entry: &Entry<'_>, tables: &[Arc<Table>]) -> Result<bool> {
    // It hides older entries wherever they are, so a duplicate does no harm.
    if entry.kind == Kind::DeleteRange {
        return Ok(true);
    }
    for table in tables {
        let is_within = table.first_key() <= entry.key && entry.key <= table.last_key();
        if !is_within || table.properties().sequences.1 < entry.sequence {
            continue;
        }
        let newest = table.get(entry.key, Sequence::MAX, &mut Reads::default())?;
        if newest.is_some_and(|newest| newest.sequence >= entry.sequence) {
            return Ok(false);
        }
    }
    Ok(true)
}
