//! Where questions fall among keys that are being written, and what groups get for it.
//! ```text
//! shares   stretches of equally many keys | weight = half even, half as questions fall
//!          bits = even bits + log2(weight) - the mean of that       (the least of weight x rate)
//! hashes   a point closer behind a key than cells can tell: such groups get hash bits
//! ```
//! The division of bits by questions is Monkey's and ElasticBF's, within one filter. Invariant:
//! whoever asks, a share is at least half of an even one: no rate more than doubles. What is
//! decided changes what a filter costs and how often it errs, never its truth.

use super::keys::KeyBuffer;
use super::questions::Questions;
use crate::bits::key_bits::{bits_at, common_bits};
use std::collections::VecDeque;

/// So many questions count as much as the even weight that is always there.
const KNOWN: f64 = 64.0;
/// The most of the weight that questions decide.
const WEIGHT_MAX: f64 = 0.5;
/// A point is close if cells would have to be so many bits finer to tell it from a key.
const BITS_CLOSE: f64 = 3.0;
/// Bits of a key that do not make its cell finer, about.
const BITS_BESIDE: f64 = 4.0;
/// Questions that a group is expected to get beside those that it had: as everywhere, and like
/// those of its chapter.
const OF_EVERYWHERE: f64 = 2.0;
const OF_CHAPTER: f64 = 4.0;
/// The share of points among questions as everywhere.
const POINTS: f64 = 0.6;
/// Hashes must cost so much less: they take time.
const CLEARLY: f64 = 0.7;
/// Filters of fewer bits for each key have none to spare.
const BITS_LEAST: f64 = 7.0;

/// What was asked of the keys that are being written.
#[derive(Default)]
pub(crate) struct Demand {
    questions: Questions,
    /// Those of keys that were buffered.
    taken: usize,
    stretches: Vec<Stretch>,
    /// Those that began at or before the last group.
    begun: usize,
    /// Of the buffered keys.
    placed: VecDeque<Placed>,
    chapter: Counts,
}

/// Keys from one on, about as many as other stretches have.
struct Stretch {
    first: Vec<u8>,
    /// What each of its keys has more than an even share.
    bits_more: f64,
}

/// A question between two neighbours.
struct Placed {
    /// Of the upper one, in the buffer.
    place: usize,
    asked: What,
}

enum What {
    /// A point, and how much closer it is to one of them than they are, as a power of two.
    Point {
        closer: f64,
    },
    Range,
}

/// How many questions of each kind there were.
#[derive(Clone, Copy, Default)]
struct Counts {
    close: f64,
    points: f64,
    ranges: f64,
}

impl Counts {
    fn add(&mut self, asked: &What, bits_per_key: f64) {
        match asked {
            What::Range => self.ranges += 1.0,
            What::Point { closer } if *closer >= bits_per_key - BITS_BESIDE + BITS_CLOSE => {
                self.close += 1.0;
            }
            What::Point { .. } => self.points += 1.0,
        }
    }

    fn plus(&self, other: &Counts, times: f64) -> Counts {
        Counts {
            close: self.close + times * other.close,
            points: self.points + times * other.points,
            ranges: self.ranges + times * other.ranges,
        }
    }

    fn all(&self) -> f64 {
        self.close + self.points + self.ranges
    }

    /// How many get a wrong answer from cells of a rate, if so many of their bits are of hashes.
    fn wrong(&self, rate: f64, hash_bits: f64) -> f64 {
        let (hashes, cells) = ((-hash_bits).exp2(), (rate * hash_bits.exp2()).min(1.0));
        self.close * hashes + self.points * cells * hashes + self.ranges * cells
    }
}

impl Demand {
    /// Of questions, and the first keys of stretches with about as many keys each.
    pub(crate) fn new(questions: Questions, firsts: &[Vec<u8>]) -> Demand {
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
            let fallen = (end - std::mem::replace(&mut start, end)) as f64;
            let density = fallen * firsts.len() as f64 / all.max(1.0);
            (1.0 - weight + weight * density).log2()
        });
        let more: Vec<f64> = more.collect();
        let mean = more.iter().sum::<f64>() / firsts.len().max(1) as f64;
        let stretch = |(first, more): (&Vec<u8>, f64)| Stretch {
            first: first.clone(),
            bits_more: more - mean,
        };
        let stretches = firsts.iter().zip(more).map(stretch).collect();
        Demand { questions, stretches, ..Demand::default() }
    }

    /// Finds the questions that fall among buffered keys. `bits_per_key`: what keys have.
    pub(crate) fn begin_chapter(&mut self, keys: &KeyBuffer, bits_per_key: f64) {
        while self.taken < self.questions.len() {
            let asked = self.questions.get(self.taken);
            let place = place_among(keys, asked.key);
            if place == keys.len() {
                break;
            }
            self.taken += 1;
            let between = place.checked_sub(1).map(|before| (keys.get(before), keys.get(place)));
            let Some(closer) = between.and_then(|between| closer(asked.key, between)) else {
                continue; // It is there by now, or below all keys.
            };
            let asked = if asked.is_point { What::Point { closer } } else { What::Range };
            self.placed.push_back(Placed { place, asked });
        }
        self.chapter = Counts::default();
        self.placed.iter().for_each(|placed| self.chapter.add(&placed.asked, bits_per_key));
    }

    /// What each key of a group has more than an even share, from its first key. Requires: not
    /// before that of the last call.
    pub(crate) fn bits_more(&mut self, first: &[u8]) -> f64 {
        let later = &self.stretches[self.begun..];
        self.begun += later.iter().take_while(|stretch| *stretch.first <= *first).count();
        let stretch = self.begun.saturating_sub(1);
        self.stretches.get(stretch).map_or(0.0, |stretch| stretch.bits_more)
    }

    /// The hash bits of each key of a group that has so many buffered keys and so many bits for
    /// each.
    pub(crate) fn hash_bits(&self, keys: usize, bits_per_key: f64) -> usize {
        let most = hash_bits(bits_per_key);
        if self.chapter.close == 0.0 || bits_per_key < BITS_LEAST {
            return 0;
        }
        let mut counts = Counts {
            points: OF_EVERYWHERE * POINTS,
            ranges: OF_EVERYWHERE * (1.0 - POINTS),
            close: 0.0,
        };
        let own = self.placed.iter().take_while(|placed| placed.place < keys);
        own.for_each(|placed| counts.add(&placed.asked, bits_per_key));
        let of_chapter = OF_CHAPTER / self.chapter.all().max(OF_CHAPTER);
        let counts = counts.plus(&self.chapter, of_chapter);
        let rate = (BITS_BESIDE - bits_per_key).exp2();
        let is_less = counts.wrong(rate, most as f64) < CLEARLY * counts.wrong(rate, 0.0);
        if is_less { most } else { 0 }
    }

    /// The first keys of the buffer are gone.
    pub(crate) fn drop_front(&mut self, keys: usize) {
        while self.placed.front().is_some_and(|placed| placed.place < keys) {
            self.placed.pop_front();
        }
        self.placed.iter_mut().for_each(|placed| placed.place -= keys);
    }
}

/// The hash bits of a key that groups have in a filter of so many bits for each, if any: those that
/// cost ranges about as much as they spare points.
pub(crate) fn hash_bits(bits_per_key: f64) -> usize {
    ((bits_per_key - 1.5) / 2.0).round().clamp(1.0, 8.0) as usize
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

/// How much closer a key is to one of its neighbours than they are, as a power of two. None: it is
/// one of them.
fn closer(key: &[u8], (before, after): (&[u8], &[u8])) -> Option<f64> {
    common_bits(before, key)?;
    common_bits(key, after)?;
    let prefix = common_bits(before, after)?;
    let [before, key, after] = [before, key, after].map(|key| bits_at(key, prefix));
    let apart = key.saturating_sub(before).min(after.saturating_sub(key));
    Some(((after - before) as f64 / apart.max(1) as f64).log2())
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
            let mut demand = Demand::new(questions(0..asked, true), &firsts(stretches));
            let firsts = firsts(stretches);
            let more: Vec<f64> = firsts.iter().map(|first| demand.bits_more(first)).collect();
            let sum: f64 = more.iter().sum();
            assert!(sum.abs() < 1e-9, "{asked} {stretches}: {sum}");
            let least = if asked < 64 { -0.05 } else { -1.0 };
            assert!(more.iter().all(|more| *more > least), "{asked} {stretches}: {more:?}");
            let is_known = asked > 0 && stretches > 1;
            assert_eq!(more[0] > 0.3, is_known, "{asked} {stretches}: {more:?}");
        }
    }

    fn hashed(asked: Questions, bits: f64) -> usize {
        let mut keys = KeyBuffer::default();
        (0..100u64).for_each(|key| assert_eq!(keys.push(&(key << 40).to_be_bytes()), Pushed::Kept));
        let mut demand = Demand::new(asked, &[]);
        demand.begin_chapter(&keys, bits);
        demand.hash_bits(50, bits)
    }

    #[test]
    fn groups_get_hashes_where_points_come_that_cells_cannot_tell() {
        let behind = || (0..50u64).map(|key| (key << 40) + 100);
        assert_eq!(hashed(questions(behind(), true), 12.0), hash_bits(12.0));
        assert_eq!(hashed(questions(behind(), true), 6.0), 0, "there is no room");
        assert_eq!(hashed(questions(behind(), false), 12.0), 0, "ranges have no hash");
        let between = (0..50u64).map(|key| (key << 40) + (1 << 39));
        assert_eq!(hashed(questions(between, true), 12.0), 0, "cells tell these");
        let present = (0..50u64).map(|key| key << 40);
        assert_eq!(hashed(questions(present, true), 12.0), 0, "they are there");
        let few = behind().take(1);
        assert_eq!(hashed(questions(few, true), 12.0), hash_bits(12.0), "one in vain is many");
    }
}
