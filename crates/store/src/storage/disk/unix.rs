//! Files of a Unix system, each reached through the handle of its folder.
//! ```text
//! open     openat     no symbolic link, only regular files, no wait for the other end of a pipe
//! create   openat     the name must be free
//! link     linkat     from handle to handle
//! lock     flock      of the lock file and of the folder itself
//! sync     fsync; F_FULLFSYNC on macOS, where fsync stops at the cache of the drive
//! ```
//! Invariants: no call here leaves the folder, whatever names, links and folders others move. A new
//! file gives others no more rights than its folder does. Requires: names were checked.

use std::fs::{File, TryLockError};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{AtFlags, CWD, Dir as Names, FileType, Mode, OFlags, RawMode, SeekFrom, Stat};
use rustix::fs::{fcntl_setfl, fstat, fstatvfs, linkat, mkdirat, openat, renameat, seek, statat};
use rustix::io::{Errno, pread};
use rustix::process::{Resource, getrlimit};

use crate::storage::traits::{not_regular, with_room};

/// The owner's rights on a file: the store must be able to read what it wrote.
const OWNER_BITS: RawMode = 0o600;
/// The most rights of others on a file.
const OTHERS_BITS: RawMode = 0o066;

/// The flags that an open file keeps.
#[cfg(target_os = "linux")]
const FLAGS_KEPT: OFlags = OFlags::DIRECT;
#[cfg(not(target_os = "linux"))]
const FLAGS_KEPT: OFlags = OFlags::empty();

pub(crate) fn descriptor(file: &File) -> BorrowedFd<'_> {
    file.as_fd()
}

pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(buffer, offset)
}

pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(buffer, offset)
}

/// Returns `len` bytes from `offset` on. The errors are those of `read_exact_at`.
pub(crate) fn read_to_vec(file: &File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = with_room(len)?;
    while bytes.len() < len {
        let at = offset.saturating_add(bytes.len() as u64);
        match pread(file, spare_capacity(&mut bytes), at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // The buffer may have more room than requested.
    bytes.truncate(len);
    Ok(bytes)
}

pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)
}

/// Whether a name leads to the file. If that is unknown, the answer is yes.
pub(crate) fn has_name(file: &File) -> bool {
    fstat(file).map_or(true, |about| about.st_nlink > 0)
}

/// Returns the first range of data in a file from `from` on.
pub(crate) fn data_after(file: &File, from: u64) -> io::Result<Option<Range<u64>>> {
    let end = file.metadata()?.len();
    let start = match seek(file, SeekFrom::Data(from)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        // The file system does not support holes.
        Err(Errno::INVAL | Errno::NOTTY | Errno::OPNOTSUPP) => from,
        Err(error) => return Err(error.into()),
    };
    let end = seek(file, SeekFrom::Hole(start)).map_or(end, |hole| hole.min(end));
    Ok((start < end).then_some(start..end))
}

/// Returns how many files this process may have open.
pub(crate) fn open_files_max() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// An open folder.
pub(crate) struct Dir(File);

impl Dir {
    /// Opens a folder by its path. Symbolic links in the path are followed: here the caller says
    /// which folder is meant.
    pub(crate) fn open_path(dir: &Path) -> io::Result<Dir> {
        Dir::open_at(CWD, dir, OFlags::empty())
    }

    fn open_at(at: BorrowedFd<'_>, dir: &Path, flags: OFlags) -> io::Result<Dir> {
        let flags = flags | OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Dir(openat(at, dir, flags, Mode::empty())?.into()))
    }

    /// Opens a file that exists, for reading.
    pub(crate) fn open(&self, name: &str) -> io::Result<File> {
        self.open_regular(name, OFlags::RDONLY, Mode::empty())
    }

    /// Creates a file. `AlreadyExists`: the name is taken.
    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        // Writing through mapped memory requires reading, too.
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        self.open_regular(name, flags, self.mode_of_files()?)
    }

    /// Opens an existing file for direct I/O, with the alignment that it needs. None: direct I/O is
    /// impossible.
    #[cfg(target_os = "linux")]
    pub(crate) fn open_direct(
        &self,
        name: &str,
        to_write: bool,
    ) -> io::Result<Option<(File, usize)>> {
        let flags = if to_write { OFlags::WRONLY } else { OFlags::RDONLY };
        match self.open_regular(name, flags | OFlags::DIRECT, Mode::empty()) {
            Ok(file) => Ok(super::linux::alignment(&file).map(|align| (file, align))),
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => Ok(None),
            Err(error) => Err(error),
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn open_direct(&self, _: &str, _: bool) -> io::Result<Option<(File, usize)>> {
        Ok(None)
    }

    fn open_regular(&self, name: &str, flags: OFlags, mode: Mode) -> io::Result<File> {
        // Opening must not block: a pipe would wait for its other end, and so would some devices.
        let at_once = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = openat(&self.0, name, flags | at_once, mode);
        let file = opened.map_err(|error| self.explain(name, error))?;
        require_regular(&fstat(&file)?)?;
        // A ring rejects reads of non-blocking files.
        fcntl_setfl(&file, flags & FLAGS_KEPT)?;
        Ok(File::from(file))
    }

    /// Explains the error of a system call if the name belongs to no regular file.
    fn explain(&self, name: &str, error: Errno) -> io::Error {
        let is_of_kinds = matches!(
            error,
            Errno::LOOP | Errno::NXIO | Errno::ISDIR | Errno::NODEV | Errno::OPNOTSUPP
        );
        if is_of_kinds && let Err(refused) = self.stat(name).and_then(|stat| require_regular(&stat))
        {
            return refused;
        }
        error.into()
    }

    /// Looks at the name itself, even if it is a symbolic link.
    fn stat(&self, name: &str) -> io::Result<Stat> {
        Ok(statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Returns the rights of new files. The process's umask limits them further.
    fn mode_of_files(&self) -> io::Result<Mode> {
        let of_folder = fstat(&self.0)?.st_mode as RawMode;
        Ok(Mode::from_raw_mode(OWNER_BITS | (of_folder & OTHERS_BITS)))
    }

    /// Returns the names of the files and folders in it.
    pub(crate) fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Names::read_from(&self.0)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.0, from, &self.0, to)?)
    }

    /// Gives a regular file a second name.
    pub(crate) fn link(&self, from: &str, into: &Dir, to: &str) -> io::Result<()> {
        require_regular(&self.stat(from)?)?;
        Ok(linkat(&self.0, from, &into.0, to, AtFlags::empty())?)
    }

    /// Opens a folder in this one, and creates it if it does not exist.
    pub(crate) fn make_dir(&self, name: &str) -> io::Result<Dir> {
        let mode = fstat(&self.0)?.st_mode as RawMode & 0o777;
        match mkdirat(&self.0, name, Mode::from_raw_mode(mode)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        Dir::open_at(self.0.as_fd(), Path::new(name), OFlags::NOFOLLOW)
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    /// Locks a file, which is created if it does not exist. `WouldBlock`: another holder has it.
    pub(crate) fn lock(&self, name: &str) -> io::Result<Held> {
        loop {
            let flags = OFlags::WRONLY | OFlags::CREATE;
            let file = self.open_regular(name, flags, self.mode_of_files()?)?;
            file.try_lock()?;
            // The file may have lost its name meanwhile. Then the next process would lock another
            // file.
            if self.has(name, &file)? {
                let (itself, process) = (self.lock_itself()?, std::process::id());
                return Ok(Held { file, itself, process });
            }
        }
    }

    /// Locks the folder, too, since the lock file may be removed while it is locked. None: the file
    /// system cannot lock folders.
    fn lock_itself(&self) -> io::Result<Option<File>> {
        // Opened again, since a lock is held until all copies of a descriptor are closed.
        let itself = Dir::open_at(self.0.as_fd(), Path::new("."), OFlags::empty())?;
        match itself.0.try_lock() {
            Ok(()) => Ok(Some(itself.0)),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(_)) => Ok(None),
        }
    }

    /// Whether this name still leads to the file.
    fn has(&self, name: &str, file: &File) -> io::Result<bool> {
        let (own, named) = (fstat(file)?, self.stat(name));
        Ok(named.is_ok_and(|named| (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino)))
    }

    /// Returns the number of bytes that can still be written in it.
    pub(crate) fn free_space(&self) -> io::Result<u64> {
        let stat = fstatvfs(&self.0)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

/// Fails unless it is a regular file. The error says what it is.
fn require_regular(stat: &Stat) -> io::Result<()> {
    let what = match FileType::from_raw_mode(stat.st_mode as RawMode) {
        FileType::RegularFile => return Ok(()),
        FileType::Symlink => "a symbolic link",
        FileType::Directory => "a folder",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "something else",
    };
    Err(not_regular(what))
}

/// A held lock. A child that was forked meanwhile has a copy of its descriptor, and would keep the
/// lock while it lives. So the lock is released explicitly, and only by the process that took it.
pub(crate) struct Held {
    file: File,
    itself: Option<File>,
    process: u32,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // If this fails, closing the descriptor releases the lock.
            let _ = self.file.unlock();
            let _ = self.itself.as_ref().map(File::unlock);
        }
    }
}
