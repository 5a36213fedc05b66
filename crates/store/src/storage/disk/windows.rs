//! Files on Windows, reached by the whole path of their folder, which nobody can move meanwhile.
//! ```text
//! folder   an open handle that denies deletion: the folder can be neither renamed nor removed
//! path     \\?\C:\...  resolved once, without links: no name in it has a second meaning
//! open     a reparse point is opened itself, and refused
//! lock     LockFileEx, on a file whose deletion is denied: it keeps its name
//! sync     FlushFileBuffers; for folders, too, through a handle with write access
//! ```
//! Invariants: no call here leaves the folder. A file can be renamed and removed while it is open.
//! Requires: names were checked.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::windows::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::os::windows::io::{AsHandle, BorrowedHandle};
use std::path::{Path, PathBuf};

use crate::storage::traits::not_regular;

const FILE_SHARE_READ: u32 = 1;
const FILE_SHARE_WRITE: u32 = 2;
const FILE_WRITE_DATA: u32 = 2;
const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
const FILE_ATTRIBUTE_REPARSE_POINT: u32 = 0x400;

/// The most handles of a process, according to the Windows documentation.
const HANDLES_MAX: u64 = 1 << 24;

pub(crate) fn descriptor(file: &File) -> BorrowedHandle<'_> {
    file.as_handle()
}

/// Also moves the file's own position, which nothing here uses for files that are read.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(buffer, offset)
}

/// Always yes: on Windows, an open file without a name is not cheap to recognize.
pub(crate) fn has_name(_file: &File) -> bool {
    true
}

pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.seek_read(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(now) => filled += now,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut written = 0;
    while written < bytes.len() {
        match file.seek_write(&bytes[written..], offset + written as u64) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(now) => written += now,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the first range of data in a file from `from` on. Files have no holes unless a program
/// requests them, so everything is data.
pub(crate) fn data_after(file: &File, from: u64) -> io::Result<Option<Range<u64>>> {
    let end = file.metadata()?.len();
    Ok((from < end).then_some(from..end))
}

/// Returns how many files this process may have open.
pub(crate) fn open_files_max() -> u64 {
    HANDLES_MAX
}

/// An open folder.
pub(crate) struct Dir {
    path: PathBuf,
    /// Keeps anyone from moving the folder.
    _pinned: File,
}

impl Dir {
    /// Opens a folder by its path. Links in the path are followed: here the caller says which
    /// folder is meant.
    pub(crate) fn open_path(dir: &Path) -> io::Result<Dir> {
        Dir::pin(fs::canonicalize(dir)?)
    }

    /// Opens a folder, but not a link to one.
    fn pin(path: PathBuf) -> io::Result<Dir> {
        let pinned = File::options()
            .read(true)
            .share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE)
            .custom_flags(FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT)
            .open(&path)?;
        let found = pinned.metadata()?;
        if is_link(&found) || !found.is_dir() {
            return Err(ErrorKind::NotADirectory.into());
        }
        Ok(Dir { path, _pinned: pinned })
    }

    /// Opens a file that exists, for reading.
    pub(crate) fn open(&self, name: &str) -> io::Result<File> {
        self.open_regular(name, File::options().read(true))
    }

    /// Creates a file. `AlreadyExists`: the name is taken.
    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        self.open_regular(name, File::options().write(true).create_new(true))
    }

    /// None: direct I/O is impossible.
    pub(crate) fn open_direct(&self, _: &str, _: bool) -> io::Result<Option<(File, usize)>> {
        Ok(None)
    }

    fn open_regular(&self, name: &str, options: &mut OpenOptions) -> io::Result<File> {
        let path = self.path.join(name);
        let opened = options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).open(&path);
        // The system reports a folder as a lack of permission.
        let refused = |error: io::Error| match fs::symlink_metadata(&path) {
            Ok(found) if error.kind() == ErrorKind::PermissionDenied => {
                require_regular(&found).err().unwrap_or(error)
            }
            _ => error,
        };
        let file = opened.map_err(refused)?;
        require_regular(&file.metadata()?)?;
        Ok(file)
    }

    /// Returns the names of the files and folders in it.
    pub(crate) fn list(&self) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(&self.path)?;
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    /// Gives a regular file a second name.
    pub(crate) fn link(&self, from: &str, into: &Dir, to: &str) -> io::Result<()> {
        let from = self.path.join(from);
        require_regular(&fs::symlink_metadata(&from)?)?;
        fs::hard_link(from, into.path.join(to))
    }

    /// Opens a folder in this one, and creates it if it does not exist.
    pub(crate) fn make_dir(&self, name: &str) -> io::Result<Dir> {
        let path = self.path.join(name);
        match fs::create_dir(&path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Dir::pin(path),
        }
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        let mut options = File::options();
        options.access_mode(FILE_WRITE_DATA).custom_flags(FILE_FLAG_BACKUP_SEMANTICS);
        options.open(&self.path)?.sync_all()
    }

    /// Locks a file, which is created if it does not exist. `WouldBlock`: another holder has it.
    pub(crate) fn lock(&self, name: &str) -> io::Result<Held> {
        let mut options = File::options();
        options.write(true).create(true).truncate(false);
        let file =
            self.open_regular(name, options.share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE))?;
        file.try_lock()?;
        Ok(Held(file))
    }

    /// Returns the number of bytes that can still be written in it.
    pub(crate) fn free_space(&self) -> io::Result<u64> {
        fs4::available_space(&self.path)
    }
}

fn is_link(found: &Metadata) -> bool {
    found.file_attributes() & FILE_ATTRIBUTE_REPARSE_POINT != 0
}

/// Fails unless it is a regular file. The error says what it is.
fn require_regular(found: &Metadata) -> io::Result<()> {
    if is_link(found) {
        return Err(not_regular("a link"));
    }
    if found.is_dir() { Err(not_regular("a folder")) } else { Ok(()) }
}

/// A held lock.
pub(crate) struct Held(File);

impl Drop for Held {
    fn drop(&mut self) {
        // If this fails, closing the handle releases the lock, perhaps a little later.
        let _ = self.0.unlock();
    }
}
