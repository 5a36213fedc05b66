//! A storage that refuses all changes.
//! ```text
//! list, open, read                        passed on
//! create, rename, link, remove, sync, lock   refused, whatever rights the process has
//! ```
//! Invariant: no operation that changes a folder or a file reaches the wrapped storage.

use std::io;
use std::path::Path;

use crate::storage::io_mode::Access;
use crate::storage::traits::{Append, Folder, FolderWrapper, Storage, StorageWrapper};
use crate::sync::Arc;

/// A storage that can only be read.
pub(crate) struct ReadOnly(pub(crate) Arc<dyn Storage>);

struct ReadOnlyFolder(Arc<dyn Folder>);

fn refused<T>(what: &str) -> io::Result<T> {
    let what = format!("{what}: who follows a store changes nothing in its folder");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
}

impl StorageWrapper for ReadOnly {
    fn inner(&self) -> &dyn Storage {
        &*self.0
    }

    fn create_dir(&self, _dir: &Path) -> io::Result<()> {
        refused("making a folder")
    }

    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        Ok(Arc::new(ReadOnlyFolder(self.0.open_folder(dir)?)))
    }
}

impl FolderWrapper for ReadOnlyFolder {
    fn inner(&self) -> &dyn Folder {
        &*self.0
    }

    fn create_with(&self, _name: &str, _access: Access) -> io::Result<Box<dyn Append>> {
        refused("making a file")
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        refused("removing a file")
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        refused("renaming a file")
    }

    fn link(&self, _from: &str, _into: &dyn Folder, _to: &str) -> io::Result<()> {
        refused("giving a file a second name")
    }

    fn make_folder(&self, _name: &str) -> io::Result<Arc<dyn Folder>> {
        refused("making a folder")
    }

    fn sync(&self) -> io::Result<()> {
        refused("syncing the folder")
    }

    fn lock(&self, _name: &str) -> io::Result<Box<dyn Send + Sync>> {
        refused("locking the folder")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::memory::Memory;

    #[test]
    fn what_would_change_a_folder_is_refused_and_what_reads_it_is_not() {
        let disk = Memory::new();
        disk.put_file("db/file", &b"bytes"[..]);
        disk.put_file("other/file", &b"bytes"[..]);
        let storage: Arc<dyn Storage> = Arc::new(ReadOnly(Arc::new(disk.clone())));
        let before = disk.list("db".as_ref()).expect("lists");
        let folder = storage.open_folder("db".as_ref()).expect("opens");
        let other = disk.open_folder("other".as_ref()).expect("opens");
        let refusals = [
            storage.create_dir("new".as_ref()).is_err(),
            folder.create("new").is_err(),
            folder.create_with("new", Access::default()).is_err(),
            folder.remove("file").is_err(),
            folder.rename("file", "new").is_err(),
            folder.link("file", &*other, "new").is_err(),
            folder.make_folder("new").map(drop).is_err(),
            folder.sync().is_err(),
            folder.lock("LOCK").map(drop).is_err(),
        ];
        assert_eq!(refusals, [true; 9]);
        assert_eq!(disk.list("db".as_ref()).expect("lists"), before);
        assert!(!disk.dir_exists("new".as_ref()));
        let mut read = [0; 5];
        folder.open("file").and_then(|file| file.read_at(0, &mut read)).expect("reads");
        assert_eq!((&read, folder.list().expect("lists")), (b"bytes", before));
    }
}
