//! A value that is read in parts: as long as any, in the memory of some of its chunks.
//! ```text
//! read     in order: a piece of many chunks at a time      after a seek: the chunk of the place
//!          past the system's cache, from the second piece on: the next one meanwhile
//! ```
//! Invariants: every byte that is given was checked with its chunk. Who reads a value from its
//! first byte to its last also knows that it is the one that was put. The file stays while it is
//! read.

use std::io::{Error as IoError, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;

use crate::entries::expiry::Expiry;
use crate::entries::read_value::ReadValue;
use crate::entries::value::Value;
use crate::entries::value_ref::ValueRef;
use crate::error::{Error, Result};
use crate::files::value_file::format::{CHUNK_BYTES, chunk_count};
use crate::files::value_file::pending_read::PendingRead;
use crate::files::value_file::record_reader::Ends;
use crate::files::value_file::{PIECE_BYTES, ValueFile};
use crate::storage::open_files::OpenFiles;
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;

/// A value to be read in parts, from any place: see
/// [`get_reader`](crate::Keyspace::get_reader). What was written since does not change it.
pub struct ValueReader {
    source: Source,
    len: u64,
    expiry: Option<Expiry>,
    /// The next byte that is read.
    at: u64,
}

enum Source {
    Whole(Value),
    Apart(Box<ApartReader>),
}

/// Reads the chunks of a value.
struct ApartReader {
    file: Arc<ValueFile>,
    files: Arc<OpenFiles>,
    value: ValueRef,
    ends: Ends,
    /// What was read last, and which bytes of the value these are.
    read: Option<(ReadValue, Range<u64>)>,
    /// The chunks that are read ahead, if they are.
    coming: Option<ComingChunks>,
    /// The chunks before this one were read in their order, and have this checksum.
    in_order: u64,
    checksum: u32,
}

type ComingChunks = (Range<u64>, PendingRead);

impl ValueReader {
    /// Of a value that is here.
    pub(crate) fn whole(value: Value) -> ValueReader {
        let (len, expiry) = (value.len() as u64, value.expiry());
        ValueReader { source: Source::Whole(value), len, expiry, at: 0 }
    }

    /// Of a reference, as it is stored. Requires: the version that it was found in is pinned.
    pub(crate) fn apart(tree: &OpenTree, stored: &Value) -> Result<ValueReader> {
        let value = tree.ref_of(stored)?;
        let store = &tree.table_files.values.store;
        ValueReader::of_file((store.held(value.file)?, store.files()), value, stored.expiry())
    }

    /// Of a value in a file, which the reader holds from now on.
    pub(crate) fn of_file(
        (file, files): (Arc<ValueFile>, &Arc<OpenFiles>),
        value: ValueRef,
        expiry: Option<Expiry>,
    ) -> Result<ValueReader> {
        file.check_head(files, &value)?;
        let (ends, files, len) = (file.ends(files, &value)?, Arc::clone(files), value.len);
        let (read, coming) = (None, None);
        let source =
            ApartReader { file, files, value, ends, read, coming, in_order: 0, checksum: 0 };
        Ok(ValueReader { source: Source::Apart(Box::new(source)), len, expiry, at: 0 })
    }

    /// Bytes of the value.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the value has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// From when on its key has this value no more. None: it does not expire.
    pub fn expiry(&self) -> Option<Expiry> {
        self.expiry
    }
}

impl ApartReader {
    /// The bytes from a place on, some at least. Requires: the value has that byte.
    fn bytes_at(&mut self, at: u64) -> Result<&[u8]> {
        let is_here = self.read.as_ref().is_some_and(|(_, range)| range.contains(&at));
        if !is_here {
            self.read_at(at)?;
        }
        let (read, range) = self.read.as_ref().expect("it was read");
        Ok(&read.bytes[read.range.clone()][(at - range.start) as usize..])
    }

    fn read_at(&mut self, at: u64) -> Result<()> {
        const CHUNK: u64 = CHUNK_BYTES as u64;
        self.read = None;
        let (first, all) = (at / CHUNK, chunk_count(self.value.len));
        let is_next = first == self.in_order;
        let chunks = if is_next { self.piece_from(first) } else { first..first + 1 };
        let coming = self.coming.take();
        // Who goes on behind one piece will behind others.
        if is_next && first > 0 && chunks.end < all {
            self.coming = self.ask_for(self.piece_from(chunks.end));
        }
        let (read, checksum) = self.chunks(&chunks, coming)?;
        if is_next {
            if chunks.end == all {
                self.file.check_all(&self.value, checksum)?;
            }
            (self.in_order, self.checksum) = (chunks.end, checksum);
        }
        let end = (chunks.end * CHUNK).min(self.value.len);
        self.read = Some((read, chunks.start * CHUNK..end));
        Ok(())
    }

    /// The chunks that are read at once in order.
    fn piece_from(&self, first: u64) -> Range<u64> {
        const PIECE: u64 = (PIECE_BYTES / CHUNK_BYTES) as u64;
        first..(first + PIECE).min(chunk_count(self.value.len))
    }

    fn ask_for(&self, chunks: Range<u64>) -> Option<ComingChunks> {
        let value = (&self.value, &self.ends);
        let coming = self.file.will_read_chunks(&self.files, value, &chunks)?;
        Some((chunks, coming))
    }

    /// Some chunks, and the checksum with these. What is coming is of use if it is they; if it went
    /// wrong, they are read anew.
    fn chunks(
        &self,
        chunks: &Range<u64>,
        coming: Option<ComingChunks>,
    ) -> Result<(ReadValue, u32)> {
        let (value, mut checksum) = ((&self.value, &self.ends), self.checksum);
        if let Some((_, coming)) = coming.filter(|(of, _)| of == chunks) {
            let arrived = self.file.arrived_chunks(coming, value, chunks.clone(), &mut checksum);
            if let Ok(read) = arrived {
                return Ok((read, checksum));
            }
            checksum = self.checksum;
        }
        let read = self.file.read_chunks(&self.files, value, chunks.clone(), &mut checksum)?;
        Ok((read, checksum))
    }
}

/// # Errors
/// Damage, or that the store was closed: the error of the store is within.
impl Read for ValueReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.at >= self.len || buffer.is_empty() {
            return Ok(0);
        }
        let bytes = match &mut self.source {
            Source::Whole(value) => &value[self.at as usize..],
            Source::Apart(apart) => apart.bytes_at(self.at).map_err(as_io)?,
        };
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for ValueReader {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        let before =
            || IoError::new(ErrorKind::InvalidInput, "a place before the value's first byte");
        self.at = at.ok_or_else(before)?;
        Ok(self.at)
    }
}

fn as_io(error: Error) -> IoError {
    match error {
        Error::Io { source, .. } => IoError::new(source.kind(), source),
        error if error.tells_of_damage() => IoError::new(ErrorKind::InvalidData, error),
        error => IoError::other(error),
    }
}

impl std::fmt::Debug for ValueReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ValueReader").field("len", &self.len).finish_non_exhaustive()
    }
}
