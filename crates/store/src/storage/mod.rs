//! The one door to the disk.
//! ```text
//! Db -> Storage -> Disk     the real one                                                    paths are asked for here,
//!               -> Memory   knows what was synced; crashes, fails and damages on request    once, when a store is opened
//!        |
//!        +-> Folder -> create, open, rename, link, remove, lock                             names in the folder, and no paths
//! ```
//! Invariants: nothing else in the store names `std::fs`. A folder that is open stays the same
//! folder, whatever becomes of its path and of the process's working directory; no name leads out
//! of it. A file that is made was not there before.

pub(crate) mod aligned;
pub(crate) mod disk;
pub(crate) mod disk_batch;
pub(crate) mod disk_direct;
pub(crate) mod disk_folder;
pub(crate) mod environment;
pub(crate) mod exhausted;
#[cfg_attr(
    not(any(loom, shuttle, miri)),
    expect(
        unsafe_code,
        reason = "a page of memory that a fork wipes is mapped and named by a pointer"
    )
)]
pub(crate) mod fork_word;
pub(crate) mod io_mode;
pub(crate) mod io_threads;
#[expect(
    unsafe_code,
    reason = "the kernel reads into memory by pointers that entries of a ring name"
)]
pub(crate) mod io_uring;
#[cfg(miri)]
#[expect(unsafe_code, reason = "it writes by the pointers that entries name, as the kernel does")]
pub(crate) mod io_uring_fake;
pub(crate) mod life;
pub(crate) mod link_or_copy;
pub(crate) mod memory;
pub(crate) mod open_files;
pub(crate) mod open_folder;
pub(crate) mod read_pool;
pub(crate) mod read_queue;
pub(crate) mod ring_queue;

use std::any::Any;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::Path;

use crate::storage::io_mode::{Access, Overlap};
use crate::storage::read_queue::{ReadBuffer, ReadQueue, one_by_one};
use crate::sync::Arc;

/// A place where folders are.
pub trait Storage: Send + Sync {
    /// Makes a folder and its parents; no error if it is there.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Whether the folder is there.
    fn dir_exists(&self, dir: &Path) -> bool;
    /// Opens a folder. `NotFound`: there is none; `NotADirectory`: it is something else.
    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>>;
    /// The names of the files and folders in a folder, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.open_folder(dir)?.list()
    }
    /// Makes creations, renames and removals in a folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.open_folder(dir)?.sync()
    }
}

/// A folder that is open. It stays this folder when it gets another name, and when another folder
/// gets its old one.
///
/// Names are those of files in it: one with a separator, `.` and `..` are refused as
/// `InvalidInput`. Symbolic links are never followed, and what is no regular file is neither read
/// nor written: an error says what it is.
pub trait Folder: Send + Sync {
    /// The names of the files and folders in it, sorted.
    fn list(&self) -> io::Result<Vec<String>>;
    /// What of `wanted` files beside this one can have. Nothing, if the storage does not say.
    /// Writes nothing. Requires: the file is there.
    fn grant(&self, _beside: &str, _wanted: Access) -> Access {
        Access::default()
    }
    /// Makes a file that is written from the start. `AlreadyExists`: the name is taken, by whatever
    /// it may be. After an error no file was made. A file that cannot have the access that was
    /// granted has the ordinary one.
    fn create_with(&self, name: &str, access: Access) -> io::Result<Box<dyn Append>>;
    /// Opens a file for reading. A file that cannot have the access that was granted has the
    /// ordinary one.
    fn open_with(&self, name: &str, access: Access) -> io::Result<Arc<dyn ReadAt>>;
    /// A queue for reads of files that are open, of which about `depth` are under way at once, with
    /// a way of doing so that was granted.
    fn read_queue(&self, _overlap: Overlap, _depth: usize) -> Box<dyn ReadQueue> {
        one_by_one()
    }
    /// Removes a file, or whatever else has the name and is no folder.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Gives a file another name, replacing what had it. Durable after `sync`.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Gives a file a second name, in this folder or another one of the storage. `AlreadyExists`:
    /// the name is taken. Other errors: the folders' files cannot have names in both.
    fn link(&self, from: &str, into: &dyn Folder, to: &str) -> io::Result<()>;
    /// Makes a folder in this one, if it is not there, and opens it.
    fn make_folder(&self, name: &str) -> io::Result<Arc<dyn Folder>>;
    /// Makes creations, renames and removals in it durable.
    fn sync(&self) -> io::Result<()>;
    /// Takes the folder until the value is dropped, with a file as the lock, which is made if it is
    /// not there. `WouldBlock`: someone else has it.
    fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>>;
    /// Bytes that can still be written in it.
    fn free_space(&self) -> io::Result<u64>;
    /// The folder as its own storage knows it, for [`link`](Folder::link). Who wraps a folder hands
    /// on that of the wrapped one.
    fn as_any(&self) -> &dyn Any;
}

impl dyn Folder + '_ {
    /// As [`create_with`](Folder::create_with), with the ordinary access.
    pub fn create(&self, name: &str) -> io::Result<Box<dyn Append>> {
        self.create_with(name, Access::default())
    }

    /// As [`open_with`](Folder::open_with), with the ordinary access.
    pub fn open(&self, name: &str) -> io::Result<Arc<dyn ReadAt>> {
        self.open_with(name, Access::default())
    }
}

/// A trait for what wraps an implementation of another trait: each of its methods, unless it is
/// written anew, does what the wrapped one does.
macro_rules! wrapper_trait {
    (
        $(#[$doc:meta])*
        $wrapper:ident of $wrapped:ident {
            $(fn $method:ident(&self $(, $name:ident: $type:ty)*) -> $output:ty;)*
        }
    ) => {
        $(#[$doc])*
        pub trait $wrapper: Send + Sync {
            /// What is wrapped.
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
    /// A storage in front of another one. An implementation writes only the methods that it
    /// changes, and is a [`Storage`].
    StorageWrapper of Storage {
        fn create_dir(&self, dir: &Path) -> io::Result<()>;
        fn dir_exists(&self, dir: &Path) -> bool;
        fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>>;
    }
}

wrapper_trait! {
    /// A folder in front of another one. An implementation writes only the methods that it
    /// changes, and is a [`Folder`].
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

/// Whether a name is one of a file in a folder, and no path.
pub(crate) fn check_name(name: &str) -> io::Result<()> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
        let what = format!("{name:?} is no name of a file in a folder");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    Ok(())
}

/// As many zeros, if there is memory for them: lengths are what files claim.
pub(crate) fn zeroed(len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| {
        let what = format!("there is no memory for the {len} bytes that are to be read at once");
        io::Error::new(io::ErrorKind::OutOfMemory, what)
    })?;
    bytes.resize(len, 0);
    Ok(bytes)
}

/// How many bytes of a part of a file are in holes, if that is more than `max`: it claims to have
/// them, and they take no room.
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
    /// Adds bytes at the end; readers may see them only when they are synced. After an error the
    /// file's end is unknown: write no more to it.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes all that was appended durable.
    fn sync(&mut self) -> io::Result<()>;
    /// Syncs the file beside appends. None: only who appends can. Then a log whose writer is
    /// stopped is synced when it goes on.
    fn syncer(&self) -> Option<Arc<dyn Syncer>> {
        None
    }
}

/// Makes a file durable that someone else appends to.
pub trait Syncer: Send + Sync {
    /// Makes all durable that was appended before the call. One that is under way holds up no
    /// append.
    fn sync(&self) -> io::Result<()>;
}

/// A file that is read anywhere, by many threads at once.
pub trait ReadAt: Send + Sync {
    /// Its length in bytes.
    fn size(&self) -> io::Result<u64>;
    /// The first stretch from `from` on that is no hole. None: there is none up to the file's end.
    /// Holes read as zeros and take no room; who does not know of them takes all for data.
    fn data_after(&self, from: u64) -> io::Result<Option<Range<u64>>> {
        let size = self.size()?;
        Ok((from < size).then_some(from..size))
    }
    /// Fills `buffer` from `offset` on. `UnexpectedEof` if the file ends before.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
    /// Bytes from `offset` on, in memory of the file's choice. Errors are those of `read_at`.
    fn read(&self, offset: u64, len: usize) -> io::Result<ReadBuffer> {
        let mut bytes = zeroed(len)?;
        self.read_at(offset, &mut bytes)?;
        Ok(bytes.into())
    }
    /// A queue for what is read before it is needed. Where reads of the file gain nothing by that,
    /// they are done when they are collected.
    fn reads_ahead(&self) -> Box<dyn ReadQueue> {
        one_by_one()
    }
    /// Several reads at once: submitted together, collected together. After an error it is unknown
    /// which buffers are filled.
    fn read_many(&self, reads: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        reads.iter_mut().try_for_each(|(offset, buffer)| self.read_at(*offset, buffer))
    }
    /// The file itself, where this one stands for a file that is opened when it is read; it stays
    /// open as long as someone has it. None: this is the file. `WouldBlock`: too many are open; ask
    /// again when some of them were read.
    fn opened(&self) -> io::Result<Option<Arc<dyn ReadAt>>> {
        Ok(None)
    }
    /// How the operating system knows the file. None: it does not, and `read_at` is the only way.
    fn raw(&self) -> Option<RawFile<'_>> {
        None
    }
}

/// A file as the operating system knows it.
#[derive(Clone, Copy, Debug)]
pub struct RawFile<'f> {
    /// Open as long as the file is.
    pub fd: BorrowedFd<'f>,
    /// What offsets, lengths and memory must be multiples of. 1: anything will do.
    pub align: usize,
}
