//! Where between two neighbours a number lies, finer near either of them.
//! ```text
//! low                              middle                              high
//! |.:.:.: : : :  :   :    :     :    |    :     :    :   :  : : : :.:.:.|
//! 0                                32767 32768                      65535
//! offsets: a root of the distance to the nearer neighbour
//! ```
//! Keys that are asked for and keys that are flushed crowd near the keys of the base, so near ones
//! are told apart better. Invariant: offsets are monotone in numbers.

use crate::base::real::sqrt;

/// Bits of an offset.
pub(crate) const OFFSET_BITS: u32 = 16;
/// Half of the offsets.
const HALF: u64 = 1 << (OFFSET_BITS - 1);
const LAST: u64 = 2 * HALF - 1;

/// How much finer offsets are near the neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Root {
    /// The square root of the distance: where neighbours tell little of what is asked.
    #[default]
    Square,
    /// The fourth root: where keys crowd as text does.
    Fourth,
}

impl Root {
    /// The offset of `number` from `low` (included) to `high` (excluded). Requires: it lies between
    /// them.
    #[inline(always)]
    pub(crate) fn offset(self, number: u64, low: u64, high: u64) -> u64 {
        debug_assert!(low <= number && number < high, "{low} <= {number} < {high}");
        let (above, below) = (number - low, high - 1 - number);
        if above <= below {
            self.near(above, high - low)
        } else {
            LAST - self.near(below, high - low)
        }
    }

    /// The offset of a distance of less than half the width.
    #[inline(always)]
    fn near(self, distance: u64, width: u64) -> u64 {
        // Each step is monotone in the distance, rounded or not.
        let root = sqrt(2.0 * distance as f64 / width as f64);
        let root = if self == Root::Fourth { sqrt(root) } else { root };
        ((root * HALF as f64) as u64).min(HALF - 1)
    }

    /// No number with an offset of at least `offset` is below this.
    pub(crate) fn least(self, offset: u64, low: u64, high: u64) -> u64 {
        let width = high - low;
        if offset < HALF {
            return low + (self.reach(offset, width) * (1.0 - SLACK)) as u64;
        }
        let below = (self.reach(LAST - offset + 1, width) * (1.0 + SLACK)) as u64;
        high - 1 - below.saturating_add(1).min(width - 1)
    }

    /// No number with an offset of at most `offset` is above this.
    pub(crate) fn greatest(self, offset: u64, low: u64, high: u64) -> u64 {
        high - 1 - (self.least(LAST - offset, low, high) - low)
    }

    /// The distance at which an offset of less than half begins.
    fn reach(self, offset: u64, width: u64) -> f64 {
        let root = offset as f64 / HALF as f64;
        let square = root * root;
        width as f64 / 2.0 * if self == Root::Fourth { square * square } else { square }
    }
}

/// More than rounding makes of a distance.
const SLACK: f64 = 1.0 / (1u64 << 40) as f64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_monotone_and_have_bounds() {
        for root in [Root::Square, Root::Fourth] {
            offsets_of(root);
        }
    }

    fn offsets_of(root: Root) {
        for width in [1u64, 2, 3, 10, 4095, 4096, 5000, 1 << 20, (1 << 62) + 1, u64::MAX >> 1] {
            for low in [0, 77, 1 << 62] {
                let high = low + width;
                let steps = (0..3000u64).map(|i| (u128::from(i) * u128::from(width) / 3000) as u64);
                let near = (0..60).flat_map(|bit| [1 << bit, width.saturating_sub(1 << bit)]);
                let mut numbers: Vec<u64> =
                    steps.chain(near).filter(|&d| d < width).map(|d| low + d).collect();
                numbers.sort_unstable();
                let mut last = 0;
                for number in numbers {
                    let offset = root.offset(number, low, high);
                    assert!(offset >= last && offset <= LAST, "{number} in {low}..{high}");
                    last = offset;
                    let (least, greatest) =
                        (root.least(offset, low, high), root.greatest(offset, low, high));
                    assert!(low <= least && greatest < high, "{number} in {low}..{high}");
                    assert!(least <= number && number <= greatest, "{number} in {low}..{high}");
                }
            }
        }
    }
}
