//! The log: what was written since the memtable was last flushed.
//! ```text
//! 000007.wal   header | predecessor record | record | record | ...
//! header       "TRMLWAL\0" | version u32
//! predecessor  number of the log before | how many of its bytes count
//! payload      first sequence | count | entry ...      (one group of batches, landed together)
//! entry        kind u8 | key | value                   (a deletion has no value)
//! ```
//! Invariant: entries have the sequence numbers first, first + 1, …; a group is there as a whole or
//! not at all. Numbers are varints, keys and values follow their lengths. A log is followed by
//! another only when all of it is durable or in tables, and the next one says how long it is: so a
//! log that is cut short is told from one with a torn tail, and what a failed write has left is ignored.

use std::path::{Path, PathBuf};

use trommel_filters::{Corrupt, Reader, Writer};

use crate::cursor::Cursor;
use crate::entry::{Entry, KEY_BYTES_MAX, Kind, Sequence, VALUE_BYTES_MAX};
use crate::error::{Error, Result};
use crate::layout::NUMBER_MAX;
use crate::memtable::Memtable;
use crate::record::{self, RecordWriter, Tail};
use crate::storage::Storage;
use crate::sync::Arc;

const MAGIC: [u8; 8] = *b"TRMLWAL\0";
const VERSION: u32 = 1;
pub(crate) const HEADER_SIZE: usize = MAGIC.len() + size_of::<u32>();
/// Memory that is kept between groups; what a larger one took is given back.
const PAYLOAD_KEPT_BYTES: usize = 1 << 20;

pub(crate) fn header() -> [u8; HEADER_SIZE] {
    let mut header = [0; HEADER_SIZE];
    header[..MAGIC.len()].copy_from_slice(&MAGIC);
    header[MAGIC.len()..].copy_from_slice(&VERSION.to_le_bytes());
    header
}

/// The name of the log with this file number.
pub(crate) fn wal_name(number: u64) -> String {
    format!("{number:06}.wal")
}

/// The log before this one, and how many of its bytes count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Predecessor {
    pub(crate) wal: u64,
    /// 0: nothing of it counts any more.
    pub(crate) valid_bytes: u64,
}

/// The log that is being written.
pub(crate) struct Wal {
    records: RecordWriter,
    number: u64,
    /// Where the last record ends that is surely durable.
    valid_bytes: u64,
    payload: Writer,
}

impl Wal {
    /// Makes an empty log. Its name is durable, and so is what it says of the log before it.
    pub(crate) fn create(
        storage: &dyn Storage,
        dir: &Path,
        number: u64,
        before: Predecessor,
    ) -> Result<Wal> {
        let path = dir.join(wal_name(number));
        let made = Wal::begin(storage, path.clone(), number, before)
            .and_then(|mut wal| wal.sync().map(|()| wal))
            .and_then(|wal| storage.sync_dir(dir).map_err(Error::io(dir)).map(|()| wal));
        if made.is_err() {
            // If it stays, it is an empty log; and the one before it takes no more.
            let _ = storage.remove(&path);
        }
        made
    }

    /// Makes a log with the entries of a memtable. It gets its name when all of it is durable.
    pub(crate) fn create_from(
        storage: &dyn Storage,
        dir: &Path,
        number: u64,
        before: Predecessor,
        memtable: &Arc<Memtable>,
    ) -> Result<Wal> {
        let new = dir.join(format!("{}.new", wal_name(number)));
        let mut wal = Wal::begin(storage, new.clone(), number, before)?;
        wal.copy_entries(memtable)?;
        wal.sync()?;
        let path = dir.join(wal_name(number));
        storage.rename(&new, &path).map_err(Error::io(&path))?;
        storage.sync_dir(dir).map_err(Error::io(dir))?;
        Ok(wal)
    }

    fn begin(
        storage: &dyn Storage,
        path: PathBuf,
        number: u64,
        before: Predecessor,
    ) -> Result<Wal> {
        let records = RecordWriter::create(storage, path, number, &header())?;
        let mut wal = Wal { records, number, valid_bytes: 0, payload: Writer::new() };
        wal.payload.varint(before.wal);
        wal.payload.varint(before.valid_bytes);
        wal.append_payload()?;
        Ok(wal)
    }

    /// Adds a group of batches: kind, key and value of each entry, `count` in all. After an error the
    /// log takes no more, and what it has left in the file does not count.
    pub(crate) fn append<'e>(
        &mut self,
        first: Sequence,
        count: usize,
        entries: impl Iterator<Item = (Kind, &'e [u8], &'e [u8])>,
    ) -> Result<()> {
        self.payload.clear();
        encode_batch(&mut self.payload, first, count, entries);
        self.append_payload()
    }

    fn append_payload(&mut self) -> Result<()> {
        let appended = self.records.append(self.payload.as_slice());
        if self.payload.len() > PAYLOAD_KEPT_BYTES {
            self.payload = Writer::new();
        }
        appended
    }

    /// Writes entries in the order of their sequence numbers, those that follow each other together.
    fn copy_entries(&mut self, memtable: &Arc<Memtable>) -> Result<()> {
        let mut entries = Vec::new();
        let mut cursor = memtable.cursor();
        cursor.seek_first()?;
        while let Some(entry) = cursor.entry() {
            entries.push((entry.sequence, entry.kind, entry.key.to_vec(), cursor.value()));
            cursor.next()?;
        }
        entries.sort_unstable_by_key(|(sequence, ..)| *sequence);
        for group in entries.chunk_by(|one, next| one.0.0 + 1 == next.0.0) {
            let writes = group.iter().map(|(_, kind, key, value)| (*kind, &key[..], &value[..]));
            self.append(group[0].0, group.len(), writes)?;
        }
        Ok(())
    }

    /// Makes every group so far durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.records.sync()?;
        self.valid_bytes = self.records.len();
        Ok(())
    }

    /// The log's file number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// How many of the log's bytes count, once another follows it: those that were synced. What else
    /// it has, the next log takes no entries before it is in tables.
    pub(crate) fn valid_bytes(&self) -> u64 {
        self.valid_bytes
    }
}

/// What the log says of the one before it. None: the log was torn before it could say so.
pub(crate) fn predecessor(
    storage: &dyn Storage,
    dir: &Path,
    number: u64,
) -> Result<Option<Predecessor>> {
    let mut found = None;
    read_log(storage, &dir.join(wal_name(number)), number, &mut |offset, payload, path| {
        if offset == HEADER_SIZE as u64 {
            found =
                Some(decode_predecessor(payload).map_err(|wrong| {
                    Error::corrupt(path, offset, format!("log record, {wrong}"))
                })?);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Reads every group of a log in order. `valid_bytes` is what the next log says of this one: so many
/// bytes must be there, and no more count. Without it a torn tail is normal.
pub(crate) fn replay(
    storage: &dyn Storage,
    dir: &Path,
    number: u64,
    valid_bytes: Option<u64>,
    f: &mut dyn FnMut(WalBatch<'_>) -> Result<()>,
) -> Result<()> {
    let path = dir.join(wal_name(number));
    let mut end = 0;
    read_log(storage, &path, number, &mut |offset, payload, path| {
        if valid_bytes.is_some_and(|valid| offset >= valid) {
            return Ok(());
        }
        end = offset + record::record_size(payload.len());
        if offset == HEADER_SIZE as u64 {
            return Ok(());
        }
        let batch = WalBatch::decode(payload)
            .map_err(|wrong| Error::corrupt(path, offset, format!("log record, {wrong}")))?;
        f(batch)
    })?;
    match valid_bytes {
        Some(valid) if end < valid => {
            let what = format!("the log ends here, but the next one says it has {valid} bytes");
            Err(Error::corrupt(path, end, what))
        }
        _ => Ok(()),
    }
}

type OnRecord<'f> = dyn FnMut(u64, &[u8], &Path) -> Result<()> + 'f;

fn read_log(storage: &dyn Storage, path: &Path, number: u64, f: &mut OnRecord<'_>) -> Result<Tail> {
    check_version(path, &record::read_header(storage, path, HEADER_SIZE)?)?;
    record::read_records(storage, path, number, &header(), &mut |offset, payload| {
        f(offset, payload, path)
    })
}

pub(crate) fn decode_predecessor(payload: &[u8]) -> std::result::Result<Predecessor, Corrupt> {
    let mut input = Reader::new(payload);
    let before = Predecessor { wal: input.varint()?, valid_bytes: input.varint()? };
    input.end()?;
    Ok(before)
}

/// A whole header of another version is told apart from damage; the rest is the record reader's.
fn check_version(path: &Path, found: &[u8]) -> Result<()> {
    match found.strip_prefix(&MAGIC).map(<[u8; 4]>::try_from) {
        Some(Ok(version)) => match u32::from_le_bytes(version) {
            0 | VERSION => Ok(()),
            found => Err(Error::Version { path: path.to_path_buf(), found, known: VERSION }),
        },
        _ => Ok(()),
    }
}

/// A group of batches that is read in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WalBatch<'a> {
    /// The sequence number of the first entry.
    pub(crate) first: Sequence,
    /// The entries, their sequence numbers ascending by one. Ages up, keys in any order.
    pub(crate) entries: Vec<Entry<'a>>,
}

impl<'a> WalBatch<'a> {
    /// Decodes a payload whole.
    pub(crate) fn decode(payload: &'a [u8]) -> std::result::Result<WalBatch<'a>, Corrupt> {
        let mut input = Reader::new(payload);
        let first = input.varint()?;
        let count = input.varint()?;
        // An entry takes two bytes at least: a count beyond that is a lie, and buys no memory.
        if count > input.left() as u64 / 2 || first > NUMBER_MAX {
            return Err(input.corrupt("more entries than there can be"));
        }
        let mut entries = Vec::with_capacity(count as usize);
        for sequence in first..first + count {
            entries.push(decode_entry(&mut input, Sequence(sequence))?);
        }
        input.end()?;
        Ok(WalBatch { first: Sequence(first), entries })
    }
}

fn decode_entry<'a>(
    input: &mut Reader<'a>,
    sequence: Sequence,
) -> std::result::Result<Entry<'a>, Corrupt> {
    let unknown = input.corrupt("a kind of entry that is not known");
    let kind = Kind::from_number(input.u8()?).ok_or(unknown)?;
    let too_long = input.corrupt("a key or value that is too long");
    let key = input.string()?;
    let value = if kind == Kind::Delete { &[][..] } else { input.string()? };
    if key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
        return Err(too_long);
    }
    Ok(Entry { key, sequence, kind, value })
}

/// Writes a group of batches: kind, key and value of each entry, the value of a deletion empty.
/// Requires: keys and values within their bounds.
fn encode_batch<'e>(
    out: &mut Writer,
    first: Sequence,
    count: usize,
    entries: impl Iterator<Item = (Kind, &'e [u8], &'e [u8])>,
) {
    out.varint(first.0);
    out.varint(count as u64);
    for (kind, key, value) in entries {
        out.u8(kind as u8);
        out.string(key);
        match kind {
            Kind::Delete => assert!(value.is_empty(), "a deletion of {} bytes", value.len()),
            Kind::Put | Kind::DeleteRange | Kind::PutWithExpiry => out.string(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;

    type Written<'a> = (Kind, &'a [u8], &'a [u8]);

    fn encoded(first: u64, entries: &[Written<'_>]) -> Vec<u8> {
        let mut out = Writer::new();
        encode_batch(&mut out, Sequence(first), entries.len(), entries.iter().copied());
        out.finish()
    }

    const MIXED: [Written<'_>; 4] = [
        (Kind::Put, b"key", b"value"),
        (Kind::Delete, b"", b""),
        (Kind::Put, b"key", b""),
        (Kind::DeleteRange, b"a", b"b"),
    ];

    const DIR: &str = "db";
    const NONE: Predecessor = Predecessor { wal: 0, valid_bytes: 0 };
    /// Header and predecessor record: where the first group begins.
    const GROUPS_AT: u64 = HEADER_SIZE as u64 + 16 + 2;

    type Groups = Vec<(u64, usize)>;

    fn replayed(disk: &Memory, number: u64, valid: Option<u64>) -> (Groups, Result<()>) {
        let mut groups = Vec::new();
        let result = replay(disk, Path::new(DIR), number, valid, &mut |batch| {
            groups.push((batch.first.0, batch.entries.len()));
            Ok(())
        });
        (groups, result)
    }

    fn log_path(number: u64) -> PathBuf {
        Path::new(DIR).join(wal_name(number))
    }

    fn log_of(disk: &Memory, number: u64, firsts: &[u64]) -> Wal {
        disk.create_dir(Path::new(DIR)).unwrap();
        let mut wal = Wal::create(disk, Path::new(DIR), number, NONE).unwrap();
        for &first in firsts {
            wal.append(Sequence(first), MIXED.len(), MIXED.iter().copied()).unwrap();
        }
        wal
    }

    #[test]
    fn the_bytes_are_those_of_the_format() {
        assert_eq!(header(), *b"TRMLWAL\0\x01\0\0\0");
        let expected = [
            0xac, 0x02, 4, // first sequence 300, four entries
            0, 3, b'k', b'e', b'y', 5, b'v', b'a', b'l', b'u', b'e', // put
            1, 0, // delete the empty key
            0, 3, b'k', b'e', b'y', 0, // put an empty value
            2, 1, b'a', 1, b'b', // delete [a, b)
        ];
        assert_eq!(encoded(300, &MIXED), expected);
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let bytes = encoded(300, &MIXED);
        let batch = WalBatch::decode(&bytes).unwrap();
        assert_eq!(batch.first, Sequence(300));
        let decoded: Vec<_> = batch.entries.iter().map(|e| (e.kind, e.key, e.value)).collect();
        assert_eq!(decoded, MIXED);
        let sequences: Vec<_> = batch.entries.iter().map(|entry| entry.sequence.0).collect();
        assert_eq!(sequences, [300, 301, 302, 303]);
        assert_eq!(WalBatch::decode(&encoded(5, &[])).unwrap().entries, []);
    }

    #[test]
    fn bytes_that_are_no_batch_are_errors() {
        let bytes = encoded(300, &MIXED);
        for len in 0..bytes.len() {
            assert!(WalBatch::decode(&bytes[..len]).is_err(), "cut at {len}");
        }
        assert!(WalBatch::decode(&[&bytes[..], &[0]].concat()).is_err());
        assert!(WalBatch::decode(&[0, 1, 9, 1, b'k']).is_err(), "an unknown kind");
        let mut out = Writer::new();
        out.varint(1);
        out.varint(u64::MAX);
        out.bytes(&[1, 0, 1, 0]);
        assert!(WalBatch::decode(out.as_slice()).is_err(), "a count that is a lie");
        let last = encoded(u64::MAX - 1, &MIXED[..2]);
        assert!(WalBatch::decode(&last).is_err(), "sequence numbers that overflow");
        let long = vec![0; KEY_BYTES_MAX + 1];
        assert!(WalBatch::decode(&encoded(1, &[(Kind::Delete, &long, b"")])).is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_decode_or_fail(bytes in proptest::collection::vec(0u8..8, 0..60)) {
            if let Ok(batch) = WalBatch::decode(&bytes) {
                let parts: Vec<_> =
                    batch.entries.iter().map(|e| (e.kind, e.key, e.value)).collect();
                proptest::prop_assert_eq!(encoded(batch.first.0, &parts), bytes);
            }
        }
    }

    #[test]
    fn a_log_is_replayed() {
        let disk = Memory::new();
        let mut wal = log_of(&disk, 7, &[1, 5]);
        let (groups, result) = replayed(&disk, 7, None);
        result.unwrap();
        assert_eq!(groups, [(1, 4), (5, 4)]);
        assert_eq!(wal.valid_bytes(), GROUPS_AT, "no group is durable yet");
        wal.sync().unwrap();
        assert_eq!(disk.file(log_path(7)).unwrap().len() as u64, wal.valid_bytes());
        assert_eq!(predecessor(&disk, Path::new(DIR), 7).unwrap(), Some(NONE));
    }

    #[test]
    fn a_crash_loses_a_suffix_and_never_half_a_group() {
        for seed in 0..300 {
            let disk = Memory::new();
            log_of(&disk, 7, &[1]).sync().unwrap();
            let mut wal = log_of(&disk, 8, &[]);
            if seed % 2 == 0 {
                wal.sync().unwrap();
            }
            for group in 0..5 {
                wal.append(Sequence(group * 4), MIXED.len(), MIXED.iter().copied()).unwrap();
            }
            let after = disk.crash(seed);
            assert_eq!(replayed(&after, 7, None).0.len(), 1);
            let (groups, result) = replayed(&after, 8, None);
            result.expect("a torn tail is silent");
            let expected: Groups = (0..groups.len() as u64).map(|group| (group * 4, 4)).collect();
            assert_eq!(groups, expected);
        }
    }

    #[test]
    fn a_log_that_another_follows_has_all_its_bytes_and_no_more_count() {
        let disk = Memory::new();
        log_of(&disk, 7, &[1]);
        let first_group_ends = disk.file(log_path(7)).unwrap().len() as u64;
        let mut wal = log_of(&disk, 7, &[1, 5]);
        wal.sync().unwrap();
        assert_eq!(replayed(&disk, 7, Some(first_group_ends)).0, [(1, 4)]);
        assert_eq!(replayed(&disk, 7, Some(wal.valid_bytes())).0, [(1, 4), (5, 4)]);
        disk.truncate(log_path(7), first_group_ends);
        let (_, result) = replayed(&disk, 7, Some(wal.valid_bytes()));
        assert!(matches!(result, Err(Error::Corrupt { .. })), "{result:?}");
    }

    #[test]
    fn damage_and_other_versions_are_told_apart() {
        let disk = Memory::new();
        log_of(&disk, 7, &[1, 5]);
        disk.flip_bit(log_path(7), GROUPS_AT + 20, 0);
        match replayed(&disk, 7, None).1 {
            Err(Error::Corrupt { path, offset: GROUPS_AT, .. }) => assert_eq!(path, log_path(7)),
            other => panic!("{other:?}"),
        }
        let mut bytes = disk.file(log_path(7)).unwrap();
        bytes[8] = 2;
        disk.put_file(log_path(7), bytes);
        let result = replayed(&disk, 7, None).1;
        assert!(matches!(result, Err(Error::Version { found: 2, known: 1, .. })), "{result:?}");
        disk.put_file(log_path(7), b"another kind of file".as_slice());
        assert!(matches!(replayed(&disk, 7, None).1, Err(Error::Corrupt { .. })));
        disk.put_file(log_path(7), b"TRML".as_slice());
        assert_eq!(replayed(&disk, 7, None).0, []);
        assert_eq!(predecessor(&disk, Path::new(DIR), 7).unwrap(), None);
        assert!(matches!(replayed(&disk, 9, None).1, Err(Error::Io { .. })));
    }

    #[test]
    fn a_memtable_is_written_back_in_the_order_of_writing() {
        let disk = Memory::new();
        disk.create_dir(Path::new(DIR)).unwrap();
        let memtable = Arc::new(Memtable::new(1 << 16));
        for (number, key) in [(3, "c"), (4, "a"), (9, "b"), (10, "a")] {
            memtable.insert(key.as_bytes(), Sequence(number), Kind::Put, b"v");
        }
        let before = Predecessor { wal: 6, valid_bytes: 0 };
        Wal::create_from(&disk, Path::new(DIR), 7, before, &memtable).unwrap();
        let disk = disk.crash_hard();
        assert_eq!(replayed(&disk, 7, None).0, [(3, 2), (9, 2)]);
        assert_eq!(predecessor(&disk, Path::new(DIR), 7).unwrap(), Some(before));
    }
}
