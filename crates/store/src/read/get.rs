//! A get: memtables, then the guard, then the candidate runs from new to old, each block read at
//! once.
//! ```text
//! pin version -> take sequence number -> memtables -> guard -> tables -> blocks
//!                                                   `-- read/lookup.rs --'
//! ```
//! Invariant (ordering rule 2): the version is pinned before the sequence number is taken. A merge
//! that dropped an entry counted the number that was visible then. So a read that pins a version
//! with its output takes a number that is not smaller.

use crate::entries::cursor::Reads;
use crate::entries::entry::{Kind, Sequence};
use crate::entries::memtable::Found;
use crate::entries::value::Value;
use crate::error::Result;
use crate::read::lookup::{Lookup, PointQuery, Step, count_reads};
use crate::read::value_reader::ValueReader;
use crate::storage::pauses::PausePoint;
use crate::tree::open_tree::OpenTree;
use crate::tree::stats::QueryStats;
use crate::tree::version::Version;

/// The value of a key as of now.
pub(crate) fn get(tree: &OpenTree, key: &[u8]) -> Result<Option<Value>> {
    tree.counters.gets.time(tree.timing(), || get_now(tree, key))
}

#[inline]
fn get_now(tree: &OpenTree, key: &[u8]) -> Result<Option<Value>> {
    let version = tree.current.pin();
    tree.env.pauses.at(PausePoint::GetPinned);
    let at = tree.snapshots.visible();
    get_at(tree, &version, key, at)
}

/// The value of a key at a registered sequence number, or at one taken after `version` was pinned.
pub(crate) fn get_at(
    tree: &OpenTree,
    version: &Version,
    key: &[u8],
    at: Sequence,
) -> Result<Option<Value>> {
    with_found((tree, version), key, at, |query, found, costs| tree.value_of(query, found, costs))
}

/// As `get_at`; the value is to be read in parts.
pub(crate) fn reader_at(
    tree: &OpenTree,
    version: &Version,
    key: &[u8],
    at: Sequence,
) -> Result<Option<ValueReader>> {
    with_found((tree, version), key, at, |query, found, costs| {
        let stored = match found.kind {
            Kind::PutApart => Some(found.value),
            Kind::PutApartWithExpiry => found.value.unless_expired(&*tree.env.clock),
            _ => return Ok(tree.value_of(query, found, costs)?.map(ValueReader::whole)),
        };
        stored.map(|stored| ValueReader::apart(tree, &stored)).transpose()
    })
}

/// Looks a key up, and makes something of what was found.
#[inline(always)]
fn with_found<T>(
    (tree, version): (&OpenTree, &Version),
    key: &[u8],
    at: Sequence,
    make: impl FnOnce(PointQuery<'_, '_>, Found, &mut QueryStats) -> Result<Option<T>>,
) -> Result<Option<T>> {
    tree.check_open()?;
    let query = PointQuery { version, key, at };
    let mut costs = QueryStats { queries: 1, ..QueryStats::default() };
    let found = match query.in_memory() {
        Some(found) => Ok(Some(found)),
        None => get_in_runs(query, &mut costs),
    };
    let value = match found {
        Ok(Some(found)) => make(query, found, &mut costs),
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    };
    query.count(tree, &costs);
    value
}

fn get_in_runs(query: PointQuery<'_, '_>, costs: &mut QueryStats) -> Result<Option<Found>> {
    let mut lookup = Lookup::new(query, query.ask_guard());
    let mut reads = Reads::default();
    let found = lookup.run(Step::Table, |table, number| table.block(number, true, &mut reads));
    count_reads(costs, &reads);
    lookup.end(found, costs)
}
