//! A disk whose syncs are never waited for.
//! ```text
//! Db -> Unsynced -> Disk      everything but syncs
//! ```
//! Invariant: only for stores that nobody needs after a power cut. A tree of known shape takes
//! about a thousand flushes of a few keys each; with their syncs, loading would measure the disk
//! alone.

use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::Arc;

use trommel::{Access, Append, Disk, Folder, Overlap, ReadAt, ReadQueue, Storage};

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

struct UnsyncedFolder(Arc<dyn Folder>);

impl Storage for Unsynced {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        Disk.create_dir(dir)
    }

    fn dir_exists(&self, dir: &Path) -> bool {
        Disk.dir_exists(dir)
    }

    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        Ok(Arc::new(UnsyncedFolder(Disk.open_folder(dir)?)))
    }
}

impl Folder for UnsyncedFolder {
    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Append>> {
        Ok(Box::new(UnsyncedFile(self.0.create(name)?)))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn ReadAt>> {
        self.0.open(name)
    }

    fn grant(&self, beside: &str, wanted: Access) -> Access {
        self.0.grant(beside, wanted)
    }

    fn open_with(&self, name: &str, access: Access) -> io::Result<Arc<dyn ReadAt>> {
        self.0.open_with(name, access)
    }

    fn read_queue(&self, overlap: Overlap, depth: usize) -> Box<dyn ReadQueue> {
        self.0.read_queue(overlap, depth)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn link(&self, from: &str, into: &dyn Folder, to: &str) -> io::Result<()> {
        self.0.link(from, into, to)
    }

    fn make_folder(&self, name: &str) -> io::Result<Arc<dyn Folder>> {
        Ok(Arc::new(UnsyncedFolder(self.0.make_folder(name)?)))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>> {
        self.0.lock(name)
    }

    fn free_space(&self) -> io::Result<u64> {
        self.0.free_space()
    }

    fn as_any(&self) -> &dyn Any {
        self.0.as_any()
    }
}
