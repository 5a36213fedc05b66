//! The real disk: files of the operating system.
//! ```text
//! append   write at the end       sync       fdatasync; of a folder, fsync
//! read_at  pread                  lock       flock, until dropped
//! ```
//! Invariant: this file and `disk_*.rs` alone name `std::fs`. Nothing is buffered here: what an
//! append was given is in the kernel when it returns.

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

/// Files of the operating system.
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
        Some(Arc::new(DiskSyncer(Arc::clone(&self.0))))
    }
}

/// A file that someone else appends to: the same open file, so that an error of the disk is told to
/// one of both.
struct DiskSyncer(Arc<File>);

impl Syncer for DiskSyncer {
    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// A file that is read.
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

/// The first stretch of a file from `from` on that is no hole.
pub(crate) fn data_after(file: &File, from: u64) -> io::Result<Option<Range<u64>>> {
    let end = file.metadata()?.len();
    let start = match seek(file, SeekFrom::Data(from)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        // A file system that knows nothing of holes.
        Err(Errno::INVAL) => from,
        Err(error) => return Err(error.into()),
    };
    let end = seek(file, SeekFrom::Hole(start)).map_or(end, |hole| hole.min(end));
    Ok((start < end).then_some(start..end))
}

#[cfg(test)]
mod tests;
