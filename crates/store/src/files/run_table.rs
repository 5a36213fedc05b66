//! A table of a run, or what of it belongs to the tree.
//! ```text
//! file       b  d | f  h  k | m        deletes [e .......... n)
//! trimmed         [f  h  k  m)         deletes       [f .... m)      the rest was merged elsewhere
//! ```
//! Invariant: asked for keys, entries or deleted ranges, it tells of those within its bounds alone.
//! (Its filter and its sequence numbers are the file's: they may say "maybe" too often, never too
//! seldom.)

use trommel_filters::{RankBounds, Span};

use crate::entries::cursor::Cursor;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::tombstones::RangeTombstones;
use crate::error::Result;
use crate::files::table::Table;
use crate::files::table::cursor::TableCursor;
use crate::plan::layout::TableRecord;
use crate::sync::Arc;

/// A table, and the flush numbers of its entries.
#[derive(Clone)]
pub(crate) struct RunTable {
    pub(crate) table: Arc<Table>,
    pub(crate) span: Span,
    /// None: all of its keys belong to the tree.
    trim: Option<Arc<Trim>>,
}

/// What a table has of the tree.
struct Trim {
    bounds: Arc<KeyBounds>,
    /// Entries of the table before these bounds, and within them.
    skipped: u64,
    entries: u64,
    tombstones: RangeTombstones,
}

impl Table {
    /// Whether a record of some of its keys counts them as its index does. The index knows how many
    /// entries come before a key, but for those in the key's block.
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
    /// All of a table.
    #[cfg(test)]
    pub(crate) fn whole(table: Arc<Table>, span: Span) -> Self {
        RunTable { table, span, trim: None }
    }

    /// What a record says that there is of its table.
    pub(crate) fn of_record(table: Arc<Table>, record: &TableRecord) -> Self {
        let trim = record
            .is_trimmed
            .then(|| Trim::new(&table, record.key_bounds(), record.skipped, record.entries));
        RunTable { table, span: record.span, trim }
    }

    /// The first key with an entry. (Of a trimmed table: none is before it.)
    #[inline]
    pub(crate) fn first_key(&self) -> &[u8] {
        match &self.trim {
            None => self.table.first_key(),
            Some(trim) => &trim.bounds.from,
        }
    }

    /// The last key with an entry. (Of a trimmed table: none is behind it.)
    #[inline]
    pub(crate) fn last_key(&self) -> &[u8] {
        let trimmed = self.trim.as_ref().and_then(|trim| trim.bounds.upper());
        trimmed.unwrap_or_else(|| self.table.last_key())
    }

    /// Whether all of its entries are before a key.
    #[inline]
    pub(crate) fn ends_before(&self, key: &[u8]) -> bool {
        match &self.trim {
            None => self.table.last_key() < key,
            Some(trim) => !trim.bounds.ends_after(key),
        }
    }

    /// Its keys, and those that it deletes, lie within these.
    pub(crate) fn key_bounds(&self) -> KeyBounds {
        match &self.trim {
            None => {
                let (from, to) = self.table.key_bounds();
                KeyBounds { from, to: Some(to) }
            }
            Some(trim) => (*trim.bounds).clone(),
        }
    }

    /// The deleted ranges.
    #[inline]
    pub(crate) fn tombstones(&self) -> &RangeTombstones {
        match &self.trim {
            None => self.table.tombstones(),
            Some(trim) => &trim.tombstones,
        }
    }

    pub(crate) fn is_trimmed(&self) -> bool {
        self.trim.is_some()
    }

    /// How many entries.
    pub(crate) fn entry_count(&self) -> u64 {
        self.trim.as_ref().map_or_else(|| self.table.entry_count(), |trim| trim.entries)
    }

    /// How many entries of the table come before the first.
    pub(crate) fn skipped(&self) -> u64 {
        self.trim.as_ref().map_or(0, |trim| trim.skipped)
    }

    /// Between how many entries and how many are before `key`: exact but for the key's block.
    pub(crate) fn rank_bounds(&self, key: &[u8]) -> RankBounds {
        let RankBounds { least, most } = self.table.rank_bounds(key);
        let within = |rank: u64| rank.saturating_sub(self.skipped()).min(self.entry_count());
        RankBounds { least: within(least), most: within(most) }
    }

    /// Of the file's bytes, the share of these entries.
    pub(crate) fn bytes_within(&self) -> u64 {
        let share = self.entry_count() as f64 / self.table.entry_count().max(1) as f64;
        let bytes = self.table.bytes();
        if self.is_trimmed() { (bytes as f64 * share) as u64 } else { bytes }
    }

    /// A cursor at no entry.
    pub(crate) fn cursor(&self) -> TableCursor {
        self.table.cursor().within(self.trim.as_ref().map(|trim| &trim.bounds))
    }

    /// What it has in the range; None: nothing. Reads the blocks at the range's ends, where these
    /// are among its keys.
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

    /// The record of these keys, where another one is `of` the table.
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
