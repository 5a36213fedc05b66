//! Records in an append-only file: the framing of the log and of the manifest.
//! ```text
//! file     header (the caller's bytes)   record   record   ...
//! record   magic u32 | len u32 | payload checksum u32 | head checksum u32 | payload
//!          \________ the head checksum covers these, the salt and the record's offset
//! ```
//! Invariant: a record is valid only at its own offset in a file with its own salt. So neither
//! stale bytes nor records quoted in a payload look like records.
//!
//! An invalid record is damage if a later valid record says that it had been durable. Otherwise a
//! crash has torn the file there. Records behind the tear do not count, since a crash may keep
//! later pages and lose earlier ones.

use std::path::{Path, PathBuf};

use trommel_filters::{Corrupt, Reader, Writer};

use crate::entries::checksum;
use crate::error::{Error, Result};
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::{Append, ReadAt, Syncer};
use crate::sync::Arc;

mod source;

use source::RecordReader;

const MAGIC: [u8; 4] = *b"tRec";
const LEN_AT: usize = MAGIC.len();
const PAYLOAD_CHECKSUM_AT: usize = LEN_AT + size_of::<u32>();
const HEAD_CHECKSUM_AT: usize = PAYLOAD_CHECKSUM_AT + size_of::<u32>();
pub(crate) const HEAD_SIZE: usize = HEAD_CHECKSUM_AT + size_of::<u32>();
const _: () = assert!(HEAD_SIZE == 16);

/// What is wrong where heads claim more bytes than there are. No writer makes such records, and to
/// check each of them would take the square of the file's length.
const OVERLAP: &str = "records that overlap";

/// Maximum memory for the holes of a file that is read whole.
const HOLES_BYTES_MAX: u64 = 64 << 20;
/// Bytes per read.
const CHUNK_BYTES: u64 = 1 << 20;

/// Bytes of memory that a writer keeps between records. The rest is freed.
const RECORD_KEPT_BYTES: usize = 1 << 20;

/// Writes records, each with one append.
pub(crate) struct RecordWriter {
    file: Box<dyn Append>,
    path: PathBuf,
    salt: u64,
    len: u64,
    /// The record that is being made, or was made last: head and payload.
    record: Writer,
    /// Set after a failure: the end of the file is unknown, so nothing more is written.
    failed: bool,
}

impl RecordWriter {
    /// Begins a new file with its header. Nothing is durable before `sync` and a sync of the
    /// folder.
    pub(crate) fn begin(
        mut file: Box<dyn Append>,
        path: PathBuf,
        salt: u64,
        header: &[u8],
    ) -> Result<Self> {
        file.append(header).map_err(Error::io(&path))?;
        Ok(RecordWriter::go_on((file, header.len() as u64), path, salt))
    }

    /// Continues a file of `len` bytes. Requires: it ends behind a record or behind the header.
    pub(crate) fn go_on((file, len): (Box<dyn Append>, u64), path: PathBuf, salt: u64) -> Self {
        RecordWriter { file, path, salt, len, record: Writer::new(), failed: false }
    }

    /// Appends a record. After an error the file takes no more records.
    pub(crate) fn append(&mut self, payload: &[u8]) -> Result<()> {
        self.begin_record().bytes(payload);
        self.end_record()
    }

    /// Begins a record. Returns the buffer to which its payload is written.
    pub(crate) fn begin_record(&mut self) -> &mut Writer {
        self.record.clear();
        self.record.bytes(&[0; HEAD_SIZE]);
        &mut self.record
    }

    /// Appends the record that was begun. After an error the file takes no more records.
    pub(crate) fn end_record(&mut self) -> Result<()> {
        let (head, payload) = self.record.as_mut_slice().split_at_mut(HEAD_SIZE);
        let too_long = |_| Error::ValueTooLong { len: payload.len(), max: u32::MAX as usize };
        let len = u32::try_from(payload.len()).map_err(too_long)?;
        head.copy_from_slice(&encode_head(self.salt, self.len, len, payload));
        let written = self.unless_failed(|file, record| file.append(record));
        self.len += self.record.len() as u64;
        if self.record.len() > RECORD_KEPT_BYTES {
            self.record = Writer::new();
        }
        written
    }

    /// Makes all records so far durable. After an error the file takes no more records.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.unless_failed(|file, _| file.sync())
    }

    /// Returns a handle that syncs the file during appends, if the storage has one.
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
        // Set first, so that a panic counts as a failure too.
        self.failed = true;
        let result = operation(self.file.as_mut(), self.record.as_slice());
        self.failed = result.is_err();
        result.map_err(Error::io(&self.path))
    }
}

fn encode_head(salt: u64, offset: u64, len: u32, payload: &[u8]) -> [u8; HEAD_SIZE] {
    let mut head = [0; HEAD_SIZE];
    head[..LEN_AT].copy_from_slice(&MAGIC);
    head[LEN_AT..PAYLOAD_CHECKSUM_AT].copy_from_slice(&len.to_le_bytes());
    let payload_checksum = checksum::crc32c(payload).to_le_bytes();
    head[PAYLOAD_CHECKSUM_AT..HEAD_CHECKSUM_AT].copy_from_slice(&payload_checksum);
    let (checked, _) = head.split_first_chunk().expect("it is longer");
    let head_checksum = head_checksum(salt, offset, checked);
    head[HEAD_CHECKSUM_AT..].copy_from_slice(&head_checksum.to_le_bytes());
    head
}

fn head_checksum(salt: u64, offset: u64, head: &[u8; HEAD_CHECKSUM_AT]) -> u32 {
    let mut all = [0; 2 * size_of::<u64>() + HEAD_CHECKSUM_AT];
    let (place, of_head) = all.split_at_mut(2 * size_of::<u64>());
    place[..size_of::<u64>()].copy_from_slice(&salt.to_le_bytes());
    place[size_of::<u64>()..].copy_from_slice(&offset.to_le_bytes());
    of_head.copy_from_slice(head);
    checksum::crc32c(&all)
}

/// Returns, from a record's offset and payload, how many bytes of the file were durable before it
/// was appended.
pub(crate) type DurableBefore<'d> = dyn Fn(u64, &[u8]) -> u64 + 'd;

type OnRecord<'f> = dyn FnMut(u64 /*offset*/, &[u8]) -> Result<()> + 'f;

/// For files whose records were each durable before the next: all bytes before a record were.
pub(crate) fn all_before(offset: u64, _payload: &[u8]) -> u64 {
    offset
}

/// Reads every record in order. Fails if bytes are damaged that were durable when a later record
/// was appended. Returns the end of the valid records: the end of the file, unless a crash left
/// something behind them. Returns 0 if not even the header is whole.
pub(crate) fn read_records(
    folder: &OpenFolder,
    name: &str,
    salt: u64,
    expected_header: &[u8],
    durable: &DurableBefore<'_>,
    f: &mut OnRecord<'_>,
) -> Result<u64> {
    let (file, path) = (folder.open_file(name)?, &*folder.path_of(name));
    let mut source = RecordReader::new(file, path, salt)?;
    let header_len = expected_header.len() as u64;
    if source.size() < header_len {
        return Ok(0);
    }
    if source.bytes(0, header_len)? != expected_header {
        // The writer may have completed the header since it was read.
        source.forget();
        let found = source.bytes(0, header_len)?.to_vec();
        if found != expected_header {
            return wrong_header(path, &mut source, &found, expected_header, durable);
        }
    }
    let (mut at, mut looked_twice_at) = (header_len, None);
    while at < source.size() {
        if let Some(payload) = source.record(at)? {
            f(at, payload)?;
            at += record_size(payload.len());
            continue;
        }
        let Some(later) = proven_after(&mut source, at, durable)? else { return Ok(at) };
        if looked_twice_at == Some(at) {
            return Err(no_record(path, at, later));
        }
        // The writer may have completed the record since it was read.
        source.forget();
        looked_twice_at = Some(at);
    }
    Ok(at)
}

/// Reads records of a file by their offsets.
pub(crate) struct Records<'p>(RecordReader<'p>);

impl<'p> Records<'p> {
    /// Opens a file with its present length.
    pub(crate) fn of(file: Arc<dyn ReadAt>, path: &'p Path, salt: u64) -> Result<Self> {
        RecordReader::new(file, path, salt).map(Records)
    }

    /// Returns the payload of the record at an offset. `None`: no valid record begins there.
    pub(crate) fn at(&mut self, offset: u64) -> Result<Option<&[u8]>> {
        self.0.record(offset)
    }
}

/// The size in bytes of a record with a payload of this length.
pub(crate) fn record_size(payload_len: usize) -> u64 {
    (HEAD_SIZE + payload_len) as u64
}

/// Returns the version in a header: `magic`, then a u32. `None`: the header is another or
/// incomplete.
pub(crate) fn version_in(header: &[u8], magic: &[u8]) -> Option<u32> {
    let (version, _) = header.strip_prefix(magic)?.split_first_chunk()?;
    Some(u32::from_le_bytes(*version))
}

/// Reads the first bytes of a file, at most `len`, from which a caller can determine its version.
pub(crate) fn read_header(file: &dyn ReadAt, path: &Path, len: usize) -> Result<Vec<u8>> {
    let size = file.size().map_err(Error::io(path))?;
    let mut bytes = vec![0; len.min(usize::try_from(size).unwrap_or(len))];
    read_or_zeros(file, path, 0, &mut bytes)?;
    Ok(bytes)
}

/// Fills a buffer of zeros from a file that had all of these bytes. If the file is shorter by now,
/// its writer has cut off zeros, so the rest stays zero.
fn read_or_zeros(file: &dyn ReadAt, path: &Path, at: u64, zeros: &mut [u8]) -> Result<()> {
    let mut read = file.read_at(at, zeros);
    while read.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::UnexpectedEof) {
        let left = file.size().map_err(Error::io(path))?.saturating_sub(at);
        let len = usize::try_from(left).unwrap_or(usize::MAX);
        if len >= zeros.len() {
            break;
        }
        zeros.fill(0);
        read = file.read_at(at, &mut zeros[..len]);
        if read.is_ok() {
            return Ok(());
        }
    }
    read.map_err(Error::io(path))
}

/// Reads the whole file into memory that its data determines, not its length. A hole at its end
/// yields at most `HOLES_BYTES_MAX` zeros. Earlier holes together must not exceed that either.
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
            read_or_zeros(&*file, path, at as u64, &mut bytes[at..])?;
        }
        if bytes.len() as u64 >= size {
            return Ok(bytes);
        }
    }
    let end = size.min(bytes.len() as u64 + room);
    grow(&mut bytes, end, path)?;
    Ok(bytes)
}

/// Appends zeros up to a length. Fails if memory is short.
fn grow(bytes: &mut Vec<u8>, len: u64, path: &Path) -> Result<()> {
    let at = bytes.len();
    let beyond = || Error::corrupt(path, at as u64, "a file beyond memory");
    let len = usize::try_from(len).map_err(|_| beyond())?;
    bytes.try_reserve(len.saturating_sub(at)).map_err(|_| beyond())?;
    bytes.resize(len.max(at), 0);
    Ok(())
}

/// Returns the offset of the first valid record from `from` on. `room`: how many bytes the
/// payloads may have that are still to be checked, of a file as many as it has. Returns an error
/// if they have more, so that records overlap.
pub(crate) fn next_record(
    bytes: &[u8],
    from: usize,
    salt: u64,
    room: &mut usize,
) -> std::result::Result<Option<usize>, Corrupt> {
    for at in from..bytes.len() {
        let Some((payload, checksum)) = claimed_at(bytes, at, salt) else { continue };
        let overlap = Corrupt { at, what: OVERLAP };
        *room = room.checked_sub(payload.len()).ok_or(overlap)?;
        if checksum::crc32c(payload) == checksum {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Returns 0 if a crash left this header: a correct start, then zeros, also in place of what
/// follows. Otherwise fails.
fn wrong_header(
    path: &Path,
    source: &mut RecordReader<'_>,
    found: &[u8],
    expected: &[u8],
    durable: &DurableBefore<'_>,
) -> Result<u64> {
    let right = found.iter().zip(expected).take_while(|(found, wanted)| found == wanted).count();
    let is_lost = found[right..].iter().all(|&byte| byte == 0);
    let right = right as u64;
    if is_lost && source.record(expected.len() as u64)?.is_none() {
        return match proven_after(source, right, durable)? {
            None => Ok(0),
            Some(later) => Err(no_record(path, right, later)),
        };
    }
    Err(Error::corrupt(path, right, "the header of another kind of file"))
}

/// Returns the offset of a record that proves the bytes at `at` durable. `None`: there is none.
fn proven_after(
    source: &mut RecordReader<'_>,
    at: u64,
    durable: &DurableBefore<'_>,
) -> Result<Option<u64>> {
    source.find(at + 1, &mut |later, payload| durable(later, payload) > at)
}

fn no_record(path: &Path, at: u64, later: u64) -> Error {
    Error::corrupt(path, at, format!("no valid record here, but one at byte {later}"))
}

/// Returns the payload of the record at `at`. `None`: no valid record starts there.
pub(crate) fn record_at(bytes: &[u8], at: usize, salt: u64) -> Option<&[u8]> {
    let (payload, checksum) = claimed_at(bytes, at, salt)?;
    (checksum::crc32c(payload) == checksum).then_some(payload)
}

/// Returns the bytes that a valid head at `at` claims as its payload, and the checksum that they
/// should have. `None`: there is no such head, or there are fewer bytes.
fn claimed_at(bytes: &[u8], at: usize, salt: u64) -> Option<(&[u8], u32)> {
    let (len, checksum) = head_of(&bytes[at..], salt, at as u64)?;
    let end = HEAD_SIZE.checked_add(usize::try_from(len).ok()?)?;
    Some((bytes[at..].get(HEAD_SIZE..end)?, checksum))
}

/// Returns length and checksum of the payload of a record that starts at `at` with these bytes.
/// `None`: no valid head starts there.
fn head_of(bytes: &[u8], salt: u64, at: u64) -> Option<(u64, u32)> {
    let mut head = Reader::new(bytes.strip_prefix(&MAGIC)?);
    let mut word = || head.u32().ok();
    let (len, payload_checksum, checksum) = (word()?, word()?, word()?);
    let is_valid = head_checksum(salt, at, bytes.first_chunk()?) == checksum;
    is_valid.then_some((u64::from(len), payload_checksum))
}

#[cfg(test)]
mod tests;
