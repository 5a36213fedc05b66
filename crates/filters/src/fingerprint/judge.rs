//! Judges what fingerprints would cost and promise for the keys of one group.
//! ```text
//! rate       the share of a window of some gaps that fingerprints cover, all windows alike
//!   spline   a position is as wide everywhere
//!   gap      a cell is as wide as the nearer gap says
//! ```
//! Empty queries are taken to fall as keys do: evenly within a window, and in each window as often. Alike in each gap
//! would be too pessimistic of the spline, whose positions fill narrow gaps: few queries fall into these.
//! Invariant: judging changes what a filter costs and how often it errs, never its truth.

use super::gap::exponent;
use super::spline::{Layout, POSITIONS_END, REMAINDER_MAX};

/// Gaps of a window.
const WINDOW_GAPS: usize = 8;
/// Quotients for each key, at least.
const QUOTIENTS_MIN: f64 = 0.3;
/// Quotients of a block, at most.
const QUOTIENTS_MAX: f64 = 60_000.0;

/// What the gaps between the keys of a group say. Keys are 63-bit numbers.
pub(crate) struct Survey {
    /// The share of keys that look like the one before.
    pub(crate) ties: f64,
    /// Bits that gap fingerprints spend where a gap is wider than the next one.
    pub(crate) uneven_bits: usize,
    /// The rate of gap fingerprints without spare bits.
    gap_rate: f64,
    /// The rate of spline fingerprints.
    spline_rate: f64,
}

impl Survey {
    /// Requires: ascending numbers. `position_width`: of spline fingerprints, in these numbers.
    #[inline(always)]
    pub(crate) fn new(numbers: &[u64], position_width: f64) -> Survey {
        let mut survey = Survey { ties: 0.0, uneven_bits: 0, gap_rate: 0.0, spline_rate: 0.0 };
        let (mut before, mut windows) = (0, 0.0);
        for window in windows_of(numbers) {
            let (mut by_cells, mut by_positions, mut from) = (0.0, 0.0, window[0]);
            for &to in &window[1..] {
                let Some(apart) = exponent(from, to) else {
                    survey.ties += 1.0;
                    continue;
                };
                survey.uneven_bits += u32::saturating_sub(before, apart) as usize;
                // A cell is as wide as the lesser gap beside it says; half of it lies in either.
                by_cells += power(before.min(apart));
                by_positions += distance(from, to).min(position_width);
                (before, from) = (apart, to);
            }
            windows += 1.0;
            let width = distance(window[0], from).max(1.0);
            survey.gap_rate += (by_cells / width).min(1.0);
            survey.spline_rate += by_positions / width;
        }
        windows = f64::max(windows, 1.0);
        survey.gap_rate /= windows;
        survey.spline_rate /= windows;
        survey.ties /= numbers.len() as f64;
        survey
    }

    /// The rate of gap fingerprints with so many spare bits.
    pub(crate) fn gap_rate(&self, spare: f64) -> f64 {
        self.with_ties(self.gap_rate * (-spare).exp2())
    }

    /// The rate of spline fingerprints.
    pub(crate) fn spline_rate(&self) -> f64 {
        self.with_ties(self.spline_rate)
    }

    /// A rate of fingerprints that see no more of a key than its number: queries near keys that look alike look
    /// like them.
    fn with_ties(&self, rate: f64) -> f64 {
        self.ties + (1.0 - self.ties) * rate
    }
}

/// Stretches of some neighbouring keys, each of which begins where the one before ends.
fn windows_of(numbers: &[u64]) -> impl Iterator<Item = &[u64]> {
    (0..numbers.len().saturating_sub(1))
        .step_by(WINDOW_GAPS)
        .map(|from| &numbers[from..numbers.len().min(from + WINDOW_GAPS + 1)])
}

#[inline(always)]
fn distance(from: u64, to: u64) -> f64 {
    (to - from) as i64 as f64 // Of 63 bits, and a signed number is turned into one of these in one step.
}

fn power(exponent: u32) -> f64 {
    f64::from_bits((1023 + u64::from(exponent)) << 52)
}

/// The layout of `keys` keys in `blocks` blocks that takes about so many bits for each key.
pub(crate) fn layout(keys: usize, blocks: usize, bits_per_key: f64) -> Layout {
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
