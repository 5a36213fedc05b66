//! Estimates the error rate of each kind of fingerprint for the keys of one group.
//! ```text
//! before   low   key   high   after       each key is looked up among the others' fingerprints,
//!                 ?                       as if it were absent
//! cells    cover up to 2^(c - s) above low or below high; c: exponent of the smaller gap there
//! spline   a position covers the same width everywhere
//! rate     the share of keys that are covered
//! ```
//! If too few keys are covered, wider fingerprints are probed, and each doubling halves the
//! measured rate.
//!
//! Invariant: the choice affects a filter's size and error rate, never its correctness.

use super::gap::number;
use super::settle::{exponent, width};
use super::spline::{Layout, POSITIONS_END, REMAINDER_MAX};
use crate::base::real::{exp2, power_of_two};

/// The minimum number of quotients per key.
const QUOTIENTS_MIN: f64 = 0.3;
/// The maximum number of quotients per block.
const QUOTIENTS_MAX: f64 = 60_000.0;
/// At least this many keys must be covered for a significant rate.
const REACHED_MIN: f64 = 6.0;
/// How often the width of fingerprints may be doubled to reach that.
const DOUBLED_MAX: i32 = 20;

/// A histogram of the distances between keys and their neighbours, relative to the width of a
/// fingerprint without spare bits.
struct Distances {
    /// Entry i counts distances of about 2^-(i / 4).
    counts: [u16; Distances::COUNTS],
}

impl Distances {
    /// Entries per factor of two.
    const STEPS: u32 = 4;
    const COUNTS: usize = 64 * Self::STEPS as usize;

    fn new() -> Distances {
        Distances { counts: [0; Self::COUNTS] }
    }

    /// Adds a distance relative to 2^`of`, if it is below 1.
    #[inline(always)]
    fn add(&mut self, distance: u64, of: u32) {
        let whole = distance.ilog2();
        let quarters = (distance << 2 >> whole) as u32 & (Self::STEPS - 1);
        let (part, all) = (whole * Self::STEPS + quarters, of * Self::STEPS);
        if part < all {
            self.counts[(all - part) as usize % Self::COUNTS] += 1;
        }
    }

    /// The mean of the distances that an entry counts.
    fn mean(count: usize) -> f64 {
        let parts = -(count as i32);
        let steps = Self::STEPS as i32;
        let quarters = f64::from(parts.rem_euclid(steps)) + 0.5;
        power_of_two(parts.div_euclid(steps)) * (1.0 + quarters / f64::from(steps))
    }

    /// The expected number of keys within `reach`, if keys are at random places in their
    /// fingerprints.
    fn reached(&self, reach: f64) -> f64 {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let reached = |(at, &count): (usize, &u16)| {
            f64::from(count) * (1.0 - Self::mean(at) / reach).max(0.0)
        };
        counts.map(reached).sum()
    }
}

/// Error rates estimated from a group's own keys.
pub(crate) struct OwnRates {
    /// The number of keys looked up, and of those that have the same number as a neighbour.
    looked_up: f64,
    alike: f64,
    by_gap: Distances,
    by_number: Distances,
}

impl OwnRates {
    /// Requires: ascending views. With `spare` spare bits, cells may be exact, that is 2^`unit`
    /// wide; these cover no other key.
    #[inline(always)]
    pub(crate) fn new(views: &[u64], spare: f64, unit: u32) -> OwnRates {
        let exact = spare.max(0.0) as u32;
        let mut rates = OwnRates {
            looked_up: views.len().saturating_sub(4) as f64,
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

    /// Whether there were enough keys to look one up.
    pub(crate) fn is_known(&self) -> bool {
        self.looked_up > 0.0
    }

    /// Whether some keys have the same number; usually these are text.
    pub(super) fn has_alike(&self) -> bool {
        self.alike > 0.0
    }

    /// The rate of gap or coded cells with `spare` spare bits. Below zero: the rate as if cells
    /// fitted into their room.
    pub(crate) fn near(&self, spare: f64) -> f64 {
        self.rate(&self.by_gap, exp2(-spare))
    }

    /// The rate of positions that are `width` numbers wide.
    pub(super) fn spline(&self, width: f64) -> f64 {
        // A position of a single number is exact.
        self.rate(&self.by_number, (width - 1.0).max(0.0) / power_of_two(63))
    }

    fn rate(&self, distances: &Distances, reach: f64) -> f64 {
        let enough = REACHED_MIN.min(self.looked_up / 4.0);
        for doubled in 0..DOUBLED_MAX {
            let scale = power_of_two(doubled);
            let reached = distances.reached(reach * scale);
            if reached + self.alike >= enough || doubled + 1 == DOUBLED_MAX {
                return ((reached / scale + self.alike) / self.looked_up.max(1.0)).min(1.0);
            }
        }
        unreachable!("the last turn gives a rate")
    }
}

/// The share of keys in a neighbour's cell, if cells begin at multiples of their widths behind the
/// previous key. Requires: `spare` is not negative.
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

/// Returns the bits that gap fingerprints spend where a gap is wider than the next one.
pub(crate) fn uneven_gap_bits(views: &[u64]) -> usize {
    let gaps = views.windows(2).filter_map(|pair| exponent(number(pair[0]), number(pair[1])));
    let uneven = gaps.fold((0, 0), |(before, sum), apart| {
        (apart, sum + u32::saturating_sub(before, apart) as usize)
    });
    uneven.1
}

/// The rate of cell fingerprints with `spare` spare bits. `commons`: the common prefix of each key
/// with the previous one, in bits.
#[cold]
pub(super) fn cell_rate_by_keys(commons: &[u32], spare: f64) -> f64 {
    let covered = |commons: &[u32]| {
        let [before, low, high, after] = *commons else { return false };
        let around = low.min(high);
        let resolved = |outer: u32| f64::from(around.max(outer)) + 1.0 + spare;
        f64::from(low) >= resolved(before) || f64::from(high) >= resolved(after)
    };
    share_of(commons.windows(4).map(covered))
}

/// The share of true values.
fn share_of(all: impl Iterator<Item = bool>) -> f64 {
    let (count, covered) =
        all.fold((0, 0), |(count, covered), one| (count + 1, covered + u32::from(one)));
    f64::from(covered) / f64::from(count.max(1))
}

/// Returns the layout of `keys` keys in `blocks` blocks that takes about `bits_per_key`.
pub(super) fn layout(keys: usize, blocks: usize, bits_per_key: f64) -> Layout {
    // A key costs its remainder, its one, and its share of the zeros. One to two quotients are
    // best.
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
        // Each evenly spaced key lies in the middle of the gap that it leaves, which no cell
        // covers.
        let even: Vec<u64> = (0..400u64).map(|place| place << 50).collect();
        assert_eq!([0.0, 1.0, 3.0].map(|spare| coded(&even, spare)), [0.0; 3]);
        // Each key of a close pair lies in the other's cell, however many spare bits there are,
        // until cells are finer than the pair.
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
        // A position covers its width, out of 2^53 numbers for all keys.
        for shift in 10..15 {
            let promised = 1000.0 * f64::from(-shift).exp2();
            let rate = rates.spline(f64::from(53 - shift).exp2());
            assert!((0.7..1.3).contains(&(rate / promised)), "{shift}: {rate}, {promised}");
        }
        // If few keys are covered, each spare bit halves the rate.
        let halved = rates.near(14.0) / rates.near(17.0);
        assert!((halved - 8.0).abs() < 0.01, "{halved}");
    }

    #[test]
    fn a_key_is_in_a_cell_that_it_shares_more_with_than_the_cell_needs() {
        // The keys of a pair share 40 bits, neighbouring pairs 10.
        let commons: Vec<u32> = (0..40).map(|place| if place % 2 == 0 { 10 } else { 40 }).collect();
        assert_eq!(cell_rate_by_keys(&commons, 8.0), 1.0);
        assert_eq!(cell_rate_by_keys(&commons, 29.5), 0.0);
        assert_eq!(cell_rate_by_keys(&[20; 40], 0.0), 0.0);
    }
}
