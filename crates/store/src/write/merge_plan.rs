//! A merge: a stretch of runs becomes one run, or in a range of keys a part of one; what is fixed
//! when it begins.
//! ```text
//! plan          inputs in the range, pieces of it, what snapshots see
//! piece         read, keep, write, tell the filter              write/submerge.rs, several beside each other
//! install       all pieces at once                              merge_install.rs
//! key range     of the inputs, what lies in it is read; tables across its ends are trimmed, not rewritten
//! one table     of a run, and what it meets in the next one; if that is nothing, the table only gets another place
//! ```
//! Invariant: a plan fits whatever version is the newest when the merge is installed, since nobody
//! else takes its runs.

use std::time::Duration;

use trommel_filters::{FlushNumber, RunCodes, Span};

use crate::entries::entry::Sequence;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::retention::Retention;
use crate::error::Result;
use crate::files::placed_run::PlacedRun;
use crate::guard::monkey::filter_bits;
use crate::plan::layout::{CutsEdit, Edit, LastMerge, Layout, RunRecord, TableRecord, flush_of};
use crate::plan::options::Options;
use crate::plan::partitions::{Granularity, RangeJob, as_begun};
use crate::plan::pick_runs::{MergeJob, Target, flush_entries, last_level, overlay_share};
use crate::plan::pick_tables;
use crate::storage::environment::PausePoint;
use crate::tree::open_tree::OpenTree;
use crate::tree::run_writer::RunOutput;
use crate::tree::version::Version;
use crate::write::locator_merge::LocatedMerge;
use crate::write::merge_inputs::{MergeInputs, only_table, tombstones_of};
use crate::write::merge_install::Merged;
use crate::write::parts_builder::PartsBuilder;
use crate::write::split_merge::{PieceBounds, divided, undivided};

/// A merge that has begun: what its pieces have in common. It does not change, but for the parts of
/// a filter that they build.
pub(crate) struct MergePlan {
    pub(crate) job: MergeJob,
    pub(crate) range: KeyBounds,
    noted: Option<LastMerge>,
    /// The output becomes a piece of the oldest input.
    joins: bool,
    /// Of the inputs, what is merged: those that have something there, newest first.
    pub(crate) inputs: Vec<PlacedRun>,
    /// Of the inputs, what lies in the range and is not merged.
    pub(crate) staying: Vec<PlacedRun>,
    /// The only input, if it is one table that goes as it is to the place of the output.
    moves: Option<TableRecord>,
    /// What the inputs were when the merge began, with all ranges: the oldest run's entries, and
    /// the others.
    begun: Begun,
    /// Files whose tables leave the inputs, and what stays of them.
    removed: Vec<u64>,
    trimmed: Vec<TableRecord>,
    /// The key ranges that are merged each by itself.
    pub(crate) pieces: Vec<PieceBounds>,
    /// The numbers that were registered when the merge began.
    snapshots: Vec<Sequence>,
    /// By the clock, when the merge began.
    since_epoch: Duration,
    /// Of all filters that it writes; None: as the options say.
    pub(crate) filter_bits: Option<f64>,
    /// Of a merge into the oldest run: the parts of a global filter.
    pub(crate) parts: Option<PartsBuilder>,
    /// Whether the guard's codes are runs, which an inner merge writes anew.
    pub(crate) recodes: bool,
}

/// What the levels are told by.
struct Begun {
    /// Entries of a usual flush. None: that is not known.
    flush_entries: Option<f64>,
    /// The oldest of the inputs.
    oldest: RunRecord,
}

impl Begun {
    fn of(tree: &OpenTree, job: &RangeJob, layout: &Layout) -> Begun {
        let (&oldest, inner) = job.merge.inputs.split_last().expect("a merge has inputs");
        let flush_entries = match (&job.noted, tree.table_files.options.division().granularity) {
            (_, Granularity::Partial) => pick_tables::flush_entries(layout),
            (Some(noted), _) => flush_entries([&as_begun(noted)]),
            (None, _) => {
                let is_inner = |run: &&RunRecord| inner.contains(&run.id);
                flush_entries(layout.runs.iter().filter(is_inner))
            }
        };
        Begun { flush_entries, oldest: tree.run_record(oldest) }
    }
}

impl MergePlan {
    pub(crate) fn new(tree: &OpenTree, job: RangeJob) -> Result<Self> {
        let version = tree.current.hold();
        let begun = Begun::of(tree, &job, &version.layout);
        let RangeJob { merge: job, range, noted, moved, joins } = job;
        let whole = version.runs_of(&job.inputs);
        assert_eq!(whole.len(), job.inputs.len(), "a merge's inputs stay until it is installed");
        let is_last = job.target == Target::Last;
        let (snapshots, since_epoch) = (tree.snapshots.copy(), tree.env.clock.since_epoch());
        tree.env.pauses.at(PausePoint::MergeStarted);
        let of_inputs = MergeInputs::of(&version.layout, &whole, &moved, joins.then_some(&range))?;
        let MergeInputs { inputs, staying, removed, trimmed } = of_inputs;
        // Of all ranges: filters and parts are made for the run, not for a piece of it.
        let entries = whole.iter().map(|placed| placed.run.entry_count()).sum();
        let global = version.guard.parts();
        let parts = global.filter(|_| is_last).map(|parts| {
            let schedule = tree.table_files.options.schedule();
            let share = begun.flush_entries.map(|flush| overlay_share(flush, entries, &schedule));
            PartsBuilder::new(parts.options(), share, &range.from)
        });
        let recodes = global.is_some_and(|p| p.options().run_codes == RunCodes::Huffman);
        let recodes = recodes && !is_last;
        let is_as_it_was = !is_last && !recodes && trimmed.is_empty();
        let moves =
            only_table(&version.layout, &inputs).filter(|_| is_as_it_was && !moved.is_all());
        let moves = moves.map(|record| {
            let run = if joins { begun.oldest.id } else { tree.table_files.new_file() };
            TableRecord { run, ..record }
        });
        Ok(MergePlan {
            pieces: match moves {
                Some(_) => undivided(&range, &inputs),
                None => pieces(&tree.table_files.options, &range, &inputs, is_last)?,
            },
            filter_bits: filter_bits(
                &tree.table_files.options,
                &tree.current.hold().runs,
                &job.inputs,
                entries,
            ),
            job,
            range,
            noted,
            joins,
            inputs,
            staying,
            moves,
            begun,
            removed,
            trimmed,
            snapshots,
            since_epoch,
            parts,
            recodes,
        })
    }

    /// Whether it merges into the oldest run.
    pub(crate) fn is_last(&self) -> bool {
        self.job.target == Target::Last
    }

    /// Whether there is nothing to read and to write.
    pub(crate) fn only_moves(&self) -> bool {
        self.moves.is_some()
    }

    /// What is merged of the inputs in a piece's range, newest first.
    pub(crate) fn inputs_within(&self, range: &KeyBounds) -> Result<Vec<PlacedRun>> {
        if *range == self.range {
            return Ok(self.inputs.clone());
        }
        let clipped = self.inputs.iter().map(|placed| placed.within(range));
        clipped.filter_map(Result::transpose).collect()
    }

    /// What is kept of some of the inputs.
    pub(crate) fn retention(&self, inputs: &[PlacedRun]) -> Retention {
        let tombstones = tombstones_of(inputs, &self.snapshots);
        let snapshots = self.snapshots.clone();
        Retention::new(snapshots, self.is_last(), self.since_epoch, tombstones)
    }

    /// What the merge tells a filter that knows in which run each key is. Such a merge has one
    /// piece.
    pub(crate) fn located(&self, tree: &OpenTree, inputs: &[PlacedRun]) -> Option<LocatedMerge> {
        let version = tree.current.hold();
        LocatedMerge::new(tree, &version, inputs, (self.job.target, &self.range))
    }

    /// The level of the last run after the merge: until all ranges are done, that which it has.
    pub(crate) fn last_level(&self, tree: &OpenTree, output: &RunOutput) -> usize {
        let oldest = &self.begun.oldest;
        let is_done = self.noted.as_ref().is_none_or(|noted| noted.done_to.is_empty());
        let Some(flush_entries) = self.begun.flush_entries.filter(|_| is_done) else {
            return oldest.level;
        };
        let merged: u64 = oldest.within(&self.range).iter().map(|table| table.entries).sum();
        let entries = output.entries() + oldest.entries().saturating_sub(merged);
        last_level(flush_entries, entries, &tree.table_files.options.schedule())
    }

    /// The span of surviving entries with these sequence numbers.
    fn span(&self, layout: &Layout, (least, greatest): (Sequence, Sequence)) -> Span {
        let spans = self.inputs.iter().map(PlacedRun::span);
        let hull = spans.reduce(Span::hull).expect("a merge has inputs");
        let lo = flush_of(&layout.flushes, least).unwrap_or(hull.lo()).max(hull.lo());
        let lo = if self.is_last() { FlushNumber(0) } else { lo };
        // An entry older than every recorded flush came from the oldest run.
        let oldest_end = self.inputs.last().map_or(hull.hi(), |placed| placed.span().hi());
        let hi = flush_of(&layout.flushes, greatest).map_or(oldest_end, FlushNumber::next);
        Span::new(lo, hi.min(hull.hi())).expect("an entry's flush lies in its run's span")
    }

    /// The change of the tree, for the newest version.
    pub(crate) fn edit(
        &self,
        tree: &OpenTree,
        now: &Version,
        merged: &Merged,
        level: usize,
    ) -> Edit {
        let output = &merged.run;
        let last = self.is_last();
        let new_run = output.tables.first().map_or(0, |(file, _)| *file);
        // What a range is merged into stays the run that it is.
        let run = if self.joins { self.begun.oldest.id } else { new_run };
        let added = match &self.moves {
            Some(record) => vec![TableRecord { level, ..record.clone() }],
            None => output.records(run, level, |sequences| self.span(&now.layout, sequences)),
        };
        let cuts = CutsEdit { within: self.range.clone(), cuts: merged.cuts.clone() };
        let edit = Edit {
            removed: self.removed.clone(),
            added: self.trimmed.iter().cloned().chain(added).collect(),
            next_file: Some(tree.table_files.next_file()),
            cuts: last.then_some(cuts),
            last_merge: self.noted.clone(),
            ..Edit::default()
        };
        let forget_below = last.then(|| least_newer(&now.layout, &edit));
        Edit { forget_below, ..edit }
    }
}

/// The pieces of a merge: one, if no other thread could merge one, or the guard is told of every
/// key.
fn pieces(
    options: &Options,
    range: &KeyBounds,
    inputs: &[PlacedRun],
    is_last: bool,
) -> Result<Vec<PieceBounds>> {
    if !options.subdivides() {
        return Ok(undivided(range, inputs));
    }
    divided(range, inputs, options.merge_piece_bytes, is_last.then(|| options.division()))
}

/// The least flush whose entries are not all in the oldest run, after an edit.
fn least_newer(layout: &Layout, edit: &Edit) -> FlushNumber {
    let Ok(after) = layout.apply(edit) else { return FlushNumber(0) };
    let Some((oldest, newer)) = after.runs.split_last() else { return layout.next_flush };
    // A run that became the oldest since all below it was deleted does not begin at 0 until it is
    // merged.
    let of_oldest = oldest.tables.iter().filter(|table| table.span.lo() > FlushNumber(0));
    let of_newer = newer.iter().flat_map(|run| &run.tables);
    of_newer.chain(of_oldest).map(|table| table.span.lo()).min().unwrap_or(layout.next_flush)
}

/// The run that an edit adds: its id and span. None: none.
pub(crate) fn run_of(edit: &Edit) -> Option<(u64, Span)> {
    let id = edit.added.first()?.run;
    edit.added.iter().map(|table| table.span).reduce(Span::hull).map(|span| (id, span))
}
