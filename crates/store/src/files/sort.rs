//! An external sort: rows in any order become rows in the order of keys, in bounded memory.
//! ```text
//! row, row, ... -> rows in memory --full--> sorted -> spill, spill, ... --too many--> a few
//!                       |                                 |               become one
//!                       '---- sorted, at the end ---------+-> merge -> rows in order
//! ```
//! It knows folders and files, and no tree: so it lies here, below all that uses a store's state.
//!
//! Invariants: each key comes once, with the last of its rows. Spills are in the order of the
//! input, and only neighbours become one: so what is later replaces what is earlier. Rows in memory
//! and buffers of all spills take the memory that was given. No more than `inputs_max` files are
//! open. When a sort ends, in whichever way, its files are gone.

use std::ops::ControlFlow;
use std::path::PathBuf;

use self::merge::{Merge, Source};
use self::rows::{Rows, SortedRows};
use self::spill::{Spill, SpillCursor, SpillPlace, SpillShape, SpillWriter};
use crate::entries::entry::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::entries::keys::common_prefix;
use crate::error::{Error, Result};
use crate::storage::open_folder::OpenFolder;

mod merge;
mod rows;
mod spill;
#[cfg(test)]
mod tests;

/// How entries in any order are sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortOptions {
    /// Memory for rows and buffers, in bytes; at least 16 KiB. More: fewer and larger files, which
    /// are merged faster. What does not fit is written to files, at most once more than it has
    /// bytes, until there are more than about 100 of them.
    pub memory_bytes: usize,
    /// The folder of these files, which exists; None: the store's. Another disk spares this one.
    pub folder: Option<PathBuf>,
}

impl Default for SortOptions {
    fn default() -> Self {
        SortOptions { memory_bytes: 256 << 20, folder: None }
    }
}

/// The least memory of a sort.
const MEMORY_BYTES_MIN: usize = 16 << 10;

impl SortOptions {
    pub(crate) fn check(&self) -> Result<()> {
        if self.memory_bytes < MEMORY_BYTES_MIN {
            let problem = format!("{} bytes; at least {MEMORY_BYTES_MIN}", self.memory_bytes);
            return Err(Error::Option { option: "sort memory".into(), problem });
        }
        Ok(())
    }
}

/// What a sort is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SortStage {
    /// Takes entries; nobody knows how many there are.
    Reading,
    /// Makes one file of a few, because there are too many.
    Merging,
    /// Writes the sorted run.
    Writing,
}

/// How far a sort has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SortProgress {
    /// What it is doing.
    pub stage: SortStage,
    /// Entries of this stage that are done.
    pub done: u64,
    /// All entries of this stage. 0: unknown.
    pub total: u64,
}

/// Hears how far a sort has come. `Break` stops it: it ends with [`Error::Cancelled`].
pub type OnSorting<'a> = dyn FnMut(SortProgress) -> ControlFlow<()> + 'a;

/// After so many rows the listener hears of it.
const ROWS_TOLD: u64 = 1 << 14;
/// Files that are open at once, at most, however much memory there is, and however little. Fewer
/// are merged again and again.
const INPUTS_MAX: usize = 100;
const INPUTS_MIN: usize = 4;
/// Of the files that may be open, so much become one when there are too many. More: fewer, longer
/// merges.
const MERGED_SHARE: usize = 8;

/// Tells a listener.
struct Told<'a, 'l>(&'a mut OnSorting<'l>);

impl Told<'_, '_> {
    fn tell(&mut self, stage: SortStage, done: u64, total: u64) -> Result<()> {
        match (self.0)(SortProgress { stage, done, total }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Cancelled),
        }
    }
}

/// Takes rows in any order.
pub(crate) struct Sorter<'a, 'l> {
    place: SpillPlace,
    /// Most files that are open at once.
    inputs_max: usize,
    rows: Rows,
    /// In the order of the input.
    spills: Vec<Spill>,
    prefix: CommonPrefix,
    taken: u64,
    told: Told<'a, 'l>,
}

impl<'a, 'l> Sorter<'a, 'l> {
    /// `folder`, `new_number`: where its files are, and how they are numbered. Requires: options
    /// that were checked.
    pub(crate) fn new(
        memory_bytes: usize,
        folder: OpenFolder,
        new_number: impl Fn() -> u64 + 'static,
        listener: &'a mut OnSorting<'l>,
    ) -> Self {
        let block_bytes = (memory_bytes / 1024).clamp(128, 64 << 10);
        let shape = SpillShape { block_bytes, window_bytes: 4 * block_bytes };
        let buffers_bytes = memory_bytes / 8;
        let buffer_bytes = shape.window_bytes + 2 * block_bytes;
        Sorter {
            place: SpillPlace { folder, new_number: Box::new(new_number), shape },
            inputs_max: (buffers_bytes / buffer_bytes).clamp(INPUTS_MIN, INPUTS_MAX),
            rows: Rows::new(memory_bytes - buffers_bytes),
            spills: Vec::new(),
            prefix: CommonPrefix::default(),
            taken: 0,
            told: Told(listener),
        }
    }

    /// Takes a row.
    ///
    /// # Errors
    /// `KeyTooLong`, `ValueTooLong`; `Io` if a file cannot be written. The sort cannot go on.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if key.len() > KEY_BYTES_MAX {
            return Err(Error::KeyTooLong { len: key.len(), max: KEY_BYTES_MAX });
        }
        if value.len() > VALUE_BYTES_MAX {
            return Err(Error::ValueTooLong { len: value.len(), max: VALUE_BYTES_MAX });
        }
        if !self.rows.has_room(key, value) {
            self.spill()?;
        }
        self.prefix.note(key);
        self.rows.add(key, value);
        self.taken += 1;
        match self.taken.is_multiple_of(ROWS_TOLD) {
            true => self.told.tell(SortStage::Reading, self.taken, 0),
            false => Ok(()),
        }
    }

    /// All rows, sorted. Each key's last row is kept.
    pub(crate) fn finish(mut self) -> Result<Sorted<'a, 'l>> {
        let mut rows: u64 = self.spills.iter().map(|spill| spill.rows).sum();
        rows += self.rows.len() as u64;
        let shape = self.place.shape;
        let spills = self.spills.drain(..);
        let mut sources: Vec<Source> =
            spills.map(|spill| Source::Spill(SpillCursor::new(spill, shape))).collect();
        sources.push(Source::Rows(SortedRows::new(self.rows, self.prefix.len())));
        let merge = Merge::new(sources, self.prefix.len())?;
        Ok(Sorted { merge, rows, next_told: 0, told: self.told })
    }

    /// Writes the rows in memory to a file.
    fn spill(&mut self) -> Result<()> {
        // Rows that are there have this prefix, the next one perhaps not.
        let no_rows = Rows::new(0);
        let rows = std::mem::replace(&mut self.rows, no_rows);
        let mut sorted = SortedRows::new(rows, self.prefix.len());
        let mut writer = SpillWriter::create(&self.place)?;
        while sorted.next_row() {
            let (key, value) = sorted.row();
            writer.add(key, value)?;
        }
        self.rows = sorted.into_rows();
        self.rows.clear();
        self.spills.push(writer.finish()?);
        if self.spills.len() >= self.inputs_max {
            self.merge_a_few()?;
        }
        Ok(())
    }

    /// Makes one file of the neighbours that have the fewest bytes.
    fn merge_a_few(&mut self) -> Result<()> {
        let count = (self.inputs_max / MERGED_SHARE).max(2);
        let bytes = |some: &[Spill]| some.iter().map(|spill| spill.bytes).sum::<u64>();
        let windows = self.spills.windows(count).enumerate();
        let least = windows.min_by_key(|(_, some)| bytes(some)).map_or(0, |(first, _)| first);
        let some: Vec<Spill> = self.spills.drain(least..least + count).collect();
        let total = some.iter().map(|spill| spill.rows).sum();
        let source = |spill| Source::Spill(SpillCursor::new(spill, self.place.shape));
        let mut merge = Merge::new(some.into_iter().map(source).collect(), self.prefix.len())?;
        let mut writer = SpillWriter::create(&self.place)?;
        let mut rows = 0u64;
        while let Some((key, value)) = merge.next()? {
            writer.add(key, value)?;
            rows += 1;
            if rows.is_multiple_of(ROWS_TOLD) {
                self.told.tell(SortStage::Merging, merge.passed(), total)?;
            }
        }
        self.spills.insert(least, writer.finish()?);
        Ok(())
    }
}

/// What all keys begin with.
#[derive(Default)]
struct CommonPrefix(Option<Vec<u8>>);

impl CommonPrefix {
    fn note(&mut self, key: &[u8]) {
        match &mut self.0 {
            None => self.0 = Some(key.to_vec()),
            Some(prefix) if !key.starts_with(prefix) => {
                prefix.truncate(common_prefix(prefix, key));
            }
            Some(_) => {}
        }
    }

    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, Vec::len)
    }
}

/// Rows in the order of keys, each key once.
pub(crate) struct Sorted<'a, 'l> {
    merge: Merge,
    /// All that were taken and are not replaced yet.
    rows: u64,
    /// The listener hears when so many are behind.
    next_told: u64,
    told: Told<'a, 'l>,
}

impl Sorted<'_, '_> {
    /// At least as many as there are.
    pub(crate) fn rows_max(&self) -> u64 {
        self.rows
    }

    /// The next row. None: there is none.
    pub(crate) fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let passed = self.merge.passed();
        if passed >= self.next_told {
            self.next_told = passed + ROWS_TOLD;
            self.told.tell(SortStage::Writing, passed, self.rows)?;
        }
        self.merge.next()
    }
}
