//! A table in parts, as far as each can be read: for those who look at damage or mend it.
//! ```text
//! tail -> section list -> sections, each with its checksum -> index -> blocks, each with its checksum
//! ```
//! Invariant: a part that is given out has passed its checksum; each that has not is in the list of damage. Without
//! the index nobody knows where blocks begin.

use trommel_filters::{FilterKind, FilterOptions};

use super::{Opened, find};
use crate::block::Block;
use crate::error::{Error, Result};
use crate::open_folder::OpenFolder;
use crate::table_format::{
    Index, Properties, Section, TAG_INDEX, TAG_PROPERTIES, TAG_TOMBSTONES, filter_tag,
};
use crate::tombstones::RangeTombstones;

/// Small tables have large filters for their entries; a filter of more bits than options allow is no better.
const FILTER_BITS_MAX: f64 = 64.0;

/// The parts of a table's file.
pub(crate) struct TableParts {
    opened: Opened,
    /// Where the sections are; none if that cannot be read.
    pub(crate) sections: Vec<Section>,
    index: Option<Index>,
    pub(crate) properties: Option<Properties>,
    /// The deleted ranges. None: they cannot be read.
    pub(crate) tombstones: Option<RangeTombstones>,
    /// What cannot be read, blocks aside.
    pub(crate) damage: Vec<Error>,
}

impl TableParts {
    /// Reads all but the blocks.
    ///
    /// # Errors
    /// `Io`, and `Version` if the tail is sound and names another version. Damage is no error here.
    pub(crate) fn read(folder: &OpenFolder, name: &str) -> Result<TableParts> {
        let (bytes, path) = (folder.open_file(name)?, folder.path_of(name));
        let size = bytes.size().map_err(Error::io(&path))?;
        let opened = Opened { path, bytes };
        let mut damage = Vec::new();
        let sections = note(opened.sections(size), &mut damage)?.unwrap_or_default();
        let mut parts = TableParts {
            opened,
            sections,
            index: None,
            properties: None,
            tombstones: None,
            damage: Vec::new(),
        };
        if damage.is_empty() {
            parts.index = note(parts.opened.index(&parts.sections), &mut damage)?;
            parts.properties = note(parts.read_properties(), &mut damage)?;
            parts.tombstones = note(parts.opened.tombstones(&parts.sections), &mut damage)?;
            let known = [TAG_INDEX, TAG_PROPERTIES, TAG_TOMBSTONES];
            for section in parts.sections.iter().filter(|section| !known.contains(&section.tag)) {
                note(parts.opened.section(section), &mut damage)?;
            }
        }
        if let (Some(index), Some(properties)) = (&parts.index, &parts.properties)
            && index.entry_count() != properties.entries
        {
            let what = "index and properties count different entries";
            damage.push(parts.opened.corrupt(0, what));
        }
        parts.damage = damage;
        Ok(parts)
    }

    fn read_properties(&self) -> Result<Properties> {
        let at = find(&self.sections, TAG_PROPERTIES);
        let at = at.ok_or_else(|| self.opened.corrupt(0, "no properties"))?;
        let bytes = self.opened.section(at)?;
        Properties::decode(&bytes).map_err(self.opened.damage(at.offset))
    }

    /// A filter like the one that the table has, sound or not: of its kind and about its size. None: it has none that is
    /// known, or nobody knows of how many entries.
    pub(crate) fn filter(&self) -> Option<FilterOptions> {
        let (section, kind) = self.sections.iter().find_map(|section| {
            let mut kinds = FilterKind::ALL.into_iter();
            Some((section, kinds.find(|kind| filter_tag(*kind) == section.tag)?))
        })?;
        let entries = self.index.as_ref()?.entry_count().max(1);
        let bits_per_key = (section.len as f64 * 8.0 / entries as f64).clamp(1.0, FILTER_BITS_MAX);
        Some(FilterOptions::new(kind, bits_per_key))
    }

    /// Whether the index can be read.
    pub(crate) fn has_index(&self) -> bool {
        self.index.is_some()
    }

    /// 0 if the index cannot be read.
    pub(crate) fn block_count(&self) -> usize {
        self.index.as_ref().map_or(0, Index::block_count)
    }

    /// Where a block begins, and how many entries it has by the index. Requires: there is such a block.
    pub(crate) fn block_place(&self, number: usize) -> (u64, u64) {
        let index = self.index.as_ref().expect("without an index there are no blocks");
        (index.block(number).0, index.entries(number).1)
    }

    /// A block, checked. Requires: there is such a block.
    pub(crate) fn block(&self, number: usize) -> Result<Block> {
        let index = self.index.as_ref().expect("without an index there are no blocks");
        self.opened.block(index, number)
    }
}

/// Damage goes to the list.
fn note<T>(result: Result<T>, damage: &mut Vec<Error>) -> Result<Option<T>> {
    match result {
        Ok(part) => Ok(Some(part)),
        Err(error @ Error::Corrupt { .. }) => {
            damage.push(error);
            Ok(None)
        }
        Err(other) => Err(other),
    }
}
