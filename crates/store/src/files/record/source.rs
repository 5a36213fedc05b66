//! Reads a file of records through a window.
//! ```text
//! file     record | record | record | ........ hole ........ | record
//!                 [ window ]                       in memory: the window, or the longest record
//! ```
//! Invariants: memory is bounded by the data in the file, not by its length. A payload is returned
//! only if its checksum matches.

use std::path::Path;

use super::{HEAD_SIZE, MAGIC, OVERLAP, head_of, read_or_zeros};
use crate::entries::checksum;
use crate::error::{Error, Result};
use crate::storage::traits::ReadAt;
use crate::sync::Arc;

/// Bytes per read.
const WINDOW_BYTES: u64 = 1 << 20;
/// A longer payload is loaded only after a first pass has confirmed its checksum.
const BELIEVED_BYTES: u64 = 16 << 20;

/// A file of records that is being read.
pub(super) struct RecordReader<'p> {
    file: Arc<dyn ReadAt>,
    path: &'p Path,
    salt: u64,
    size: u64,
    start: u64,
    window: Vec<u8>,
}

impl<'p> RecordReader<'p> {
    pub(super) fn new(file: Arc<dyn ReadAt>, path: &'p Path, salt: u64) -> Result<Self> {
        let size = file.size().map_err(Error::io(path))?;
        Ok(RecordReader { file, path, salt, size, start: 0, window: Vec::new() })
    }

    /// The file's length when it was opened.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Returns some bytes. Requires: they are within the file.
    pub(super) fn bytes(&mut self, at: u64, len: u64) -> Result<&[u8]> {
        let end = self.start + self.window.len() as u64;
        if at < self.start || at + len > end {
            self.read(at, len.max(WINDOW_BYTES).min(self.size - at))?;
        }
        let from = (at - self.start) as usize;
        Ok(&self.window[from..from + len as usize])
    }

    /// Empties the window, so that bytes are read again.
    pub(super) fn forget(&mut self) {
        self.window.clear();
    }

    fn read(&mut self, at: u64, len: u64) -> Result<()> {
        self.window.clear();
        self.window.shrink_to(WINDOW_BYTES as usize);
        let beyond = || Error::corrupt(self.path, at, "a record beyond memory");
        let len = usize::try_from(len).map_err(|_| beyond())?;
        self.window.try_reserve_exact(len).map_err(|_| beyond())?;
        self.window.resize(len, 0);
        self.start = at;
        read_or_zeros(&*self.file, self.path, at, &mut self.window)
    }

    /// Returns the payload of the record at `at`. `None`: no valid record starts there.
    pub(super) fn record(&mut self, at: u64) -> Result<Option<&[u8]>> {
        let Some((len, checksum)) = self.head(at)? else { return Ok(None) };
        let from = at + HEAD_SIZE as u64;
        if len > BELIEVED_BYTES && self.checksum(from, len)? != checksum {
            return Ok(None);
        }
        let payload = self.bytes(from, len)?;
        Ok((checksum::crc32c(payload) == checksum).then_some(payload))
    }

    /// Returns length and checksum of the payload that a valid head at `at` claims. `None`: there
    /// is none, or the file ends before the payload does.
    fn head(&mut self, at: u64) -> Result<Option<(u64, u32)>> {
        let Some(room) = self.size.checked_sub(at + HEAD_SIZE as u64) else { return Ok(None) };
        let salt = self.salt;
        let head = head_of(self.bytes(at, HEAD_SIZE as u64)?, salt, at);
        Ok(head.filter(|(len, _)| *len <= room))
    }

    /// Computes the checksum of bytes, one window at a time.
    fn checksum(&mut self, from: u64, len: u64) -> Result<u32> {
        let (mut at, end, mut checksum) = (from, from + len, 0);
        while at < end {
            let len = (end - at).min(WINDOW_BYTES);
            checksum = checksum::crc32c_append(checksum, self.bytes(at, len)?);
            at += len;
        }
        Ok(checksum)
    }

    /// Returns the offset of the first valid record from `from` on that `is_it` accepts.
    ///
    /// # Errors
    /// `Corrupt`: records overlap.
    pub(super) fn find(
        &mut self,
        from: u64,
        is_it: &mut dyn FnMut(u64, &[u8]) -> bool,
    ) -> Result<Option<u64>> {
        let (mut at, mut claimed) = (from, 0);
        while let Some(next) = self.next_magic(at)? {
            claimed += self.head(next)?.map_or(0, |(len, _)| len);
            if claimed > self.size {
                return Err(Error::corrupt(self.path, next, OVERLAP));
            }
            if self.record(next)?.is_some_and(|payload| is_it(next, payload)) {
                return Ok(Some(next));
            }
            at = next + 1;
        }
        Ok(None)
    }

    /// Returns the next offset from `from` on where a record may start.
    fn next_magic(&mut self, from: u64) -> Result<Option<u64>> {
        let mut at = from;
        while at + HEAD_SIZE as u64 <= self.size {
            let end = self.start + self.window.len() as u64;
            if at < self.start || at + HEAD_SIZE as u64 > end {
                // No record starts in a hole, which is all zeros.
                let data = self.file.data_after(at).map_err(Error::io(self.path))?;
                let Some(data) = data else { return Ok(None) };
                at = at.max(data.start);
                if at + HEAD_SIZE as u64 > self.size {
                    return Ok(None);
                }
            }
            self.bytes(at, HEAD_SIZE as u64)?;
            let rest = &self.window[(at - self.start) as usize..];
            if let Some(place) = rest.windows(MAGIC.len()).position(|bytes| bytes == MAGIC) {
                return Ok(Some(at + place as u64));
            }
            at += (rest.len() - (MAGIC.len() - 1)) as u64;
        }
        Ok(None)
    }
}

#[cfg(all(test, unix))]
mod tests;
