//! The one door to the disk.
//! ```text
//! Db -> Storage -> Disk      the real disk
//!               -> Memory    a simulated disk, which crashes, fails and damages on request
//!        |                   (paths are used here, once, when a store is opened)
//!        |
//!        +-> Folder -> create, open, rename, link, remove, lock
//!                            (names in the folder are used here, and no paths)
//! ```
//! Invariants: nothing else in the store names `std::fs`. An open folder stays the same folder,
//! whatever becomes of its path and of the working directory. No name leads out of the folder. A
//! new file never replaces an existing one.

pub(crate) mod aligned;
pub(crate) mod clock;
pub(crate) mod disk;
pub(crate) mod disk_batch;
pub(crate) mod disk_direct;
pub(crate) mod disk_folder;
#[cfg(target_os = "linux")]
#[cfg_attr(not(miri), expect(unsafe_code, reason = "a file is written through mapped memory"))]
pub(crate) mod disk_mapped;
#[cfg(unix)]
#[expect(unsafe_code, reason = "the system reads into memory that nobody has zeroed")]
pub(crate) mod disk_spare;
pub(crate) mod durable_folder;
pub(crate) mod exhausted;
#[cfg_attr(
    all(target_os = "linux", not(any(loom, shuttle, miri))),
    expect(
        unsafe_code,
        reason = "a page of memory that a fork wipes is mapped and named by a pointer"
    )
)]
pub(crate) mod fork_word;
pub(crate) mod io_mode;
pub(crate) mod io_threads;
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
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
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
pub(crate) mod no_ring;
pub(crate) mod open_files;
pub(crate) mod open_folder;
pub(crate) mod pauses;
pub(crate) mod read_only;
pub(crate) mod read_pool;
pub(crate) mod read_queue;
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
pub(crate) mod ring_queue;
pub(crate) mod traits;
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
pub(crate) use no_ring as ring_queue;

pub use clock::Clock;
pub use disk::Disk;
pub use io_mode::Access;
pub use memory::{Handles, Memory};
pub use read_queue::{Completed, ReadBuffer, ReadQueue};
pub use traits::{
    Append, Folder, FolderWrapper, RawFile, ReadAt, ReadAtWrapper, Storage, StorageWrapper, Syncer,
};
