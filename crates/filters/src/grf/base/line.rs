//! The fractions of keys in a block of spline fingerprints.
//! ```text
//! group     low |----------------- the line -----------------| ... tail ... | end
//! blocks        |   0   |   1   |   2   | ...  |   last      .............  |
//! fraction      the fine position; in the last block it has 15/16 of the range, the tail the rest
//! ```
//! The line ends at the group's last key. The tail reaches to the next group and may be much
//! longer.
//!
//! Invariant: fractions are monotone in keys.

use crate::fingerprint::line::Line;
use crate::fingerprint::spline::FINE_BITS;
use crate::grf::base::between::{OFFSET_BITS, Spacing};

/// The tail's share of the last block's fractions is 2^-`TAIL_BITS`.
const TAIL_BITS: usize = 4;

impl Line {
    /// The number of fractions for the block's positions.
    #[inline(always)]
    fn fractions(&self, bits: usize) -> u64 {
        let last = self.block + 1 == self.blocks;
        (1 << bits) - if last { 1 << (bits - TAIL_BITS) } else { 0 }
    }

    /// Returns the fraction, of `bits` bits, of a key at a fine position.
    #[inline(always)]
    pub(crate) fn fraction(&self, fine: u64, bits: usize) -> u64 {
        let within = fine - self.fine_start();
        within * self.fractions(bits) / (self.model.block_positions() << FINE_BITS)
    }

    /// Returns the fraction of a key beyond all positions. `end`: an upper bound of the group's
    /// views.
    pub(crate) fn tail_fraction(&self, view: u64, end: u64, bits: usize) -> u64 {
        let (low, high) = self.tail(end);
        let offset = Spacing::SquareRoot.offset(view.clamp(low, high - 1), low, high);
        self.fractions(bits) + (offset << (bits - TAIL_BITS) >> OFFSET_BITS)
    }

    /// Returns the start and the end of the tail, which is never empty.
    fn tail(&self, end: u64) -> (u64, u64) {
        let first = self.model.first_beyond(self.blocks);
        let low = self.low.saturating_add(first).min(u64::MAX - 1);
        (low, end.max(low).saturating_add(1))
    }

    /// Returns the start of the block, and a view from which on keys may lie elsewhere.
    pub(crate) fn views(&self, end: u64) -> (u64, u64) {
        let from = self.fine_start();
        let to = from + (self.model.block_positions() << FINE_BITS);
        let (first, last) = self.views_between(from, to);
        (first, last.min(end))
    }

    /// Returns bounds on the views of keys with this fraction; they may be too wide.
    pub(crate) fn fraction_views(&self, fraction: u64, end: u64, bits: usize) -> (u64, u64) {
        let fractions = self.fractions(bits);
        if fraction < fractions {
            let fine = self.model.block_positions() << FINE_BITS;
            let from = self.fine_start() + (fraction * fine).div_ceil(fractions);
            let to = self.fine_start() + ((fraction + 1) * fine).div_ceil(fractions);
            let (low, high) = self.views_between(from, to.max(from + 1));
            return (if fraction == 0 && self.block == 0 { 0 } else { low }, high);
        }
        let (low, high) = self.tail(end);
        let within = (fraction - fractions) << OFFSET_BITS;
        // Keys after the group's prefix have the last fraction, which may be beyond all offsets.
        let first = within.div_ceil(1 << (bits - TAIL_BITS)).min((1 << OFFSET_BITS) - 1);
        let after = (within + (1 << OFFSET_BITS)).div_ceil(1 << (bits - TAIL_BITS));
        let end = if after >= 1 << OFFSET_BITS {
            u64::MAX
        } else {
            Spacing::SquareRoot.greatest(after - 1, low, high)
        };
        (Spacing::SquareRoot.least(first, low, high), end)
    }
}
