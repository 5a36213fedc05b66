//! The one door to the disk.
//! ```text
//! Db -> Storage -> Disk     the real one
//!               -> Memory   knows what was synced; crashes, fails and damages on request
//! ```
//! Invariant: nothing else in the store names `std::fs`.

use crate::access::{Access, Overlap};
use crate::read_queue::{ReadBuffer, ReadQueue, one_by_one};
use crate::sync::Arc;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// A place where files live.
pub trait Storage: Send + Sync {
    /// Makes a folder and its parents; no error if it is there.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Whether the folder is there.
    fn dir_exists(&self, dir: &Path) -> bool;
    /// The names of the files and folders in a folder, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Makes a file that is written from the start; one of that name is emptied.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Append>>;
    /// Opens a file for reading.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>>;
    /// What of `wanted` files beside this one can have. Nothing, if the storage does not say. Writes nothing. Requires: the file
    /// is there.
    fn grant(&self, _beside: &Path, _wanted: Access) -> Access {
        Access::default()
    }
    /// As [`create`](Storage::create), with an access that was granted. A file that cannot have it has the ordinary one.
    fn create_with(&self, path: &Path, _access: Access) -> io::Result<Box<dyn Append>> {
        self.create(path)
    }
    /// As [`open`](Storage::open), with an access that was granted. A file that cannot have it has the ordinary one.
    fn open_with(&self, path: &Path, _access: Access) -> io::Result<Arc<dyn ReadAt>> {
        self.open(path)
    }
    /// A queue for reads of files that are open, of which about `depth` are under way at once, with a way of doing so that was
    /// granted.
    fn read_queue(&self, _overlap: Overlap, _depth: usize) -> Box<dyn ReadQueue> {
        one_by_one()
    }
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Gives a file another name, replacing what had it. Durable after `sync_dir`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals in a folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Takes a file as a lock until the value is dropped. `WouldBlock`: someone else has it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>>;
    /// Bytes that can still be written below a folder.
    fn free_space(&self, dir: &Path) -> io::Result<u64>;
}

/// A file that grows at its end.
pub trait Append: Send {
    /// Adds bytes at the end; readers may see them only when they are synced. After an error the file's end is unknown: write no
    /// more to it.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes all that was appended durable.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file that is read anywhere, by many threads at once.
pub trait ReadAt: Send + Sync {
    /// Its length in bytes.
    fn size(&self) -> io::Result<u64>;
    /// Fills `buffer` from `offset` on. `UnexpectedEof` if the file ends before.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
    /// Bytes from `offset` on, in memory of the file's choice. Errors are those of `read_at`.
    fn read(&self, offset: u64, len: usize) -> io::Result<ReadBuffer> {
        let mut bytes = vec![0; len];
        self.read_at(offset, &mut bytes)?;
        Ok(bytes.into())
    }
    /// A queue for what is read before it is needed. Where reads of the file gain nothing by that, they are done when they are
    /// collected.
    fn reads_ahead(&self) -> Box<dyn ReadQueue> {
        one_by_one()
    }
    /// Several reads at once: submitted together, collected together. After an error it is unknown which buffers are filled.
    fn read_many(&self, reads: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        reads.iter_mut().try_for_each(|(offset, buffer)| self.read_at(*offset, buffer))
    }
    /// How the operating system knows the file. None: it does not, and `read_at` is the only way.
    fn raw(&self) -> Option<RawFile<'_>> {
        None
    }
}

/// A file as the operating system knows it.
#[derive(Clone, Copy, Debug)]
pub struct RawFile<'f> {
    /// Open as long as the file is.
    pub fd: BorrowedFd<'f>,
    /// What offsets, lengths and memory must be multiples of. 1: anything will do.
    pub align: usize,
}
