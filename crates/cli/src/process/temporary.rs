//! Temporary folders of this process: all of them are made here.
//! ```text
//! made --> in the list --> dropped: removed, out of the list
//! a signal: all in the list are removed, and the list stays locked
//! ```
//! Invariants: an existing folder is in the list, unless it was kept. Folders are removed under the
//! list's lock. After a signal, a command that fails for its removed files waits for that lock, so
//! the process ends by the signal.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

use crate::process::failure::Failure;
use crate::process::signals::end_by_signal;

static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// How often the removal of a folder is tried into which other threads may still write.
const TRIES: usize = 1000;

fn folders() -> MutexGuard<'static, Vec<PathBuf>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder that is removed when the value is dropped, after an error too, and when a signal ends
/// the process.
pub(crate) struct TemporaryFolder {
    /// None: it is kept.
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

    /// Leaves the folder where it is, as evidence.
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

/// Removes all folders. While the returned guard lives, no folder is made, and no drop of one ends.
pub(crate) fn remove_all() -> MutexGuard<'static, Vec<PathBuf>> {
    let folders = folders();
    for folder in folders.iter() {
        // A file that was made in it meanwhile is removed the next time; a folder that cannot be
        // removed stays.
        let _ = (0..TRIES).any(|_| std::fs::remove_dir_all(folder).is_ok() || !folder.exists());
    }
    folders
}
