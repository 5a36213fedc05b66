//! A table: one immutable file of sorted entries, open for reading.
//! ```text
//! get(key) -> fences -> block number -> its slot --full---> block -> entry
//!                                             \--empty--> disk -> checked --^
//! ```
//! Invariant: what is in memory (index, properties, filter) was checked when the table was opened,
//! a block whenever it is read from the disk. A damaged byte is an error that names file and place.

use std::path::Path;

use trommel_filters::{AnyFilter, FilterKind, HashedKey, KeyRange, RankBounds, Trace};

use crate::entries::block::Block;
use crate::entries::compression::Dictionary;
use crate::entries::cursor::Reads;
use crate::entries::tombstones::RangeTombstones;
use crate::error::{Error, Result};
use crate::files::cache::{BlockSlots, CacheShare};
use crate::files::farewell::{Farewell, LastReader};
use crate::files::names::table_name;
use crate::files::table::file::{CheckedFile, find};
use crate::files::table::filter_section::{FilterSection, unregistered};
use crate::files::table::format::{
    Index, Properties, Section, TAG_DICTIONARY, TAG_HASHES, check_tombstones, decode_hashes,
};
use crate::files::table::named_values::NamedValues;
use crate::files::table::sub_filters::LoadedSubFilters;
use crate::files::table::writer::key_bounds;
use crate::files::value_file::ValueFile;
use crate::storage::open_files::OpenFiles;
use crate::storage::traits::ReadAt;
use crate::sync::{Arc, OnceLock};

/// The filter of a table.
pub(crate) type TableFilter = Box<dyn AnyFilter>;

/// A table that is open.
pub(crate) struct Table {
    opened: CheckedFile,
    size: u64,
    sections: Vec<Section>,
    index: Index,
    properties: Properties,
    tombstones: RangeTombstones,
    values: NamedValues,
    /// The files of these, once they are held.
    held_values: OnceLock<Vec<Arc<ValueFile>>>,
    filter: Option<TableFilter>,
    /// Of a filter in parts, which is not in `filter` then.
    sub_filters: Option<LoadedSubFilters>,
    /// The name or the tag of its filter, of an unregistered kind.
    unregistered: Option<String>,
    blocks: BlockSlots,
    farewell: Farewell,
}

impl Table {
    /// Opens a table: reads and checks all but its blocks, and of its filters the one of kind
    /// `filter` alone.
    pub(crate) fn open(
        files: &Arc<OpenFiles>,
        file: u64,
        cache: Arc<CacheShare>,
        filter: Option<&'static dyn FilterKind>,
    ) -> Result<Arc<Table>> {
        let (bytes, path) = files.file(&table_name(file))?;
        let size = bytes.size().map_err(Error::io(&path))?;
        let mut opened = CheckedFile::new(file, path, bytes);
        let sections = opened.sections(size)?;
        let index = opened.index(&sections)?;
        let (properties, at) = opened.properties(&sections)?;
        opened.check_name(&properties)?;
        if properties.entries != index.entry_count() {
            return Err(opened.corrupt(at, "index and properties count different entries"));
        }
        opened.read_dictionary(&sections)?;
        let tombstones = opened.tombstones(&sections)?;
        check_tombstones(&properties, &tombstones).map_err(|what| opened.corrupt(at, what))?;
        let values = opened.values(&sections)?;
        let filters = FilterSection::all(&opened, &sections);
        let of_kind = |kind| filters.iter().find(|section| section.is_of(kind));
        let (filter, sub_filters) = match filter.and_then(|kind| Some((kind, of_kind(kind)?))) {
            None => (None, None),
            Some((kind, at)) => match kind.sub_filters() {
                Some(parts) => (None, Some(LoadedSubFilters::open(&opened, (kind, parts), at)?)),
                None => (Some(at.load(&opened, kind)?), None),
            },
        };
        let unregistered = unregistered(&filters);
        let blocks = BlockSlots::new(cache, files.life(), index.block_count(), true);
        Ok(Arc::new(Table {
            opened,
            size,
            sections,
            index,
            properties,
            tombstones,
            values,
            held_values: OnceLock::new(),
            filter,
            sub_filters,
            unregistered,
            blocks,
            farewell: Farewell::default(),
        }))
    }

    /// The file's number.
    pub(crate) fn file(&self) -> u64 {
        self.opened.file
    }

    /// Where it is read.
    pub(crate) fn reader(&self) -> &Arc<dyn ReadAt> {
        &self.opened.bytes
    }

    /// It leaves the tree: its last holder tells so when it lets go.
    pub(crate) fn leave(&self, told: Arc<dyn LastReader>) {
        self.farewell.tell(told);
    }

    pub(crate) fn path(&self) -> &Path {
        &self.opened.path
    }

    pub(crate) fn first_key(&self) -> &[u8] {
        &self.properties.first_key
    }

    pub(crate) fn last_key(&self) -> &[u8] {
        &self.properties.last_key
    }

    /// Its keys, and those that it deletes, lie in [from, to).
    pub(crate) fn key_bounds(&self) -> (Vec<u8>, Vec<u8>) {
        key_bounds(&self.properties, &self.tombstones)
    }

    /// The deleted ranges.
    #[inline]
    pub(crate) fn tombstones(&self) -> &RangeTombstones {
        &self.tombstones
    }

    /// The value files that its entries refer to.
    pub(crate) fn named_values(&self) -> &NamedValues {
        &self.values
    }

    /// Holds its value files as long as it is open.
    pub(crate) fn hold_values(&self, files: Vec<Arc<ValueFile>>) {
        let _ = self.held_values.set(files);
    }

    /// Its value files, if it holds them.
    pub(crate) fn held_values(&self) -> &[Arc<ValueFile>] {
        self.held_values.get().map_or(&[], |held| held)
    }

    pub(crate) fn entry_count(&self) -> u64 {
        self.properties.entries
    }

    pub(crate) fn block_count(&self) -> usize {
        self.index.block_count()
    }

    /// The file's size.
    pub(crate) fn bytes(&self) -> u64 {
        self.size
    }

    /// What the table knows of its entries.
    pub(crate) fn properties(&self) -> &Properties {
        &self.properties
    }

    /// None: the table has no filter, it was not asked for, or it comes and goes in parts.
    #[inline]
    pub(crate) fn filter(&self) -> Option<&TableFilter> {
        self.filter.as_ref()
    }

    /// The name or the tag of its filter, if that is of an unregistered kind. Such a table is read
    /// without it.
    pub(crate) fn unregistered_filter(&self) -> Option<&str> {
        self.unregistered.as_deref()
    }

    /// False: the table surely has no entry of the key.
    #[inline]
    pub(crate) fn may_contain(&self, key: &HashedKey<'_>) -> bool {
        match (&self.filter, &self.sub_filters) {
            (Some(filter), _) => filter.may_contain_hashed(key),
            (None, Some(sub_filters)) => sub_filters.may_contain(key),
            (None, None) => true,
        }
    }

    /// False: the table surely has no key in the range.
    #[inline]
    pub(crate) fn may_overlap(&self, range: &KeyRange<'_>) -> bool {
        match (&self.filter, &self.sub_filters) {
            (Some(filter), _) => filter.may_overlap(range),
            (None, Some(sub_filters)) if range.upper() == Some(range.lower()) => {
                sub_filters.may_contain(&HashedKey::new(range.lower()))
            }
            (None, _) => true,
        }
    }

    /// The hash of each user key, in order, read from disk. None: it was written without. An error:
    /// they are damaged, or not as many as the table has keys.
    pub(crate) fn key_hashes(&self) -> Result<Option<Vec<u64>>> {
        let Some(at) = find(&self.sections, TAG_HASHES) else { return Ok(None) };
        let hashes = decode_hashes(&self.opened.section(at)?, self.entry_count());
        hashes.map(Some).map_err(self.opened.damage(at.offset))
    }

    /// Has `trace` see the memory that a filter reads to answer for a key.
    pub(crate) fn trace_filter<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) {
        match (&self.filter, &self.sub_filters) {
            (Some(filter), _) => filter.may_contain_traced(key, trace),
            (None, Some(sub_filters)) => sub_filters.may_contain_traced(key, trace),
            (None, None) => true,
        };
    }

    /// The memory that fences, deleted ranges, block places, the dictionary and the cache's slots
    /// take.
    pub(crate) fn fence_bytes(&self) -> usize {
        let dictionary = self.opened.dictionary.as_ref().map_or(0, Dictionary::heap_bytes);
        let blocks = self.blocks.heap_bytes();
        self.index.heap_bytes() + self.tombstones.heap_bytes() + blocks + dictionary
    }

    /// The bytes of its dictionary in the file. 0: it has none.
    pub(crate) fn dictionary_bytes(&self) -> u64 {
        find(&self.sections, TAG_DICTIONARY).map_or(0, |section| section.len)
    }

    /// The memory that the filter takes.
    pub(crate) fn filter_bytes(&self) -> usize {
        let sub_filters = self.sub_filters.as_ref().map_or(0, LoadedSubFilters::memory_bytes);
        sub_filters + self.filter.as_ref().map_or(0, |filter| filter.size_bytes())
    }

    /// Between how many entries and how many are before `key`: exact but for the key's block.
    pub(crate) fn rank_bounds(&self, key: &[u8]) -> RankBounds {
        if key <= self.first_key() || self.entry_count() == 0 {
            return RankBounds::exact(0);
        }
        if key > self.last_key() {
            return RankBounds::exact(self.entry_count());
        }
        let (before, inside) = self.index.entries(self.first_block_of(key));
        RankBounds { least: before, most: before + inside }
    }

    /// The first block that may hold `key`; all entries of earlier ones are before it.
    #[inline]
    pub(crate) fn first_block_of(&self, key: &[u8]) -> usize {
        self.index.fences.find(key)
    }

    /// The first and the last block that may hold `key`.
    pub(crate) fn blocks_of(&self, key: &[u8]) -> (usize, usize) {
        (self.first_block_of(key), self.index.fences.last_of(key))
    }

    /// A block, from the cache or from the disk. Requires: there is such a block.
    #[inline]
    pub(crate) fn block(
        &self,
        number: usize,
        fill_cache: bool,
        reads: &mut Reads,
    ) -> Result<Block> {
        reads.blocks += 1;
        if let Some(block) = self.blocks.get(number) {
            return Ok(block);
        }
        if fill_cache {
            self.missing_block(number, reads)
        } else {
            self.block_past_cache(number, reads)
        }
    }

    /// How long a block is on disk. Requires: there is such a block.
    pub(crate) fn block_len(&self, number: usize) -> u64 {
        self.index.block(number).1
    }

    /// A block, read anew and checked. Requires: there is such a block.
    #[cold]
    pub(crate) fn block_past_cache(&self, number: usize, reads: &mut Reads) -> Result<Block> {
        let block = self.opened.block(&self.index, number)?;
        reads.disk_reads += 1;
        reads.bytes += self.index.block(number).1;
        Ok(block)
    }
}

pub(crate) mod ahead;
mod batch;
mod check;
pub(crate) mod cursor;
mod file;
mod filter_section;
pub(crate) mod format;
pub(crate) mod made_of;
pub(crate) mod named_values;
pub(crate) mod parts;
pub(crate) mod sub_filters;
pub(crate) mod writer;

#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod zstd_tests;
