//! A get that is put aside while a block, or a value apart, is read.
//! ```text
//! begin ----> answer
//!   '-> block 7 of a table -- read --> go_on(block) ----> answer
//!                                             |-> the next block, or one of the next table
//!                                             '-> a value apart -- read --> arrived -> answer
//! ```
//! Invariant: between two steps it holds its version, and no lock. The guard of a version always
//! says the same of a key (`elastic` at least nothing false). So it is asked again where the search
//! goes on, and counted once. Of a key with operands, what is below the newest one is read at once.

use std::io;

use crate::entries::block::Block;
use crate::entries::cursor::Reads;
use crate::entries::entry::Sequence;
use crate::entries::memtable::Found;
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

/// A get on its way.
pub(crate) struct GetSearch {
    key: Vec<u8>,
    version: Arc<Version>,
    at: Sequence,
    progress: Progress,
    reads: Reads,
}

/// A get whose value is read.
pub(crate) struct ValueSearch {
    key: Vec<u8>,
    at: Sequence,
    /// Let go of before the version: who was the last to hold a file tells that it is free.
    awaited: AwaitedValue,
    version: Arc<Version>,
    costs: QueryStats,
}

/// How far a get has come.
pub(crate) enum Got {
    Answer(Result<Option<Value>>),
    /// It is put aside until a block has come.
    Block(Box<GetSearch>, Wanted),
    /// Or until its value has.
    Value(Box<ValueSearch>),
}

/// What a search has found, and its costs.
type Searched = (Result<Option<Found>>, QueryStats);

impl GetSearch {
    /// The value of a key at a registered sequence number; None: as of now.
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
    /// The file, and the place and the length of what it waits for.
    pub(crate) fn place(&self) -> (Arc<dyn ReadAt>, u64, usize) {
        self.awaited.place()
    }

    /// The answer, with what was read there.
    pub(crate) fn arrived(
        mut self: Box<Self>,
        tree: &OpenTree,
        bytes: io::Result<ReadBuffer>,
    ) -> Result<Option<Value>> {
        let value = tree.arrived_value(&self.awaited, bytes, &mut self.costs);
        self.answered(tree, value)
    }

    /// The answer, with what is read now.
    pub(crate) fn at_once(mut self: Box<Self>, tree: &OpenTree) -> Result<Option<Value>> {
        let value = tree.value_at_once(&self.awaited, &mut self.costs);
        self.answered(tree, value)
    }

    fn answered(&self, tree: &OpenTree, value: Result<Value>) -> Result<Option<Value>> {
        let query = PointQuery { version: &self.version, key: &self.key, at: self.at };
        query.count(tree, &self.costs);
        // It may have expired while it was read.
        let is_left = |value: &Value| {
            value.expiry().is_none_or(|expiry| !expiry.has_come(tree.env.clock.since_epoch()))
        };
        Ok(Some(value?).filter(is_left))
    }
}

/// Goes on from a step, for which a block may have been read, as far as blocks are in the cache. An
/// error: how far that was, and the block that is missing.
#[expect(clippy::result_large_err, reason = "the caller puts it into the box of the search")]
fn search<'v>(
    mut lookup: Lookup<'v, '_>,
    (step, mut read): (Step<'v>, Option<Block>),
    reads: &mut Reads,
) -> std::result::Result<Searched, (Progress, Wanted)> {
    let found = lookup.run(step, |table, number| {
        // What was read was counted when it was found missing.
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

/// Adds up what the lookup has cost.
fn with_costs(lookup: &Lookup<'_, '_>, found: Result<Option<Found>>, reads: &Reads) -> Searched {
    let mut costs = QueryStats { queries: 1, ..QueryStats::default() };
    let found = lookup.end(found, &mut costs);
    count_reads(&mut costs, reads);
    (found, costs)
}

/// Makes a value of what was found, if it need not be read. What is answered is counted.
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
