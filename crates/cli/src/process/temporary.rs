//! The temporary folders of this process, all of which are created here.
//! ```text
//! made --> in the list --> dropped: removed, out of the list
//! a signal: all in the list are removed, and the list stays locked
//! ```
//! Invariants: an existing folder is in the list, unless it was kept. Folders are removed under the
//! list's lock. After a signal, a command that fails because of removed files waits for that lock,
//! so the signal ends the process first.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

use crate::process::failure::Failure;
use crate::process::signals::end_by_signal;

static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// How often the removal of a folder is tried while other threads may still write into it.
const TRIES: usize = 1000;

fn folders() -> MutexGuard<'static, Vec<PathBuf>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder that is removed when the value is dropped, even after an error, and when a signal ends
/// the process.
pub(crate) struct TemporaryFolder {
    /// None: the folder is kept.
    folder: Option<TempDir>,
    path: PathBuf,
}

impl TemporaryFolder {
    pub(crate) fn new() -> Result<Self, Failure> {
        let failed = |error| Failure::Data(format!("a temporary folder: {error}"));
        end_by_signal().map_err(failed)?;
        let mut folders = folders();
        let folder = tempfile::Builder::new().prefix("trommel-").tempdir().map_err(failed)?;
        let path = folder.path().to_path_buf();
        folders.push(path.clone());
        Ok(TemporaryFolder { folder: Some(folder), path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the folder, as evidence.
    pub(crate) fn keep(mut self) {
        let _ = self.folder.take().map(TempDir::keep);
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let mut folders = folders();
        drop(self.folder.take());
        folders.retain(|folder| *folder != self.path);
    }
}

/// Removes all folders. While the returned guard lives, no folder is created, and drops of folders
/// block.
pub(crate) fn remove_all() -> MutexGuard<'static, Vec<PathBuf>> {
    let folders = folders();
    for folder in folders.iter() {
        // A file created meanwhile is removed at the next try; a folder that cannot be removed
        // stays.
        let _ = (0..TRIES).any(|_| std::fs::remove_dir_all(folder).is_ok() || !folder.exists());
    }
    folders
}
