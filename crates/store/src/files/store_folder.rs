//! Whether a folder is a store, and the lock on it.
//! ```text
//! MANIFEST, or a file with a number     a store, whole or not
//! LOCK, MANIFEST.new, or nothing        a store whose creation was cut short
//! anything else                         not a store
//! ```
//! Invariant: nothing changes in a folder that another store has locked.

use std::io::ErrorKind;
use std::path::Path;

use crate::error::{Error, Result};
use crate::files::manifest::{MANIFEST_NAME, MANIFEST_NEW_NAME};
use crate::files::names::{LOCK_NAME, file_number};
use crate::storage::exhausted::with_room;
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::Storage;

/// A lock on a folder. Dropping it unlocks.
pub(crate) type FolderLock = Box<dyn Send + Sync>;

/// Opens a folder that has files of a store, whole or not.
pub(crate) fn store_folder(storage: &dyn Storage, dir: &Path) -> Result<OpenFolder> {
    if !storage.dir_exists(dir) {
        return Err(Error::Missing { path: dir.to_path_buf() });
    }
    let folder = OpenFolder::open(storage, dir)?;
    let is_of_a_store = |name: &String| name == MANIFEST_NAME || file_number(name).is_some();
    let names = folder.list()?;
    let path = dir.to_path_buf();
    match names.iter().any(is_of_a_store) {
        true => Ok(folder),
        false if is_beginning(&names) => Err(Error::Missing { path }),
        false => Err(Error::NotAStore { path }),
    }
}

/// Whether a folder has only what an interrupted creation of a store leaves.
pub(crate) fn is_beginning(names: &[String]) -> bool {
    names.iter().all(|name| [LOCK_NAME, MANIFEST_NEW_NAME].contains(&name.as_str()))
}

/// The error for a folder with files of a store, but no manifest.
pub(crate) fn manifest_missing(dir: &Path, of_a_store: &str) -> Error {
    let what = format!(
        "without it nobody knows which files make up the store that {of_a_store} is of. A checkpoint that was cut short is such a \
         folder, too: make it again"
    );
    Error::FileMissing { path: dir.join(MANIFEST_NAME), what }
}

/// Locks a folder. `Locked`: another store, or another process, holds the lock.
pub(crate) fn lock_folder(folder: &OpenFolder) -> Result<FolderLock> {
    with_room(|| folder.handle().lock(LOCK_NAME)).map_err(|source| match source.kind() {
        ErrorKind::WouldBlock => Error::Locked { path: folder.path().to_path_buf() },
        // A caller that only wants to read gets this error, too.
        kind @ (ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied) => {
            let what = format!(
                "{source}. Who opens a store locks it, and so must be able to write in its folder: make that possible, or open a copy"
            );
            Error::io(folder.path_of(LOCK_NAME))(std::io::Error::new(kind, what))
        }
        _ => Error::io(folder.path_of(LOCK_NAME))(source),
    })
}
