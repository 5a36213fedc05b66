//! A get: asks the memtables, then the guard, then the candidate runs from new to old. Blocks are
//! read synchronously.
//! ```text
//! pin version -> take sequence number -> memtables -> guard -> tables -> blocks
//!                                                   `-- read/lookup.rs --'
//! get_if_cached: the same, up to the first block that is not in the cache
//! ```
//! Invariant (ordering rule 2): the version is pinned before the sequence number is taken. A merge
//! keeps what is visible at the newest sequence number when it begins. So a read that pins a
//! version with its output takes a number that is at least as large.

use crate::entries::cursor::Reads;
use crate::entries::entry::{Kind, Sequence};
use crate::entries::memtable::FoundEntry;
use crate::entries::value::Value;
use crate::error::Result;
use crate::read::lookup::{Lookup, PointQuery, Step, count_reads};
use crate::read::value_reader::ValueReader;
use crate::storage::pauses::PausePoint;
use crate::tree::open_tree::OpenTree;
use crate::tree::stats::QueryStats;
use crate::tree::version::Version;

/// Returns the current value of a key.
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

/// Returns the value of a key at a sequence number. Requires: the number is registered, or was
/// taken after `version` was pinned.
pub(crate) fn get_at(
    tree: &OpenTree,
    version: &Version,
    key: &[u8],
    at: Sequence,
) -> Result<Option<Value>> {
    with_found((tree, version), key, at, |query, found, costs| tree.value_of(query, found, costs))
}

/// As `get_at`, but returns a reader, which reads the value in parts.
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

/// Whether a key currently has a value.
pub(crate) fn has(tree: &OpenTree, key: &[u8]) -> Result<bool> {
    tree.counters.gets.time(tree.timing(), || {
        let version = tree.current.pin();
        has_at(tree, &version, key, tree.snapshots.visible())
    })
}

/// Whether a key had a value, with `at` as for `get_at`. A value stored apart is not read.
pub(crate) fn has_at(tree: &OpenTree, version: &Version, key: &[u8], at: Sequence) -> Result<bool> {
    let found = with_found((tree, version), key, at, |query, found, costs| {
        let found = match found.kind {
            Kind::PutApart => Some(found.value),
            Kind::PutApartWithExpiry => found.value.unless_expired(&*tree.env.clock),
            _ => tree.value_of(query, found, costs)?,
        };
        Ok(found.map(drop))
    });
    Ok(found?.is_some())
}

/// As `get`, if the disk need not be read. Otherwise returns None and counts nothing, as if the key
/// had not been asked for.
pub(crate) fn get_if_cached(tree: &OpenTree, key: &[u8]) -> Option<Result<Option<Value>>> {
    tree.counters.gets.time(tree.timing(), || {
        let version = tree.current.pin();
        tree.env.pauses.at(PausePoint::GetPinned);
        get_cached_at(tree, &version, key, tree.snapshots.visible())
    })
}

/// As `get_at`, if the disk need not be read. Otherwise returns None.
pub(crate) fn get_cached_at(
    tree: &OpenTree,
    version: &Version,
    key: &[u8],
    at: Sequence,
) -> Option<Result<Option<Value>>> {
    if let Err(error) = tree.check_open() {
        return Some(Err(error));
    }
    let query = PointQuery { version, key, at };
    let mut costs = QueryStats { queries: 1, ..QueryStats::default() };
    let found = match query.in_memory() {
        Some(found) => Some(found),
        None => find_cached(query, &mut costs)?,
    };
    // These need further reads: operands need the entries below them, and values apart their files.
    if found.as_ref().is_some_and(|found| found.kind == Kind::Merge || found.kind.is_apart()) {
        return None;
    }
    let value = found.map_or(Ok(None), |found| tree.value_of(query, found, &mut costs));
    query.count(tree, &costs);
    Some(value)
}

/// Looks a key up in the runs. Returns None if it needs a block that is not cached.
fn find_cached(query: PointQuery<'_, '_>, costs: &mut QueryStats) -> Option<Option<FoundEntry>> {
    let answer = query.ask_guard();
    if answer.is_nowhere() {
        query.count_nowhere(&answer, costs);
        return Some(None);
    }
    let mut lookup = Lookup::new(query, answer);
    let mut reads = Reads::default();
    let found = lookup.run(Step::Table, |table, number| {
        reads.blocks += 1;
        table.cached_block(number).ok_or(())
    });
    let found = found.ok()?;
    count_reads(costs, &reads);
    // Only reading can fail, and nothing was read.
    lookup.end(Ok(found), costs).ok()
}

/// Looks a key up, and passes what was found to `make`.
#[inline(always)]
fn with_found<T>(
    (tree, version): (&OpenTree, &Version),
    key: &[u8],
    at: Sequence,
    make: impl FnOnce(PointQuery<'_, '_>, FoundEntry, &mut QueryStats) -> Result<Option<T>>,
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

fn get_in_runs(query: PointQuery<'_, '_>, costs: &mut QueryStats) -> Result<Option<FoundEntry>> {
    let answer = query.ask_guard();
    // Most misses end here, before a lookup is set up.
    if answer.is_nowhere() {
        query.count_nowhere(&answer, costs);
        return Ok(None);
    }
    let mut lookup = Lookup::new(query, answer);
    let mut reads = Reads::default();
    let found = lookup.run(Step::Table, |table, number| table.block(number, true, &mut reads));
    count_reads(costs, &reads);
    lookup.end(found, costs)
}
