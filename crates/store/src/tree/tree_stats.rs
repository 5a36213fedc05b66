//! The tree as `stats` and `inspect` show it.
//! ```text
//! level 1, T = 10, at most 1 run    [90, 130) 4 units    units: runs of level 0 that were merged
//!                                                        into it since it was empty
//! ```
//! Invariant: plain data of one version.

use crate::entries::compression::Compression;

/// One sorted run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunStats {
    /// Its files.
    pub tables: u64,
    /// Its entries, deletions included.
    pub entries: u64,
    /// Deletions of ranges: each as far as no other begins or ends.
    pub range_deletes: u64,
    /// Its bytes on disk.
    pub bytes: u64,
    /// Bytes of keys and values in its files, before they were packed.
    pub raw_bytes: u64,
    /// Bytes on disk of what blocks of its files are packed with: a dictionary for each file.
    pub dictionary_bytes: u64,
    /// Its span of flush numbers, [lo, hi).
    pub span: (u64, u64),
    /// How many full runs of the level above it holds, by its span. (In the last level entries that
    /// were replaced count, too.)
    pub units: u64,
    /// Whether an open merge has it.
    pub is_merging: bool,
}

/// One level.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelStats {
    /// Its number; 0 is the newest.
    pub level: usize,
    /// T: how many units empty it into the next level.
    pub size_ratio: u64,
    /// How many runs its policy allows. (Level 0 has more while these wait to be merged.)
    pub runs_max: u64,
    /// How merges pack what they write into it. What was written before may be packed otherwise,
    /// and so may flushed runs be, if it is the only level.
    pub compression: Compression,
    /// Its runs, newest first.
    pub runs: Vec<RunStats>,
}

impl LevelStats {
    /// How many bytes of keys and values there are for one on disk, filters and all included. None:
    /// there are none.
    pub fn packed_ratio(&self) -> Option<f64> {
        let bytes: u64 = self.runs.iter().map(|run| run.bytes).sum();
        let raw: u64 = self.runs.iter().map(|run| run.raw_bytes).sum();
        (bytes > 0).then(|| raw as f64 / bytes as f64)
    }

    /// The units of its runs.
    pub fn units(&self) -> u64 {
        self.runs.iter().map(|run| run.units).sum()
    }
}
