//! The median: a noisy machine moves it less than the mean.
//!
//! Invariant: the result is one of the numbers. Of an even count it is the upper of the middle two.

/// Returns the median; sorts `numbers`. Requires: `numbers` is not empty.
pub(crate) fn median(numbers: &mut [f64]) -> f64 {
    assert!(!numbers.is_empty(), "nothing has no median");
    numbers.sort_unstable_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_one_counts() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [1.0, 4.0]), 4.0, "of an even number the greater one");
    }
}
