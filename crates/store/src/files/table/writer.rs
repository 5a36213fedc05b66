//! Writes a table: sorted entries in, a file and its summary out.
//! ```text
//! add -> block --full--> sealed -> buffer --full--> file        (its keys -> filter)
//! finish -> filter, index, properties, footer -> file -> sync
//! ```
//! Invariant: entries are added in order. A file without its footer is not a table, so nothing is
//! readable until `finish` returns.

use std::path::PathBuf;
use std::time::Instant;

use trommel_filters::{AnyFilterBuilder, FilterKind, FilterOptions, HashUse, KeyList, hash_key};

use crate::entries::block::{BlockBuilder, BlockPlace, seal};
use crate::entries::checksum;
use crate::entries::compression::{Compression, EncoderDictionary, Packer, forms};
use crate::entries::entry::{Entry, Sequence, order};
use crate::entries::keys::successor;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::tombstones::RangeTombstones;
use crate::error::{Error, Result};
use crate::files::fences::separator;
use crate::files::names::table_name;
use crate::files::table::format::{
    IndexBuilder, Properties, Section, TAG_DICTIONARY, TAG_HASHES, TAG_INDEX, TAG_MADE_OF,
    TAG_PROPERTIES, TAG_TOMBSTONES, TAG_VALUES, VERSION, VERSION_WITHOUT_ZSTD, encode_footer,
    encode_hashes, filter_head, filter_tag,
};
use crate::files::table::made_of::MadeOf;
use crate::files::table::named_values::NamedValues;
use crate::storage::io_mode::Access;
use crate::storage::open_folder::OpenFolder;
use crate::storage::traits::Append;
use crate::sync::Arc;

/// How tables are written.
#[derive(Clone, Debug)]
pub(crate) struct TableOptions {
    /// A block ends once it has this many bytes.
    pub(crate) block_bytes: usize,
    /// How blocks are compressed, where that pays.
    pub(crate) compression: Compression,
    /// The dictionary to compress with, if there is one.
    pub(crate) dictionary: Option<Arc<EncoderDictionary>>,
    /// The filter to build, if any.
    pub(crate) filter: Option<FilterOptions>,
    /// Whether to store a hash of each user key.
    pub(crate) hashes: bool,
    /// The key space of the tables.
    pub(crate) keyspace: KeyspaceId,
}

/// A summary of the written table.
#[derive(Clone, Debug)]
pub(crate) struct TableSummary {
    /// The bounds [from, to) of its keys and of the ranges that it deletes.
    pub(crate) from: Vec<u8>,
    pub(crate) to: Vec<u8>,
    pub(crate) entries: u64,
    /// The file's size in bytes.
    pub(crate) bytes: u64,
    /// The least and the greatest sequence number.
    pub(crate) sequences: (Sequence, Sequence),
    /// The seconds spent on the filter.
    pub(crate) filter_seconds: f64,
}

/// Returns the bounds [from, to) of a table's keys and of the ranges that it deletes.
pub(crate) fn key_bounds(
    properties: &Properties,
    tombstones: &RangeTombstones,
) -> (Vec<u8>, Vec<u8>) {
    let (from, to) = (&properties.first_key[..], successor(&properties.last_key));
    let from = tombstones.begin().map_or(from, |begin| begin.min(from));
    let to = match tombstones.end() {
        Some(end) if properties.entries == 0 || *end > *to => end.to_vec(),
        _ => to,
    };
    (from.to_vec(), to)
}

/// Feeds keys to a filter one block at a time, so that the clock is rarely read.
struct FilterFeed {
    kind: &'static dyn FilterKind,
    builder: Box<dyn AnyFilterBuilder>,
    keys: KeyList,
    seconds: f64,
}

impl FilterFeed {
    fn new(options: &FilterOptions) -> Self {
        let (keys, builder) = (KeyList::default(), options.builder());
        FilterFeed { kind: options.kind, builder, keys, seconds: 0.0 }
    }

    /// Fails if the builder, perhaps a user's own, refuses a key.
    fn end_block(&mut self) -> Result<()> {
        let start = Instant::now();
        let added = self.builder.add_batch(&self.keys);
        self.keys.clear();
        self.seconds += start.elapsed().as_secs_f64();
        added.map_err(|error| Error::Option {
            option: "guard".into(),
            problem: format!("the filter '{}' refuses keys in order: {error}", self.kind.name()),
        })
    }

    /// Returns the filter's bytes, and the seconds spent on it.
    fn finish(self) -> (Vec<u8>, f64) {
        let start = Instant::now();
        let bytes = self.builder.finish();
        (bytes, self.seconds + start.elapsed().as_secs_f64())
    }
}

/// Writes one table. If dropped before `finish`, it leaves a file that is not a table.
pub(crate) struct TableWriter {
    file: Box<dyn Append>,
    path: PathBuf,
    options: TableOptions,
    block: BlockBuilder,
    packer: Packer,
    /// The greatest form number of all blocks.
    newest_form: u8,
    /// The separator of the block that is being built, and whether it continues the last key.
    separator: Vec<u8>,
    continued: bool,
    /// The last key of the last complete block.
    block_end_key: Vec<u8>,
    index: IndexBuilder,
    filter: Option<FilterFeed>,
    /// A hash of each user key, back to back.
    hashes: Vec<u8>,
    properties: Properties,
    values: NamedValues,
    made_of: MadeOf,
    last_sequence: Sequence,
    sections: Vec<Section>,
    /// What was sealed but not appended yet.
    buffer: Vec<u8>,
    appended: u64,
}

impl TableWriter {
    const BUFFER_BYTES: usize = 1 << 20;

    /// Creates the file.
    pub(crate) fn create(
        folder: &OpenFolder,
        number: u64,
        access: Access,
        options: &TableOptions,
    ) -> Result<Self> {
        let name = table_name(number);
        let (file, path) = (folder.create_with(&name, access)?, folder.path_of(&name));
        Ok(TableWriter {
            file,
            path,
            options: options.clone(),
            block: BlockBuilder::new(),
            packer: Packer::new(options.compression, options.dictionary.clone()),
            newest_form: forms::PLAIN,
            separator: Vec::new(),
            continued: false,
            block_end_key: Vec::new(),
            index: IndexBuilder::default(),
            filter: options.filter.as_ref().map(FilterFeed::new),
            hashes: Vec::new(),
            properties: Properties::of_file(number, options.keyspace),
            values: NamedValues::default(),
            made_of: MadeOf::default(),
            last_sequence: Sequence::MAX,
            sections: Vec::new(),
            buffer: Vec::new(),
            appended: 0,
        })
    }

    /// Adds an entry. Fails if it does not follow the previous one in the order of entries, which
    /// checksums would not reveal.
    pub(crate) fn add(&mut self, entry: &Entry<'_>) -> Result<()> {
        let (first, new_block) = (self.properties.entries == 0, self.block.is_empty());
        let last_key = if new_block { &self.block_end_key } else { self.block.last_key() };
        let in_order = order((last_key, self.last_sequence), (entry.key, entry.sequence)).is_lt();
        if !first && !in_order {
            let what = format!("no place for key {}: out of order", entry.key.escape_ascii());
            return Err(Error::corrupt(&self.path, self.offset(), what));
        }
        let is_new_key = first || last_key != entry.key;
        if self.options.hashes && is_new_key {
            let hash = hash_key(entry.key, HashUse::Chucky);
            self.hashes.extend_from_slice(&hash.to_le_bytes());
        }
        if first {
            self.properties.first_key = entry.key.to_vec();
        } else if new_block {
            self.continued = last_key == entry.key;
            let is_continued = self.continued;
            self.separator =
                if is_continued { entry.key.to_vec() } else { separator(last_key, entry.key) };
        }
        self.block.add(entry);
        if let Some(filter) = &mut self.filter {
            filter.keys.push(entry.key);
        }
        self.properties.count(entry);
        if entry.kind.is_apart() {
            self.count_value(entry)?;
        }
        self.last_sequence = entry.sequence;
        if self.block.size_bytes() >= self.options.block_bytes { self.end_block() } else { Ok(()) }
    }

    /// Fails if the reference is invalid.
    #[cold]
    fn count_value(&mut self, entry: &Entry<'_>) -> Result<()> {
        match entry.value_ref() {
            None => {}
            Some(Ok(at)) => self.values.count(&at),
            Some(Err(wrong)) => {
                let what = format!("the value of {}: {wrong}", entry.key.escape_ascii());
                return Err(Error::corrupt(&self.path, self.offset(), what));
            }
        }
        Ok(())
    }

    /// The file's size if it ended here, without its filter.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.offset() + self.block.size_bytes() as u64 + self.index.size_bytes() as u64
    }

    /// The key of the first entry. Requires: there is one.
    pub(crate) fn first_key(&self) -> &[u8] {
        &self.properties.first_key
    }

    /// Sets the tables that this one is made of.
    pub(crate) fn set_made_of(&mut self, made_of: MadeOf) {
        self.made_of = made_of;
    }

    pub(crate) fn entry_count(&self) -> u64 {
        self.properties.entries
    }

    /// Completes the file and syncs it. Its name is durable after a sync of the folder. Requires:
    /// there is an entry or a range tombstone.
    pub(crate) fn finish(mut self, tombstones: &RangeTombstones) -> Result<TableSummary> {
        assert!(self.entry_count() > 0 || !tombstones.is_empty(), "a table without entries");
        self.properties.last_key =
            if self.block.is_empty() { &self.block_end_key } else { self.block.last_key() }
                .to_vec();
        self.properties.count_tombstones(tombstones);
        if !self.block.is_empty() {
            self.end_block()?;
        }
        let mut filter_seconds = 0.0;
        if let Some(filter) = self.filter.take() {
            let (tag, mut section) = (filter_tag(filter.kind), filter_head(filter.kind));
            let (bytes, seconds) = filter.finish();
            filter_seconds = seconds;
            if section.is_empty() {
                section = bytes;
            } else {
                section.extend_from_slice(&bytes);
            }
            self.add_section(tag, true, &section)?;
        }
        if self.options.hashes {
            let hashes = encode_hashes(&std::mem::take(&mut self.hashes));
            self.add_section(TAG_HASHES, true, &hashes)?;
        }
        if !tombstones.is_empty() {
            self.add_section(TAG_TOMBSTONES, false, &tombstones.encode())?;
        }
        if !self.values.is_empty() {
            self.add_section(TAG_VALUES, false, &self.values.encode())?;
        }
        if !self.made_of.is_empty() {
            self.add_section(TAG_MADE_OF, true, &self.made_of.encode())?;
        }
        self.add_dictionary()?;
        let index = std::mem::take(&mut self.index).finish();
        self.add_section(TAG_INDEX, false, &index)?;
        self.add_section(TAG_PROPERTIES, false, &self.properties.encode())?;
        let needs_zstd = self.newest_form >= forms::ZSTD;
        let version = if needs_zstd { VERSION } else { VERSION_WITHOUT_ZSTD };
        self.buffer.extend_from_slice(&encode_footer(&self.sections, version));
        self.append_buffer()?;
        self.file.sync().map_err(Error::io(&self.path))?;
        let bytes = self.offset();
        let (from, to) = key_bounds(&self.properties, tombstones);
        let Properties { entries, sequences, .. } = self.properties;
        Ok(TableSummary { from, to, entries, bytes, sequences, filter_seconds })
    }

    /// The file offset of the next byte.
    fn offset(&self) -> u64 {
        self.appended + self.buffer.len() as u64
    }

    fn end_block(&mut self) -> Result<()> {
        let entries = self.block.entry_count() as u64;
        self.block_end_key.clear();
        self.block_end_key.extend_from_slice(self.block.last_key());
        let start = self.offset();
        let place = BlockPlace { file: self.properties.file, offset: start };
        let form = seal(&self.block.finish(), &mut self.packer, place, &mut self.buffer);
        self.newest_form = self.newest_form.max(form);
        self.index.add(self.offset() - start, entries, &self.separator, self.continued);
        if let Some(filter) = &mut self.filter {
            filter.end_block()?;
        }
        if self.buffer.len() >= Self::BUFFER_BYTES { self.append_buffer() } else { Ok(()) }
    }

    /// Adds the dictionary, if a block needs it.
    fn add_dictionary(&mut self) -> Result<()> {
        if self.newest_form < forms::ZSTD_WITH_DICTIONARY {
            return Ok(());
        }
        let dictionary = self.options.dictionary.clone().expect("a block was packed with it");
        self.add_section(TAG_DICTIONARY, false, dictionary.bytes())
    }

    fn append_buffer(&mut self) -> Result<()> {
        self.file.append(&self.buffer).map_err(Error::io(&self.path))?;
        self.appended += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn add_section(&mut self, tag: u16, optional: bool, bytes: &[u8]) -> Result<()> {
        let (offset, len) = (self.offset(), bytes.len() as u64);
        let checksum = checksum::crc32c(bytes);
        self.sections.push(Section { tag, optional, offset, len, checksum });
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= Self::BUFFER_BYTES { self.append_buffer() } else { Ok(()) }
    }
}
