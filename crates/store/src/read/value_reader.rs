//! A reader of a value of any length, which holds only some of its chunks in memory.
//! ```text
//! read     in order: a piece of many chunks at a time      after a seek: only the chunk there
//!          bypassing the page cache, from the second piece on: reads the next piece ahead
//! ```
//! Invariants: every byte that is returned was verified with its chunk. Reading a value from its
//! first byte to its last also verifies the checksum of the whole. The file is kept while it is
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

/// A reader of a value, from any position: see [`get_reader`](crate::Keyspace::get_reader). Later
/// writes do not change what it reads.
pub struct ValueReader {
    source: Source,
    len: u64,
    expiry: Option<Expiry>,
    /// The offset of the next byte to read.
    at: u64,
}

enum Source {
    Whole(Value),
    Apart(Box<ApartReader>),
}

/// Reads the chunks of a value stored apart.
struct ApartReader {
    file: Arc<ValueFile>,
    files: Arc<OpenFiles>,
    value: ValueRef,
    ends: Ends,
    /// What was read last, and its range of bytes within the value.
    read: Option<(ReadValue, Range<u64>)>,
    /// The chunks that are being read ahead.
    coming: Option<ComingChunks>,
    /// The chunks before this one were read in order, and have this checksum.
    in_order: u64,
    checksum: u32,
}

type ComingChunks = (Range<u64>, PendingRead);

impl ValueReader {
    /// Returns a reader of a value in memory.
    pub(crate) fn whole(value: Value) -> ValueReader {
        let (len, expiry) = (value.len() as u64, value.expiry());
        ValueReader { source: Source::Whole(value), len, expiry, at: 0 }
    }

    /// Returns a reader for a stored reference. Requires: the version in which it was found is
    /// pinned.
    pub(crate) fn apart(tree: &OpenTree, stored: &Value) -> Result<ValueReader> {
        let value = tree.ref_of(stored)?;
        let store = &tree.table_files.values.store;
        ValueReader::of_file((store.held(value.file)?, store.files()), value, stored.expiry())
    }

    /// Returns a reader of a value in a file. The reader holds the file.
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

    /// Returns the length of the value, in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the value is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns when the value expires. None: never.
    pub fn expiry(&self) -> Option<Expiry> {
        self.expiry
    }
}

impl ApartReader {
    /// Returns bytes from an offset on, at least one. Requires: the offset lies within the value.
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
        // A caller that reads a second piece in order will likely read the next one.
        if is_next && first > 0 && chunks.end < all {
            self.coming = self.request(self.piece_from(chunks.end));
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

    /// Returns the chunks that are read together when reading in order.
    fn piece_from(&self, first: u64) -> Range<u64> {
        const PIECE: u64 = (PIECE_BYTES / CHUNK_BYTES) as u64;
        first..(first + PIECE).min(chunk_count(self.value.len))
    }

    fn request(&self, chunks: Range<u64>) -> Option<ComingChunks> {
        let value = (&self.value, &self.ends);
        let coming = self.file.will_read_chunks(&self.files, value, &chunks)?;
        Some((chunks, coming))
    }

    /// Reads chunks, and returns the checksum that includes them. Uses the read-ahead if it has
    /// these chunks; if that failed, reads them again.
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
/// Damage, or that the store was closed. The I/O error contains the store's error.
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
