//! How table files move between disk and memory: what the options ask for, and what a storage
//! grants.
//! ```text
//! tables        Options.direct --wanted--> Folder::grant --granted--> open_with, create_with
//! other files   open, create: through the cache
//! ```
//! Invariants: a store asks once, when it is opened, and is granted no more than it wanted. The
//! bytes on disk are the same in every mode.

use std::fmt;
use std::str::FromStr;

use crate::storage::traits::Folder;

/// Which transfers bypass the cache of the operating system (`O_DIRECT`). Where the file system
/// cannot do that, they use the cache, and [`Stats::io`](crate::stats::Stats::io) says so. The log
/// and the manifest always use the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectIo {
    /// All reads of table blocks. Then only the block cache keeps blocks: give it the memory.
    pub reads: bool,
    /// Tables that flushes and [`Db::ingest`](crate::Keyspace::ingest) write.
    pub flushes: bool,
    /// Tables that merges write. Then they evict nothing from the cache of the operating system.
    pub merges: bool,
}

impl DirectIo {
    /// All of them.
    pub const ALL: DirectIo = DirectIo { reads: true, flushes: true, merges: true };
}

/// `none`, `all`, or names with commas between them.
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
    /// What there is.
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
    /// Whether small pieces are appended through memory, without a system call for each. The file
    /// may end in zeros until it is closed.
    pub mapped: bool,
}

/// How several reads that are requested together overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
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

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Overlap {
    /// What there is.
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|overlap| overlap.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(Overlap::name).join(", ");
            format!("there is no '{name}'; there are: {known}")
        })
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
        let granted =
            folder.grant(beside, Access { direct, overlap: wanted.overlap, mapped: false });
        let direct = if granted.direct { wanted.direct } else { DirectIo::default() };
        IoStats { direct, overlap: granted.overlap }
    }

    fn of(&self, direct: bool) -> Access {
        Access { direct, overlap: self.overlap, mapped: false }
    }

    /// How tables are read.
    pub(crate) fn reads(&self) -> Access {
        self.of(self.direct.reads)
    }

    /// How a flush writes a run, and anything else that makes one of new entries.
    pub(crate) fn flushes(&self) -> Access {
        self.of(self.direct.flushes)
    }

    /// How a merge writes a run.
    pub(crate) fn merges(&self) -> Access {
        self.of(self.direct.merges)
    }
}
