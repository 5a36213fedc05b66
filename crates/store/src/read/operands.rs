//! The value of a key whose newest entry is a merge operand: collects its operands, down to a
//! value.
//! ```text
//! memtables   k 90 +1   k 80 +1     \
//! runs, as the guard says  k 70 +1   >  from new to old    5, [+1, +1, +1] --> the operator
//!                          k 60 put 5
//! deleted     a range around k: older entries are not read
//! ```
//! Invariant: sequence numbers decrease from entry to entry. An entry whose number does not
//! decrease is a duplicate, and is skipped. It is from an input that a merge left behind, and that
//! a repair found again.

use crate::entries::cursor::{Cursor, Reads};
use crate::entries::entry::{Entry, Kind, Sequence};
use crate::entries::memtable::{FoundEntry, Memtable};
use crate::entries::merge_operator::merged_for_reader;
use crate::entries::value::Value;
use crate::error::Result;
use crate::read::lookup::{PointQuery, count_reads};
use crate::storage::clock::Clock;
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::stats::QueryStats;
use crate::tree::version::Version;

impl OpenTree {
    /// Returns the value of the entry that was found for a key. None: the entry is a deletion, or
    /// has expired. Adds the reads that this takes to the costs.
    #[inline]
    pub(crate) fn value_of(
        &self,
        query: PointQuery<'_, '_>,
        found: FoundEntry,
        costs: &mut QueryStats,
    ) -> Result<Option<Value>> {
        match found.kind {
            Kind::Put => Ok(Some(found.value)),
            Kind::PutWithExpiry => Ok(found.value.unless_expired(&*self.env.clock)),
            Kind::Delete | Kind::DeleteRange => Ok(None),
            Kind::Merge | Kind::PutApart | Kind::PutApartWithExpiry => {
                // Costs of its own, so that those of other reads stay in registers.
                let (value, own) = self.value_elsewhere(query, found);
                costs.add(&own);
                value
            }
        }
    }

    /// Returns the value of an entry that does not hold it itself.
    #[cold]
    fn value_elsewhere(
        &self,
        query: PointQuery<'_, '_>,
        found: FoundEntry,
    ) -> (Result<Option<Value>>, QueryStats) {
        let mut costs = QueryStats::default();
        let value = match found.kind {
            Kind::Merge => self.merged_value(query, &mut costs).map(Some),
            Kind::PutApart => self.cached_value_apart(&found.value, None, &mut costs).map(Some),
            _ => {
                let stored = found.value.unless_expired(&*self.env.clock);
                stored.map(|stored| self.cached_value_apart(&stored, None, &mut costs)).transpose()
            }
        };
        (value, costs)
    }

    /// Returns what the merge operator makes of a key's operands. Requires: its newest entry is
    /// one.
    #[cold]
    pub(crate) fn merged_value(
        &self,
        query: PointQuery<'_, '_>,
        costs: &mut QueryStats,
    ) -> Result<Value> {
        let mut history = History::default();
        // Without an operator nothing needs to be read.
        if self.merge_operator.get().is_some() {
            history = History::read(query, &*self.env.clock, costs)?;
        }
        if let Some(existing) = history.existing.as_mut().filter(|_| history.is_apart) {
            *existing = self.cached_value_apart(existing, None, costs)?;
        }
        let operands: Vec<&[u8]> = history.operands.iter().rev().map(|value| &**value).collect();
        let existing = history.existing.as_deref();
        let made = self.merged(query.key, existing, &operands)?;
        Ok(Value::made(made, history.existing.as_ref().and_then(Value::expiry)))
    }

    /// Applies the merge operator to operands, oldest first.
    pub(crate) fn merged(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>> {
        let place = (self.table_files.folder.path(), self.keyspace.0);
        merged_for_reader(self.merge_operator.get(), place, key, existing, operands)
    }
}

/// The entries of a key that a reader sees.
#[derive(Default)]
struct History {
    /// Operands, newest first.
    operands: Vec<Value>,
    /// The value below them, as it is stored.
    existing: Option<Value>,
    /// Whether that value is a reference.
    is_apart: bool,
    /// The newest range tombstone over the key.
    deleted: Option<Sequence>,
    /// The sequence number of the last entry.
    last: Option<Sequence>,
}

impl History {
    fn read(
        query: PointQuery<'_, '_>,
        clock: &dyn Clock,
        costs: &mut QueryStats,
    ) -> Result<History> {
        let PointQuery { version, key, at } = query;
        let mut history = History { deleted: deleted(query), ..History::default() };
        for memtable in memtables(version).filter(|memtable| memtable.may_contain(key)) {
            if !history.add(query, &mut memtable.cursor(), clock)? {
                return Ok(history);
            }
        }
        let answer = query.ask_guard();
        for placed in &version.runs {
            let is_asked = answer.may_be_in(placed.span())
                && placed.run.find(key).is_some_and(|table| answer.may_hold(table));
            if !is_asked || history.deleted.is_some_and(|it| placed.run.greatest() < it) {
                continue;
            }
            let mut cursor = placed.run.cursor();
            let goes_on = history.add(PointQuery { version, key, at }, &mut cursor, clock);
            let reads: Reads = cursor.reads();
            count_reads(costs, &reads);
            if !goes_on? {
                break;
            }
        }
        Ok(history)
    }

    /// Adds the entries of a source. Returns false if older sources do not count.
    fn add(
        &mut self,
        query: PointQuery<'_, '_>,
        cursor: &mut dyn Cursor,
        clock: &dyn Clock,
    ) -> Result<bool> {
        let PointQuery { key, at, .. } = query;
        cursor.seek(key)?;
        let is_newer = |entry: Entry<'_>| entry.key == key && entry.sequence > at;
        if cursor.entry().is_some_and(is_newer) {
            cursor.seek_version(key, at)?;
        }
        while let Some(entry) = cursor.entry().filter(|entry| entry.key == key) {
            let sequence = entry.sequence;
            if self.deleted.is_some_and(|deleted| sequence < deleted) {
                return Ok(false);
            }
            if self.last.is_none_or(|last| sequence < last) {
                self.last = Some(sequence);
                match entry.kind {
                    Kind::Merge => self.operands.push(cursor.value()),
                    Kind::Put | Kind::PutApart => {
                        self.is_apart = entry.kind.is_apart();
                        self.existing = Some(cursor.value());
                        return Ok(false);
                    }
                    Kind::PutWithExpiry | Kind::PutApartWithExpiry => {
                        self.is_apart = entry.kind.is_apart();
                        self.existing = cursor.value().unless_expired(clock);
                        return Ok(false);
                    }
                    Kind::Delete | Kind::DeleteRange => return Ok(false),
                }
            }
            cursor.next()?;
        }
        Ok(true)
    }
}

/// Returns the newest range tombstone over the key that its reader sees.
fn deleted(PointQuery { version, key, at }: PointQuery<'_, '_>) -> Option<Sequence> {
    let in_memory = memtables(version).map(|it| it.ranges().covering_tombstone(key, at)).max();
    in_memory.flatten().max(version.covering_tombstone(key, at))
}

fn memtables(version: &Version) -> impl Iterator<Item = &Arc<Memtable>> {
    let sealed = version.sealed.iter().map(|sealed| &sealed.memtable);
    std::iter::once(&version.active.memtable).chain(sealed)
}
