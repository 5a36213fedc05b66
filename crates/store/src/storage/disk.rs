//! The real disk: files of the operating system.
//! ```text
//! append   write at the end       sync       fdatasync; of a folder, fsync
//! read_at  pread                  lock       flock, until dropped
//! ```
//! Invariants: only this file and `disk_*.rs` name `std::fs`. Nothing is buffered here: when an
//! append returns, the kernel has the bytes.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::storage::disk_folder::DiskFolder;
use crate::storage::{Append, Folder, RawFile, ReadAt, Storage, Syncer};
use crate::sync::Arc;

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

    fn syncer(&self) -> Option<Arc<dyn Syncer>> {
        Some(Arc::<File>::clone(&self.0))
    }
}

/// Syncs a file that another thread appends to. Both share one open file: so the kernel reports a
/// disk error to one of them.
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
        data_after(&self.0, from)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }

    fn raw(&self) -> Option<RawFile<'_>> {
        Some(RawFile { fd: self.0.as_fd(), align: 1 })
    }
}

/// The first range of data in a file from `from` on.
pub(crate) fn data_after(file: &File, from: u64) -> io::Result<Option<Range<u64>>> {
    let end = file.metadata()?.len();
    let start = match seek(file, SeekFrom::Data(from)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        // The file system does not support holes.
        Err(Errno::INVAL) => from,
        Err(error) => return Err(error.into()),
    };
    let end = seek(file, SeekFrom::Hole(start)).map_or(end, |hole| hole.min(end));
    Ok((start < end).then_some(start..end))
}

#[cfg(test)]
mod tests;
