//! A merge: a stretch of runs becomes one run, or in a range of keys a piece of one, step by step.
//! ```text
//! inner merge   read, keep, write -> install; the guard stays as it is, but for garbage (and codes that are runs)
//! oldest run    read, keep, write, and build the parts of the filter on the way
//!               -> carry over the runs that were not inputs -> install
//! key range     of the inputs, what lies in it is read; tables across its ends are trimmed, not rewritten
//! one table     of a run, and what it meets in the next one; if that is nothing, the table only gets another place
//! ```
//! Filters that know in which run each key is are told of every key: see `located_merge`.
//! Invariants: an inner merge adds nothing to the guard. A merge into the oldest run rebuilds
//! it, where its keys are; flushes that are installed meanwhile are carried over, in rounds outside the lock, the last
//! one under it (ordering rule 3).

use std::time::Instant;

use trommel_filters::{FlushNumber, RunCodes, Span};

use crate::budget::filter_bits;
use crate::compaction::{MergeJob, Target, flush_entries, last_level, overlay_share};
use crate::core::Core;
use crate::cursor::Cursor;
use crate::entry::Sequence;
use crate::environment::PausePoint;
use crate::error::Result;
use crate::guard::Guard;
use crate::guard_parts::PartChange;
use crate::key_bounds::KeyBounds;
use crate::layout::{CutsEdit, Edit, LastMerge, Layout, RunRecord, TableRecord, flush_of};
use crate::located;
use crate::located_merge::LocatedMerge;
use crate::merge::MergeCursor;
use crate::merge_inputs::{Pieces, only_table, tombstones_of};
use crate::merge_parts::{PartsBuilder, PreparedParts};
use crate::output::{RunOutput, RunWriter, RunWriterState};
use crate::partial;
use crate::partitions::{Cutter, Granularity, RangeJob, as_begun};
use crate::retention::Retention;
use crate::sync::Arc;
use crate::user_keys::KeyList;
use crate::version::{PlacedRun, Version};

/// Entries that one step of a merge reads.
const STEP_ENTRIES: usize = 4096;
/// Rounds of carrying over that are tried outside the lock.
const ROUNDS_OUTSIDE: usize = 3;

/// A merge on its way.
pub(crate) struct MergeTask {
    job: MergeJob,
    range: KeyBounds,
    noted: Option<LastMerge>,
    /// The output becomes a piece of the oldest input.
    joins: bool,
    /// Of the inputs, what is merged: those that have something there, newest first.
    inputs: Vec<PlacedRun>,
    /// Of the inputs, what lies in the range and is not merged.
    staying: Vec<PlacedRun>,
    /// The only input, if it is one table that goes as it is to the place of the output.
    moves: Option<TableRecord>,
    /// What the inputs were when the merge began, with all ranges: the oldest run's entries, and the others.
    begun: Begun,
    /// Files whose tables leave the inputs, and what stays of them.
    removed: Vec<u64>,
    trimmed: Vec<TableRecord>,
    cursor: MergeCursor,
    retention: Retention,
    writer: RunWriterState,
    cutter: Cutter,
    parts: Option<PartsBuilder>,
    located: Option<LocatedMerge>,
    /// The keys that outlive an inner merge, if the guard's codes are runs.
    recoded: Option<KeyList>,
    /// Bytes of entries that were read since someone asked.
    read_bytes: u64,
}

/// What the levels are told by.
struct Begun {
    /// Entries of a usual flush. None: that is not known.
    flush_entries: Option<f64>,
    /// The oldest of the inputs.
    oldest: RunRecord,
}

impl Begun {
    fn of(core: &Core, job: &RangeJob, layout: &Layout) -> Begun {
        let (&oldest, inner) = job.merge.inputs.split_last().expect("a merge has inputs");
        let flush_entries = match (&job.noted, core.shelf.options.division().granularity) {
            (_, Granularity::Partial) => partial::flush_entries(layout),
            (Some(noted), _) => flush_entries([&as_begun(noted)]),
            (None, _) => {
                let is_inner = |run: &&RunRecord| inner.contains(&run.id);
                flush_entries(layout.runs.iter().filter(is_inner))
            }
        };
        Begun { flush_entries, oldest: core.run_record(oldest) }
    }
}

impl MergeTask {
    pub(crate) fn new(core: &Core, job: RangeJob) -> Result<Self> {
        let version = core.current.hold();
        let begun = Begun::of(core, &job, &version.layout);
        let RangeJob { merge: job, range, noted, moved, joins } = job;
        let whole = version.runs_of(&job.inputs);
        assert_eq!(whole.len(), job.inputs.len(), "a merge's inputs stay until it is installed");
        let bottom = job.target == Target::Last;
        let snapshots = core.snapshots.copy();
        core.env.pauses.at(PausePoint::MergeStarted);
        let pieces = Pieces::of(&version.layout, &whole, &moved, joins.then_some(&range))?;
        let Pieces { inputs, staying, removed, trimmed } = pieces;
        let tombstones = tombstones_of(&inputs, &snapshots);
        let retention = Retention::new(snapshots, bottom, core.env.clock.since_epoch(), tombstones);
        let cursors = inputs.iter().map(|placed| {
            let cursor: Box<dyn Cursor + Send> = Box::new(placed.run.cursor().fill_cache(false));
            cursor
        });
        let cursor = MergeCursor::new(cursors.collect())?;
        // Of all ranges: filters and parts are made for the run, not for a piece of it.
        let entries = whole.iter().map(|placed| placed.run.entry_count()).sum();
        let writer = RunWriterState::with_filter_bits(filter_bits(core, &job.inputs, entries));
        let writer = writer.deleting(retention.kept_tombstones());
        let parts = version.guard.parts().filter(|_| bottom).map(|parts| {
            let schedule = core.shelf.options.schedule();
            let share = begun.flush_entries.map(|flush| overlay_share(flush, entries, &schedule));
            PartsBuilder::new(parts.options(), share, &range.from)
        });
        let cutter = match bottom {
            true => {
                let bytes = inputs.iter().map(|placed| placed.run.bytes()).sum();
                Cutter::new(core.shelf.options.division(), bytes)
            }
            false => Cutter::none(),
        };
        let located = LocatedMerge::new(core, &version, &inputs, (job.target, &range));
        let parts_of_version = version.guard.parts().filter(|_| !bottom);
        let recoded = parts_of_version.filter(|p| p.options().run_codes == RunCodes::Huffman);
        let recoded = recoded.map(|_| KeyList::default());
        let is_as_it_was = !bottom && recoded.is_none() && trimmed.is_empty();
        let moves =
            only_table(&version.layout, &inputs).filter(|_| is_as_it_was && !moved.is_all());
        let moves = moves.map(|record| {
            let run = if joins { begun.oldest.id } else { core.shelf.new_file() };
            TableRecord { run, ..record }
        });
        Ok(MergeTask {
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
            cursor,
            retention,
            writer,
            cutter,
            parts,
            located,
            recoded,
            read_bytes: 0,
        })
    }

    /// Bytes of entries that were read since the last call.
    pub(crate) fn take_read_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.read_bytes)
    }

    /// One step: some entries, or at the end installing. True: the merge is done.
    pub(crate) fn step(&mut self, core: &Core) -> Result<bool> {
        if self.moves.is_some() {
            self.install(core, &RunOutput::default())?;
            return Ok(true);
        }
        let mut writer = RunWriter::new(&core.shelf, std::mem::take(&mut self.writer));
        for _ in 0..STEP_ENTRIES {
            let Some(entry) = self.cursor.entry() else {
                let output = writer.finish()?;
                core.counters.merged(output.bytes(), output.filter_seconds());
                self.install(core, &output)?;
                return Ok(true);
            };
            self.read_bytes += (entry.key.len() + entry.value.len()) as u64;
            let keeps = self.retention.keeps(&entry);
            if let Some(located) = &mut self.located {
                located.saw(entry.key, self.cursor.input(), keeps, core);
            }
            if keeps {
                let written = writer.written_bytes();
                if self.cutter.is_due(written) && writer.is_new(entry.key) {
                    writer.cut(entry.key)?;
                    self.cutter.cut(writer.written_bytes(), entry.key);
                    if let Some(parts) = &mut self.parts {
                        parts.cut(core, entry.key);
                    }
                }
                writer.add(&entry)?;
                if let Some(keys) = &mut self.recoded
                    && keys.last() != Some(entry.key)
                {
                    keys.push(entry.key);
                }
                if let Some(parts) = &mut self.parts {
                    parts.push(entry.key, core);
                }
            }
            self.cursor.next()?;
        }
        self.writer = writer.pause();
        Ok(false)
    }

    fn install(&mut self, core: &Core, output: &RunOutput) -> Result<()> {
        if let Some(located) = self.located.take() {
            return self.install_located(core, output, located);
        }
        match self.job.target {
            Target::Inner(level) => self.install_inner(core, output, level),
            Target::Last => self.install_last(core, output),
        }
    }

    /// Installs the guard that the merge has told of every key, when no run is missing in it.
    fn install_located(
        &self,
        core: &Core,
        output: &RunOutput,
        located: LocatedMerge,
    ) -> Result<()> {
        let level = match self.job.target {
            Target::Inner(level) => level,
            Target::Last => self.last_level(core, output),
        };
        let gone = self.gone(core, output, level);
        let mut guard = located.finish(core, &gone);
        let mut catch_up = |now: &Version| {
            let start = Instant::now();
            let caught_up = guard.catch_up(now, &gone);
            core.counters.guard_worked(start.elapsed());
            caught_up
        };
        for _ in 0..ROUNDS_OUTSIDE {
            catch_up(&core.current.hold())?;
        }
        let prepared_for = core.current.hold();
        let start = Instant::now();
        let edit_then = self.edit(core, &prepared_for, output, level);
        let remade = located::remade(core, &prepared_for, &edit_then, &output.opened);
        core.counters.guard_worked(start.elapsed());
        core.env.pauses.at(PausePoint::MergePrepared);
        let mut installer = core.installer();
        let now = core.current.hold();
        let edit = self.edit(core, &now, output, level);
        // A view that does not know the newest flush is of no use: notes do until the next one.
        let guard = match remade.filter(|_| now.guard.is_same(&prepared_for.guard)) {
            Some(remade) => remade,
            None => {
                catch_up(&now)?;
                match now.layout.apply(&edit) {
                    Ok(layout) => guard.settle(&layout),
                    // The installer says what is wrong.
                    Err(_) => guard.settle(&now.layout),
                }
                guard
            }
        };
        installer.install(core, &edit, &output.opened, Guard::Located(Arc::new(guard)))
    }

    /// The inputs that have nothing left after the merge.
    fn gone(&self, core: &Core, output: &RunOutput, level: usize) -> Vec<u64> {
        let now = core.current.hold();
        let merged = now.layout.apply(&self.edit(core, &now, output, level));
        let stays = |id: &u64| {
            merged.as_ref().is_ok_and(|after| after.runs.iter().any(|run| run.id == *id))
        };
        self.job.inputs.iter().copied().filter(|id| !stays(id)).collect()
    }

    /// The level of the last run after the merge: until all ranges are done, that which it has.
    fn last_level(&self, core: &Core, output: &RunOutput) -> usize {
        let oldest = &self.begun.oldest;
        let is_done = self.noted.as_ref().is_none_or(|noted| noted.done_to.is_empty());
        let Some(flush_entries) = self.begun.flush_entries.filter(|_| is_done) else {
            return oldest.level;
        };
        let merged: u64 = oldest.within(&self.range).iter().map(|table| table.entries).sum();
        let entries = output.entries() + oldest.entries().saturating_sub(merged);
        last_level(flush_entries, entries, &core.shelf.options.schedule())
    }

    fn install_inner(&mut self, core: &Core, output: &RunOutput, level: usize) -> Result<()> {
        for round in 0.. {
            let prepared_for = core.current.hold();
            let prepared = self.tidied_parts(core, &prepared_for, output, level);
            core.env.pauses.at(PausePoint::MergePrepared);
            let mut installer = core.installer();
            let now = core.current.hold();
            let Some(parts) = now.guard.parts() else {
                let edit = self.edit(core, &now, output, level);
                return installer.install(core, &edit, &output.opened, now.guard.clone());
            };
            // A flush that came meanwhile has a part without garbage wherever it added something. But codes that are runs
            // must all be written.
            let changes = if self.recoded.is_none() || parts.all_fit(&prepared) {
                prepared
            } else if round < ROUNDS_OUTSIDE {
                continue;
            } else {
                self.tidied_parts(core, &now, output, level)
            };
            let guard = Guard::Global(parts.with_fitting(&changes));
            let edit = self.edit(core, &now, output, level);
            installer.install(core, &edit, &output.opened, guard)?;
            let is_last = level + 1 == now.layout.level_count();
            drop((installer, now));
            if is_last {
                // As large as the last level's runs are, much would be read again at the next open.
                let _ = crate::image::write(core, &self.range);
            }
            return Ok(());
        }
        unreachable!("the last round installs")
    }

    /// After a merge into the level above the last, or into that as another run of it, most entries need no more of their
    /// codes: the parts with their
    /// garbage collected; codes that are runs are rewritten by every merge.
    fn tidied_parts(
        &self,
        core: &Core,
        version: &Version,
        output: &RunOutput,
        level: usize,
    ) -> Vec<PartChange> {
        let Some(parts) = version.guard.parts() else { return Vec::new() };
        let start = Instant::now();
        let changes = if let Some(keys) = &self.recoded {
            let spans: Vec<Span> = self.inputs.iter().map(PlacedRun::span).collect();
            let output = spans.iter().copied().reduce(Span::hull).expect("a merge has inputs");
            parts.changes(keys, |_, part, keys| {
                let mut recoder = part.recoder(&spans, output);
                keys.for_each(|key| recoder.push(key));
                recoder.finish()
            })
        } else if level + 2 >= version.layout.level_count() {
            let merged = version.layout.apply(&self.edit(core, version, output, level));
            let Ok(merged) = merged else { return Vec::new() };
            parts.changes_within(&self.range, |bounds, part| {
                part.collect_garbage(&merged.shape_within(bounds))
            })
        } else {
            return Vec::new();
        };
        core.counters.guard_worked(start.elapsed());
        changes
    }

    /// Rebuilds the guard where the merge's keys are, and installs it when no run is missing in it.
    fn install_last(&mut self, core: &Core, output: &RunOutput) -> Result<()> {
        let level = self.last_level(core, output);
        let mut prepared = self.parts.take().map(|parts| PreparedParts {
            range: self.range.clone(),
            parts: parts.finish(core),
            inputs: self.job.inputs.clone(),
            watermark: FlushNumber(0),
        });
        if let Some(prepared) = &mut prepared {
            let now = core.current.hold();
            self.staying.iter().rev().try_for_each(|run| prepared.insert(core, run, &now))?;
        }
        let mut carry_over = |now: &Version| match &mut prepared {
            Some(prepared) => prepared.carry_over(core, now),
            None => Ok(()),
        };
        for _ in 0..ROUNDS_OUTSIDE {
            carry_over(&core.current.hold())?;
        }
        core.env.pauses.at(PausePoint::MergePrepared);
        let mut installer = core.installer();
        let now = core.current.hold();
        carry_over(&now)?;
        let edit = self.edit(core, &now, output, level);
        let guard = match (now.guard.parts(), prepared) {
            (Some(parts), Some(new)) => Guard::Global(parts.replaced(&self.range, new.parts)),
            _ => now.guard.clone(),
        };
        installer.install(core, &edit, &output.opened, guard)?;
        drop((installer, now));
        // The merge is done. Without an image the filter is read from the runs at the next open.
        let _ = crate::image::write(core, &self.range);
        Ok(())
    }

    /// The span of surviving entries with these sequence numbers.
    fn span(&self, layout: &Layout, (least, greatest): (Sequence, Sequence)) -> Span {
        let spans = self.inputs.iter().map(PlacedRun::span);
        let hull = spans.reduce(Span::hull).expect("a merge has inputs");
        let lo = flush_of(&layout.flushes, least).unwrap_or(hull.lo()).max(hull.lo());
        let lo = if self.job.target == Target::Last { FlushNumber(0) } else { lo };
        // An entry older than every recorded flush came from the oldest run.
        let oldest_end = self.inputs.last().map_or(hull.hi(), |placed| placed.span().hi());
        let hi = flush_of(&layout.flushes, greatest).map_or(oldest_end, FlushNumber::next);
        Span::new(lo, hi.min(hull.hi())).expect("an entry's flush lies in its run's span")
    }

    fn edit(&self, core: &Core, now: &Version, output: &RunOutput, level: usize) -> Edit {
        let last = self.job.target == Target::Last;
        let new_run = output.tables.first().map_or(0, |(file, _)| *file);
        // What a range is merged into stays the run that it is.
        let run = if self.joins { self.begun.oldest.id } else { new_run };
        let merged = match &self.moves {
            Some(record) => vec![TableRecord { level, ..record.clone() }],
            None => output.records(run, level, |sequences| self.span(&now.layout, sequences)),
        };
        let cuts = CutsEdit { within: self.range.clone(), cuts: self.cutter.cuts.clone() };
        let edit = Edit {
            removed: self.removed.clone(),
            added: self.trimmed.iter().cloned().chain(merged).collect(),
            next_file: Some(core.shelf.next_file()),
            cuts: last.then_some(cuts),
            last_merge: self.noted.clone(),
            ..Edit::default()
        };
        let forget_below = last.then(|| least_newer(&now.layout, &edit));
        Edit { forget_below, ..edit }
    }
}

/// The least flush whose entries are not all in the oldest run, after an edit.
fn least_newer(layout: &Layout, edit: &Edit) -> FlushNumber {
    let Ok(after) = layout.apply(edit) else { return FlushNumber(0) };
    let Some((oldest, newer)) = after.runs.split_last() else { return layout.next_flush };
    // A run that became the oldest since all below it was deleted does not begin at 0 until it is merged.
    let of_oldest = oldest.tables.iter().filter(|table| table.span.lo() > FlushNumber(0));
    let of_newer = newer.iter().flat_map(|run| &run.tables);
    of_newer.chain(of_oldest).map(|table| table.span.lo()).min().unwrap_or(layout.next_flush)
}

/// The run that an edit adds: its id and span. None: none.
pub(crate) fn run_of(edit: &Edit) -> Option<(u64, Span)> {
    let id = edit.added.first()?.run;
    edit.added.iter().map(|table| table.span).reduce(Span::hull).map(|span| (id, span))
}
