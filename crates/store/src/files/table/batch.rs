//! The steps of a lookup, for callers that look up many keys at once or read blocks themselves.
//! ```text
//! prefetch_fences(key) ~~> block_for -> prefetch_slot ~~> prefetch_block ~~> cached_block
//!                                                             \-missing-> read_blocks,
//!     of many keys together
//! block_place(number) -> file, offset, length ... read, by any means ... block_of_bytes
//!     -> checked, in the cache
//! ```
//! Invariant: every block that is returned was checked.

use std::io;

use super::{CheckedFile, Table};
use crate::entries::block::Block;
use crate::entries::cursor::Reads;
use crate::error::Result;
use crate::storage::read_queue::ReadBuffer;
use crate::storage::traits::{ReadAt, zeroed};
use crate::sync::Arc;

impl Table {
    /// Returns the first block that may contain `key`. `None`: the table has no blocks.
    #[inline]
    pub(crate) fn block_for(&self, key: &[u8]) -> Option<usize> {
        (self.block_count() > 0).then(|| self.first_block_of(key))
    }

    /// Prefetches the fences where the search for `key` will end.
    #[inline]
    pub(crate) fn prefetch_fences(&self, key: &[u8]) {
        self.index.fences.prefetch(key);
    }

    /// Whether a block continues the entries of `key`, with which the block before ends.
    #[inline]
    pub(crate) fn continues(&self, number: usize, key: &[u8]) -> bool {
        self.index.fences.continues(number, key)
    }

    /// Prefetches the cache slot of a block.
    #[inline]
    pub(crate) fn prefetch_slot(&self, number: usize) {
        self.blocks.prefetch_slot(number);
    }

    /// Prefetches a block, if it is cached.
    #[inline]
    pub(crate) fn prefetch_block(&self, number: usize) {
        self.blocks.prefetch_block(number);
    }

    /// Returns a block. `None`: it is not cached.
    #[inline]
    pub(crate) fn cached_block(&self, number: usize) -> Option<Block> {
        self.blocks.get(number)
    }

    /// Reads a block that is not cached, and caches it. Requires: the block exists.
    pub(crate) fn missing_block(&self, number: usize, reads: &mut Reads) -> Result<Block> {
        let block = self.block_past_cache(number, reads)?;
        self.blocks.insert(number, &block);
        Ok(block)
    }

    /// Reads several blocks that are not cached, and caches them. `None` for a block that is
    /// unreadable or damaged. Requires: the blocks exist.
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

    /// Returns the file, offset and length of a block. Requires: the block exists.
    pub(crate) fn block_place(&self, number: usize) -> (Arc<dyn ReadAt>, u64, usize) {
        let (offset, len) = self.index.block(number);
        (Arc::clone(&self.opened.bytes), offset, len as usize)
    }

    /// Checks a block that was read, and caches it. Requires: the block exists.
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
    /// Reads and checks blocks. `None` for a block that is unreadable or damaged.
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
