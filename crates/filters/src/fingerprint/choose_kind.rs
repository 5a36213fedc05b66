//! Estimates what fingerprints would promise for the keys of one group.
//! ```text
//! before   low   key   high   after       a key is looked up among the fingerprints of the others,
//!                 ?                       as if it were absent
//! cells    a cell reaches up to 2^(c - s) beyond low or below high, c: its lesser gap's exponent
//! spline   a position reaches as far everywhere
//! rate     the share of keys that are reached
//! ```
//! Where too few keys are reached, wider fingerprints are asked, and their rate is halved as often
//! as they were doubled. Invariant: the choice changes what a filter costs and how often it errs,
//! never its truth.

use super::gap::number;
use super::settle::{exponent, width};
use super::spline::{Layout, POSITIONS_END, REMAINDER_MAX};
use crate::base::real::{exp2, power_of_two};

/// Quotients for each key, at least.
const QUOTIENTS_MIN: f64 = 0.3;
/// Quotients of a block, at most.
const QUOTIENTS_MAX: f64 = 60_000.0;
/// Keys that must be reached, so that a rate is no chance.
const REACHED_MIN: f64 = 6.0;
/// Times that fingerprints are doubled for that.
const DOUBLED_MAX: i32 = 20;

/// How far keys are from their neighbours, in parts of what a fingerprint reaches without spare
/// bits.
struct Distances {
    /// How many are 2^-(i / 4), about.
    counts: [u16; Distances::COUNTS],
}

impl Distances {
    /// Counts of a factor of two.
    const STEPS: u32 = 4;
    const COUNTS: usize = 64 * Self::STEPS as usize;

    fn new() -> Distances {
        Distances { counts: [0; Self::COUNTS] }
    }

    /// Adds a distance in parts of 2^`of`, if it is less than that.
    #[inline(always)]
    fn add(&mut self, distance: u64, of: u32) {
        let whole = distance.ilog2();
        let quarters = (distance << 2 >> whole) as u32 & (Self::STEPS - 1);
        let (part, all) = (whole * Self::STEPS + quarters, of * Self::STEPS);
        if part < all {
            self.counts[(all - part) as usize % Self::COUNTS] += 1;
        }
    }

    /// The mean of the distances of a count.
    fn mean(count: usize) -> f64 {
        let parts = -(count as i32);
        let steps = Self::STEPS as i32;
        let quarters = f64::from(parts.rem_euclid(steps)) + 0.5;
        power_of_two(parts.div_euclid(steps)) * (1.0 + quarters / f64::from(steps))
    }

    /// How many are reached by fingerprints whose reach is such a part, wherever keys lie in them.
    fn reached(&self, reach: f64) -> f64 {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let reached = |(at, &count): (usize, &u16)| {
            f64::from(count) * (1.0 - Self::mean(at) / reach).max(0.0)
        };
        counts.map(reached).sum()
    }
}

/// What the keys of a group say of rates.
pub(crate) struct OwnRates {
    /// Keys that were looked up, and those of them that look like a neighbour.
    asked: f64,
    alike: f64,
    by_gap: Distances,
    by_number: Distances,
}

impl OwnRates {
    /// Requires: ascending views. Cells that are exact with so many spare bits reach nothing: they
    /// are 2^unit wide.
    #[inline(always)]
    pub(crate) fn new(views: &[u64], spare: f64, unit: u32) -> OwnRates {
        let exact = spare.max(0.0) as u32;
        let mut rates = OwnRates {
            asked: views.len().saturating_sub(4) as f64,
            alike: 0.0,
            by_gap: Distances::new(),
            by_number: Distances::new(),
        };
        for views in views.windows(5) {
            let [before, low, key, high, after] = [0, 1, 2, 3, 4].map(|at| number(views[at]));
            let (Some(gap), true) = (exponent(low, high), low < key && key < high) else {
                rates.alike += 1.0;
                continue;
            };
            let mut reach = |distance: u64, outer: Option<u32>| {
                let lesser = outer.map_or(gap, |outer| outer.min(gap));
                if lesser.saturating_sub(unit) > exact {
                    rates.by_gap.add(distance, lesser);
                }
            };
            reach(key - low, exponent(before, low));
            reach(high - key, exponent(high, after));
            rates.by_number.add(key - low, 63);
            rates.by_number.add(high - key, 63);
        }
        rates
    }

    /// Whether there were keys enough to look one up.
    pub(crate) fn is_known(&self) -> bool {
        self.asked > 0.0
    }

    /// Whether keys look alike: then they are text, as a rule.
    pub(super) fn has_alike(&self) -> bool {
        self.alike > 0.0
    }

    /// The rate of cells of numbers with so many spare bits; if these are below zero, what it would
    /// be if cells took the room that they have.
    pub(crate) fn near(&self, spare: f64) -> f64 {
        self.rate(&self.by_gap, exp2(-spare))
    }

    /// The rate of positions of such a width, in numbers.
    pub(super) fn spline(&self, width: f64) -> f64 {
        // A position of one number is exact.
        self.rate(&self.by_number, (width - 1.0).max(0.0) / power_of_two(63))
    }

    fn rate(&self, distances: &Distances, reach: f64) -> f64 {
        let enough = REACHED_MIN.min(self.asked / 4.0);
        for doubled in 0..DOUBLED_MAX {
            let scale = power_of_two(doubled);
            let reached = distances.reached(reach * scale);
            if reached + self.alike >= enough || doubled + 1 == DOUBLED_MAX {
                return ((reached / scale + self.alike) / self.asked.max(1.0)).min(1.0);
            }
        }
        unreachable!("the last turn gives a rate")
    }
}

/// The share of keys that lie in a neighbour's cell, where cells begin at multiples of their widths
/// behind the key before. Keys that lie at such places are in none. Requires: spare bits.
#[cold]
#[inline(never)]
pub(super) fn rate_in_cells(views: &[u64], spare: f64, unit: u32) -> f64 {
    let is_in = |views: &[u64]| {
        let [before, low, key, high, after] = [0, 1, 2, 3, 4].map(|at| number(views[at]));
        let (Some(gap), true) = (exponent(low, high), low < key && key < high) else { return true };
        let cell = |outer: Option<u32>| {
            width(outer.map_or(gap, |outer| outer.min(gap)), spare as u32, unit)
        };
        let (of_low, of_high) = (cell(exponent(before, low)), cell(exponent(high, after)));
        let low_end = before + ((((low - before) >> of_low) + 1) << of_low);
        let high_start = low + (((high - low) >> of_high) << of_high);
        key < low_end || key >= high_start
    };
    share_of(views.windows(5).map(is_in))
}

/// Bits that gap fingerprints spend where a gap is wider than the next one.
pub(crate) fn uneven_gap_bits(views: &[u64]) -> usize {
    let gaps = views.windows(2).filter_map(|pair| exponent(number(pair[0]), number(pair[1])));
    let uneven = gaps.fold((0, 0), |(before, sum), apart| {
        (apart, sum + u32::saturating_sub(before, apart) as usize)
    });
    uneven.1
}

/// The rate of cells with so many spare bits, by keys. `commons`: the bits that each key shares
/// with the one before.
#[cold]
pub(super) fn cell_rate_by_keys(commons: &[u32], spare: f64) -> f64 {
    let covered = |commons: &[u32]| {
        let [before, low, high, after] = *commons else { return false };
        let around = low.min(high);
        let told = |outer: u32| f64::from(around.max(outer)) + 1.0 + spare;
        f64::from(low) >= told(before) || f64::from(high) >= told(after)
    };
    share_of(commons.windows(4).map(covered))
}

/// The share of those that are true.
fn share_of(all: impl Iterator<Item = bool>) -> f64 {
    let (asked, covered) =
        all.fold((0, 0), |(asked, covered), one| (asked + 1, covered + u32::from(one)));
    f64::from(covered) / f64::from(asked.max(1))
}

/// The layout of `keys` keys in `blocks` blocks that takes about so many bits for each key.
pub(super) fn layout(keys: usize, blocks: usize, bits_per_key: f64) -> Layout {
    // A key costs its remainder, its one, and its share of the zeros: best with 1 to 2 of them.
    let rest = bits_per_key - 1.0;
    let mut remainder_bits = (rest - 1.0).clamp(0.0, f64::from(REMAINDER_MAX)) as u32;
    let per_key = (rest - f64::from(remainder_bits)).clamp(QUOTIENTS_MIN, 2.0);
    let quotients = (per_key * keys as f64 / blocks as f64).clamp(1.0, QUOTIENTS_MAX) as u32;
    while (blocks as u64 * u64::from(quotients)) << remainder_bits >= POSITIONS_END {
        remainder_bits -= 1;
    }
    Layout { remainder_bits, quotients }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coded(keys: &[u64], spare: f64) -> f64 {
        let views: Vec<u64> = keys.iter().map(|key| key << 1).collect();
        OwnRates::new(&views, spare, 0).near(spare)
    }

    #[test]
    fn keys_ask_for_each_other() {
        // Evenly spaced, each lies in the middle of the gap that it leaves, which no cell reaches.
        let even: Vec<u64> = (0..400u64).map(|place| place << 50).collect();
        assert_eq!([0.0, 1.0, 3.0].map(|spare| coded(&even, spare)), [0.0; 3]);
        // In pairs: a key close to its neighbour lies in the neighbour's cell, however many spare
        // bits there are, until cells are finer than the pair.
        let pairs: Vec<u64> = even.iter().flat_map(|&key| [key, key + (1 << 20)]).collect();
        assert!(coded(&pairs, 8.0) > 0.95, "{}", coded(&pairs, 8.0));
        assert!(coded(&pairs, 45.0) < 1e-4);
        assert_eq!(coded(&even[..3], 0.0), 0.0, "too few to ask");
    }

    #[test]
    fn rates_of_even_keys_are_what_their_widths_say() {
        let mixed = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 10;
        let mut views: Vec<u64> = (0..1000).map(|i| mixed(i * i + i)).collect();
        views.sort_unstable();
        let rates = OwnRates::new(&views, 0.0, 0);
        // A position covers its width, of 2^53 numbers for all keys.
        for shift in 10..15 {
            let promised = 1000.0 * f64::from(-shift).exp2();
            let rate = rates.spline(f64::from(53 - shift).exp2());
            assert!((0.7..1.3).contains(&(rate / promised)), "{shift}: {rate}, {promised}");
        }
        // Where few keys are reached, each spare bit halves the rate.
        let halved = rates.near(14.0) / rates.near(17.0);
        assert!((halved - 8.0).abs() < 0.01, "{halved}");
    }

    #[test]
    fn a_key_is_in_a_cell_that_it_shares_more_with_than_the_cell_needs() {
        // Each key of a pair shares 40 bits with the other one, pairs share 10.
        let commons: Vec<u32> = (0..40).map(|place| if place % 2 == 0 { 10 } else { 40 }).collect();
        assert_eq!(cell_rate_by_keys(&commons, 8.0), 1.0);
        assert_eq!(cell_rate_by_keys(&commons, 29.5), 0.0);
        assert_eq!(cell_rate_by_keys(&[20; 40], 0.0), 0.0);
    }
}
