//! Conflict detection: whether keys have been written since they were read.
//! ```text
//! a key was read at number 70: is there an entry, or a range tombstone over it, above 70?
//! memtables   the newest entry of the key
//! runs        those with numbers above 70 that the guard does not exclude: mostly none, no I/O
//! batches     those that the same group writes before
//! ```
//! Invariant: while a sequence number is registered, flushes and merges keep it visible whether a
//! key has newer entries. (They keep the newest entry of a key.) So a caller registers the number,
//! or accepts that a key was written and deleted in between.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use smallvec::SmallVec;
use trommel_filters::{FlushNumber, Query, Span};

use crate::entries::batch::Batch;
use crate::entries::cursor::{Cursor, Reads};
use crate::entries::entry::{Kind, Sequence};
use crate::entries::expiry::Expiry;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::memtable::Memtable;
use crate::entries::tombstones::RangeDelete;
use crate::error::{Error, Result};
use crate::files::placed_run::PlacedRun;
use crate::files::run_table::RunTable;
use crate::guard::Answer;
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::version::Version;
use crate::write::key_locks::HolderId;

/// Keys for which the guard is asked together.
const GROUP: usize = 16;

/// A condition of a write: the key has no newer entry than the one that was read.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(crate) keyspace: KeyspaceId,
    pub(crate) key: Vec<u8>,
    /// The sequence number at which it was read.
    pub(crate) at: Sequence,
    /// When the value that was read expires.
    pub(crate) expiry: Option<Expiry>,
}

impl Condition {
    /// Returns the error for a condition that does not hold.
    pub(crate) fn conflict(&self) -> Error {
        Error::Conflict { keyspace: self.keyspace.0, key: self.key.clone() }
    }

    /// Whether a batch that was accepted earlier writes the key.
    pub(crate) fn is_touched_by(&self, batch: &Batch) -> bool {
        batch.logged().any(|(keyspace, kind, key, value)| {
            let hits = match kind {
                Kind::DeleteRange => *key <= *self.key && *self.key < *value,
                _ => key == self.key,
            };
            keyspace == self.keyspace && hits
        })
    }

    /// Whether the condition holds in the current tree. Requires: it is the tree of the condition's
    /// key space.
    pub(crate) fn holds(&self, tree: &OpenTree) -> Result<bool> {
        let alive = self.expiry.is_none_or(|expiry| !expiry.has_come(tree.env.clock.since_epoch()));
        // Nothing was written since.
        if tree.snapshots.visible() <= self.at {
            return Ok(alive);
        }
        Ok(alive && !is_newer(&tree.current.hold(), &self.key, self.at)?)
    }
}

/// A batch, and the conditions under which it is to be written.
#[derive(Clone, Default)]
pub(crate) struct Write {
    pub(crate) batch: Batch,
    pub(crate) conditions: Vec<Condition>,
    /// For a transaction: what must not have changed.
    pub(crate) reads: Option<Box<ReadSet>>,
    /// The holder whose locks permit the write. None: it has no locks.
    pub(crate) holder: Option<HolderId>,
}

impl Write {
    /// Returns a write without conditions.
    pub(crate) fn of(batch: Batch) -> Self {
        Write { batch, ..Write::default() }
    }

    /// Clears it, and keeps at most `bytes` bytes of the memory for keys and values.
    pub(crate) fn clear_to(&mut self, bytes: usize) {
        let Write { batch, conditions, reads, holder } = self;
        batch.clear_to(bytes);
        conditions.clear();
        (*reads, *holder) = (None, None);
    }

    /// Whether it writes only into the default key space, and has no conditions.
    pub(super) fn is_plain(&self) -> bool {
        let is_default = self.batch.only_keyspace() == Some(KeyspaceId::DEFAULT);
        is_default && self.conditions.is_empty() && self.reads.is_none()
    }
}

/// What a version has that is newer than a sequence number.
struct Since<'v> {
    version: &'v Version,
    at: Sequence,
    /// The flush that has the first newer write, or an earlier one.
    flush: FlushNumber,
}

impl<'v> Since<'v> {
    fn new(version: &'v Version, at: Sequence) -> Self {
        let first = Sequence(at.0.saturating_add(1));
        let flush = version.layout.flush_of(first).unwrap_or_default();
        Since { version, at, flush }
    }

    /// Iterates over the memtables that may have newer entries.
    fn memtables(&self) -> impl Iterator<Item = &'v Arc<Memtable>> {
        let sealed = self.version.sealed.iter().filter(|sealed| sealed.last > self.at);
        let active = std::iter::once(&self.version.active.memtable);
        active.filter(|it| !it.is_empty()).chain(sealed.map(|sealed| &sealed.memtable))
    }

    /// Iterates over the runs that may have newer entries, each with whether it is the oldest run.
    fn runs(&self) -> impl Iterator<Item = (&'v PlacedRun, bool)> {
        let (runs, at) = (&self.version.runs, self.at);
        let placed = runs.iter().enumerate().filter(move |(_, run)| run.run.greatest() > at);
        placed.map(|(place, run)| (run, place + 1 == runs.len()))
    }

    /// Asks the guard.
    fn ask<'q>(&'q self, query: Query<'q>) -> NewerAnswer<'q> {
        let (answer, base) = (self.version.guard.ask(&query), OnceCell::new());
        NewerAnswer { since: self, query, answer, base }
    }

    fn has_key(&self, key: &[u8]) -> Result<bool> {
        if self.is_newer_at_once(key) {
            return Ok(true);
        }
        let has_runs = self.runs().next().is_some();
        Ok(has_runs && self.runs_have(key, &self.ask(Query::Point(key)))?)
    }

    /// Returns the first of some keys that has a newer entry. Asks the guard for all of them at
    /// once. Requires: there are at most [`GROUP`] keys.
    fn first_of<'k>(&self, keys: &[&'k [u8]]) -> Result<Option<&'k [u8]>> {
        self.memtables().for_each(|memtable| keys.iter().for_each(|key| memtable.prefetch(key)));
        if let Some(newer) = keys.iter().find(|key| self.is_newer_at_once(key)) {
            return Ok(Some(newer));
        }
        if self.runs().next().is_none() {
            return Ok(None);
        }
        let ages = self.version.guard.parts().map(|parts| &parts.ages);
        let bases = ages.map_or(0, |ages| ages.may_have_of_many(keys, self.flush));
        let mut first = Ok(None);
        self.version.guard.ask_many(keys, |place, answer| {
            let (key, is_newer) = (keys[place], bases >> place & 1 == 1);
            if let Ok(None) = first {
                let (query, base) = (Query::Point(key), OnceCell::from(is_newer));
                let answer = NewerAnswer { since: self, query, answer, base };
                first = self.runs_have(key, &answer).map(|has| has.then_some(key));
            }
        });
        first
    }

    /// Whether memtables or range tombstones show that a key has a newer entry.
    fn is_newer_at_once(&self, key: &[u8]) -> bool {
        let newest = |memtable: &Arc<Memtable>| memtable.get(key, Sequence::MAX);
        if self.memtables().filter_map(newest).any(|found| found.sequence > self.at) {
            return true;
        }
        let deleted = self.version.covering_tombstone(key, Sequence::MAX);
        deleted.is_some_and(|deleted| deleted > self.at)
    }

    fn runs_have(&self, key: &[u8], answer: &NewerAnswer<'_>) -> Result<bool> {
        if answer.all_is_older() {
            return Ok(false);
        }
        for (placed, is_oldest) in self.runs() {
            if !answer.may_be_in(placed.span(), is_oldest) {
                continue;
            }
            let table = placed.run.find(key);
            let Some(table) = table.filter(|it| answer.may_hold(it, is_oldest)) else {
                continue;
            };
            let newest = table.table.get(key, Sequence::MAX, &mut Reads::default())?;
            if newest.is_some_and(|newest| newest.sequence > self.at) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a range has newer entries. Range tombstones count wherever they overlap it, since no
    /// guard has them.
    fn has_within(&self, bounds: &KeyBounds) -> Result<bool> {
        let Some(range) = bounds.closed() else { return Ok(false) };
        for memtable in self.memtables() {
            let deletes = |it: RangeDelete<'_>| it.sequence > self.at && overlaps(&it, bounds);
            if memtable.ranges().written().any(deletes) || self.comes(memtable.cursor(), bounds)? {
                return Ok(true);
            }
        }
        let answer = self.ask(Query::Range(range));
        for (placed, is_oldest) in self.runs() {
            // A tombstone may lie where the table has no entry.
            if placed.run.tables().iter().any(|table| self.deletes_within(table, bounds)) {
                return Ok(true);
            }
            for table in placed.run.overlapping(&bounds.from, bounds.to.as_deref()) {
                if answer.may_hold(table, is_oldest) && self.comes(table.cursor(), bounds)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn deletes_within(&self, table: &RunTable, bounds: &KeyBounds) -> bool {
        let tombstones = table.tombstones();
        let may_be = tombstones.sequences().is_some_and(|(_, last)| last > self.at);
        let deletes = |it: RangeDelete<'_>| it.sequence > self.at && overlaps(&it, bounds);
        may_be && tombstones.pieces().any(deletes)
    }

    /// Whether a newer entry lies within bounds. Deletions and expired entries count.
    fn comes(&self, mut cursor: impl Cursor, bounds: &KeyBounds) -> Result<bool> {
        cursor.seek(&bounds.from)?;
        while let Some(entry) = cursor.entry().filter(|entry| bounds.ends_after(entry.key)) {
            if entry.sequence > self.at {
                return Ok(true);
            }
            cursor.next()?;
        }
        Ok(false)
    }
}

/// The guard's answer to a query, restricted to what is newer.
struct NewerAnswer<'q> {
    since: &'q Since<'q>,
    query: Query<'q>,
    answer: Answer<'q>,
    /// Whether a base may have something newer, once this was determined.
    base: OnceCell<bool>,
}

impl NewerAnswer<'_> {
    /// Restricts a span to the flushes that may have something newer. None: there are none.
    fn newer(&self, span: Span, is_oldest: bool) -> Option<Span> {
        // All entries of a base have the same code, whenever they came.
        if is_oldest && *self.base.get_or_init(|| self.base_may_be_newer()) {
            return Some(span);
        }
        Span::new(span.lo().max(self.since.flush), span.hi())
    }

    fn base_may_be_newer(&self) -> bool {
        let parts = self.since.version.guard.parts();
        parts.is_some_and(|parts| parts.ages.may_have_since(&self.query, self.since.flush))
    }

    /// True proves that no run has something newer.
    #[inline]
    fn all_is_older(&self) -> bool {
        let newer = Span::new(self.since.flush, FlushNumber(u64::MAX));
        if newer.is_none_or(|newer| self.answer.may_be_in(newer)) {
            return false;
        }
        // The entries of a base have the code [0, 1).
        let base = Span::of_flush(FlushNumber(0));
        !self.answer.may_be_in(base) || !*self.base.get_or_init(|| self.base_may_be_newer())
    }

    /// Whether a run with this span may have something newer.
    fn may_be_in(&self, span: Span, is_oldest: bool) -> bool {
        self.newer(span, is_oldest).is_some_and(|span| self.answer.may_be_in(span))
    }

    /// Whether a table may have something newer.
    fn may_hold(&self, table: &RunTable, is_oldest: bool) -> bool {
        let is_newer = table.table.properties().sequences.1 > self.since.at;
        is_newer && self.answer.may_hold_within(table, self.newer(table.span, is_oldest))
    }
}

fn overlaps(deletion: &RangeDelete<'_>, bounds: &KeyBounds) -> bool {
    *bounds.from < *deletion.to && bounds.ends_after(deletion.from)
}

/// Whether a version has an entry of the key, or a range tombstone over it, that is newer than
/// `at`.
fn is_newer(version: &Version, key: &[u8], at: Sequence) -> Result<bool> {
    Since::new(version, at).has_key(key)
}

/// A key that was read. Short keys are stored inline.
type PointKey = SmallVec<[u8; 16]>;

/// The keys and ranges that were read in one key space.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadKeys {
    points: BTreeSet<PointKey>,
    /// Ranges, which are disjoint: each begin, with its end. None: the range has no end.
    ranges: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl ReadKeys {
    pub(crate) fn note_point(&mut self, key: &[u8]) {
        if !self.points.contains(key) {
            self.points.insert(PointKey::from_slice(key));
        }
    }

    /// Adds a range. Ranges that touch are joined.
    pub(crate) fn note_range(&mut self, bounds: &KeyBounds) {
        if !bounds.ends_after(&bounds.from) {
            return;
        }
        let KeyBounds { mut from, mut to } = bounds.clone();
        let begins_before =
            |from: &Vec<u8>, to: &Option<Vec<u8>>| to.as_ref().is_none_or(|to| from <= to);
        while let Some((begin, end)) = match &to {
            Some(to) => self.ranges.range(..=to.clone()).next_back(),
            None => self.ranges.iter().next_back(),
        } {
            if !begins_before(&from, end) {
                break;
            }
            let begin = begin.clone();
            let end = self.ranges.remove(&begin).expect("it was found");
            from = from.min(begin);
            to = to.zip(end).map(|(one, other)| one.max(other));
        }
        self.ranges.insert(from, to);
    }

    /// Whether a write changes something that was read.
    fn has(&self, kind: Kind, key: &[u8], value: &[u8]) -> bool {
        let (from, to) = (Bound::Included(key), Bound::Excluded(value));
        match kind {
            Kind::DeleteRange => {
                let point = self.points.range::<[u8], _>((from, to)).next().is_some();
                let before = (Bound::Unbounded, Bound::Excluded(value));
                let range = self.ranges.range::<[u8], _>(before).next_back();
                point || range.is_some_and(|(_, end)| end.as_ref().is_none_or(|end| **end > *key))
            }
            _ => {
                let before = (Bound::Unbounded, Bound::Included(key));
                let range = self.ranges.range::<[u8], _>(before).next_back();
                let within = range.filter(|(_, end)| end.as_ref().is_none_or(|end| **end > *key));
                self.points.contains(key) || within.is_some()
            }
        }
    }

    /// Returns the first key, or begin of a range, for which a version has something newer.
    fn conflict(&self, version: &Version, at: Sequence) -> Result<Option<Vec<u8>>> {
        let since = Since::new(version, at);
        let (mut points, mut group) = (self.points.iter(), [&[][..]; GROUP]);
        loop {
            let count = group.iter_mut().zip(&mut points).map(|(at, key)| *at = key).count();
            if let Some(key) = since.first_of(&group[..count])? {
                return Ok(Some(key.to_vec()));
            }
            if count < GROUP {
                break;
            }
        }
        for (from, to) in &self.ranges {
            let bounds = KeyBounds { from: from.clone(), to: to.clone() };
            if since.has_within(&bounds)? {
                return Ok(Some(from.clone()));
            }
        }
        Ok(None)
    }
}

/// The read set of a transaction, and up to which write it is known to be valid.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadSet {
    pub(crate) keyspaces: BTreeMap<KeyspaceId, ReadKeys>,
    /// No write up to this one has changed what was read.
    pub(crate) at: Sequence,
    /// The earliest expiry of the values that were read.
    pub(crate) expiry: Option<Expiry>,
}

impl ReadSet {
    pub(crate) fn has_point(&self, keyspace: KeyspaceId, key: &[u8]) -> bool {
        self.keyspaces.get(&keyspace).is_some_and(|read| read.points.contains(key))
    }

    /// Returns an error if a batch that was accepted earlier changes what was read.
    pub(crate) fn check_batch(&self, batch: &Batch) -> Result<()> {
        for (keyspace, kind, key, value) in batch.logged() {
            let read = self.keyspaces.get(&keyspace);
            if read.is_some_and(|read| read.has(kind, key, value)) {
                return Err(Error::Conflict { keyspace: keyspace.0, key: key.to_vec() });
            }
        }
        Ok(())
    }

    /// Returns an error if what was read has changed or expired. `of`: returns the tree of a key
    /// space.
    pub(crate) fn check(&self, of: impl Fn(KeyspaceId) -> Result<Arc<OpenTree>>) -> Result<()> {
        for (&keyspace, read) in &self.keyspaces {
            let tree = of(keyspace)?;
            tree.check_open()?;
            let now = tree.env.clock.since_epoch();
            if self.expiry.is_some_and(|expiry| expiry.has_come(now)) {
                return Err(Error::Conflict { keyspace: keyspace.0, key: Vec::new() });
            }
            if tree.snapshots.visible() <= self.at {
                continue;
            }
            if let Some(key) = read.conflict(&tree.current.hold(), self.at)? {
                return Err(Error::Conflict { keyspace: keyspace.0, key });
            }
        }
        Ok(())
    }
}
