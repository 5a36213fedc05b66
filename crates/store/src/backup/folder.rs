//! An object store in a folder: each object is a file.
//! ```text
//! put    NAME.part, synced -> NAME -> the folder, synced
//! ```
//! Invariant: a file without `.part` at the end of its name is complete. A file with it belongs to
//! the present owner, or a crash has left it. Opening the folder removes such files.

use std::io::{self, ErrorKind, Read};
use std::path::Path;

use super::names::is_object;
use super::object_store::ObjectStore;
use crate::error::{Error, Result};
use crate::files::store_folder::{FolderLock, lock_folder};
use crate::shared::environment::Environment;
use crate::storage::durable_folder::ensure_folder;
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::{Append, ReadAt};
use crate::sync::Arc;

const PART: &str = ".part";
/// Bytes that are copied at a time.
const PIECE_BYTES: usize = 1 << 20;

/// An object store in a folder. The folder is locked while this value lives. It may have other
/// files, which are not listed.
pub struct FolderObjects {
    folder: OpenFolder,
    _lock: FolderLock,
}

impl FolderObjects {
    /// Opens a folder on the system's disk. Makes it if it does not exist.
    ///
    /// # Errors
    /// `Locked`: another process has it open. `Io`: the disk refuses.
    pub fn open(dir: impl AsRef<Path>) -> Result<FolderObjects> {
        FolderObjects::open_with(dir, &Environment::default())
    }

    /// Like [`open`](FolderObjects::open), on the storage of an environment.
    ///
    /// # Errors
    /// As for [`open`](FolderObjects::open).
    pub fn open_with(dir: impl AsRef<Path>, environment: &Environment) -> Result<FolderObjects> {
        let storage = &*environment.storage;
        ensure_folder(storage, dir.as_ref())?;
        let folder = OpenFolder::open(storage, dir.as_ref())?;
        let lock = lock_folder(&folder)?;
        let objects = FolderObjects { folder, _lock: lock };
        objects.remove_parts();
        Ok(objects)
    }

    /// Removes incomplete objects that crashes have left. If this fails, they do no harm.
    fn remove_parts(&self) {
        let names = self.folder.list().unwrap_or_default();
        let is_part = |name: &&String| name.strip_suffix(PART).is_some_and(is_object);
        names.iter().filter(is_part).for_each(|name| _ = self.folder.remove(name));
    }

    fn fill(&self, out: &mut dyn Append, bytes: u64, source: &mut dyn Read) -> io::Result<()> {
        let (mut piece, mut left) = (Vec::new(), bytes);
        while left > 0 {
            piece.resize(left.min(PIECE_BYTES as u64) as usize, 0);
            source.read_exact(&mut piece)?;
            out.append(&piece)?;
            left -= piece.len() as u64;
        }
        out.sync()
    }
}

/// Converts an error of the store into that of the disk.
fn plain(error: Error) -> io::Error {
    match error {
        Error::Io { source, .. } => io::Error::new(source.kind(), source),
        other => io::Error::other(other),
    }
}

impl ObjectStore for FolderObjects {
    fn place(&self) -> String {
        self.folder.path().display().to_string()
    }

    fn put(&self, name: &str, bytes: u64, source: &mut dyn Read) -> io::Result<()> {
        let part = format!("{name}{PART}");
        let mut out = self.folder.create_anew(&part).map_err(plain)?;
        let stored = self.fill(&mut *out, bytes, source).and_then(|()| {
            drop(out);
            self.folder.rename(&part, name).map_err(plain)
        });
        if stored.is_err() {
            let _ = self.folder.remove(&part);
        }
        stored.and_then(|()| self.folder.sync().map_err(plain))
    }

    fn get(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        let file = self.folder.open_file(name).map_err(plain)?;
        Ok(Box::new(FileReader::new(file)?))
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<(String, u64)>> {
        let names = self.folder.list().map_err(plain)?;
        // Only these are opened: a subfolder, such as `lost+found`, cannot be.
        let is_listed = |name: &String| name.starts_with(prefix) && is_object(name);
        let mut all = Vec::new();
        for name in names.into_iter().filter(is_listed) {
            let bytes = self.folder.open_file(&name).map_err(plain)?.size()?;
            all.push((name, bytes));
        }
        Ok(all)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match self.folder.remove(name) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => self.folder.sync().map_err(plain),
        }
    }
}

impl std::fmt::Debug for FolderObjects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FolderObjects").field(&self.folder.path()).finish()
    }
}

/// Reads a file from start to end.
pub(super) struct FileReader {
    file: Arc<dyn ReadAt>,
    at: u64,
    len: u64,
}

impl FileReader {
    pub(super) fn new(file: Arc<dyn ReadAt>) -> io::Result<FileReader> {
        let len = file.size()?;
        Ok(FileReader { file, at: 0, len })
    }

    /// Returns the length of the file when it was opened.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Fills the buffer from this offset on.
    pub(super) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, buffer)
    }
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(usize::try_from(self.len - self.at).unwrap_or(usize::MAX));
        if count > 0 {
            self.file.read_at(self.at, &mut buffer[..count])?;
            self.at += count as u64;
        }
        Ok(count)
    }
}
