//! A table in parts, as far as each can be read: for those who look at damage or mend it.
//! ```text
//! tail -> section list -> sections, each with its checksum -> index -> blocks, each with its checksum
//! ```
//! Invariant: a part that is given out has passed its checksum; each that has not is in the list of
//! damage. Without the index nobody knows where blocks begin.

use trommel_filters::FilterOptions;

use crate::entries::block::Block;
use crate::entries::tombstones::RangeTombstones;
use crate::error::{Error, Result};
use crate::files::table::file::Opened;
use crate::files::table::filter_section::FilterSection;
use crate::files::table::format::{
    Index, Properties, Section, TAG_INDEX, TAG_PROPERTIES, TAG_TOMBSTONES,
};
use crate::storage::open_folder::OpenFolder;

/// Small tables have large filters for their entries; a filter of more bits than options allow is
/// no better.
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
    /// Reads all but the blocks, of the table with the number `file`. One that is another has no
    /// parts, but damage.
    ///
    /// # Errors
    /// `Io`, and `Version` if the tail is sound and names another version. Damage is no error here.
    pub(crate) fn read(folder: &OpenFolder, name: &str, file: u64) -> Result<TableParts> {
        let (bytes, path) = (folder.open_file(name)?, folder.path_of(name));
        let size = bytes.size().map_err(Error::io(&path))?;
        let opened = Opened { file, path, bytes };
        let (sections, index, properties, tombstones) = (Vec::new(), None, None, None);
        let damage = Vec::new();
        let mut parts = TableParts { opened, sections, index, properties, tombstones, damage };
        parts.read_sections(size)?;
        Ok(parts)
    }

    fn read_sections(&mut self, size: u64) -> Result<()> {
        let TableParts { opened, damage, .. } = self;
        let Some(sections) = note(opened.sections(size), damage)? else { return Ok(()) };
        self.sections = sections;
        let properties = note(opened.properties(&self.sections), damage)?;
        if let Some((properties, _)) = properties {
            if note(opened.check_name(&properties), damage)?.is_none() {
                return Ok(());
            }
            self.properties = Some(properties);
        }
        self.index = note(opened.index(&self.sections), damage)?;
        self.tombstones = note(opened.tombstones(&self.sections), damage)?;
        let known = [TAG_INDEX, TAG_PROPERTIES, TAG_TOMBSTONES];
        for section in self.sections.iter().filter(|section| !known.contains(&section.tag)) {
            note(opened.section(section), damage)?;
        }
        if let (Some(index), Some(properties)) = (&self.index, &self.properties)
            && index.entry_count() != properties.entries
        {
            damage.push(opened.corrupt(0, "index and properties count different entries"));
        }
        Ok(())
    }

    /// A filter like the one that the table has, sound or not: of its kind and about its size.
    /// None: it has none that is known, or nobody knows of how many entries.
    pub(crate) fn filter(&self) -> Option<FilterOptions> {
        let filters = FilterSection::all(&self.opened, &self.sections);
        let (section, kind) =
            filters.iter().find_map(|filter| Some((filter.section, filter.kind()?)))?;
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

    /// Where a block begins, and how many entries it has by the index. Requires: there is such a
    /// block.
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
