//! An external merge sort of rows, in bounded memory.
//! ```text
//! row, row, ... -> rows in memory --full--> sorted -> spill, spill, ... --too many--> some are
//!                       |                                 |               merged into one
//!                       '---- sorted, at the end ---------+-> merge -> rows in order
//! ```
//! It uses folders and files, but no tree. So it lies here, below everything that uses a store's
//! state.
//!
//! Invariants: each key comes once, with its last row. Spills keep the order of the input, and only
//! neighbours are merged, so later rows replace earlier ones. Rows in memory and the buffers of all
//! spills stay within the given memory. At most `inputs_max` files are open. However a sort ends,
//! its files are gone afterwards.

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

/// How unsorted entries are sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortOptions {
    /// Memory for rows and buffers, in bytes; at least 16 KiB. More: fewer and larger files, which
    /// are merged faster. What does not fit is written to files. Up to about 100 files, each row is
    /// written at most once.
    pub memory_bytes: usize,
    /// The folder for these files, which must exist. `None`: the store's folder. A folder on
    /// another disk relieves the store's disk.
    pub folder: Option<PathBuf>,
}

impl Default for SortOptions {
    fn default() -> Self {
        SortOptions { memory_bytes: 256 << 20, folder: None }
    }
}

/// The minimum memory of a sort, in bytes.
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

/// The stage of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SortStage {
    /// Taking entries. Their total is unknown.
    Reading,
    /// Merging some files into one, because there are too many.
    Merging,
    /// Writing the sorted run.
    Writing,
}

/// The progress of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SortProgress {
    /// The current stage.
    pub stage: SortStage,
    /// Entries of this stage that are done.
    pub done: u64,
    /// All entries of this stage. 0: unknown.
    pub total: u64,
}

/// A listener for the progress of a sort. `Break` stops the sort, which then fails with
/// [`Error::Cancelled`].
pub type OnSorting<'a> = dyn FnMut(SortProgress) -> ControlFlow<()> + 'a;

/// The listener is called after this many rows.
const ROWS_PER_REPORT: u64 = 1 << 14;
/// Bounds on the files that are open at once, whatever the memory. With fewer files, rows are
/// merged more often.
const INPUTS_MAX: usize = 100;
const INPUTS_MIN: usize = 4;
/// One part in this many of the files that may be open is merged when there are too many. A lower
/// value makes fewer, longer merges.
const MERGED_SHARE: usize = 8;

/// Calls a listener.
struct ProgressListener<'a, 'l>(&'a mut OnSorting<'l>);

impl ProgressListener<'_, '_> {
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
    /// Maximum number of open files.
    inputs_max: usize,
    rows: Rows,
    /// In the order of the input.
    spills: Vec<Spill>,
    prefix: CommonPrefix,
    taken: u64,
    listener: ProgressListener<'a, 'l>,
}

impl<'a, 'l> Sorter<'a, 'l> {
    /// Creates a sorter that writes its files to `folder`, with numbers from `new_number`.
    /// Requires: the options were checked.
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
            listener: ProgressListener(listener),
        }
    }

    /// Takes a row.
    ///
    /// # Errors
    /// `KeyTooLong`, `ValueTooLong`; `Io` if a file cannot be written. After an error the sorter is
    /// unusable.
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
        match self.taken.is_multiple_of(ROWS_PER_REPORT) {
            true => self.listener.tell(SortStage::Reading, self.taken, 0),
            false => Ok(()),
        }
    }

    /// Returns all rows, sorted. Of each key the last row is kept.
    pub(crate) fn finish(mut self) -> Result<Sorted<'a, 'l>> {
        let mut rows: u64 = self.spills.iter().map(|spill| spill.rows).sum();
        rows += self.rows.len() as u64;
        let shape = self.place.shape;
        let spills = self.spills.drain(..);
        let mut sources: Vec<Source> =
            spills.map(|spill| Source::Spill(SpillCursor::new(spill, shape))).collect();
        sources.push(Source::Rows(SortedRows::new(self.rows, self.prefix.len())));
        let merge = Merge::new(sources, self.prefix.len())?;
        Ok(Sorted { merge, rows, next_report: 0, listener: self.listener })
    }

    /// Writes the rows in memory to a file.
    fn spill(&mut self) -> Result<()> {
        // All present rows have this prefix, but the next row may not.
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

    /// Merges the neighbouring files with the fewest bytes into one.
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
            if rows.is_multiple_of(ROWS_PER_REPORT) {
                self.listener.tell(SortStage::Merging, merge.passed(), total)?;
            }
        }
        self.spills.insert(least, writer.finish()?);
        Ok(())
    }
}

/// The common prefix of all keys.
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

/// Rows in key order, each key once.
pub(crate) struct Sorted<'a, 'l> {
    merge: Merge,
    /// The number of rows taken, without those that were replaced so far.
    rows: u64,
    /// The listener is called next when this many rows are done.
    next_report: u64,
    listener: ProgressListener<'a, 'l>,
}

impl Sorted<'_, '_> {
    /// An upper bound on the number of rows.
    pub(crate) fn rows_max(&self) -> u64 {
        self.rows
    }

    /// Returns the next row. `None`: there are no more.
    pub(crate) fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let passed = self.merge.passed();
        if passed >= self.next_report {
            self.next_report = passed + ROWS_PER_REPORT;
            self.listener.tell(SortStage::Writing, passed, self.rows)?;
        }
        self.merge.next()
    }
}
