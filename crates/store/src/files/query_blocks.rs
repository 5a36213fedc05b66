//! Blocks that were read for one query before it is asked again.
//! ```text
//! asked  -> block 7 of a table is not in memory: noted, and the query ends
//!     -> block 7 is read meanwhile
//! asked again -> block 7 is here -> block 9 is not: noted ...          -> all are here: the answer
//! ```
//! Invariant: a query that ends for want of a block has noted it. What it costs is counted when it
//! is answered alone: a block that is here counts as read from the disk.

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

/// The blocks of one query.
#[derive(Default)]
pub(crate) struct Fetched(Mutex<FetchedBlocks>);

#[derive(Default)]
struct FetchedBlocks {
    /// By file and number.
    blocks: HashMap<(u64, usize), Block>,
    missing: Option<Wanted>,
}

impl Fetched {
    /// A block that a query comes to. Requires: there is such a block.
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

    /// Ends a query for want of a block.
    fn miss(&self, table: &Arc<Table>, number: usize) -> Result<Block> {
        lock(&self.0).missing = Some(Wanted { table: Arc::clone(table), number });
        Err(Error::io(table.path())(io::ErrorKind::WouldBlock.into()))
    }

    /// What the query has ended for.
    pub(crate) fn take_missing(&self) -> Option<Wanted> {
        lock(&self.0).missing.take()
    }
}
