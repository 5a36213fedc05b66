//! How files of tables go between disk and memory: what the options ask for, and what a storage
//! grants.
//! ```text
//! Options.direct --wanted--> Folder::grant(file)    --granted--> Folder::open_with, create_with      (tables)
//!                            open, create: through the system's cache                                 (all other files)
//! ```
//! Invariant: what is granted is asked for once, when a store is opened, and is no more than was
//! wanted. Bytes on disk are the same whichever way they go.

use crate::storage::Folder;

/// Which transfers go past the operating system's cache (`O_DIRECT`). Where the file system cannot
/// do it, they go through it, and [`Stats::io`](crate::Stats::io) says so. The log and the manifest
/// always do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectIo {
    /// Blocks of tables, whoever reads them. Then only the block cache keeps any: give it the
    /// memory.
    pub reads: bool,
    /// Tables that flushes and [`Db::ingest`](crate::Db::ingest) write.
    pub flushes: bool,
    /// Tables that merges write. They push nothing out of the system's cache then.
    pub merges: bool,
}

impl DirectIo {
    /// All of them.
    pub const ALL: DirectIo = DirectIo { reads: true, flushes: true, merges: true };
}

/// How a file is read or written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Past the operating system's cache.
    pub direct: bool,
    /// How many reads of it are done at once.
    pub overlap: Overlap,
}

/// How several reads that are asked for together are done at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlap {
    /// `io_uring`: by the kernel (io_uring), a ring for each thread that needs one; where this
    /// process may not have one, by the pool.
    Ring,
    /// `pool`: by a pool of threads that wait for them.
    Pool,
    /// `one-by-one`: not at all.
    #[default]
    OneByOne,
}

impl Overlap {
    /// Every way there is.
    pub const ALL: [Overlap; 3] = [Overlap::Ring, Overlap::Pool, Overlap::OneByOne];

    /// The name that people write.
    pub fn name(self) -> &'static str {
        match self {
            Overlap::Ring => "io_uring",
            Overlap::Pool => "pool",
            Overlap::OneByOne => "one-by-one",
        }
    }
}

/// How a store's tables are read and written: as far as its storage grants what its options ask
/// for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IoStats {
    /// What goes past the operating system's cache.
    pub direct: DirectIo,
    /// How reads that are asked for together are done at once.
    pub overlap: Overlap,
}

impl IoStats {
    /// Asks what files beside this one can have. Requires: it is there.
    pub(crate) fn granted(folder: &dyn Folder, beside: &str, wanted: IoStats) -> IoStats {
        let DirectIo { reads, flushes, merges } = wanted.direct;
        let direct = reads || flushes || merges;
        let granted = folder.grant(beside, Access { direct, overlap: wanted.overlap });
        let (can, overlap) = (granted.direct, granted.overlap);
        let direct =
            DirectIo { reads: reads && can, flushes: flushes && can, merges: merges && can };
        IoStats { direct, overlap }
    }

    /// How tables are read.
    pub(crate) fn reads(&self) -> Access {
        Access { direct: self.direct.reads, overlap: self.overlap }
    }

    /// How those write that make a new run.
    pub(crate) fn writes(&self, by: WrittenBy) -> Access {
        let direct = match by {
            WrittenBy::Flush => self.direct.flushes,
            WrittenBy::Merge => self.direct.merges,
        };
        Access { direct, overlap: self.overlap }
    }
}

/// Who writes a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WrittenBy {
    /// A flush, or what makes a run of new entries like one.
    #[default]
    Flush,
    Merge,
}
