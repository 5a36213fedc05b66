//! Write stalls: writers are slowed down while flushes or merges lag behind, and stopped only if
//! that does not suffice.
//! ```text
//!                 full speed   slower and slower           stop
//! memtables       0 ........ SEALED_MAX - 1 ~~~~~~~~~~~ SEALED_MAX, and the active one is full
//! shared memory   0 ........ all of it ~~~~~~~~~~~~~~~~ (twice that: slowest, but no stop)
//! level 0         0 ........ slow_down_runs ~~~~~~~~~~~ stop_runs
//! inner levels    0 ........ 2 T + 4 of its T ~~~~~~~~~ as many more as in level 0
//! ```
//! Small merges go first, so an inner level can lag behind while level 0 does not.
//!
//! Invariants: the counts follow from the writes and the state of the tree alone; only the length
//! of a stop does not. In stepped mode no writer waits, since no other thread would end the stall.
//! Slowdowns and stops are counted nevertheless.

use std::time::Duration;

use crate::plan::run_limits::{RunLimits, SEALED_MAX};
use crate::sync::{AtomicU64, Ordering};

/// The rate of slowed writers where slowing begins, in bytes per second.
const RATE_FIRST: f64 = 64e6;
/// Their rate just before they are stopped.
const RATE_LAST: f64 = 0.64e6;
/// The shortest pause, in seconds. Shorter ones add up as a debt.
const PAUSE_MIN: f64 = 1e-3;
/// The longest pause, in seconds.
const PAUSE_MAX: f64 = 0.1;

/// How often writers had to wait, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StallStats {
    /// The number of waits.
    pub count: u64,
    /// The total time, in seconds.
    pub seconds: f64,
}

/// How far flushes and merges lag behind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lag {
    pub(crate) sealed: usize,
    pub(crate) active_bytes: usize,
    /// The fill of the active memtable: 0 empty, 1 full.
    pub(crate) fullness: f64,
    /// The fill of the write memory that stores share: 1 all of it is used.
    pub(crate) shared: f64,
    /// The run count of the level that lags behind most.
    pub(crate) runs: usize,
}

impl Lag {
    /// Returns how far the lag is between slowing (0) and stopping (1). None: writers are not
    /// slowed.
    fn excess(&self, limits: RunLimits) -> Option<f64> {
        let memory = self.sealed as f64 + self.fullness.clamp(0.0, 1.0);
        let memory = share(memory, (SEALED_MAX - 1) as f64, (SEALED_MAX + 1) as f64);
        let runs = share(self.runs as f64, limits.slow_down as f64, limits.stop as f64);
        let excess = memory.max(runs).max(share(self.shared, 1.0, 2.0));
        (excess > 0.0).then_some(excess.min(1.0))
    }

    /// Whether writers are slowed down or stopped until merges catch up.
    pub(crate) fn waits_for_merges(&self, limits: RunLimits) -> bool {
        self.runs > limits.slow_down
    }

    /// Returns the time that writing this many bytes should take, in seconds.
    fn price(&self, limits: RunLimits, bytes: usize) -> f64 {
        let Some(excess) = self.excess(limits) else { return 0.0 };
        bytes as f64 / (RATE_FIRST * (RATE_LAST / RATE_FIRST).powf(excess))
    }
}

/// Returns the position of `at` between `from` (0) and `to` (1); negative below `from`. Requires:
/// from < to.
fn share(at: f64, from: f64, to: f64) -> f64 {
    (at - from) / (to - from)
}

/// The time that slowed writers still have to wait.
#[derive(Default)]
pub(crate) struct Debt(f64);

impl Debt {
    /// Adds the price of a write. Returns the pause that is due, if one is.
    pub(crate) fn charge(
        &mut self,
        lag: &Lag,
        limits: RunLimits,
        bytes: usize,
    ) -> Option<Duration> {
        self.0 += lag.price(limits, bytes);
        if self.0 < PAUSE_MIN {
            return None;
        }
        let pause = self.0.min(PAUSE_MAX);
        self.0 = 0.0;
        Some(Duration::from_secs_f64(pause))
    }
}

/// Counts the stalls of one kind.
#[derive(Default)]
pub(crate) struct StallCounter {
    count: AtomicU64,
    nanoseconds: AtomicU64,
}

impl StallCounter {
    pub(crate) fn add(&self, time: Duration) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.add_time(time);
    }

    /// Adds the time of a stall that is counted already.
    pub(crate) fn add_time(&self, time: Duration) {
        self.nanoseconds.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> StallStats {
        let seconds = self.nanoseconds.load(Ordering::Relaxed) as f64 * 1e-9;
        StallStats { count: self.count.load(Ordering::Relaxed), seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::layout::{Layout, RunRecord};
    use crate::plan::options::Options;

    const LIMITS: RunLimits = RunLimits { slow_down: 10, stop: 20 };

    fn seconds_per_megabyte(lag: Lag) -> f64 {
        lag.price(LIMITS, 1_000_000)
    }

    #[test]
    fn the_further_behind_the_slower() {
        let runs = |runs| seconds_per_megabyte(Lag { runs, ..Lag::default() });
        assert_eq!((runs(0), runs(10)), (0.0, 0.0));
        assert!((11..=20).all(|count| runs(count) > runs(count - 1)));
        assert!((runs(20) - 1e6 / RATE_LAST).abs() < 1e-9 && runs(99) == runs(20));
        let memory =
            |sealed, fullness| seconds_per_megabyte(Lag { sealed, fullness, ..Lag::default() });
        assert_eq!((memory(2, 1.0), memory(3, 0.0)), (0.0, 0.0));
        assert!(memory(3, 0.5) > 0.0 && memory(4, 0.0) > memory(3, 0.5));
        assert!((memory(4, 1.0) - 1e6 / RATE_LAST).abs() < 1e-9);
        // The worse of the two decides.
        let both = seconds_per_megabyte(Lag { sealed: 4, runs: 11, ..Lag::default() });
        assert_eq!(both, memory(4, 0.0));
    }

    #[test]
    fn debts_are_paid_in_pauses_that_are_worth_their_while() {
        let (lag, mut debt) = (Lag { runs: 20, ..Lag::default() }, Debt::default());
        assert_eq!(debt.charge(&lag, LIMITS, 600), None);
        let pause = debt.charge(&lag, LIMITS, 600).expect("a pause is due");
        assert!(pause > Duration::from_millis(1) && pause < Duration::from_millis(3), "{pause:?}");
        assert_eq!(debt.charge(&lag, LIMITS, 10), None, "what was paid is not owed");
        let longest = debt.charge(&lag, LIMITS, 1 << 30).expect("a pause is due");
        assert_eq!(longest, Duration::from_secs_f64(PAUSE_MAX));
    }

    #[test]
    fn limits_follow_the_size_ratio_unless_they_are_given() {
        let of = |slow_down_runs, stop_runs| {
            RunLimits::of(&Options::new().slow_down_runs(slow_down_runs).stop_runs(stop_runs))
        };
        assert_eq!(of(None, None), RunLimits { slow_down: 24, stop: 48 });
        assert_eq!(of(Some(5), Some(9)), RunLimits { slow_down: 5, stop: 9 });
        assert_eq!(of(Some(40), None), RunLimits { slow_down: 40, stop: 80 });
    }

    // Once, a tree whose large merges could not keep up grew without limit, since small merges go
    // first.
    #[test]
    fn a_lower_level_that_lags_slows_writers_down() {
        let layout = |levels: &[usize]| {
            let run_of = |&level: &usize| RunRecord { id: 0, level, tables: Vec::new() };
            Layout { runs: levels.iter().map(run_of).collect(), ..Layout::default() }
        };
        let options = Options::new().size_ratio(3);
        let lagging = |levels: &[(usize, usize)]| {
            let levels = levels.iter().flat_map(|&(level, runs)| vec![level; runs]);
            let layout = layout(&levels.collect::<Vec<_>>());
            LIMITS.lagging_runs(&layout, &options.schedule())
        };
        assert_eq!((lagging(&[]), lagging(&[(0, 7)]), lagging(&[(0, 99)])), (0, 7, 99));
        assert_eq!(lagging(&[(0, 2), (1, 10), (2, 1)]), 2, "2 T + 4 are usual");
        assert_eq!(lagging(&[(0, 2), (1, 13), (2, 1)]), LIMITS.slow_down + 3);
        assert_eq!(lagging(&[(0, 15), (1, 13), (2, 1)]), 15, "the worse of the two");
        assert_eq!(lagging(&[(0, 2), (1, 99)]), 2, "as many as the policy says, in the last level");
    }

    #[test] // Doubling the limit once overflowed: a panic, or a limit below the other one.
    fn limits_out_of_reach_are_an_error() {
        for slow_down_runs in [usize::MAX, usize::MAX / 2 + 1] {
            let options = Options::new().slow_down_runs(Some(slow_down_runs));
            assert!(RunLimits::of(&options).stop >= slow_down_runs);
            assert_eq!(options.check().is_ok(), slow_down_runs < usize::MAX);
        }
    }
}
