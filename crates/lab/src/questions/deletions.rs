//! Deletions while a tree is loaded: stretch by stretch, in the flushes of the newer runs.
//! ```text
//! flushes   | those of the last level            | newer ones                 | last |
//! writes    | all keys that will be deleted, ... | others, stretch 0, 1, 2 .. | others
//! ```
//! Invariants: a key is written before it is deleted, and never again. So the stored keys are the
//! same for every shape. The last flush deletes nothing if an earlier one can.

use std::ops::Range;

use trommel::Db;

use crate::error::Result;
use crate::keys::key_list::SortedKeys;
use crate::questions::read_workload::{Deleted, DeletedBy};

/// The deletions of a load, and the flushes that make them.
pub(crate) struct Deletions<'k> {
    deleted: &'k Deleted,
    /// The flushes that delete, counted from 0.
    flushes: Range<u64>,
}

impl<'k> Deletions<'k> {
    /// Plans the deletions for a tree of `flushes` flushes, of which the first `in_base` form its
    /// last level.
    /// Requires: some keys are not deleted.
    pub(crate) fn new(
        deleted: &'k Deleted,
        keys: &SortedKeys,
        flushes: u64,
        in_base: u64,
    ) -> Deletions<'k> {
        let (gone, all) = (deleted.keys.len() as u128, keys.len() as u128);
        // By this flush, all keys to delete have been written.
        let written = (u128::from(flushes) * gone).div_ceil(all) as u64;
        let last = flushes - 1;
        let first = in_base.max(written).min(last);
        let flushes = if first < last { first..last } else { last..flushes };
        Deletions { deleted, flushes }
    }

    /// Reorders writes so that keys to delete come first.
    pub(crate) fn first_in(&self, order: Vec<u32>, keys: &SortedKeys) -> Vec<u32> {
        let is_deleted = |place: &u32| self.deleted.keys.holds(keys.get(*place as usize));
        let (first, rest): (Vec<u32>, Vec<u32>) = order.into_iter().partition(is_deleted);
        [first, rest].concat()
    }

    /// Deletes the stretches of this flush.
    pub(crate) fn delete(&self, db: &Db, flush: u64) -> Result<()> {
        for stretch in self.stretches(flush) {
            match self.deleted.by {
                DeletedBy::Key => {
                    let mut places = self.deleted.stretch(stretch);
                    places.try_for_each(|place| db.delete(self.deleted.keys.get(place)))?;
                }
                DeletedBy::Range => {
                    let (from, to) = self.deleted.bounds(stretch);
                    db.delete_range(from, to)?;
                }
            }
        }
        Ok(())
    }

    fn stretches(&self, flush: u64) -> Range<usize> {
        let Range { start, end } = self.flushes;
        let count = self.deleted.ends.len() as u64;
        let before = |flush: u64| (flush.clamp(start, end) - start) * count / (end - start);
        before(flush) as usize..before(flush + 1) as usize
    }
}

#[cfg(test)]
mod tests;
