//! The run counts at which writers are slowed down, and stopped, so that merges catch up.
//! ```text
//! level 0         0 ........ slow_down_runs ~~~~~~~~~~~ stop_runs
//! inner levels    0 ........ 2 T + 4 of its T ~~~~~~~~~ as many more as in level 0
//! ```
//! Invariant: both limits follow from the options alone.

use crate::plan::layout::{Layout, RunRecord};
use crate::plan::options::Options;
use crate::plan::policy::Schedule;

/// The number of sealed memtables that may wait for their flush before writers wait, too.
pub(crate) const SEALED_MAX: usize = 4;

/// The run counts in level 0 at which writers are slowed down, and stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunLimits {
    pub(crate) slow_down: usize,
    pub(crate) stop: usize,
}

impl RunLimits {
    pub(crate) fn of(options: &Options) -> Self {
        let usual = usual_runs(&options.schedule(), 0);
        let slow_down = options.slow_down_runs.unwrap_or(usual);
        let twice = slow_down.max(usual).saturating_mul(2);
        RunLimits { slow_down, stop: options.stop_runs.unwrap_or(twice) }
    }

    /// Returns the run count of the level that lags behind most, converted to runs of level 0. In a
    /// deeper level, each run beyond the usual number counts as one run of level 0 beyond
    /// `slow_down`.
    pub(crate) fn lagging_runs(self, layout: &Layout, schedule: &Schedule<'_>) -> usize {
        let last = layout.level_count() - 1;
        let as_of_level_0 = |runs: &[RunRecord]| match runs[0].level {
            0 => runs.len(),
            level if level < last && runs.len() > usual_runs(schedule, level) => {
                self.slow_down.saturating_add(runs.len() - usual_runs(schedule, level))
            }
            _ => 0,
        };
        let levels = layout.runs.chunk_by(|one, other| one.level == other.level);
        levels.map(as_of_level_0).max().unwrap_or(0)
    }
}

impl Options {
    /// Returns how far merges lag behind in a layout, as a run count to compare with the limits.
    pub(crate) fn lagging_runs(&self, layout: &Layout) -> usize {
        RunLimits::of(self).lagging_runs(layout, &self.schedule())
    }
}

/// Returns about twice the number of runs that a level has while merges keep up.
fn usual_runs(schedule: &Schedule<'_>, level: usize) -> usize {
    2 * schedule.ratio(level) + SEALED_MAX
}
