//! The bits per key of a new run's filters, where the tree shares one budget as in Monkey.
//! ```text
//! plan: the tree just before the next merge into the last level, when its filters are largest:
//!   level 0      T - 1 runs of   1 flush           planned, whatever runs are there now
//!   level 1      T - 1 runs of   T flushes
//!   last level   1 run, with its present entries, or those that it is being written with
//! rule (filters/src/monkey.rs) -> bits per key of a run with as many entries as the new one has
//! ```
//! The last run takes fewer bits than the average from the start, and leaves the others what they
//! will need. So the tree stays within its budget while it fills, and has spent it when it is full.
//! If only the existing runs shared the budget, a lone last run would take all of it. Nothing would
//! be left for the others until it is rewritten.
//!
//! Invariant: a run gets more than the average only from what the remaining filters have left of
//! the budget.

use trommel_filters::{RateLaw, Split};

use crate::files::placed_run::PlacedRun;
use crate::plan::options::Options;
use crate::plan::policy::Schedule;

/// A run of the tree. Lists of runs have the oldest last.
#[derive(Clone, Copy, Debug)]
struct TreeRun {
    entries: u64,
    flushes: u64,
    filter_bits: f64,
    /// Whether it is an input of the new run.
    is_input: bool,
}

/// Returns the bits per key for the filters of a run with this many entries, which replaces
/// `inputs`. A flush has no inputs. None: use the bits of the options.
pub(crate) fn filter_bits(
    options: &Options,
    runs: &[PlacedRun],
    inputs: &[u64],
    entries: u64,
) -> Option<f64> {
    let rate = options.guard.rate_law().filter(|_| options.monkey)?;
    let runs = runs.iter().map(|placed| {
        let filter_bytes = placed.run.tables().iter().map(|table| table.table.filter_bytes());
        TreeRun {
            entries: placed.run.entry_count(),
            flushes: placed.span().hi().0 - placed.span().lo().0,
            filter_bits: filter_bytes.sum::<usize>() as f64 * 8.0,
            is_input: inputs.contains(&placed.id),
        }
    });
    let runs: Vec<TreeRun> = runs.collect();
    Some(share(rate, (options.bits_per_key, options.schedule()), &runs, entries))
}

/// Returns the bits per key of a new run with this many entries.
fn share(
    rate: RateLaw,
    (bits_per_key, schedule): (f64, Schedule<'_>),
    runs: &[TreeRun],
    entries: u64,
) -> f64 {
    let Some((oldest, inner)) = runs.split_last() else { return bits_per_key };
    // The mean size of a flush in the inner runs, the new one included.
    let flushed = if runs.iter().any(|run| run.is_input) { 0 } else { 1 };
    let flushes = inner.iter().map(|run| run.flushes).sum::<u64>() + flushed;
    let flushed_entries = inner.iter().map(|run| run.entries).sum::<u64>() + flushed * entries;
    if flushes == 0 || flushed_entries == 0 || entries == 0 {
        return bits_per_key;
    }
    let flush_entries = flushed_entries as f64 / flushes as f64;
    let last = if oldest.is_input { entries } else { oldest.entries };
    let full = full_tree(last, flush_entries, schedule);
    let budget = bits_per_key * full.iter().sum::<u64>() as f64;
    let planned = Split::of(rate, &full, budget).map_or(bits_per_key, |s| s.bits_per_key(entries));
    planned.min(left_over(bits_per_key, runs, entries).max(bits_per_key))
}

/// Returns the sizes of the runs in a tree just before a merge into its oldest run.
fn full_tree(last_entries: u64, flush_entries: f64, schedule: Schedule<'_>) -> Vec<u64> {
    let last = schedule.level_holding(last_entries as f64 / flush_entries);
    let unit = |level: usize| flush_entries * schedule.unit_flushes(level);
    let inner = (0..last).flat_map(|level| {
        let (units, runs) = (schedule.ratio(level) - 1, schedule.inner_runs(level));
        let entries = unit(level) * units as f64 / runs as f64;
        vec![entries.round() as u64; runs]
    });
    let newer = vec![unit(last).round() as u64; schedule.last_runs(last) - 1];
    inner.chain(newer).chain([last_entries]).collect()
}

/// Returns what the remaining runs leave of the budget, in bits per key of the new run.
fn left_over(bits_per_key: f64, runs: &[TreeRun], entries: u64) -> f64 {
    let staying = || runs.iter().filter(|run| !run.is_input);
    let all = staying().map(|run| run.entries).sum::<u64>() + entries;
    let used: f64 = staying().map(|run| run.filter_bits).sum();
    (all as f64 * bits_per_key - used) / entries as f64
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::plan::policy::Policy;

    /// Lazy leveling, T = 10.
    fn lazy_leveling(bits_per_key: f64) -> (f64, Schedule<'static>) {
        static POLICY: LazyLock<Policy> = LazyLock::new(Policy::default);
        (bits_per_key, Schedule { policy: &POLICY, size_ratio: 10 })
    }

    fn run(entries: u64, flushes: u64, bits_per_key: f64) -> TreeRun {
        let filter_bits = entries as f64 * bits_per_key;
        TreeRun { entries, flushes, filter_bits, is_input: false }
    }

    fn input(entries: u64, flushes: u64) -> TreeRun {
        TreeRun { is_input: true, ..run(entries, flushes, 8.0) }
    }

    fn bits(runs: &[TreeRun], entries: u64) -> f64 {
        share(RateLaw::BLOOM, lazy_leveling(8.0), runs, entries)
    }

    #[test]
    fn a_full_tree_has_spent_its_budget() {
        // 999 flushes of 100 entries: nine runs in each inner level.
        let merged = [vec![input(1000, 10); 9], vec![input(81_000, 1)]].concat();
        let last = bits(&merged, 90_000);
        assert!((7.0..8.0).contains(&last), "{last}");
        let mut runs = vec![run(90_000, 900, last)];
        for flushes in [10, 1] {
            for _ in 0..9 {
                let got = bits(&runs, flushes * 100);
                runs.insert(0, run(flushes * 100, flushes, got));
            }
        }
        let entries: u64 = runs.iter().map(|run| run.entries).sum();
        let spent: f64 = runs.iter().map(|run| run.filter_bits).sum::<f64>() / entries as f64;
        assert!((7.95..8.0 + 1e-9).contains(&spent), "{spent} bits per key");
        let of = |run: &TreeRun| RateLaw::BLOOM.at(run.filter_bits / run.entries as f64);
        let rates: f64 = runs.iter().map(of).sum();
        let uniform = runs.len() as f64 * RateLaw::BLOOM.at(8.0);
        assert!(rates < uniform / 4.0, "{rates}, uniform {uniform}");
    }

    #[test]
    fn a_growing_tree_keeps_within_its_budget() {
        let mut runs = vec![run(90_000, 900, bits(&[input(1000, 10), input(89_000, 1)], 90_000))];
        for _ in 0..9 {
            let got = bits(&runs, 100);
            assert!(got > 12.0, "{got} for a flush");
            runs.insert(0, run(100, 1, got));
            assert!(left_over(8.0, &runs, 1) > 0.0);
        }
    }

    #[test]
    fn what_others_hold_is_not_spent_twice() {
        // The last run took the whole budget, so no run gets more than the average.
        assert_eq!(bits(&[run(90_000, 900, 8.0)], 100), 8.0);
        // The last run left some bits, and a flush that wants more than the average gets them.
        let got = bits(&[run(90_000, 900, 7.999)], 100);
        assert!((got - 8.9).abs() < 0.01, "{got}");
        // The last run took more than its share, but a flush still gets the average.
        assert_eq!(bits(&[run(90_000, 900, 20.0)], 100), 8.0);
    }

    #[test]
    fn trees_without_a_shape_get_the_average() {
        assert_eq!(bits(&[], 100), 8.0);
        assert_eq!(bits(&[input(100, 1)], 100), 8.0);
        assert_eq!(bits(&[run(100, 1, 8.0)], 0), 8.0);
        assert_eq!(bits(&[run(0, 1, 0.0), run(0, 1, 0.0)], 7), 8.0);
    }

    #[test]
    fn the_runs_of_a_full_tree_are_those_of_its_policy() {
        let full = |policy: Policy| {
            let schedule = Schedule { policy: &policy, size_ratio: 4 };
            full_tree(40_000, 1000.0, schedule)
        };
        let many = [vec![1000; 3], vec![4000; 3]].concat();
        assert_eq!(full(Policy::lazy_leveling()), [&many[..], &[40_000]].concat());
        assert_eq!(full(Policy::leveling()), [3000, 12_000, 40_000]);
        assert_eq!(full(Policy::rocksdb()), [1000, 1000, 1000, 12_000, 40_000]);
        assert_eq!(full(Policy::tiering()), [&many[..], &[16_000; 2], &[40_000]].concat());
    }

    #[test]
    fn runs_that_are_too_large_get_nothing() {
        let merged = [vec![input(1000, 10); 9], vec![input(81_000, 1)]].concat();
        assert_eq!(share(RateLaw::BLOOM, lazy_leveling(0.6), &merged, 90_000), 0.0);
    }
}
