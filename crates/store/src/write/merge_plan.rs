//! The plan of a merge, which is fixed when the merge begins, and the resulting edit of the tree.
//! ```text
//! plan          inputs in the range, ranges of the submerges, registered snapshots
//! submerges     read, keep, write, feed the filter    write/submerge.rs, several at once
//! install       all outputs at once                   write/merge_install.rs
//!
//! key range     the inputs' keys in it are read; tables across its ends are trimmed, not rewritten
//! one table     of a run, and the tables that it overlaps in the next run; if there are none, only
//!               the table's record changes
//! ```
//! Invariant: a plan fits whatever version is the newest when the merge is installed, since no
//! other merge takes its runs.

use std::collections::BTreeSet;
use std::time::Duration;

use trommel_filters::{FlushNumber, QueryMix, RunCodes, Span};

use crate::entries::entry::Sequence;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::retention::Retention;
use crate::error::{Error, Result};
use crate::files::key_sample::sample_of;
use crate::files::placed_run::PlacedRun;
use crate::files::run::Run;
use crate::files::table::writer::TableSummary;
use crate::guard::locator::{self, ExpectedEntries};
use crate::guard::parts::Parts;
use crate::plan::flush_size::FlushSize;
use crate::plan::layout::{CutsEdit, Edit, LastMerge, Layout, RunRecord, TableRecord};
use crate::plan::merge_job::{MergeJob, Target};
use crate::plan::options::Options;
use crate::storage::pauses::PausePoint;
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::run_writer::RunOutput;
use crate::tree::version::Version;
use crate::write::locator_merge::LocatorMerge;
use crate::write::merge_inputs::{MergeInputs, only_table, tombstones_of};
use crate::write::older_runs::OlderRuns;
use crate::write::parts_builder::{Expected, PartOptions, PartsBuilder};
use crate::write::split_merge::{SubmergeRange, divided, undivided};
use crate::write::submerge::MergeOutput;

/// A merge that has begun: the state that its submerges share. It is immutable, except for the
/// parts of a filter that they build.
pub(crate) struct MergePlan {
    pub(crate) job: Arc<MergeJob>,
    pub(crate) inputs: MergeInputs,
    /// The record of the only table that is merged, if the table itself becomes the output without
    /// being read.
    moves: Option<TableRecord>,
    /// Derived from the newer inputs as they were when the merge began with its first range.
    flush_size: FlushSize,
    /// The oldest input as it was when this range began.
    oldest: RunRecord,
    pub(crate) submerges: Vec<SubmergeRange>,
    /// The sequence numbers that were registered when the merge began.
    snapshots: Vec<Sequence>,
    /// The time by the clock when the merge began, which decides what has expired.
    since_epoch: Duration,
    /// The bits per key of all filters that it writes. None: as the options say.
    pub(crate) filter_bits: Option<f64>,
    /// For a merge into the oldest run: builds the parts of a global filter.
    pub(crate) parts: Option<PartsBuilder>,
    /// Whether the guard's codes are runs, so that an inner merge has to rewrite them.
    pub(crate) recodes: bool,
    /// Value files whose values the merge moves to other files.
    pub(crate) moved_values: Arc<BTreeSet<u64>>,
    /// For an inner merge that drops deletions which hide nothing.
    older: Option<OlderRuns>,
    /// When the merge began, by the store's clock.
    begun: Duration,
}

impl MergePlan {
    pub(crate) fn new(tree: &OpenTree, job: Arc<MergeJob>) -> Result<Self> {
        let (version, options) = (tree.current.hold(), &tree.table_files.options);
        let layout = &*version.layout;
        let flush_size = FlushSize::of_inputs(layout, &job, options.division().granularity);
        let runs = version.runs_of(&job.inputs);
        assert_eq!(runs.len(), job.inputs.len(), "a merge's inputs stay until it is installed");
        let oldest = job.inputs.last().and_then(|id| layout.run(*id)).expect("a merge has inputs");
        let (snapshots, since_epoch) = (tree.snapshots.copy(), tree.env.clock.since_epoch());
        tree.env.pauses.at(PausePoint::MergeStarted);
        let inputs = MergeInputs::of(layout, &runs, &job)?;
        // Counted for whole runs: filters and parts are sized for the run, not for a range of it.
        let entries = runs.iter().map(|placed| placed.run.entry_count()).sum();
        let is_last = job.target == Target::Last;
        let global = version.guard.parts();
        let parts = global.filter(|_| is_last).map(|parts| {
            let share = flush_size.overlay_share(entries, &options.schedule());
            let expected = Expected {
                sample: sample_of(&inputs.merged)?,
                all_keys: inputs.merged.iter().map(|placed| placed.run.entry_count()).sum(),
                keys: keys_of_part(&inputs.merged, options),
                query_mix: query_mix(tree, parts, &job),
                empty_queries: tree.empty_query_sample.take(parts, &job.range),
            };
            let options = *parts.options();
            let options = PartOptions { options, allotment: tree.allotment(parts) };
            Ok(PartsBuilder::new(options, share, expected, &job.range.from))
        });
        let parts = parts.transpose()?;
        let recodes = global.is_some_and(|p| p.options().run_codes == RunCodes::Huffman);
        let recodes = recodes && !is_last;
        let needs_no_reading = !is_last && !recodes && inputs.trimmed.is_empty();
        let moves = only_table(layout, &inputs.merged)
            .filter(|_| needs_no_reading && !job.moved.is_all())
            .map(|record| {
                let run = if job.joins { oldest.id } else { tree.table_files.new_file() };
                TableRecord { run, ..record }
            });
        let submerges = match moves {
            Some(_) => undivided(&job.range, &inputs.merged),
            None => submerges(options, &job, &inputs.merged)?,
        };
        let filter_bits = tree.filter_bits(&job.inputs, entries);
        let moved_values = if is_last { values_to_move(tree, &version) } else { Arc::default() };
        let older = (!is_last).then(|| OlderRuns::of(options, &version, oldest.id)).flatten();
        Ok(MergePlan {
            oldest: oldest.clone(),
            job,
            inputs,
            moves,
            flush_size,
            submerges,
            snapshots,
            since_epoch,
            filter_bits,
            parts,
            recodes,
            moved_values,
            older,
            begun: tree.env.clock.now(),
        })
    }

    /// Returns when the merge began, by the store's clock.
    pub(crate) fn begun(&self) -> Duration {
        self.begun
    }

    /// Returns the number of runs that it merges.
    pub(crate) fn runs(&self) -> usize {
        self.job.inputs.len()
    }

    /// Whether it merges into the oldest run.
    pub(crate) fn is_last(&self) -> bool {
        self.job.target == Target::Last
    }

    /// Whether it only changes a table's record, and neither reads nor writes entries.
    pub(crate) fn only_moves(&self) -> bool {
        self.moves.is_some()
    }

    /// Returns the parts of the inputs that are merged in a submerge's range, newest first.
    pub(crate) fn inputs_within(&self, range: &KeyBounds) -> Result<Vec<PlacedRun>> {
        if *range == self.job.range {
            return Ok(self.inputs.merged.clone());
        }
        let clipped = self.inputs.merged.iter().map(|placed| placed.within(range));
        clipped.filter_map(Result::transpose).collect()
    }

    /// Returns what decides which entries of these inputs are kept.
    pub(crate) fn retention(&self, inputs: &[PlacedRun]) -> Retention {
        let tombstones = tombstones_of(inputs, &self.snapshots);
        let snapshots = self.snapshots.clone();
        let retention = Retention::new(snapshots, self.is_last(), self.since_epoch, tombstones);
        match self.older.clone() {
            Some(older) => retention.asking(Box::new(move |key| older.may_have(key))),
            None => retention,
        }
    }

    /// Returns the changes to a filter that knows each key's run. Such a merge has one submerge.
    pub(crate) fn locator(&self, tree: &OpenTree, inputs: &[PlacedRun]) -> Option<LocatorMerge> {
        let (options, size) = (&tree.table_files.options, self.flush_size);
        let schedule = options.schedule();
        // An upper bound: it is not known yet how many entries this merge drops.
        let entries = inputs.iter().map(|placed| placed.run.entry_count()).sum();
        let level = size.last_level(entries, &schedule).unwrap_or(self.oldest.level);
        let expected = ExpectedEntries::new(entries, size, &schedule);
        let new_plan = |entries| locator::plan(options, level + 1, entries);
        LocatorMerge::new(&tree.current.hold(), inputs, &self.job, expected, new_plan)
    }

    /// Returns the level of the output. The last run keeps its level until all ranges are done.
    pub(crate) fn output_level(&self, tree: &OpenTree, output: &RunOutput) -> usize {
        if let Target::Inner(level) = self.job.target {
            return level;
        }
        let oldest = &self.oldest;
        let merged: u64 = oldest.within(&self.job.range).iter().map(|table| table.entries).sum();
        let entries = output.entries() + oldest.entries().saturating_sub(merged);
        let level = self.flush_size.last_level(entries, &tree.table_files.options.schedule());
        let is_done = self.job.progress.as_ref().is_none_or(|merge| merge.done_to.is_empty());
        level.filter(|_| is_done).unwrap_or(oldest.level)
    }

    /// Returns the records of tables that the merge has written.
    fn written(
        &self,
        tree: &OpenTree,
        layout: &Layout,
        run: u64,
        merged: &MergeOutput,
    ) -> Result<Vec<TableRecord>> {
        // Then there may be no inputs, either.
        if merged.run.tables.is_empty() {
            return Ok(Vec::new());
        }
        let records = merged.run.records(run, merged.level, self.inputs.span());
        let with_span = |(record, (_, summary)): (TableRecord, &(u64, TableSummary))| {
            let span = self.span(layout, summary.sequences).ok_or_else(|| {
                let what =
                    "a merge of entries that are not of their flushes: another store's table?";
                Error::corrupt(tree.table_files.folder.path(), 0, what)
            })?;
            Ok(TableRecord { span, ..record })
        };
        records.into_iter().zip(&merged.run.tables).map(with_span).collect()
    }

    /// Returns the span of surviving entries with these sequence numbers. None: an input has
    /// entries of flushes that are not its own.
    fn span(&self, layout: &Layout, (least, greatest): (Sequence, Sequence)) -> Option<Span> {
        let hull = self.inputs.span();
        let lo = layout.flush_of(least).unwrap_or(hull.lo()).max(hull.lo());
        let lo = if self.is_last() { FlushNumber(0) } else { lo };
        // An entry older than every recorded flush came from the oldest run.
        let oldest_end = self.inputs.merged.last().map_or(hull.hi(), |placed| placed.span().hi());
        let hi = layout.flush_of(greatest).map_or(oldest_end, FlushNumber::next);
        Span::new(lo, hi.min(hull.hi()))
    }

    /// Returns the edit of the tree that the merge makes, for the newest version.
    pub(crate) fn edit(
        &self,
        tree: &OpenTree,
        now: &Version,
        merged: &MergeOutput,
    ) -> Result<Edit> {
        let new_run = merged.run.tables.first().map_or(0, |(file, _)| *file);
        let run = if self.job.joins { self.oldest.id } else { new_run };
        let added = match &self.moves {
            Some(record) => vec![TableRecord { level: merged.level, ..record.clone() }],
            None => self.written(tree, &now.layout, run, merged)?,
        };
        let cuts = || CutsEdit { within: self.job.range.clone(), cuts: merged.cuts.clone() };
        let edit = Edit {
            removed: self.inputs.removed.clone(),
            added: self.inputs.trimmed.iter().cloned().chain(added).collect(),
            next_file: Some(tree.table_files.next_file()),
            cuts: self.is_last().then(cuts),
            last_merge: self.job.progress.clone(),
            ..Edit::default()
        };
        let Some(after) = self.is_last().then(|| now.layout.apply(&edit).ok()) else {
            return Ok(edit);
        };
        let needed = needed_by_readers(&now.layout, tree.snapshots.oldest());
        let least = after.as_ref().map_or(FlushNumber(0), least_newer);
        let forget_below = Some(needed.map_or(least, |needed| least.min(needed)));
        let handed_on = after.and_then(|after| self.handed_on(&after));
        Ok(Edit { forget_below, last_merge: handed_on.or(edit.last_merge), ..edit })
    }

    /// Returns the new progress of a merge over several ranges, if its oldest run has lost its last
    /// key in this range. The oldest of its other runs takes over: the merge would otherwise end
    /// with the run into which it merges. None: the oldest run still exists, or no other run is
    /// left.
    fn handed_on(&self, after: &Layout) -> Option<LastMerge> {
        let merge = self.job.progress.as_ref().filter(|merge| !merge.done_to.is_empty())?;
        let is_there = |id: &u64| after.run(*id).is_some();
        if is_there(&merge.oldest) {
            return None;
        }
        let mut inputs: Vec<u64> = merge.inputs.iter().copied().filter(is_there).collect();
        inputs.pop().map(|oldest| LastMerge { oldest, inputs, ..merge.clone() })
    }
}

/// Returns the value files whose values a merge into the last level moves. No more values are
/// appended to them.
fn values_to_move(tree: &OpenTree, version: &Version) -> Arc<BTreeSet<u64>> {
    let values = &tree.table_files.values;
    let moved = tree.values_to_move(version);
    let held = moved.iter().filter_map(|file| values.store.held(*file).ok());
    held.for_each(|file| values.retire(&file));
    Arc::new(moved)
}

/// Returns what kind of queries the new parts should be tuned for.
fn query_mix(tree: &OpenTree, parts: &Parts, job: &MergeJob) -> QueryMix {
    let before = parts
        .within(&job.range)
        .next()
        .map_or_else(QueryMix::default, |(_, part)| part.query_mix());
    if !tree.table_files.options.learn_questions {
        return before;
    }
    tree.query_mix.mix(&tree.counters, before, job.range.from.is_empty())
}

/// Returns the approximate number of keys in a part that the merge builds.
fn keys_of_part(inputs: &[PlacedRun], options: &Options) -> u64 {
    let sum = |of: fn(&Run) -> u64| inputs.iter().map(|placed| of(&placed.run)).sum::<u64>();
    sum(Run::likely_keys) / (sum(Run::bytes) / options.partition_bytes).max(1)
}

/// Returns the ranges of a merge's submerges. There is only one if no other thread could run a
/// second one, or if the guard takes every key.
fn submerges(
    options: &Options,
    job: &MergeJob,
    inputs: &[PlacedRun],
) -> Result<Vec<SubmergeRange>> {
    if !options.subdivides() {
        return Ok(undivided(&job.range, inputs));
    }
    let division = (job.target == Target::Last).then(|| options.division());
    divided(&job.range, inputs, options.merge_piece_bytes, division)
}

/// Returns the smallest flush whose entries are not all in the oldest run.
fn least_newer(layout: &Layout) -> FlushNumber {
    let Some((oldest, newer)) = layout.runs.split_last() else { return layout.next_flush };
    // If everything below a run was deleted, it becomes the oldest, but its span does not begin at
    // 0 until it is merged.
    let of_oldest = oldest.tables.iter().filter(|table| table.span.lo() > FlushNumber(0));
    let of_newer = newer.iter().flat_map(|run| &run.tables);
    of_newer.chain(of_oldest).map(|table| table.span.lo()).min().unwrap_or(layout.next_flush)
}

/// Returns the first flush that may have something newer than what the oldest reader sees. Conflict
/// detection (`write::conflicts`) asks for newer entries by this flush, not by sequence number.
/// None: the flush is not known any more, or is too far back.
fn needed_by_readers(layout: &Layout, oldest: Option<Sequence>) -> Option<FlushNumber> {
    let first = Sequence(oldest?.0.saturating_add(1));
    let flush = layout.flush_of(first)?;
    (layout.next_flush.0 - flush.0 <= FLUSHES_KEPT).then_some(flush)
}

/// The number of flushes whose first sequence numbers are kept for readers. Without these, more
/// blocks are read.
const FLUSHES_KEPT: u64 = 4096;

/// Returns the id and span of the run that an edit adds, if it adds one.
pub(crate) fn run_of(edit: &Edit) -> Option<(u64, Span)> {
    let id = edit.added.first()?.run;
    edit.added.iter().map(|table| table.span).reduce(Span::hull).map(|span| (id, span))
}
