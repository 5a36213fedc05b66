//! An open folder, with the path by which it was opened.
//! ```text
//! handle   all operations use this
//! path     all errors name this
//! ```
//! Invariants: the path is only for messages: once the folder is open, nothing is opened by its
//! path. A closed store opens, creates and removes nothing, and neither does a forked child. If
//! descriptors run out, idle table files are closed.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::storage::exhausted::with_room;
use crate::storage::io_mode::Access;
use crate::storage::life::Life;
use crate::storage::traits::{Append, Folder, ReadAt, Storage};
use crate::sync::Arc;

/// An open folder. A clone is another handle of it.
#[derive(Clone)]
pub(crate) struct OpenFolder {
    handle: Arc<dyn Folder>,
    path: PathBuf,
    life: Arc<Life>,
}

impl OpenFolder {
    pub(crate) fn open(storage: &dyn Storage, path: &Path) -> Result<OpenFolder> {
        let handle = with_room(|| storage.open_folder(path)).map_err(Error::io(path))?;
        Ok(OpenFolder { handle, path: path.to_path_buf(), life: Arc::new(Life::new(path)) })
    }

    /// Returns the path by which it was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the state that says whether its files may be touched.
    pub(crate) fn life(&self) -> &Arc<Life> {
        &self.life
    }

    /// Returns the path of a file in it, for errors.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn handle(&self) -> &dyn Folder {
        &*self.handle
    }

    pub(crate) fn list(&self) -> Result<Vec<String>> {
        with_room(|| self.handle.list()).map_err(Error::io(&self.path))
    }

    pub(crate) fn create(&self, name: &str) -> Result<Box<dyn Append>> {
        self.create_with(name, Access::default())
    }

    pub(crate) fn create_with(&self, name: &str, access: Access) -> Result<Box<dyn Append>> {
        self.life.check_files()?;
        with_room(|| self.handle.create_with(name, access)).map_err(self.of(name))
    }

    /// Creates a file that gets its real name when it is complete. It replaces an incomplete file
    /// of the same name. Requires: only this store creates files of that name, one at a time.
    pub(crate) fn create_anew(&self, name: &str) -> Result<Box<dyn Append>> {
        self.create_anew_with(name, Access::default())
    }

    /// Like `create_anew`, with this access.
    pub(crate) fn create_anew_with(&self, name: &str, access: Access) -> Result<Box<dyn Append>> {
        match self.create_with(name, access) {
            Err(error) if error.is_name_taken() => {
                // Fails if it is no file: then this store did not create it.
                self.open_file(name)?;
                self.handle.remove(name).map_err(self.of(name))?;
                self.create_with(name, access)
            }
            created => created,
        }
    }

    pub(crate) fn open_file(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        self.life.check_files()?;
        with_room(|| self.handle.open(name)).map_err(self.of(name))
    }

    /// Opens a table, perhaps again. The returned error may contain an error of the store.
    pub(crate) fn open_with(&self, name: &str, access: Access) -> io::Result<Arc<dyn ReadAt>> {
        self.life.check_files().map_err(io::Error::other)?;
        with_room(|| self.handle.open_with(name, access))
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.life.check_files()?;
        self.handle.rename(from, to).map_err(self.of(to))
    }

    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        self.life.check_files().map_err(io::Error::other)?;
        self.handle.remove(name)
    }

    pub(crate) fn sync(&self) -> Result<()> {
        self.handle.sync().map_err(Error::io(&self.path))
    }

    /// Opens a folder in this one, and creates it if it does not exist.
    pub(crate) fn make_folder(&self, name: &str) -> Result<OpenFolder> {
        self.life.check_files()?;
        let handle = with_room(|| self.handle.make_folder(name)).map_err(self.of(name))?;
        Ok(OpenFolder { handle, path: self.path_of(name), life: Arc::clone(&self.life) })
    }

    #[cfg(test)]
    pub(crate) fn on(disk: &crate::storage::memory::Memory, path: impl AsRef<Path>) -> OpenFolder {
        OpenFolder::open(disk, path.as_ref()).expect("the folder is there")
    }

    fn of(&self, name: &str) -> impl FnOnce(io::Error) -> Error {
        Error::io(self.path_of(name))
    }
}
