//! Creates folders that survive a power cut.
//! ```text
//! create "a/b/c"   a, a/b, a/b/c           a name is durable once its parent folder is synced
//! sync             ., a, a/b
//! ```
//! Invariant: a store is created, or copied, in a folder whose name is durable.

use std::io::ErrorKind;
use std::path::Path;

use crate::error::{Error, Result};
use crate::storage::traits::Storage;

/// Creates a folder and its parents, durably.
pub(crate) fn create_folder(storage: &dyn Storage, dir: &Path) -> Result<()> {
    let is_new = |dir: &&Path| !dir.as_os_str().is_empty() && !storage.dir_exists(dir);
    let new: Vec<&Path> = dir.ancestors().take_while(is_new).collect();
    storage.create_dir(dir).map_err(Error::io(dir))?;
    for parent in new.iter().filter_map(|dir| parent_of(dir)) {
        storage.sync_dir(parent).map_err(Error::io(parent))?;
    }
    Ok(())
}

/// Creates missing folders of a path, and makes all their names durable. That includes folders
/// whose creator was killed, or failed, before it did so.
pub(crate) fn ensure_folder(storage: &dyn Storage, dir: &Path) -> Result<()> {
    create_folder(storage, dir)?;
    sync_parents(storage, dir)
}

/// Makes the names of a folder and of its parents durable. Their creator may have been killed
/// before it did so.
pub(crate) fn sync_parents(storage: &dyn Storage, dir: &Path) -> Result<()> {
    for parent in dir.ancestors().filter_map(parent_of) {
        match storage.sync_dir(parent) {
            // A process that may not read or change a folder has not just created a name in it.
            Err(error) if cannot_have_changed(&error) => {}
            synced => synced.map_err(Error::io(parent))?,
        }
    }
    Ok(())
}

fn cannot_have_changed(error: &std::io::Error) -> bool {
    use ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem | InvalidInput | Unsupported)
}

/// Returns the folder that contains this one. None: there is none.
fn parent_of(dir: &Path) -> Option<&Path> {
    let parent = dir.parent()?;
    Some(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::memory::{Fault, Memory};

    #[test]
    fn a_folder_that_was_not_made_durable_is_once_it_is_asked_for_again() {
        for after in 0.. {
            let (disk, dir) = (Memory::new(), Path::new("a/b"));
            disk.fail_at(after, Fault::Io);
            let made = ensure_folder(&disk, dir);
            let has_struck = !disk.may_fail();
            disk.mend();
            ensure_folder(&disk, dir).expect("is there");
            assert!(disk.crash_hard().dir_exists(dir), "after {after}");
            assert_eq!(made.is_err(), has_struck);
            if !has_struck {
                break;
            }
        }
    }

    #[test]
    fn folders_are_made_with_those_above_them() {
        let disk = Memory::new();
        for dir in ["new", "a/b/c", "/x/y"] {
            create_folder(&disk, Path::new(dir)).expect("makes");
            create_folder(&disk, Path::new(dir)).expect("it may be there");
            assert!(disk.dir_exists(Path::new(dir)));
        }
    }
}
