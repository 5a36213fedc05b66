//! The blocks of a query that does not wait for the disk: it is run again as they arrive.
//! ```text
//! run    -> block 7 of a table is not in memory: noted, and the query ends
//!     -> block 7 is read meanwhile
//! run again -> block 7 is here -> block 9 is not: noted ...            -> all are here: the answer
//! ```
//! Invariant: a query that ends for lack of a block has noted it. Costs are counted only by the run
//! that is answered. There a block that was fetched counts as read from the disk.

use std::collections::HashMap;
use std::io;

use crate::entries::block::Block;
use crate::entries::cursor::Reads;
use crate::error::{Error, Result};
use crate::files::table::Table;
use crate::sync::{Arc, Mutex, lock};

/// A block of an open table.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) table: Arc<Table>,
    pub(crate) number: usize,
}

/// The fetched blocks of one query.
#[derive(Default)]
pub(crate) struct Fetched(Mutex<FetchedBlocks>);

#[derive(Default)]
struct FetchedBlocks {
    /// By file number and block number.
    blocks: HashMap<(u64, usize), Block>,
    missing: Option<Wanted>,
}

impl Fetched {
    /// Returns a block, fetched or cached. Otherwise notes it and fails with `WouldBlock`.
    /// Requires: the table has the block.
    pub(crate) fn block(
        &self,
        table: &Arc<Table>,
        number: usize,
        reads: &mut Reads,
    ) -> Result<Block> {
        reads.blocks += 1;
        if let Some(block) = self.get(table, number) {
            reads.disk_reads += 1;
            reads.bytes += table.block_place(number).2 as u64;
            return Ok(block);
        }
        table.cached_block(number).map_or_else(|| self.miss(table, number), Ok)
    }

    fn get(&self, table: &Table, number: usize) -> Option<Block> {
        lock(&self.0).blocks.get(&(table.file(), number)).cloned()
    }

    pub(crate) fn insert(&self, wanted: &Wanted, block: Block) {
        lock(&self.0).blocks.insert((wanted.table.file(), wanted.number), block);
    }

    /// Notes a missing block, and returns the error that ends the query.
    fn miss(&self, table: &Arc<Table>, number: usize) -> Result<Block> {
        lock(&self.0).missing = Some(Wanted { table: Arc::clone(table), number });
        Err(Error::io(table.path())(io::ErrorKind::WouldBlock.into()))
    }

    /// Removes and returns the block that the query ended for.
    pub(crate) fn take_missing(&self) -> Option<Wanted> {
        lock(&self.0).missing.take()
    }
}
