//! Direct I/O: files that are read and written past the cache of the operating system (Linux's
//! `O_DIRECT`).
//! ```text
//! read      window of whole sectors -> aligned buffer -> the wanted bytes of it
//! append    [ whole sectors, direct ........ | less than a sector ]      the rest waits in memory
//! sync      the rest is written through the cache, then fdatasync of the whole file
//! behind    [ a full chunk ]  a thread of the pool writes it while the next one fills;
//!                             at most one for each file
//! ```
//! Invariants: direct I/O moves whole sectors between aligned buffers and aligned offsets. A file
//! is as long as its synced bytes or their whole sectors, never longer: nothing is padded. The
//! bytes on disk are those that a buffered writer would write. After a failed write, in whichever
//! thread, all later writes fail.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::mpsc::{Receiver, channel};

use crate::storage::aligned::{Sectors, Window};
use crate::storage::disk::system;
use crate::storage::io_threads;
use crate::storage::read_queue::ReadBuffer;
use crate::storage::traits::{Append, RawFile, ReadAt};
use crate::sync::Arc;

/// The most bytes in one transfer.
const CHUNK_BYTES: usize = 1 << 20;

/// A file for direct I/O, and the alignment that it needs.
pub(crate) type DirectFile = (File, usize);

/// Reads whole sectors.
pub(crate) struct DirectReader {
    pub(crate) file: File,
    pub(crate) align: usize,
}

impl ReadAt for DirectReader {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn data_after(&self, from: u64) -> io::Result<Option<Range<u64>>> {
        system::data_after(&self.file, from)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut offset = offset;
        for chunk in buffer.chunks_mut(CHUNK_BYTES) {
            let window = Window::around(offset, chunk.len(), self.align)?;
            let mut sectors = Sectors::zeroed(window.len);
            read_window(&self.file, window, &mut sectors)?;
            chunk.copy_from_slice(&sectors.bytes()[window.range()]);
            offset += chunk.len() as u64;
        }
        Ok(())
    }

    /// Returns a part of the sectors that were read, without a copy.
    fn read(&self, offset: u64, len: usize) -> io::Result<ReadBuffer> {
        let window = Window::around(offset, len, self.align)?;
        let mut sectors = Sectors::if_there_is_memory(window.len)?;
        read_window(&self.file, window, &mut sectors)?;
        Ok(sectors.part(window.range()))
    }

    fn has_name(&self) -> bool {
        system::has_name(&self.file)
    }

    fn raw(&self) -> Option<RawFile<'_>> {
        Some(RawFile { fd: system::descriptor(&self.file), align: self.align })
    }
}

/// Fills the wanted part of a window. `UnexpectedEof`: the file ends too early.
fn read_window(file: &File, window: Window, sectors: &mut Sectors) -> io::Result<()> {
    let mut filled = 0;
    // A short read means the end of the file, or a partial read. In that case reading continues at
    // the last sector that was begun.
    while let Some(at) = window.rest(filled) {
        let bytes = &mut sectors.bytes_mut()[at..window.len];
        let now = match system::read_at(file, bytes, window.offset + at as u64) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => at + read?,
        };
        if now <= filled {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled = now;
    }
    Ok(())
}

/// Writes whole sectors directly, and the rest through the cache at the next sync.
pub(crate) struct DirectWriter {
    direct: Arc<File>,
    /// The same file, opened for buffered writes.
    buffered: File,
    align: usize,
    waiting: Sectors,
    waiting_len: usize,
    /// The number of bytes written directly or in flight, which is the offset of the waiting bytes.
    written: u64,
    /// The buffer that fills while a chunk is written. None: the chunk in flight uses it, or chunks
    /// are written one after the other.
    spare: Option<Sectors>,
    /// The chunk that another thread is writing.
    under_way: Option<Receiver<(Sectors, io::Result<()>)>>,
    has_failed: bool,
}

impl DirectWriter {
    /// Makes a writer of a new file, which is opened twice. `behind`: other threads write its
    /// chunks.
    pub(crate) fn new((direct, align): DirectFile, buffered: File, behind: bool) -> DirectWriter {
        DirectWriter {
            direct: Arc::new(direct),
            buffered,
            align,
            waiting: Sectors::zeroed(CHUNK_BYTES),
            waiting_len: 0,
            written: 0,
            spare: behind.then(|| Sectors::zeroed(CHUNK_BYTES)),
            under_way: None,
            has_failed: false,
        }
    }

    /// Writes a full chunk, or hands it to another thread.
    fn write_chunk(&mut self) -> io::Result<()> {
        self.wait()?;
        let Some(spare) = self.spare.take() else { return self.write_sectors() };
        let chunk = std::mem::replace(&mut self.waiting, spare);
        let (file, offset, (done, under_way)) = (Arc::clone(&self.direct), self.written, channel());
        io_threads::spawn(move || {
            let written = system::write_all_at(&file, chunk.bytes(), offset);
            // The writer was dropped, so no thread waits for the result.
            let _ = done.send((chunk, written));
        });
        self.under_way = Some(under_way);
        (self.written, self.waiting_len) = (offset + CHUNK_BYTES as u64, 0);
        Ok(())
    }

    /// Writes the whole sectors and keeps the rest.
    fn write_sectors(&mut self) -> io::Result<()> {
        let whole = self.waiting_len - self.waiting_len % self.align;
        system::write_all_at(&self.direct, &self.waiting.bytes()[..whole], self.written)?;
        self.waiting.bytes_mut().copy_within(whole..self.waiting_len, 0);
        self.written += whole as u64;
        self.waiting_len -= whole;
        Ok(())
    }

    /// Waits until the other thread has written its chunk.
    fn wait(&mut self) -> io::Result<()> {
        let Some(under_way) = self.under_way.take() else { return Ok(()) };
        let panicked = |_| io::Error::other("the thread that was to write it has panicked");
        let (chunk, written) = under_way.recv().map_err(panicked)?;
        self.spare = Some(chunk);
        written
    }

    /// Runs an operation unless an earlier one has failed: after a failure the content of the file
    /// is unknown.
    fn unless_failed(&mut self, f: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        if self.has_failed {
            return Err(io::Error::other("an earlier write has failed"));
        }
        let done = f(self);
        self.has_failed = done.is_err();
        done
    }

    fn add(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = CHUNK_BYTES - self.waiting_len;
            let (now, later) = bytes.split_at(bytes.len().min(room));
            let end = self.waiting_len + now.len();
            self.waiting.bytes_mut()[self.waiting_len..end].copy_from_slice(now);
            self.waiting_len = end;
            bytes = later;
            if self.waiting_len == CHUNK_BYTES {
                self.write_chunk()?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.wait()?;
        self.write_sectors()?;
        // These bytes also stay in memory, since later appends rewrite their sector from its start.
        let tail = &self.waiting.bytes()[..self.waiting_len];
        system::write_all_at(&self.buffered, tail, self.written)?;
        self.buffered.sync_data()
    }
}

impl Append for DirectWriter {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.unless_failed(|writer| writer.add(bytes))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.unless_failed(DirectWriter::finish)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
