//! A disk that is never waited for.
//! ```text
//! Db -> Unsynced -> Disk      everything but sync and sync_dir
//! ```
//! Invariant: only for stores that nobody needs after a power cut. A tree of known shape takes about
//! a thousand flushes of a few keys each; with their syncs, loading would measure the disk alone.

use std::io;
use std::path::Path;
use std::sync::Arc;

use trommel::{Access, Append, Disk, Overlap, ReadAt, ReadQueue, Storage};

/// The disk, without its waits.
pub(crate) struct Unsynced;

struct UnsyncedFile(Box<dyn Append>);

impl Append for UnsyncedFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Storage for Unsynced {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        Disk.create_dir(dir)
    }

    fn dir_exists(&self, dir: &Path) -> bool {
        Disk.dir_exists(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        Disk.list(dir)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn Append>> {
        Ok(Box::new(UnsyncedFile(Disk.create(path)?)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>> {
        Disk.open(path)
    }

    fn grant(&self, beside: &Path, wanted: Access) -> Access {
        Disk.grant(beside, wanted)
    }

    fn open_with(&self, path: &Path, access: Access) -> io::Result<Arc<dyn ReadAt>> {
        Disk.open_with(path, access)
    }

    fn read_queue(&self, overlap: Overlap, depth: usize) -> Box<dyn ReadQueue> {
        Disk.read_queue(overlap, depth)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.link(from, to)
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        Disk.lock(path)
    }

    fn free_space(&self, dir: &Path) -> io::Result<u64> {
        Disk.free_space(dir)
    }
}
