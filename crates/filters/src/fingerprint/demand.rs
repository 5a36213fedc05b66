//! Where questions fall among keys that are being written, and what groups get for it.
//! ```text
//! shares   stretches of equally many keys | weight = half even, half as questions fall
//!          bits = even bits + log2(weight) - the mean of that       (the least of weight x rate)
//! hashes   points closer to a key than cells can tell: their groups get hash bits
//! ```
//! The division of bits by questions is Monkey's and ElasticBF's, within one filter. Invariant:
//! whoever asks, a share of bits is an even one less a bit at least: no rate more than doubles by
//! shares. Ranges pay for hash bits, where these spare more. What is decided changes what a filter
//! costs and how often it errs, never its truth.

use alloc::vec::Vec;

use super::keys::KeyBuffer;
use super::questions::Questions;
use crate::base::real::{exp2, log2};
use crate::bits::key_bits::{bits_at, common_bits};
use alloc::collections::VecDeque;
use core::ops::{Range, RangeInclusive};

/// So many questions count as much as the even weight that is always there.
const KNOWN: f64 = 64.0;
/// The most of the weight that questions decide.
const WEIGHT_MAX: f64 = 0.5;
/// Questions that a group is expected to get beside those that it had: as everywhere, and like
/// those of its chapter.
const OF_EVERYWHERE: f64 = 2.0;
const OF_CHAPTER: f64 = 8.0;
/// The share of points among questions as everywhere.
const POINTS: f64 = 0.6;
/// Hashes must cost so much less: they take time.
const CLEARLY: f64 = 0.7;
/// Hash bits of a key that groups may have.
const HASH_BITS: RangeInclusive<usize> = 2..=8;
/// Spare bits that cells keep beside hashes, at least: of the first group that has some, and of
/// others.
const SPARE_OF_FIRST: f64 = 0.0;
const SPARE_OF_OTHERS: f64 = -0.5;
/// The share of ranges that cells without spare bits take for theirs, about.
const RATE: f64 = 0.25;

/// What was asked of the keys that are being written.
#[derive(Default)]
pub(crate) struct Demand {
    questions: Questions,
    /// Those below all keys, and those up to the keys that were buffered.
    below: usize,
    taken: usize,
    /// Whether there was a chapter.
    has_begun: bool,
    stretches: Vec<Stretch>,
    /// Those that began at or before the last group.
    begun: usize,
    /// What keys had more so far, those before the first one as planned.
    granted: Option<f64>,
    /// Of the buffered keys.
    placed: VecDeque<Placed>,
    /// Hash bits of the keys of groups that have some, once there is one.
    hash_bits: Option<usize>,
}

/// Keys from one on, about as many as other stretches have.
struct Stretch {
    first: Vec<u8>,
    /// What each of its keys has more than an even share.
    bits_more: f64,
    /// What all keys up to its end are to have more.
    planned: f64,
}

/// A question between two neighbours.
#[derive(Clone, Copy)]
struct Placed {
    /// Of the upper one, in the buffer.
    place: usize,
    is_point: bool,
    /// Spare bits of cells that tell it from the nearer one, about.
    told_by: f64,
}

impl Placed {
    /// How wrong the answer is, 0 to 1, if so many of the spare bits of cells are of hashes.
    fn wrong(&self, spare: f64, hash_bits: f64) -> f64 {
        // Others are asked about there: one that is just told is not sure to be.
        let cells = exp2((2.0 * (self.told_by - (spare - hash_bits))).min(0.0));
        if self.is_point { cells * exp2(-hash_bits) } else { cells }
    }
}

impl Demand {
    /// Of questions, and the first keys of stretches with about as many of all keys each.
    pub(crate) fn new(questions: Questions, firsts: &[Vec<u8>], keys: u64) -> Demand {
        let all = questions.len() as f64;
        let weight = WEIGHT_MAX * all / (all + KNOWN);
        let place_of = |first: &Vec<u8>| {
            let mut keys = questions.iter().map(|asked| asked.key);
            keys.position(|key| key >= first.as_slice()).unwrap_or(questions.len())
        };
        let mut ends: Vec<usize> = firsts.iter().skip(1).map(place_of).collect();
        ends.push(questions.len());
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
        Demand { questions, stretches, ..Demand::default() }
    }

    /// Finds the questions that fall among buffered keys.
    pub(crate) fn begin_chapter(&mut self, keys: &KeyBuffer) {
        let is_first = !core::mem::replace(&mut self.has_begun, true);
        while self.taken < self.questions.len() {
            let asked = self.questions.get(self.taken);
            let place = place_among(keys, asked.key);
            if place == keys.len() {
                break;
            }
            self.taken += 1;
            if place == 0 && is_first {
                self.below += 1;
            }
            // Else it is there by now, or below all keys.
            if let Some(told_by) = told_by(keys, place, asked.key) {
                self.placed.push_back(Placed { place, is_point: asked.is_point, told_by });
            }
        }
    }

    /// What each key of a group has more than an even share, from its first key. Where a stretch
    /// has more keys than the sample has promised, they get no more than what others have saved.
    /// Requires: not before that of the last call.
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

    /// The hash bits of each key of a group of so many buffered keys, if cells would have so many
    /// spare bits without them.
    pub(crate) fn hash_bits_of(&mut self, keys: usize, spare: f64) -> usize {
        // Nearly all groups end here.
        if !self.placed.iter().any(|placed| placed.is_point && placed.told_by > spare) {
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

    /// The places of the questions that fell between keys.
    pub(crate) fn fallen(&self) -> Range<usize> {
        self.below..self.taken
    }

    /// The hash bits of the keys of groups that have some, so far.
    pub(crate) fn hash_bits(&self) -> usize {
        self.hash_bits.unwrap_or(0)
    }

    /// The first keys of the buffer are gone.
    pub(crate) fn drop_front(&mut self, keys: usize) {
        while self.placed.front().is_some_and(|placed| placed.place < keys) {
            self.placed.pop_front();
        }
        self.placed.iter_mut().for_each(|placed| placed.place -= keys);
    }
}

/// How many buffered keys are below one.
fn place_among(keys: &KeyBuffer, key: &[u8]) -> usize {
    let (mut low, mut high) = (0, keys.len());
    while low < high {
        let middle = low.midpoint(high);
        if keys.get(middle) < key { low = middle + 1 } else { high = middle }
    }
    low
}

/// The spare bits of cells that tell a key from its neighbours, about: cells are as fine as the
/// lesser gap beside their keys. None: it is one of them, or is below all.
fn told_by(keys: &KeyBuffer, place: usize, key: &[u8]) -> Option<f64> {
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
    let told = |beside: u64, apart: u64| {
        let lesser = beside.min(high - low).max(1);
        log2(lesser as f64 / apart.max(1) as f64)
    };
    let from_low = told(below, key.saturating_sub(low));
    let from_high = told(above, high.saturating_sub(key));
    Some(from_low.max(from_high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::keys::Pushed;
    use crate::fingerprint::questions::AskedKey;

    fn questions(keys: impl Iterator<Item = u64>, is_point: bool) -> Questions {
        let keys: Vec<[u8; 8]> = keys.map(u64::to_be_bytes).collect();
        Questions::of(keys.iter().map(|key| AskedKey { key, is_point }))
    }

    fn firsts(count: u64) -> Vec<Vec<u8>> {
        (0..count).map(|nth| (nth << 40).to_be_bytes().to_vec()).collect()
    }

    #[test]
    fn no_share_is_less_than_half_and_all_are_the_budget() {
        for (asked, stretches) in [(1000, 64), (1000, 2), (3, 64), (0, 64), (1000, 1)] {
            // All of them fall into the first stretch.
            let mut demand =
                Demand::new(questions(0..asked, true), &firsts(stretches), 1000 * stretches);
            let firsts = firsts(stretches);
            let more: Vec<f64> = firsts.iter().map(|first| demand.bits_more(first, 1000)).collect();
            let sum: f64 = more.iter().sum();
            assert!(sum.abs() < 1e-9, "{asked} {stretches}: {sum}");
            let least = if asked < 64 { -0.05 } else { -1.0 };
            assert!(more.iter().all(|more| *more > least), "{asked} {stretches}: {more:?}");
            let is_known = asked > 0 && stretches > 1;
            assert_eq!(more[0] > 0.3, is_known, "{asked} {stretches}: {more:?}");
        }
    }

    fn hashed(asked: Questions, spare: f64) -> usize {
        let mut keys = KeyBuffer::default();
        (0..100u64).for_each(|key| assert_eq!(keys.push(&(key << 40).to_be_bytes()), Pushed::Kept));
        let mut demand = Demand::new(asked, &[], 100);
        demand.begin_chapter(&keys);
        demand.hash_bits_of(50, spare)
    }

    #[test]
    fn groups_get_hashes_where_points_come_that_cells_cannot_tell() {
        let behind = || (0..50u64).map(|key| (key << 40) + 100);
        assert!(HASH_BITS.contains(&hashed(questions(behind(), true), 8.0)));
        assert_eq!(hashed(questions(behind(), true), 1.0), 0, "there is no room");
        assert_eq!(hashed(questions(behind(), false), 8.0), 0, "ranges have no hash");
        let between = (0..50u64).map(|key| (key << 40) + (1 << 39));
        assert_eq!(hashed(questions(between, true), 8.0), 0, "cells tell these");
        let present = (0..50u64).map(|key| key << 40);
        assert_eq!(hashed(questions(present, true), 8.0), 0, "they are there");
        assert!(hashed(questions(behind().take(1), true), 8.0) > 0, "one in vain is many");
    }

    #[test]
    fn cells_are_as_fine_as_the_lesser_gap() {
        let mut keys = KeyBuffer::default();
        let stored = [0u64, 1 << 40, (1 << 40) + (1 << 20), 1 << 41, 1 << 42];
        stored.iter().for_each(|key| assert_eq!(keys.push(&key.to_be_bytes()), Pushed::Kept));
        let told = |key: u64| {
            let key = key.to_be_bytes();
            told_by(&keys, place_among(&keys, &key), &key).map(f64::round)
        };
        assert_eq!(told((1 << 40) + 1024), Some(10.0));
        assert_eq!(told((1 << 40) + (1 << 20) + (1 << 30)), Some(0.0));
        assert_eq!(told(1 << 40), None, "it is there");
        assert_eq!(told((1 << 40) - (1 << 10)), Some(10.0), "of the key above");
    }
}
