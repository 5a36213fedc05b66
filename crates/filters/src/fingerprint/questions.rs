//! Queries that found nothing: a sample of those that a filter should refute.

use alloc::vec::Vec;

use crate::base::key_list::KeyList;
use core::ops::Range;

/// Keys of empty queries, points and starts of ranges, in key order.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    keys: KeyList,
    points: Vec<bool>,
}

/// A query that found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AskedKey<'k> {
    /// The key, or the start of the range.
    pub key: &'k [u8],
    /// Whether it was a point query.
    pub is_point: bool,
}

impl Questions {
    /// The maximum number of queries kept: more would add little information.
    pub const MAX: usize = 1024;
    /// Queries with longer keys are not kept.
    pub const KEY_BYTES_MAX: usize = 256;

    /// Samples at most [`MAX`](Self::MAX) of these queries, evenly in key order. They may come in
    /// any order.
    pub fn of<'k>(asked: impl IntoIterator<Item = AskedKey<'k>>) -> Questions {
        let short = |asked: &AskedKey<'_>| asked.key.len() <= Self::KEY_BYTES_MAX;
        let mut asked: Vec<AskedKey<'_>> = asked.into_iter().filter(short).collect();
        asked.sort_unstable();
        let mut questions = Questions::default();
        spread(asked.len(), Self::MAX).for_each(|place| questions.push(asked[place]));
        questions
    }

    /// Samples at most `most` of the queries at `places`, evenly.
    #[must_use]
    pub(crate) fn thinned(&self, places: Range<usize>, most: usize) -> Questions {
        let mut thin = Questions::default();
        let spread = spread(places.len(), most);
        spread.for_each(|place| thin.push(self.get(places.start + place)));
        thin.keys.shrink_to_fit();
        thin.points.shrink_to_fit();
        thin
    }

    /// Appends a query unless it is below the last one. Returns whether it was appended.
    pub(crate) fn push_in_order(&mut self, asked: AskedKey<'_>) -> bool {
        let in_order = self.keys.last().is_none_or(|last| last <= asked.key);
        if in_order {
            self.push(asked);
        }
        in_order
    }

    fn push(&mut self, AskedKey { key, is_point }: AskedKey<'_>) {
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
    pub(crate) fn get(&self, place: usize) -> AskedKey<'_> {
        AskedKey { key: self.keys.get(place), is_point: self.points[place] }
    }

    /// Returns all queries in key order.
    pub fn iter(&self) -> impl Iterator<Item = AskedKey<'_>> {
        (0..self.len()).map(|place| self.get(place))
    }

    /// The approximate memory per query, in bits.
    pub(crate) fn bits_each(&self) -> f64 {
        let bytes: usize = self.iter().map(|asked| asked.key.len()).sum();
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
    fn questions_are_sorted_thinned_and_short() {
        let long = [7; Questions::KEY_BYTES_MAX + 1];
        let words: Vec<[u8; 4]> = (0..3000u32).rev().map(u32::to_be_bytes).collect();
        let asked = words.iter().map(|word| AskedKey { key: word, is_point: word[3] % 2 == 0 });
        let all = Questions::of(asked.chain([AskedKey { key: &long, is_point: true }]));
        assert_eq!(all.len(), Questions::MAX);
        assert!(all.iter().map(|asked| asked.key).is_sorted());
        assert!(all.iter().all(|asked| asked.is_point == (asked.key[3] % 2 == 0)));
        let thin = all.thinned(0..all.len(), 10);
        assert_eq!(thin.len(), 10);
        assert!(thin.get(5).key > 1000u32.to_be_bytes().as_slice(), "from everywhere");
        assert!(all.thinned(0..9, 0).is_empty() && all.thinned(5..5, 5).is_empty());
        assert_eq!(all.thinned(500..502, 5).get(1), all.get(501));
        let mut kept = thin.clone();
        assert!(!kept.push_in_order(thin.get(0)) && kept.push_in_order(thin.get(9)));
    }
}
