//! Reads the parts of a table one by one, as far as they are readable, for `dump` and `repair`.
//! ```text
//! tail -> section list -> sections, one checksum each -> index -> blocks, one checksum each
//! ```
//! Invariant: a returned part has passed its checksum. Every other part is in the list of damage.
//! Without the index the offsets of blocks are unknown.

use trommel_filters::FilterOptions;

use crate::entries::block::{Block, form_of};
use crate::entries::tombstones::RangeTombstones;
use crate::error::{Error, Result};
use crate::files::fragments::Fragment;
use crate::files::table::file::{CheckedFile, find};
use crate::files::table::filter_section::FilterSection;
use crate::files::table::format::{
    Index, Properties, Section, TAG_MADE_OF, TAG_TOMBSTONES, TAGS_READ,
};
use crate::files::table::made_of::MadeOf;
use crate::storage::open_folder::OpenFolder;
use crate::storage::read_queue::ReadBuffer;

/// Upper limit for the bits per key of a rebuilt filter. Small tables have large filters for their
/// entries, but more bits than the options allow do not improve a filter.
const FILTER_BITS_MAX: f64 = 64.0;

/// The parts of a table's file.
pub(crate) struct TableParts {
    opened: CheckedFile,
    /// The section list. Empty if it is unreadable.
    pub(crate) sections: Vec<Section>,
    index: Option<Index>,
    pub(crate) properties: Option<Properties>,
    /// The range tombstones. `None`: they are unreadable.
    pub(crate) tombstones: Option<RangeTombstones>,
    /// The tables that this one was made of. Empty if that is not recorded or unreadable.
    pub(crate) made_of: MadeOf,
    /// Everything unreadable, except blocks.
    pub(crate) damage: Vec<Error>,
}

impl TableParts {
    /// Reads everything but the blocks of the table with the number `file`. The file of another
    /// table has no parts, only damage.
    ///
    /// # Errors
    /// `Io`, and `Version` if the tail is valid and names another version. Damage is not an error
    /// here.
    pub(crate) fn read(folder: &OpenFolder, name: &str, file: u64) -> Result<TableParts> {
        let (bytes, path) = (folder.open_file(name)?, folder.path_of(name));
        let size = bytes.size().map_err(Error::io(&path))?;
        let opened = CheckedFile::new(file, path, bytes);
        let (sections, damage) = (Vec::new(), Vec::new());
        let (index, properties, tombstones) = (None, None, None);
        let made_of = MadeOf::default();
        let mut parts =
            TableParts { opened, sections, index, properties, tombstones, made_of, damage };
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
        note(opened.read_dictionary(&self.sections), damage)?;
        self.made_of = note(opened.made_of(&self.sections), damage)?.unwrap_or_default();
        let is_read =
            |section: &&Section| TAGS_READ.contains(&section.tag) || section.tag == TAG_MADE_OF;
        for section in self.sections.iter().filter(|section| !is_read(section)) {
            note(opened.section(section), damage)?;
        }
        if let (Some(index), Some(properties)) = (&self.index, &self.properties)
            && index.entry_count() != properties.entries
        {
            damage.push(opened.corrupt(0, "index and properties count different entries"));
        }
        Ok(())
    }

    /// Returns options for a filter like the table's, which may be damaged: its kind and about its
    /// size. `None`: the table has no registered filter, or its number of entries is unknown.
    pub(crate) fn filter(&self) -> Option<FilterOptions> {
        let filters = FilterSection::all(&self.opened, &self.sections);
        let (section, kind) =
            filters.iter().find_map(|filter| Some((filter.section, filter.kind()?)))?;
        let entries = self.index.as_ref()?.entry_count().max(1);
        let bits_per_key = (section.len as f64 * 8.0 / entries as f64).clamp(1.0, FILTER_BITS_MAX);
        Some(FilterOptions::new(kind, bits_per_key))
    }

    /// The number of blocks. `None`: the index is unreadable.
    pub(crate) fn block_count(&self) -> Option<usize> {
        self.index.as_ref().map(Index::block_count)
    }

    /// Reads the blocks, each with its number and its form. Returns none if the index is
    /// unreadable.
    ///
    /// # Errors
    /// `Io`. Damage is not an error here.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = Result<Fragment<(usize, Block, u8)>>> {
        self.index.iter().flat_map(|index| {
            (0..index.block_count()).map(|number| {
                let ((offset, len), (_, entries)) = (index.block(number), index.entries(number));
                let whole = |bytes: ReadBuffer| {
                    let block = self.opened.checked_block(index, number, &bytes)?;
                    Ok((number, block, form_of(&bytes)))
                };
                match self.opened.read(offset, len).and_then(whole) {
                    Ok(item) => Ok(Fragment::Whole { offset, item }),
                    Err(Error::Corrupt { what, .. }) => {
                        let (bytes, entries) = (offset..offset + len, Some(entries));
                        Ok(Fragment::Damaged { bytes, what, entries, is_gap: false })
                    }
                    Err(other) => Err(other),
                }
            })
        })
    }

    /// The offset of the range tombstones. `None`: the table has none.
    pub(crate) fn tombstones_at(&self) -> Option<u64> {
        find(&self.sections, TAG_TOMBSTONES).map(|section| section.offset)
    }
}

/// Moves damage to the list.
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
