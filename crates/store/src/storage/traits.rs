//! The traits of a storage: folders, and files in them, as the store needs them.
//! ```text
//! Storage -> Folder -> RawFile, ReadAt, Append, Syncer        wrappers pass everything on
//! ```
//! Invariant: only names in an open folder are used, never paths.

use std::any::Any;
use std::io;
use std::ops::Range;
#[cfg(unix)]
use std::os::fd::BorrowedFd as Descriptor;
#[cfg(windows)]
use std::os::windows::io::BorrowedHandle as Descriptor;
use std::path::Path;

use crate::storage::io_mode::{Access, Overlap};
use crate::storage::read_queue::{ReadBuffer, ReadQueue, one_by_one};
use crate::sync::Arc;

/// A place that contains folders.
pub trait Storage: Send + Sync {
    /// Creates a folder and its parents. Succeeds if the folder exists.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Whether the folder exists.
    fn dir_exists(&self, dir: &Path) -> bool;
    /// Opens a folder. `NotFound`: it does not exist. `NotADirectory`: it is not a folder.
    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>>;
    /// Returns the names of the files and folders in a folder, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.open_folder(dir)?.list()
    }
    /// Makes creations, renames and removals in a folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.open_folder(dir)?.sync()
    }
}

/// An open folder. It stays the same folder if it is renamed, or if another folder takes its old
/// name.
///
/// All names are those of files in the folder. Names with a separator, `.` and `..` are refused
/// with `InvalidInput`. Symbolic links are never followed. Only regular files are read and written;
/// the error for anything else says what it is.
pub trait Folder: Send + Sync {
    /// Returns the names of the files and folders in it, sorted.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Returns which part of `wanted` the storage can grant to files beside this one. By default,
    /// nothing. Writes nothing. Requires: the file exists.
    fn grant(&self, _beside: &str, _wanted: Access) -> Access {
        Access::default()
    }
    /// Creates an empty file. `AlreadyExists`: the name is taken, by a file or anything else. After
    /// an error no file was created. If the file cannot have the granted access, it gets ordinary
    /// access.
    fn create_with(&self, name: &str, access: Access) -> io::Result<Box<dyn Append>>;
    /// Opens a file for reading. If it cannot have the granted access, it gets ordinary access.
    fn open_with(&self, name: &str, access: Access) -> io::Result<Arc<dyn ReadAt>>;
    /// Makes a queue for reads of open files, with about `depth` reads in flight. `overlap` was
    /// granted.
    fn read_queue(&self, _overlap: Overlap, _depth: usize) -> Box<dyn ReadQueue> {
        one_by_one()
    }
    /// Removes a file, or anything else with this name that is not a folder.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Renames a file, and replaces any file with the new name. The change is durable after `sync`.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Gives a file a second name, in this folder or in another one of the storage.
    /// `AlreadyExists`: the name is taken. Any other error means that a file cannot have names in
    /// both folders.
    fn link(&self, from: &str, into: &dyn Folder, to: &str) -> io::Result<()>;
    /// Opens a folder in this one, and creates it if it does not exist.
    fn make_folder(&self, name: &str) -> io::Result<Arc<dyn Folder>>;
    /// Makes creations, renames and removals in it durable.
    fn sync(&self) -> io::Result<()>;
    /// Locks the folder until the returned value is dropped. The lock is on a file, which is
    /// created if needed. `WouldBlock`: somebody else holds the lock.
    fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>>;
    /// Returns the number of bytes that can still be written in it.
    fn free_space(&self) -> io::Result<u64>;
    /// Returns the folder as its own storage knows it, for [`link`](Folder::link). A wrapper
    /// returns that of the wrapped folder.
    fn as_any(&self) -> &dyn Any;
}

impl dyn Folder + '_ {
    /// Calls [`create_with`](Folder::create_with) with ordinary access.
    pub fn create(&self, name: &str) -> io::Result<Box<dyn Append>> {
        self.create_with(name, Access::default())
    }

    /// Calls [`open_with`](Folder::open_with) with ordinary access.
    pub fn open(&self, name: &str) -> io::Result<Arc<dyn ReadAt>> {
        self.open_with(name, Access::default())
    }
}

/// Defines a trait for wrappers of another trait, and implements the other trait for each wrapper.
/// Each method forwards to the wrapped value unless the wrapper overrides it.
macro_rules! wrapper_trait {
    (
        $(#[$doc:meta])*
        $wrapper:ident of $wrapped:ident {
            $(fn $method:ident(&self $(, $name:ident: $type:ty)*) -> $output:ty;)*
        }
    ) => {
        $(#[$doc])*
        pub trait $wrapper: Send + Sync {
            /// The wrapped value.
            fn inner(&self) -> &dyn $wrapped;
            $(
                #[doc = concat!("See [`", stringify!($wrapped), "::", stringify!($method), "`].")]
                fn $method(&self $(, $name: $type)*) -> $output {
                    self.inner().$method($($name),*)
                }
            )*
        }

        impl<W: $wrapper> $wrapped for W {
            $(
                fn $method(&self $(, $name: $type)*) -> $output {
                    $wrapper::$method(self $(, $name)*)
                }
            )*
        }
    };
}

wrapper_trait! {
    /// A storage that wraps another one. Each implementation is a [`Storage`], and overrides only
    /// the methods that it changes.
    StorageWrapper of Storage {
        fn create_dir(&self, dir: &Path) -> io::Result<()>;
        fn dir_exists(&self, dir: &Path) -> bool;
        fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>>;
    }
}

wrapper_trait! {
    /// A folder that wraps another one. Each implementation is a [`Folder`], and overrides only the
    /// methods that it changes.
    FolderWrapper of Folder {
        fn list(&self) -> io::Result<Vec<String>>;
        fn grant(&self, beside: &str, wanted: Access) -> Access;
        fn create_with(&self, name: &str, access: Access) -> io::Result<Box<dyn Append>>;
        fn open_with(&self, name: &str, access: Access) -> io::Result<Arc<dyn ReadAt>>;
        fn read_queue(&self, overlap: Overlap, depth: usize) -> Box<dyn ReadQueue>;
        fn remove(&self, name: &str) -> io::Result<()>;
        fn rename(&self, from: &str, to: &str) -> io::Result<()>;
        fn link(&self, from: &str, into: &dyn Folder, to: &str) -> io::Result<()>;
        fn make_folder(&self, name: &str) -> io::Result<Arc<dyn Folder>>;
        fn sync(&self) -> io::Result<()>;
        fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>>;
        fn free_space(&self) -> io::Result<u64>;
        fn as_any(&self) -> &dyn Any;
    }
}

wrapper_trait! {
    /// A file that wraps another one. Each implementation is a [`ReadAt`], and overrides only the
    /// methods that it changes. No method reads through another one: to change what is read, all
    /// must be overridden.
    ReadAtWrapper of ReadAt {
        fn size(&self) -> io::Result<u64>;
        fn data_after(&self, from: u64) -> io::Result<Option<Range<u64>>>;
        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
        fn read(&self, offset: u64, len: usize) -> io::Result<ReadBuffer>;
        fn read_onto(&self, offset: u64, len: usize, bytes: &mut Vec<u8>) -> io::Result<()>;
        fn reads_ahead(&self) -> Box<dyn ReadQueue>;
        fn bypasses_cache(&self) -> bool;
        fn read_many(&self, reads: &mut [(u64, &mut [u8])]) -> io::Result<()>;
        fn will_read(&self, offset: u64, len: u64) -> io::Result<()>;
        fn opened(&self) -> io::Result<Option<Arc<dyn ReadAt>>>;
        fn has_name(&self) -> bool;
        fn raw(&self) -> Option<RawFile<'_>>;
    }
}

/// Characters that no name may have. On Windows a colon would name another stream of a file.
const SEPARATORS: &[char] = if cfg!(windows) { &['/', '\\', ':', '\0'] } else { &['/', '\0'] };

/// Fails unless the name is that of a file in a folder, not a path.
pub(crate) fn check_name(name: &str) -> io::Result<()> {
    if name.is_empty() || name == "." || name == ".." || name.contains(SEPARATORS) {
        let what = format!("{name:?} is no name of a file in a folder");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    Ok(())
}

/// Returns the error for a name that belongs to no regular file.
pub(crate) fn not_regular(what: &str) -> io::Error {
    io::Error::other(format!("it is {what}, and a store has nothing but regular files"))
}

/// Returns a buffer of `len` zeros. Fails if memory does not suffice: a damaged file may claim any
/// length.
pub(crate) fn zeroed(len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = with_room(len)?;
    bytes.resize(len, 0);
    Ok(bytes)
}

/// Returns an empty buffer with room for `len` bytes. Fails if memory does not suffice.
pub(crate) fn with_room(len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reserve(&mut bytes, len)?;
    Ok(bytes)
}

/// Makes room for `len` more bytes. Fails if memory does not suffice.
pub(crate) fn reserve(bytes: &mut Vec<u8>, len: usize) -> io::Result<()> {
    bytes.try_reserve_exact(len).map_err(|_| {
        let what = format!("there is no memory for the {len} bytes that are to be read at once");
        io::Error::new(io::ErrorKind::OutOfMemory, what)
    })
}

/// Counts the bytes of a part of a file that lie in holes. None: at most `max`. A file can claim
/// any length with holes, which take no space.
pub(crate) fn hole_bytes_above(
    max: u64,
    file: &dyn ReadAt,
    part: Range<u64>,
) -> io::Result<Option<u64>> {
    let (mut at, mut bytes) = (part.start, 0);
    if part.end - part.start <= max {
        return Ok(None);
    }
    while at < part.end {
        let data = file.data_after(at)?.unwrap_or(part.end..part.end);
        bytes += data.start.min(part.end).saturating_sub(at);
        at = data.end.max(at + 1);
    }
    Ok((bytes > max).then_some(bytes))
}

/// A file that grows at its end.
pub trait Append: Send {
    /// Appends bytes. Readers may see them only after `sync` or `publish`. After an error the end
    /// of the file is unknown, so nothing may be appended any more.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes everything that was appended durable.
    fn sync(&mut self) -> io::Result<()>;
    /// Lets readers see everything that was appended, without making it durable: for files that a
    /// crash may take.
    fn publish(&mut self) -> io::Result<()> {
        self.sync()
    }
    /// Returns a handle that syncs the file while its writer appends. None: only the writer can
    /// sync. Then a log whose writer is stalled is synced when the writer continues.
    fn syncer(&self) -> Option<Arc<dyn Syncer>> {
        None
    }
}

/// Makes a file durable while another thread appends to it.
pub trait Syncer: Send + Sync {
    /// Makes everything durable that was appended before the call. A sync in progress delays no
    /// append.
    fn sync(&self) -> io::Result<()>;
}

/// A file for reads at any offset, by many threads at once.
pub trait ReadAt: Send + Sync {
    /// Returns its length in bytes.
    fn size(&self) -> io::Result<u64>;
    /// Returns the first range of data from `from` on. None: only a hole is left. Holes read as
    /// zeros and take no space. A storage without holes returns everything as data.
    fn data_after(&self, from: u64) -> io::Result<Option<Range<u64>>> {
        let size = self.size()?;
        Ok((from < size).then_some(from..size))
    }
    /// Fills `buffer` from `offset` on. `UnexpectedEof`: the file ends too early.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
    /// Returns `len` bytes from `offset` on, in memory that the file chooses. The errors are those
    /// of `read_at`.
    fn read(&self, offset: u64, len: usize) -> io::Result<ReadBuffer> {
        let mut bytes = zeroed(len)?;
        self.read_at(offset, &mut bytes)?;
        Ok(bytes.into())
    }
    /// Appends `len` bytes from `offset` on to `bytes`, which are as before after an error. The
    /// errors are those of `read_at`, and `OutOfMemory`.
    fn read_onto(&self, offset: u64, len: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        reserve(bytes, len)?;
        let start = bytes.len();
        bytes.resize(start + len, 0);
        self.read_at(offset, &mut bytes[start..]).inspect_err(|_| bytes.truncate(start))
    }
    /// Returns a queue for reading ahead. If the file gains nothing from that, each read runs when
    /// it is collected.
    fn reads_ahead(&self) -> Box<dyn ReadQueue> {
        one_by_one()
    }
    /// True: the system does not cache the file, and `reads_ahead` begins its reads at once. So
    /// `will_read` would have no effect.
    fn bypasses_cache(&self) -> bool {
        false
    }
    /// Runs several reads at once: all are submitted, then all are collected. After an error it is
    /// unknown which buffers are filled.
    fn read_many(&self, reads: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        reads.iter_mut().try_for_each(|(offset, buffer)| self.read_at(*offset, buffer))
    }
    /// Announces that these bytes will be read soon, so that the system may begin. It does not
    /// wait, and an error says nothing about the read.
    fn will_read(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }
    /// Returns the open file behind this one, if this one opens its file on demand. The file stays
    /// open while a caller holds it. None: this is the file itself. `WouldBlock`: too many files
    /// are open; ask again after some were read.
    fn opened(&self) -> io::Result<Option<Arc<dyn ReadAt>>> {
        Ok(None)
    }
    /// Whether a name still leads to the file. False: once closed, the file cannot be reopened. A
    /// storage that cannot tell returns true.
    fn has_name(&self) -> bool {
        true
    }
    /// Returns the file as the operating system knows it. None: only `read_at` can read it.
    fn raw(&self) -> Option<RawFile<'_>> {
        None
    }
}

/// A file as the operating system knows it.
#[derive(Clone, Copy, Debug)]
pub struct RawFile<'f> {
    /// The descriptor. It stays open as long as the file does.
    pub fd: Descriptor<'f>,
    /// Offsets, lengths and addresses must be multiples of this. 1: there is no restriction.
    pub align: usize,
}
