//! A get that is suspended while a block, or a value apart, is read.
//! ```text
//! begin ----> answer
//!   '-> block 7 of a table -- read --> go_on(block) ----> answer
//!                                             |-> the next block, or one of the next table
//!                                             '-> a value apart -- read --> arrived -> answer
//! ```
//! Invariant: a suspended get holds its version, and no lock. A version's guard always gives the
//! same answer for a key (`elastic` at least never a wrong exclusion). So the guard is asked again
//! when the get resumes, but counted once. If the newest entry is an operand, older entries are
//! read synchronously.

use std::io;

use crate::entries::block::Block;
use crate::entries::cursor::Reads;
use crate::entries::entry::Sequence;
use crate::entries::memtable::FoundEntry;
use crate::entries::value::Value;
use crate::error::Result;
use crate::files::query_blocks::Wanted;
use crate::read::lookup::{Lookup, PointQuery, Progress, Step, count_reads};
use crate::storage::pauses::PausePoint;
use crate::storage::read_queue::ReadBuffer;
use crate::storage::traits::ReadAt;
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::stats::QueryStats;
use crate::tree::values_apart::{Apart, AwaitedValue};
use crate::tree::version::Version;

/// A get that waits for a block.
pub(crate) struct GetSearch {
    key: Vec<u8>,
    version: Arc<Version>,
    at: Sequence,
    progress: Progress,
    reads: Reads,
}

/// A get that waits for its value.
pub(crate) struct ValueSearch {
    key: Vec<u8>,
    at: Sequence,
    /// Dropped before the version, since the last holder of a file reports that it is unused.
    awaited: AwaitedValue,
    version: Arc<Version>,
    costs: QueryStats,
}

/// The state of a get after a step.
pub(crate) enum Got {
    Answer(Result<Option<Value>>),
    /// Suspended until a block has been read.
    Block(Box<GetSearch>, Wanted),
    /// Suspended until the value has been read.
    Value(Box<ValueSearch>),
}

/// What a search has found, and its costs.
type Searched = (Result<Option<FoundEntry>>, QueryStats);

impl GetSearch {
    /// Begins a get at a registered sequence number, or as of now if `at` is None.
    pub(crate) fn begin(tree: &OpenTree, key: &[u8], at: Option<Sequence>) -> Got {
        let version = tree.current.hold();
        if let Err(error) = tree.check_open() {
            return Got::Answer(Err(error));
        }
        tree.env.pauses.at(PausePoint::GetPinned);
        let at = at.unwrap_or_else(|| tree.snapshots.visible());
        let query = PointQuery { version: &version, key, at };
        if let Some(found) = query.in_memory() {
            let costs = QueryStats { queries: 1, ..QueryStats::default() };
            return end(tree, (key, version, at), (Ok(Some(found)), costs));
        }
        let mut reads = Reads::default();
        let lookup = Lookup::new(query, query.ask_guard());
        match search(lookup, (Step::Table, None), &mut reads) {
            Ok(searched) => end(tree, (key, version, at), searched),
            Err((progress, wanted)) => {
                let search = GetSearch { key: key.to_vec(), version, at, progress, reads };
                Got::Block(Box::new(search), wanted)
            }
        }
    }

    /// Resumes with the block that the get has waited for.
    pub(crate) fn go_on(
        mut self: Box<Self>,
        tree: &OpenTree,
        wanted: &Wanted,
        block: Result<Block>,
    ) -> Got {
        let progress = std::mem::take(&mut self.progress);
        let query = PointQuery { version: &self.version, key: &self.key, at: self.at };
        let lookup = Lookup::resume(query, progress);
        let result = match block {
            Ok(block) => {
                let step = Step::Block(&wanted.table, wanted.number);
                self.reads.disk_reads += 1;
                self.reads.bytes += wanted.table.block_place(wanted.number).2 as u64;
                search(lookup, (step, Some(block)), &mut self.reads)
            }
            Err(error) => Ok(with_costs(&lookup, Err(error), &self.reads)),
        };
        match result {
            Ok(searched) => end(tree, (&self.key, self.version, self.at), searched),
            Err((progress, wanted)) => {
                self.progress = progress;
                Got::Block(self, wanted)
            }
        }
    }
}

impl ValueSearch {
    /// Returns the file, the offset and the length of the value that is awaited.
    pub(crate) fn place(&self) -> (Arc<dyn ReadAt>, u64, usize) {
        self.awaited.place()
    }

    /// Returns the answer, given the bytes that were read.
    pub(crate) fn arrived(
        mut self: Box<Self>,
        tree: &OpenTree,
        bytes: io::Result<ReadBuffer>,
    ) -> Result<Option<Value>> {
        let value = tree.arrived_value(&self.awaited, bytes, &mut self.costs);
        self.answered(tree, value)
    }

    /// Returns the answer after reading the value synchronously.
    pub(crate) fn at_once(mut self: Box<Self>, tree: &OpenTree) -> Result<Option<Value>> {
        let value = tree.value_at_once(&self.awaited, &mut self.costs);
        self.answered(tree, value)
    }

    fn answered(&self, tree: &OpenTree, value: Result<Value>) -> Result<Option<Value>> {
        let query = PointQuery { version: &self.version, key: &self.key, at: self.at };
        query.count(tree, &self.costs);
        // The value may have expired while it was read.
        let is_left = |value: &Value| {
            value.expiry().is_none_or(|expiry| !expiry.has_come(tree.env.clock.since_epoch()))
        };
        Ok(Some(value?).filter(is_left))
    }
}

/// Runs a lookup from a step on, as long as its blocks are cached. The first block may be supplied
/// by the caller. Otherwise returns the progress, and the block that is missing.
#[expect(clippy::result_large_err, reason = "the caller puts it into the box of the search")]
fn search<'v>(
    mut lookup: Lookup<'v, '_>,
    (step, mut read): (Step<'v>, Option<Block>),
    reads: &mut Reads,
) -> std::result::Result<Searched, (Progress, Wanted)> {
    let found = lookup.run(step, |table, number| {
        // The block was counted when it was found missing.
        if let Some(block) = read.take() {
            return Ok(block);
        }
        reads.blocks += 1;
        table.cached_block(number).ok_or_else(|| Wanted { table: Arc::clone(table), number })
    });
    match found {
        Ok(found) => Ok(with_costs(&lookup, Ok(found), reads)),
        Err(wanted) => Err((lookup.into_progress(), wanted)),
    }
}

/// Ends the lookup and adds up its costs.
fn with_costs(
    lookup: &Lookup<'_, '_>,
    found: Result<Option<FoundEntry>>,
    reads: &Reads,
) -> Searched {
    let mut costs = QueryStats { queries: 1, ..QueryStats::default() };
    let found = lookup.end(found, &mut costs);
    count_reads(&mut costs, reads);
    (found, costs)
}

/// Turns what was found into a value, or a search for its value if that must be read. Counts the
/// query if it is answered.
fn end(
    tree: &OpenTree,
    (key, version, at): (&[u8], Arc<Version>, Sequence),
    (found, mut costs): Searched,
) -> Got {
    let query = PointQuery { version: &version, key, at };
    let value = match found {
        Ok(Some(found)) => match tree.apart(&found) {
            Apart::Here(value) => Ok(Some(value)),
            Apart::Awaited(awaited) => {
                let key = key.to_vec();
                return Got::Value(Box::new(ValueSearch { key, at, awaited, version, costs }));
            }
            Apart::No => tree.value_of(query, found, &mut costs),
        },
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    };
    query.count(tree, &costs);
    Got::Answer(value)
}
