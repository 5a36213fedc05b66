//! Read-ahead of a table cursor that moves from block to block.
//! ```text
//! cursor    | 7 | 8 | 9 | 10 | 11 | 12 | 13 | 14 | 15 | ...
//! reads      [7] [8   9] [10   11   12   13] [14  ...      each chunk has twice as many blocks
//!
//! then, and for a walk over the whole table:
//!            the cursor is in [ a chunk ], and the disk reads [ the next ]
//! ```
//! A cursor that moves sequentially, in either direction, gets blocks in chunks of limited size. A
//! cursor that jumps begins anew with a single block. So a seek reads what it needs, and a merge or
//! a long scan does few, large reads. Once chunks have reached their limit, the next one is
//! requested when the cursor enters one. So at most two chunks are in memory.
//!
//! Invariant: a block of a chunk is checked, counted and cached only when the cursor reaches it.
//! Errors are reported then, too.

use std::ops::Range;

use super::Table;
use crate::entries::block::Block;
use crate::entries::cursor::Reads;
use crate::error::{Error, Result};
use crate::storage::read_queue::{ReadBuffer, ReadQueue};
use crate::sync::Arc;

/// Maximum bytes of a chunk.
const CHUNK_BYTES: u64 = 512 << 10;

/// The read-ahead state of one cursor over one table.
#[derive(Default)]
pub(crate) struct Ahead {
    /// `None`: nothing was read yet, or a read failed.
    here: Option<Chunk>,
    coming: Option<Coming>,
    /// The last block that the cursor came to. `way` is how it came there.
    last: Option<usize>,
    way: Way,
    /// Target number of blocks in the last chunk.
    window: usize,
    /// `Some`: the cursor visits all of these blocks in sequence.
    all_of: Option<Range<usize>>,
}

/// Neighbouring blocks, as they are on disk.
struct Chunk {
    blocks: Range<usize>,
    /// The file offset of the chunk.
    offset: u64,
    bytes: ReadBuffer,
}

/// A chunk that is being read, in a queue of its own. Dropping it abandons the read.
struct Coming {
    blocks: Range<usize>,
    reads: Box<dyn ReadQueue>,
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
    /// Prepares for a cursor that visits all of these blocks in sequence.
    pub(crate) fn all_of(blocks: Range<usize>) -> Self {
        Ahead { all_of: Some(blocks), ..Ahead::default() }
    }

    /// Records that the cursor comes to this block.
    fn come_to(&mut self, number: usize) {
        let way = match self.last {
            Some(last) if last + 1 == number => Way::Up,
            Some(last) if number + 1 == last => Way::Down,
            None if self.all_of.is_some() => Way::Up,
            _ => Way::Jump,
        };
        let goes_on = way != Way::Jump && (self.way == way || self.way == Way::Jump);
        self.window = match &self.all_of {
            Some(blocks) if way != Way::Jump => blocks.len(),
            _ if goes_on => self.window,
            _ => 1,
        };
        (self.last, self.way) = (Some(number), way);
    }
}

impl Table {
    /// Returns a block for a cursor: from the cache, from its read-ahead, or from the disk.
    /// Requires: the block exists, and `ahead` belongs to a single cursor over this table.
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
        let here = ahead.here.take().filter(|chunk| chunk.blocks.contains(&number));
        let chunk = match here {
            Some(chunk) => chunk,
            None => self.next_chunk(number, ahead)?,
        };
        let chunk = ahead.here.insert(chunk);
        let (offset, len) = self.index.block(number);
        let start = (offset - chunk.offset) as usize;
        let bytes = &chunk.bytes[start..][..len as usize];
        let block = self.opened.checked_block(&self.index, number, bytes)?;
        reads.disk_reads += 1;
        reads.bytes += len;
        if fill_cache {
            self.blocks.insert(number, &block);
        }
        Ok(block)
    }

    /// Returns the chunk that contains a block: the requested one, or else one that begins with the
    /// block. Requests the following chunk if that pays.
    #[cold]
    fn next_chunk(&self, number: usize, ahead: &mut Ahead) -> Result<Chunk> {
        let coming = ahead.coming.take().filter(|coming| coming.blocks.contains(&number));
        let (blocks, read) = match coming {
            Some(mut coming) => {
                let done = coming.reads.collect(true).expect("it was submitted");
                let (offset, _) = self.span_of(&coming.blocks);
                (coming.blocks, done.bytes.map_err(|error| self.opened.failed(offset, error)))
            }
            None => {
                if ahead.way != Way::Jump {
                    ahead.window = (2 * ahead.window).min(self.block_count());
                }
                let blocks = self.chunk(number, ahead);
                let (offset, len) = self.span_of(&blocks);
                (blocks, self.opened.read(offset, len))
            }
        };
        let (blocks, bytes) = match read {
            // The file ends too early, but blocks before its end may be readable.
            Err(Error::Corrupt { .. }) if blocks.len() > 1 => {
                let (offset, len) = self.index.block(number);
                (number..number + 1, self.opened.read(offset, len)?)
            }
            read => {
                let bytes = read?;
                self.request_next(&blocks, ahead);
                (blocks, bytes)
            }
        };
        let (offset, _) = self.span_of(&blocks);
        Ok(Chunk { blocks, offset, bytes })
    }

    /// Requests the next chunk if the limit of bytes, not the window, ended this one.
    fn request_next(&self, blocks: &Range<usize>, ahead: &mut Ahead) {
        let next = match ahead.way {
            _ if blocks.len() >= ahead.window => None,
            Way::Jump => None,
            Way::Up => Some(blocks.end),
            Way::Down => blocks.start.checked_sub(1),
        };
        let is_wanted = |number: &usize| match &ahead.all_of {
            Some(all) => all.contains(number),
            None => *number < self.block_count(),
        };
        let Some(number) = next.filter(is_wanted) else { return };
        let (blocks, mut reads) = (self.chunk(number, ahead), self.opened.bytes.reads_ahead());
        let (offset, len) = self.span_of(&blocks);
        reads.submit(0, Arc::clone(&self.opened.bytes), offset, len as usize);
        ahead.coming = Some(Coming { blocks, reads });
    }

    /// Returns offset and total length of blocks in the file. Requires: they exist, and there is at
    /// least one.
    fn span_of(&self, blocks: &Range<usize>) -> (u64, u64) {
        let (offset, _) = self.index.block(blocks.start);
        let (last, last_len) = self.index.block(blocks.end - 1);
        (offset, last + last_len - offset)
    }

    /// Returns the blocks of a chunk from `number` on, in the cursor's direction, within the limits
    /// of window and bytes.
    fn chunk(&self, number: usize, ahead: &Ahead) -> Range<usize> {
        let (at, len) = self.index.block(number);
        let fits = |other: usize| {
            let (offset, other_len) = self.index.block(other);
            (offset + other_len).max(at + len) - offset.min(at) <= CHUNK_BYTES
        };
        let all = ahead.all_of.clone().unwrap_or(0..self.block_count());
        match ahead.way {
            Way::Jump => number..number + 1,
            Way::Up => {
                let most = (number + ahead.window).min(all.end).max(number + 1);
                number..(number + 1..most).find(|other| !fits(*other)).unwrap_or(most)
            }
            Way::Down => {
                let least = (number + 1).saturating_sub(ahead.window).max(all.start).min(number);
                (least..number).find(|other| fits(*other)).unwrap_or(number)..number + 1
            }
        }
    }
}

#[cfg(test)]
mod tests;
