//! Maps a number between two neighbours to an offset.
//! ```text
//! low                              middle                              high
//! |.:.:.: : : :  :   :    :     :    |    :     :    :   :  : : : :.:.:.|     roots
//! 0                                32767 32768                      65535
//! |              :       :       :       :       :   |   :       :      |     aligned
//!                                                  split: the number with most trailing zeros
//! ```
//! Queried and flushed keys crowd near the keys of the base, so numbers near them need more
//! resolution. Offsets grow with a root of the distance to the nearer neighbour. Networks begin at
//! round numbers, and end just before them. There, offsets are measured from the roundest number
//! above `low`: a few of their bits tell an end from the start after it.
//!
//! Invariant: offsets are monotone in numbers.

use crate::base::real::sqrt;

/// Bits per offset.
pub(crate) const OFFSET_BITS: u32 = 16;
/// Half the number of offsets.
const HALF: u64 = 1 << (OFFSET_BITS - 1);
const LAST: u64 = 2 * HALF - 1;

/// The spacing of offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Spacing {
    /// By the square root of the distance: where neighbours say little about queries.
    #[default]
    SquareRoot,
    /// By the fourth root: where keys crowd, as in text.
    FourthRoot,
    /// By powers of two, on either side of the roundest number above `low`: where ends of ranges
    /// are adjacent to starts.
    Aligned,
}

impl Spacing {
    /// Returns the offset of `number` between `low` (inclusive) and `high` (exclusive). Requires:
    /// it lies between them.
    #[inline(always)]
    pub(crate) fn offset(self, number: u64, low: u64, high: u64) -> u64 {
        debug_assert!(low <= number && number < high, "{low} <= {number} < {high}");
        if self == Spacing::Aligned {
            return Split::new(low, high).offset(number);
        }
        let (above, below) = (number - low, high - 1 - number);
        if above <= below {
            self.near(above, high - low)
        } else {
            LAST - self.near(below, high - low)
        }
    }

    /// Returns the offset of a distance below half the width.
    #[inline(always)]
    fn near(self, distance: u64, width: u64) -> u64 {
        // Each step is monotone in the distance, even with rounding.
        let root = sqrt(2.0 * distance as f64 / width as f64);
        let root = if self == Spacing::FourthRoot { sqrt(root) } else { root };
        ((root * HALF as f64) as u64).min(HALF - 1)
    }

    /// Returns a lower bound of the numbers with an offset of at least `offset`.
    pub(crate) fn least(self, offset: u64, low: u64, high: u64) -> u64 {
        if self == Spacing::Aligned {
            return Split::new(low, high).least(offset);
        }
        let width = high - low;
        if offset < HALF {
            return low + (self.reach(offset, width) * (1.0 - SLACK)) as u64;
        }
        let below = (self.reach(LAST - offset + 1, width) * (1.0 + SLACK)) as u64;
        high - 1 - below.saturating_add(1).min(width - 1)
    }

    /// Returns an upper bound of the numbers with an offset of at most `offset`.
    pub(crate) fn greatest(self, offset: u64, low: u64, high: u64) -> u64 {
        if self == Spacing::Aligned {
            return Split::new(low, high).greatest(offset);
        }
        high - 1 - (self.least(LAST - offset, low, high) - low)
    }

    /// Returns the distance at which an offset begins. Requires: an offset below `HALF`.
    fn reach(self, offset: u64, width: u64) -> f64 {
        let root = offset as f64 / HALF as f64;
        let square = root * root;
        width as f64 / 2.0 * if self == Spacing::FourthRoot { square * square } else { square }
    }
}

/// The numbers from `low` to `high`, split at the roundest one above `low`.
/// ```text
/// low                   split               high
///  |        :       :     |     :       :     |
///     offsets below HALF  |  HALF and more         each half: distances from the split,
///                                                  shifted by whole bits
/// ```
struct Split {
    low: u64,
    split: u64,
    high: u64,
    /// How many bits more distances have than offsets, below and above the split; negative: fewer.
    longer: [i32; 2],
}

impl Split {
    #[inline(always)]
    fn new(low: u64, high: u64) -> Split {
        let last = high - 1;
        let split = match (low ^ last).checked_ilog2() {
            Some(bit) => last >> bit << bit,
            // There is only one number.
            None => low,
        };
        let longer = |width: u64| {
            let bits = u64::BITS - width.saturating_sub(1).leading_zeros();
            bits as i32 - HALF.ilog2() as i32
        };
        Split { low, split, high, longer: [longer(split - low), longer(high - split)] }
    }

    #[inline(always)]
    fn offset(&self, number: u64) -> u64 {
        match number.checked_sub(self.split) {
            Some(above) => HALF + shifted(above, -self.longer[1]),
            None => HALF - 1 - shifted(self.split - 1 - number, -self.longer[0]),
        }
    }

    fn least(&self, offset: u64) -> u64 {
        self.number(offset, [last_of, first_of])
    }

    fn greatest(&self, offset: u64) -> u64 {
        self.number(offset, [first_of, last_of])
    }

    /// Returns the number with an offset. The first function gives its distance from the split if
    /// it lies below, the second one if it lies above.
    fn number(&self, offset: u64, [below, above]: [fn(u64, i32) -> u64; 2]) -> u64 {
        match offset.checked_sub(HALF) {
            Some(offset) => {
                self.split.saturating_add(above(offset, self.longer[1])).min(self.high - 1)
            }
            None => {
                let distance = below(HALF - 1 - offset, self.longer[0]);
                self.split.saturating_sub(1).saturating_sub(distance).max(self.low)
            }
        }
    }
}

/// Shifts `number` left by `bits` bits, or right if `bits` is negative.
#[inline(always)]
fn shifted(number: u64, bits: i32) -> u64 {
    if bits < 0 { number >> -bits } else { number << bits }
}

/// Returns the smallest distance whose offset is at least `offset`.
fn first_of(offset: u64, longer: i32) -> u64 {
    if longer < 0 { offset.div_ceil(1 << -longer) } else { offset << longer }
}

/// Returns the largest distance whose offset is at most `offset`.
fn last_of(offset: u64, longer: i32) -> u64 {
    if longer < 0 { offset >> -longer } else { ((offset + 1) << longer).wrapping_sub(1) }
}

/// More than rounding can change a distance by.
const SLACK: f64 = 1.0 / (1u64 << 40) as f64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_monotone_and_have_bounds() {
        for spacing in [Spacing::SquareRoot, Spacing::FourthRoot, Spacing::Aligned] {
            offsets_of(spacing);
        }
    }

    fn offsets_of(spacing: Spacing) {
        for width in [1u64, 2, 3, 10, 4095, 4096, 5000, 1 << 20, (1 << 62) + 1, u64::MAX >> 1] {
            for low in [0, 77, 1 << 62] {
                let high = low + width;
                let steps = (0..3000u64).map(|i| (u128::from(i) * u128::from(width) / 3000) as u64);
                let near = (0..60).flat_map(|bit| [1 << bit, width.saturating_sub(1 << bit)]);
                let mut numbers: Vec<u64> =
                    steps.chain(near).filter(|&d| d < width).map(|d| low + d).collect();
                let round = (0..63).map(|bit| (high - 1) >> bit << bit);
                let round = round.flat_map(|it| [it, it.wrapping_sub(1)]);
                numbers.extend(round.filter(|it| (low..high).contains(it)));
                numbers.sort_unstable();
                let mut last = 0;
                for number in numbers {
                    let offset = spacing.offset(number, low, high);
                    assert!(offset >= last && offset <= LAST, "{number} in {low}..{high}");
                    last = offset;
                    let (least, greatest) =
                        (spacing.least(offset, low, high), spacing.greatest(offset, low, high));
                    assert!(low <= least && greatest < high, "{number} in {low}..{high}");
                    assert!(least <= number && number <= greatest, "{number} in {low}..{high}");
                }
            }
        }
    }

    /// An end and the start after it differ in the leading bits of their offsets, anywhere in a
    /// wide gap. Offsets by a root would need nearly all bits for that.
    #[test]
    fn few_bits_of_an_aligned_offset_tell_an_end_from_the_begin_behind_it() {
        let (low, high) = ((1 << 40) + 1, (1 << 40) + (1 << 20));
        let told_apart_by = |spacing: Spacing| {
            let bits = |begin: u64| {
                let [end, begin] = [begin - 1, begin].map(|it| spacing.offset(it, low, high));
                u64::from(OFFSET_BITS) - u64::from((end ^ begin).checked_ilog2().unwrap_or(0))
            };
            (1..16u64).map(|place| bits((1 << 40) + (place << 16))).max().expect("some")
        };
        assert_eq!(told_apart_by(Spacing::Aligned), 4);
        assert_eq!(told_apart_by(Spacing::SquareRoot), u64::from(OFFSET_BITS));
    }
}
