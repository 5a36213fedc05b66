//! A scan over a store together with the writes of a batch that is not written yet.
//! ```text
//! store     a   c   d   e   m             c, d, e: in a range that the batch deletes
//! batch         c       k: delete   m     held: one entry of the store at each end
//! returned  a   c               m (the batch's)
//! ```
//! Invariant: a held entry was returned by the store's scan, but not yet by this one.

use std::cmp::Ordering;
use std::ops::Deref;
use std::sync::Arc;

use crate::entries::key_bounds::KeyBounds;
use crate::entries::value::Value;
use crate::error::{Error, Result};
use crate::read::indexed_batch::IndexedBatch;
use crate::read::scan::{KeyValue, Scan};
use crate::read::scan_direction::Direction;

/// A scan over the entries of a range as if the batch were written, in key order. `next` advances
/// from the front, `next_back` (and `rev()`) from the back. The scan ends after an error, unless it
/// was [given up](crate::giving_up).
pub struct BatchScan<'b> {
    batch: Writes<'b>,
    /// The keys of the batch that were not returned yet.
    left: KeyBounds,
    scan: Scan,
    /// Held entries of the store: at the front, and at the back.
    in_hand: [Option<KeyValue>; 2],
    /// The key that was lent last, if the batch has writes.
    lent: Vec<u8>,
    ended: bool,
}

/// The batch of a scan.
pub(crate) enum Writes<'b> {
    Borrowed(&'b IndexedBatch),
    /// The batch as it was when the scan began.
    Shared(Arc<IndexedBatch>),
}

impl Deref for Writes<'_> {
    type Target = IndexedBatch;

    fn deref(&self) -> &IndexedBatch {
        match self {
            Writes::Borrowed(batch) => batch,
            Writes::Shared(batch) => batch,
        }
    }
}

impl<'b> BatchScan<'b> {
    pub(crate) fn new(batch: Writes<'b>, scan: Scan, bounds: KeyBounds) -> Self {
        let (in_hand, lent) = ([None, None], Vec::new());
        BatchScan { batch, left: bounds, scan, in_hand, lent, ended: false }
    }

    /// As `next`, but lends the key until the next call. Allocates nothing for it if the batch has
    /// no writes.
    pub fn next_lent(&mut self) -> Option<Result<(&[u8], Value)>> {
        self.step_lent(Direction::Forward)
    }

    /// As `next_back`, but lends the key, as [`next_lent`](BatchScan::next_lent) does.
    pub fn next_back_lent(&mut self) -> Option<Result<(&[u8], Value)>> {
        self.step_lent(Direction::Backward)
    }

    /// Returns the next entry in a direction, and lends its key.
    pub(crate) fn step_lent(&mut self, direction: Direction) -> Option<Result<(&[u8], Value)>> {
        if self.batch.is_empty() {
            return self.scan.step_lent(direction);
        }
        let entry = self.step(direction)?;
        Some(entry.map(|(key, value)| {
            self.lent = key;
            (self.lent.as_slice(), value)
        }))
    }

    fn step(&mut self, direction: Direction) -> Option<Result<KeyValue>> {
        if self.ended {
            return None;
        }
        let result = self.try_step(direction);
        self.ended = !matches!(result, Ok(Some(_)) | Err(Error::Cancelled));
        result.transpose()
    }

    fn try_step(&mut self, direction: Direction) -> Result<Option<KeyValue>> {
        loop {
            self.take_in_hand(direction)?;
            let in_hand = &mut self.in_hand[direction as usize];
            let write = self.batch.next_write(&self.left, direction);
            let order = match (&write, &*in_hand) {
                (None, _) => return Ok(in_hand.take()),
                (Some(_), None) => Ordering::Less,
                (Some((write, _)), Some((key, _))) => match direction {
                    Direction::Forward => (**write).cmp(&**key),
                    Direction::Backward => (**write).cmp(&**key).reverse(),
                },
            };
            if order == Ordering::Greater {
                return Ok(in_hand.take());
            }
            let beneath = in_hand.take_if(|_| order == Ordering::Equal).map(|(_, value)| value);
            let Some((key, written)) = write else { return Ok(None) };
            let key = key.to_vec();
            let tree = self.scan.tree();
            let merged =
                |existing: Option<&[u8]>, operands: &[&[u8]]| tree.merged(&key, existing, operands);
            let value = written.value(beneath, merged)?;
            match direction {
                Direction::Forward => self.left.pass_front(&key),
                Direction::Backward => self.left.pass_back(&key),
            }
            if let Some(value) = value {
                return Ok(Some((key, value)));
            }
        }
    }

    /// Takes the next entry of the store that no range deletion of the batch covers. Once the
    /// store's scan has ended, takes the entry that the other end holds.
    fn take_in_hand(&mut self, direction: Direction) -> Result<()> {
        let place = direction as usize;
        loop {
            if self.in_hand[place].is_none() {
                let next = match direction {
                    Direction::Forward => self.scan.next(),
                    Direction::Backward => self.scan.next_back(),
                };
                self.in_hand[place] = next.transpose()?.or_else(|| self.in_hand[1 - place].take());
            }
            let Some((key, _)) = &self.in_hand[place] else { return Ok(()) };
            let Some((from, to)) = self.batch.deleted_around(key) else { return Ok(()) };
            match direction {
                Direction::Forward => self.scan.seek(to),
                Direction::Backward => self.scan.end_before(from),
            }
            self.in_hand[place] = None;
        }
    }
}

impl Iterator for BatchScan<'_> {
    type Item = Result<KeyValue>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_lent()?.map(|(key, value)| (key.to_vec(), value)))
    }
}

impl DoubleEndedIterator for BatchScan<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(self.next_back_lent()?.map(|(key, value)| (key.to_vec(), value)))
    }
}

impl std::iter::FusedIterator for BatchScan<'_> {}

impl std::fmt::Debug for BatchScan<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchScan").field("scan", &self.scan).finish_non_exhaustive()
    }
}
