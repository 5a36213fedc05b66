//! Estimates what fingerprints would cost and promise for the keys of one group.
//! ```text
//! rate       the share of a window of some gaps that fingerprints cover, all windows alike
//!   spline   a position is as wide everywhere
//!   gap      a cell is as wide as the nearer gap says
//! ```
//! Empty queries are taken to fall as keys do: evenly within a window, and in each window as often.
//! As often in each gap would be too pessimistic for the spline, whose positions fill narrow gaps:
//! few queries fall into these. Invariant: the choice changes what a filter costs and how often it
//! errs, never its truth.

use super::gap::number;
use super::settle::exponent;
use super::spline::{Layout, POSITIONS_END, REMAINDER_MAX};

/// Gaps of a window.
const WINDOW_GAPS: usize = 8;
/// Windows of a group that a sample has, about.
const WINDOWS_OF_SAMPLE: usize = 32;
/// Quotients for each key, at least.
const QUOTIENTS_MIN: f64 = 0.3;
/// Quotients of a block, at most.
const QUOTIENTS_MAX: f64 = 60_000.0;

/// What the gaps between the keys of a group say: of all, or of a sample. Keys are 63-bit numbers.
pub(super) struct Survey {
    /// The share of keys that look like the one before.
    pub ties: f64,
    /// Bits that gap fingerprints spend where a gap is wider than the next one.
    pub uneven_bits: usize,
    /// The rate of gap fingerprints without spare bits.
    gap_rate: f64,
    /// The rate of spline fingerprints.
    spline_rate: f64,
}

impl Survey {
    /// Of some of the gaps. Requires: ascending views. `position_width`: of spline fingerprints, in
    /// their numbers.
    #[inline(always)]
    pub(super) fn of_sample(views: &[u64], position_width: f64) -> Survey {
        Self::of_windows(views, position_width, WINDOWS_OF_SAMPLE)
    }

    /// Of all gaps.
    #[cold]
    pub(super) fn of_all(views: &[u64], position_width: f64) -> Survey {
        Self::of_windows(views, position_width, views.len())
    }

    #[inline(always)]
    fn of_windows(views: &[u64], position_width: f64, asked: usize) -> Survey {
        let (mut ties, mut uneven, mut gaps, mut windows) = (0, 0, 0, 0.0);
        let (mut gap_rate, mut spline_rate) = (0.0, 0.0);
        for (window, mut before) in windows_of(views, asked) {
            let mut from = number(window[0]);
            let (mut by_cells, mut by_positions, first) = (0.0, 0.0, from);
            for to in window[1..].iter().map(|&view| number(view)) {
                let Some(apart) = exponent(from, to) else {
                    ties += 1;
                    continue;
                };
                uneven += u32::saturating_sub(before, apart);
                // A cell is as wide as the lesser gap beside it says; half of it lies in either.
                by_cells += power(before.min(apart));
                by_positions += distance(from, to).min(position_width);
                (before, from) = (apart, to);
            }
            windows += 1.0;
            gaps += window.len() - 1;
            let width = distance(first, from).max(1.0);
            gap_rate += (by_cells / width).min(1.0);
            spline_rate += by_positions / width;
        }
        windows = f64::max(windows, 1.0);
        Survey {
            ties: f64::from(ties) / (gaps + 1) as f64,
            uneven_bits: uneven as usize * (views.len() - 1) / gaps.max(1),
            gap_rate: gap_rate / windows,
            spline_rate: spline_rate / windows,
        }
    }

    /// The rate of gap fingerprints with so many spare bits.
    pub(super) fn gap_rate(&self, spare: f64) -> f64 {
        self.with_ties(self.gap_rate * (-spare).exp2())
    }

    /// The rate of spline fingerprints.
    pub(super) fn spline_rate(&self) -> f64 {
        self.with_ties(self.spline_rate)
    }

    /// A rate of fingerprints that see no more of a key than its number: queries near keys that
    /// look alike look like them.
    fn with_ties(&self, rate: f64) -> f64 {
        self.ties + (1.0 - self.ties) * rate
    }
}

/// The expected false positive rate of gap fingerprints with so many spare bits. Each key is looked
/// up among the fingerprints of all others, as if it were absent. Where keys are text this is more
/// than [`Survey::gap_rate`], as their gaps are not filled evenly.
#[cold]
pub(super) fn gap_rate_by_keys(views: &[u64], spare: f64) -> f64 {
    let apart = |from: u64, to: u64| exponent(number(from), number(to)).map_or(0.0, power);
    let scale = (-spare).exp2() / 2.0;
    let covered = |keys: &[u64]| {
        let [before, low, key, high, after] = *keys else { return false };
        let gap = apart(low, high);
        let reach = |outer: f64| gap.min(outer) * scale;
        distance(number(low), number(key)) < reach(apart(before, low))
            || distance(number(key), number(high)) < reach(apart(high, after))
    };
    share_of(views.windows(5).map(covered))
}

/// As [`gap_rate_by_keys`], of cells: `commons` are the bits that each key shares with the one
/// before.
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

/// Stretches of some neighbouring keys, each of which begins where the one before ends, and the
/// exponent of the gap before. About `asked` of them, evenly spread.
#[inline(always)]
fn windows_of(views: &[u64], asked: usize) -> impl Iterator<Item = (&[u64], u32)> {
    let gaps = views.len().saturating_sub(1);
    let apart = (gaps / (WINDOW_GAPS * asked).max(1)).max(1);
    (0..gaps).step_by(WINDOW_GAPS * apart).map(move |from| {
        let before = from
            .checked_sub(1)
            .map_or(0, |before| exponent(number(views[before]), number(views[from])).unwrap_or(0));
        (&views[from..views.len().min(from + WINDOW_GAPS + 1)], before)
    })
}

#[inline(always)]
fn distance(from: u64, to: u64) -> f64 {
    // Both have 63 bits, so that a signed number holds the difference: converting it is one step.
    (to - from) as i64 as f64
}

fn power(exponent: u32) -> f64 {
    f64::from_bits((1023 + u64::from(exponent)) << 52)
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

    #[test]
    fn keys_ask_for_each_other() {
        // Evenly spaced, each lies in the middle of the gap that it leaves.
        let even: Vec<u64> = (0..40u64).map(|place| place << 50).collect();
        assert_eq!([0.0, 1.0, 3.0].map(|spare| gap_rate_by_keys(&even, spare)), [0.0; 3]);
        // In pairs: a key close to its neighbour lies in the neighbour's fingerprint, however many
        // spare bits there are.
        let pairs: Vec<u64> = even.iter().flat_map(|&key| [key, key + (1 << 20)]).collect();
        assert_eq!(gap_rate_by_keys(&pairs, 8.0), 1.0);
        assert_eq!(gap_rate_by_keys(&pairs, 40.0), 0.0);
        assert_eq!(gap_rate_by_keys(&even[..3], 0.0), 0.0, "too few to ask");
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
