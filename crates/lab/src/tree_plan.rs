//! The planned shape of a tree just before a merge into the last level.
//! ```text
//! T = 10, L = 3, Z = 9: 999 flushes
//! level 0   9 runs of   1 flush
//! level 1   9 runs of  10 flushes
//! level 2   1 run  of 900 flushes       about Z / (Z + 1) of the keys
//! ```
//! Invariant: the shape follows from the plan alone, without a store.

use std::ops::Range;

use trommel::Policy;
use trommel::options::{FilterTuning, LevelRule};
use trommel_guards::ElasticOptions;

use crate::error::{LabError, Result};

/// The shape of a tree, and its contents and settings.
#[derive(Clone, Debug)]
pub struct TreePlan {
    /// T, the size ratio.
    pub size_ratio: u32,
    /// The merge policy. (Drawings of trees in this crate show the default.)
    pub policy: Policy,
    /// L, the number of levels, at least 1.
    pub levels: u32,
    /// Z, how full the last level is, 1 to T - 1.
    pub fill: u32,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Memory of the guard, in bits per key.
    pub bits_per_key: f64,
    /// Whether runs share that memory as Monkey divides it, where the guard can.
    pub monkey: bool,
    /// How many bits of a key's fingerprint are of a hash, which serves point queries only.
    pub point_bits: u8,
    /// Settings of the tables' filters besides their memory.
    pub filter: FilterTuning,
    /// Options of the guard `elastic`.
    pub elastic: ElasticOptions,
    /// Capacity of the block cache; None: more than the data takes.
    pub block_cache_bytes: Option<usize>,
    /// Whether tables bypass the operating system's cache, however they are read and written.
    pub direct: bool,
    /// Size at which a run continues in another table; None: the store's default.
    pub table_bytes: Option<u64>,
    /// The parts of a global filter.
    pub parts: PartsPlan,
    /// Seed of the order in which keys are written.
    pub seed: u64,
    /// Whether flushes and merges wait for syncs.
    pub synced: bool,
}

/// The parts of a global filter, one for each partition of the last level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PartsPlan {
    /// Bytes of a partition; None: the store's default.
    pub partition_bytes: Option<u64>,
    /// The filter's memory after loading, for which the store is reopened. None: it is not limited.
    pub filter_memory: Option<FilterMemory>,
}

/// Memory of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FilterMemory {
    /// This many bytes.
    Bytes(u64),
    /// A share of what it takes without a limit.
    Share(f64),
}

impl FilterMemory {
    /// Returns the bytes, at least one. `whole`: what the filter takes without a limit.
    pub(crate) fn bytes(self, whole: u64) -> u64 {
        match self {
            FilterMemory::Bytes(bytes) => bytes.max(1),
            FilterMemory::Share(share) => ((whole as f64 * share) as u64).max(1),
        }
    }
}

const LEVELS_MAX: u32 = 12;

impl TreePlan {
    /// Checks the plan. An error names the option that makes no sense.
    pub fn check(&self, key_count: usize) -> Result<()> {
        let wrong = |problem: String| Err(LabError::Plan(problem));
        if !(2..=255).contains(&self.size_ratio) {
            return wrong(format!("--size-ratio {}: must be 2 to 255", self.size_ratio));
        }
        if !(1..=LEVELS_MAX).contains(&self.levels) {
            return wrong(format!("--levels {}: must be 1 to {LEVELS_MAX}", self.levels));
        }
        let most = self.policy.rule(self.size_ratio, self.levels as usize - 1).ratio - 1;
        if !(1..=most).contains(&u64::from(self.fill)) {
            return wrong(format!(
                "--fill {}: must be 1 to {most}, the size ratio less one",
                self.fill
            ));
        }
        match self.flush_count() {
            Some(flushes) if flushes <= key_count as u64 => Ok(()),
            Some(flushes) => wrong(format!("{key_count} keys are too few for {flushes} flushes")),
            None => wrong("so many levels of that size ratio need too many flushes".into()),
        }
    }

    /// Returns how many flushes make the shape. None: the number overflows.
    pub fn flush_count(&self) -> Option<u64> {
        let ratios = (0..self.levels - 1).map(|level| self.rule(level).ratio);
        let upper = ratios.into_iter().try_fold(1u64, u64::checked_mul)?;
        Some(upper.checked_mul(u64::from(self.fill) + 1)? - 1)
    }

    /// Returns how many of `key_count` keys, in flushes of equal size, are in the last level.
    /// Requires: the plan was checked.
    pub(crate) fn base_count(&self, key_count: usize) -> usize {
        let (base, all) = (self.base_flushes(), self.flush_count().unwrap_or(u64::MAX));
        (u128::from(base) * key_count as u128 / u128::from(all)) as usize
    }

    /// Returns how many flushes form the last level. Requires: the plan was checked.
    pub(crate) fn base_flushes(&self) -> u64 {
        let ratios = (0..self.levels - 1).map(|level| self.rule(level).ratio);
        u64::from(self.fill) * ratios.product::<u64>()
    }

    /// Returns how many runs the shape has.
    pub fn run_count(&self) -> u64 {
        let inner = (0..self.levels - 1).map(|level| {
            let rule = self.rule(level);
            (rule.ratio - 1).div_ceil(rule.run_units)
        });
        // Each unit is a run of the last level, until there are too many and they merge.
        let last = (u64::from(self.fill) - 1) % self.rule(self.levels - 1).last_runs + 1;
        inner.sum::<u64>() + last
    }

    /// Returns the flushes of each run, oldest run first. Requires: the plan was checked, and its
    /// policy is lazy leveling.
    pub fn run_flushes(&self) -> Vec<Range<u64>> {
        let (ratio, last) = (u64::from(self.size_ratio), self.levels - 1);
        let levels = std::iter::once((last, 1, u64::from(self.fill)))
            .chain((0..last).rev().map(|level| (level, ratio - 1, 1)));
        let sizes = levels.flat_map(|(level, runs, units)| (0..runs).map(move |_| (level, units)));
        let sizes = sizes.map(|(level, units)| units * ratio.pow(level));
        let begin_and_end = |begin: &mut u64, size: u64| {
            let run = *begin..*begin + size;
            *begin = run.end;
            Some(run)
        };
        sizes.scan(0, begin_and_end).collect()
    }

    fn rule(&self, level: u32) -> LevelRule {
        self.policy.rule(self.size_ratio, level as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(size_ratio: u32, levels: u32, fill: u32) -> TreePlan {
        TreePlan {
            size_ratio,
            policy: Policy::default(),
            levels,
            fill,
            value_bytes: 100,
            bits_per_key: 12.0,
            monkey: false,
            point_bits: 0,
            filter: FilterTuning::default(),
            elastic: ElasticOptions::default(),
            block_cache_bytes: None,
            direct: false,
            table_bytes: None,
            parts: PartsPlan::default(),
            seed: 1,
            synced: false,
        }
    }

    #[test]
    fn the_shape_of_the_issue_has_999_flushes_and_19_runs() {
        assert_eq!((plan(10, 3, 9).flush_count(), plan(10, 3, 9).run_count()), (Some(999), 19));
        assert_eq!((plan(10, 1, 9).flush_count(), plan(10, 1, 9).run_count()), (Some(9), 1));
        assert_eq!(
            (plan(10, 3, 1).flush_count(), plan(4, 2, 3).flush_count()),
            (Some(199), Some(15))
        );
    }

    #[test]
    fn flushes_of_runs_follow_each_other() {
        let runs = plan(4, 3, 2).run_flushes();
        assert_eq!(runs, [0..32, 32..36, 36..40, 40..44, 44..45, 45..46, 46..47]);
        for plan in [plan(10, 3, 9), plan(11, 3, 10), plan(2, 4, 1), plan(5, 1, 4)] {
            let runs = plan.run_flushes();
            assert_eq!(runs.len() as u64, plan.run_count());
            assert_eq!(runs.last().map(|run| run.end), plan.flush_count());
            assert!(runs.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }

    #[test]
    fn every_policy_has_a_tree_of_that_shape() {
        let numbers = |name: &str| {
            let policy = Policy::named(name).expect("a preset");
            let plan = TreePlan { policy, ..plan(10, 3, 9) };
            (plan.flush_count(), plan.run_count())
        };
        assert_eq!(numbers("leveling"), (Some(999), 3));
        assert_eq!(numbers("tiering"), (Some(999), 27));
        assert_eq!(numbers("rocksdb"), (Some(399), 5));
        let few = Policy::leveling().last_runs(4);
        assert_eq!(TreePlan { policy: few, ..plan(10, 3, 9) }.run_count(), 3);
    }

    #[test]
    fn plans_that_make_no_sense_are_named() {
        plan(10, 3, 9).check(999).expect("one key per flush");
        for (plan, keys, word) in [
            (plan(1, 3, 1), 10, "--size-ratio"),
            (plan(10, 0, 9), 10, "--levels"),
            (plan(10, 3, 10), 10_000, "--fill"),
            (plan(10, 3, 0), 10_000, "--fill"),
            (plan(10, 3, 9), 998, "too few"),
            (plan(255, 12, 9), 10_000, "too many flushes"),
        ] {
            let message = plan.check(keys).expect_err(word).to_string();
            assert!(message.contains(word), "{message}");
        }
    }
}
