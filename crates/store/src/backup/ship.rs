//! Ships the changes since a generation: stores what the change feed tells.
//! ```text
//! generation   changes-41-57   changes-57-80   changes-80-99
//!    41       [42 ....... 57] [58 ....... 80] [81 ....... 99]     a chain: none is missing
//!                                 value-60                        a long value, stored before
//! ```
//! The feed does not tell bulk loads: one ends the feed, so a generation is needed after it. The
//! key spaces are stored as of the call. For key spaces without a log, the object says up to where
//! they were written.

use std::collections::BTreeMap;

use super::generation::{self, Generation};
use super::object_store::ObjectStore;
use super::shipped::{Part, ShippedBatch, ShippedSpace, ShippedSpaces};
use super::{stored, values};
use crate::db::Db;
use crate::error::{Error, Result};
use crate::plan::store_layout::KeyspaceLayout;
use crate::read::changes::BatchWithReaders;
use crate::shared::environment::Environment;
use crate::tree::write_times::WriteTime;

pub(super) const PREFIX: &str = "changes-";
/// An object ends after this many bytes of changes and of their long values. If a later object
/// fails, the stored ones are not stored again.
const PART_BYTES: u64 = 8 << 20;

/// The range of writes that a call has shipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shipped {
    /// All changes after this write are shipped ...
    pub from: u64,
    /// ... up to this one.
    pub to: u64,
    /// The bytes that they take, including long values.
    pub bytes: u64,
}

/// The name of an object of changes, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShippedName {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) milliseconds: u64,
}

impl ShippedName {
    pub(super) fn of(name: &str) -> Option<ShippedName> {
        let mut numbers = name.strip_prefix(PREFIX)?.split('-').map(|it| it.parse().ok());
        let mut next = || numbers.next().flatten();
        let parsed = ShippedName { from: next()?, to: next()?, milliseconds: next()? };
        (parsed.name() == name).then_some(parsed)
    }

    pub(super) fn name(self) -> String {
        format!("{PREFIX}{:020}-{:020}-{}", self.from, self.to, self.milliseconds)
    }
}

/// Returns all objects of changes, ordered by the write after which they begin.
pub(super) fn names(objects: &dyn ObjectStore) -> Result<Vec<ShippedName>> {
    let names = objects.list(PREFIX).map_err(Error::io(objects.place()))?;
    let mut all: Vec<_> = names.iter().filter_map(|(name, _)| ShippedName::of(name)).collect();
    all.sort_unstable_by_key(|it| (it.from, it.to));
    Ok(all)
}

/// Returns the changes that lead from a generation to moments before the next one.
pub(super) fn behind(
    objects: &dyn ObjectStore,
    generation: &Generation,
) -> Result<Vec<ShippedName>> {
    let from = generation.sequence;
    let all = generation::all(objects)?;
    if generation.is_replaced(&all) {
        return Ok(Vec::new());
    }
    let next = generation::leading_on(&all).map(|it| it.sequence).filter(|it| *it > from).min();
    let mut changes = names(objects)?;
    changes.retain(|it| it.to > from && next.is_none_or(|next| it.from < next));
    Ok(changes)
}

/// The union of the intervals of writes in some objects of changes.
pub(super) struct Covered {
    /// For each object the write after which it begins, and the greatest end so far.
    reach: Vec<(u64, u64)>,
}

impl Covered {
    /// Requires: the changes are ordered by the write after which they begin.
    pub(super) fn of<'n>(changes: impl IntoIterator<Item = &'n ShippedName>) -> Covered {
        let mut furthest = 0;
        let reach = changes.into_iter().map(|it| {
            furthest = it.to.max(furthest);
            (it.from, furthest)
        });
        Covered { reach: reach.collect() }
    }

    pub(super) fn has(&self, sequence: u64) -> bool {
        let begun = self.reach.partition_point(|(from, _)| *from < sequence);
        self.reach[..begun].last().is_some_and(|(_, furthest)| *furthest >= sequence)
    }
}

/// Returns the changes that lead from one write to another.
///
/// # Errors
/// `FileMissing`: some changes are missing.
pub(super) fn chain(
    objects: &dyn ObjectStore,
    all: &[ShippedName],
    from: u64,
    to: u64,
) -> Result<Vec<ShippedName>> {
    let (mut at, mut chain) = (from, Vec::new());
    while at < to {
        let next = all.iter().filter(|it| it.from <= at && it.to > at).max_by_key(|it| it.to);
        let Some(next) = next else {
            let what = format!(
                "the changes behind write {at} were not shipped: a store can be restored as of \
                 that write, or of a generation"
            );
            return Err(Error::FileMissing { path: objects.place().into(), what });
        };
        chain.push(*next);
        at = next.to;
    }
    Ok(chain)
}

pub(super) fn ship(
    objects: &dyn ObjectStore,
    db: &Db,
    environment: &Environment,
) -> Result<Shipped> {
    db.sync()?;
    let visible = db.snapshot().sequence();
    // Greater numbers belong to another store: this one was restored to an earlier moment.
    let own = |number: &u64| *number <= visible;
    let generations = generation::all(objects)?;
    let sequences = generation::leading_on(&generations).map(|it| it.sequence);
    let Some(newest) = sequences.filter(own).max() else {
        let what = "there is no generation yet: make one before changes are shipped".to_string();
        return Err(Error::FileMissing { path: objects.place().into(), what });
    };
    // Shipping continues where it ended, even if a generation was made since, so there is no gap.
    let before = names(objects)?.iter().map(|it| it.to).filter(own).max().unwrap_or(newest);
    match ship_behind(objects, db, environment, before) {
        Err(Error::Gone { .. }) if before < newest => ship_behind(objects, db, environment, newest),
        shipped => shipped,
    }
}

/// Stores the changes after a write.
fn ship_behind(
    objects: &dyn ObjectStore,
    db: &Db,
    environment: &Environment,
    before: u64,
) -> Result<Shipped> {
    let mut feed = db.changes_since(before)?;
    let from = feed.sequence();
    let mut shipped = Shipped { from, to: from, bytes: 0 };
    loop {
        let (mut part, mut long_bytes) = (Part::default(), 0);
        while part.len() as u64 + long_bytes < PART_BYTES
            && let Some(batch) = feed.next_with_readers(values::IN_CHANGES)?
        {
            let batch = put_values(objects, batch)?;
            long_bytes += batch.values.values().map(|it| it.name.bytes).sum::<u64>();
            part.add(&batch);
        }
        shipped.bytes += long_bytes;
        if part.last == 0 {
            return Ok(shipped);
        }
        let milliseconds = environment.clock.since_epoch().as_millis() as u64;
        let name = ShippedName { from: shipped.to, to: part.last, milliseconds };
        shipped.to = part.last;
        let bytes = part.encode(&spaces(db), &marks(db, name));
        stored::put(objects, &name.name(), &bytes)?;
        shipped.bytes += bytes.len() as u64;
    }
}

/// Stores the long values of a batch before anything names them.
fn put_values(
    objects: &dyn ObjectStore,
    BatchWithReaders { batch, long }: BatchWithReaders,
) -> Result<ShippedBatch> {
    let mut stored = BTreeMap::new();
    for long in long {
        stored.insert(long.sequence, values::put(objects, long)?);
    }
    Ok(ShippedBatch { batch, values: stored })
}

/// Returns when the writes of an object were made, if the store notes that. The last mark is that
/// of its last write, with the time of a later one: the object may end amid a second.
fn marks(db: &Db, name: ShippedName) -> Vec<WriteTime> {
    if db.engine.table_files.options.kept_log_bytes == 0 {
        return Vec::new();
    }
    let all = db.engine.logs.times.up_to(db.engine.snapshots.visible());
    let within = all.iter().filter(|it| it.sequence > name.from && it.sequence < name.to).copied();
    let last = all.iter().find(|it| it.sequence >= name.to);
    let last = last.map(|it| WriteTime { sequence: name.to, ..*it });
    within.chain(last).collect()
}

/// Returns the key spaces of the store as they are now.
fn spaces(db: &Db) -> ShippedSpaces {
    let visible = db.engine.snapshots.visible().0;
    let mut all = ShippedSpaces::new();
    for (id, KeyspaceLayout { record, tree }) in &db.engine.manifest().layout().keyspaces {
        let unlogged = (!record.has_log()).then_some(tree.last_sequence.0);
        let (name, options) = (record.name.clone(), record.options.clone());
        all.insert(id.0, ShippedSpace { name, options, unlogged });
    }
    // Open key spaces know whether they have a log now, and what is in memory.
    for engine in db.owner.engines() {
        let Some(space) = all.get_mut(&engine.keyspace.0) else { continue };
        let version = engine.current.pin();
        let flushed = version.layout.last_sequence.0;
        let through = version.first_unflushed().map_or(flushed, |_| visible.max(flushed));
        space.unlogged = (!engine.has_log()).then_some(through);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::batch::Batch;
    use crate::plan::background::Background;
    use crate::plan::options::Options;
    use crate::read::changes::ReadWhole;
    use crate::storage::memory::Memory;
    use crate::sync::Arc;

    #[test] // A restore would refuse longer objects. Batches that meet form one group.
    fn what_changes_hold_themselves_has_a_bound_whatever_is_written_together() {
        let environment = Environment::new().storage(Arc::new(Memory::new()));
        let options = Options::new().value_threshold(1 << 10).background(Background::Stepped);
        let db = Db::open_with("db", options, environment).expect("opens");
        let mut batch = Batch::new();
        (0..9u8).for_each(|key| _ = batch.put([key], vec![key; 2000]));
        db.write(batch).expect("writes");
        db.sync().expect("syncs");
        let mut feed = db.changes_since(0).expect("begins");
        let whole = ReadWhole { value_below: 1 << 20, batch_bytes: 5000 };
        let BatchWithReaders { batch, long } =
            feed.next_with_readers(whole).expect("reads").expect("one batch");
        let readers: Vec<u64> = long.iter().map(|it| it.reader.len()).collect();
        assert_eq!((batch.changes.len(), readers), (9, vec![2000; 7]));
        let mut part = Part::default();
        part.add(&ShippedBatch { batch, values: BTreeMap::new() });
        assert!((4000..5000).contains(&part.len()), "{} bytes", part.len());
    }

    #[test]
    fn writes_are_covered_behind_the_first_up_to_the_last() {
        let changes = |from, to| ShippedName { from, to, milliseconds: 1 };
        let covered = Covered::of(&[changes(5, 9), changes(6, 7), changes(12, 14)]);
        let found: Vec<u64> = (0..20).filter(|it| covered.has(*it)).collect();
        assert_eq!(found, [6, 7, 8, 9, 13, 14]);
        assert!(!Covered::of([]).has(1));
    }
}
