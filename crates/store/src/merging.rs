//! A merge: a stretch of runs becomes one run, step by step.
//! ```text
//! inner merge   read, keep, write -> install; the guard stays as it is, but for garbage (and codes that are runs)
//! oldest run    read, keep, write, and build the part's base on the way
//!               -> carry over the runs that were not inputs -> install
//! ```
//! Filters that know in which run each key is are told of every key: see `located_merge`.
//! Invariants: an inner merge adds nothing to the guard. A merge into the oldest run rebuilds
//! it; flushes that are installed meanwhile are carried over, in rounds outside the lock, the last
//! one under it (ordering rule 3).

use std::path::Path;
use std::time::Instant;

use trommel_filters::{FlushNumber, Part, PartBuilder, RunCodes, Span};

use crate::budget::filter_bits;
use crate::compaction::{MergeJob, OverlayShare, Target, last_level, overlay_share};
use crate::core::Core;
use crate::cursor::Cursor;
use crate::entry::Sequence;
use crate::environment::PausePoint;
use crate::error::{Error, Result};
use crate::flush::same_part;
use crate::guard::{Guard, Parts};
use crate::layout::{Edit, Layout, RunRecord, flush_of};
use crate::located;
use crate::located_merge::LocatedMerge;
use crate::merge::MergeCursor;
use crate::options::Options;
use crate::output::{RunOutput, RunWriter, RunWriterState};
use crate::retention::Retention;
use crate::sync::Arc;
use crate::tombstones::RangeTombstones;
use crate::user_keys::{KeyList, for_each_key_of, keys_by_flush};
use crate::version::{PlacedRun, Version};

/// Entries that one step of a merge reads.
const STEP_ENTRIES: usize = 4096;
/// Rounds of carrying over that are tried outside the lock.
const ROUNDS_OUTSIDE: usize = 3;

/// A merge on its way.
pub(crate) struct MergeTask {
    job: MergeJob,
    inputs: Vec<PlacedRun>,
    cursor: MergeCursor,
    retention: Retention,
    writer: RunWriterState,
    base: Option<BaseBuilder>,
    located: Option<LocatedMerge>,
    /// The keys that outlive an inner merge, if the guard's codes are runs.
    recoded: Option<KeyList>,
    /// Bytes of entries that were read since someone asked.
    read_bytes: u64,
}

/// Builds the base of a part from the keys that outlive the merge.
struct BaseBuilder {
    builder: PartBuilder,
    /// Keys wait here, so that the clock is asked once for many of them.
    waiting: KeyList,
    last: Option<Vec<u8>>,
}

impl MergeTask {
    pub(crate) fn new(core: &Core, job: MergeJob) -> Result<Self> {
        let version = core.current.hold();
        let inputs = version.runs_of(&job.inputs);
        assert_eq!(inputs.len(), job.inputs.len(), "a merge's inputs stay until it is installed");
        let bottom = job.target == Target::Last;
        let retention = Retention::new(
            core.snapshots.copy(),
            bottom,
            core.env.clock.since_epoch(),
            tombstones_of(&inputs),
        );
        core.env.pauses.at(PausePoint::MergeStarted);
        let cursors = inputs.iter().map(|placed| {
            let cursor: Box<dyn Cursor + Send> = Box::new(placed.run.cursor().fill_cache(false));
            cursor
        });
        let cursor = MergeCursor::new(cursors.collect())?;
        let entries = inputs.iter().map(|placed| placed.run.entry_count()).sum();
        let writer = RunWriterState::with_filter_bits(filter_bits(core, &job.inputs, entries));
        let writer = writer.deleting(retention.kept_tombstones());
        let base = version.guard.part().filter(|_| bottom).map(|part| {
            let entries = |placed: &PlacedRun| core.run_record(placed.id).entries();
            let (_, inner) = inputs.split_last().expect("a merge has inputs");
            let inner: Vec<RunRecord> =
                inner.iter().map(|placed| core.run_record(placed.id)).collect();
            let schedule = core.shelf.options.schedule();
            let last_entries = inputs.iter().map(entries).sum();
            let inner: Vec<&RunRecord> = inner.iter().collect();
            let share = overlay_share(&inner, last_entries, &schedule);
            BaseBuilder::new(part, share)
        });
        let located = LocatedMerge::new(core, &version, &inputs, job.target);
        let is_recoded = |part: &&Arc<Part>| part.options().run_codes == RunCodes::Huffman;
        let recoded = version.guard.part().filter(|_| !bottom).filter(is_recoded);
        let recoded = recoded.map(|_| KeyList::default());
        Ok(MergeTask {
            job,
            inputs,
            cursor,
            retention,
            writer,
            base,
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
                writer.add(&entry)?;
                if let Some(keys) = &mut self.recoded
                    && keys.last() != Some(entry.key)
                {
                    keys.push(entry.key);
                }
                if let Some(base) = &mut self.base {
                    base.push(entry.key, core);
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
        let inputs = &self.job.inputs;
        let mut guard = located.finish(core, inputs);
        let mut catch_up = |now: &Version| {
            let start = Instant::now();
            let caught_up = guard.catch_up(now, inputs);
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
        let guard = match remade.filter(|_| same_part(&now, &prepared_for)) {
            Some(remade) => remade,
            None => {
                catch_up(&now)?;
                if let Some(run) = run_of(&edit) {
                    guard.settle(run.0, run.1);
                }
                guard
            }
        };
        installer.install(core, &edit, &output.opened, Guard::Located(Arc::new(guard)))
    }

    /// The level of the last run after the merge.
    fn last_level(&self, core: &Core, output: &RunOutput) -> usize {
        let (oldest, inner) = self.inputs.split_last().expect("a merge has inputs");
        let records = inner.iter().map(|placed| core.run_record(placed.id));
        let inner: Vec<RunRecord> = records.collect();
        let inner: Vec<&RunRecord> = inner.iter().collect();
        let schedule = core.shelf.options.schedule();
        last_level(&inner, output.entries(), &schedule).unwrap_or(oldest.level)
    }

    fn install_inner(&mut self, core: &Core, output: &RunOutput, level: usize) -> Result<()> {
        for round in 0.. {
            let prepared_for = core.current.hold();
            let prepared = self.tidied_guard(core, &prepared_for, output, level);
            core.env.pauses.at(PausePoint::MergePrepared);
            let mut installer = core.installer();
            let now = core.current.hold();
            // A flush that came meanwhile has a part without garbage wherever it added something.
            let guard = match prepared.filter(|_| same_part(&now, &prepared_for)) {
                Some(prepared) => Some(prepared),
                None if self.recoded.is_some() && round < ROUNDS_OUTSIDE => continue,
                None if self.recoded.is_some() => self.tidied_guard(core, &now, output, level),
                None => None,
            };
            let guard = guard.unwrap_or_else(|| now.guard.clone());
            let edit = self.edit(core, &now, output, level);
            installer.install(core, &edit, &output.opened, guard)?;
            let is_last = level + 1 == now.layout.level_count();
            drop((installer, now));
            if is_last {
                // As large as the last level's runs are, much would be read again at the next open.
                let _ = crate::image::write(core);
            }
            return Ok(());
        }
        unreachable!("the last round installs")
    }

    /// The guard with the output's span beside each of its keys: for codes that are runs.
    fn recoded_guard(&self, core: &Core, part: &Part, keys: &KeyList) -> Guard {
        let start = Instant::now();
        let spans: Vec<Span> = self.inputs.iter().map(PlacedRun::span).collect();
        let output = spans.iter().copied().reduce(Span::hull).expect("a merge has inputs");
        let mut recoder = part.recoder(&spans, output);
        keys.iter().for_each(|key| recoder.push(key));
        let recoded = recoder.finish();
        core.counters.guard_worked(start.elapsed());
        Guard::Global(Parts::of_one(recoded))
    }

    /// After a merge into the level above the last, or into that as another run of it, most entries need no more of their codes: the guard with their
    /// garbage collected; codes that are runs are rewritten by every merge. None: nothing to do.
    fn tidied_guard(
        &self,
        core: &Core,
        version: &Version,
        output: &RunOutput,
        level: usize,
    ) -> Option<Guard> {
        let part = version.guard.part()?;
        if let Some(keys) = &self.recoded {
            return Some(self.recoded_guard(core, part, keys));
        }
        if level + 2 < version.layout.level_count() {
            return None;
        }
        let merged = version.layout.apply(&self.edit(core, version, output, level)).ok()?;
        let start = Instant::now();
        let tidied = part.collect_garbage(&merged.shape());
        core.counters.guard_worked(start.elapsed());
        Some(Guard::Global(Parts::of_one(tidied)))
    }

    /// Rebuilds the guard, and installs it when no run is missing in it.
    fn install_last(&mut self, core: &Core, output: &RunOutput) -> Result<()> {
        let level = self.last_level(core, output);
        let mut part = self.base.take().map(|base| base.finish(core, self.base_end(core, output)));
        let mut carried = self.job.inputs.clone();
        for _ in 0..ROUNDS_OUTSIDE {
            let now = core.current.hold();
            carry_over(core, &now, &mut carried, &mut part)?;
        }
        core.env.pauses.at(PausePoint::MergePrepared);
        let mut installer = core.installer();
        let now = core.current.hold();
        carry_over(core, &now, &mut carried, &mut part)?;
        let edit = self.edit(core, &now, output, level);
        let guard = part.map_or(now.guard.clone(), |part| Guard::Global(Parts::of_one(part)));
        installer.install(core, &edit, &output.opened, guard)?;
        drop((installer, now));
        // The merge is done. Without an image the filter is read from the runs at the next open.
        let _ = crate::image::write(core);
        Ok(())
    }

    /// B of the design: the largest end of the output's spans.
    fn base_end(&self, core: &Core, output: &RunOutput) -> FlushNumber {
        let layout = &core.current.hold().layout;
        let ends = output.tables.iter().map(|(_, t)| self.span(layout, t.sequences).hi());
        ends.max().unwrap_or(FlushNumber(0))
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
        let inputs = self.inputs.iter().flat_map(|placed| placed.run.tables());
        let run = output.tables.first().map_or(0, |(file, _)| *file);
        let newer = now.runs.iter().take_while(|placed| !self.job.inputs.contains(&placed.id));
        let least_newer = newer.map(|placed| placed.span().lo()).min();
        let last = self.job.target == Target::Last;
        Edit {
            removed: inputs.map(|table| table.table.file()).collect(),
            added: output.records(run, level, |sequences| self.span(&now.layout, sequences)),
            forget_below: last.then(|| least_newer.unwrap_or(now.layout.next_flush)),
            next_file: Some(core.shelf.next_file()),
            ..Edit::default()
        }
    }
}

/// The ranges that runs delete.
fn tombstones_of(runs: &[PlacedRun]) -> RangeTombstones {
    let tables = runs.iter().flat_map(|placed| placed.run.tables());
    RangeTombstones::of(tables.flat_map(|table| table.table.tombstones().pieces()))
}

impl BaseBuilder {
    /// The base of the part that takes the place of `old`.
    fn new(old: &Part, overlay_share: Option<OverlayShare>) -> Self {
        let builder = part_builder(old, overlay_share);
        BaseBuilder { builder, waiting: KeyList::default(), last: None }
    }

    fn push(&mut self, key: &[u8], core: &Core) {
        match &mut self.last {
            Some(last) if last == key => return,
            Some(last) => key.clone_into(last),
            None => self.last = Some(key.to_vec()),
        }
        self.waiting.push(key);
        if self.waiting.len() == STEP_ENTRIES {
            self.flush(core);
        }
    }

    fn flush(&mut self, core: &Core) {
        let start = Instant::now();
        self.waiting.iter().for_each(|key| self.builder.push(key));
        self.waiting.clear();
        core.counters.guard_worked(start.elapsed());
    }

    fn finish(mut self, core: &Core, base_end: FlushNumber) -> Part {
        self.flush(core);
        core.counters.rebuilt(self.builder.peak_bytes());
        let start = Instant::now();
        let part = self.builder.finish(base_end);
        core.counters.guard_worked(start.elapsed());
        part
    }
}

/// The run that an edit adds: its id and span. None: none.
pub(crate) fn run_of(edit: &Edit) -> Option<(u64, Span)> {
    let id = edit.added.first()?.run;
    edit.added.iter().map(|table| table.span).reduce(Span::hull).map(|span| (id, span))
}

/// Builds what takes the place of a part.
fn part_builder(old: &Part, overlay_share: Option<OverlayShare>) -> PartBuilder {
    match overlay_share {
        Some(OverlayShare { now, full }) => {
            PartBuilder::with_overlay_shares(old.options(), now, full)
        }
        None => PartBuilder::new(old.options()),
    }
}

/// Inserts the keys of all runs of `now` that are not in `carried` yet, from old to new.
fn carry_over(
    core: &Core,
    now: &Version,
    carried: &mut Vec<u64>,
    part: &mut Option<Part>,
) -> Result<()> {
    let Some(part) = part else {
        return Ok(());
    };
    let missing = now.runs.iter().rev().filter(|placed| !carried.contains(&placed.id));
    for placed in missing.collect::<Vec<_>>() {
        let start = Instant::now();
        *part = insert_run(part, placed, &now.layout)?;
        core.counters.guard_worked(start.elapsed());
        carried.push(placed.id);
    }
    Ok(())
}

/// The part with a run's keys in it, each with its own flush as its code.
pub(crate) fn insert_run(part: &Part, placed: &PlacedRun, layout: &Layout) -> Result<Part> {
    let mut cursor = placed.run.cursor().fill_cache(false);
    insert_entries(part, &mut cursor, placed.run.path(), layout, FlushNumber(0))
}

/// The part with the keys of all entries whose flush is not below `from`, each with that flush as its code.
pub(crate) fn insert_entries(
    part: &Part,
    cursor: &mut dyn Cursor,
    path: &Path,
    layout: &Layout,
    from: FlushNumber,
) -> Result<Part> {
    let mut lists = keys_by_flush(cursor, path, |sequence| {
        let unknown = || Error::corrupt(path, 0, "an entry of a flush that is not on record");
        layout.flush_of(sequence).ok_or_else(unknown)
    })?;
    let shape = layout.shape();
    let insert = |part: Part, (flush, keys): (FlushNumber, KeyList)| {
        let mut inserter = part.inserter(flush, &shape);
        keys.iter().for_each(|key| inserter.push(key));
        inserter.finish()
    };
    Ok(lists.split_off(&from).into_iter().fold(part.clone(), insert))
}

/// The guard of a tree, read from its runs: the oldest is the base, the others go on top.
pub(crate) fn rebuild_guard(options: &Options, version: &Version) -> Result<Guard> {
    let parts = match &version.guard {
        Guard::Open | Guard::PerTable => return Ok(version.guard.clone()),
        Guard::Located(guard) => {
            let (rebuilt, _) = located::rebuild(guard.kind(), options, version)?;
            return Ok(Guard::Located(Arc::new(rebuilt)));
        }
        Guard::Global(parts) => parts,
    };
    let Some((oldest, newer)) = version.runs.split_last() else {
        return Ok(version.guard.clone());
    };
    let records = version.layout.runs.split_last();
    let share = records.and_then(|(oldest, inner)| {
        let inner: Vec<&RunRecord> = inner.iter().collect();
        overlay_share(&inner, oldest.entries(), &options.schedule())
    });
    let mut builder = part_builder(parts.whole(), share);
    for_each_key_of(&oldest.run, |key| builder.push(key))?;
    let mut part = builder.finish(oldest.span().hi());
    for placed in newer.iter().rev() {
        part = insert_run(&part, placed, &version.layout)?;
    }
    Ok(Guard::Global(Parts::of_one(part)))
}
