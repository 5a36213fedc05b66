//! Which whole runs to merge next: a pure function of the layout and the policy.
//! ```text
//! level 0      T units wait      -> their merge is a carry ...
//! level 1      T - 1 units: full -> ... which takes this level along ...
//! level 2      has room          -> ... and joins the newest run here, or becomes a run of its own
//! last level   Z runs: full      -> a carry that comes this far takes all of them, and its output
//!                                   is the oldest run
//! ```
//! A run's span gives its number of units. So no record of units is needed, whatever was merged
//! under whichever policy. Another policy may have left more runs than this one allows, or runs of
//! other sizes. They are merged when their level is next emptied: a carry needs nothing but T units
//! in level 0.
//!
//! Invariants: a merge takes a contiguous stretch of the list of runs. From level 0 it takes
//! exactly the oldest T units, however many newer ones wait. Each merge leaves fewer runs or
//! empties a level, so merging ends. The number of levels follows the data.

use crate::plan::layout::{Layout, RunRecord};
use crate::plan::merge_job::{MergeJob, Target};
use crate::plan::policy::Schedule;

/// Returns the merge of whole runs that is due. None: the tree is in shape. `by_tables`: levels of
/// one run are emptied table by table, so a carry ends in the first of them.
pub(crate) fn pick_runs(
    layout: &Layout,
    schedule: &Schedule<'_>,
    by_tables: bool,
) -> Option<MergeJob> {
    let last = layout.level_count() - 1;
    if last == 0 {
        let all = || MergeJob::of_runs(&layout.runs, Target::Last);
        return (layout.runs.len() > schedule.last_runs(0)).then(all);
    }
    let measure = Measure::new(layout, schedule, by_tables)?;
    match full_block(layout, &measure) {
        Some(from) => Some(carry(layout, &measure, from)),
        None => join(layout, &measure),
    }
}

/// Returns the place of the newest run among level 0's oldest T units. None: there are fewer units.
fn full_block(layout: &Layout, measure: &Measure<'_>) -> Option<usize> {
    let mut units = 0;
    (0..layout.runs_in(0)).rev().find(|&place| {
        units += measure.units(&layout.runs[place]);
        units >= measure.schedule.ratio(0)
    })
}

/// Returns the merge of level 0's runs from `from` on into the first level that is not full.
/// Requires: `from` is not in the last level.
fn carry(layout: &Layout, measure: &Measure<'_>, from: usize) -> MergeJob {
    let schedule = measure.schedule;
    let last = layout.level_count() - 1;
    let mut target = 1;
    while target < last && measure.is_full(layout, target) {
        target += 1;
    }
    if target == last && layout.runs_in(last) >= schedule.last_runs(last) {
        return MergeJob::of_runs(&layout.runs[from..], Target::Last);
    }
    let older_than_target = |run: &RunRecord| run.level >= target;
    let to = layout.runs.iter().position(older_than_target).unwrap_or(layout.runs.len());
    let joined = target < last
        && layout.runs.get(to).is_some_and(|run| run.level == target && measure.has_room(run));
    MergeJob::of_runs(&layout.runs[from..to + usize::from(joined)], Target::Inner(target))
}

/// Returns the merge of flushes into the oldest run of level 0 that has room for them.
fn join(layout: &Layout, measure: &Measure<'_>) -> Option<MergeJob> {
    let room = measure.schedule.run_units(0);
    (1..layout.runs_in(0)).rev().find_map(|place| {
        let (mut from, mut units) = (place, measure.units(&layout.runs[place]));
        while from > 0 && units + measure.units(&layout.runs[from - 1]) <= room {
            from -= 1;
            units += measure.units(&layout.runs[from]);
        }
        (from < place).then(|| MergeJob::of_runs(&layout.runs[from..=place], Target::Inner(0)))
    })
}

/// Counts the units of runs.
struct Measure<'a> {
    schedule: &'a Schedule<'a>,
    /// Entries of a flush as it comes from memory, if units are counted by entries.
    flush_entries: Option<f64>,
    /// Whether tables leave levels of one run one by one. Such levels are never full.
    by_tables: bool,
}

impl<'a> Measure<'a> {
    /// None: units are counted by entries, but level 0 has no single flush to show the usual size.
    /// The next flush will.
    fn new(layout: &Layout, schedule: &'a Schedule<'a>, by_tables: bool) -> Option<Self> {
        if !schedule.policy.delay_merges {
            return Some(Measure { schedule, flush_entries: None, by_tables });
        }
        let is_flush = |run: &&RunRecord| run.level == 0 && run.flush_count() == 1;
        let flushes: Vec<u64> =
            layout.runs.iter().filter(is_flush).map(RunRecord::entries).collect();
        let entries = flushes.iter().sum::<u64>() as f64 / flushes.len() as f64;
        let flush_entries = Some(entries.max(1.0));
        (!flushes.is_empty()).then_some(Measure { schedule, flush_entries, by_tables })
    }

    fn units(&self, run: &RunRecord) -> usize {
        let units = self.schedule.units_of(run.level, run.flush_count());
        let Some(flush_entries) = self.flush_entries else { return units };
        let planned = self.schedule.unit_flushes(run.level) * flush_entries;
        let by_entries = (run.entries() as f64 / planned).round() as usize;
        by_entries.clamp(units.div_ceil(2), units)
    }

    fn has_room(&self, run: &RunRecord) -> bool {
        self.is_emptied_by_tables(run.level) || self.units(run) < self.schedule.run_units(run.level)
    }

    fn is_emptied_by_tables(&self, level: usize) -> bool {
        self.by_tables && level > 0 && self.schedule.inner_runs(level) == 1
    }

    /// Whether one more unit would take the level's runs along.
    fn is_full(&self, layout: &Layout, level: usize) -> bool {
        if self.is_emptied_by_tables(level) {
            return false;
        }
        let runs = || layout.runs.iter().filter(|run| run.level == level);
        let units: usize = runs().map(|run| self.units(run)).sum();
        let needs_a_run = !runs().next().is_some_and(|newest| self.has_room(newest));
        units + 1 >= self.schedule.ratio(level)
            || needs_a_run && runs().count() >= self.schedule.inner_runs(level)
    }
}

#[cfg(test)]
mod tests;
