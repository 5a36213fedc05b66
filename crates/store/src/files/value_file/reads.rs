//! Reads values out of a value file: whole or in parts, at once or ahead of their use.
//! ```text
//! reference -> does the file have room for it? -> bytes of its chunks -> checked -> value
//!                                                 ^ read now, or by a queue meanwhile
//! ```
//! Invariant: bytes of a value are given out after their checksums were compared.

use std::ops::Range;

use super::format::{
    HEAD_BYTES, HEADER_BYTES, Head, chunk_count, packed_record_bytes_max, record_bytes,
};
use super::pending_read::PendingRead;
use super::record_reader::{Ends, packed_chunks, plain_chunks};
use super::{AHEAD_BYTES_MAX, ValueFile, failed, pieces, read_span};
use crate::entries::entry::VALUE_BYTES_MAX;
use crate::entries::read_value::ReadValue;
use crate::entries::value_ref::ValueRef;
use crate::error::{Error, Result};
use crate::storage::open_files::OpenFiles;
use crate::storage::read_queue::ReadBuffer;
use crate::storage::traits::{ReadAt, with_room};
use crate::sync::Arc;

impl ValueFile {
    /// Whether a reference is to what can be in it.
    pub(crate) fn check_place(&self, at: &ValueRef) -> Result<()> {
        let end = at.offset.checked_add(record_bytes(at));
        let longest = packed_record_bytes_max(at.len);
        if at.packed_bytes.is_some_and(|bytes| longest.is_none_or(|longest| bytes > longest)) {
            let what = "a packed value that is longer than any";
            return Err(Error::corrupt(&self.path, at.offset, what));
        }
        if at.offset >= HEADER_BYTES as u64 && end.is_some_and(|end| end <= self.len()) {
            return Ok(());
        }
        let what =
            format!("a value of {} bytes is to begin here, and the file ends before", at.len);
        Err(Error::corrupt(&self.path, at.offset, what))
    }

    /// Where the chunks of a value end.
    pub(crate) fn ends(&self, files: &Arc<OpenFiles>, at: &ValueRef) -> Result<Ends> {
        self.check_place(at)?;
        if let Some(known) = Ends::known(at) {
            return Ok(known);
        }
        let bytes = read_span(&**self.reader(files)?, &self.path, &Ends::span(at))?;
        Ends::decode(&bytes, at).map_err(|wrong| self.wrong(wrong))
    }

    /// Reads some chunks of a value, and checks them. `checksum`: of all chunks before, to which
    /// these are added. Requires: the value has them, and the ends are its own.
    pub(crate) fn read_chunks(
        &self,
        files: &Arc<OpenFiles>,
        (at, ends): (&ValueRef, &Ends),
        chunks: Range<u64>,
        checksum: &mut u32,
    ) -> Result<ReadValue> {
        self.check_place(at)?;
        self.read_record(files, (at, ends.chunks(at, &chunks)), chunks, checksum)
    }

    /// As above, of what lies there. It may go on behind the chunks.
    fn read_record(
        &self,
        files: &Arc<OpenFiles>,
        (at, span): (&ValueRef, Range<u64>),
        chunks: Range<u64>,
        checksum: &mut u32,
    ) -> Result<ReadValue> {
        let reader = &**self.reader(files)?;
        let are_plain = at.packed_bytes.is_none() && chunks.end - chunks.start > 1;
        if are_plain && !reader.bypasses_cache() {
            let _ = reader.will_read(span.start, span.end - span.start);
            return self.collect_chunks(reader, at, (chunks, &span), checksum);
        }
        let read = read_span(reader, &self.path, &span)?;
        self.check_record(read, (at, span.start), chunks, checksum)
    }

    /// Reads plain chunks one by one: each is checked and copied while the processor's cache has
    /// it. Read at once, a long value would go through main memory once for each of these steps.
    fn collect_chunks(
        &self,
        reader: &dyn ReadAt,
        at: &ValueRef,
        (chunks, span): (Range<u64>, &Range<u64>),
        checksum: &mut u32,
    ) -> Result<ReadValue> {
        let room = usize::try_from(span.end - span.start).unwrap_or(usize::MAX);
        let mut bytes = with_room(room).map_err(|error| failed(&self.path, span.start, error))?;
        for chunk in chunks {
            let span = Ends::Plain.chunks(at, &(chunk..chunk + 1));
            let read = read_span(reader, &self.path, &span)?;
            let value = self.check_record(read, (at, span.start), chunk..chunk + 1, checksum)?;
            bytes.extend_from_slice(value.as_slice());
        }
        Ok(ReadValue { range: 0..bytes.len(), bytes })
    }

    /// What was read from a place on, checked.
    fn check_record(
        &self,
        read: ReadBuffer,
        (at, place): (&ValueRef, u64),
        chunks: Range<u64>,
        checksum: &mut u32,
    ) -> Result<ReadValue> {
        let value = match at.packed_bytes {
            None => {
                let (mut bytes, Range { start, end }) = read.into_memory();
                plain_chunks(&mut bytes[start..end], at, (chunks.start, place), checksum)
                    .map(|it| ReadValue { range: start + it.start..start + it.end, bytes })
            }
            Some(_) => packed_chunks(&read, at, (&chunks, place), checksum)
                .map(|bytes| ReadValue { range: 0..bytes.len(), bytes }),
        };
        value.map_err(|wrong| self.wrong(wrong))
    }

    /// The value is read soon: the system begins to or, past its cache, a queue. Nobody waits for
    /// it, and no error is told.
    pub(crate) fn will_read(&self, files: &Arc<OpenFiles>, at: &ValueRef) -> Option<PendingRead> {
        self.check_place(at).ok()?;
        let (reader, len) = (self.reader(files).ok()?, record_bytes(at));
        if !reader.bypasses_cache() {
            let _ = reader.will_read(at.offset, len);
            return None;
        }
        let span = at.offset..at.offset + len;
        (at.len <= AHEAD_BYTES_MAX).then(|| PendingRead::begin(reader, &span))
    }

    /// Some chunks of a value are read soon, by a queue. None: the system reads ahead itself.
    pub(crate) fn will_read_chunks(
        &self,
        files: &Arc<OpenFiles>,
        (at, ends): (&ValueRef, &Ends),
        chunks: &Range<u64>,
    ) -> Option<PendingRead> {
        self.check_place(at).ok()?;
        let reader = self.reader(files).ok()?;
        reader.bypasses_cache().then(|| PendingRead::begin(reader, &ends.chunks(at, chunks)))
    }

    /// As `read_chunks`, of what was read ahead.
    pub(crate) fn arrived_chunks(
        &self,
        pending: PendingRead,
        (at, ends): (&ValueRef, &Ends),
        chunks: Range<u64>,
        checksum: &mut u32,
    ) -> Result<ReadValue> {
        let place = ends.chunks(at, &chunks).start;
        let read = pending.bytes().map_err(|error| failed(&self.path, place, error))?;
        self.check_record(read, (at, place), chunks, checksum)
    }

    /// An error: the chunks of a value are sound, and of another one than its reference tells.
    pub(crate) fn check_all(&self, at: &ValueRef, checksum: u32) -> Result<()> {
        if checksum == at.checksum {
            return Ok(());
        }
        let what = "the value here is another one than its reference tells";
        Err(Error::corrupt(&self.path, at.offset, what))
    }

    /// A value, whole and checked.
    ///
    /// # Errors
    /// `ValueTooLong`: it is read in parts.
    pub(crate) fn read(&self, files: &Arc<OpenFiles>, at: &ValueRef) -> Result<ReadValue> {
        let (span, mut checksum) = (self.span_of(at)?, 0);
        let chunks = 0..chunk_count(at.len);
        let value = self.read_record(files, (at, span), chunks, &mut checksum)?;
        self.check_all(at, checksum)?;
        Ok(value.trimmed())
    }

    /// Where a whole value lies.
    ///
    /// # Errors
    /// `ValueTooLong`, as above. `Corrupt`: the file has no room for it.
    pub(crate) fn span_of(&self, at: &ValueRef) -> Result<Range<u64>> {
        let len = usize::try_from(at.len).unwrap_or(usize::MAX);
        if len > VALUE_BYTES_MAX {
            return Err(Error::ValueTooLong { len, max: VALUE_BYTES_MAX });
        }
        self.check_place(at)?;
        Ok(at.offset..at.offset + record_bytes(at))
    }

    /// The value whose span was read, checked.
    pub(crate) fn value_of_bytes(
        &self,
        read: std::io::Result<ReadBuffer>,
        at: &ValueRef,
    ) -> Result<ReadValue> {
        let read = read.map_err(|error| failed(&self.path, at.offset, error))?;
        let (chunks, mut checksum) = (0..chunk_count(at.len), 0);
        let value = self.check_record(read, (at, at.offset), chunks, &mut checksum)?;
        self.check_all(at, checksum)?;
        Ok(value.trimmed())
    }

    /// Reads a value piece by piece, and checks it.
    pub(crate) fn check(&self, files: &Arc<OpenFiles>, at: &ValueRef) -> Result<()> {
        let (ends, mut checksum) = (self.ends(files, at)?, 0);
        for chunks in pieces(at.len) {
            self.read_chunks(files, (at, &ends), chunks, &mut checksum)?;
        }
        self.check_all(at, checksum)
    }

    /// Whether a value begins at its place, and the file has room for it. It is not read.
    pub(crate) fn check_head(&self, files: &Arc<OpenFiles>, at: &ValueRef) -> Result<()> {
        self.check_place(at)?;
        let mut head = [0; HEAD_BYTES];
        let read = self.reader(files)?.read_at(at.offset, &mut head);
        read.map_err(|error| failed(&self.path, at.offset, error))?;
        let told = Head::decode(&head, (at.file, at.offset));
        let told = told.map_err(|it| Error::corrupt(&self.path, at.offset, it.what))?;
        if told == (Head { len: at.len, is_packed: at.packed_bytes.is_some() }) {
            return Ok(());
        }
        let what = "another value than its reference tells";
        Err(Error::corrupt(&self.path, at.offset, what))
    }
}
