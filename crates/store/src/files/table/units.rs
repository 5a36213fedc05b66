//! The units of a table's filter in parts, such as `elastic`: where they are in the file, and those
//! that are in memory.
//! ```text
//! file     | unit 0 | unit 1 | unit 2 | ... | unit n-1 | directory |
//!          read when the table is opened: the directory
//! memory     unit 0   unit 1                             directory
//!            read and dropped later: units, one at a time
//! ```
//! Invariants: a unit in memory has passed its checksum. One that does not is not asked for again:
//! what is left out says "maybe". Units change under the lock of the multi-queue (or before anybody
//! else knows the table).

use trommel_filters::{
    Corrupt, FilterKind, HashedKey, SubFilter, SubFilterDirectory, SubFilterKind, Trace,
    UnitsOfTable,
};

use super::{CheckedFile, FilterSection, Table};
use crate::error::{Error, Result};
use crate::sync::{Arc, Mutex, Switch, lock};

/// A unit in memory.
pub(crate) type Unit = Box<dyn SubFilter>;

/// The units of one table.
pub(crate) struct TableUnits {
    kind: &'static dyn FilterKind,
    directory: Box<dyn SubFilterDirectory>,
    /// Where in the file unit 0 begins.
    offset: u64,
    loaded: Switch<Vec<Arc<Unit>>>,
    damaged: Mutex<Vec<(u8, String)>>,
}

impl TableUnits {
    /// Reads the directory, and no unit. Requires: the section is of this kind, whose filters come
    /// in parts.
    pub(super) fn open(
        opened: &CheckedFile,
        (kind, parts): (&'static dyn FilterKind, &dyn SubFilterKind),
        at: &FilterSection,
    ) -> Result<TableUnits> {
        let (offset, len) = at.filter_bytes(kind);
        let tail_len = len.min(parts.directory_bytes_max() as u64);
        let tail_at = offset + len - tail_len;
        let tail = opened.read(tail_at, tail_len)?;
        let directory = match parts.read_directory(&tail, len) {
            Ok(directory) => directory,
            // It is told as any other filter's damage is.
            Err(error) => {
                opened.section(&at.section)?;
                return Err(opened.damage(tail_at)(error));
            }
        };
        let (loaded, damaged) = (Switch::new(Arc::new(Vec::new())), Mutex::default());
        Ok(TableUnits { kind, directory, offset, loaded, damaged })
    }

    /// False: the table has no entry of the key. True: it may have one. No unit is in memory: true.
    #[inline]
    pub(crate) fn may_contain(&self, key: &HashedKey<'_>) -> bool {
        self.loaded.pin().iter().all(|unit| unit.may_contain(key))
    }

    /// As above, and `trace` sees the memory that is read.
    pub(super) fn may_contain_traced<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) -> bool {
        self.loaded.pin().iter().all(|unit| unit.may_contain_traced(key, trace))
    }

    /// What the multi-queue has to know: units that are damaged do not count.
    pub(crate) fn of_table(&self) -> UnitsOfTable {
        let units = self.directory.count() - lock(&self.damaged).len() as u8;
        let unit_bytes = self.directory.part_bytes();
        UnitsOfTable { unit_bytes, unit_rate: self.directory.part_rate(), units }
    }

    /// How many units are in memory.
    pub(crate) fn loaded_count(&self) -> u8 {
        self.loaded.pin().len() as u8
    }

    /// The memory that they take, and the directory.
    pub(crate) fn memory_bytes(&self) -> usize {
        let units: usize = self.loaded.pin().iter().map(|unit| unit.size_bytes()).sum();
        units + self.directory_bytes()
    }

    /// The memory of the directory alone.
    pub(crate) fn directory_bytes(&self) -> usize {
        self.directory.size_bytes()
    }

    /// Units that were damaged when they were read, each with file and place.
    pub(crate) fn damage(&self) -> Vec<String> {
        lock(&self.damaged).iter().map(|(_, what)| what.clone()).collect()
    }

    /// The unit to read next. None: all that are sound are in memory.
    fn next(&self) -> Option<u8> {
        let (loaded, damaged) = (self.loaded.pin(), lock(&self.damaged));
        let is_loaded = |number: u8| loaded.iter().any(|unit| unit.number() == number);
        let is_damaged = |number: u8| damaged.iter().any(|(known, _)| *known == number);
        (0..self.directory.count()).find(|number| !is_loaded(*number) && !is_damaged(*number))
    }

    /// Puts a unit into memory. False: it is not the one to come next any more.
    pub(crate) fn add(&self, unit: Unit) -> bool {
        let is_next = self.next() == Some(unit.number());
        if is_next {
            let mut loaded = Vec::clone(&self.loaded.hold());
            loaded.push(Arc::new(unit));
            self.loaded.store(Arc::new(loaded));
        }
        is_next
    }

    /// Drops the unit that came last.
    pub(crate) fn drop_one(&self) {
        let mut loaded = Vec::clone(&self.loaded.hold());
        loaded.pop();
        self.loaded.store(Arc::new(loaded));
    }

    /// Drops all.
    pub(crate) fn clear(&self) {
        self.loaded.store(Arc::new(Vec::new()));
    }
}

impl Table {
    /// The units of a filter in parts. None: the table has another filter, or none.
    #[inline]
    pub(crate) fn units(&self) -> Option<&TableUnits> {
        self.units.as_ref()
    }

    /// Reads the unit that comes next, without putting it into memory. None: there is none, or it
    /// is damaged and noted as such.
    pub(crate) fn read_next_unit(&self) -> Result<Option<Unit>> {
        let Some((units, number)) = self.units().and_then(|units| Some((units, units.next()?)))
        else {
            return Ok(None);
        };
        let range = units.directory.range(number);
        let at = units.offset + range.start;
        let read = self.opened.read(at, range.end - range.start).and_then(|bytes| {
            let checked = units.directory.part(number, bytes.to_vec());
            checked.map_err(|Corrupt { .. }| {
                let name = units.kind.name();
                let what =
                    format!("the checksum of unit {number} of the {name} filter does not match");
                self.opened.corrupt(at, what)
            })
        });
        match read {
            Ok(unit) => Ok(Some(unit)),
            Err(error @ Error::Corrupt { .. }) => {
                let mut damaged = lock(&units.damaged);
                if damaged.iter().all(|(known, _)| *known != number) {
                    damaged.push((number, error.to_string()));
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads so many units into memory, fewer if some are damaged. Requires: nobody else knows the
    /// table yet.
    pub(crate) fn load_units(&self, count: u8) -> Result<()> {
        let Some(units) = self.units() else { return Ok(()) };
        while units.loaded_count() < count.min(units.of_table().units) {
            if let Some(unit) = self.read_next_unit()? {
                units.add(unit);
            }
        }
        Ok(())
    }
}
