//! How table files move between disk and memory: what the options ask for, and what a storage
//! grants.
//! ```text
//! tables        Options.direct --wanted--> Folder::grant --granted--> open_with, create_with
//! other files   open, create: through the cache
//! ```
//! Invariants: a store asks once, when it is opened, and is granted no more than it wanted. The
//! bytes on disk are the same in every mode.

use crate::storage::Folder;

/// Which transfers bypass the cache of the operating system (`O_DIRECT`). Where the file system
/// cannot do that, they use the cache, and [`Stats::io`](crate::Stats::io) says so. The log and the
/// manifest always use the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectIo {
    /// All reads of table blocks. Then only the block cache keeps blocks: give it the memory.
    pub reads: bool,
    /// Tables that flushes and [`Db::ingest`](crate::Db::ingest) write.
    pub flushes: bool,
    /// Tables that merges write. Then they evict nothing from the cache of the operating system.
    pub merges: bool,
}

impl DirectIo {
    /// All of them.
    pub const ALL: DirectIo = DirectIo { reads: true, flushes: true, merges: true };
}

/// How a file is read or written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Whether transfers bypass the cache of the operating system.
    pub direct: bool,
    /// How reads of the file overlap.
    pub overlap: Overlap,
}

/// How several reads that are requested together overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlap {
    /// `io_uring`: the kernel runs them (io_uring), with a ring for each thread that needs one. A
    /// process that may not have rings uses the pool.
    Ring,
    /// `pool`: the threads of a pool run them.
    Pool,
    /// `one-by-one`: they do not overlap.
    #[default]
    OneByOne,
}

impl Overlap {
    /// Every mode.
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

/// How the tables of a store are read and written: what the options ask for, as far as the storage
/// grants it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IoStats {
    /// What bypasses the cache of the operating system.
    pub direct: DirectIo,
    /// How reads that are requested together overlap.
    pub overlap: Overlap,
}

impl IoStats {
    /// Asks what files beside this one can have. Requires: the file exists.
    pub(crate) fn granted(folder: &dyn Folder, beside: &str, wanted: IoStats) -> IoStats {
        let direct = wanted.direct != DirectIo::default();
        let granted = folder.grant(beside, Access { direct, overlap: wanted.overlap });
        let direct = if granted.direct { wanted.direct } else { DirectIo::default() };
        IoStats { direct, overlap: granted.overlap }
    }

    /// How tables are read.
    pub(crate) fn reads(&self) -> Access {
        Access { direct: self.direct.reads, overlap: self.overlap }
    }

    /// How a flush writes a run, and anything else that makes one of new entries.
    pub(crate) fn flushes(&self) -> Access {
        Access { direct: self.direct.flushes, overlap: self.overlap }
    }

    /// How a merge writes a run.
    pub(crate) fn merges(&self) -> Access {
        Access { direct: self.direct.merges, overlap: self.overlap }
    }
}
