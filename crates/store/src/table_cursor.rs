//! A cursor over a table, one block at a time.
//! ```text
//! seek -> fences -> block -> entry        next past the block's end -> the block after, its first
//! ```
//! Invariant: it holds the one block it is in; `number` is that block's.

use crate::sync::Arc;

use crate::block_cursor::BlockCursor;
use crate::cursor::{Cursor, Reads};
use crate::entry::Entry;
use crate::error::Result;
use crate::table::Table;
use crate::value::Value;

/// A cursor over a table, which it keeps open.
pub(crate) struct TableCursor {
    table: Arc<Table>,
    number: usize,
    /// None: no block was read yet, or reading one failed.
    place: Option<BlockCursor>,
    fill_cache: bool,
    reads: Reads,
}

impl TableCursor {
    pub(crate) fn new(table: Arc<Table>) -> Self {
        let reads = Reads::default();
        TableCursor { table, number: 0, place: None, fill_cache: true, reads }
    }

    /// Whether the blocks that it reads are kept in the cache: not if each is read but once.
    #[must_use]
    pub(crate) fn fill_cache(mut self, fill_cache: bool) -> Self {
        self.fill_cache = fill_cache;
        self
    }

    /// Whether the table has no entries, but deleted ranges alone: there is no place to go to.
    fn is_empty(&self) -> bool {
        self.table.block_count() == 0
    }

    /// The cursor of block `number`, wherever in it. The block at hand is not read again.
    fn load(&mut self, number: usize) -> Result<&mut BlockCursor> {
        let at_hand = self.place.take();
        let place = match at_hand {
            Some(place) if self.number == number => place,
            at_hand => {
                let block = self.table.block(number, self.fill_cache, &mut self.reads)?;
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

    /// To the entry that so many come before. There is none: past the end.
    pub(crate) fn seek_rank(&mut self, rank: u64) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let (number, within) = self.table.block_of_rank(rank);
        self.load(number)?.seek_nth(within);
        Ok(())
    }

    /// Past the end of a block: to the first entry after it, if there is one.
    fn on_to_next_block(&mut self) -> Result<()> {
        if self.entry().is_none() && self.number + 1 < self.table.block_count() {
            self.load(self.number + 1)?.seek_first();
        }
        Ok(())
    }

    /// Past the start of a block: to the last entry before it, if there is one.
    fn back_to_block_before(&mut self) -> Result<()> {
        if self.entry().is_none() && self.number > 0 {
            self.load(self.number - 1)?.seek_last();
        }
        Ok(())
    }
}

impl Cursor for TableCursor {
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        self.load(self.table.first_block_of(key))?.seek(key);
        self.on_to_next_block()
    }

    fn seek_first(&mut self) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        self.load(0)?.seek_first();
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        self.load(self.table.first_block_of(key))?.seek_before(key);
        self.back_to_block_before()
    }

    fn seek_last(&mut self) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        self.load(self.table.block_count() - 1)?.seek_last();
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        if let Some(place) = &mut self.place {
            place.next();
            self.on_to_next_block()?;
        }
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        if let Some(place) = &mut self.place {
            place.prev();
            self.back_to_block_before()?;
        }
        Ok(())
    }

    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        self.place.as_ref()?.entry()
    }

    fn value(&self) -> Value {
        let place = self.place.as_ref();
        let value = place.and_then(|place| Some((place.block(), place.value_range()?)));
        value.map(|(block, range)| Value::in_block(block.clone(), range)).unwrap_or_default()
    }

    fn reads(&mut self) -> Reads {
        std::mem::take(&mut self.reads)
    }
}
