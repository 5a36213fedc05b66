//! Queries that found nothing: a sample of those that a filter should refute.

use alloc::vec::Vec;

use crate::base::key_list::KeyList;
use core::ops::Range;

/// Keys of empty queries, points and starts of ranges, in key order.
#[derive(Clone, Debug, Default)]
pub struct EmptyQueries {
    keys: KeyList,
    points: Vec<bool>,
}

/// A query that found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EmptyQuery<'k> {
    /// The key, or the start of the range.
    pub key: &'k [u8],
    /// Whether it was a point query.
    pub is_point: bool,
}

impl EmptyQueries {
    /// The maximum number of queries kept: more would add little information.
    pub const MAX: usize = 1024;
    /// Queries with longer keys are not kept.
    pub const KEY_BYTES_MAX: usize = 256;

    /// Samples at most [`MAX`](Self::MAX) of these queries, evenly in key order. They may come in
    /// any order.
    pub fn of<'k>(queries: impl IntoIterator<Item = EmptyQuery<'k>>) -> EmptyQueries {
        let short = |query: &EmptyQuery<'_>| query.key.len() <= Self::KEY_BYTES_MAX;
        let mut queries: Vec<EmptyQuery<'_>> = queries.into_iter().filter(short).collect();
        queries.sort_unstable();
        let mut sample = EmptyQueries::default();
        spread(queries.len(), Self::MAX).for_each(|place| sample.push(queries[place]));
        sample
    }

    /// Samples at most `most` of the queries at `places`, evenly.
    #[must_use]
    pub(crate) fn thinned(&self, places: Range<usize>, most: usize) -> EmptyQueries {
        let mut thin = EmptyQueries::default();
        let spread = spread(places.len(), most);
        spread.for_each(|place| thin.push(self.get(places.start + place)));
        thin.keys.shrink_to_fit();
        thin.points.shrink_to_fit();
        thin
    }

    /// Appends a query unless it is below the last one. Returns whether it was appended.
    pub(crate) fn push_in_order(&mut self, query: EmptyQuery<'_>) -> bool {
        let in_order = self.keys.last().is_none_or(|last| last <= query.key);
        if in_order {
            self.push(query);
        }
        in_order
    }

    fn push(&mut self, EmptyQuery { key, is_point }: EmptyQuery<'_>) {
        self.keys.push(key);
        self.points.push(is_point);
    }

    /// The number of queries.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether there are no queries.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Returns the query at index `place`. Requires: `place` is below `len`.
    pub(crate) fn get(&self, place: usize) -> EmptyQuery<'_> {
        EmptyQuery { key: self.keys.get(place), is_point: self.points[place] }
    }

    /// Returns all queries in key order.
    pub fn iter(&self) -> impl Iterator<Item = EmptyQuery<'_>> {
        (0..self.len()).map(|place| self.get(place))
    }

    /// The approximate memory per query, in bits.
    pub(crate) fn bits_each(&self) -> f64 {
        let bytes: usize = self.iter().map(|query| query.key.len()).sum();
        8.0 * (bytes as f64 / self.len().max(1) as f64 + (size_of::<usize>() + 1) as f64)
    }

    /// Returns the size of each allocation, in bytes.
    pub(crate) fn allocations(&self) -> [usize; 3] {
        let [bytes, ends] = self.keys.allocations();
        [bytes, ends, self.points.capacity()]
    }
}

/// Returns at most `most` evenly spread indexes below `count`.
fn spread(count: usize, most: usize) -> impl Iterator<Item = usize> {
    let taken = count.min(most);
    (0..taken).map(move |nth| nth * count / taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_sorted_thinned_and_short() {
        let long = [7; EmptyQueries::KEY_BYTES_MAX + 1];
        let words: Vec<[u8; 4]> = (0..3000u32).rev().map(u32::to_be_bytes).collect();
        let queries = words.iter().map(|word| EmptyQuery { key: word, is_point: word[3] % 2 == 0 });
        let all = EmptyQueries::of(queries.chain([EmptyQuery { key: &long, is_point: true }]));
        assert_eq!(all.len(), EmptyQueries::MAX);
        assert!(all.iter().map(|query| query.key).is_sorted());
        assert!(all.iter().all(|query| query.is_point == (query.key[3] % 2 == 0)));
        let thin = all.thinned(0..all.len(), 10);
        assert_eq!(thin.len(), 10);
        assert!(thin.get(5).key > 1000u32.to_be_bytes().as_slice(), "from everywhere");
        assert!(all.thinned(0..9, 0).is_empty() && all.thinned(5..5, 5).is_empty());
        assert_eq!(all.thinned(500..502, 5).get(1), all.get(501));
        let mut kept = thin.clone();
        assert!(!kept.push_in_order(thin.get(0)) && kept.push_in_order(thin.get(9)));
    }
}
