//! A cursor over a table, one block at a time.
//! ```text
//! seek -> fences -> block -> entry        next past the block's end -> first of the next block
//! bounds          of a trimmed table, keys before the first and behind the last are skipped
//! ```
//! Invariant: it holds only its current block, whose number is `number`. It is never at an entry
//! outside of its bounds.

use crate::entries::block_cursor::BlockCursor;
use crate::entries::cursor::{Cursor, Reads};
use crate::entries::entry::{Entry, Sequence, order};
use crate::entries::key_bounds::KeyBounds;
use crate::entries::value::Value;
use crate::error::Result;
use crate::files::query_blocks::Fetched;
use crate::files::table::Table;
use crate::files::table::ahead::Ahead;
use crate::sync::Arc;

/// A cursor over a table, which it keeps open.
pub(crate) struct TableCursor {
    table: Arc<Table>,
    number: usize,
    /// `None`: no block was read yet, or a read failed.
    place: Option<BlockCursor>,
    fill_cache: bool,
    ahead: Ahead,
    /// `Some`: the cursor reads no block, and fails if it needs one that is neither here nor
    /// cached.
    blocks: Option<Arc<Fetched>>,
    /// The keys that belong to the tree. `None`: all.
    bounds: Option<Arc<KeyBounds>>,
    reads: Reads,
}

impl Table {
    /// Returns a cursor at no entry. It caches the blocks that it reads.
    pub(crate) fn cursor(self: &Arc<Self>) -> TableCursor {
        TableCursor {
            table: Arc::clone(self),
            number: 0,
            place: None,
            fill_cache: true,
            ahead: Ahead::default(),
            blocks: None,
            bounds: None,
            reads: Reads::default(),
        }
    }
}

impl TableCursor {
    /// Restricts the cursor to keys within the bounds.
    #[must_use]
    pub(crate) fn within(mut self, bounds: Option<&Arc<KeyBounds>>) -> Self {
        self.bounds = bounds.cloned();
        self
    }

    /// Sets whether the cursor caches the blocks that it reads. Do not cache blocks that are read
    /// once.
    #[must_use]
    pub(crate) fn fill_cache(mut self, fill_cache: bool) -> Self {
        self.fill_cache = fill_cache;
        self
    }

    /// Prepares for a walk from the first entry to the last. It reads large chunks from the start,
    /// and caches none of them.
    #[must_use]
    pub(crate) fn end_to_end(mut self) -> Self {
        let (table, end) = (&self.table, self.table.block_count());
        let (first, last) = match self.bounds.as_deref() {
            Some(KeyBounds { from, to }) => (table.first_block_of(from), to.as_deref()),
            None => (0, None),
        };
        let blocks = first..last.map_or(end, |to| end.min(table.first_block_of(to) + 1));
        self.ahead = Ahead::all_of(blocks);
        self.fill_cache(false)
    }

    /// Restricts the cursor to blocks that were fetched for it, and cached ones.
    #[must_use]
    pub(crate) fn with_blocks(mut self, blocks: Option<Arc<Fetched>>) -> Self {
        self.blocks = blocks;
        self
    }

    /// False: past either end, or nothing was read yet.
    #[inline]
    pub(crate) fn is_at_entry(&self) -> bool {
        self.place.as_ref().is_some_and(BlockCursor::is_at_entry)
    }

    /// Whether the table has only range tombstones. Then there is no entry to move to.
    fn is_empty(&self) -> bool {
        self.table.block_count() == 0
    }

    /// Returns the cursor within block `number`, wherever it is. Does not read the current block
    /// again.
    fn load(&mut self, number: usize) -> Result<&mut BlockCursor> {
        let at_hand = self.place.take();
        let place = match at_hand {
            Some(place) if self.number == number => place,
            at_hand => {
                let (ahead, reads) = (&mut self.ahead, &mut self.reads);
                let block = match &self.blocks {
                    None => self.table.block_ahead(number, self.fill_cache, ahead, reads)?,
                    Some(blocks) => blocks.block(&self.table, number, reads)?,
                };
                match at_hand {
                    Some(mut place) => {
                        place.reset(block);
                        place
                    }
                    None => BlockCursor::new(block),
                }
            }
        };
        self.number = number;
        Ok(self.place.insert(place))
    }

    /// Moves past an end if the current entry is outside of the bounds.
    fn clip(&mut self) {
        if let Some(bounds) = &self.bounds
            && let Some(Entry { key, .. }) = self.entry()
            && !bounds.contains(key)
        {
            self.place = None;
        }
    }

    /// Returns the number of the table's entries before the current one. Requires: at an entry.
    pub(crate) fn rank(&self) -> u64 {
        let (before, _) = self.table.index.entries(self.number);
        before + self.place.as_ref().map_or(0, BlockCursor::nth)
    }

    /// Moves to the entry with this rank. If there is none, moves past the end.
    pub(crate) fn seek_rank(&mut self, rank: u64) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let (number, within) = self.table.index.block_of_rank(rank);
        self.load(number)?.seek_nth(within);
        self.clip();
        Ok(())
    }

    /// From past the end of a block, moves to the next entry, if there is one within the bounds.
    #[inline(never)]
    fn on_to_next_block(&mut self) -> Result<()> {
        if !self.is_at_entry() && self.number + 1 < self.table.block_count() {
            self.load(self.number + 1)?.seek_first();
        }
        self.clip();
        Ok(())
    }

    /// From past the start of a block, moves to the previous entry, if there is one within the
    /// bounds.
    fn back_to_block_before(&mut self) -> Result<()> {
        if !self.is_at_entry() && self.number > 0 {
            self.load(self.number - 1)?.seek_last();
        }
        self.clip();
        Ok(())
    }
}

impl Cursor for TableCursor {
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let bounds = self.bounds.clone();
        let key = bounds.as_ref().map_or(key, |bounds| key.max(&bounds.from));
        self.load(self.table.first_block_of(key))?.seek(key);
        self.on_to_next_block()
    }

    /// A key's entries may fill several blocks. Bisects for the last of these that begins with an
    /// entry before (key, at).
    fn seek_version(&mut self, key: &[u8], at: Sequence) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let (mut low, mut high) = self.table.blocks_of(key);
        while low < high {
            let middle = high - (high - low) / 2;
            let place = self.load(middle)?;
            place.seek_first();
            let begins = place.entry().map(|entry| (entry.key, entry.sequence));
            let is_before = begins.is_some_and(|found| order(found, (key, at)).is_lt());
            (low, high) = if is_before { (middle, high) } else { (low, middle - 1) };
        }
        self.load(low)?.seek_version(key, at);
        self.on_to_next_block()
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let bounds = self.bounds.clone();
        let to = bounds.as_ref().and_then(|bounds| bounds.to.as_deref());
        let key = to.map_or(key, |to| key.min(to));
        self.load(self.table.first_block_of(key))?.seek_before(key);
        self.back_to_block_before()
    }

    fn seek_last(&mut self) -> Result<()> {
        if let Some(bounds) = self.bounds.clone()
            && let Some(to) = &bounds.to
        {
            return self.seek_before(to);
        }
        if !self.is_empty() {
            self.load(self.table.block_count() - 1)?.seek_last();
        }
        self.clip();
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        let Some(place) = &mut self.place else { return Ok(()) };
        place.next();
        // Most entries lie in the current block, and in tables that are not trimmed.
        match place.is_at_entry() && self.bounds.is_none() {
            true => Ok(()),
            false => self.on_to_next_block(),
        }
    }

    fn prev(&mut self) -> Result<()> {
        let Some(place) = &mut self.place else { return Ok(()) };
        place.prev();
        self.back_to_block_before()
    }

    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        self.place.as_ref()?.entry()
    }

    /// A key's entries continue in the next block only where the fences say so, and never in the
    /// next table.
    fn ends_key_and_block(&self) -> bool {
        let first = self.place.as_ref().filter(|place| place.is_first());
        let key = first.and_then(BlockCursor::entry).map(|entry| entry.key);
        key.is_some_and(|key| !self.table.continues(self.number, key))
    }

    #[inline(always)]
    fn value(&self) -> Value {
        match &self.place {
            Some(place) => place.value(),
            None => Value::empty(),
        }
    }

    fn reads(&mut self) -> Reads {
        std::mem::take(&mut self.reads)
    }
}
