//! The real disk below a folder, for histories that name their own folders.
//! ```text
//! db/000003.table  ->  /tmp/.../db/000003.table
//! ```
//! Invariant: calls and results of the disk are passed on unchanged.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trommel::storage::{Disk, Folder, Storage};

/// The real disk; each path is relative to `root`.
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

    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        Disk.open_folder(&self.root.join(dir))
    }
}
