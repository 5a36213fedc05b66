//! The fractions of keys in a block of gap or coded cells.
//! ```text
//! start        [c0]        [c1]   [c2]                end
//!   <-- gap 0 -->  <- gap 1 ->  <2>  <----- gap 3 ---->    equal shares of the fraction
//! fraction = (gap + offset in the gap) / number of gaps
//! ```
//! Invariant: fractions are monotone in keys.

use crate::fingerprint::gap::{Fall, first_view, last_view, number};
use crate::grf::base::between::{OFFSET_BITS, Spacing};

const LAST_OFFSET: u64 = (1 << OFFSET_BITS) - 1;

/// The range of a block's numbers, both ends included.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) spacing: Spacing,
}

impl Extent {
    /// Returns the fraction, of `bits` bits, of a number in a block of `count` keys.
    #[inline(always)]
    pub(crate) fn fraction(&self, fall: &Fall, number: u64, count: usize, bits: usize) -> u64 {
        let place = match *fall {
            Fall::In { through, .. } => (through as u64) << OFFSET_BITS,
            Fall::Between { before, end, next } => {
                // Only damaged images have numbers beyond the end.
                let high = next.unwrap_or(self.end + 1).max(number + 1);
                ((before as u64) << OFFSET_BITS) + self.spacing.offset(number, end, high)
            }
        };
        // Both fit into 32 bits, whose division is faster.
        u64::from((place << bits >> OFFSET_BITS) as u32 / (count as u32 + 1))
    }

    /// Returns the smallest and the largest view of keys with this fraction. `cells`: the views of
    /// each cell.
    pub(crate) fn views(&self, fraction: u64, cells: &[(u64, u64)], bits: usize) -> (u64, u64) {
        let gaps = (cells.len() as u64 + 1) << OFFSET_BITS;
        // Keys after the group's prefix have the last fraction, which may be beyond all places.
        let first = (fraction * gaps).div_ceil(1 << bits).min(gaps - 1);
        let after = ((fraction + 1) * gaps).div_ceil(1 << bits);
        let low = if first == 0 { 0 } else { first_view(self.least(first, cells)) };
        let high =
            if after >= gaps { u64::MAX } else { last_view(self.greatest(after - 1, cells)) };
        (low, high)
    }

    /// Returns the gap of a place, from the end of one cell to the start of the next, and the
    /// offset in it. (Cells of aligned keys drop last bits. If `start` has some of these, the first
    /// cell begins at or before it, so the first gap is empty.)
    fn gap(&self, place: u64, cells: &[(u64, u64)]) -> (u64, u64, u64) {
        let (gap, offset) = ((place >> OFFSET_BITS) as usize, place & LAST_OFFSET);
        let low = gap.checked_sub(1).map_or(self.start, |before| number(cells[before].1) + 1);
        let high = cells.get(gap).map_or(self.end + 1, |cell| number(cell.0));
        (low, high, offset)
    }

    /// Returns a lower bound of the keys at or after a place.
    fn least(&self, place: u64, cells: &[(u64, u64)]) -> u64 {
        let (low, high, offset) = self.gap(place, cells);
        match ((place >> OFFSET_BITS) as usize).checked_sub(1) {
            Some(before) if offset == 0 => number(cells[before].0), // next to the cell, or in it
            _ if low < high => self.spacing.least(offset, low, high),
            _ => low.min(high),
        }
    }

    /// Returns an upper bound of the keys up to a place.
    fn greatest(&self, place: u64, cells: &[(u64, u64)]) -> u64 {
        let (low, high, offset) = self.gap(place, cells);
        if low < high { self.spacing.greatest(offset, low, high) } else { low.max(high) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grf::base::place::FRACTION_BITS;

    /// Packed entries are truncated, query keys are not.
    #[test]
    fn a_fraction_is_the_prefix_of_one_with_another_bit() {
        let extent = Extent { start: 1000, end: u64::MAX >> 3, spacing: Spacing::FourthRoot };
        for step in 0..5000u64 {
            let count = 1 + (step % 64) as usize;
            let before = (step * 31) as usize % (count + 1);
            let number = 1000 + step * (step << 36);
            let next = (before < count).then_some(number + (1 << (step % 40)));
            let between = Fall::Between { before, end: 1000 + step, next };
            let inside = Fall::In { before, through: before.max(1), end: number + 1 };
            for fall in [between, inside] {
                let of_bits = |bits| extent.fraction(&fall, number, count, bits);
                for bits in 1..FRACTION_BITS {
                    assert_eq!(of_bits(bits + 1) >> 1, of_bits(bits), "{fall:?}, {bits} bits");
                }
            }
        }
    }
}
