//! The real disk: files of the operating system.
//! ```text
//! Disk, DiskFolder ---> system: unix.rs      Linux, macOS      openat, pread, flock, fsync
//! DiskReader, ...               windows.rs   Windows           paths, seek_read, LockFileEx
//!                               linux.rs     Linux alone       O_DIRECT
//! ```
//! Invariants: only this file, those below it and `disk_*.rs` name `std::fs`. Nothing is buffered
//! here: when an append returns, the kernel has the bytes. All systems have the same small
//! interface, and write the same bytes to disk.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::Path;

use crate::storage::disk_folder::DiskFolder;
#[cfg(unix)]
use crate::storage::disk_spare;
#[cfg(unix)]
use crate::storage::read_queue::ReadBuffer;
use crate::storage::traits::{Append, Folder, RawFile, ReadAt, Storage, Syncer};
use crate::sync::Arc;

#[cfg(target_os = "linux")]
pub(crate) mod linux;
#[cfg(unix)]
pub(crate) mod unix;
#[cfg(windows)]
pub(crate) mod windows;

#[cfg(unix)]
pub(crate) use unix as system;
#[cfg(windows)]
pub(crate) use windows as system;

/// The files of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Storage for Disk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
    }

    fn dir_exists(&self, dir: &Path) -> bool {
        dir.is_dir()
    }

    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        Ok(Arc::new(DiskFolder::open_path(dir)?))
    }
}

/// A file that grows at its end.
pub(crate) struct DiskAppender(pub(crate) Arc<File>);

impl Append for DiskAppender {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        (&*self.0).write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    /// Does nothing, since the kernel has the bytes.
    fn publish(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn syncer(&self) -> Option<Arc<dyn Syncer>> {
        Some(Arc::<File>::clone(&self.0))
    }
}

/// Syncs a file that another thread appends to. Both threads share one open file, so the kernel
/// reports a disk error to one of them.
impl Syncer for File {
    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// A file for reading.
pub(crate) struct DiskReader(pub(crate) File);

impl ReadAt for DiskReader {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn data_after(&self, from: u64) -> io::Result<Option<Range<u64>>> {
        system::data_after(&self.0, from)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        system::read_exact_at(&self.0, buffer, offset)
    }

    /// Reads into uninitialized memory: zeroing it would cost as much as the read.
    #[cfg(unix)]
    fn read(&self, offset: u64, len: usize) -> io::Result<ReadBuffer> {
        #[cfg(target_os = "linux")]
        linux::begin_long_read(&self.0, offset, len);
        system::read_to_vec(&self.0, offset, len).map(ReadBuffer::from)
    }

    #[cfg(unix)]
    fn read_onto(&self, offset: u64, len: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        disk_spare::read_onto(&self.0, offset, len, bytes)
    }

    #[cfg(target_os = "linux")]
    fn will_read(&self, offset: u64, len: u64) -> io::Result<()> {
        linux::will_read(&self.0, offset, len)
    }

    fn has_name(&self) -> bool {
        system::has_name(&self.0)
    }

    fn raw(&self) -> Option<RawFile<'_>> {
        Some(RawFile { fd: system::descriptor(&self.0), align: 1 })
    }
}

#[cfg(test)]
mod tests;
