//! An open folder of the operating system. Its files are reached through its handle, never by a
//! path.
//! ```text
//! open     openat     no symbolic link, only regular files, no wait for the other end of a pipe
//! create   openat     the name must be free
//! link     linkat     from handle to handle
//! ```
//! Invariants: no call here leaves the folder, whatever names, links and folders others move about.
//! A new file gives others no more rights than its folder does.

use std::any::Any;
use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, RawMode, Stat};
use rustix::fs::{
    fcntl_setfl, flock, fstat, fstatvfs, fsync, linkat, mkdirat, openat, renameat, statat,
};
use rustix::io::Errno;

use crate::storage::disk::{DiskAppender, DiskReader};
use crate::storage::disk_direct::{DirectFile, DirectReader, DirectWriter};
use crate::storage::io_mode::{Access, Overlap};
use crate::storage::read_queue::ReadQueue;
use crate::storage::{Append, Folder, ReadAt, check_name, disk_batch, disk_direct};
use crate::sync::Arc;

/// The rights of a file's owner: the store must be able to read what it wrote.
const OWNER_BITS: RawMode = 0o600;
/// The rights of others on a file, at most.
const OTHERS_BITS: RawMode = 0o066;

/// An open folder.
pub(crate) struct DiskFolder(OwnedFd);

impl DiskFolder {
    /// Opens a folder by its path. Symbolic links in the path are followed: here the caller says
    /// which folder is meant.
    pub(crate) fn open_path(dir: &Path) -> io::Result<DiskFolder> {
        DiskFolder::open_at(CWD, dir, OFlags::empty())
    }

    fn open_at(at: BorrowedFd<'_>, dir: &Path, flags: OFlags) -> io::Result<DiskFolder> {
        let flags = flags | OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(DiskFolder(openat(at, dir, flags, Mode::empty())?))
    }

    /// Opens a file that exists. `flags`: read or write, and perhaps direct.
    pub(crate) fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        self.open_regular(name, flags, Mode::empty())
    }

    /// Creates a file. `AlreadyExists`: the name is taken.
    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        self.open_regular(name, flags, self.mode_of_files()?)
    }

    /// Opens a file for direct transfers. None: they are impossible, or not wanted.
    fn open_direct(
        &self,
        name: &str,
        wanted: Access,
        flags: OFlags,
    ) -> io::Result<Option<DirectFile>> {
        if wanted.direct { disk_direct::open(self, name, flags) } else { Ok(None) }
    }

    fn open_regular(&self, name: &str, flags: OFlags, mode: Mode) -> io::Result<File> {
        check_name(name)?;
        // Opening must not block: a pipe would wait for its other end, and so would some devices.
        let at_once = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = openat(&self.0, name, flags | at_once, mode);
        let file = opened.map_err(|error| self.explain(name, error))?;
        require_regular(&fstat(&file)?)?;
        // A ring rejects reads of non-blocking files.
        fcntl_setfl(&file, flags & OFlags::DIRECT)?;
        Ok(File::from(file))
    }

    /// Turns the error of a system call into plain words if the name is that of no regular file.
    fn explain(&self, name: &str, error: Errno) -> io::Error {
        let is_of_kinds = matches!(error, Errno::LOOP | Errno::NXIO | Errno::ISDIR | Errno::NODEV);
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

    /// The rights of new files. The process's umask limits them further.
    fn mode_of_files(&self) -> io::Result<Mode> {
        let of_folder = fstat(&self.0)?.st_mode;
        Ok(Mode::from_raw_mode(OWNER_BITS | (of_folder & OTHERS_BITS)))
    }

    /// Locks the folder too, because the lock file may be removed while it is locked. None: the
    /// file system cannot lock folders.
    fn lock_itself(&self) -> io::Result<Option<OwnedFd>> {
        // Opened again, since a lock is held until all copies of a descriptor are closed.
        let itself = DiskFolder::open_at(self.0.as_fd(), Path::new("."), OFlags::empty())?;
        match flock(&itself.0, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(itself.0)),
            Err(Errno::WOULDBLOCK) => Err(io::ErrorKind::WouldBlock.into()),
            Err(_) => Ok(None),
        }
    }

    /// Whether this name still belongs to the file.
    fn has(&self, name: &str, file: &File) -> io::Result<bool> {
        let (own, named) = (fstat(file)?, self.stat(name));
        Ok(named.is_ok_and(|named| (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino)))
    }
}

/// Fails, and says what it is, unless it is a regular file.
fn require_regular(stat: &Stat) -> io::Result<()> {
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Symlink => "a symbolic link",
        FileType::Directory => "a folder",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "something else",
    };
    Err(io::Error::other(format!("it is {what}, and a store has nothing but regular files")))
}

impl Folder for DiskFolder {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn grant(&self, beside: &str, wanted: Access) -> Access {
        let direct = self.open_direct(beside, wanted, OFlags::RDONLY).is_ok_and(|it| it.is_some());
        Access { direct, overlap: disk_batch::granted(wanted.overlap) }
    }

    fn create_with(&self, name: &str, access: Access) -> io::Result<Box<dyn Append>> {
        let buffered = self.create_file(name)?;
        let behind = access.overlap != Overlap::OneByOne;
        match self.open_direct(name, access, OFlags::WRONLY) {
            Ok(Some(direct)) => Ok(Box::new(DirectWriter::new(direct, buffered, behind))),
            Ok(None) => Ok(Box::new(DiskAppender(Arc::new(buffered)))),
            Err(error) => {
                // The name was free, so the file of that name is the one created here.
                let _ = self.remove(name);
                Err(error)
            }
        }
    }

    fn open_with(&self, name: &str, access: Access) -> io::Result<Arc<dyn ReadAt>> {
        let direct = self.open_direct(name, access, OFlags::RDONLY)?;
        let is_direct = direct.is_some();
        let file: Arc<dyn ReadAt> = match direct {
            Some((file, align)) => Arc::new(DirectReader { file, align }),
            None => Arc::new(DiskReader(self.open_file(name, OFlags::RDONLY)?)),
        };
        Ok(disk_batch::overlapping(file, is_direct, access.overlap))
    }

    fn read_queue(&self, overlap: Overlap, depth: usize) -> Box<dyn ReadQueue> {
        disk_batch::queue(overlap, depth)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_name(from)?;
        check_name(to)?;
        Ok(renameat(&self.0, from, &self.0, to)?)
    }

    fn link(&self, from: &str, into: &dyn Folder, to: &str) -> io::Result<()> {
        check_name(from)?;
        check_name(to)?;
        let into = into.as_any().downcast_ref::<DiskFolder>();
        let into = into.ok_or(io::ErrorKind::CrossesDevices)?;
        require_regular(&self.stat(from)?)?;
        Ok(linkat(&self.0, from, &into.0, to, AtFlags::empty())?)
    }

    fn make_folder(&self, name: &str) -> io::Result<Arc<dyn Folder>> {
        check_name(name)?;
        match mkdirat(&self.0, name, Mode::from_raw_mode(fstat(&self.0)?.st_mode & 0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let opened = DiskFolder::open_at(self.0.as_fd(), Path::new(name), OFlags::NOFOLLOW);
        Ok(Arc::new(opened?))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(fsync(&self.0)?)
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>> {
        loop {
            let flags = OFlags::WRONLY | OFlags::CREATE;
            let file = self.open_regular(name, flags, self.mode_of_files()?)?;
            match file.try_lock() {
                // The file may have lost its name meanwhile. Then the next process would lock
                // another file.
                Ok(()) if !self.has(name, &file)? => {}
                Ok(()) => {
                    let (itself, process) = (self.lock_itself()?, std::process::id());
                    return Ok(Box::new(Held { file, itself, process }));
                }
                Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    fn free_space(&self) -> io::Result<u64> {
        let stat = fstatvfs(&self.0)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A held lock. A child that was forked meanwhile has a copy of its descriptor, and would keep the
/// lock while it lives. So the lock is released explicitly, and only by the process that took it.
struct Held {
    file: File,
    itself: Option<OwnedFd>,
    process: u32,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // If this fails, closing the descriptor releases the lock.
            let _ = self.file.unlock();
            let _ = self.itself.as_ref().map(|folder| flock(folder, FlockOperation::Unlock));
        }
    }
}
