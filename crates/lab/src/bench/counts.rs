//! The error of `estimate_count`: ranges of about a thousand keys, counted by the store and in the
//! sorted keys.
//! ```text
//! [lower ........ upper]   lower: a key like the stored ones   upper: the 1,000th stored key on
//! ```
//! Invariant: if every key was written once, the true count lies within the store's bounds, or the
//! answer is wrong. If keys were deleted, only the upper bound holds: entries count until merges
//! drop them.

use std::hint::black_box;

use trommel::Db;

use crate::keys::key_list::{KeyList, SortedKeys};
use crate::keys::keyset::KeySet;
use crate::keys::rng::Rng;
use crate::report::CountReport;

/// Stored keys in a range, if there are as many.
const RANGE_KEYS: usize = 1000;

/// Ranges and their true counts.
pub(crate) struct CountQueries {
    lowers: KeyList,
    uppers: KeyList,
    counts: Vec<u64>,
}

impl CountQueries {
    pub(crate) fn draw(keys: &KeySet, count: usize, rng: &mut Rng) -> Self {
        let stored = keys.stored();
        let mut queries =
            CountQueries { lowers: KeyList::new(), uppers: KeyList::new(), counts: Vec::new() };
        for _ in 0..count {
            queries.add(stored, &keys.draw(rng));
        }
        queries
    }

    /// Adds the range that begins at `lower`, or the last range that has enough keys.
    fn add(&mut self, stored: &SortedKeys, lower: &[u8]) {
        let width = RANGE_KEYS.min(stored.len());
        let (drawn, latest) = (stored.place_from(lower), stored.len() - width);
        let first = drawn.min(latest);
        self.lowers.push(if drawn <= latest { lower } else { stored.get(first) });
        self.uppers.push(stored.get(first + width - 1));
        self.counts.push(width as u64);
    }

    pub(crate) fn len(&self) -> usize {
        self.counts.len()
    }

    /// Asks for the counts of all ranges once.
    pub(crate) fn ask_all(&self, db: &Db) -> trommel::Result<()> {
        for (lower, upper) in self.lowers.iter().zip(self.uppers.iter()) {
            black_box(db.estimate_count(lower..=upper)?);
        }
        Ok(())
    }

    /// Returns the error of the estimates, and how many bounds exclude the true count.
    pub(crate) fn judge(&self, db: &Db, deleted: bool) -> trommel::Result<(CountReport, u64)> {
        let (mut sum, mut worst, mut wrong) = (0.0, 0.0f64, 0);
        for (place, &count) in self.counts.iter().enumerate() {
            let bounds = db.approximate_count(self.lowers.get(place)..=self.uppers.get(place))?;
            wrong += u64::from((count < bounds.least && !deleted) || bounds.most < count);
            let error = bounds.estimate.abs_diff(count) as f64 / count as f64;
            (sum, worst) = (sum + error, worst.max(error));
        }
        let report = CountReport {
            ops: self.len() as u64,
            ns_per_op: 0.0,
            mean_relative_error: sum / self.len().max(1) as f64,
            worst_relative_error: worst,
        };
        Ok((report, wrong))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::dist::{Dist, FileFormat};

    #[test]
    fn ranges_have_as_many_keys_as_they_say() {
        for count in [5, 1000, 20_000] {
            let keys = KeySet::new(&Dist::Clustered, FileFormat::Lines, Some(count), 1);
            let keys = keys.expect("keys");
            let stored = keys.stored();
            let queries = CountQueries::draw(&keys, 300, &mut Rng::new(2));
            assert_eq!(queries.len(), 300);
            for place in 0..300 {
                let (lower, upper) = (queries.lowers.get(place), queries.uppers.get(place));
                let found = stored.place_after(upper) - stored.place_from(lower);
                assert_eq!((found, queries.counts[place]), (count.min(1000), found as u64));
            }
        }
    }
}
