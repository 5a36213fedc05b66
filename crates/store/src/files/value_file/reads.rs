//! Reads values from a value file: whole or in parts, now or ahead of their use.
//! ```text
//! reference -> does the file have room for it? -> bytes of its chunks -> checked -> value
//!                                                 ^ read now, or meanwhile by a queue
//! ```
//! Invariant: bytes of a value are returned only after their checksums matched.

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
    /// Checks that a reference lies within the file and has a possible length.
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

    /// Returns where the chunks of a value end.
    pub(crate) fn ends(&self, files: &Arc<OpenFiles>, at: &ValueRef) -> Result<Ends> {
        self.check_place(at)?;
        if let Some(known) = Ends::known(at) {
            return Ok(known);
        }
        let bytes = read_span(&**self.reader(files)?, &self.path, &Ends::span(at))?;
        Ends::decode(&bytes, at).map_err(|wrong| self.wrong(wrong))
    }

    /// Reads and checks some chunks of a value. `checksum` is that of all chunks before, and is
    /// extended by these. Requires: the value has these chunks, and `ends` are its own.
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

    /// Does the same for the bytes of `span`, which may extend beyond the chunks.
    fn read_record(
        &self,
        files: &Arc<OpenFiles>,
        (at, span): (&ValueRef, Range<u64>),
        chunks: Range<u64>,
        checksum: &mut u32,
    ) -> Result<ReadValue> {
        let reader = &**self.reader(files)?;
        if at.packed_bytes.is_none() && chunks.end - chunks.start > 1 {
            // One handle for all chunks, also where too many files are open to keep it.
            let held = reader.opened().ok().flatten();
            let reader = held.as_deref().unwrap_or(reader);
            // Small direct reads would each wait for the disk.
            let is_direct = reader.raw().is_some_and(|raw| raw.align > 1);
            if !is_direct && !reader.bypasses_cache() {
                let _ = reader.will_read(span.start, span.end - span.start);
                return self.collect_chunks(reader, at, (chunks, &span), checksum);
            }
        }
        let read = read_span(reader, &self.path, &span)?;
        self.check_record(read, (at, span.start), chunks, checksum)
    }

    /// Reads plain chunks one by one, so that each is checked while it is in the processor's cache.
    /// Each lies in memory as in the value: the next one overwrites its checksum.
    fn collect_chunks(
        &self,
        reader: &dyn ReadAt,
        at: &ValueRef,
        (chunks, span): (Range<u64>, &Range<u64>),
        checksum: &mut u32,
    ) -> Result<ReadValue> {
        let failed_at = |offset| move |error| failed(&self.path, offset, error);
        let room = usize::try_from(span.end - span.start).unwrap_or(usize::MAX);
        let mut bytes = with_room(room).map_err(failed_at(span.start))?;
        let mut start = 0;
        for chunk in chunks.clone() {
            let stored = Ends::Plain.chunks(at, &(chunk..chunk + 1));
            let (here, len) = (bytes.len(), (stored.end - stored.start) as usize);
            reader.read_onto(stored.start, len, &mut bytes).map_err(failed_at(stored.start))?;
            let value = plain_chunks(&mut bytes[here..], at, (chunk, stored.start), checksum)
                .map_err(|wrong| self.wrong(wrong))?;
            bytes.truncate(here + value.end);
            if chunk == chunks.start {
                start = value.start;
            }
        }
        Ok(ReadValue { range: start..bytes.len(), bytes })
    }

    /// Checks what was read from `place` on.
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

    /// Starts reading a value ahead: by the system or, if its cache is bypassed, by a queue. Does
    /// not wait, and reports no errors.
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

    /// Starts reading some chunks of a value ahead, by a queue. `None`: the system reads ahead
    /// itself.
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

    /// As `read_chunks`, for chunks that were read ahead.
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

    /// Fails if the chunks of a value are valid, but those of another value than the reference's.
    pub(crate) fn check_all(&self, at: &ValueRef, checksum: u32) -> Result<()> {
        if checksum == at.checksum {
            return Ok(());
        }
        let what = "the value here is another one than its reference tells";
        Err(Error::corrupt(&self.path, at.offset, what))
    }

    /// Reads and checks a whole value.
    ///
    /// # Errors
    /// `ValueTooLong`: it can only be read in parts.
    pub(crate) fn read(&self, files: &Arc<OpenFiles>, at: &ValueRef) -> Result<ReadValue> {
        let (span, mut checksum) = (self.span_of(at)?, 0);
        let chunks = 0..chunk_count(at.len);
        let value = self.read_record(files, (at, span), chunks, &mut checksum)?;
        self.check_all(at, checksum)?;
        Ok(value.trimmed())
    }

    /// Returns the file range of a whole value's record.
    ///
    /// # Errors
    /// `ValueTooLong`, as for `read`. `Corrupt`: the range exceeds the file.
    pub(crate) fn span_of(&self, at: &ValueRef) -> Result<Range<u64>> {
        let len = usize::try_from(at.len).unwrap_or(usize::MAX);
        if len > VALUE_BYTES_MAX {
            return Err(Error::ValueTooLong { len, max: VALUE_BYTES_MAX });
        }
        self.check_place(at)?;
        Ok(at.offset..at.offset + record_bytes(at))
    }

    /// Checks the record of a whole value that was read.
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

    /// Reads and checks a value piece by piece.
    pub(crate) fn check(&self, files: &Arc<OpenFiles>, at: &ValueRef) -> Result<()> {
        let (ends, mut checksum) = (self.ends(files, at)?, 0);
        for chunks in pieces(at.len) {
            self.read_chunks(files, (at, &ends), chunks, &mut checksum)?;
        }
        self.check_all(at, checksum)
    }

    /// Checks that a value's record begins at its place, and that it lies within the file. Does not
    /// read the value.
    pub(crate) fn check_head(&self, files: &Arc<OpenFiles>, at: &ValueRef) -> Result<()> {
        self.check_place(at)?;
        let mut head = [0; HEAD_BYTES];
        let read = self.reader(files)?.read_at(at.offset, &mut head);
        read.map_err(|error| failed(&self.path, at.offset, error))?;
        let decoded = Head::decode(&head, (at.file, at.offset));
        let decoded = decoded.map_err(|it| Error::corrupt(&self.path, at.offset, it.what))?;
        if decoded == (Head { len: at.len, is_packed: at.packed_bytes.is_some() }) {
            return Ok(());
        }
        let what = "another value than its reference tells";
        Err(Error::corrupt(&self.path, at.offset, what))
    }
}
