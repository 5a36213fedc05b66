//! Log recovery: replays logs into memtables, for each tree.
//! ```text
//! 000007.wal                        -> memtables: a full one is closed at the end of a log;
//! 000009.wal, "7 has 4096 bytes"       the last one of each tree continues
//!                                      only the newest log may have a torn tail
//! ```
//! Entries that tables have, and repetitions that another log has, are left out.
//!
//! Invariant: a log has all the bytes that the next log says it has. Fewer bytes are an error.

use std::collections::{BTreeMap, BTreeSet};

use crate::entries::entry::{Entry, Kind, Sequence};
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::memtable::{Memtable, MemtableSize};
use crate::entries::memtable_writes::writes_up_to;
use crate::entries::value_ref::ValueRef;
use crate::error::{Error, Result};
use crate::files::held_values::HeldValues;
use crate::files::log_check::{LogCounts, beginning_lost, live_logs, missing, missing_newest};
use crate::files::names::wal_name;
use crate::files::value_file::ValueFile;
use crate::files::value_files::StoreValues;
use crate::files::wal::{self, Predecessor, WalBatch};
use crate::plan::store_layout::{LogNumbers, StoreLayout};
use crate::storage::open_folder::OpenFolder;
use crate::sync::Arc;

/// A log that was replayed.
pub(crate) struct ReplayedLog {
    pub(crate) number: u64,
    pub(crate) before: Predecessor,
    pub(crate) counts: LogCounts,
    /// The newest write that its groups know of, logged or not.
    last: Sequence,
    /// The sequence number of its last entry.
    last_entry: Sequence,
    /// How many of its bytes were durable, as its groups say.
    pub(crate) said_bytes: u64,
    /// The value files that its entries name, also those of entries that tables have.
    pub(crate) values: BTreeSet<u64>,
}

impl ReplayedLog {
    fn new(number: u64, before: Predecessor) -> Self {
        let (counts, last, said_bytes) = (LogCounts::default(), Sequence(0), 0);
        let values = BTreeSet::new();
        ReplayedLog { number, before, counts, last, last_entry: last, said_bytes, values }
    }
}

/// Entries of one tree, in the order of their sequence numbers.
pub(crate) struct ReplayedMemtable {
    pub(crate) memtable: Arc<Memtable>,
    /// The log with the first of these entries.
    pub(crate) first_log: u64,
    pub(crate) first: Sequence,
    pub(crate) last: Sequence,
    /// The value files that its entries refer to.
    pub(crate) values: Arc<HeldValues>,
    /// Whether it takes no more entries.
    is_closed: bool,
}

/// The result of replaying the logs.
#[derive(Default)]
pub(crate) struct Replayed {
    /// Oldest first.
    pub(crate) logs: Vec<ReplayedLog>,
    /// Oldest first.
    pub(crate) trees: BTreeMap<KeyspaceId, Vec<ReplayedMemtable>>,
    /// Whether there is a write into a key space that the layout does not have yet.
    pub(crate) is_ahead: bool,
    /// Where the newest log ends, because a value is missing that its next group refers to.
    torn_at: Option<u64>,
    late: BTreeMap<KeyspaceId, Vec<LateWrite>>,
}

impl Replayed {
    /// The sequence number of the newest entry of all logs.
    pub(crate) fn last_entry(&self) -> Sequence {
        self.logs.iter().map(|log| log.last_entry).max().unwrap_or_default()
    }

    /// The newest write, whether tables have it or not.
    pub(crate) fn last(&self) -> Sequence {
        let before = |log: &ReplayedLog| log.before.last.unwrap_or_default();
        self.logs.iter().map(|log| log.last.max(before(log))).max().unwrap_or_default()
    }
}

/// Replays the live logs, oldest first. Each log must have all the bytes that the next one says it
/// has. Only the last log may have a torn tail, which also begins at a group with a missing value.
/// `size_of` returns the size of a tree's memtables.
pub(crate) fn replay_logs(
    (folder, values): (&OpenFolder, &StoreValues),
    names: &[String],
    layout: &StoreLayout,
    size_of: &dyn Fn(KeyspaceId) -> MemtableSize,
) -> Result<Replayed> {
    let replay = Replay { folder, values, layout, size_of, is_owner: true };
    replay.up_to_lost_values(names, None).map(|(replayed, _)| replayed)
}

/// Does the same for a store that another process writes. The newest log ends at the given offset,
/// or before it, where its owner would find the end. Also returns that offset if it is before.
pub(crate) fn replay_followed(
    (folder, values): (&OpenFolder, &StoreValues),
    (names, end): (&[String], Option<u64>),
    layout: &StoreLayout,
    size_of: &dyn Fn(KeyspaceId) -> MemtableSize,
) -> Result<(Replayed, Option<u64>)> {
    let replay = Replay { folder, values, layout, size_of, is_owner: false };
    replay.up_to_lost_values(names, end)
}

/// Returns the live logs, each with what it says of its predecessor.
fn found_logs(
    folder: &OpenFolder,
    names: &[String],
    record: LogNumbers,
) -> Result<Vec<ReplayedLog>> {
    let numbers = live_logs(names, record);
    let needed = record.needed();
    if let Some(gone) = needed.filter(|needed| !numbers.contains(needed)) {
        return Err(missing_newest(folder, gone));
    }
    // A log that was torn before its predecessor record has no acknowledged writes, unless the
    // manifest requires it.
    let mut logs: Vec<ReplayedLog> = Vec::new();
    for &number in &numbers {
        match wal::predecessor(folder, number)? {
            Some(before) => {
                check_no_gap(folder, &numbers, &logs, (number, before), record)?;
                logs.push(ReplayedLog::new(number, before));
            }
            None if needed == Some(number) => return Err(beginning_lost(folder, number)),
            None => {}
        }
    }
    Ok(logs)
}

/// Fails if the predecessor of this log is missing or damaged, and its writes are not in tables.
fn check_no_gap(
    folder: &OpenFolder,
    numbers: &[u64],
    logs: &[ReplayedLog],
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

struct Replay<'a> {
    folder: &'a OpenFolder,
    values: &'a StoreValues,
    layout: &'a StoreLayout,
    size_of: &'a dyn Fn(KeyspaceId) -> MemtableSize,
    /// Whether this process owns the store, and so repairs what a crash left.
    is_owner: bool,
}

/// References of the newest log, while it is not known yet which groups are durable.
#[derive(Default)]
struct Doubtful {
    /// Each with the offset of its group.
    values: Vec<(u64, ValueRef)>,
    /// The first group with a missing value, and the error.
    lost: Option<(u64, Error)>,
}

impl Replay<'_> {
    /// Replays all logs. The newest one ends at `end`, or before the first group with a missing
    /// value. Also returns the offset of that group, if there is one.
    fn up_to_lost_values(
        &self,
        names: &[String],
        end: Option<u64>,
    ) -> Result<(Replayed, Option<u64>)> {
        let (mut torn_at, mut said_bytes) = (None, 0);
        loop {
            let replayed = self.all(names, torn_at.or(end), said_bytes)?;
            let Some(found) = replayed.torn_at else { return Ok((replayed, torn_at)) };
            torn_at = Some(found);
            // Groups that do not count, since their values are missing, still know what was
            // durable before them.
            said_bytes = replayed.logs.last().map_or(0, |newest| newest.said_bytes);
        }
    }

    /// Replays all logs; the newest one up to `torn_at`, if that is known. At least `said_bytes` of
    /// its bytes were durable.
    fn all(&self, names: &[String], torn_at: Option<u64>, said_bytes: u64) -> Result<Replayed> {
        let mut logs = found_logs(self.folder, names, self.layout.logs)?;
        logs.last_mut().into_iter().for_each(|newest| newest.said_bytes = said_bytes);
        let mut replayed = Replayed { logs, ..Default::default() };
        for place in 0..replayed.logs.len() {
            let next = replayed.logs.get(place + 1);
            let is_newest = next.is_none();
            let next = next.filter(|next| next.before.wal == replayed.logs[place].number);
            let valid = next.map(|next| next.before.valid_bytes);
            let valid = valid.or(torn_at.filter(|_| is_newest));
            self.log(&mut replayed, place, valid)?;
            if !is_newest {
                replayed.close_full(self.size_of);
            }
        }
        for (keyspace, late) in std::mem::take(&mut replayed.late) {
            let memtables =
                replayed.trees.get_mut(&keyspace).expect("there are later writes of it");
            add_late(self.folder, memtables, late, (self.size_of)(keyspace))?;
        }
        Ok(replayed)
    }

    fn log(&self, replayed: &mut Replayed, place: usize, valid: Option<u64>) -> Result<()> {
        let is_newest = place + 1 == replayed.logs.len();
        let mut doubtful = is_newest.then(Doubtful::default);
        let ReplayedLog { number, mut counts, mut last, mut last_entry, mut said_bytes, .. } =
            replayed.logs[place];
        let mut values = BTreeSet::new();
        let bytes = wal::replay(self.folder, number, valid, &mut |group| {
            if group.first <= last && !group.repeats {
                let what = "a group of writes that is older than the one before it";
                let path = self.folder.path_of(&wal_name(number));
                return Err(Error::corrupt(path, 0, what));
            }
            self.group(&group, number, replayed, &mut doubtful)?;
            values.extend(group.value_files());
            last = last.max(Sequence(group.next().0.saturating_sub(1)));
            last_entry = group.entries.last().map_or(last_entry, |it| last_entry.max(it.sequence));
            counts.add_group(group.entries.len());
            said_bytes = said_bytes.max(group.durable_bytes);
            Ok(())
        })?;
        (counts.files, counts.bytes) = (1, bytes);
        let before = replayed.logs[place].before;
        let said_bytes = said_bytes.min(bytes);
        replayed.logs[place] =
            ReplayedLog { number, before, counts, last, last_entry, said_bytes, values };
        replayed.torn_at = doubtful.map_or(Ok(None), |it| self.torn_at(it, said_bytes))?;
        Ok(())
    }

    /// Returns where the newest log ends, if a value is missing. A crash may have kept any part of
    /// a value, so values of groups that may not be durable are read and checked.
    fn torn_at(&self, Doubtful { values, lost }: Doubtful, durable: u64) -> Result<Option<u64>> {
        match lost {
            Some((group, error)) if group < durable => return Err(error),
            _ => {}
        }
        let end = lost.map_or(u64::MAX, |(group, _)| group);
        let unsure = || values.iter().filter(|(group, _)| (durable..end).contains(group));
        for (group, at) in unsure() {
            let checked =
                self.values.found(at.file).and_then(|it| it.check(self.values.files(), at));
            match checked {
                Err(error) if error.tells_of_damage() => return Ok(Some(*group)),
                checked => checked?,
            }
        }
        if end < u64::MAX {
            return Ok(Some(end));
        }
        if !self.is_owner {
            return Ok(None);
        }
        // The process that wrote them may have been killed before they were durable.
        let files: BTreeSet<u64> = unsure().map(|(_, at)| at.file).collect();
        files
            .iter()
            .try_for_each(|file| self.values.found(*file).map(|it| self.values.doubt(&it)))?;
        Ok(None)
    }

    /// Returns the file of the value that an entry refers to. `None`: the entry refers to none, or
    /// the value is missing, which `doubtful` now records.
    fn held(
        &self,
        entry: &Entry<'_>,
        group: u64,
        doubtful: &mut Option<Doubtful>,
    ) -> Result<Option<(Arc<ValueFile>, ValueRef)>> {
        let Some(Ok(at)) = entry.value_ref() else { return Ok(None) };
        let file = self.values.found(at.file).and_then(|file| {
            file.check_head(self.values.files(), &at)?;
            Ok(file)
        });
        match (file, doubtful) {
            (Ok(file), None) => Ok(Some((file, at))),
            (Ok(file), Some(doubtful)) => {
                doubtful.values.push((group, at));
                Ok(Some((file, at)))
            }
            (Err(error), Some(doubtful)) if error.tells_of_damage() => {
                doubtful.lost.get_or_insert((group, error));
                Ok(None)
            }
            (Err(error), _) => Err(error),
        }
    }

    fn group(
        &self,
        group: &WalBatch<'_>,
        log: u64,
        Replayed { trees, late, is_ahead, .. }: &mut Replayed,
        doubtful: &mut Option<Doubtful>,
    ) -> Result<()> {
        for (keyspace, entry) in group.writes() {
            // The key space was dropped, or another process creates it meanwhile.
            let Some(tree) = self.layout.tree(keyspace) else {
                *is_ahead |= keyspace.0 >= self.layout.next_keyspace;
                continue;
            };
            let memtables = trees.entry(keyspace).or_default();
            let known = memtables.last().map_or(Sequence(0), |memtable| memtable.last);
            if entry.sequence <= tree.last_sequence {
                continue;
            }
            if entry.sequence <= known {
                if !memtables.iter().any(|it| has(&it.memtable, entry)) {
                    let value = self.held(entry, group.offset, doubtful)?;
                    let late = late.entry(keyspace).or_default();
                    late.push(LateWrite { value_apart: value, ..LateWrite::of(entry, log) });
                }
                continue;
            }
            let value = self.held(entry, group.offset, doubtful)?;
            if memtables.last().is_none_or(|memtable| memtable.is_closed) {
                memtables.push(ReplayedMemtable::new(
                    log,
                    entry.sequence,
                    (self.size_of)(keyspace),
                ));
            }
            let memtable = memtables.last_mut().expect("it was added");
            memtable.memtable.insert(entry.key, entry.sequence, entry.kind, entry.value);
            memtable.last = entry.sequence;
            value.iter().for_each(|(file, at)| memtable.values.hold(file, at));
        }
        Ok(())
    }
}

/// A write that a log repeats. It may be older than what was read of its tree.
struct LateWrite {
    /// The log that has the write.
    log: u64,
    sequence: Sequence,
    kind: Kind,
    key: Vec<u8>,
    value: Vec<u8>,
    value_apart: Option<(Arc<ValueFile>, ValueRef)>,
}

impl LateWrite {
    fn of(entry: &Entry<'_>, log: u64) -> Self {
        let Entry { sequence, kind, key, value } = *entry;
        let (key, value, value_apart) = (key.to_vec(), value.to_vec(), None);
        LateWrite { log, sequence, kind, key, value, value_apart }
    }

    fn entry(&self) -> Entry<'_> {
        let LateWrite { log: _, sequence, kind, key, value, value_apart: _ } = self;
        Entry { sequence: *sequence, kind: *kind, key, value }
    }
}

/// Whether a memtable has a write.
fn has(memtable: &Arc<Memtable>, entry: &Entry<'_>) -> bool {
    match entry.kind {
        Kind::DeleteRange => {
            memtable.ranges().written().any(|deletion| deletion.sequence == entry.sequence)
        }
        _ => memtable.find_number(entry.key, entry.sequence) == Some(entry.sequence),
    }
}

/// Adds repeated writes to the memtables of a tree. The logs that had them first are gone, but
/// later logs of the tree are not.
///
/// # Errors
/// `Corrupt` if two writes have the same sequence number.
fn add_late(
    folder: &OpenFolder,
    memtables: &mut [ReplayedMemtable],
    mut late: Vec<LateWrite>,
    size: MemtableSize,
) -> Result<()> {
    late.sort_unstable_by_key(|write| write.sequence);
    late.dedup_by(|one, other| one.entry() == other.entry());
    for place in (0..memtables.len()).rev() {
        let from = if place == 0 { Sequence(0) } else { memtables[place].first };
        let own = late.split_off(late.partition_point(|write| write.sequence < from));
        if own.is_empty() {
            continue;
        }
        let memtable = &mut memtables[place];
        let all = std::iter::once((KeyspaceId::DEFAULT, &*memtable.memtable));
        let writes = writes_up_to(all, Sequence::MAX);
        let known = writes.iter().map(|write| write.entry);
        let mut all: Vec<Entry<'_>> = own.iter().map(LateWrite::entry).chain(known).collect();
        // Once a memtable has a range deletion, it takes writes only in order of their sequence
        // numbers.
        all.sort_unstable_by_key(|entry| entry.sequence);
        let twice = all.windows(2).find(|two| two[0].sequence == two[1].sequence);
        if let Some(Sequence(number)) = twice.map(|two| two[0].sequence) {
            let repeated = own.iter().find(|write| write.sequence.0 == number);
            let log = repeated.expect("what was known has each number once").log;
            let what = format!("a repeated write has number {number}, as another one has");
            return Err(Error::corrupt(folder.path_of(&wal_name(log)), 0, what));
        }
        let with = Memtable::sized(size);
        all.iter().for_each(|it| with.insert(it.key, it.sequence, it.kind, it.value));
        memtable.first = memtable.first.min(all[0].sequence);
        let values = own.iter().filter_map(|write| write.value_apart.as_ref());
        values.for_each(|(file, at)| memtable.values.hold(file, at));
        memtable.memtable = Arc::new(with);
    }
    Ok(())
}

impl ReplayedMemtable {
    fn new(first_log: u64, first: Sequence, size: MemtableSize) -> Self {
        let memtable = Arc::new(Memtable::sized(size));
        let (values, is_closed) = (Arc::default(), false);
        ReplayedMemtable { memtable, first_log, first, last: first, values, is_closed }
    }
}

impl Replayed {
    /// Closes memtables that are at least half full. Smaller ones continue, since a seldom written
    /// tree has few entries in each log.
    fn close_full(&mut self, size_of: &dyn Fn(KeyspaceId) -> MemtableSize) {
        for (keyspace, memtables) in &mut self.trees {
            let full = size_of(*keyspace).expected_bytes();
            if let Some(newest) = memtables.last_mut() {
                newest.is_closed |= 2 * newest.memtable.size_bytes() >= full;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::entries::entry::Kind;
    use crate::files::wal::Wal;
    use crate::plan::layout::Layout;
    use crate::plan::store_layout::KeyspaceLayout;
    use crate::storage::io_mode::Access;
    use crate::storage::memory::Memory;
    use crate::storage::open_files::OpenFiles;
    use crate::storage::traits::Storage as _;

    const DIR: &str = "db";

    fn folder(disk: &Memory) -> OpenFolder {
        disk.create_dir(Path::new(DIR)).expect("makes the folder");
        OpenFolder::on(disk, DIR)
    }

    /// Appends a group of puts, each with its key space and key.
    fn append(log: &mut Wal, first: u64, puts: &[(u32, &str)]) -> Result<()> {
        let writes = puts.iter().map(|(keyspace, key)| {
            (KeyspaceId(*keyspace), Kind::Put, key.as_bytes(), &b"value"[..])
        });
        log.append(Sequence(first), puts.len(), writes.zip(first..))
    }

    fn replay(disk: &Memory, layout: &StoreLayout, full: usize) -> Result<Replayed> {
        let (folder, names) =
            (OpenFolder::on(disk, DIR), disk.list(Path::new(DIR)).expect("lists"));
        let files = OpenFiles::new(folder.clone(), Access::default(), 1);
        let values = StoreValues::new(folder.clone(), files, Arc::default());
        replay_logs((&folder, &values), &names, layout, &|_| MemtableSize::of(full))
    }

    /// Returns, for each memtable of a tree, the log that it begins in and its sequence numbers.
    fn memtables(replayed: &Replayed, keyspace: u32) -> Vec<(u64, Vec<u64>)> {
        let memtables = replayed.trees.get(&KeyspaceId(keyspace)).into_iter().flatten();
        let numbers = |memtable: &ReplayedMemtable| {
            let mut all: Vec<u64> = memtable.memtable.entries().map(|it| it.sequence.0).collect();
            all.sort_unstable();
            assert_eq!(all.first(), Some(&memtable.first.0));
            assert_eq!(all.last(), Some(&memtable.last.0));
            all
        };
        memtables.map(|memtable| (memtable.first_log, numbers(memtable))).collect()
    }

    /// Two trees whose tables have the writes up to these numbers.
    fn two_trees(last: [u64; 2]) -> StoreLayout {
        let mut layout = StoreLayout::default();
        for (keyspace, last) in [(0, last[0]), (3, last[1])] {
            let tree = Layout { last_sequence: Sequence(last), ..Layout::default() };
            let record = Arc::default();
            let keyspace_layout = KeyspaceLayout { record, tree: Arc::new(tree) };
            layout.keyspaces.insert(KeyspaceId(keyspace), keyspace_layout);
        }
        layout
    }

    #[test]
    fn each_tree_gets_its_entries_that_tables_lack() {
        let disk = Memory::new();
        let folder = folder(&disk);
        let none = Predecessor { wal: 0, valid_bytes: 0, last: None };
        let mut log = Wal::create((&folder, Access::default()), 7, none).expect("creates");
        append(&mut log, 1, &[(0, "a"), (3, "a"), (0, "b")]).expect("appends");
        append(&mut log, 4, &[(3, "b"), (9, "of one that was dropped")]).expect("appends");
        log.sync_alone().expect("syncs");
        let before = Predecessor { wal: 7, valid_bytes: log.valid_bytes(), last: None };
        let mut log = Wal::create((&folder, Access::default()), 8, before).expect("creates");
        append(&mut log, 6, &[(0, "c"), (3, "c")]).expect("appends");
        let all = replay(&disk, &two_trees([0, 0]), 1 << 20).expect("replays");
        assert_eq!(memtables(&all, 0), [(7, vec![1, 3, 6])]);
        assert_eq!(memtables(&all, 3), [(7, vec![2, 4, 7])]);
        assert_eq!((all.last(), memtables(&all, 9)), (Sequence(7), vec![]));
        // Tree 0 was sealed after 3, and tree 3 after 5. Entries of other trees may lie between.
        let some = replay(&disk, &two_trees([3, 5]), 1 << 20).expect("replays");
        assert_eq!(
            (memtables(&some, 0), memtables(&some, 3)),
            (vec![(8, vec![6])], vec![(8, vec![7])])
        );
        // A half full memtable is closed at the end of a log.
        let small = replay(&disk, &two_trees([0, 4]), 64).expect("replays");
        assert_eq!(memtables(&small, 0), [(7, vec![1, 3]), (8, vec![6])]);
        assert_eq!(memtables(&small, 3), [(8, vec![7])]);
    }

    #[test]
    fn what_a_log_repeats_is_there_once_whether_the_earlier_log_is_or_not() {
        for has_earlier in [true, false] {
            let disk = Memory::new();
            let folder = folder(&disk);
            let none = Predecessor { wal: 0, valid_bytes: 0, last: None };
            let mut log = Wal::create((&folder, Access::default()), 7, none).expect("creates");
            append(&mut log, 1, &[(0, "a"), (3, "a")]).expect("appends");
            log.sync_alone().expect("syncs");
            let before = Predecessor { wal: 7, valid_bytes: log.valid_bytes(), last: None };
            // These entries are in memory, and the log has failed.
            append(&mut log, 3, &[(0, "b"), (3, "b")]).expect("appends");
            let memtables_of = |keyspace: u32, numbers: [u64; 2]| {
                let memtable = Memtable::new(1 << 16);
                for (number, key) in numbers.into_iter().zip(["a", "b"]) {
                    memtable.insert(key.as_bytes(), Sequence(number), Kind::Put, b"value");
                }
                (KeyspaceId(keyspace), Arc::new(memtable))
            };
            let active = [memtables_of(0, [1, 3]), memtables_of(3, [2, 4])];
            let mut log = Wal::create_from((&folder, Access::default()), 9, before, &active)
                .expect("creates");
            append(&mut log, 5, &[(3, "c")]).expect("appends");
            let mut layout = two_trees([0, 0]);
            if !has_earlier {
                disk.remove(&Path::new(DIR).join(wal_name(7))).expect("removes");
                layout.logs.live = 9;
            }
            let replayed = replay(&disk, &layout, 1 << 20).expect("replays");
            let first = if has_earlier { 7 } else { 9 };
            assert_eq!(memtables(&replayed, 0), [(first, vec![1, 3])]);
            assert_eq!(memtables(&replayed, 3), [(first, vec![2, 4, 5])]);
        }
    }

    #[test] // It was taken for known, because a later write of its tree was.
    fn what_is_repeated_is_added_to_what_later_logs_have_of_its_tree() {
        let disk = Memory::new();
        let folder = folder(&disk);
        let none = Predecessor { wal: 0, valid_bytes: 0, last: None };
        // Log 7 had number 1 of tree 3, and is gone.
        let mut log = Wal::create((&folder, Access::default()), 8, none).expect("creates");
        append(&mut log, 5, &[(0, "a"), (3, "later")]).expect("appends");
        log.sync_alone().expect("syncs");
        let before = Predecessor { wal: 8, valid_bytes: log.valid_bytes(), last: None };
        let mut log = Wal::create((&folder, Access::default()), 9, before).expect("creates");
        append(&mut log, 7, &[(0, "b")]).expect("appends");
        let memtable = Memtable::new(1 << 16);
        for (number, key) in [(1, "first"), (6, "later")] {
            memtable.insert(key.as_bytes(), Sequence(number), Kind::Put, b"value");
        }
        let all = std::iter::once((KeyspaceId(3), &memtable));
        log.repeat(&writes_up_to(all, Sequence::MAX)).expect("appends");
        append(&mut log, 8, &[(3, "last")]).expect("appends");
        let replayed = replay(&disk, &two_trees([0, 0]), 1 << 20).expect("replays");
        assert_eq!(memtables(&replayed, 0), [(8, vec![5, 7])]);
        assert_eq!(memtables(&replayed, 3), [(8, vec![1, 6, 8])]);
        let flushed = replay(&disk, &two_trees([0, 5]), 1 << 20).expect("replays");
        assert_eq!(memtables(&flushed, 3), [(8, vec![6, 8])]);
    }

    #[test] // Opening used to panic: with a range deletion, a memtable takes writes only in order.
    fn two_writes_with_one_number_are_damage() {
        let disk = Memory::new();
        let none = Predecessor { wal: 0, valid_bytes: 0, last: None };
        let mut log = Wal::create((&folder(&disk), Access::default()), 8, none).expect("creates");
        append(&mut log, 5, &[(0, "a"), (0, "b")]).expect("appends");
        let memtable = Memtable::new(1 << 16);
        memtable.insert(b"c", Sequence(5), Kind::DeleteRange, b"d");
        let all = std::iter::once((KeyspaceId(0), &memtable));
        log.repeat(&writes_up_to(all, Sequence::MAX)).expect("appends");
        match replay(&disk, &two_trees([0, 0]), 1 << 20).map(drop) {
            Err(Error::Corrupt { path, .. }) => assert!(path.ends_with(wal_name(8))),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_log_that_repeats_itself_is_damaged() {
        let disk = Memory::new();
        let none = Predecessor { wal: 0, valid_bytes: 0, last: None };
        let folder = folder(&disk);
        let mut log = Wal::create((&folder, Access::default()), 7, none).expect("creates");
        for (first, goes_on) in [(5, true), (6, true), (6, false)] {
            append(&mut log, first, &[(0, "key")]).expect("appends");
            let read = replay(&disk, &StoreLayout::default(), 1 << 20);
            assert_eq!(read.is_ok(), goes_on, "after {first}");
        }
    }
}
