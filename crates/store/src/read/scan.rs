//! A scan: the entries of a range as of one moment, from either end.
//! ```text
//! [lower, end)   next() ->                          <- next_back()
//!                lower moves up past what was returned; end moves down to it
//! ```
//! Invariant (ordering rule 2): the sequence number is registered before a version is pinned, so
//! any version can serve it. Once a merge has replaced the pinned version, the scan seeks in the
//! newest one.

use crate::entries::key_bounds::KeyBounds;
use crate::entries::keys::successor;
use crate::entries::packed;
use crate::entries::value::Value;
use crate::error::{Error, Result};
use crate::files::query_blocks::Fetched;
use crate::read::scan_direction::{Direction, Side};
use crate::storage::pauses::PausePoint;
use crate::sync::{Arc, Ordering};
use crate::tree::open_tree::OpenTree;
use crate::tree::snapshots::Registered;
use crate::tree::stats::{QueryKind, QueryStats};

/// A key and its value.
pub type KeyValue = (Vec<u8>, Value);

/// A scan over the entries of a range in key order. It sees the store as of the moment when it
/// began, whatever is written meanwhile. `next` advances from the front, `next_back` (and `rev()`)
/// from the back. The scan ends after an error, unless it was [given up](crate::giving_up): then it
/// goes on. A value of more than 1 GiB is an error ([`ValueTooLong`](crate::Error::ValueTooLong)),
/// unless the scan is of [keys only](Scan::keys_only): [`get_reader`](crate::Keyspace::get_reader)
/// reads such a value.
pub struct Scan {
    tree: Arc<OpenTree>,
    registered: Registered,
    bounds: KeyBounds,
    /// The forward and the backward side.
    sides: [Option<Side>; 2],
    ended: bool,
    /// Some after the first step: later results do not describe the bounds as a whole.
    kind: Option<QueryKind>,
    costs: QueryStats,
    /// Some: the scan ends where it needs a block that is neither in here nor in the cache.
    blocks: Option<Arc<Fetched>>,
    keys_only: bool,
}

impl Scan {
    pub(crate) fn new(tree: &Arc<OpenTree>, registered: Registered, bounds: KeyBounds) -> Self {
        tree.env.pauses.at(PausePoint::SnapshotRegistered);
        Scan {
            tree: Arc::clone(tree),
            registered,
            bounds,
            sides: [None, None],
            ended: false,
            kind: None,
            costs: QueryStats { queries: 1, ..QueryStats::default() },
            blocks: None,
            keys_only: false,
        }
    }

    /// Makes the scan return keys only: all values are empty. It then reads no value [stored
    /// apart](crate::options::OptionValues::value_threshold), and calls no merge operator.
    #[must_use]
    pub fn keys_only(mut self) -> Self {
        self.keys_only = true;
        self
    }

    /// Uses blocks that were read for the scan; it reads no others.
    #[must_use]
    pub(crate) fn with_blocks(mut self, blocks: Arc<Fetched>) -> Self {
        self.blocks = Some(blocks);
        self
    }

    /// Returns the tree that is scanned.
    pub(crate) fn tree(&self) -> &OpenTree {
        &self.tree
    }

    /// Drops the scan without counting it, since the query will be repeated.
    pub(crate) fn forget(mut self) {
        self.kind = None;
    }

    /// As `next`, but lends the key until the next call, which saves an allocation.
    pub fn next_lent(&mut self) -> Option<Result<(&[u8], Value)>> {
        self.step_lent(Direction::Forward)
    }

    /// Appends the next entries to a buffer, until it has grown by `bytes`, but at least one: for
    /// callers that pay a price per call. Returns the number of entries; 0 means that none is left.
    /// The layout of an entry: key length and value length, each as four little-endian bytes, then
    /// key and value.
    ///
    /// # Errors
    /// As `next`. Entries before the error are in the buffer, and the scan ends.
    pub fn next_packed(&mut self, out: &mut Vec<u8>, bytes: usize) -> Result<usize> {
        self.steps_packed(Direction::Forward, out, bytes)
    }

    /// As [`next_packed`](Scan::next_packed), from the back.
    pub fn next_back_packed(&mut self, out: &mut Vec<u8>, bytes: usize) -> Result<usize> {
        self.steps_packed(Direction::Backward, out, bytes)
    }

    fn steps_packed(
        &mut self,
        direction: Direction,
        out: &mut Vec<u8>,
        bytes: usize,
    ) -> Result<usize> {
        let (begin, mut entries) = (out.len(), 0);
        while (entries == 0 || out.len() - begin < bytes) && self.step(direction)? {
            let key = passed(&self.bounds, direction);
            if let Some(side) = &mut self.sides[direction as usize] {
                side.lend_value(|value| packed::push_row(out, key, value));
            }
            entries += 1;
        }
        Ok(entries)
    }

    /// As `next_back`, but lends the key until the next call, which saves an allocation.
    pub fn next_back_lent(&mut self) -> Option<Result<(&[u8], Value)>> {
        self.step_lent(Direction::Backward)
    }

    /// Moves the front forward to `key`: `next` then returns the first remaining entry at or after
    /// `key`. Costs a seek. If the front is at or behind `key` already, this does nothing.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) {
        let key = key.as_ref();
        if *key > *self.bounds.from {
            key.clone_into(&mut self.bounds.from);
            self.leave(Direction::Forward);
        }
    }

    /// Moves the back down to `key`: `next_back` then returns the last remaining entry at or before
    /// `key`. Costs as much as [`seek`](Scan::seek).
    pub fn seek_back(&mut self, key: impl AsRef<[u8]>) {
        self.end_before(&successor(key.as_ref()));
    }

    /// Moves the back down to `end`, exclusive.
    pub(crate) fn end_before(&mut self, end: &[u8]) {
        if self.bounds.ends_after(end) {
            self.bounds.to = Some(end.to_vec());
            self.leave(Direction::Backward);
        }
    }

    /// Drops the side of a direction. Its next step seeks anew at that end of the bounds.
    fn leave(&mut self, direction: Direction) {
        if let Some(side) = self.sides[direction as usize].take() {
            side.add_costs(&mut self.costs);
        }
    }

    /// Moves on and returns the entry. Its key is lent from that end of the bounds.
    pub(crate) fn step_lent(&mut self, direction: Direction) -> Option<Result<(&[u8], Value)>> {
        match self.step(direction) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => return Some(Err(error)),
        }
        let value = self.sides[direction as usize].as_mut()?.take_value();
        Some(Ok((passed(&self.bounds, direction), value)))
    }

    /// Moves on. Returns false if there is no entry left. Otherwise the side has its value, and
    /// that end of the bounds its key.
    fn step(&mut self, direction: Direction) -> Result<bool> {
        if self.ended || self.bounds.closed().is_none() {
            return Ok(false);
        }
        let is_first = self.kind.is_none();
        let is_timed = is_first && self.tree.timing().is_some();
        let result = match is_timed.then(|| Arc::clone(&self.tree)) {
            Some(tree) => tree.counters.seeks.time(tree.timing(), || self.try_step(direction)),
            None => self.try_step(direction),
        };
        if is_first && matches!(result, Ok(false)) {
            self.tree.table_files.empty_ranges.note_nothing(&self.bounds);
            self.tree.empty_query_sample.note_range(&self.bounds);
        }
        self.ended = !matches!(result, Ok(true) | Err(Error::Cancelled));
        result
    }

    fn try_step(&mut self, direction: Direction) -> Result<bool> {
        self.tree.check_open()?;
        // A scan counts as closed if there is a bound at the far end of its first step.
        let bounded = direction.far(&self.bounds).is_some();
        let kind = if bounded { QueryKind::ClosedSeek } else { QueryKind::OpenSeek };
        self.kind.get_or_insert(kind);
        let side = &mut self.sides[direction as usize];
        let newest = self.tree.merge_epoch.load(Ordering::Acquire);
        if let Some(outdated) = side.take_if(|side| side.merge_epoch() != newest) {
            outdated.add_costs(&mut self.costs);
        }
        let side = match side {
            Some(side) => side,
            None => {
                let (version, at) = (self.tree.current.hold(), self.registered.sequence());
                self.tree.check_open()?;
                let blocks = self.blocks.clone();
                let new = Side::new(version, at, direction, &self.bounds, blocks)?;
                side.insert(if self.keys_only { new.keys_only() } else { new })
            }
        };
        let found = side.step(&self.bounds, &self.tree).inspect_err(|error| {
            // Whichever version the scan goes on in, it does not pass these keys again.
            if let Error::Cancelled = error {
                side.leave_behind(&mut self.bounds);
            }
        })?;
        match direction {
            _ if !found => {}
            Direction::Forward => self.bounds.pass_front(side.key()),
            Direction::Backward => self.bounds.pass_back(side.key()),
        }
        Ok(found)
    }
}

/// The key that was given last from that end of the bounds. Requires: there is one.
#[inline]
fn passed(bounds: &KeyBounds, direction: Direction) -> &[u8] {
    match direction {
        // The bound is the key after it: the key and a zero.
        Direction::Forward => bounds.from.strip_suffix(&[0]).unwrap_or_default(),
        Direction::Backward => bounds.to.as_deref().unwrap_or_default(),
    }
}

impl Iterator for Scan {
    type Item = Result<KeyValue>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_lent()?.map(|(key, value)| (key.to_vec(), value)))
    }
}

impl DoubleEndedIterator for Scan {
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(self.next_back_lent()?.map(|(key, value)| (key.to_vec(), value)))
    }
}

impl std::iter::FusedIterator for Scan {}

impl Drop for Scan {
    fn drop(&mut self) {
        for side in std::mem::take(&mut self.sides).into_iter().flatten() {
            side.add_costs(&mut self.costs);
        }
        if let Some(kind) = self.kind {
            self.tree.counters.queried(kind, &self.costs);
        }
    }
}

impl std::fmt::Debug for Scan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scan").field("bounds", &self.bounds).finish_non_exhaustive()
    }
}
