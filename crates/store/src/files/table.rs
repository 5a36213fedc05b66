//! A table: one immutable file of sorted entries, open for reading.
//! ```text
//! get(key) -> fences -> block number -> its slot --full---> block -> entry
//!                                             \--empty--> disk -> checked --^
//! ```
//! Invariant: index, properties and filter were checked when the table was opened. A block is
//! checked whenever it is read from the disk. A damaged byte is an error with file and offset.

use std::path::Path;

use trommel_filters::{AnyFilter, FilterKind, HashedKey, KeyRange, RankBounds, Trace};

use crate::entries::block::Block;
use crate::entries::compression::Dictionary;
use crate::entries::cursor::Reads;
use crate::entries::tombstones::RangeTombstones;
use crate::error::{Error, Result};
use crate::files::cache::{BlockSlots, CacheShare};
use crate::files::drop_notice::{DropListener, DropNotice};
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

/// An open table.
pub(crate) struct Table {
    opened: CheckedFile,
    size: u64,
    sections: Vec<Section>,
    index: Index,
    properties: Properties,
    tombstones: RangeTombstones,
    values: NamedValues,
    /// The value files that it refers to, once they are held.
    held_values: OnceLock<Vec<Arc<ValueFile>>>,
    filter: Option<TableFilter>,
    /// A filter in parts. `filter` is `None` then.
    sub_filters: Option<LoadedSubFilters>,
    /// The name or the tag of its filter, if the kind is not registered.
    unregistered: Option<String>,
    blocks: BlockSlots,
    drop_notice: DropNotice,
}

impl Table {
    /// Opens a table. Reads and checks everything but its blocks and the filters of other kinds
    /// than `filter`.
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
            drop_notice: DropNotice::default(),
        }))
    }

    /// The file's number.
    pub(crate) fn file(&self) -> u64 {
        self.opened.file
    }

    /// The reader of its file.
    pub(crate) fn reader(&self) -> &Arc<dyn ReadAt> {
        &self.opened.bytes
    }

    /// Marks that the table leaves the tree. Its last holder notifies `listener` when it is
    /// dropped.
    pub(crate) fn leave(&self, listener: Arc<dyn DropListener>) {
        self.drop_notice.register(listener);
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

    /// The bounds [from, to) of its keys and of the ranges that it deletes.
    pub(crate) fn key_bounds(&self) -> (Vec<u8>, Vec<u8>) {
        key_bounds(&self.properties, &self.tombstones)
    }

    /// The range tombstones.
    #[inline]
    pub(crate) fn tombstones(&self) -> &RangeTombstones {
        &self.tombstones
    }

    /// The value files that its entries refer to.
    pub(crate) fn named_values(&self) -> &NamedValues {
        &self.values
    }

    /// Keeps these value files as long as the table is open.
    pub(crate) fn hold_values(&self, files: Vec<Arc<ValueFile>>) {
        let _ = self.held_values.set(files);
    }

    /// The value files that it keeps.
    pub(crate) fn held_values(&self) -> &[Arc<ValueFile>] {
        self.held_values.get().map_or(&[], |held| held)
    }

    pub(crate) fn entry_count(&self) -> u64 {
        self.properties.entries
    }

    pub(crate) fn block_count(&self) -> usize {
        self.index.block_count()
    }

    /// The file's size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.size
    }

    /// Summary of its entries.
    pub(crate) fn properties(&self) -> &Properties {
        &self.properties
    }

    /// The filter. `None`: the table has none of the requested kind, or it is loaded in parts.
    #[inline]
    pub(crate) fn filter(&self) -> Option<&TableFilter> {
        self.filter.as_ref()
    }

    /// The name or the tag of its filter, if the kind is not registered. Such a table is read
    /// without a filter.
    pub(crate) fn unregistered_filter(&self) -> Option<&str> {
        self.unregistered.as_deref()
    }

    /// False: the table has no entry of the key.
    #[inline]
    pub(crate) fn may_contain(&self, key: &HashedKey<'_>) -> bool {
        match (&self.filter, &self.sub_filters) {
            (Some(filter), _) => filter.may_contain_hashed(key),
            (None, Some(sub_filters)) => sub_filters.may_contain(key),
            (None, None) => true,
        }
    }

    /// False: the table has no key in the range.
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

    /// Reads the hash of each user key, in order, from the disk. `None`: the table was written
    /// without. Returns an error if they are damaged or their number is wrong.
    pub(crate) fn key_hashes(&self) -> Result<Option<Vec<u64>>> {
        let Some(at) = find(&self.sections, TAG_HASHES) else { return Ok(None) };
        let hashes = decode_hashes(&self.opened.section(at)?, self.entry_count());
        hashes.map(Some).map_err(self.opened.damage(at.offset))
    }

    /// Shows `trace` the memory that the filter reads to answer for a key.
    pub(crate) fn trace_filter<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) {
        match (&self.filter, &self.sub_filters) {
            (Some(filter), _) => filter.may_contain_traced(key, trace),
            (None, Some(sub_filters)) => sub_filters.may_contain_traced(key, trace),
            (None, None) => true,
        };
    }

    /// The memory of fences, range tombstones, block offsets, the dictionary and the cache slots,
    /// in bytes.
    pub(crate) fn fence_bytes(&self) -> usize {
        let dictionary = self.opened.dictionary.as_ref().map_or(0, Dictionary::heap_bytes);
        let blocks = self.blocks.heap_bytes();
        self.index.heap_bytes() + self.tombstones.heap_bytes() + blocks + dictionary
    }

    /// The length of its dictionary in the file, in bytes. 0: it has none.
    pub(crate) fn dictionary_bytes(&self) -> u64 {
        find(&self.sections, TAG_DICTIONARY).map_or(0, |section| section.len)
    }

    /// The memory of the filter, in bytes.
    pub(crate) fn filter_bytes(&self) -> usize {
        let sub_filters = self.sub_filters.as_ref().map_or(0, LoadedSubFilters::memory_bytes);
        sub_filters + self.filter.as_ref().map_or(0, |filter| filter.size_bytes())
    }

    /// Returns bounds on the number of entries before `key`. Only the entries of the key's block
    /// make them inexact.
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

    /// Returns the first block that may contain `key`. All entries of earlier blocks are before it.
    #[inline]
    pub(crate) fn first_block_of(&self, key: &[u8]) -> usize {
        self.index.fences.find(key)
    }

    /// Returns the first and the last block that may contain `key`.
    pub(crate) fn blocks_of(&self, key: &[u8]) -> (usize, usize) {
        (self.first_block_of(key), self.index.fences.last_of(key))
    }

    /// Returns a block, from the cache or the disk. Requires: the block exists.
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

    /// The length of a block on disk, in bytes. Requires: the block exists.
    pub(crate) fn block_len(&self, number: usize) -> u64 {
        self.index.block(number).1
    }

    /// Reads and checks a block, past the cache. Requires: the block exists.
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
