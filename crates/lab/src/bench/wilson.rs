//! Confidence intervals of counted shares.
//! ```text
//! 0 |--[==x====]-----------------------| 1      x: counted, [ ]: the true share, 95 times of 100
//! ```
//! Invariant: the interval lies in [0, 1]. It has a width even if nothing, or everything, was
//! counted.

/// A normal distribution has 95 % within this many standard deviations on both sides.
const DEVIATIONS: f64 = 1.959_964;

/// Returns Wilson's 95 % interval of a share; None if there were no trials. Requires: no more hits
/// than trials.
pub(crate) fn interval(hits: u64, trials: u64) -> Option<[f64; 2]> {
    assert!(hits <= trials, "{hits} hits of {trials}");
    if trials == 0 {
        return None;
    }
    let (count, share) = (trials as f64, hits as f64 / trials as f64);
    let square = DEVIATIONS * DEVIATIONS / count;
    let middle = (share + square / 2.0) / (1.0 + square);
    let variance = share * (1.0 - share) / count + square / (4.0 * count);
    let reach = DEVIATIONS / (1.0 + square) * variance.sqrt();
    Some([(middle - reach).max(0.0), (middle + reach).min(1.0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_interval(hits: u64, trials: u64, expected: [f64; 2]) {
        let [low, high] = interval(hits, trials).expect("trials");
        let near = |a: f64, b: f64| (a - b).abs() < 5e-5;
        assert!(near(low, expected[0]) && near(high, expected[1]), "[{low}, {high}]");
    }

    #[test]
    fn intervals_are_those_of_the_tables() {
        // With no hit the upper end is z² / (n + z²); the ends of hits and misses mirror each
        // other.
        assert_interval(0, 10, [0.0, 0.2775]);
        assert_interval(10, 10, [0.7225, 1.0]);
        assert_interval(5, 10, [0.2366, 0.7634]);
        assert_interval(1, 100, [0.0018, 0.0545]);
        assert_eq!(interval(0, 0), None);
    }
}
