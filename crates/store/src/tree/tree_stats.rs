//! The tree as `stats` and `inspect` show it, as plain data.
//! ```text
//! level 1, T = 10, at most 1 run    [90, 130) 4 units    units: runs of level 0 that were merged
//!                                                        into it since it was empty
//! ```
//! Invariant: all numbers are of one version.

use crate::entries::compression::Compression;

/// One sorted run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunStats {
    /// The number of its files.
    pub tables: u64,
    /// Its entries, deletions included.
    pub entries: u64,
    /// Range deletions, cut wherever another one begins or ends.
    pub range_deletes: u64,
    /// Its bytes on disk.
    pub bytes: u64,
    /// Bytes of keys and values in its files, before compression.
    pub raw_bytes: u64,
    /// Bytes on disk of the compression dictionaries, one for each file.
    pub dictionary_bytes: u64,
    /// Its span of flush numbers, [lo, hi).
    pub span: (u64, u64),
    /// The number of full runs of the level above that it holds, by its span. (In the last level,
    /// replaced entries count, too.)
    pub units: u64,
    /// Whether an open merge has claimed it.
    pub is_merging: bool,
}

/// One level.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelStats {
    /// Its number; 0 is the newest.
    pub level: usize,
    /// T: the number of units that empties the level into the next one.
    pub size_ratio: u64,
    /// The most runs that the policy allows. (Level 0 has more while they wait for a merge.)
    pub runs_max: u64,
    /// The compression of what merges write into the level. Older blocks may have another one, as
    /// may flushed runs if this is the only level.
    pub compression: Compression,
    /// Its runs, newest first.
    pub runs: Vec<RunStats>,
}

impl LevelStats {
    /// Returns the bytes of keys and values for each byte on disk, filters and everything else
    /// included. None: the level is empty.
    pub fn packed_ratio(&self) -> Option<f64> {
        let bytes: u64 = self.runs.iter().map(|run| run.bytes).sum();
        let raw: u64 = self.runs.iter().map(|run| run.raw_bytes).sum();
        (bytes > 0).then(|| raw as f64 / bytes as f64)
    }

    /// Returns the units of all its runs.
    pub fn units(&self) -> u64 {
        self.runs.iter().map(|run| run.units).sum()
    }
}
