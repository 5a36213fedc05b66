//! A scan over a store and the writes of a batch that is not written to it yet.
//! ```text
//! store    a   c   d   e   m             c, d, e: in a range that the batch deletes
//! batch        c       k: delete   m     in hand: one entry of the store at each end
//! given    a   c               m (the batch's)
//! ```
//! Invariant: an entry in hand was given by the store's scan and not by this one.

use std::cmp::Ordering;

use crate::entries::key_bounds::KeyBounds;
use crate::error::Result;
use crate::read::indexed_batch::{IndexedBatch, Writes};
use crate::read::scan::{KeyValue, Scan};
use crate::read::scan_direction::Direction;

/// The entries of a range once a batch is written, in key order: from the front with `next`, from
/// the back with `next_back` (and so `rev()`). After an error it ends.
pub struct BatchScan<'b> {
    batch: &'b IndexedBatch,
    writes: Writes<'b>,
    scan: Scan,
    /// Entries of the store that are in hand: at the front, at the back.
    in_hand: [Option<KeyValue>; 2],
    ended: bool,
}

impl<'b> BatchScan<'b> {
    pub(crate) fn new(batch: &'b IndexedBatch, scan: Scan, bounds: &KeyBounds) -> Self {
        let writes = batch.writes_within(bounds);
        BatchScan { batch, writes, scan, in_hand: [None, None], ended: false }
    }

    fn step(&mut self, direction: Direction) -> Option<Result<KeyValue>> {
        if self.ended {
            return None;
        }
        let result = self.try_step(direction);
        self.ended = !matches!(result, Ok(Some(_)));
        result.transpose()
    }

    fn try_step(&mut self, direction: Direction) -> Result<Option<KeyValue>> {
        loop {
            self.take_in_hand(direction)?;
            let in_hand = &mut self.in_hand[direction as usize];
            let write = match direction {
                Direction::Forward => self.writes.first_key(),
                Direction::Backward => self.writes.last_key(),
            };
            let order = match (write, &*in_hand) {
                (None, _) => return Ok(in_hand.take()),
                (Some(_), None) => Ordering::Less,
                (Some(write), Some((key, _))) => match direction {
                    Direction::Forward => write.cmp(key),
                    Direction::Backward => write.cmp(key).reverse(),
                },
            };
            if order == Ordering::Greater {
                return Ok(in_hand.take());
            }
            if order == Ordering::Equal {
                *in_hand = None;
            }
            let write = match direction {
                Direction::Forward => self.writes.next(),
                Direction::Backward => self.writes.next_back(),
            };
            if let Some((key, Some(value))) = write {
                return Ok(Some((key.to_vec(), value)));
            }
        }
    }

    /// Takes the next entry of the store that the batch does not delete with a range. When the
    /// store's scan has ended, that of the other end is the next one.
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
        self.step(Direction::Forward)
    }
}

impl DoubleEndedIterator for BatchScan<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(Direction::Backward)
    }
}

impl std::iter::FusedIterator for BatchScan<'_> {}

impl std::fmt::Debug for BatchScan<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchScan").field("scan", &self.scan).finish_non_exhaustive()
    }
}
