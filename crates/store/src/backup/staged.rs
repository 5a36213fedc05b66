//! A storage for an incomplete store, which only its maker can open.
//! ```text
//! the maker asks for   MANIFEST           folder, log and tables keep their names
//! the folder has       MANIFEST.part      publish renames it to MANIFEST, last of all
//! ```
//! Invariant: until the store is published, the folder has no MANIFEST, so it is refused as no
//! store.

use std::io;
use std::path::Path;

use crate::error::Result;
use crate::files::manifest::MANIFEST_NAME;
use crate::files::store_folder::lock_folder;
use crate::storage::io_mode::Access;
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::{Append, Folder, FolderWrapper, ReadAt, Storage, StorageWrapper};
use crate::sync::Arc;

/// The manifest's name until the store is published.
const PART_NAME: &str = "MANIFEST.part";

/// A storage that gives manifests another name.
pub(super) struct Staged(pub(super) Arc<dyn Storage>);

struct StagedFolder(Arc<dyn Folder>);

/// Returns the name in the folder of a file that the maker asks for.
fn staged(name: &str) -> &str {
    if name == MANIFEST_NAME { PART_NAME } else { name }
}

/// Gives the manifest its name. Requires: the store is closed, and everything in it is durable.
pub(super) fn publish(storage: &dyn Storage, dir: &Path) -> Result<()> {
    let folder = OpenFolder::open(storage, dir)?;
    let _lock = lock_folder(&folder)?;
    folder.rename(PART_NAME, MANIFEST_NAME)?;
    folder.sync()
}

impl StorageWrapper for Staged {
    fn inner(&self) -> &dyn Storage {
        &*self.0
    }

    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        Ok(Arc::new(StagedFolder(self.0.open_folder(dir)?)))
    }
}

impl FolderWrapper for StagedFolder {
    fn inner(&self) -> &dyn Folder {
        &*self.0
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let shown = |name: String| match name == PART_NAME {
            true => MANIFEST_NAME.to_string(),
            false => name,
        };
        let mut names: Vec<String> = self.0.list()?.into_iter().map(shown).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn grant(&self, beside: &str, wanted: Access) -> Access {
        self.0.grant(staged(beside), wanted)
    }

    fn create_with(&self, name: &str, access: Access) -> io::Result<Box<dyn Append>> {
        self.0.create_with(staged(name), access)
    }

    fn open_with(&self, name: &str, access: Access) -> io::Result<Arc<dyn ReadAt>> {
        self.0.open_with(staged(name), access)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(staged(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(staged(from), staged(to))
    }

    fn link(&self, from: &str, into: &dyn Folder, to: &str) -> io::Result<()> {
        self.0.link(staged(from), into, staged(to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::memory::Memory;

    #[test]
    fn a_manifest_is_its_makers_alone_until_it_is_published() {
        let disk = Memory::new();
        disk.put_file("db/000001.wal", &b"log"[..]);
        let storage: Arc<dyn Storage> = Arc::new(Staged(Arc::new(disk.clone())));
        let folder = storage.open_folder("db".as_ref()).expect("opens");
        drop(folder.create("MANIFEST.new").expect("creates"));
        folder.rename("MANIFEST.new", MANIFEST_NAME).expect("renames");
        folder.open(MANIFEST_NAME).map(drop).expect("it is there for its maker");
        assert_eq!(folder.list().expect("lists"), ["000001.wal", MANIFEST_NAME]);
        let names = || disk.list("db".as_ref()).expect("lists");
        assert_eq!(names(), ["000001.wal", PART_NAME]);
        publish(&disk, "db".as_ref()).expect("renames");
        assert_eq!(names(), ["000001.wal", "LOCK", MANIFEST_NAME]);
    }
}
