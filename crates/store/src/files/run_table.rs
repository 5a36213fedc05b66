//! A table of a run, or the part of it that belongs to the tree.
//! ```text
//! file       b  d | f  h  k | m        deletes [e .......... n)
//! trimmed         [f  h  k  m)         deletes       [f .... m)      the rest was merged elsewhere
//! ```
//! Invariant: keys, entries and range tombstones are only those within the bounds. (Filter and
//! sequence numbers are those of the whole file. They may say "maybe" too often, but never "no"
//! wrongly.)

use trommel_filters::{RankBounds, Span};

use crate::entries::cursor::Cursor;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::tombstones::RangeTombstones;
use crate::error::Result;
use crate::files::table::Table;
use crate::files::table::cursor::TableCursor;
use crate::plan::layout::TableRecord;
use crate::sync::Arc;

/// A table, and the span of its entries' flush numbers.
#[derive(Clone)]
pub(crate) struct RunTable {
    pub(crate) table: Arc<Table>,
    pub(crate) span: Span,
    /// `None`: all of its keys belong to the tree.
    trim: Option<Arc<Trim>>,
}

/// The part of a table that belongs to the tree.
struct Trim {
    bounds: Arc<KeyBounds>,
    /// The number of the table's entries before these bounds, and within them.
    skipped: u64,
    entries: u64,
    tombstones: RangeTombstones,
}

impl Table {
    /// Whether the index agrees with the entry counts of a record. The index knows the rank of a
    /// key, but for the entries of its block.
    pub(crate) fn has_piece(&self, record: &TableRecord) -> bool {
        let fits = |key: &[u8], before: u64| {
            let RankBounds { least, most } = self.rank_bounds(key);
            least <= before && before <= most
        };
        let end = record.skipped.checked_add(record.entries);
        fits(&record.from, record.skipped) && end.is_some_and(|end| fits(&record.to, end))
    }
}

impl RunTable {
    /// The whole table.
    #[cfg(test)]
    pub(crate) fn whole(table: Arc<Table>, span: Span) -> Self {
        RunTable { table, span, trim: None }
    }

    /// The part of the table that the record describes.
    pub(crate) fn of_record(table: Arc<Table>, record: &TableRecord) -> Self {
        let trim = record
            .is_trimmed
            .then(|| Trim::new(&table, record.key_bounds(), record.skipped, record.entries));
        RunTable { table, span: record.span, trim }
    }

    /// The key of the first entry. (Of a trimmed table: a lower bound.)
    #[inline]
    pub(crate) fn first_key(&self) -> &[u8] {
        match &self.trim {
            None => self.table.first_key(),
            Some(trim) => &trim.bounds.from,
        }
    }

    /// The key of the last entry. (Of a trimmed table: an upper bound.)
    #[inline]
    pub(crate) fn last_key(&self) -> &[u8] {
        let trimmed = self.trim.as_ref().and_then(|trim| trim.bounds.upper());
        trimmed.unwrap_or_else(|| self.table.last_key())
    }

    /// Whether all entries are before a key.
    #[inline]
    pub(crate) fn ends_before(&self, key: &[u8]) -> bool {
        match &self.trim {
            None => self.table.last_key() < key,
            Some(trim) => !trim.bounds.ends_after(key),
        }
    }

    /// Bounds of its keys and of the ranges that it deletes.
    pub(crate) fn key_bounds(&self) -> KeyBounds {
        match &self.trim {
            None => {
                let (from, to) = self.table.key_bounds();
                KeyBounds { from, to: Some(to) }
            }
            Some(trim) => (*trim.bounds).clone(),
        }
    }

    /// The range tombstones.
    #[inline]
    pub(crate) fn tombstones(&self) -> &RangeTombstones {
        match &self.trim {
            None => self.table.tombstones(),
            Some(trim) => &trim.tombstones,
        }
    }

    /// Whether it has the same keys as another one: those of the same part of the same file.
    pub(crate) fn is_same(&self, other: &RunTable) -> bool {
        let bounds = |table: &RunTable| table.trim.as_ref().map(|trim| Arc::clone(&trim.bounds));
        self.table.file() == other.table.file() && bounds(self) == bounds(other)
    }

    pub(crate) fn is_trimmed(&self) -> bool {
        self.trim.is_some()
    }

    /// The number of entries.
    pub(crate) fn entry_count(&self) -> u64 {
        self.trim.as_ref().map_or_else(|| self.table.entry_count(), |trim| trim.entries)
    }

    /// The number of the table's entries before the first one here.
    pub(crate) fn skipped(&self) -> u64 {
        self.trim.as_ref().map_or(0, |trim| trim.skipped)
    }

    /// Returns bounds on the number of entries before `key`. Only the entries of the key's block
    /// make them inexact.
    pub(crate) fn rank_bounds(&self, key: &[u8]) -> RankBounds {
        let RankBounds { least, most } = self.table.rank_bounds(key);
        let within = |rank: u64| rank.saturating_sub(self.skipped()).min(self.entry_count());
        RankBounds { least: within(least), most: within(most) }
    }

    /// The file's bytes, in proportion to the entries.
    pub(crate) fn bytes_within(&self) -> u64 {
        let share = self.entry_count() as f64 / self.table.entry_count().max(1) as f64;
        let bytes = self.table.bytes();
        if self.is_trimmed() { (bytes as f64 * share) as u64 } else { bytes }
    }

    /// Returns a cursor at no entry.
    pub(crate) fn cursor(&self) -> TableCursor {
        self.table.cursor().within(self.trim.as_ref().map(|trim| &trim.bounds))
    }

    /// Clips the table to a range. `None`: it has nothing there. Reads the blocks at the range's
    /// ends, if these lie within its keys.
    pub(crate) fn clip(&self, bounds: &KeyBounds) -> Result<Option<RunTable>> {
        let own = self.key_bounds();
        if !own.ends_after(&bounds.from) || !bounds.ends_after(&own.from) {
            return Ok(None);
        }
        let mut clipped = own.clone();
        let mut cursor = self.cursor().fill_cache(false);
        let (mut skipped, mut end) = (self.skipped(), self.skipped() + self.entry_count());
        if own.from < bounds.from {
            cursor.seek(&bounds.from)?;
            skipped = if cursor.entry().is_some() { cursor.rank() } else { end };
            clipped.from.clone_from(&bounds.from);
        }
        if let Some(to) = bounds.to.as_ref().filter(|to| own.ends_after(to)) {
            cursor.seek_before(to)?;
            end = if cursor.entry().is_some() { cursor.rank() + 1 } else { skipped };
            clipped.to = Some(to.clone());
        }
        if clipped == own {
            return Ok(Some(self.clone()));
        }
        let trim = Trim::new(&self.table, clipped, skipped, end.saturating_sub(skipped));
        let is_empty = trim.entries == 0 && trim.tombstones.is_empty();
        Ok((!is_empty).then(|| RunTable { trim: Some(trim), ..self.clone() }))
    }

    /// Returns the record of this part, derived from another record of the table.
    pub(crate) fn record(&self, of: &TableRecord) -> TableRecord {
        let KeyBounds { from, to } = self.key_bounds();
        let to = to.unwrap_or_else(|| of.to.clone());
        let (is_trimmed, skipped, entries) =
            (self.is_trimmed(), self.skipped(), self.entry_count());
        TableRecord { from, to, is_trimmed, skipped, entries, ..of.clone() }
    }
}

impl Trim {
    fn new(table: &Table, bounds: KeyBounds, skipped: u64, entries: u64) -> Arc<Self> {
        let tombstones = table.tombstones().cut(Some(&bounds.from), bounds.to.as_deref());
        Arc::new(Trim { bounds: Arc::new(bounds), skipped, entries, tombstones })
    }
}
