//! Monkey: one budget of filter memory for a whole tree, divided among its runs so that the sum of
//! false positive rates is least.
//! ```text
//! entries of runs   10   100   1000  10000        a rule, not a filter
//! rate of each     .01%   .1%    1%    10%  100%  in proportion to the entries, until it is 1:
//!                                                 such a run gets no filter; the others share
//! ```
//! A get of an absent key pays for the sum of the rates. A further bit per key lowers a run's rate
//! by a fixed factor, and costs as many bits as the run has entries. At the optimum, rates are
//! therefore in proportion to entries. (Monkey: Dayan, Athanassoulis and Idreos, SIGMOD 2017.)
//!
//! Invariant: the bits that all runs get together are the budget, and no run gets fewer than none.

use crate::base::filter::FilterKind;

/// How the false positive rate of a point filter falls with its bits per key: by the same factor
/// with each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PointRate {
    /// The rate is e^-(slope · bits per key).
    slope: f64,
}

impl PointRate {
    /// A Bloom filter with the best number of probes: 0.6185 per bit.
    pub const BLOOM: PointRate =
        PointRate { slope: std::f64::consts::LN_2 * std::f64::consts::LN_2 };

    /// A filter that compares fingerprints, and takes so many bits of memory for each bit of them.
    pub fn of_fingerprints(bits_per_bit: f64) -> Self {
        PointRate { slope: std::f64::consts::LN_2 / bits_per_bit }
    }

    /// None: a filter of this kind answers for more than points, or its rate does not follow from
    /// its bits.
    pub fn of(kind: FilterKind) -> Option<Self> {
        match kind {
            // Between six and sixteen bits. (Lines are filled unevenly, which costs the more, the
            // more bits there are.)
            FilterKind::BlockedBloom => Some(PointRate { slope: 0.45 }),
            FilterKind::Bloom => Some(Self::BLOOM),
            FilterKind::Ribbon => Some(Self::of_fingerprints(1.047)),
            FilterKind::BinaryFuse => Some(Self::of_fingerprints(1.125)),
            FilterKind::Xor => Some(Self::of_fingerprints(1.23)),
            FilterKind::SurfBase
            | FilterKind::SurfHash
            | FilterKind::SurfReal
            | FilterKind::SurfMixed
            | FilterKind::Snarf
            | FilterKind::Cell
            | FilterKind::Gap
            | FilterKind::Rosetta
            | FilterKind::Rencoder
            | FilterKind::PrefixBloom
            | FilterKind::Arf
            | FilterKind::Elastic => None,
        }
    }

    /// The rate with so many bits per key.
    pub fn at(self, bits_per_key: f64) -> f64 {
        (-self.slope * bits_per_key).exp()
    }
}

/// How a budget is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    rate: PointRate,
    /// The logarithm of how many entries a run has whose filter would be of no bits at all: rates
    /// are in proportion to it.
    log_largest: f64,
}

impl Split {
    /// Divides so many bits among runs with so many entries each: the exact optimum. None: no run
    /// has entries.
    pub fn of(rate: PointRate, runs: &[u64], budget_bits: f64) -> Option<Self> {
        let mut sizes: Vec<f64> =
            runs.iter().filter(|&&entries| entries > 0).map(|&entries| entries as f64).collect();
        sizes.sort_by(f64::total_cmp);
        let logs = |entries: f64| entries * entries.ln();
        let mut entries = *sizes.first()?;
        let mut bits_and_logs = rate.slope * budget_bits.max(0.0) + logs(entries);
        // The rule is water filling. A run takes part as soon as the smaller runs have rates so low
        // that the next bit belongs to it.
        for &size in &sizes[1..] {
            if size.ln() >= bits_and_logs / entries {
                break;
            }
            entries += size;
            bits_and_logs += logs(size);
        }
        Some(Split { rate, log_largest: bits_and_logs / entries })
    }

    /// What a run with so many entries gets. One that the budget was not divided for too: it gets
    /// what a run of its size would.
    pub fn bits_per_key(&self, entries: u64) -> f64 {
        let log = (entries.max(1) as f64).ln();
        ((self.log_largest - log) / self.rate.slope).max(0.0)
    }

    /// The false positive rate of a run with so many entries.
    pub fn rate(&self, entries: u64) -> f64 {
        self.rate.at(self.bits_per_key(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(runs: &[u64], bits_per_key: f64) -> Split {
        let entries: u64 = runs.iter().sum();
        Split::of(PointRate::BLOOM, runs, bits_per_key * entries as f64).expect("entries")
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
        assert_eq!(Split::of(PointRate::BLOOM, &[], 100.0), None);
        assert_eq!(Split::of(PointRate::BLOOM, &[0, 0], 100.0), None);
    }

    /// Every way to divide the budget among three runs in steps of a twentieth bit.
    fn least_by_trying(runs: [u64; 3], bits_per_key: f64) -> f64 {
        let budget = bits_per_key * runs.iter().sum::<u64>() as f64;
        let [a, b, c] = runs.map(|run| run as f64);
        let (rate, step) = (PointRate::BLOOM, 0.05);
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
            let least = least_by_trying(runs, bits_per_key);
            // What is tried lies on a grid: it comes near the optimum, and not below.
            assert!(ours <= least + 1e-9, "{runs:?}: {ours}, but {least} can be had");
            assert!(ours > least * 0.98, "{runs:?}: {ours} is better than can be, {least}");
        }
    }

    #[test]
    fn a_run_that_is_too_large_gets_nothing() {
        let runs = [1, 1_000_000];
        let split = Split::of(PointRate::BLOOM, &runs, 5.0).expect("entries");
        assert_eq!(split.bits_per_key(1_000_000), 0.0);
        assert!((split.bits_per_key(1) - 5.0).abs() < 1e-9);
    }

    /// The paper's closed form, with all levels filtered and one run in the last level. With ratio
    /// T, a level's rate is T times that of a run in the level above.
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
        let uniform = runs.len() as f64 * PointRate::BLOOM.at(bits_per_key);
        let ours = sum_of_rates(&split, &runs);
        assert!(ours < uniform / 10.0, "{ours}, uniform {uniform}");
    }
}
