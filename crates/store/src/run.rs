//! A run: disjoint tables in key order, as one.
//! ```text
//! run   [a .. f] [g .. m] [p .. z]      a key lies in one table or between two
//! ```
//! Invariant: tables are in key order and do not overlap; a user key's entries lie in one table.

use trommel_filters::Span;

use crate::cursor::{Cursor, Reads};
use crate::entry::Entry;
use crate::error::Result;
use crate::sync::Arc;
use crate::table::Table;
use crate::table_cursor::TableCursor;
use crate::value::Value;

/// A table, and the flushes that its entries come from.
pub(crate) struct RunTable {
    pub(crate) table: Arc<Table>,
    pub(crate) span: Span,
}

/// Disjoint tables in key order.
pub(crate) struct Run {
    tables: Vec<RunTable>,
    span: Span,
}

impl Run {
    /// None if there are no tables, or if two of them overlap or are out of order.
    pub(crate) fn new(tables: Vec<RunTable>) -> Option<Run> {
        let in_order = |pair: &[RunTable]| pair[0].table.last_key() < pair[1].table.first_key();
        let span = tables.iter().map(|table| table.span).reduce(Span::hull)?;
        tables.windows(2).all(in_order).then_some(Run { tables, span })
    }

    /// Covers the spans of its tables.
    pub(crate) fn span(&self) -> Span {
        self.span
    }

    /// In key order.
    pub(crate) fn tables(&self) -> &[RunTable] {
        &self.tables
    }

    /// The table that has `key` between its first and last key. None: the run does not have it.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<&RunTable> {
        self.tables.get(self.first_ending_at(key)).filter(|found| found.table.first_key() <= key)
    }

    /// The tables with keys in [lower, end), as far as their first and last keys tell.
    pub(crate) fn overlapping(&self, lower: &[u8], end: Option<&[u8]>) -> &[RunTable] {
        let first = self.first_ending_at(lower);
        let after = end.map_or(self.tables.len(), |end| {
            self.tables.partition_point(|table| table.table.first_key() < end)
        });
        &self.tables[first..after.max(first)]
    }

    /// The place of the first table that ends at or after `key`.
    #[inline]
    fn first_ending_at(&self, key: &[u8]) -> usize {
        self.tables.partition_point(|table| table.table.last_key() < key)
    }

    /// A cursor for queries: what it reads is kept in the cache.
    pub(crate) fn cursor(self: &Arc<Self>) -> RunCursor {
        RunCursor {
            run: Arc::clone(self),
            fill_cache: true,
            place: 0,
            table: None,
            reads: Reads::default(),
        }
    }

    /// A cursor for one pass over everything: what it reads is not kept in the cache.
    pub(crate) fn cursor_once(self: &Arc<Self>) -> RunCursor {
        RunCursor { fill_cache: false, ..self.cursor() }
    }
}

/// Walks over a run. Opens a table's cursor when it comes to the table.
pub(crate) struct RunCursor {
    run: Arc<Run>,
    fill_cache: bool,
    /// Of the table that `table` walks over.
    place: usize,
    table: Option<TableCursor>,
    /// Of tables that were left.
    reads: Reads,
}

impl RunCursor {
    fn enter(&mut self, place: usize) -> &mut TableCursor {
        if self.place != place || self.table.is_none() {
            self.leave();
            let cursor = self.run.tables[place].table.cursor().fill_cache(self.fill_cache);
            self.place = place;
            self.table = Some(cursor);
        }
        self.table.as_mut().expect("entered above")
    }

    /// To no entry.
    fn leave(&mut self) {
        if let Some(mut table) = self.table.take() {
            self.reads += table.reads();
        }
    }
}

impl Cursor for RunCursor {
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        let place = self.run.first_ending_at(key);
        if place == self.run.tables.len() {
            self.leave();
            return Ok(());
        }
        self.enter(place).seek(key)
    }

    fn seek_first(&mut self) -> Result<()> {
        self.enter(0).seek_first()
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        let after = self.run.tables.partition_point(|table| table.table.first_key() < key);
        match after.checked_sub(1) {
            Some(place) => self.enter(place).seek_before(key),
            None => {
                self.leave();
                Ok(())
            }
        }
    }

    fn seek_last(&mut self) -> Result<()> {
        self.enter(self.run.tables.len() - 1).seek_last()
    }

    fn next(&mut self) -> Result<()> {
        let place = self.place;
        self.enter(place).next()?;
        if self.entry().is_none() && place + 1 < self.run.tables.len() {
            return self.enter(place + 1).seek_first();
        }
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        let place = self.place;
        self.enter(place).prev()?;
        if self.entry().is_none() && place > 0 {
            return self.enter(place - 1).seek_last();
        }
        Ok(())
    }

    fn entry(&self) -> Option<Entry<'_>> {
        self.table.as_ref().and_then(TableCursor::entry)
    }

    fn value(&self) -> Value {
        self.table.as_ref().expect("at an entry").value()
    }

    fn reads(&mut self) -> Reads {
        let mut reads = std::mem::take(&mut self.reads);
        if let Some(table) = &mut self.table {
            reads += table.reads();
        }
        reads
    }
}
