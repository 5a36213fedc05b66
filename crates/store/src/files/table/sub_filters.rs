//! The sub-filters of a table, for filters such as `elastic` that are loaded in parts.
//! ```text
//! file     | 0 | 1 | 2 | ... | n-1 | directory |
//!          read when the table is opened: the directory
//! memory     0   1                   directory
//!          loaded and dropped later: sub-filters, one at a time
//! ```
//! Invariants: a sub-filter in memory has passed its checksum. A damaged one is not read again, and
//! counts as "maybe". Sub-filters change under the lock of the multi-queue, or before any other
//! thread knows the table.

use trommel_filters::{
    Corrupt, FilterKind, HashedKey, SubFilter, SubFilterDirectory, SubFilterKind, TableSubFilters,
    Trace,
};

use super::{CheckedFile, FilterSection, Table};
use crate::error::{Error, Result};
use crate::sync::{Arc, Mutex, Switch, lock};

/// A sub-filter in memory.
pub(crate) type BoxedSubFilter = Box<dyn SubFilter>;

/// The sub-filters of one table.
pub(crate) struct LoadedSubFilters {
    kind: &'static dyn FilterKind,
    directory: Box<dyn SubFilterDirectory>,
    /// The file offset of sub-filter 0.
    offset: u64,
    loaded: Switch<Vec<Arc<BoxedSubFilter>>>,
    damaged: Mutex<Vec<(u8, String)>>,
}

impl LoadedSubFilters {
    /// Reads the directory, but no sub-filter. Requires: the section is of this kind, whose filters
    /// come in parts.
    pub(super) fn open(
        opened: &CheckedFile,
        (kind, parts): (&'static dyn FilterKind, &dyn SubFilterKind),
        at: &FilterSection,
    ) -> Result<LoadedSubFilters> {
        let (offset, len) = at.filter_bytes(kind);
        let tail_len = len.min(parts.directory_bytes_max() as u64);
        let tail_at = offset + len - tail_len;
        let tail = opened.read(tail_at, tail_len)?;
        let directory = match parts.read_directory(&tail, len) {
            Ok(directory) => directory,
            // Checks the whole section first, so that the error is that of any other damaged
            // filter.
            Err(error) => {
                opened.section(&at.section)?;
                return Err(opened.damage(tail_at)(error));
            }
        };
        let (loaded, damaged) = (Switch::new(Arc::new(Vec::new())), Mutex::default());
        Ok(LoadedSubFilters { kind, directory, offset, loaded, damaged })
    }

    /// False: the table has no entry of the key. True: it may have one, or no sub-filter is loaded.
    #[inline]
    pub(crate) fn may_contain(&self, key: &HashedKey<'_>) -> bool {
        self.loaded.pin().iter().all(|sub_filter| sub_filter.may_contain(key))
    }

    /// As `may_contain`, and shows `trace` the memory that is read.
    pub(super) fn may_contain_traced<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) -> bool {
        self.loaded.pin().iter().all(|sub_filter| sub_filter.may_contain_traced(key, trace))
    }

    /// Returns what the multi-queue needs to know. Damaged sub-filters do not count.
    pub(crate) fn of_table(&self) -> TableSubFilters {
        let count = self.directory.count() - lock(&self.damaged).len() as u8;
        let sub_filter_bytes = self.directory.part_bytes();
        TableSubFilters { sub_filter_bytes, sub_filter_rate: self.directory.part_rate(), count }
    }

    /// The number of loaded sub-filters.
    pub(crate) fn loaded_count(&self) -> u8 {
        self.loaded.pin().len() as u8
    }

    /// The memory of the loaded sub-filters and the directory, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let sub_filters: usize =
            self.loaded.pin().iter().map(|sub_filter| sub_filter.size_bytes()).sum();
        sub_filters + self.directory_bytes()
    }

    /// The memory of the directory alone, in bytes.
    pub(crate) fn directory_bytes(&self) -> usize {
        self.directory.size_bytes()
    }

    /// Descriptions of the sub-filters that were found damaged, each with file and offset.
    pub(crate) fn damage(&self) -> Vec<String> {
        lock(&self.damaged).iter().map(|(_, what)| what.clone()).collect()
    }

    /// Returns the number of the sub-filter to load next. `None`: all intact ones are loaded.
    fn next(&self) -> Option<u8> {
        let (loaded, damaged) = (self.loaded.pin(), lock(&self.damaged));
        let is_loaded = |number: u8| loaded.iter().any(|sub_filter| sub_filter.number() == number);
        let is_damaged = |number: u8| damaged.iter().any(|(known, _)| *known == number);
        (0..self.directory.count()).find(|number| !is_loaded(*number) && !is_damaged(*number))
    }

    /// Adds a loaded sub-filter. False: it is no longer the next one.
    pub(crate) fn add(&self, sub_filter: BoxedSubFilter) -> bool {
        let is_next = self.next() == Some(sub_filter.number());
        if is_next {
            let mut loaded = Vec::clone(&self.loaded.hold());
            loaded.push(Arc::new(sub_filter));
            self.loaded.store(Arc::new(loaded));
        }
        is_next
    }

    /// Drops the sub-filter that was loaded last.
    pub(crate) fn drop_one(&self) {
        let mut loaded = Vec::clone(&self.loaded.hold());
        loaded.pop();
        self.loaded.store(Arc::new(loaded));
    }

    /// Drops all sub-filters.
    pub(crate) fn clear(&self) {
        self.loaded.store(Arc::new(Vec::new()));
    }
}

impl Table {
    /// The sub-filters. `None`: the table has a filter of another kind, or none.
    #[inline]
    pub(crate) fn sub_filters(&self) -> Option<&LoadedSubFilters> {
        self.sub_filters.as_ref()
    }

    /// Reads the next sub-filter without adding it. `None`: there is none, or it is damaged and
    /// recorded as such.
    pub(crate) fn read_next_sub_filter(&self) -> Result<Option<BoxedSubFilter>> {
        let Some((sub_filters, number)) =
            self.sub_filters().and_then(|sub_filters| Some((sub_filters, sub_filters.next()?)))
        else {
            return Ok(None);
        };
        let range = sub_filters.directory.range(number);
        let at = sub_filters.offset + range.start;
        let read = self.opened.read(at, range.end - range.start).and_then(|bytes| {
            let checked = sub_filters.directory.part(number, bytes.to_vec());
            checked.map_err(|Corrupt { .. }| {
                let name = sub_filters.kind.name();
                let what = format!(
                    "the checksum of sub-filter {number} of the {name} filter does not match"
                );
                self.opened.corrupt(at, what)
            })
        });
        match read {
            Ok(sub_filter) => Ok(Some(sub_filter)),
            Err(error @ Error::Corrupt { .. }) => {
                let mut damaged = lock(&sub_filters.damaged);
                if damaged.iter().all(|(known, _)| *known != number) {
                    damaged.push((number, error.to_string()));
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Loads up to `count` sub-filters, fewer if some are damaged. Requires: no other thread knows
    /// the table yet.
    pub(crate) fn load_sub_filters(&self, count: u8) -> Result<()> {
        let Some(sub_filters) = self.sub_filters() else { return Ok(()) };
        while sub_filters.loaded_count() < count.min(sub_filters.of_table().count) {
            if let Some(sub_filter) = self.read_next_sub_filter()? {
                sub_filters.add(sub_filter);
            }
        }
        Ok(())
    }
}
