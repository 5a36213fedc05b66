//! Records in a file that only grows: the framing of the log and of the manifest.
//! ```text
//! file     header (the caller's bytes)   record   record   ...
//! record   magic u32 | len u32 | payload checksum u32 | head checksum u32 | payload
//!          \________ the head checksum covers these, the salt and the record's offset
//! ```
//! Invariant: a record is valid at its own offset, in a file of its own salt, and nowhere else; stale
//! bytes and records quoted in a payload never look like records. A bad record is damage if a valid one
//! later in the file says that it had been durable; else it is where a crash has torn the file: pages
//! behind it may have been written before its own, and do not count.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::open_folder::OpenFolder;
use crate::storage::{Append, Syncer};
use crate::sync::Arc;

#[path = "record_source.rs"]
mod source;

use source::Source;

const MAGIC: [u8; 4] = *b"tRec";
const LEN_AT: usize = MAGIC.len();
const PAYLOAD_CHECKSUM_AT: usize = LEN_AT + size_of::<u32>();
const HEAD_CHECKSUM_AT: usize = PAYLOAD_CHECKSUM_AT + size_of::<u32>();
const HEAD_SIZE: usize = HEAD_CHECKSUM_AT + size_of::<u32>();
const _: () = assert!(HEAD_SIZE == 16);

/// The most that holes of a file take in memory, where all of it is read.
const HOLES_BYTES_MAX: u64 = 64 << 20;
/// Bytes that are read at once.
const CHUNK_BYTES: u64 = 1 << 20;

/// Memory that a writer keeps between records; what a larger record took is given back.
const BUFFER_KEPT_BYTES: usize = 1 << 20;

/// Writes records, one append each.
pub(crate) struct RecordWriter {
    file: Box<dyn Append>,
    path: PathBuf,
    salt: u64,
    len: u64,
    buffer: Vec<u8>,
    /// After a failure the file's end is unknown, and so nothing more is written.
    failed: bool,
}

impl RecordWriter {
    /// Begins a file that was just made, with its header. Nothing is durable before `sync` and the folder's sync.
    pub(crate) fn begin(
        mut file: Box<dyn Append>,
        path: PathBuf,
        salt: u64,
        header: &[u8],
    ) -> Result<Self> {
        file.append(header).map_err(Error::io(&path))?;
        let len = header.len() as u64;
        Ok(RecordWriter { file, path, salt, len, buffer: Vec::new(), failed: false })
    }

    /// Adds a record. After an error the file takes no more records.
    pub(crate) fn append(&mut self, payload: &[u8]) -> Result<()> {
        let len = u32::try_from(payload.len());
        let too_long = Error::ValueTooLong { len: payload.len(), max: u32::MAX as usize };
        let head = encode_head(self.salt, self.len, len.map_err(|_| too_long)?, payload);
        self.buffer.clear();
        self.buffer.extend_from_slice(&head);
        self.buffer.extend_from_slice(payload);
        let written = self.unless_failed(|file, buffer| file.append(buffer));
        self.len += self.buffer.len() as u64;
        self.buffer.truncate(BUFFER_KEPT_BYTES);
        self.buffer.shrink_to(BUFFER_KEPT_BYTES);
        written
    }

    /// Makes every record so far durable. After an error the file takes no more records.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.unless_failed(|file, _| file.sync())
    }

    /// Syncs the file beside appends, if it can be.
    pub(crate) fn syncer(&self) -> Option<Arc<dyn Syncer>> {
        self.file.syncer()
    }

    /// Whether an operation has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file's length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    fn unless_failed(
        &mut self,
        operation: impl FnOnce(&mut dyn Append, &[u8]) -> std::io::Result<()>,
    ) -> Result<()> {
        if self.failed {
            let refused = std::io::Error::other("an earlier write to this file failed");
            return Err(Error::io(&self.path)(refused));
        }
        // A panic is a failure too.
        self.failed = true;
        let result = operation(self.file.as_mut(), &self.buffer);
        self.failed = result.is_err();
        result.map_err(Error::io(&self.path))
    }
}

fn encode_head(salt: u64, offset: u64, len: u32, payload: &[u8]) -> [u8; HEAD_SIZE] {
    let mut head = [0; HEAD_SIZE];
    head[..LEN_AT].copy_from_slice(&MAGIC);
    head[LEN_AT..PAYLOAD_CHECKSUM_AT].copy_from_slice(&len.to_le_bytes());
    let payload_checksum = crc32c::crc32c(payload).to_le_bytes();
    head[PAYLOAD_CHECKSUM_AT..HEAD_CHECKSUM_AT].copy_from_slice(&payload_checksum);
    let head_checksum = head_checksum(salt, offset, &head[..HEAD_CHECKSUM_AT]);
    head[HEAD_CHECKSUM_AT..].copy_from_slice(&head_checksum.to_le_bytes());
    head
}

fn head_checksum(salt: u64, offset: u64, head: &[u8]) -> u32 {
    let checksum = crc32c::crc32c(&salt.to_le_bytes());
    let checksum = crc32c::crc32c_append(checksum, &offset.to_le_bytes());
    crc32c::crc32c_append(checksum, head)
}

/// How a file of records ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// With a whole record.
    Clean,
    /// With bytes that a crash left behind; the whole records end at `at`.
    Torn {
        /// Where the torn bytes begin.
        at: u64,
    },
}

/// How many bytes of its file a record says were durable before it was added: by its offset and payload.
pub(crate) type DurableBefore<'d> = dyn Fn(u64, &[u8]) -> u64 + 'd;

type OnRecord<'f> = dyn FnMut(u64 /*offset*/, &[u8]) -> Result<()> + 'f;

/// Reads every record in order, of a file in which each was durable before the next was added: damage
/// before the last whole record is an error.
pub(crate) fn read_records(
    folder: &OpenFolder,
    name: &str,
    salt: u64,
    expected_header: &[u8],
    f: &mut OnRecord<'_>,
) -> Result<Tail> {
    read_records_with(folder, name, salt, expected_header, &|offset, _| offset, f)
}

/// Reads every record in order. Damage to what was durable when a later record was added is an error.
pub(crate) fn read_records_with(
    folder: &OpenFolder,
    name: &str,
    salt: u64,
    expected_header: &[u8],
    durable: &DurableBefore<'_>,
    f: &mut OnRecord<'_>,
) -> Result<Tail> {
    let (file, path) = (folder.open_file(name)?, &*folder.path_of(name));
    let mut source = Source::new(file, path, salt)?;
    let header_len = expected_header.len() as u64;
    if source.size() < header_len {
        return Ok(Tail::Torn { at: 0 });
    }
    let found = source.bytes(0, header_len)?;
    if found != expected_header {
        let found = found.to_vec();
        return wrong_header(path, &mut source, &found, expected_header, durable);
    }
    let mut at = header_len;
    while at < source.size() {
        let Some(payload) = source.record(at)? else {
            return bad_record(path, &mut source, at, durable);
        };
        f(at, payload)?;
        at += record_size(payload.len());
    }
    Ok(Tail::Clean)
}

/// The bytes of a record with a payload of this length.
pub(crate) fn record_size(payload_len: usize) -> u64 {
    (HEAD_SIZE + payload_len) as u64
}

/// The file's first bytes, at most `len`: what a caller looks at to tell versions apart.
pub(crate) fn read_header(folder: &OpenFolder, name: &str, len: usize) -> Result<Vec<u8>> {
    let (file, path) = (folder.open_file(name)?, &*folder.path_of(name));
    let size = file.size().map_err(Error::io(path))?;
    let mut bytes = vec![0; len.min(usize::try_from(size).unwrap_or(len))];
    file.read_at(0, &mut bytes).map_err(Error::io(path))?;
    Ok(bytes)
}

/// The whole file. What it has decides about memory, not how long it says it is: of a hole at its end no more than
/// `HOLES_BYTES_MAX` is given, as zeros, and holes before that may not take more together.
pub(crate) fn read_all(folder: &OpenFolder, name: &str) -> Result<Vec<u8>> {
    let (file, path) = (folder.open_file(name)?, &*folder.path_of(name));
    let size = file.size().map_err(Error::io(path))?;
    let (mut bytes, mut room) = (Vec::new(), HOLES_BYTES_MAX);
    while let Some(data) = file.data_after(bytes.len() as u64).map_err(Error::io(path))? {
        let (at, hole) = (bytes.len() as u64, data.start - bytes.len() as u64);
        let too_wide = || Error::corrupt(path, at, format!("a hole of {hole} bytes"));
        room = room.checked_sub(hole).ok_or_else(too_wide)?;
        grow(&mut bytes, data.start, path)?;
        while (bytes.len() as u64) < data.end.min(size) {
            let at = bytes.len();
            grow(&mut bytes, data.end.min(size).min(at as u64 + CHUNK_BYTES), path)?;
            file.read_at(at as u64, &mut bytes[at..]).map_err(Error::io(path))?;
        }
        if bytes.len() as u64 >= size {
            return Ok(bytes);
        }
    }
    let end = size.min(bytes.len() as u64 + room);
    grow(&mut bytes, end, path)?;
    Ok(bytes)
}

/// Adds zeros up to a length. An error: there is no memory for that.
fn grow(bytes: &mut Vec<u8>, len: u64, path: &Path) -> Result<()> {
    let at = bytes.len();
    let beyond = || Error::corrupt(path, at as u64, "a file beyond memory");
    let len = usize::try_from(len).map_err(|_| beyond())?;
    bytes.try_reserve(len.saturating_sub(at)).map_err(|_| beyond())?;
    bytes.resize(len.max(at), 0);
    Ok(())
}

/// What lies in a file of records.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stretch<'a> {
    /// A valid record.
    Record { offset: u64, payload: &'a [u8] },
    /// No valid record starts here or later before `end`, which is one's start, or the file's end.
    Gap { offset: u64, end: u64 },
}

/// Finds every valid record behind the header, and what lies between. A gap at the file's end may be a torn tail.
pub(crate) fn scan_records<'a>(
    bytes: &'a [u8],
    header_len: usize,
    salt: u64,
    f: &mut dyn FnMut(Stretch<'a>),
) {
    let mut at = header_len;
    while at < bytes.len() {
        let offset = at as u64;
        if let Some(payload) = record_at(bytes, at, salt) {
            f(Stretch::Record { offset, payload });
            at += HEAD_SIZE + payload.len();
            continue;
        }
        let next = next_record(bytes, at + 1, salt).unwrap_or(bytes.len());
        f(Stretch::Gap { offset, end: next as u64 });
        at = next;
    }
}

/// Where the first valid record from `from` on starts.
fn next_record(bytes: &[u8], from: usize, salt: u64) -> Option<usize> {
    (from..bytes.len()).find(|&at| record_at(bytes, at, salt).is_some())
}

/// A crash may leave the start of a header, and zeros in place of the rest of it and of what follows.
fn wrong_header(
    path: &Path,
    source: &mut Source<'_>,
    found: &[u8],
    expected: &[u8],
    durable: &DurableBefore<'_>,
) -> Result<Tail> {
    let right = found.iter().zip(expected).take_while(|(found, wanted)| found == wanted).count();
    let is_lost = found[right..].iter().all(|&byte| byte == 0);
    if is_lost && source.record(expected.len() as u64)?.is_none() {
        return bad_record(path, source, right as u64, durable).map(|_| Tail::Torn { at: 0 });
    }
    Err(Error::corrupt(path, right as u64, "the header of another kind of file"))
}

fn bad_record(
    path: &Path,
    source: &mut Source<'_>,
    at: u64,
    durable: &DurableBefore<'_>,
) -> Result<Tail> {
    match source.find(at + 1, &mut |later, payload| durable(later, payload) > at)? {
        None => Ok(Tail::Torn { at }),
        Some(later) => {
            let what = format!("no valid record here, but one at byte {later}");
            Err(Error::corrupt(path, at, what))
        }
    }
}

/// The payload of the record that starts at `at`. None: no valid record starts there.
fn record_at(bytes: &[u8], at: usize, salt: u64) -> Option<&[u8]> {
    let (len, checksum) = head_of(&bytes[at..], salt, at as u64)?;
    let end = HEAD_SIZE.checked_add(usize::try_from(len).ok()?)?;
    let payload = bytes[at..].get(HEAD_SIZE..end)?;
    (crc32c::crc32c(payload) == checksum).then_some(payload)
}

/// The length and the checksum of the payload of a record that starts at `at`, with these bytes. None: no valid head starts there.
fn head_of(bytes: &[u8], salt: u64, at: u64) -> Option<(u64, u32)> {
    if !bytes.starts_with(&MAGIC) || bytes.len() < HEAD_SIZE {
        return None;
    }
    let word = |place: usize| {
        let word = bytes[place..place + 4].try_into().expect("four bytes of a whole head");
        u32::from_le_bytes(word)
    };
    let is_valid = head_checksum(salt, at, &bytes[..HEAD_CHECKSUM_AT]) == word(HEAD_CHECKSUM_AT);
    is_valid.then(|| (u64::from(word(LEN_AT)), word(PAYLOAD_CHECKSUM_AT)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Fault, Memory};
    use crate::storage::Storage;

    const HEADER: &[u8] = b"HEADv1\0\0";
    const SALT: u64 = 7;

    type Read = (Vec<(u64, Vec<u8>)>, Result<Tail>);

    fn read(disk: &Memory, salt: u64) -> Read {
        let mut records = Vec::new();
        let tail =
            read_records(&OpenFolder::on(disk, "db"), "log", salt, HEADER, &mut |at, payload| {
                records.push((at, payload.to_vec()));
                Ok(())
            });
        (records, tail)
    }

    fn write(disk: &Memory, payloads: &[&[u8]]) -> RecordWriter {
        disk.create_dir(Path::new("db")).unwrap();
        let file = OpenFolder::on(disk, "db").create("log").unwrap();
        let mut writer = RecordWriter::begin(file, "db/log".into(), SALT, HEADER).unwrap();
        payloads.iter().for_each(|payload| writer.append(payload).unwrap());
        assert_eq!(writer.len(), disk.file("db/log").unwrap().len() as u64);
        writer
    }

    fn payloads((records, _): &Read) -> Vec<&[u8]> {
        records.iter().map(|(_, payload)| payload.as_slice()).collect()
    }

    /// Three records: at 8 (21 bytes), 29 (16 bytes) and 45 (22 bytes).
    const THREE: [&[u8]; 3] = [b"first", b"", b"second"];
    const STARTS: [usize; 4] = [8, 29, 45, 67];

    #[test]
    fn the_bytes_are_those_of_the_format() {
        let disk = Memory::new();
        write(&disk, &[b"first"]);
        let expected: &[u8] = &[
            b'H', b'E', b'A', b'D', b'v', b'1', 0, 0, // the header
            b't', b'R', b'e', b'c', 5, 0, 0, 0, // magic, length
            GOLDEN[0], GOLDEN[1], GOLDEN[2], GOLDEN[3], // checksum of the payload
            GOLDEN[4], GOLDEN[5], GOLDEN[6], GOLDEN[7], // checksum of the head
            b'f', b'i', b'r', b's', b't',
        ];
        assert_eq!(disk.file("db/log").unwrap(), expected);
    }

    const GOLDEN: [u8; 8] = [80, 161, 62, 138, 138, 54, 196, 246];

    #[test]
    fn records_come_back_in_order_with_their_places() {
        let disk = Memory::new();
        write(&disk, &THREE);
        let (records, tail) = read(&disk, SALT);
        assert_eq!(tail.unwrap(), Tail::Clean);
        let starts: Vec<_> = records.iter().map(|(at, _)| *at as usize).collect();
        assert_eq!(starts, STARTS[..3]);
        assert_eq!(payloads(&read(&disk, SALT)), THREE);
    }

    #[test]
    fn every_cut_is_a_torn_tail() {
        let disk = Memory::new();
        write(&disk, &THREE);
        let whole = disk.file("db/log").unwrap();
        for len in 0..whole.len() {
            disk.put_file("db/log", &whole[..len]);
            let result = read(&disk, SALT);
            let kept = STARTS[1..].iter().filter(|&&end| end <= len).count();
            assert_eq!(payloads(&result), THREE[..kept], "cut at {len}");
            let clean = STARTS.contains(&len);
            let at = if len < HEADER.len() { 0 } else { STARTS[kept] as u64 };
            let expected = if clean { Tail::Clean } else { Tail::Torn { at } };
            assert_eq!(result.1.unwrap(), expected, "cut at {len}");
        }
    }

    #[test]
    fn zeros_and_rubbish_at_the_end_are_a_torn_tail() {
        let disk = Memory::new();
        write(&disk, &THREE);
        let whole = disk.file("db/log").unwrap();
        for cut in 0..=whole.len() {
            for fill in [&[0u8; 50][..], &[0xa5; 50], b"RectRectRectRectRectRectRectRectR"] {
                if fill[0] != 0 && cut < HEADER.len() {
                    continue;
                }
                disk.put_file("db/log", [&whole[..cut], fill].concat());
                let (records, tail) = read(&disk, SALT);
                let kept = STARTS[1..].iter().filter(|&&end| end <= cut).count();
                assert_eq!(records.len(), kept, "cut at {cut}");
                assert!(matches!(tail.unwrap(), Tail::Torn { .. }), "cut at {cut}");
            }
        }
    }

    #[test]
    fn every_flipped_bit_before_the_last_record_is_damage() {
        let disk = Memory::new();
        write(&disk, &THREE);
        let whole = disk.file("db/log").unwrap();
        for at in 0..whole.len() {
            for bit in 0..8 {
                disk.put_file("db/log", whole.as_slice());
                disk.flip_bit("db/log", at as u64, bit);
                let (records, tail) = read(&disk, SALT);
                let kept = STARTS[1..].iter().filter(|&&end| end <= at).count();
                if at >= STARTS[2] {
                    assert_eq!((records.len(), tail.unwrap()), (2, Tail::Torn { at: 45 }));
                    continue;
                }
                let start = if at < HEADER.len() { at } else { STARTS[kept] };
                match tail {
                    Err(Error::Corrupt { path, offset, .. }) => {
                        assert_eq!((path.as_path(), offset), (Path::new("db/log"), start as u64));
                    }
                    other => panic!("bit {bit} of byte {at}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn what_was_never_durable_may_have_holes() {
        let disk = Memory::new();
        write(&disk, &THREE);
        let whole = disk.file("db/log").unwrap();
        let read_with = |hole: std::ops::Range<usize>, durable: u64| {
            let mut bytes = whole.clone();
            bytes[hole].fill(0);
            disk.put_file("db/log", bytes);
            let (folder, says) = (OpenFolder::on(&disk, "db"), |_: u64, _: &[u8]| durable);
            read_records_with(&folder, "log", SALT, HEADER, &says, &mut |_, _| Ok(()))
        };
        assert_eq!(read_with(30..40, 29).unwrap(), Tail::Torn { at: 29 });
        assert!(read_with(30..40, 30).is_err(), "a part of the bad record was durable");
        assert_eq!(read_with(0..40, 0).unwrap(), Tail::Torn { at: 0 });
        assert!(read_with(0..40, 1).is_err(), "a part of the header was durable");
        assert!(read_with(0..8, 0).is_err(), "the record behind the header is there");
    }

    #[test]
    fn a_record_of_another_file_or_place_is_none() {
        let disk = Memory::new();
        write(&disk, &THREE);
        assert_eq!(read(&disk, SALT + 1).1.unwrap(), Tail::Torn { at: 8 });
        let whole = disk.file("db/log").unwrap();
        // The quoted record is no sign of damage, neither torn nor in the middle.
        let quoting = Memory::new();
        write(&quoting, &[b"x", &whole[8..], b"y"]);
        assert_eq!(read(&quoting, SALT).1.unwrap(), Tail::Clean);
        let len = quoting.file("db/log").unwrap().len() as u64 - 1;
        quoting.truncate("db/log", len);
        let (records, tail) = read(&quoting, SALT);
        assert_eq!(records.len(), 2);
        assert!(matches!(tail.unwrap(), Tail::Torn { .. }));
    }

    #[test]
    fn after_a_failed_write_nothing_is_written() {
        let disk = Memory::new();
        let mut writer = write(&disk, &THREE);
        disk.fail_at(0, Fault::NoSpace);
        assert!(matches!(writer.append(b"lost"), Err(Error::Io { .. })));
        let len = disk.file("db/log").unwrap().len();
        assert!(writer.append(b"refused").is_err() && writer.sync().is_err());
        assert_eq!(disk.file("db/log").unwrap().len(), len);
        assert_eq!(payloads(&read(&disk, SALT)), THREE);
    }

    #[test]
    fn the_reader_stops_when_the_caller_does() {
        let disk = Memory::new();
        write(&disk, &THREE);
        let folder = OpenFolder::on(&disk, "db");
        let refuse = &mut |at, _: &[u8]| Err(Error::corrupt("db/log", at, "refused"));
        let result = read_records(&folder, "log", SALT, HEADER, refuse);
        assert!(matches!(result, Err(Error::Corrupt { offset: 8, .. })));
        assert_eq!(read_header(&folder, "log", 4).unwrap(), b"HEAD");
        assert_eq!(read_header(&folder, "log", 1000).unwrap().len(), 67);
    }
}
