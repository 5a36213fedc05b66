//! Monkey: divides one budget of filter memory among the runs of a tree so that the sum of their
//! false positive rates is minimal.
//! ```text
//! entries of runs   10   100   1000  10000
//! rate of each     .01%   .1%    1%    10%  100%  in proportion to the entries, at most 1:
//!                                                 a run at 1 gets no filter; the others share
//! ```
//! A get of an absent key costs the sum of the rates in needless reads. One more bit per key lowers
//! a run's rate by a fixed factor, and costs as many bits as the run has entries. So the optimal
//! rates are proportional to the entries. (Monkey: Dayan, Athanassoulis and Idreos, SIGMOD 2017.)
//!
//! Invariant: the bits of all runs together are at most the budget, and equal to it where every bit
//! lowers a rate. No run gets fewer than zero bits.

use alloc::vec::Vec;

use super::real::{exp, ln};

/// How the false positive rate of a filter falls with its bits per key. Beyond `floor` each bit
/// multiplies the rate by the same factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLaw {
    /// The rate is e^-(slope · (bits per key - floor)), and at most 1.
    slope: f64,
    /// Bits per key that do not lower the rate yet.
    floor: f64,
}

impl RateLaw {
    /// A Bloom filter with the optimal number of probes: 0.6185 per bit.
    pub const BLOOM: RateLaw = RateLaw::of_slope(core::f64::consts::LN_2 * core::f64::consts::LN_2);

    /// A filter that compares fingerprints. Each fingerprint bit takes `bits_per_bit` bits of
    /// memory.
    pub const fn of_fingerprints(bits_per_bit: f64) -> Self {
        RateLaw::of_slope(core::f64::consts::LN_2 / bits_per_bit)
    }

    /// A filter whose rate is e^-(slope · bits per key).
    pub const fn of_slope(slope: f64) -> Self {
        RateLaw { slope, floor: 0.0 }
    }

    /// The same law shifted by `floor` bits per key, which do not lower the rate. Range filters
    /// spend them on the order of keys.
    #[must_use]
    pub const fn from(self, floor: f64) -> Self {
        RateLaw { floor, ..self }
    }

    /// Returns the rate at `bits_per_key`.
    pub fn at(self, bits_per_key: f64) -> f64 {
        exp(-self.slope * (bits_per_key - self.floor).max(0.0))
    }
}

/// A division of a budget among runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    law: RateLaw,
    /// The logarithm of the entries at which a run's rate would be 1. Rates are proportional to
    /// entries.
    log_largest: f64,
    /// Entries of the largest run with a filter.
    largest: u64,
}

impl Split {
    /// Divides `budget_bits` among runs; `runs` has the entries of each. The result is the exact
    /// optimum among divisions that treat runs of equal size alike. None: no run has entries.
    pub fn of(law: RateLaw, runs: &[u64], budget_bits: f64) -> Option<Self> {
        let mut sizes: Vec<u64> = runs.iter().copied().filter(|&entries| entries > 0).collect();
        sizes.sort_unstable();
        // A run without a filter has rate 1 whatever its size, so the runs without filters are the
        // largest. How many have filters determines the bits of each: take the number with the
        // lowest sum.
        let (mut entries, mut logs) = (0.0, 0.0);
        let none = Split { law, log_largest: f64::NEG_INFINITY, largest: 0 };
        let mut best = (none, sizes.len() as f64);
        for (nth, &size) in sizes.iter().enumerate() {
            let log = ln(size as f64);
            entries += size as f64;
            logs += size as f64 * log;
            let telling = budget_bits.max(0.0) - law.floor * entries;
            let log_largest = (law.slope * telling + logs) / entries;
            if log > log_largest {
                break;
            }
            let rates = entries * exp(-log_largest) + (sizes.len() - nth - 1) as f64;
            // Runs of equal size all get filters, or none does.
            let has_equals = sizes.get(nth + 1) == Some(&size);
            if !has_equals && rates <= best.1 {
                best = (Split { law, log_largest, largest: size }, rates);
            }
        }
        (!sizes.is_empty()).then(|| best.0.open_above(&sizes))
    }

    /// If all runs have filters, a run larger than all of them gets bits by the same law.
    fn open_above(self, sizes: &[u64]) -> Self {
        let is_all = sizes.last() == Some(&self.largest);
        Split { largest: if is_all { u64::MAX } else { self.largest }, ..self }
    }

    /// Returns the bits per key of a run with `entries` entries. The run need not be among those
    /// that the budget was divided for.
    pub fn bits_per_key(&self, entries: u64) -> f64 {
        let log = ln(entries.max(1) as f64);
        let telling = (self.log_largest - log) / self.law.slope;
        if entries > self.largest || telling <= 0.0 { 0.0 } else { self.law.floor + telling }
    }

    /// Returns the false positive rate of a run with `entries` entries.
    pub fn rate(&self, entries: u64) -> f64 {
        self.law.at(self.bits_per_key(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(runs: &[u64], bits_per_key: f64) -> Split {
        let entries: u64 = runs.iter().sum();
        Split::of(RateLaw::BLOOM, runs, bits_per_key * entries as f64).expect("entries")
    }

    fn bits(split: &Split, runs: &[u64]) -> f64 {
        runs.iter().map(|&run| run as f64 * split.bits_per_key(run)).sum()
    }

    fn sum_of_rates(split: &Split, runs: &[u64]) -> f64 {
        runs.iter().map(|&run| split.rate(run)).sum()
    }

    #[test]
    fn the_budget_is_spent_whole() {
        for runs in [&[1000][..], &[7, 7, 7], &[1, 10, 100, 1000], &[5, 1_000_000], &[3, 0, 9]] {
            for bits_per_key in [0.0, 0.1, 1.0, 5.0, 16.0] {
                let split = split(runs, bits_per_key);
                let budget = bits_per_key * runs.iter().sum::<u64>() as f64;
                let spent = bits(&split, runs);
                assert!((spent - budget).abs() < 1e-6 * budget.max(1.0), "{spent} of {budget}");
            }
        }
        assert_eq!(Split::of(RateLaw::BLOOM, &[], 100.0), None);
        assert_eq!(Split::of(RateLaw::BLOOM, &[0, 0], 100.0), None);
    }

    /// Tries all ways to divide the budget among three runs in steps of a twentieth bit.
    fn least_by_trying(rate: RateLaw, runs: [u64; 3], bits_per_key: f64) -> f64 {
        let budget = bits_per_key * runs.iter().sum::<u64>() as f64;
        let [a, b, c] = runs.map(|run| run as f64);
        let step = 0.05;
        let mut least = f64::INFINITY;
        for first in (0..).map(|n| f64::from(n) * step).take_while(|bits| bits * a <= budget) {
            let left = budget - first * a;
            for second in (0..).map(|n| f64::from(n) * step).take_while(|bits| bits * b <= left) {
                let third = (left - second * b) / c;
                least = least.min(rate.at(first) + rate.at(second) + rate.at(third));
            }
        }
        least
    }

    #[test]
    fn no_other_division_is_better() {
        let cases = [
            ([10, 100, 1000], 5.0),
            ([10, 100, 1000], 0.3),
            ([100, 100, 100], 2.0),
            ([1, 50, 60], 1.0),
            ([90, 100, 300], 0.2),
            ([1000, 1100, 2000], 8.0),
        ];
        for (runs, bits_per_key) in cases {
            let ours = sum_of_rates(&split(&runs, bits_per_key), &runs);
            let least = least_by_trying(RateLaw::BLOOM, runs, bits_per_key);
            // The tried divisions lie on a grid, so the best comes near the optimum, but not below
            // it.
            assert!(ours <= least + 1e-9, "{runs:?}: {ours}, but {least} can be had");
            assert!(ours > least * 0.98, "{runs:?}: {ours} is better than can be, {least}");
        }
    }

    #[test]
    fn no_other_division_is_better_where_the_first_bits_tell_nothing() {
        let law = RateLaw::of_fingerprints(1.0).from(3.0);
        let cases = [([10, 100, 1000], 8.0), ([10, 100, 1000], 3.1), ([10, 100, 1000], 1.5)];
        for (runs, bits_per_key) in cases {
            let budget = bits_per_key * runs.iter().sum::<u64>() as f64;
            let split = Split::of(law, &runs, budget).expect("entries");
            assert!(bits(&split, &runs) <= budget * (1.0 + 1e-9), "{runs:?}, {bits_per_key}");
            let (ours, least) =
                (sum_of_rates(&split, &runs), least_by_trying(law, runs, bits_per_key));
            assert!(ours <= least + 1e-9, "{runs:?}: {ours}, but {least} can be had");
            assert!(ours > least * 0.95, "{runs:?}: {ours} is better than can be, {least}");
        }
        let none = Split::of(law, &[100, 100], 10.0).expect("entries");
        assert_eq!((none.bits_per_key(100), none.rate(100)), (0.0, 1.0), "too few for any run");
        let equal = Split::of(law, &[100, 100, 100], 600.0).expect("entries");
        assert_eq!(equal.bits_per_key(100), 0.0, "enough for one of them, which is no other one");
    }

    #[test]
    fn a_run_that_is_too_large_gets_nothing() {
        let runs = [1, 1_000_000];
        let split = Split::of(RateLaw::BLOOM, &runs, 5.0).expect("entries");
        assert_eq!(split.bits_per_key(1_000_000), 0.0);
        assert!((split.bits_per_key(1) - 5.0).abs() < 1e-9);
    }

    /// The paper's closed form, with filters in all levels and one run in the last level. With size
    /// ratio T, a level's rate is T times that of a run in the level above.
    #[test]
    fn rates_are_in_proportion_to_runs() {
        let (ratio, levels, bits_per_key) = (10u64, 4u32, 8.0);
        let level = |level: u32| ratio.pow(level);
        let inner = (0..levels - 1).flat_map(|l| vec![level(l); ratio as usize - 1]);
        let runs: Vec<u64> = inner.chain([level(levels - 1) * 9]).collect();
        let split = split(&runs, bits_per_key);
        for l in 0..levels - 2 {
            let step = split.rate(level(l + 1)) / split.rate(level(l));
            assert!((step - ratio as f64).abs() < 1e-9, "{step}");
        }
        let uniform = runs.len() as f64 * RateLaw::BLOOM.at(bits_per_key);
        let ours = sum_of_rates(&split, &runs);
        assert!(ours < uniform / 10.0, "{ours}, uniform {uniform}");
    }
}
