//! Partial merges, as in LevelDB and RocksDB: one table of a level goes into the level below.
//! ```text
//! level 1     [ a ][ b ][ c ][ d ]    too large: the table goes down whose merge rewrites the
//!                  \   \               fewest bytes for each byte that it moves
//! level 2     [  e ][ f ][ g ][ h ]   f and g are rewritten; where no table lies below, only the
//!                                     table's record changes (a trivial move)
//! ```
//! Levels of one run are merged this way, and before all others. If level 0 were emptied first,
//! level 1 would grow while writers are fast, and each merge into it rewrites it. Levels of several
//! runs are merged as a whole into these, one level at a time. The last level is merged by
//! partitions: under this granularity each of its tables is a partition, and thus a filter part.
//!
//! Invariants: for each key, the list of runs by age stays one list, since a table goes from one
//! run into the next older one. A range that is rewritten in the last level begins and ends at
//! partition boundaries. The layout alone determines what is due. Spans of runs overlap here
//! (`docs/design/merges.md`), so sizes are counted in entries, never in spans.

use crate::entries::key_bounds::KeyBounds;
use crate::plan::flush_size::FlushSize;
use crate::plan::layout::{Layout, RunRecord, TableRecord};
use crate::plan::merge_job::{MergeJob, Target};
use crate::plan::partitions::{Division, first_range};
use crate::plan::pick_runs::pick_runs;
use crate::plan::policy::Schedule;

/// Returns the merges that are wanted, best first: one for each level that is too large, or else
/// one of whole runs. None: the tree is in shape.
pub(crate) fn pick_tables<'a>(
    layout: &'a Layout,
    schedule: Schedule<'a>,
    division: Division,
) -> impl Iterator<Item = MergeJob> + 'a {
    let too_large = too_large(layout, &schedule);
    let is_small = too_large.is_empty();
    let whole = is_small.then(|| pick_runs(layout, &schedule, true)).flatten();
    let whole = whole.map(|job| match job.target {
        Target::Inner(level) => into_tables(layout, level, job),
        Target::Last => first_range(layout, job, division),
    });
    too_large.into_iter().filter_map(move |level| push_from(layout, level, division)).chain(whole)
}

/// Adapts a merge of whole runs whose oldest input may be the run of the target level. Of that run,
/// only tables that the other inputs overlap are rewritten.
fn into_tables(layout: &Layout, level: usize, job: MergeJob) -> MergeJob {
    let runs = || layout.runs.iter().filter(|run| job.inputs.contains(&run.id));
    let oldest = runs().next_back().filter(|run| run.level == level && job.inputs.len() > 1);
    let Some(oldest) = oldest else { return job };
    let newer = || runs().filter(|run| run.id != oldest.id);
    let from = newer().filter_map(|run| run.tables.first()).map(|table| table.from.clone()).min();
    let to = newer().filter_map(|run| run.tables.last()).map(|table| table.to.clone()).max();
    let moved = KeyBounds { from: from.unwrap_or_default(), to };
    let range = with_met_tables(&moved, oldest);
    MergeJob { range, moved, joins: true, ..job }
}

/// Widens a range of keys to the bounds of the run's tables that overlap it.
fn with_met_tables(range: &KeyBounds, run: &RunRecord) -> KeyBounds {
    let met = run.within(range);
    let from = met.first().map(|first| &first.from).into_iter().chain([&range.from]).min();
    let to = met.last().map(|last| &last.to).into_iter().chain(&range.to).max();
    KeyBounds { from: from.cloned().unwrap_or_default(), to: to.cloned() }
}

/// Returns the levels that are too large and are emptied table by table, the fullest first.
fn too_large(layout: &Layout, schedule: &Schedule<'_>) -> Vec<usize> {
    let last = layout.level_count() - 1;
    let Some(flush_entries) = FlushSize::median(layout).entries() else { return Vec::new() };
    let fullness = |level: usize| {
        let runs = layout.runs.iter().filter(|run| run.level == level);
        let entries: u64 = runs.map(RunRecord::entries).sum();
        entries as f64 / (schedule.level_flushes(level) * flush_entries)
    };
    let pushed = |&(level, fullness): &(usize, f64)| {
        fullness > 1.0 && schedule.is_levelled(level, last) && schedule.is_levelled(level + 1, last)
    };
    let mut levels: Vec<(usize, f64)> =
        (1..last).map(|level| (level, fullness(level))).filter(pushed).collect();
    levels.sort_by(|one, other| other.1.total_cmp(&one.1));
    levels.into_iter().map(|(level, _)| level).collect()
}

/// Returns the merge of the table that rewrites the fewest bytes for each byte that it moves.
fn push_from(layout: &Layout, level: usize, division: Division) -> Option<MergeJob> {
    let last = layout.level_count() - 1;
    let place = layout.runs.iter().rposition(|run| run.level == level)?;
    let (source, older) = (&layout.runs[place], layout.runs.get(place + 1)?);
    let is_last = level + 1 == last;
    if is_last && place + 2 < layout.runs.len() {
        // Another policy has left several runs in the last level.
        let all = MergeJob::of_runs(&layout.runs[place..], Target::Last);
        return Some(first_range(layout, all, division));
    }
    // If the level below has no run, the table becomes one.
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
    let joins = below.is_some();
    Some(MergeJob { range, moved, joins, ..MergeJob::whole(inputs, target) })
}

/// Returns the keys that are rewritten when a table goes down: those of the tables that it
/// overlaps; in the last level, those of the partitions.
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
