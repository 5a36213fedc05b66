//! A table whose blocks someone else reads: where they are, and what was read.
//! ```text
//! block_place(number) -> file, offset, length ... read, whoever does it ... block_of_bytes
//!     -> checked, in the cache
//! ```
//! Invariant: a block that is handed out was checked, as everywhere.

use std::io;

use super::Table;
use crate::entries::block::Block;
use crate::error::Result;
use crate::storage::ReadAt;
use crate::storage::read_queue::ReadBuffer;
use crate::sync::Arc;

impl Table {
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
