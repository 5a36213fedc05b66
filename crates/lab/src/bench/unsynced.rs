//! A disk whose syncs return at once.
//! ```text
//! Db -> Unsynced -> Disk      everything but syncs
//! ```
//! Invariant: it serves only stores that need not survive a power cut. A tree of known shape takes
//! about a thousand flushes of a few keys each. With syncs, loading would measure the disk alone.

use std::io;
use std::path::Path;
use std::sync::Arc;

use trommel::Environment;
use trommel::storage::{Access, Append, Disk, Folder, FolderWrapper, Storage, StorageWrapper};

/// Returns the environment of a store: with syncs, or without.
pub(crate) fn environment(synced: bool) -> Environment {
    let environment = Environment::new();
    if synced { environment } else { environment.storage(Arc::new(Unsynced)) }
}

/// The disk without syncs.
struct Unsynced;

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

impl StorageWrapper for Unsynced {
    fn inner(&self) -> &dyn Storage {
        &Disk
    }

    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        Ok(Arc::new(UnsyncedFolder(Disk.open_folder(dir)?)))
    }
}

impl FolderWrapper for UnsyncedFolder {
    fn inner(&self) -> &dyn Folder {
        &*self.0
    }

    // Writes may use the page cache, even if direct I/O is asked for: they are not measured.
    fn create_with(&self, name: &str, access: Access) -> io::Result<Box<dyn Append>> {
        let access = Access { direct: false, ..access };
        Ok(Box::new(UnsyncedFile(self.0.create_with(name, access)?)))
    }

    fn make_folder(&self, name: &str) -> io::Result<Arc<dyn Folder>> {
        Ok(Arc::new(UnsyncedFolder(self.0.make_folder(name)?)))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
