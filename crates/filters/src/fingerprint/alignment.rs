//! Detects keys that are both ends of ranges between round numbers, such as networks.
//! ```text
//! 10.1.0.0 .. 10.1.3.255 | 10.1.4.0 .. 10.1.4.255 | 10.1.5.0 ..
//! ^   ^ adjacent, and the upper one is round: it ends in ten zeros
//! ```
//! Exact cells of such keys spend bits on redundant information: numbers without their last bits
//! would still tell all neighbours apart. Newer keys fall between such pairs, and are placed by
//! round numbers, too.
//!
//! Invariant: alignment affects how often keys are confused, never correctness.

/// At least one in this many keys must be adjacent to the previous key.
const TOUCHING_LEAST: usize = 8;
/// Trailing zeros are counted up to this number, so that a few very round numbers do not dominate.
const ZEROS_MAX: u32 = 8;
/// The minimum average of trailing zeros in upper keys; that of random numbers is one.
const ZEROS_LEAST: usize = 3;

/// Statistics of neighbouring keys.
#[derive(Default)]
pub(super) struct Alignment {
    pairs: usize,
    touching: usize,
    zeros: usize,
}

impl Alignment {
    /// Adds neighbours. `numbers` are ascending multiples of 2^`unit`.
    #[inline(always)]
    pub(super) fn add(&mut self, numbers: &[u64], unit: u32) {
        for pair in numbers.windows(2) {
            if pair[1].wrapping_sub(pair[0]) == 1 << unit {
                self.touching += 1;
                self.zeros += (pair[1] >> unit).trailing_zeros().min(ZEROS_MAX) as usize;
            }
        }
        self.pairs += numbers.len().saturating_sub(1);
    }

    /// Whether the keys are ends of such ranges.
    pub(super) fn is_found(&self) -> bool {
        self.touching > 0
            && self.touching * TOUCHING_LEAST >= self.pairs
            && self.zeros >= self.touching * ZEROS_LEAST
    }
}

/// Returns how many last bits multiples of 2^`unit` can drop and still be told apart. Requires:
/// ascending numbers.
#[inline(always)]
pub(super) fn droppable(numbers: &[u64], unit: u32) -> u32 {
    let differ_in = |pair: &[u64]| ((pair[0] ^ pair[1]) >> unit).checked_ilog2().unwrap_or(0);
    numbers.windows(2).map(differ_in).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn mixed(number: u64) -> u64 {
        let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 27
    }

    /// Both ends of adjacent ranges between multiples of `round`, up to 60 times as long.
    fn ends(round: u64, unit: u32) -> Vec<u64> {
        let mut begin = 1 << 30;
        let mut numbers = Vec::new();
        for place in 0..300 {
            let next = begin + round * (1 + mixed(place) % 60);
            numbers.extend([begin << unit, (next - 1) << unit]);
            begin = next;
        }
        numbers
    }

    fn are_aligned(numbers: &[u64], unit: u32) -> bool {
        let mut alignment = Alignment::default();
        alignment.add(numbers, unit);
        alignment.is_found()
    }

    #[test]
    fn ends_of_networks_are_aligned_and_of_other_ranges_not() {
        for unit in [0, 5, 31] {
            assert!(are_aligned(&ends(256, unit), unit));
            assert!(are_aligned(&ends(16, unit), unit));
            assert!(!are_aligned(&ends(1, unit), unit), "they touch anywhere");
            assert!(!are_aligned(&ends(256, unit + 1), unit), "none touches another");
        }
    }

    /// The start and the end of a range of 256 numbers differ in their last eight bits. Without
    /// seven of these they still differ.
    #[test]
    fn numbers_do_without_bits_that_tell_no_neighbours_apart() {
        for unit in [0, 5, 31] {
            assert_eq!(droppable(&ends(256, unit), unit), 7);
            assert_eq!(droppable(&ends(16, unit), unit), 3);
            assert_eq!(droppable(&ends(1 << 20, unit), unit), 19);
        }
        assert_eq!(droppable(&(1000..1500).collect::<Vec<_>>(), 0), 0);
        assert_eq!(droppable(&[5], 0), 0);
        assert_eq!(droppable(&[5, 5], 0), 0);
    }

    #[test]
    fn other_numbers_are_not() {
        let mut random: Vec<u64> = (0..500).map(mixed).collect();
        random.sort_unstable();
        assert!(!are_aligned(&random, 0));
        assert!(!are_aligned(&(1000..1500).collect::<Vec<_>>(), 0), "one behind the other");
        assert!(!are_aligned(&(0..500).map(|place| place << 20).collect::<Vec<_>>(), 0));
        assert!(!are_aligned(&[1 << 20], 0));
    }
}
