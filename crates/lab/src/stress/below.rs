//! The real disk, below a folder: for histories, which name their folders themselves.
//! ```text
//! db/000003.table  ->  /tmp/.../db/000003.table
//! ```
//! Invariant: what the disk does and says is passed on as it is.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trommel::{Append, Disk, ReadAt, Storage};

/// The real disk, each path taken as one below `root`.
pub(crate) struct Below {
    pub(crate) root: PathBuf,
}

impl Storage for Below {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        Disk.create_dir(&self.root.join(dir))
    }

    fn dir_exists(&self, dir: &Path) -> bool {
        Disk.dir_exists(&self.root.join(dir))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        Disk.list(&self.root.join(dir))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn Append>> {
        Disk.create(&self.root.join(path))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>> {
        Disk.open(&self.root.join(path))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk.remove(&self.root.join(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.rename(&self.root.join(from), &self.root.join(to))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.link(&self.root.join(from), &self.root.join(to))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        Disk.sync_dir(&self.root.join(dir))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        Disk.lock(&self.root.join(path))
    }

    fn free_space(&self, dir: &Path) -> io::Result<u64> {
        Disk.free_space(&self.root.join(dir))
    }
}
