//! A run: disjoint tables in key order, read as one.
//! ```text
//! run      [a .. f] [h .. k] [m .. z]
//! find(g)  none: no table covers it
//! clip     [i .. k] [m .. p]        tables of the run; both are trimmed
//! ```
//! Invariant: there is at least one table, and each ends before the next begins.

use std::path::Path;

use trommel_filters::{RankBounds, Span};

use crate::entries::cursor::{Cursor, Reads};
use crate::entries::entry::{Entry, Sequence};
use crate::entries::key_bounds::KeyBounds;
use crate::entries::tombstones::Stretch;
use crate::entries::value::Value;
use crate::error::Result;
use crate::files::fences::Fences;
use crate::files::query_blocks::Fetched;
use crate::files::read_ahead::Approach;
use crate::files::run_table::RunTable;
use crate::files::table::cursor::TableCursor;
use crate::sync::Arc;

/// Disjoint tables in key order.
#[derive(Clone)]
pub(crate) struct Run {
    tables: Vec<RunTable>,
    /// The first keys of all tables but the first, which are searched without touching tables.
    firsts: Fences,
    /// For each table, the number of entries before it.
    ranks: Vec<u64>,
    span: Span,
    /// No entry is newer.
    greatest: Sequence,
    /// Indexes of the tables with range tombstones.
    deleting: Vec<usize>,
}

impl Run {
    /// Builds a run. `None` if there are no tables, or if two of them overlap or are out of order.
    pub(crate) fn new(tables: Vec<RunTable>) -> Option<Run> {
        let apart = |pair: &[RunTable]| pair[0].ends_before(pair[1].first_key());
        let disjoint = tables.windows(2).all(apart);
        let span = tables.iter().map(|table| table.span).reduce(Span::hull)?;
        let greatest = tables.iter().map(|table| table.table.properties().sequences.1).max()?;
        let deletes = |place: &usize| !tables[*place].tombstones().is_empty();
        let deleting = (0..tables.len()).filter(deletes).collect();
        let ranks = tables.iter().scan(0, |all, table| {
            let before = *all;
            *all += table.entry_count();
            Some(before)
        });
        let ranks = ranks.collect();
        let firsts: Vec<&[u8]> = tables[1..].iter().map(RunTable::first_key).collect();
        let firsts = Fences::new(&firsts, Vec::new())?;
        disjoint.then_some(Run { tables, firsts, ranks, span, greatest, deleting })
    }

    /// The greatest sequence number of all entries and range tombstones.
    pub(crate) fn greatest(&self) -> Sequence {
        self.greatest
    }

    /// False: the run has no entry in [lower, end).
    pub(crate) fn may_have_in(&self, lower: &[u8], end: &[u8]) -> bool {
        self.overlapping(lower, Some(end)).iter().any(|table| table.entry_count() > 0)
    }

    /// Whether the run has range tombstones.
    pub(crate) fn deletes_ranges(&self) -> bool {
        !self.deleting.is_empty()
    }

    /// Returns the keys around one with the same range tombstones, and the newest of these up to
    /// number `at`.
    pub(crate) fn stretch(&self, key: &[u8], at: Sequence) -> Stretch<'_> {
        let tombstones = |place: usize| self.tables[self.deleting[place]].tombstones();
        let ends = |place: &usize| self.tables[*place].tombstones().end();
        let place = self.deleting.partition_point(|table| ends(table).is_none_or(|end| end <= key));
        let before = place.checked_sub(1).and_then(|before| tombstones(before).end());
        if place == self.deleting.len() {
            return Stretch { newest: None, from: before, until: None };
        }
        let stretch = tombstones(place).stretch(key, at);
        Stretch { from: stretch.from.or(before), ..stretch }
    }

    /// Makes a run of one table.
    pub(crate) fn of_table(table: RunTable) -> Option<Arc<Run>> {
        Run::new(vec![table]).map(Arc::new)
    }

    /// The least span that covers the spans of its tables.
    pub(crate) fn span(&self) -> Span {
        self.span
    }

    /// The tables, in key order.
    pub(crate) fn tables(&self) -> &[RunTable] {
        &self.tables
    }

    /// The path that errors name if they concern the run as a whole.
    pub(crate) fn path(&self) -> &Path {
        self.tables[0].table.path()
    }

    /// Returns the only table whose bounds include `key`. `None`: the run does not have the key.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<&RunTable> {
        let number = self.firsts.find(key);
        let found = &self.tables[number];
        let is_within = (number > 0 || found.first_key() <= key) && !found.ends_before(key);
        is_within.then_some(found)
    }

    /// Returns the tables whose first and last keys overlap [lower, end).
    pub(crate) fn overlapping(&self, lower: &[u8], end: Option<&[u8]>) -> &[RunTable] {
        let first = self.first_ending_at_or_after(lower);
        let after = end.map_or(self.tables.len(), |end| self.count_beginning_before(end));
        &self.tables[first..after.max(first)]
    }

    /// Returns a cursor at no entry. It reads nothing of tables that it does not reach.
    pub(crate) fn cursor(self: &Arc<Self>) -> RunCursor {
        let (run, reads) = (Arc::clone(self), Reads::default());
        RunCursor { run, number: 0, place: None, walk: Walk::default(), blocks: None, reads }
    }

    /// Returns bounds on the number of entries before `key`. Only the entries of the key's block
    /// make them inexact.
    pub(crate) fn rank_bounds(&self, key: &[u8]) -> RankBounds {
        let number = self.first_ending_at_or_after(key);
        let Some(table) = self.tables.get(number) else {
            return RankBounds::exact(self.entry_count());
        };
        let (before, within) = (self.ranks[number], table.rank_bounds(key));
        RankBounds { least: before + within.least, most: before + within.most }
    }

    /// Returns the table of the entry with this rank.
    pub(crate) fn table_of_rank(&self, rank: u64) -> &RunTable {
        &self.tables[self.number_of_rank(rank)]
    }

    /// The first table has rank 0, so one always qualifies.
    fn number_of_rank(&self, rank: u64) -> usize {
        self.ranks.partition_point(|&before| before <= rank) - 1
    }

    /// The memory of the fences between tables, in bytes.
    pub(crate) fn fence_bytes(&self) -> usize {
        self.firsts.heap_bytes()
    }

    /// The size of its files in bytes. Trimmed tables count in proportion to their entries.
    pub(crate) fn bytes(&self) -> u64 {
        self.tables.iter().map(RunTable::bytes_within).sum()
    }

    pub(crate) fn entry_count(&self) -> u64 {
        self.tables.iter().map(RunTable::entry_count).sum()
    }

    /// Returns about how many keys it has, and at most one per byte. Memory is reserved for them,
    /// so a damaged count must not claim more than the files can have.
    pub(crate) fn likely_keys(&self) -> u64 {
        self.entry_count().min(self.bytes())
    }

    /// Returns the tables whose first and last keys overlap the range.
    pub(crate) fn within(&self, bounds: &KeyBounds) -> &[RunTable] {
        self.overlapping(&bounds.from, bounds.to.as_deref())
    }

    /// Clips the run to a range. `None`: it has nothing there.
    pub(crate) fn clip(self: &Arc<Self>, bounds: &KeyBounds) -> Result<Option<Arc<Run>>> {
        if bounds.is_all() {
            return Ok(Some(Arc::clone(self)));
        }
        let first =
            self.tables.partition_point(|table| !table.key_bounds().ends_after(&bounds.from));
        let begun = |table: &&RunTable| bounds.ends_after(&table.key_bounds().from);
        let tables = self.tables[first..].iter().take_while(begun);
        let clipped = tables.map(|table| table.clip(bounds));
        let tables: Vec<RunTable> = clipped.filter_map(Result::transpose).collect::<Result<_>>()?;
        Ok(Run::new(tables).map(Arc::new))
    }

    fn first_ending_at_or_after(&self, key: &[u8]) -> usize {
        let number = self.firsts.find(key);
        number + usize::from(self.tables[number].ends_before(key))
    }

    fn count_beginning_before(&self, key: &[u8]) -> usize {
        let number = self.firsts.find(key);
        number + usize::from(self.tables[number].first_key() < key)
    }

    /// Prefetches memory on the way to the entries near a key or, for `None`, near the run's end.
    pub(crate) fn prefetch(&self, key: Option<&[u8]>, approach: Approach) {
        let number = key.map_or(self.tables.len() - 1, |key| self.firsts.find(key));
        let table = &self.tables[number].table;
        let block = || match key {
            Some(key) => table.block_for(key),
            None => table.block_count().checked_sub(1),
        };
        match (approach, key) {
            (Approach::Fences, Some(key)) => table.prefetch_fences(key),
            (Approach::Fences, None) => {}
            (Approach::Slot, _) => block().into_iter().for_each(|block| table.prefetch_slot(block)),
            (Approach::Block, _) => {
                block().into_iter().for_each(|block| table.prefetch_block(block))
            }
        }
    }
}

/// A cursor over a run, which it keeps alive.
pub(crate) struct RunCursor {
    run: Arc<Run>,
    number: usize,
    /// The cursor of table `number`. `None`: past either end, or nothing was read yet.
    place: Option<TableCursor>,
    walk: Walk,
    /// `Some`: the cursor reads only these blocks and cached ones.
    blocks: Option<Arc<Fetched>>,
    /// What the cursors of earlier tables have read.
    reads: Reads,
}

/// How a cursor moves through a run, which determines how blocks are read.
#[derive(Clone, Copy, Default)]
enum Walk {
    #[default]
    ByKey,
    PastCache,
    EndToEnd,
}

impl RunCursor {
    /// Prepares for a walk from the first entry to the last. It reads large chunks from the start,
    /// and caches none of them.
    #[must_use]
    pub(crate) fn end_to_end(self) -> Self {
        RunCursor { walk: Walk::EndToEnd, ..self }
    }

    /// Prepares for scattered lookups that cache no block.
    #[must_use]
    pub(crate) fn past_cache(self) -> Self {
        RunCursor { walk: Walk::PastCache, ..self }
    }

    /// Restricts the cursor to blocks that were fetched for it, and cached ones.
    #[must_use]
    pub(crate) fn with_blocks(mut self, blocks: Option<Arc<Fetched>>) -> Self {
        self.blocks = blocks;
        self
    }

    /// Moves to the entry with this rank. If there is none, moves past the end.
    pub(crate) fn seek_rank(&mut self, rank: u64) -> Result<()> {
        let number = self.run.number_of_rank(rank);
        let within = rank - self.run.ranks[number];
        let skipped = self.run.tables[number].skipped();
        self.enter(number).seek_rank(skipped + within)
    }

    #[inline]
    fn is_at_entry(&self) -> bool {
        self.place.as_ref().is_some_and(TableCursor::is_at_entry)
    }

    /// Moves past either end.
    fn leave(&mut self) {
        if let Some(mut place) = self.place.take() {
            self.reads += place.reads();
        }
    }

    /// From past the end of a table, moves to the first entry of the following tables, if there is
    /// one.
    #[inline(never)]
    fn on_to_next_table(&mut self) -> Result<()> {
        while !self.is_at_entry() && self.number + 1 < self.run.tables.len() {
            self.enter(self.number + 1).seek_first()?;
        }
        Ok(())
    }

    /// From past the start of a table, moves to the last entry of the preceding tables, if there is
    /// one.
    fn back_to_table_before(&mut self) -> Result<()> {
        while !self.is_at_entry() && self.number > 0 {
            self.enter(self.number - 1).seek_last()?;
        }
        Ok(())
    }

    /// Seeks a key in the table that covers it, or else in the next one.
    #[inline]
    fn seek_with(
        &mut self,
        key: &[u8],
        seek: impl FnOnce(&mut TableCursor) -> Result<()>,
    ) -> Result<()> {
        let number = self.run.first_ending_at_or_after(key);
        if number == self.run.tables.len() {
            self.leave();
            return Ok(());
        }
        seek(self.enter(number))?;
        self.on_to_next_table()
    }

    /// Returns the cursor of table `number`, wherever it is. Requires: the table exists.
    fn enter(&mut self, number: usize) -> &mut TableCursor {
        if self.number != number {
            self.leave();
        }
        self.number = number;
        let (table, blocks, walk) = (&self.run.tables[number], &self.blocks, self.walk);
        self.place.get_or_insert_with(|| {
            let cursor = table.cursor().with_blocks(blocks.clone());
            match walk {
                Walk::ByKey => cursor,
                Walk::PastCache => cursor.fill_cache(false),
                Walk::EndToEnd => cursor.end_to_end(),
            }
        })
    }
}

impl Cursor for RunCursor {
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.seek_with(key, |place| place.seek(key))
    }

    fn seek_version(&mut self, key: &[u8], at: Sequence) -> Result<()> {
        self.seek_with(key, |place| place.seek_version(key, at))
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        match self.run.count_beginning_before(key).checked_sub(1) {
            Some(number) => {
                self.enter(number).seek_before(key)?;
                self.back_to_table_before()
            }
            None => {
                self.leave();
                Ok(())
            }
        }
    }

    fn seek_last(&mut self) -> Result<()> {
        self.enter(self.run.tables.len() - 1).seek_last()?;
        self.back_to_table_before()
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        let Some(place) = &mut self.place else { return Ok(()) };
        place.next()?;
        if place.is_at_entry() { Ok(()) } else { self.on_to_next_table() }
    }

    fn prev(&mut self) -> Result<()> {
        let Some(place) = &mut self.place else { return Ok(()) };
        place.prev()?;
        self.back_to_table_before()
    }

    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        self.place.as_ref()?.entry()
    }

    fn ends_key_and_block(&self) -> bool {
        self.place.as_ref().is_some_and(Cursor::ends_key_and_block)
    }

    #[inline(always)]
    fn value(&self) -> Value {
        match &self.place {
            Some(place) => place.value(),
            None => Value::empty(),
        }
    }

    fn reads(&mut self) -> Reads {
        let mut reads = std::mem::take(&mut self.reads);
        if let Some(place) = &mut self.place {
            reads += place.reads();
        }
        reads
    }
}

#[cfg(test)]
mod tests;
