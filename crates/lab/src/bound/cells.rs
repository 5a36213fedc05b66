//! Cells around numbers, as fine as the gaps between the numbers require.
//! ```text
//! numbers     0        8 10               26
//! gaps            8     2       16              e: 3, 1, 4, the exponents of two below them
//! cells, s=0  0        [8,9][10,11]       [26 .. 41]
//! ```
//! A cell is 2^(m - s) wide, where m is the lesser exponent of the gaps on both sides of its
//! number. It begins at a multiple of its width behind the previous number. Stored are the exponent
//! e of that gap, and the e - (m - s) bits that count the multiples.
//! Invariant: a number is in its cell.

/// Numbers and the exponents of their gaps, which define their cells.
pub(crate) struct Cells {
    numbers: Vec<u128>,
    /// The exponent of the gap before each number but the first. A gap of zero counts as one.
    exponents: Vec<u8>,
}

/// The number of exponents of 128-bit numbers.
const EXPONENTS: usize = 128;

impl Cells {
    /// Requires: numbers ascend; equal ones are allowed.
    pub(crate) fn new(numbers: Vec<u128>) -> Self {
        assert!(numbers.is_sorted(), "numbers are in the order of their keys");
        let gaps = numbers.windows(2).map(|pair| pair[1] - pair[0]);
        let exponents = gaps.map(|gap| gap.max(1).ilog2() as u8).collect();
        Cells { numbers, exponents }
    }

    /// Counts the neighbours that are equal.
    pub(crate) fn ties(&self) -> u64 {
        self.numbers.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64
    }

    /// Returns the entropy of an exponent, in bits.
    pub(crate) fn exponent_bits(&self) -> f64 {
        let mut counts = [0u64; EXPONENTS];
        self.exponents.iter().for_each(|exponent| counts[usize::from(*exponent)] += 1);
        let all = self.exponents.len() as f64;
        counts.iter().map(|count| surprise(*count, all, all)).sum()
    }

    /// Returns the entropy of an exponent given the previous one, in bits.
    pub(crate) fn exponent_bits_in_context(&self) -> f64 {
        let mut counts = vec![[0u64; EXPONENTS]; EXPONENTS];
        for pair in self.exponents.windows(2) {
            counts[usize::from(pair[0])][usize::from(pair[1])] += 1;
        }
        let all = self.exponents.len().saturating_sub(1) as f64;
        let of_context = |counts: &[u64; EXPONENTS]| -> f64 {
            let context = counts.iter().sum::<u64>() as f64;
            counts.iter().map(|count| surprise(*count, context, all)).sum()
        };
        counts.iter().map(of_context).sum()
    }

    /// Returns the bits of a number that is known exactly.
    pub(crate) fn exact_bits(&self) -> f64 {
        let stored = self.exponents.iter().map(|exponent| u64::from(*exponent)).sum();
        self.exponent_bits_in_context() + self.mean(stored)
    }

    /// Returns the bits of a number that is known to its cell.
    pub(crate) fn bits(&self, s: u32) -> f64 {
        let stored = |(place, exponent): (usize, &u8)| {
            u64::from(u32::from(*exponent) - self.width_bits(place + 1, s))
        };
        let stored = self.exponents.iter().enumerate().map(stored).sum();
        self.exponent_bits_in_context() + self.mean(stored)
    }

    /// Whether a cell meets `first..=last`. False: no number lies there.
    pub(crate) fn may_meet(&self, first: u128, last: u128, s: u32) -> bool {
        let place = self.numbers.partition_point(|number| *number < first);
        let reaches = |before: usize| self.cell(before, s).1 >= first;
        let begins = |at: usize| at < self.numbers.len() && self.cell(at, s).0 <= last;
        place.checked_sub(1).is_some_and(reaches) || begins(place)
    }

    /// Returns the first and the last number of a cell. The first of all numbers is known exactly.
    fn cell(&self, place: usize, s: u32) -> (u128, u128) {
        let number = self.numbers[place];
        let Some(before) = place.checked_sub(1) else { return (number, number) };
        let width_bits = self.width_bits(place, s);
        let gap = number - self.numbers[before];
        let start = self.numbers[before] + (gap >> width_bits << width_bits);
        (start, start.saturating_add((1 << width_bits) - 1))
    }

    /// Returns the binary logarithm of a cell's width.
    /// Requires: `place` is not the first.
    fn width_bits(&self, place: usize, s: u32) -> u32 {
        let before = self.exponents[place - 1];
        let behind = self.exponents.get(place).unwrap_or(&before);
        u32::from(before.min(*behind)).saturating_sub(s)
    }

    fn mean(&self, sum: u64) -> f64 {
        sum as f64 / self.exponents.len().max(1) as f64
    }
}

/// Returns the bits that encode `count` of `context` symbols, divided by `all`.
fn surprise(count: u64, context: f64, all: f64) -> f64 {
    if count == 0 { 0.0 } else { count as f64 / all * (context / count as f64).log2() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_cells_are_as_computed_by_hand() {
        let cells = Cells::new(vec![0, 8, 10, 26]);
        assert_eq!(cells.exponents, [3, 1, 4]);
        let of = |s| [0, 1, 2, 3].map(|place| cells.cell(place, s));
        assert_eq!(of(0), [(0, 0), (8, 9), (10, 11), (26, 41)]);
        assert_eq!(of(1), [(0, 0), (8, 8), (10, 10), (26, 33)]);
        // Each of the three exponents occurs once, and the previous one determines it.
        assert!((cells.exponent_bits() - 3f64.log2()).abs() < 1e-12);
        assert_eq!(cells.exponent_bits_in_context(), 0.0);
        assert_eq!(cells.exact_bits(), 8.0 / 3.0);
        assert_eq!([0, 1, 9].map(|s| cells.bits(s)), [2.0 / 3.0, 5.0 / 3.0, 8.0 / 3.0]);
        let maybe: Vec<u128> = (0..45).filter(|at| cells.may_meet(*at, *at, 0)).collect();
        let expected: Vec<u128> = [0].into_iter().chain(8..12).chain(26..42).collect();
        assert_eq!(maybe, expected);
        assert!(
            cells.may_meet(12, 26, 0) && !cells.may_meet(12, 25, 0) && !cells.may_meet(1, 7, 0)
        );
    }

    #[test]
    fn entropy_is_of_what_follows_what() {
        // Exponents 0 0 1 0 1: after 0 come one 0 and two 1s, after 1 comes one 0.
        let cells = Cells::new(vec![0, 1, 2, 4, 5, 7]);
        assert_eq!(cells.exponents, [0, 0, 1, 0, 1]);
        let expected = (3f64.log2() + 2.0 * 1.5f64.log2()) / 4.0;
        assert!((cells.exponent_bits_in_context() - expected).abs() < 1e-12);
    }

    #[test]
    fn a_cell_begins_at_a_multiple_of_its_width_and_ends_with_all_numbers() {
        let cells = Cells::new(vec![0, 13, 13, u128::MAX]);
        assert_eq!(cells.exponents, [3, 0, 127]);
        assert_eq!((cells.ties(), cells.cell(1, 0), cells.cell(2, 0)), (1, (13, 13), (13, 13)));
        let (first, last) = cells.cell(3, 3);
        assert_eq!((last, first), (u128::MAX, u128::MAX - ((1 << 124) - 1) + 13));
        assert_eq!(Cells::new(vec![0, 13]).cell(1, 1), (12, 15));
    }

    #[test]
    #[should_panic(expected = "in the order of their keys")]
    fn order_is_asserted() {
        Cells::new(vec![2, 1]);
    }
}
