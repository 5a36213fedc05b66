//! How sampled queries fall among the keys being written, and how groups get bits by that.
//! ```text
//! shares   stretches of equally many keys | weight = half even, half by queries
//!          bits = even bits + log2(weight) - its mean       (minimizes the sum of weight x rate)
//! hashes   points closer to a key than cells resolve: their groups get hash bits
//! ```
//! Monkey and ElasticBF divide bits among tables by queries; this does it within one filter.
//!
//! Invariant: shares take at most one bit per key from any group, so no rate more than doubles.
//! Hash bits are taken from ranges, where they save more errors. These decisions affect a filter's
//! size and error rate, never its correctness.

use alloc::vec::Vec;

use super::empty_queries::EmptyQueries;
use super::keys::KeyBuffer;
use crate::base::real::{exp2, log2};
use crate::bits::key_bits::{bits_at, common_bits};
use alloc::collections::VecDeque;
use core::ops::{Range, RangeInclusive};

/// This many queries weigh as much as the even distribution.
const KNOWN: f64 = 64.0;
/// The largest weight that queries get.
const WEIGHT_MAX: f64 = 0.5;
/// Queries that a group is expected to get besides those sampled: from the overall mix, and like
/// those of its chapter.
const OF_EVERYWHERE: f64 = 2.0;
const OF_CHAPTER: f64 = 8.0;
/// The share of points in the overall mix.
const POINTS: f64 = 0.6;
/// Hashes must lower the cost to this share, since computing them takes time.
const CLEARLY: f64 = 0.7;
/// The hash bits per key that a group may have.
const HASH_BITS: RangeInclusive<usize> = 2..=8;
/// The minimum spare bits that cells keep next to hashes: in the first group with hashes, and in
/// others.
const SPARE_OF_FIRST: f64 = 0.0;
const SPARE_OF_OTHERS: f64 = -0.5;
/// The approximate rate at which cells without spare bits cover a random range.
const RATE: f64 = 0.25;

/// The sampled queries of the keys being written.
#[derive(Default)]
pub(crate) struct Demand {
    queries: EmptyQueries,
    /// The number of queries below all keys, and of those up to the buffered keys.
    below: usize,
    taken: usize,
    /// Whether a chapter was begun.
    has_begun: bool,
    stretches: Vec<Stretch>,
    /// The number of stretches that begin at or before the last group.
    begun: usize,
    /// Extra bits granted so far. Before the first group: as planned for the stretches before it.
    granted: Option<f64>,
    /// Queries among the buffered keys.
    placed: VecDeque<Placed>,
    /// Hash bits per key in groups that have hashes. None: no group has any yet.
    hash_bits: Option<usize>,
}

/// A stretch of keys; all stretches have about equally many.
struct Stretch {
    first: Vec<u8>,
    /// Extra bits per key, relative to an even share.
    bits_more: f64,
    /// The planned extra bits of all keys up to the stretch's end.
    planned: f64,
}

/// A query between two neighbouring keys.
#[derive(Clone, Copy)]
struct Placed {
    /// The buffer index of the upper key.
    place: usize,
    is_point: bool,
    /// The approximate spare bits at which a cell tells the query from the nearer key.
    resolving_bits: f64,
}

impl Placed {
    /// The probability of a wrong answer, if `hash_bits` of the cells' spare bits are used for
    /// hashes.
    fn wrong(&self, spare: f64, hash_bits: f64) -> f64 {
        // Other keys near there are queried, too, so the transition is gradual.
        let cells = exp2((2.0 * (self.resolving_bits - (spare - hash_bits))).min(0.0));
        if self.is_point { cells * exp2(-hash_bits) } else { cells }
    }
}

impl Demand {
    /// `firsts` has the first keys of stretches, each with about equally many of all `keys` keys.
    pub(crate) fn new(queries: EmptyQueries, firsts: &[Vec<u8>], keys: u64) -> Demand {
        let all = queries.len() as f64;
        let weight = WEIGHT_MAX * all / (all + KNOWN);
        let place_of = |first: &Vec<u8>| {
            let mut keys = queries.iter().map(|query| query.key);
            keys.position(|key| key >= first.as_slice()).unwrap_or(queries.len())
        };
        let mut ends: Vec<usize> = firsts.iter().skip(1).map(place_of).collect();
        ends.push(queries.len());
        let mut start = 0;
        let more = ends.into_iter().map(|end| {
            let fallen = (end - core::mem::replace(&mut start, end)) as f64;
            let density = fallen * firsts.len() as f64 / all.max(1.0);
            log2(1.0 - weight + weight * density)
        });
        let more: Vec<f64> = more.collect();
        let mean = more.iter().sum::<f64>() / firsts.len().max(1) as f64;
        let (keys_each, mut planned) = (keys as f64 / firsts.len().max(1) as f64, 0.0);
        let stretch = |(first, more): (&Vec<u8>, f64)| {
            planned += (more - mean) * keys_each;
            Stretch { first: first.clone(), bits_more: more - mean, planned }
        };
        let stretches = firsts.iter().zip(more).map(stretch).collect();
        Demand { queries, stretches, ..Demand::default() }
    }

    /// Locates the queries that fall among the buffered keys.
    pub(crate) fn begin_chapter(&mut self, keys: &KeyBuffer) {
        let is_first = !core::mem::replace(&mut self.has_begun, true);
        while self.taken < self.queries.len() {
            let query = self.queries.get(self.taken);
            let place = place_among(keys, query.key);
            if place == keys.len() {
                break;
            }
            self.taken += 1;
            if place == 0 && is_first {
                self.below += 1;
            }
            // Otherwise the key exists by now, or lies below all keys.
            if let Some(resolving_bits) = resolving_bits(keys, place, query.key) {
                self.placed.push_back(Placed { place, is_point: query.is_point, resolving_bits });
            }
        }
    }

    /// Returns the extra bits per key of a group, relative to an even share. If a stretch has more
    /// keys than the sample predicted, they get only what others have saved. Requires: groups come
    /// in order.
    pub(crate) fn bits_more(&mut self, first: &[u8], keys: usize) -> f64 {
        let later = &self.stretches[self.begun..];
        self.begun += later.iter().take_while(|stretch| *stretch.first <= *first).count();
        let at = self.begun.saturating_sub(1);
        let Some(stretch) = self.stretches.get(at) else { return 0.0 };
        let before = at.checked_sub(1).map_or(0.0, |before| self.stretches[before].planned);
        let granted = self.granted.get_or_insert(before);
        let is_spent = stretch.bits_more > 0.0 && *granted >= stretch.planned;
        let more = if is_spent { 0.0 } else { stretch.bits_more };
        *granted += more * keys as f64;
        more
    }

    /// Returns the hash bits per key of the group with the first `keys` buffered keys. `spare`: the
    /// spare bits of its cells without hashes.
    pub(crate) fn hash_bits_of(&mut self, keys: usize, spare: f64) -> usize {
        // True for nearly all groups.
        if !self.placed.iter().any(|placed| placed.is_point && placed.resolving_bits > spare) {
            return 0;
        }
        let of_chapter = (OF_CHAPTER / self.placed.len() as f64).min(1.0);
        let wrong = |hash_bits: usize| {
            let hash_bits = hash_bits as f64;
            let wrong_of = |placed: &Placed| placed.wrong(spare, hash_bits);
            let own = self.placed.iter().take_while(|placed| placed.place < keys);
            let own: f64 = own.map(wrong_of).sum();
            let chapter: f64 = self.placed.iter().map(wrong_of).sum();
            let ranges = POINTS + (1.0 - POINTS) * exp2(hash_bits);
            own + of_chapter * chapter + OF_EVERYWHERE * RATE * ranges * exp2(-spare)
        };
        let (known, least) = match self.hash_bits {
            Some(bits) => (bits..=bits, SPARE_OF_OTHERS),
            None => (HASH_BITS, SPARE_OF_FIRST),
        };
        let known = known.filter(|bits| spare - *bits as f64 >= least);
        let best = known.min_by(|a, b| wrong(*a).total_cmp(&wrong(*b)));
        let best = best.filter(|bits| wrong(*bits) < CLEARLY * wrong(0));
        self.hash_bits = self.hash_bits.or(best);
        best.unwrap_or(0)
    }

    /// The range of the queries that fell between keys.
    pub(crate) fn fallen(&self) -> Range<usize> {
        self.below..self.taken
    }

    /// The hash bits per key in groups that have hashes; 0 if none has any yet.
    pub(crate) fn hash_bits(&self) -> usize {
        self.hash_bits.unwrap_or(0)
    }

    /// Drops the first `keys` keys of the buffer.
    pub(crate) fn drop_front(&mut self, keys: usize) {
        while self.placed.front().is_some_and(|placed| placed.place < keys) {
            self.placed.pop_front();
        }
        self.placed.iter_mut().for_each(|placed| placed.place -= keys);
    }
}

/// Returns the number of buffered keys below `key`.
fn place_among(keys: &KeyBuffer, key: &[u8]) -> usize {
    let (mut low, mut high) = (0, keys.len());
    while low < high {
        let middle = low.midpoint(high);
        if keys.get(middle) < key { low = middle + 1 } else { high = middle }
    }
    low
}

/// Returns the approximate spare bits at which cells tell a key from its neighbours; cells are as
/// wide as the smaller gap beside their keys. None: the key is stored, or below all keys.
fn resolving_bits(keys: &KeyBuffer, place: usize, key: &[u8]) -> Option<f64> {
    let (before, after) = (keys.get(place.checked_sub(1)?), keys.get(place));
    common_bits(before, key)?;
    common_bits(key, after)?;
    let prefix = common_bits(before, after)?;
    let view = |key: &[u8]| bits_at(key, prefix);
    let [low, key, high] = [before, key, after].map(view);
    let outer = |place: usize| {
        let key = (place < keys.len()).then(|| keys.get(place))?;
        (common_bits(key, before)? >= prefix).then(|| view(key))
    };
    let below = place.checked_sub(2).and_then(outer).map_or(u64::MAX, |lower| low - lower);
    let above = outer(place + 1).map_or(u64::MAX, |upper| upper - high);
    let resolved = |beside: u64, apart: u64| {
        let lesser = beside.min(high - low).max(1);
        log2(lesser as f64 / apart.max(1) as f64)
    };
    let from_low = resolved(below, key.saturating_sub(low));
    let from_high = resolved(above, high.saturating_sub(key));
    Some(from_low.max(from_high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::empty_queries::EmptyQuery;
    use crate::fingerprint::keys::Pushed;

    fn queries(keys: impl Iterator<Item = u64>, is_point: bool) -> EmptyQueries {
        let keys: Vec<[u8; 8]> = keys.map(u64::to_be_bytes).collect();
        EmptyQueries::of(keys.iter().map(|key| EmptyQuery { key, is_point }))
    }

    fn firsts(count: u64) -> Vec<Vec<u8>> {
        (0..count).map(|nth| (nth << 40).to_be_bytes().to_vec()).collect()
    }

    #[test]
    fn no_share_is_less_than_half_and_all_are_the_budget() {
        for (count, stretches) in [(1000, 64), (1000, 2), (3, 64), (0, 64), (1000, 1)] {
            // All queries fall into the first stretch.
            let mut demand =
                Demand::new(queries(0..count, true), &firsts(stretches), 1000 * stretches);
            let firsts = firsts(stretches);
            let more: Vec<f64> = firsts.iter().map(|first| demand.bits_more(first, 1000)).collect();
            let sum: f64 = more.iter().sum();
            assert!(sum.abs() < 1e-9, "{count} {stretches}: {sum}");
            let least = if count < 64 { -0.05 } else { -1.0 };
            assert!(more.iter().all(|more| *more > least), "{count} {stretches}: {more:?}");
            let is_known = count > 0 && stretches > 1;
            assert_eq!(more[0] > 0.3, is_known, "{count} {stretches}: {more:?}");
        }
    }

    fn hashed(queries: EmptyQueries, spare: f64) -> usize {
        let mut keys = KeyBuffer::default();
        (0..100u64).for_each(|key| assert_eq!(keys.push(&(key << 40).to_be_bytes()), Pushed::Kept));
        let mut demand = Demand::new(queries, &[], 100);
        demand.begin_chapter(&keys);
        demand.hash_bits_of(50, spare)
    }

    #[test]
    fn groups_get_hashes_where_points_come_that_cells_cannot_tell() {
        let behind = || (0..50u64).map(|key| (key << 40) + 100);
        assert!(HASH_BITS.contains(&hashed(queries(behind(), true), 8.0)));
        assert_eq!(hashed(queries(behind(), true), 1.0), 0, "there is no room");
        assert_eq!(hashed(queries(behind(), false), 8.0), 0, "ranges have no hash");
        let between = (0..50u64).map(|key| (key << 40) + (1 << 39));
        assert_eq!(hashed(queries(between, true), 8.0), 0, "cells tell these");
        let present = (0..50u64).map(|key| key << 40);
        assert_eq!(hashed(queries(present, true), 8.0), 0, "they are there");
        assert!(hashed(queries(behind().take(1), true), 8.0) > 0, "one in vain is many");
    }

    #[test]
    fn cells_are_as_fine_as_the_lesser_gap() {
        let mut keys = KeyBuffer::default();
        let stored = [0u64, 1 << 40, (1 << 40) + (1 << 20), 1 << 41, 1 << 42];
        stored.iter().for_each(|key| assert_eq!(keys.push(&key.to_be_bytes()), Pushed::Kept));
        let resolved = |key: u64| {
            let key = key.to_be_bytes();
            resolving_bits(&keys, place_among(&keys, &key), &key).map(f64::round)
        };
        assert_eq!(resolved((1 << 40) + 1024), Some(10.0));
        assert_eq!(resolved((1 << 40) + (1 << 20) + (1 << 30)), Some(0.0));
        assert_eq!(resolved(1 << 40), None, "it is there");
        assert_eq!(resolved((1 << 40) - (1 << 10)), Some(10.0), "of the key above");
    }
}
