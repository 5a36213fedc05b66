//! A get that is put aside while a block is read.
//! ```text
//! begin ----> answer
//!   '-> block 7 of a table -- read --> go_on(block) ----> answer
//!                                             '-> the next block, or one of the next table
//! ```
//! Invariant: between two steps it holds its version, and no lock. The guard of a version always
//! says the same of a key (`elastic` at least nothing false). So it is asked again where the search
//! goes on, and counted once. Of a key with operands, what is below the newest one is read at once.

use crate::entries::block::Block;
use crate::entries::cursor::Reads;
use crate::entries::entry::Sequence;
use crate::entries::memtable::Found;
use crate::entries::value::Value;
use crate::error::Result;
use crate::files::query_blocks::Wanted;
use crate::read::lookup::{Lookup, PointQuery, Progress, Step, count_reads};
use crate::storage::pauses::PausePoint;
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::stats::QueryStats;
use crate::tree::version::Version;

/// A get on its way.
pub(crate) struct GetSearch {
    key: Vec<u8>,
    version: Arc<Version>,
    at: Sequence,
    progress: Progress,
    reads: Reads,
}

/// A get's answer. An error: it is put aside until a block has come.
pub(crate) type Got = std::result::Result<Result<Option<Value>>, (Box<GetSearch>, Wanted)>;

impl GetSearch {
    /// The value of a key at a registered sequence number; None: as of now.
    pub(crate) fn begin(tree: &OpenTree, key: &[u8], at: Option<Sequence>) -> Got {
        let version = tree.current.hold();
        if let Err(error) = tree.check_open() {
            return Ok(Err(error));
        }
        tree.env.pauses.at(PausePoint::GetPinned);
        let at = at.unwrap_or_else(|| tree.snapshots.visible());
        let query = PointQuery { version: &version, key, at };
        if let Some(found) = query.in_memory() {
            let mut costs = QueryStats { queries: 1, ..QueryStats::default() };
            let value = tree.value_of(query, found, &mut costs);
            query.count(tree, &costs);
            return Ok(value);
        }
        let mut reads = Reads::default();
        let lookup = Lookup::new(query, query.ask_guard());
        search(tree, lookup, (Step::Table, None), &mut reads).map_err(|(progress, wanted)| {
            let search = GetSearch { key: key.to_vec(), version, at, progress, reads };
            (Box::new(search), wanted)
        })
    }

    /// Goes on with the block that it has waited for.
    pub(crate) fn go_on(
        mut self: Box<Self>,
        tree: &OpenTree,
        wanted: &Wanted,
        block: Result<Block>,
    ) -> Got {
        let progress = std::mem::take(&mut self.progress);
        let query = PointQuery { version: &self.version, key: &self.key, at: self.at };
        let lookup = Lookup::resume(query, progress);
        let block = match block {
            Ok(block) => block,
            Err(error) => return Ok(end(tree, &lookup, Err(error), &self.reads)),
        };
        let step = Step::Block(&wanted.table, wanted.number);
        self.reads.disk_reads += 1;
        self.reads.bytes += wanted.table.block_place(wanted.number).2 as u64;
        search(tree, lookup, (step, Some(block)), &mut self.reads).map_err(|(progress, wanted)| {
            self.progress = progress;
            (self, wanted)
        })
    }
}

/// Goes on from a step, for which a block may have been read, as far as blocks are in the cache. An
/// error: how far that was, and the block that is missing.
#[expect(clippy::result_large_err, reason = "the caller puts it into the box of the search")]
fn search<'v>(
    tree: &OpenTree,
    mut lookup: Lookup<'v, '_>,
    (step, mut read): (Step<'v>, Option<Block>),
    reads: &mut Reads,
) -> std::result::Result<Result<Option<Value>>, (Progress, Wanted)> {
    let found = lookup.run(step, |table, number| {
        // What was read was counted when it was found missing.
        if let Some(block) = read.take() {
            return Ok(block);
        }
        reads.blocks += 1;
        table.cached_block(number).ok_or_else(|| Wanted { table: Arc::clone(table), number })
    });
    match found {
        Ok(found) => Ok(end(tree, &lookup, Ok(found), reads)),
        Err(wanted) => Err((lookup.into_progress(), wanted)),
    }
}

/// Counts the get, and makes a value of what was found in tables.
fn end(
    tree: &OpenTree,
    lookup: &Lookup<'_, '_>,
    found: Result<Option<Found>>,
    reads: &Reads,
) -> Result<Option<Value>> {
    let mut costs = QueryStats { queries: 1, ..QueryStats::default() };
    let found = lookup.end(found, &mut costs);
    count_reads(&mut costs, reads);
    let value = match found {
        Ok(Some(found)) => tree.value_of(lookup.query, found, &mut costs),
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    };
    lookup.query.count(tree, &costs);
    value
}
