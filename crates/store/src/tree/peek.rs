//! A look at the tree of a store that another process may have open.
//! ```text
//! owner     edit, edit, edit ... --> MANIFEST      synced before a version shows it
//! onlooker  MANIFEST --> layout --> TreePeek       no lock, nothing written, no other file touched
//! ```
//! Invariant: a look changes nothing. It sees the tree as of some edit. The file only grows at its
//! end, where half an edit does not count yet, or it is replaced as a whole.

use std::io::ErrorKind;
use std::path::Path;

use crate::error::{Error, Result};
use crate::files::manifest::Manifest;
use crate::plan::layout::{Layout, RunRecord};
use crate::plan::store_layout::StoreLayout;
use crate::storage::disk::Disk;
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::Storage;
use crate::tree::partition_stats::{UnderWay, under_way};

/// A run as the manifest describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunPeek {
    /// Its level; 0 is the newest.
    pub level: usize,
    /// The number of its tables.
    pub tables: u64,
    /// Its entries, deletions included.
    pub entries: u64,
    /// Its bytes on disk.
    pub bytes: u64,
    /// Its span of flush numbers, [lo, hi).
    pub span: (u64, u64),
}

/// A tree as the manifest describes it. Only the process that has the store open knows memory,
/// filters, counters, and merges that have installed nothing yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreePeek {
    /// Newest first.
    pub runs: Vec<RunPeek>,
    /// Flushes so far: no run has this number or a larger one.
    pub flushes: u64,
    /// The newest sequence number in the runs.
    pub sequence: u64,
    /// The half-done merge into the last level, if it proceeds by partitions.
    pub under_way: Option<UnderWay>,
}

/// Looks at the tree of the store in `dir`, which any process may have open.
///
/// # Errors
/// `Missing` if there is no store, `Corrupt` if its manifest is damaged, `Io` if the disk refuses.
pub fn peek(dir: impl AsRef<Path>) -> Result<TreePeek> {
    peek_with(&Disk, dir.as_ref())
}

/// Like [`peek`], for a store on any storage.
pub(crate) fn peek_with(storage: &dyn Storage, dir: &Path) -> Result<TreePeek> {
    Ok(tree(read(storage, dir)?.default_tree()))
}

/// Returns the trees of all key spaces like [`peek`], with their names. The default key space comes
/// first.
///
/// # Errors
/// As [`peek`].
pub fn peek_keyspaces(dir: impl AsRef<Path>) -> Result<Vec<(String, TreePeek)>> {
    peek_keyspaces_with(&Disk, dir.as_ref())
}

/// Like [`peek_keyspaces`], for a store on any storage.
pub(crate) fn peek_keyspaces_with(
    storage: &dyn Storage,
    dir: &Path,
) -> Result<Vec<(String, TreePeek)>> {
    let store = read(storage, dir)?;
    let keyspaces = store.keyspaces.values();
    Ok(keyspaces.map(|it| (it.record.name.clone(), tree(&it.tree))).collect())
}

fn read(storage: &dyn Storage, dir: &Path) -> Result<StoreLayout> {
    let missing = || Error::Missing { path: dir.to_path_buf() };
    let folder = match OpenFolder::open(storage, dir) {
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            return Err(missing());
        }
        opened => opened?,
    };
    Manifest::read(&folder)?.ok_or_else(missing)
}

/// Converts a layout for the API.
pub(crate) fn tree(layout: &Layout) -> TreePeek {
    TreePeek {
        runs: layout.runs.iter().map(run).collect(),
        flushes: layout.next_flush.0,
        sequence: layout.last_sequence.0,
        under_way: under_way(layout),
    }
}

fn run(run: &RunRecord) -> RunPeek {
    let span = run.span();
    RunPeek {
        level: run.level,
        tables: run.tables.len() as u64,
        entries: run.entries(),
        bytes: run.tables.iter().map(|table| table.bytes_within()).sum(),
        span: (span.lo().0, span.hi().0),
    }
}

#[cfg(test)]
mod tests;
