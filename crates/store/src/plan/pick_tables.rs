//! Partial merges, as LevelDB and RocksDB do them: one table of a level goes into the level below
//! it.
//! ```text
//! level 1     [ a ][ b ][ c ][ d ]         too large: the table whose merge rewrites least for its bytes goes down
//!                  \   \
//! level 2     [  e ][ f ][ g ][ h ]        f and g are rewritten; where nothing lies below, the table is only told that it
//!                                          belongs there (a trivial move)
//! ```
//! Levels of one run are merged so, and before anything else: were level 0 emptied first, level 1
//! would grow while writers are fast, and each merge into it rewrites it. Into them, levels of
//! several runs are merged whole, one level at a time; into the last level by partitions. Under
//! this granularity each table of the last level is a partition, and so a part of the filter.
//!
//! Invariants: of each key the list of runs by age stays one list, since a table goes from one run
//! into the next older one; a range that is rewritten in the last level begins and ends where
//! partitions do. What is due follows from the layout. Spans of runs overlap here (DESIGN, section
//! 2), so sizes are told by entries, never by spans.

use crate::entries::key_bounds::KeyBounds;
use crate::plan::layout::{FlushRecord, Layout, RunRecord, TableRecord};
use crate::plan::partitions::{Division, RangeJob, divide};
use crate::plan::pick_runs::{MergeJob, Target, pick_units};
use crate::plan::policy::Schedule;

/// The merge that is due, of those that `is_free` says may begin. None: the tree is in shape.
pub(crate) fn pick(
    layout: &Layout,
    schedule: &Schedule<'_>,
    division: Division,
    is_free: &dyn Fn(&MergeJob) -> bool,
) -> Option<RangeJob> {
    let too_large = too_large(layout, schedule);
    if !too_large.is_empty() {
        let push = |level| push_from(layout, level, division).filter(|job| is_free(&job.merge));
        return too_large.into_iter().find_map(push);
    }
    let whole = pick_units(layout, schedule, true).filter(is_free)?;
    Some(match whole {
        MergeJob { target: Target::Inner(level), inputs } => into_tables(layout, level, inputs),
        job => divide(layout, job, division),
    })
}

/// The merge of whole runs, of which the oldest may be that of their level: then only those of its
/// tables are rewritten that others meet.
fn into_tables(layout: &Layout, level: usize, inputs: Vec<u64>) -> RangeJob {
    let runs = || layout.runs.iter().filter(|run| inputs.contains(&run.id));
    let oldest = runs().next_back().filter(|run| run.level == level && inputs.len() > 1);
    let newer = || runs().filter(|run| Some(run.id) != oldest.map(|oldest| oldest.id));
    let from = newer().filter_map(|run| run.tables.first()).map(|table| table.from.clone()).min();
    let to = newer().filter_map(|run| run.tables.last()).map(|table| table.to.clone()).max();
    let moved = KeyBounds { from: from.unwrap_or_default(), to };
    let range = oldest.map(|run| with_met_tables(&moved, run));
    let merge = MergeJob { inputs, target: Target::Inner(level) };
    match range {
        Some(range) => RangeJob::partial(merge, range, moved, true),
        None => RangeJob::full(merge),
    }
}

/// A range of keys, and those of the tables of a run that have some in it.
fn with_met_tables(range: &KeyBounds, run: &RunRecord) -> KeyBounds {
    let met = run.within(range);
    let from = met.first().map(|first| &first.from).into_iter().chain([&range.from]).min();
    let to = met.last().map(|last| &last.to).into_iter().chain(&range.to).max();
    KeyBounds { from: from.cloned().unwrap_or_default(), to: to.cloned() }
}

/// Entries of a usual flush, as far as flushes are on record. None: none is, so nothing newer than
/// the oldest run is there.
pub(crate) fn flush_entries(layout: &Layout) -> Option<f64> {
    let firsts = layout.flushes.iter().map(|record: &FlushRecord| record.first.0);
    let ends = firsts.clone().skip(1).chain([layout.last_sequence.0 + 1]);
    let mut sizes: Vec<u64> =
        firsts.zip(ends).map(|(first, end)| end.saturating_sub(first)).collect();
    // Not the mean: one ingest may have as many as a thousand flushes.
    let middle = sizes.len() / 2;
    let (_, &mut median, _) = (!sizes.is_empty()).then(|| sizes.select_nth_unstable(middle))?;
    Some(median.max(1) as f64)
}

/// The levels that are too large, of those that are emptied by tables: first that which is so the
/// most times.
fn too_large(layout: &Layout, schedule: &Schedule<'_>) -> Vec<usize> {
    let last = layout.level_count() - 1;
    let Some(flush) = flush_entries(layout) else { return Vec::new() };
    let fullness = |level: usize| {
        let runs = layout.runs.iter().filter(|run| run.level == level);
        let entries: u64 = runs.map(RunRecord::entries).sum();
        entries as f64 / (schedule.level_flushes(level) * flush)
    };
    let pushed = |&(level, fullness): &(usize, f64)| {
        fullness > 1.0 && schedule.is_levelled(level, last) && schedule.is_levelled(level + 1, last)
    };
    let mut levels: Vec<(usize, f64)> =
        (1..last).map(|level| (level, fullness(level))).filter(pushed).collect();
    levels.sort_by(|one, other| other.1.total_cmp(&one.1));
    levels.into_iter().map(|(level, _)| level).collect()
}

/// The table of a level whose merge rewrites least for what it takes away, and what it is merged
/// with.
fn push_from(layout: &Layout, level: usize, division: Division) -> Option<RangeJob> {
    let last = layout.level_count() - 1;
    let place = layout.runs.iter().rposition(|run| run.level == level)?;
    let (source, older) = (&layout.runs[place], layout.runs.get(place + 1)?);
    let is_last = level + 1 == last;
    if is_last && place + 2 < layout.runs.len() {
        // Another policy has left several runs there.
        let inputs = layout.runs[place..].iter().map(|run| run.id).collect();
        return Some(divide(layout, MergeJob { inputs, target: Target::Last }, division));
    }
    // With no run in the level below, the table becomes one.
    let below = Some(older).filter(|run| run.level == level + 1);
    let cost = |table: &TableRecord| {
        let range = rewritten(layout, table, below, is_last);
        let tables = below.map_or(&[][..], |run| run.within(&range));
        let bytes: u64 = tables.iter().map(TableRecord::bytes_within).sum();
        bytes as f64 / table.bytes_within().max(1) as f64
    };
    let table = source.tables.iter().min_by(|one, other| cost(one).total_cmp(&cost(other)))?;
    let inputs = [Some(source.id), below.map(|run| run.id)].into_iter().flatten().collect();
    let target = if is_last { Target::Last } else { Target::Inner(level + 1) };
    let range = rewritten(layout, table, below, is_last);
    let moved = KeyBounds { from: table.from.clone(), to: Some(table.to.clone()) };
    Some(RangeJob::partial(MergeJob { inputs, target }, range, moved, below.is_some()))
}

/// The keys that are rewritten where a table goes down: those of the tables that it meets, in the
/// last level of the partitions.
fn rewritten(
    layout: &Layout,
    table: &TableRecord,
    below: Option<&RunRecord>,
    is_last: bool,
) -> KeyBounds {
    if is_last {
        let first = layout.cuts.partition_point(|cut| *cut <= table.from);
        let after = layout.cuts.partition_point(|cut| *cut < table.to);
        let from = first.checked_sub(1).map_or_else(Vec::new, |place| layout.cuts[place].clone());
        return KeyBounds { from, to: layout.cuts.get(after).cloned() };
    }
    let own = KeyBounds { from: table.from.clone(), to: Some(table.to.clone()) };
    below.map_or_else(|| own.clone(), |run| with_met_tables(&own, run))
}

#[cfg(test)]
mod tests;
