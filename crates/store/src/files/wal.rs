//! The write-ahead log: what was written since the last flush of the memtable.
//! ```text
//! 000007.wal   header | predecessor record | record | record | ...
//! header       "TRMLWAL\0" | version u32
//! predecessor  number of the log before | how many of its bytes count | the newest write before
//! payload      durable bytes | first sequence | count | item ...
//!              (one group of batches, logged together)
//! item         kind u8 | key | value    an entry
//!              (a deletion has no value; that of a range has the exclusive end)
//!              64 | number              entries from here on belong to that key space;
//!                                       those before the first such item, to the default one
//!              65                       the group repeats entries of earlier logs
//!              66 | how many            this many numbers before the next entry are in no log
//! ```
//! Numbers are varints. Keys and values follow their lengths. A closed log ends with an empty
//! group.
//!
//! Invariants:
//! - Entries have the sequence numbers first, first + 1, …, without those of writes into unlogged
//!   key spaces. Numbers ascend from group to group. Only groups that repeat earlier logs may go
//!   back; they allow these logs to be removed.
//! - A group is there as a whole or not at all.
//! - A log gets a successor only when all of it is durable or in tables. The successor records its
//!   length. So a shortened log differs from one with a torn tail, and the remains of a failed
//!   write are ignored. So are zeros at its end, which a process that did not close the log had
//!   preallocated.
//! - Each group records how many bytes of the log were durable before it. Damage to those bytes is
//!   not a torn tail, although a crash may keep later pages and lose earlier ones.

use std::path::{Path, PathBuf};

use trommel_filters::{Corrupt, Reader, Writer};

use crate::entries::entry::{Entry, KEY_BYTES_MAX, Kind, NUMBER_MAX, Sequence};
use crate::entries::expiry::EXPIRY_BYTES;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::memtable::Memtable;
use crate::entries::memtable_writes::{MemtableWrite, groups, writes_up_to};
use crate::entries::value_ref::ref_in;
use crate::error::{Error, Result};
use crate::files::names::wal_name;
use crate::files::record::{self, RecordWriter, Records};
use crate::files::unsynced::{LogEnd, Unsynced};
use crate::storage::io_mode::Access;
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::{Append, ReadAt};
use crate::sync::Arc;

const MAGIC: [u8; 8] = *b"TRMLWAL\0";
/// At least two flipped bits turn it into 2, or into 0, which nobody has written.
pub(crate) const VERSION: u32 = 7;
/// The readable versions. The older one is a subset of the present one.
const READ_VERSIONS: [u32; 2] = [2, VERSION];
pub(crate) const HEADER_SIZE: usize = MAGIC.len() + size_of::<u32>();
/// Upper limit for the bytes of header and predecessor record.
const BEGINNING_BYTES: usize = 128;
/// An item that is not an entry: the number of a key space follows.
const KEYSPACE_TAG: u8 = 64;
/// An item that is not an entry: the group repeats entries of earlier logs.
const REPEATS_TAG: u8 = 65;
/// An item that is not an entry: how many sequence numbers are skipped follows.
const GAP_TAG: u8 = 66;
/// Memory is reserved for that many entries of a group; for more, when they are there.
const ENTRIES_BELIEVED: u64 = 1024;

pub(crate) fn header() -> [u8; HEADER_SIZE] {
    header_of(VERSION)
}

fn header_of(version: u32) -> [u8; HEADER_SIZE] {
    let mut header = [0; HEADER_SIZE];
    header[..MAGIC.len()].copy_from_slice(&MAGIC);
    header[MAGIC.len()..].copy_from_slice(&version.to_le_bytes());
    header
}

/// The previous log, and how many of its bytes count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Predecessor {
    pub(crate) wal: u64,
    /// 0: none of its bytes count any more.
    pub(crate) valid_bytes: u64,
    /// All writes after this number are in this log or a later one. It is the newest write that was
    /// visible when this log was made. For a log that repeats the memtables, it is the newest one
    /// before them. `None`: an older version wrote the log.
    pub(crate) last: Option<Sequence>,
}

impl Predecessor {
    /// The predecessor record of a log without a predecessor.
    pub(crate) fn none(last: Sequence) -> Self {
        Predecessor { wal: 0, valid_bytes: 0, last: Some(last) }
    }
}

/// A write as it is logged: key space, kind, key and value.
pub(crate) type LoggedWrite<'e> = (KeyspaceId, Kind, &'e [u8], &'e [u8]);

/// A write with its sequence number.
pub(crate) type NumberedWrite<'e> = (LoggedWrite<'e>, u64);

/// A folder, and how logs are written in it.
pub(crate) type LogFolder<'f> = (&'f OpenFolder, Access);

/// A log that is being written.
pub(crate) struct Wal {
    records: RecordWriter,
    number: u64,
    /// The end of the last record, and that of the last certainly durable one.
    end: Arc<LogEnd>,
    /// The number of durable bytes that the last group records.
    said_bytes: u64,
}

impl Wal {
    /// Creates an empty log, durably. It proves that the previous log existed, even if the manifest
    /// is damaged.
    pub(crate) fn create(
        (folder, access): LogFolder<'_>,
        number: u64,
        before: Predecessor,
    ) -> Result<Wal> {
        let name = wal_name(number);
        let file = folder.create_with(&name, access)?;
        let made = Wal::begin(file, folder.path_of(&name), number, before).and_then(|mut wal| {
            wal.sync_alone()?;
            folder.sync().map(|()| wal)
        });
        if made.is_err() {
            // If the file stays, it is an empty log, and the previous log takes no more writes.
            let _ = folder.remove(&name);
        }
        made
    }

    /// Creates a log with the entries of these memtables. It gets its name once all of it is
    /// durable.
    pub(crate) fn create_from(
        folder: LogFolder<'_>,
        number: u64,
        before: Predecessor,
        memtables: &[(KeyspaceId, Arc<Memtable>)],
    ) -> Result<Wal> {
        Wal::create_whole(folder, number, |file, path| {
            let mut wal = Wal::begin(file, path, number, before)?;
            wal.copy_entries(memtables)?;
            Ok(wal)
        })
    }

    /// Rewrites a replayed log, with its records as far as they count. A crash may have left some
    /// of them only in the system's memory. In the new file all are durable, at the same offsets.
    /// Then it gets its name.
    pub(crate) fn create_again(
        folder: LogFolder<'_>,
        number: u64,
        valid_bytes: u64,
    ) -> Result<Wal> {
        Wal::create_whole(folder, number, |file, path| {
            let mut wal = Wal::empty(file, path, number)?;
            wal.copy_records(folder.0, valid_bytes)?;
            Ok(wal)
        })
    }

    /// Creates a log that gets its name once `fill` has made it durable.
    fn create_whole(
        (folder, access): LogFolder<'_>,
        number: u64,
        fill: impl FnOnce(Box<dyn Append>, PathBuf) -> Result<Wal>,
    ) -> Result<Wal> {
        let (name, new) = (wal_name(number), format!("{}.new", wal_name(number)));
        let made = folder.create_anew_with(&new, access).and_then(|file| {
            let wal = fill(file, folder.path_of(&new))?;
            folder.rename(&new, &name)?;
            Ok(wal)
        });
        if made.is_err() {
            // On a full disk the file would take space.
            let _ = folder.remove(&new);
        }
        let wal = made?;
        folder.sync()?;
        Ok(wal)
    }

    fn begin(
        file: Box<dyn Append>,
        path: PathBuf,
        number: u64,
        before: Predecessor,
    ) -> Result<Wal> {
        let mut wal = Wal::empty(file, path, number)?;
        let payload = wal.records.begin_record();
        payload.varint(before.wal);
        payload.varint(before.valid_bytes);
        before.last.into_iter().for_each(|last| payload.varint(last.0));
        wal.end_record()?;
        Ok(wal)
    }

    /// Creates a log without a record.
    fn empty(file: Box<dyn Append>, path: PathBuf, number: u64) -> Result<Wal> {
        let records = RecordWriter::begin(file, path, number, &header())?;
        let end = LogEnd::of(&records);
        Ok(Wal { records, number, end, said_bytes: 0 })
    }

    /// Appends a group of batches with `count` entries. `first` is the number of the first entry.
    /// After an error the log takes no more writes, and bytes left in the file do not count.
    pub(crate) fn append<'e>(
        &mut self,
        first: Sequence,
        count: usize,
        writes: impl Iterator<Item = NumberedWrite<'e>>,
    ) -> Result<()> {
        encode_writes(self.begin_group(first, count), first.0, writes);
        self.end_record()
    }

    /// Appends groups that repeat entries of earlier logs.
    pub(crate) fn repeat(&mut self, writes: &[MemtableWrite<'_>]) -> Result<()> {
        groups(writes).try_for_each(|group| {
            let first = group[0].entry.sequence;
            let payload = self.begin_group(first, group.len());
            payload.u8(REPEATS_TAG);
            let writes = group.iter().map(MemtableWrite::as_logged);
            encode_writes(payload, first.0, writes.zip(first.0..));
            self.end_record()
        })
    }

    /// Begins a group. Returns the buffer to which its entries are written.
    fn begin_group(&mut self, first: Sequence, count: usize) -> &mut Writer {
        self.said_bytes = self.valid_bytes();
        let payload = self.records.begin_record();
        [self.said_bytes, first.0, count as u64].into_iter().for_each(|it| payload.varint(it));
        payload
    }

    /// Appends an empty group unless the last group records all durable bytes. Damage to them is
    /// then not a torn tail.
    pub(crate) fn mark_end(&mut self, next: Sequence) -> Result<()> {
        if self.said_bytes == self.valid_bytes() {
            return Ok(());
        }
        self.note_next(next)
    }

    /// Appends an empty group. It records that all numbers below `next` were given to writes,
    /// logged or not.
    pub(crate) fn note_next(&mut self, next: Sequence) -> Result<()> {
        self.append(next, 0, std::iter::empty())
    }

    fn end_record(&mut self) -> Result<()> {
        let appended = self.records.end_record();
        appended.iter().for_each(|()| self.end.appended(self.records.len()));
        appended
    }

    /// Writes entries in the order of their sequence numbers, in groups. A batch may be split
    /// between two groups. Then the log records, before it gets its name, that all groups were
    /// durable. So damage to one is not a torn tail.
    fn copy_entries(&mut self, memtables: &[(KeyspaceId, Arc<Memtable>)]) -> Result<()> {
        let memtables = memtables.iter().map(|(keyspace, memtable)| (*keyspace, &**memtable));
        let writes = writes_up_to(memtables, Sequence::MAX);
        self.repeat(&writes)?;
        self.sync_alone()?;
        let is_long = groups(&writes).nth(1).is_some();
        let Some(last) = writes.last().filter(|_| is_long) else { return Ok(()) };
        self.mark_end(Sequence(last.entry.sequence.0 + 1))?;
        self.sync_alone()
    }

    /// Copies the records of the file with the log's name, and makes them durable.
    fn copy_records(&mut self, folder: &OpenFolder, valid_bytes: u64) -> Result<()> {
        let (mut next, mut is_marked) = (0, true);
        read_log(folder, self.number, &mut |offset, payload, path| {
            if offset >= valid_bytes {
                return Ok(());
            }
            self.records.append(payload)?;
            self.end.appended(self.records.len());
            if offset == HEADER_SIZE as u64 {
                return Ok(());
            }
            let group = WalBatch::decode(payload).map_err(|wrong| in_log(path, offset, wrong))?;
            next = next.max(group.next().0);
            self.said_bytes = group.durable_bytes;
            is_marked = group.entries.is_empty() && group.durable_bytes == offset;
            Ok(())
        })?;
        self.sync_alone()?;
        if is_marked {
            return Ok(());
        }
        self.mark_end(Sequence(next.min(NUMBER_MAX)))?;
        self.sync_alone()
    }

    /// Makes all groups so far durable. First `values` syncs what they refer to. Only one thread
    /// does so at a time.
    pub(crate) fn sync(
        &mut self,
        unsynced: &Unsynced,
        values: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        unsynced.sync(&self.end, || {
            values()?;
            self.records.sync()
        })
    }

    /// As `sync`, for a log that no other thread knows. Requires: the values are durable.
    pub(crate) fn sync_alone(&mut self) -> Result<()> {
        self.sync(&Unsynced::default(), || Ok(()))
    }

    /// Whether the log has groups that may not be durable.
    pub(crate) fn is_unsynced(&self) -> bool {
        self.records.len() > self.valid_bytes()
    }

    /// Whether the log takes no more writes, because its end or its durable length is unknown.
    pub(crate) fn has_failed(&self) -> bool {
        self.records.has_failed() || self.end.has_failed()
    }

    /// The log's durable length, shared with threads that sync the log.
    pub(crate) fn end(&self) -> &Arc<LogEnd> {
        &self.end
    }

    /// The log's length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.records.len()
    }

    /// The log's file number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The number of bytes that count once another log follows: those that were synced. The next
    /// log takes no entries before all others are in tables.
    pub(crate) fn valid_bytes(&self) -> u64 {
        self.end.durable_bytes()
    }
}

/// Reads the predecessor record of a log. `None`: the log was torn before it.
pub(crate) fn predecessor(folder: &OpenFolder, number: u64) -> Result<Option<Predecessor>> {
    let mut found = None;
    read_log(folder, number, &mut |offset, payload, path| {
        if offset == HEADER_SIZE as u64 {
            found = Some(decode_predecessor(payload).map_err(|wrong| in_log(path, offset, wrong))?);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Reads every group of a log in order, and returns the number of bytes that count. `valid_bytes`
/// is that number as the next log records it. Then that many bytes must be there. Without it a torn
/// tail is normal.
pub(crate) fn replay(
    folder: &OpenFolder,
    number: u64,
    valid_bytes: Option<u64>,
    f: &mut dyn FnMut(WalBatch<'_>) -> Result<()>,
) -> Result<u64> {
    let path = folder.path_of(&wal_name(number));
    let mut end = 0;
    read_log(folder, number, &mut |offset, payload, path| {
        if valid_bytes.is_some_and(|valid| offset >= valid) {
            return Ok(());
        }
        end = offset + record::record_size(payload.len());
        if offset == HEADER_SIZE as u64 {
            return Ok(());
        }
        let group = WalBatch::decode(payload).map_err(|wrong| in_log(path, offset, wrong))?;
        f(WalBatch { offset, ..group })
    })?;
    match valid_bytes {
        Some(valid) if end < valid => {
            let what = format!("the log ends here, but the next one says it has {valid} bytes");
            Err(Error::corrupt(path, end, what))
        }
        _ => Ok(end),
    }
}

/// Reads the predecessor record alone. `None`: the log has no such record.
pub(crate) fn beginning(
    file: &dyn ReadAt,
    path: &Path,
    number: u64,
) -> Result<Option<Predecessor>> {
    let bytes = record::read_header(file, path, BEGINNING_BYTES)?;
    check_version(path, &bytes[..bytes.len().min(HEADER_SIZE)])?;
    let payload = (bytes.len() > HEADER_SIZE)
        .then(|| record::record_at(&bytes, HEADER_SIZE, number))
        .flatten();
    let decoded = payload.map(decode_predecessor).transpose();
    decoded.map_err(|wrong| in_log(path, HEADER_SIZE as u64, wrong))
}

/// Gets a group of a log. Returns false if it does not take the group, which ends the reading.
pub(crate) type OnGroup<'f> = dyn FnMut(WalBatch<'_>) -> Result<bool> + 'f;

/// Reads the groups of a log within [from, end), all of which is durable. Returns the offset of the
/// first group that was not taken.
///
/// # Errors
/// `Corrupt`: the bytes of the log up to `end` are not whole records.
pub(crate) fn read_between(
    (file, path): (Arc<dyn ReadAt>, &Path),
    number: u64,
    (from, end): (u64, u64),
    f: &mut OnGroup<'_>,
) -> Result<u64> {
    let first = HEADER_SIZE as u64;
    if from == first {
        check_version(path, &record::read_header(&*file, path, HEADER_SIZE)?)?;
    }
    let mut records = Records::of(file, path, number)?;
    let mut at = from;
    while at < end {
        let payload = records.at(at)?.filter(|it| at + record::record_size(it.len()) <= end);
        let Some(payload) = payload else {
            let what = format!("no valid record here, but {end} bytes of the log are durable");
            return Err(Error::corrupt(path, at, what));
        };
        let group = || WalBatch::decode(payload).map_err(|wrong| in_log(path, at, wrong));
        if at > first && !f(group()?)? {
            break;
        }
        at += record::record_size(payload.len());
    }
    Ok(at)
}

fn in_log(path: &Path, offset: u64, wrong: Corrupt) -> Error {
    Error::corrupt(path, offset, format!("log record, {wrong}"))
}

type OnLogRecord<'f> = dyn FnMut(u64, &[u8], &Path) -> Result<()> + 'f;

fn read_log(folder: &OpenFolder, number: u64, f: &mut OnLogRecord<'_>) -> Result<u64> {
    let name = wal_name(number);
    let path = &*folder.path_of(&name);
    let header = record::read_header(&*folder.open_file(&name)?, path, HEADER_SIZE)?;
    let header = header_of(check_version(path, &header)?);
    let f = &mut |offset, payload: &[u8]| f(offset, payload, path);
    record::read_records(folder, &name, number, &header, &durable_before, f)
}

/// Returns how many bytes were durable before a record of a log. The predecessor record does not
/// tell.
fn durable_before(offset: u64, payload: &[u8]) -> u64 {
    if offset == HEADER_SIZE as u64 {
        return 0;
    }
    Reader::new(payload).varint().unwrap_or(offset)
}

pub(crate) fn decode_predecessor(payload: &[u8]) -> std::result::Result<Predecessor, Corrupt> {
    let mut input = Reader::new(payload);
    let (wal, valid_bytes) = (input.varint()?, input.varint()?);
    let last = (input.left() > 0).then(|| input.varint()).transpose()?.map(Sequence);
    if last.is_some_and(|last| last.0 > NUMBER_MAX) {
        return Err(input.corrupt("a write that no store has"));
    }
    input.end()?;
    Ok(Predecessor { wal, valid_bytes, last })
}

/// Distinguishes a whole header of another version from damage, which the record reader detects.
fn check_version(path: &Path, header: &[u8]) -> Result<u32> {
    match record::version_in(header, &MAGIC) {
        None | Some(0) => Ok(VERSION),
        Some(known) if READ_VERSIONS.contains(&known) => Ok(known),
        Some(found) => Err(Error::Version { path: path.to_path_buf(), found, known: VERSION }),
    }
}

/// Returns the header for the version of a log if that is readable, else for the present version.
pub(crate) fn header_like(bytes: &[u8]) -> [u8; HEADER_SIZE] {
    let known = |found: &u32| READ_VERSIONS.contains(found);
    header_of(record::version_in(bytes, &MAGIC).filter(known).unwrap_or(VERSION))
}

/// Returns the version of a log in an older format, whose groups are unreadable.
pub(crate) fn older_version(bytes: &[u8]) -> Option<u32> {
    record::version_in(bytes, &MAGIC).filter(|found| (1..READ_VERSIONS[0]).contains(found))
}

/// A borrowed group of batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WalBatch<'a> {
    /// Its offset in the log, if `replay` read it.
    pub(crate) offset: u64,
    /// How many bytes of the log were durable before it.
    pub(crate) durable_bytes: u64,
    /// The sequence number of the first entry; without entries, that of the next write.
    pub(crate) first: Sequence,
    /// Whether it repeats entries of earlier logs, which may be gone.
    pub(crate) repeats: bool,
    /// The entries, by ascending sequence number. Their keys are in any order.
    pub(crate) entries: Vec<Entry<'a>>,
    /// Changes of key space, each with the index of its first entry. The first entries are in the
    /// default one.
    keyspaces: Vec<(usize, KeyspaceId)>,
    /// How many numbers between those of the entries are in no log.
    skipped: u64,
}

impl<'a> WalBatch<'a> {
    /// Decodes a whole payload.
    pub(crate) fn decode(payload: &'a [u8]) -> std::result::Result<WalBatch<'a>, Corrupt> {
        let mut input = Reader::new(payload);
        let durable_bytes = input.varint()?;
        let first = input.varint()?;
        let count = input.varint()?;
        // An entry takes at least two bytes, so a greater count is false.
        if count > input.left() as u64 / 2 || first > NUMBER_MAX {
            return Err(input.corrupt("more entries than there can be"));
        }
        let entries = Vec::with_capacity(count.min(ENTRIES_BELIEVED) as usize);
        let (repeats, keyspaces, first) = (false, Vec::new(), Sequence(first));
        let (offset, skipped) = (0, 0);
        let mut batch =
            WalBatch { offset, durable_bytes, first, repeats, entries, keyspaces, skipped };
        while batch.entries.len() < count as usize {
            batch.decode_item(&mut input)?;
        }
        input.end()?;
        Ok(batch)
    }

    fn decode_item(&mut self, input: &mut Reader<'a>) -> std::result::Result<(), Corrupt> {
        let place = self.entries.len();
        match input.u8()? {
            KEYSPACE_TAG => {
                let number = input.varint()?;
                let number = u32::try_from(number).map_err(|_| input.corrupt("a key space"))?;
                let (from, current) = match self.keyspaces.last() {
                    Some((from, current)) => (Some(*from), *current),
                    None => (None, KeyspaceId::DEFAULT),
                };
                if from == Some(place) || current == KeyspaceId(number) {
                    return Err(input.corrupt("entries of a key space"));
                }
                self.keyspaces.push((place, KeyspaceId(number)));
            }
            REPEATS_TAG if place == 0 && !self.repeats && self.keyspaces.is_empty() => {
                self.repeats = true;
            }
            GAP_TAG => self.decode_gap(input)?,
            kind => {
                let sequence = self.next_number();
                self.entries.push(decode_entry(kind, input, sequence)?);
            }
        }
        Ok(())
    }

    /// A gap lies between two entries, before the key space item of the second.
    fn decode_gap(&mut self, input: &mut Reader<'a>) -> std::result::Result<(), Corrupt> {
        let (place, numbers, next) = (self.entries.len(), input.varint()?, self.next_number().0);
        let follows_entry = self.entries.last().is_some_and(|last| last.sequence.0 + 1 == next)
            && self.keyspaces.last().is_none_or(|(from, _)| *from < place);
        if !follows_entry || numbers == 0 || numbers > NUMBER_MAX.saturating_sub(next) {
            return Err(input.corrupt("numbers that are passed over"));
        }
        self.skipped += numbers;
        Ok(())
    }

    fn next_number(&self) -> Sequence {
        Sequence(self.first.0 + self.entries.len() as u64 + self.skipped)
    }

    /// The number after those of its entries.
    pub(crate) fn next(&self) -> Sequence {
        self.entries.last().map_or(self.first, |last| Sequence(last.sequence.0 + 1))
    }

    /// Returns the value files that the entries name.
    pub(crate) fn value_files(&self) -> impl Iterator<Item = u64> {
        let refs = self.entries.iter().filter_map(|entry| entry.value_ref()?.ok());
        refs.map(|at| at.file)
    }

    /// Returns the entries, each with its key space.
    pub(crate) fn writes(&self) -> impl Iterator<Item = (KeyspaceId, &Entry<'a>)> {
        let (mut later, mut keyspace) = (self.keyspaces.iter().peekable(), KeyspaceId::DEFAULT);
        self.entries.iter().enumerate().map(move |(place, entry)| {
            while let Some((_, next)) = later.next_if(|(from, _)| *from == place) {
                keyspace = *next;
            }
            (keyspace, entry)
        })
    }
}

fn decode_entry<'a>(
    kind: u8,
    input: &mut Reader<'a>,
    sequence: Sequence,
) -> std::result::Result<Entry<'a>, Corrupt> {
    let unknown = input.corrupt("a kind of entry that is not known");
    let kind = Kind::from_number(kind).ok_or(unknown)?;
    let too_long = input.corrupt("a key or value that is too long");
    let key = input.string()?;
    let value = if kind == Kind::Delete { &[][..] } else { input.string()? };
    if key.len() > KEY_BYTES_MAX || value.len() > kind.stored_bytes_max() {
        return Err(too_long);
    }
    if kind.has_expiry() && value.len() < EXPIRY_BYTES {
        return Err(input.corrupt("an expiry that is not whole"));
    }
    if ref_in(kind, value).is_some_and(|at| at.is_err()) {
        return Err(input.corrupt("a reference to a value that cannot be"));
    }
    if kind == Kind::DeleteRange && key >= value {
        return Err(input.corrupt("a deletion of a range that cannot be"));
    }
    Ok(Entry { key, sequence, kind, value })
}

/// Encodes the entries of a group whose first number is `first`. A deletion has an empty value.
/// Requires: keys and values are within their bounds, and numbers ascend.
fn encode_writes<'e>(
    out: &mut Writer,
    first: u64,
    writes: impl Iterator<Item = NumberedWrite<'e>>,
) {
    let (mut current, mut next) = (KeyspaceId::DEFAULT, first);
    for ((keyspace, kind, key, value), number) in writes {
        if number != next {
            out.u8(GAP_TAG);
            out.varint(number - next);
        }
        next = number + 1;
        if keyspace != current {
            current = keyspace;
            out.u8(KEYSPACE_TAG);
            out.varint(u64::from(keyspace.0));
        }
        out.u8(kind as u8);
        out.string(key);
        match kind {
            Kind::Delete => assert!(value.is_empty(), "a deletion of {} bytes", value.len()),
            Kind::Put
            | Kind::DeleteRange
            | Kind::PutWithExpiry
            | Kind::Merge
            | Kind::PutApart
            | Kind::PutApartWithExpiry => out.string(value),
        }
    }
}

#[cfg(test)]
mod tests;
