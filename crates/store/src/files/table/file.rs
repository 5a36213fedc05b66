//! A table's file. Everything that is read from it is checked first.
//! ```text
//! tail  -> sections: index, properties, deleted ranges, filter    one checksum for each
//! index -> blocks                                                 likewise, over the place too
//! ```
//! Invariants: everything returned has passed its checksum. Damage is an error with file and
//! offset.

use std::path::PathBuf;

use trommel_filters::Corrupt;

use crate::entries::block::{Block, BlockPlace, unseal};
use crate::entries::checksum;
use crate::entries::compression::{DICTIONARY_BYTES_MAX, Dictionary, Unreadable};
use crate::entries::tombstones::RangeTombstones;
use crate::error::{Error, Result};
use crate::files::names::table_name;
use crate::files::table::format::{
    Index, LIST_LEN_MAX, Properties, Section, TAG_DICTIONARY, TAG_INDEX, TAG_MADE_OF,
    TAG_PROPERTIES, TAG_TOMBSTONES, TAG_VALUES, TAGS_READ, TAIL_SIZE, VERSION, VERSIONS,
    decode_sections, decode_tail, section_name,
};
use crate::files::table::made_of::MadeOf;
use crate::files::table::named_values::NamedValues;
use crate::storage::read_queue::ReadBuffer;
use crate::storage::traits::{ReadAt, hole_bytes_above};
use crate::sync::Arc;

/// Maximum bytes of holes in a section, so that memory is bounded by what was written.
const HOLES_BYTES_MAX: u64 = 16 << 20;

/// A file, with its number for checksums and its path for errors.
pub(super) struct CheckedFile {
    pub(super) file: u64,
    pub(super) path: PathBuf,
    pub(super) bytes: Arc<dyn ReadAt>,
    /// The dictionary of its blocks, once it was read.
    pub(super) dictionary: Option<Dictionary>,
}

impl CheckedFile {
    /// Wraps a file of which nothing was read yet.
    pub(super) fn new(file: u64, path: PathBuf, bytes: Arc<dyn ReadAt>) -> Self {
        CheckedFile { file, path, bytes, dictionary: None }
    }

    pub(super) fn fill(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.bytes.read_at(offset, buffer).map_err(|error| self.failed(offset, error))
    }

    /// Returns the error of a failed read at `offset`.
    pub(super) fn failed(&self, offset: u64, error: std::io::Error) -> Error {
        match error.kind() {
            std::io::ErrorKind::UnexpectedEof => self.corrupt(offset, "the file ends too early"),
            // Files may be closed, and are reopened by their names.
            std::io::ErrorKind::NotFound => {
                Error::needed(&self.path, "it was there when the store was opened")(error)
            }
            _ => Error::io(&self.path)(error),
        }
    }

    pub(super) fn read(&self, offset: u64, len: u64) -> Result<ReadBuffer> {
        let too_long = |_| self.corrupt(offset, "a length beyond memory");
        let len = usize::try_from(len).map_err(too_long)?;
        self.bytes.read(offset, len).map_err(|error| self.failed(offset, error))
    }

    pub(super) fn corrupt(&self, offset: u64, what: impl Into<String>) -> Error {
        Error::corrupt(&self.path, offset, what)
    }

    /// Returns the error for damage within bytes that were read from `offset` on.
    pub(super) fn damage(&self, offset: u64) -> impl FnOnce(Corrupt) -> Error {
        move |Corrupt { at, what }| self.corrupt(offset + at as u64, what)
    }

    pub(super) fn checked(&self, section: &Section, bytes: &[u8]) -> Result<()> {
        if checksum::crc32c(bytes) == section.checksum {
            return Ok(());
        }
        let what = format!("the checksum of the {} does not match", section_name(section.tag));
        Err(self.corrupt(section.offset, what))
    }

    pub(super) fn section(&self, section: &Section) -> Result<ReadBuffer> {
        self.believe(section)?;
        let bytes = self.read(section.offset, section.len)?;
        self.checked(section, &bytes)?;
        Ok(bytes)
    }

    /// Fails if most of a section was never written, since a file may claim any length. Called
    /// before memory is allocated for the section.
    pub(super) fn believe(&self, section: &Section) -> Result<()> {
        let (offset, end) = (section.offset, section.offset + section.len);
        let holes = hole_bytes_above(HOLES_BYTES_MAX, &*self.bytes, offset..end);
        if let Some(holes) = holes.map_err(Error::io(&self.path))? {
            let what = format!("{holes} bytes of the {} are holes", section_name(section.tag));
            return Err(self.corrupt(offset, what));
        }
        Ok(())
    }

    /// Reads and checks a block. Requires: the index has the block.
    pub(super) fn block(&self, index: &Index, number: usize) -> Result<Block> {
        let (offset, len) = index.block(number);
        self.checked_block(index, number, &self.read(offset, len)?)
    }

    /// Checks and decodes the bytes of a block. Requires: the index has the block.
    pub(super) fn checked_block(
        &self,
        index: &Index,
        number: usize,
        bytes: &[u8],
    ) -> Result<Block> {
        let (offset, _) = index.block(number);
        let wrong = |what: &str| self.corrupt(offset, format!("data block {number}: {what}"));
        let place = BlockPlace { file: self.file, offset };
        let block = unseal(bytes, place, self.dictionary.as_ref()).map_err(|why| match why {
            Unreadable::Damaged(what) => wrong(what),
            Unreadable::Lacks(feature) => {
                let what = format!("data block {number}, at byte {offset}").into();
                Error::FeatureMissing { path: self.path.clone(), what, feature }
            }
        })?;
        if block.entry_count() as u64 != index.entries(number).1 {
            return Err(wrong("not as many entries as the index says"));
        }
        Ok(block)
    }

    /// Reads and checks the dictionary, for the blocks that are read afterwards.
    pub(super) fn read_dictionary(&mut self, sections: &[Section]) -> Result<()> {
        let Some(at) = find(sections, TAG_DICTIONARY) else { return Ok(()) };
        if at.len > DICTIONARY_BYTES_MAX as u64 {
            return Err(self.corrupt(at.offset, "a dictionary longer than any"));
        }
        let dictionary = Dictionary::new(&self.section(at)?);
        let none = || self.corrupt(at.offset, "a dictionary that is none");
        self.dictionary = Some(dictionary.ok_or_else(none)?);
        Ok(())
    }

    /// Reads and checks the index.
    pub(super) fn index(&self, sections: &[Section]) -> Result<Index> {
        let at = find(sections, TAG_INDEX).ok_or_else(|| self.corrupt(0, "no index"))?;
        let first_section = sections.iter().map(|section| section.offset).min();
        let data_end_max = first_section.expect("the index is a section");
        let stored_bytes = || {
            // An error here comes again with the first read of a block.
            let holes = hole_bytes_above(0, &*self.bytes, 0..data_end_max).ok().flatten();
            data_end_max - holes.unwrap_or(0)
        };
        let index = Index::decode(&self.section(at)?, data_end_max, stored_bytes);
        index.map_err(self.damage(at.offset))
    }

    /// Reads the properties, and checks them by themselves. Also returns their offset.
    pub(super) fn properties(&self, sections: &[Section]) -> Result<(Properties, u64)> {
        let missing = || self.corrupt(0, "no properties");
        let at @ &Section { offset, .. } = find(sections, TAG_PROPERTIES).ok_or_else(missing)?;
        let properties = Properties::decode(&self.section(at)?).map_err(self.damage(offset))?;
        Ok((properties, offset))
    }

    /// Fails if these are the properties of another file.
    pub(super) fn check_name(&self, properties: &Properties) -> Result<()> {
        if properties.file == self.file {
            return Ok(());
        }
        let what = format!("it is {}, under another name", table_name(properties.file));
        Err(self.corrupt(0, what))
    }

    /// Reads and checks the range tombstones. Empty if there is no such section.
    pub(super) fn tombstones(&self, sections: &[Section]) -> Result<RangeTombstones> {
        let Some(at) = find(sections, TAG_TOMBSTONES) else {
            return Ok(RangeTombstones::default());
        };
        RangeTombstones::decode(&self.section(at)?).map_err(self.damage(at.offset))
    }

    /// Reads and checks the list of value files. Empty if there is no such section.
    pub(super) fn values(&self, sections: &[Section]) -> Result<NamedValues> {
        let Some(at) = find(sections, TAG_VALUES) else { return Ok(NamedValues::default()) };
        NamedValues::decode(&self.section(at)?).map_err(self.damage(at.offset))
    }

    /// Reads and checks the list of tables that it was merged from. Empty if there is no such
    /// section.
    pub(super) fn made_of(&self, sections: &[Section]) -> Result<MadeOf> {
        let Some(at) = find(sections, TAG_MADE_OF) else { return Ok(MadeOf::default()) };
        MadeOf::decode(&self.section(at)?).map_err(self.damage(at.offset))
    }

    /// Reads and checks the end of the file. Returns the sections.
    pub(super) fn sections(&self, size: u64) -> Result<Vec<Section>> {
        let no_tail = || self.corrupt(0, "a file too short for a table");
        let tail_at = size.checked_sub(TAIL_SIZE as u64).ok_or_else(no_tail)?;
        let tail = self.read(tail_at, TAIL_SIZE as u64)?;
        let tail = decode_tail(&tail).map_err(self.damage(tail_at))?;
        if !VERSIONS.contains(&tail.version) {
            let path = self.path.clone();
            return Err(Error::Version { path, found: tail.version, known: VERSION });
        }
        let no_list = || self.corrupt(tail_at, "a section list longer than the file");
        let list_len = u64::from(tail.list_len);
        if list_len > LIST_LEN_MAX {
            return Err(self.corrupt(tail_at, "a section list longer than any"));
        }
        let list_at = tail_at.checked_sub(list_len).ok_or_else(no_list)?;
        let list = self.read(list_at, list_len)?;
        let sections = decode_sections(&list, tail, list_at).map_err(self.damage(list_at))?;
        for Section { tag, optional, offset, .. } in &sections {
            let known = TAGS_READ.contains(tag);
            if !known && !optional {
                let what = format!("section {tag}, which is not known, must not be skipped");
                return Err(self.corrupt(*offset, what));
            }
        }
        Ok(sections)
    }
}

pub(super) fn find(sections: &[Section], tag: u16) -> Option<&Section> {
    sections.iter().find(|section| section.tag == tag)
}
