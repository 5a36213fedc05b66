//! Blocks that a cursor comes to one after the other: read in pieces, ahead of it.
//! ```text
//! cursor    | 7 | 8 | 9 | 10 | 11 | 12 | 13 | 14 | 15 | ...
//! reads      [7] [8   9] [10   11   12   13] [14  ...            each piece has twice the blocks of the one before
//! ```
//! A cursor that goes from block to block, either way, gets them in pieces, up to so many bytes; one that jumps begins anew
//! with a block alone. So a seek reads what it needs, and a merge or a long scan has few, large reads.
//!
//! Invariant: blocks of a piece are checked, counted and kept in the cache when the cursor comes to them, as if they were read then.

use std::ops::Range;

use super::Table;
use crate::block::Block;
use crate::cursor::Reads;
use crate::error::{Error, Result};

/// The most that one piece has.
const PIECE_BYTES: u64 = 512 << 10;

/// What a cursor has read of a table ahead.
#[derive(Default)]
pub(crate) struct Ahead {
    /// The blocks of the piece.
    blocks: Range<usize>,
    /// Where in the file it begins.
    offset: u64,
    bytes: Vec<u8>,
    /// The last block that was asked for, and how the cursor came there.
    last: Option<usize>,
    way: Way,
    /// Blocks of the last piece.
    window: usize,
}

/// How a cursor comes to a block.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Way {
    #[default]
    Jump,
    Up,
    Down,
}

impl Ahead {
    /// The cursor comes to this block.
    fn come_to(&mut self, number: usize) {
        let way = match self.last {
            Some(last) if last + 1 == number => Way::Up,
            Some(last) if number + 1 == last => Way::Down,
            _ => Way::Jump,
        };
        let goes_on = way != Way::Jump && (self.way == way || self.way == Way::Jump);
        self.window = if goes_on { self.window } else { 1 };
        (self.last, self.way) = (Some(number), way);
    }
}

impl Table {
    /// A block that a cursor comes to, from the cache, from what it has read ahead, or from the disk. Requires: there is such a
    /// block; `ahead` is of one cursor over this table.
    pub(crate) fn block_ahead(
        &self,
        number: usize,
        fill_cache: bool,
        ahead: &mut Ahead,
        reads: &mut Reads,
    ) -> Result<Block> {
        ahead.come_to(number);
        reads.blocks += 1;
        if let Some(block) = self.blocks.get(number) {
            return Ok(block);
        }
        if !ahead.blocks.contains(&number) {
            self.read_piece(number, ahead)?;
        }
        let (offset, len) = self.index.block(number);
        let start = (offset - ahead.offset) as usize;
        let block = self.opened.checked_block(
            &self.index,
            number,
            &ahead.bytes[start..][..len as usize],
        )?;
        reads.disk_reads += 1;
        reads.bytes += len;
        if fill_cache {
            self.blocks.insert(number, &block);
        }
        Ok(block)
    }

    #[cold]
    fn read_piece(&self, number: usize, ahead: &mut Ahead) -> Result<()> {
        if ahead.way != Way::Jump {
            ahead.window = (2 * ahead.window).min(self.block_count());
        }
        let blocks = self.piece(number, ahead.way, ahead.window);
        match self.fill_piece(&blocks, ahead) {
            // The file ends too early: blocks before its end are there.
            Err(Error::Corrupt { .. }) if blocks.len() > 1 => {
                self.fill_piece(&(number..number + 1), ahead)
            }
            filled => filled,
        }
    }

    fn fill_piece(&self, blocks: &Range<usize>, ahead: &mut Ahead) -> Result<()> {
        let (offset, _) = self.index.block(blocks.start);
        let (last, last_len) = self.index.block(blocks.end - 1);
        // Until it is filled there is no piece.
        ahead.blocks = 0..0;
        ahead.bytes.resize((last + last_len - offset) as usize, 0);
        self.opened.fill(offset, &mut ahead.bytes)?;
        (ahead.blocks, ahead.offset) = (blocks.clone(), offset);
        Ok(())
    }

    /// Blocks from `number` on, the way that a cursor goes: at most `window`, and not too many bytes.
    fn piece(&self, number: usize, way: Way, window: usize) -> Range<usize> {
        let (at, len) = self.index.block(number);
        let fits = |other: usize| {
            let (offset, other_len) = self.index.block(other);
            (offset + other_len).max(at + len) - offset.min(at) <= PIECE_BYTES
        };
        match way {
            Way::Jump => number..number + 1,
            Way::Up => {
                let most = (number + window).min(self.block_count());
                number..(number + 1..most).find(|other| !fits(*other)).unwrap_or(most)
            }
            Way::Down => {
                let least = (number + 1).saturating_sub(window);
                (least..number).find(|other| fits(*other)).unwrap_or(number)..number + 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::Cursor;
    use crate::cursor::checks::Owned;
    use crate::table::tests::{Shelf, options};
    use crate::table_writer::TableOptions;

    fn numbers(count: u64) -> Vec<Owned> {
        let put = |number: u64| Shelf::put(&number.to_be_bytes(), number + 1, &[7; 50]);
        (0..count).map(put).collect()
    }

    fn options_of(block_bytes: usize) -> TableOptions {
        TableOptions { block_bytes, compression: false, ..options() }
    }

    /// Reads of the disk while a cursor goes over a whole table, and what it has counted.
    fn walk(shelf: &Shelf, cursor: &mut dyn Cursor, back: bool) -> (u64, u64, Reads) {
        let before = shelf.disk.operations();
        if back { cursor.seek_last() } else { cursor.seek_first() }.unwrap();
        let mut count = 0;
        while cursor.entry().is_some() {
            if back { cursor.prev() } else { cursor.next() }.unwrap();
            count += 1;
        }
        (count, shelf.disk.operations() - before, cursor.reads())
    }

    #[test]
    fn a_walk_either_way_reads_few_large_pieces_and_counts_every_block() {
        for cache_bytes in [0, 20_000, 8 << 20] {
            let shelf = Shelf::new(cache_bytes);
            let table = shelf.table(&numbers(20_000), &options_of(1000));
            let blocks = table.block_count() as u64;
            assert!(blocks > 1000, "{blocks}");
            for back in [false, true] {
                let mut cursor = table.cursor().fill_cache(false);
                let (count, operations, reads) = walk(&shelf, &mut cursor, back);
                assert_eq!((count, reads.blocks, reads.disk_reads), (20_000, blocks, blocks));
                let data_bytes = reads.bytes;
                assert!(operations < 12 + data_bytes / PIECE_BYTES, "{operations} reads");
            }
        }
    }

    #[test]
    fn what_is_read_ahead_is_kept_when_it_is_come_to() {
        let shelf = Shelf::new(8 << 20);
        let table = shelf.table(&numbers(5000), &options_of(1000));
        let blocks = table.block_count() as u64;
        let (_, operations, reads) = walk(&shelf, &mut table.cursor(), false);
        assert!(operations < 20 && reads.disk_reads == blocks, "{operations}, {reads:?}");
        let (count, operations, reads) = walk(&shelf, &mut table.cursor(), false);
        assert_eq!((count, operations, reads.disk_reads, reads.blocks), (5000, 0, 0, blocks));
    }

    #[test]
    fn a_seek_reads_one_block_and_so_do_jumps() {
        let shelf = Shelf::new(0);
        let table = shelf.table(&numbers(5000), &options_of(1000));
        let mut cursor = table.cursor();
        for number in [0u64, 3000, 100, 4900, 2000] {
            let before = shelf.disk.operations();
            cursor.seek(&number.to_be_bytes()).unwrap();
            assert_eq!(cursor.entry().unwrap().key, number.to_be_bytes());
            assert_eq!((shelf.disk.operations() - before, cursor.reads().blocks), (1, 1));
        }
    }

    #[test]
    fn of_a_file_that_was_cut_off_all_that_is_there_is_read() {
        let shelf = Shelf::new(0);
        let table = shelf.table(&numbers(5000), &options_of(1000));
        let (first_lost, _) = table.index.block(40);
        shelf.disk.truncate(table.path(), first_lost + 10);
        let mut cursor = table.cursor();
        cursor.seek_first().unwrap();
        let (before, _) = table.block_entries(40);
        for _ in 1..before {
            cursor.next().unwrap();
        }
        let wrong = cursor.next().unwrap_err().to_string();
        assert!(wrong.contains("ends too early"), "{wrong}");
    }

    #[test]
    fn a_damaged_block_is_named_when_it_is_come_to_and_not_before() {
        let shelf = Shelf::new(0);
        let table = shelf.table(&numbers(5000), &options_of(1000));
        shelf.disk.flip_bit(table.path(), table.index.block(40).0 + 20, 3);
        let mut cursor = table.cursor();
        cursor.seek_first().unwrap();
        for _ in 1..table.block_entries(40).0 {
            cursor.next().unwrap();
        }
        let wrong = cursor.next().unwrap_err().to_string();
        assert!(wrong.contains("data block 40"), "{wrong}");
    }
}
