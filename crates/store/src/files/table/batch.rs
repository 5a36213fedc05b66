//! A table that is asked for many keys, or whose blocks its caller reads: the same steps as for one
//! key, taken apart.
//! ```text
//! ask_for_fences(key) ~~> block_for -> ask_for_slot ~~> ask_for_block ~~> cached_block
//!                                                          \-missing-> read_blocks,
//!     of many keys together
//! block_place(number) -> file, offset, length ... read, by any means ... block_of_bytes
//!     -> checked, in the cache
//! ```
//! Invariant: a block that is handed out was checked, as everywhere.

use std::io;

use super::{CheckedFile, Table};
use crate::entries::block::Block;
use crate::entries::cursor::Reads;
use crate::error::Result;
use crate::storage::read_queue::ReadBuffer;
use crate::storage::traits::{ReadAt, zeroed};
use crate::sync::Arc;

impl Table {
    /// The first block that may hold `key`. None: the table has no blocks.
    #[inline]
    pub(crate) fn block_for(&self, key: &[u8]) -> Option<usize> {
        (self.block_count() > 0).then(|| self.first_block_of(key))
    }

    /// Asks for the memory where the search for the block of `key` will end, without waiting for
    /// it.
    #[inline]
    pub(crate) fn ask_for_fences(&self, key: &[u8]) {
        self.index.fences.ask_for(key);
    }

    /// Whether entries of `key`, with which the block before ended, go on in a block.
    #[inline]
    pub(crate) fn continues(&self, number: usize, key: &[u8]) -> bool {
        self.index.fences.continues(number, key)
    }

    /// Asks for the memory that says where in the cache a block is, without waiting for it.
    #[inline]
    pub(crate) fn ask_for_slot(&self, number: usize) {
        self.blocks.ask_for_slot(number);
    }

    /// Asks for the memory of a block, if it is in the cache, without waiting for it.
    #[inline]
    pub(crate) fn ask_for_block(&self, number: usize) {
        self.blocks.ask_for_block(number);
    }

    /// A block. None: it is not in the cache.
    #[inline]
    pub(crate) fn cached_block(&self, number: usize) -> Option<Block> {
        self.blocks.get(number)
    }

    /// Reads a block that is not in the cache, and keeps it there. Requires: there is such a block.
    pub(crate) fn missing_block(&self, number: usize, reads: &mut Reads) -> Result<Block> {
        let block = self.block_past_cache(number, reads)?;
        self.blocks.insert(number, &block);
        Ok(block)
    }

    /// Reads blocks that are not in the cache together, and keeps them there. None: it could not be
    /// read, or is damaged. Requires: there are such blocks.
    pub(crate) fn read_blocks(&self, numbers: &[usize], reads: &mut Reads) -> Vec<Option<Block>> {
        let blocks = self.opened.blocks(&self.index, numbers);
        for (number, block) in numbers.iter().zip(&blocks) {
            let Some(block) = block else { continue };
            reads.disk_reads += 1;
            reads.bytes += self.index.block(*number).1;
            self.blocks.insert(*number, block);
        }
        blocks
    }

    /// The file that a block is in, where it begins, and its length. Requires: there is such a
    /// block.
    pub(crate) fn block_place(&self, number: usize) -> (Arc<dyn ReadAt>, u64, usize) {
        let (offset, len) = self.index.block(number);
        (Arc::clone(&self.opened.bytes), offset, len as usize)
    }

    /// Checks a block that was read, and keeps it in the cache. Requires: there is such a block.
    pub(crate) fn block_of_bytes(
        &self,
        number: usize,
        bytes: io::Result<ReadBuffer>,
    ) -> Result<Block> {
        let (offset, _) = self.index.block(number);
        let bytes = bytes.map_err(|error| self.opened.failed(offset, error))?;
        let block = self.opened.checked_block(&self.index, number, &bytes)?;
        self.blocks.insert(number, &block);
        Ok(block)
    }
}

impl CheckedFile {
    /// Reads and checks blocks. None: it could not be read, or is damaged.
    fn blocks(&self, index: &super::Index, numbers: &[usize]) -> Vec<Option<Block>> {
        let places = numbers.iter().map(|number| index.block(*number));
        let buffers = places.map(|(offset, len)| Some((offset, zeroed(len as usize).ok()?)));
        let Some(mut buffers) = buffers.collect::<Option<Vec<_>>>() else {
            return vec![None; numbers.len()];
        };
        let mut wanted: Vec<(u64, &mut [u8])> =
            buffers.iter_mut().map(|(offset, buffer)| (*offset, &mut buffer[..])).collect();
        if self.bytes.read_many(&mut wanted).is_err() {
            return vec![None; numbers.len()];
        }
        let read = numbers.iter().zip(&buffers);
        read.map(|(number, (_, bytes))| self.checked_block(index, *number, bytes).ok()).collect()
    }
}
