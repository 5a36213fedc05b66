//! The filter sections of a table's file, and their kinds.
//! ```text
//! tag 0x100 + n   | filter |     a kind with a tag: only the filter's bytes
//! tag 0x100       | length u8 | name | filter |  a kind without one
//! ```
//! Invariant: a filter that is returned has passed its section's checksum, and is of the kind that
//! the section names. An unregistered kind is not damage: the table is read without it.

use trommel_filters::{AlignedBytes, FilterKind};

use super::TableFilter;
use super::file::CheckedFile;
use super::format::{
    FILTER_HEAD_BYTES_MAX, Section, TAG_FILTERS, decode_filter_name, filter_head, filter_tag,
    is_filter_tag,
};
use crate::error::Result;
use crate::plan::registry;

/// A section with a filter.
pub(super) struct FilterSection {
    pub(super) section: Section,
    /// The name of a kind without a tag. `None` in such a section: the name is unreadable.
    name: Option<String>,
}

impl FilterSection {
    /// Returns the filter sections of a file.
    pub(super) fn all(opened: &CheckedFile, sections: &[Section]) -> Vec<FilterSection> {
        let filters = sections.iter().filter(|section| is_filter_tag(section.tag));
        filters.map(|&section| FilterSection::of(opened, section)).collect()
    }

    /// Requires: the section is a filter's.
    fn of(opened: &CheckedFile, section: Section) -> FilterSection {
        let has_name = section.tag == TAG_FILTERS;
        let name = has_name.then(|| {
            let len = section.len.min(FILTER_HEAD_BYTES_MAX as u64);
            let head = opened.read(section.offset, len).ok()?;
            decode_filter_name(&head).ok().map(str::to_owned)
        });
        FilterSection { section, name: name.flatten() }
    }

    /// Whether the filter is of this kind, by its tag or its name.
    pub(super) fn is_of(&self, kind: &dyn FilterKind) -> bool {
        let same_name = || self.name.as_deref() == Some(kind.name());
        filter_tag(kind) == self.section.tag && (kind.tag().is_some() || same_name())
    }

    /// Returns the kind, if it is registered.
    pub(super) fn kind(&self) -> Option<&'static dyn FilterKind> {
        registry::filters().into_iter().find(|kind| self.is_of(*kind))
    }

    /// Returns offset and length of the filter's bytes. Requires: it is of this kind.
    pub(super) fn filter_bytes(&self, kind: &dyn FilterKind) -> (u64, u64) {
        let head = filter_head(kind).len() as u64;
        (self.section.offset + head, self.section.len - head)
    }

    /// Reads the section, and checks its checksum, then the filter. Requires: it is of this kind.
    pub(super) fn load(
        &self,
        opened: &CheckedFile,
        kind: &'static dyn FilterKind,
    ) -> Result<TableFilter> {
        let at = &self.section;
        opened.believe(at)?;
        // The length was checked against the file's.
        let beyond = || opened.corrupt(at.offset, "a filter beyond memory");
        let zeroed = usize::try_from(at.len).ok().and_then(AlignedBytes::try_zeroed);
        let mut bytes = zeroed.ok_or_else(beyond)?;
        opened.fill(at.offset, &mut bytes)?;
        opened.checked(at, &bytes)?;
        let (start, _) = self.filter_bytes(kind);
        let bytes = match (start - at.offset) as usize {
            0 => bytes,
            head => AlignedBytes::from_slice(&bytes[head..]),
        };
        let filter = kind.read(bytes).map_err(opened.damage(start))?;
        if filter.kind() != kind {
            let what = "a filter of another kind than its section's tag";
            return Err(opened.corrupt(at.offset, what));
        }
        Ok(filter)
    }

    /// Names the filter if its kind is not registered.
    fn label(&self) -> String {
        match (&self.name, self.section.tag) {
            (Some(name), _) => name.clone(),
            (None, TAG_FILTERS) => "a name that cannot be read".into(),
            (None, tag) => format!("tag {}", tag - TAG_FILTERS),
        }
    }
}

/// Returns the name or the tag of the first filter whose kind is not registered.
pub(super) fn unregistered(filters: &[FilterSection]) -> Option<String> {
    filters.iter().find(|filter| filter.kind().is_none()).map(FilterSection::label)
}
