//! How table files move between disk and memory: what the options request, and what a storage
//! grants.
//! ```text
//! tables        Options.direct --wanted--> Folder::grant --granted--> open_with, create_with
//! other files   open, create: through the cache
//! ```
//! Invariants: a store asks once, when it is opened, and is granted no more than it requested. The
//! bytes on disk are the same in every mode.

use std::fmt;
use std::str::FromStr;

use crate::storage::traits::Folder;

/// Which I/O bypasses the cache of the operating system (`O_DIRECT`). If the file system cannot do
/// that, the cache is used, and [`Stats::io`](crate::stats::Stats::io) says so. The log and the
/// manifest always use the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectIo {
    /// All reads of table blocks. Then only the block cache keeps blocks, so give it the memory.
    pub reads: bool,
    /// Tables that flushes and [`Db::ingest`](crate::Keyspace::ingest) write.
    pub flushes: bool,
    /// Tables that merges write. They then evict nothing from the cache of the operating system.
    pub merges: bool,
}

impl DirectIo {
    /// Everything bypasses the cache.
    pub const ALL: DirectIo = DirectIo { reads: true, flushes: true, merges: true };
}

/// Writes `none`, `all`, or names separated by commas.
impl fmt::Display for DirectIo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == DirectIo::ALL {
            return f.write_str("all");
        }
        let named = [("reads", self.reads), ("flushes", self.flushes), ("merges", self.merges)];
        let names: Vec<&str> =
            named.into_iter().filter(|(_, is)| *is).map(|(name, _)| name).collect();
        f.write_str(if names.is_empty() { "none" } else { "" })?;
        f.write_str(&names.join(","))
    }
}

impl FromStr for DirectIo {
    /// A text that lists the known names.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut direct = DirectIo::default();
        match text {
            "none" => return Ok(direct),
            "all" => return Ok(DirectIo::ALL),
            _ => {}
        }
        for name in text.split(',') {
            match name {
                "reads" => direct.reads = true,
                "flushes" => direct.flushes = true,
                "merges" => direct.merges = true,
                _ => {
                    let known = "none, all, or some of reads, flushes, merges";
                    return Err(format!("there is no '{name}'; there are: {known}"));
                }
            }
        }
        Ok(direct)
    }
}

/// How a file is read or written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Whether transfers bypass the cache of the operating system.
    pub direct: bool,
    /// How reads of the file overlap.
    pub overlap: Overlap,
    /// Whether small pieces are appended through mapped memory, without a system call for each. The
    /// file may end in zeros until it is closed.
    pub mapped: bool,
}

/// How several reads that are requested together overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overlap {
    /// `io_uring`: the kernel runs them, with a ring for each thread that needs one. A process that
    /// may not have rings uses the pool.
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

    /// Returns the name as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Overlap::Ring => "io_uring",
            Overlap::Pool => "pool",
            Overlap::OneByOne => "one-by-one",
        }
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Overlap {
    /// A text that lists the known modes.
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|overlap| overlap.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(Overlap::name).join(", ");
            format!("there is no '{name}'; there are: {known}")
        })
    }
}

/// How the tables of a store are read and written: what the options request and the storage grants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IoStats {
    /// What bypasses the cache of the operating system.
    pub direct: DirectIo,
    /// How reads that are requested together overlap.
    pub overlap: Overlap,
}

impl IoStats {
    /// Asks which I/O files beside this one can have. Requires: the file exists.
    pub(crate) fn granted(folder: &dyn Folder, beside: &str, wanted: IoStats) -> IoStats {
        let direct = wanted.direct != DirectIo::default();
        let granted =
            folder.grant(beside, Access { direct, overlap: wanted.overlap, mapped: false });
        let direct = if granted.direct { wanted.direct } else { DirectIo::default() };
        IoStats { direct, overlap: granted.overlap }
    }

    fn of(&self, direct: bool) -> Access {
        Access { direct, overlap: self.overlap, mapped: false }
    }

    /// Returns the access for reading tables.
    pub(crate) fn reads(&self) -> Access {
        self.of(self.direct.reads)
    }

    /// Returns the access for writing runs of new entries: flushes, and anything like them.
    pub(crate) fn flushes(&self) -> Access {
        self.of(self.direct.flushes)
    }

    /// Returns the access for writing runs in merges.
    pub(crate) fn merges(&self) -> Access {
        self.of(self.direct.merges)
    }
}
