//! How files of tables go between disk and memory: what the options ask for, and what a storage grants.
//! ```text
//! Options.direct --wanted--> Storage::grant(file)   --granted--> Storage::open_with, create_with      (tables)
//!                            open, create: through the system's cache                                 (all other files)
//! ```
//! Invariant: what is granted is asked for once, when a store is opened, and is no more than was wanted.
//! Bytes on disk are the same whichever way they go.

use std::path::Path;

use crate::storage::Storage;

/// Which transfers go past the operating system's cache (`O_DIRECT`). Where the file system cannot do it,
/// they go through it, and [`Stats::io`](crate::Stats::io) says so. The log and the manifest always do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectIo {
    /// Blocks of tables, whoever reads them. Then only the block cache keeps any: give it the memory.
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
}

/// How a store's tables are read and written: as far as its storage grants what its options ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IoStats {
    /// What goes past the operating system's cache.
    pub direct: DirectIo,
}

impl IoStats {
    /// Asks what files beside this one can have. Requires: it is there.
    pub(crate) fn granted(storage: &dyn Storage, beside: &Path, wanted: DirectIo) -> IoStats {
        if wanted == DirectIo::default() {
            return IoStats::default();
        }
        let can = storage.grant(beside, Access { direct: true }).direct;
        let DirectIo { reads, flushes, merges } = wanted;
        let direct =
            DirectIo { reads: reads && can, flushes: flushes && can, merges: merges && can };
        IoStats { direct }
    }

    /// How tables are read.
    pub(crate) fn reads(&self) -> Access {
        Access { direct: self.direct.reads }
    }

    /// How those write that make a new run.
    pub(crate) fn writes(&self, by: WrittenBy) -> Access {
        let direct = match by {
            WrittenBy::Flush => self.direct.flushes,
            WrittenBy::Merge => self.direct.merges,
        };
        Access { direct }
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
