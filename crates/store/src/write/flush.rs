//! A flush: one sealed memtable becomes one run.
//! ```text
//! write the table -> prepare the guard for the newest version -> install, if the parts that it
//!                         ^                                        adds to are still the newest
//!                         '------------- prepare again -------------- else
//! ```
//! Invariants: flushes are installed in number order (ordering rule 1). The table is written and
//! the guard prepared outside every lock; installing is a short step (rule 3).

use std::time::{Duration, Instant};

use trommel_filters::{FlushNumber, Inserter, KeyList, Part, PartBuilder, Span};

use crate::entries::entry::Sequence;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::memtable::Memtable;
use crate::entries::merge_cursor::MergeCursor;
use crate::entries::retention::{Retention, Verdict};
use crate::error::Result;
use crate::files::distinct_keys::{TakeKeys, for_each_key};
use crate::files::placed_run::PlacedRun;
use crate::files::run::Run;
use crate::files::run_table::RunTable;
use crate::guard::parts::Parts;
use crate::guard::{Change, Guard, locator};
use crate::plan::layout::{Edit, FlushRecord, TableRecord};
use crate::storage::pauses::PausePoint;
use crate::sync::Arc;
use crate::tree::open_tree::{OpenTree, Origin};
use crate::tree::run_writer::{RunOutput, RunWriter};
use crate::tree::version::{Sealed, Version};
use crate::write::locator_merge::remade;
use crate::write::merge_plan::run_of;

/// A flush on its way.
pub(crate) struct FlushTask {
    sealed: Arc<Sealed>,
    written: Option<Box<Written>>,
    /// An attempt was made to install it: the manifest may name the table.
    may_be_named: bool,
    /// When it began, by the store's clock.
    begun: Duration,
}

/// The tables of a flush, or of what is loaded past the memtable.
pub(crate) struct Written {
    pub(crate) output: RunOutput,
    /// Its keys, for a guard that takes those of each flush: the memtable is walked once. None:
    /// they are too many for memory.
    pub(crate) keys: Option<KeyList>,
}

/// Where a guard gets the keys of a new run from.
enum NewKeys<'k> {
    Listed(&'k KeyList),
    /// From its tables.
    Stored(PlacedRun),
}

impl Written {
    /// Its keys. `edit`: the one that brings its tables into the tree.
    fn keys(&self, edit: &Edit) -> NewKeys<'_> {
        match &self.keys {
            Some(keys) => NewKeys::Listed(keys),
            None => NewKeys::Stored(self.run(edit)),
        }
    }

    /// The run of its tables. Requires: as above, and there is a table.
    fn run(&self, edit: &Edit) -> PlacedRun {
        let opened = |record: &TableRecord| {
            RunTable::of_record(Arc::clone(&self.output.opened[&record.file]), record)
        };
        let TableRecord { run: id, level, .. } = edit.added[0];
        let run = Run::new(edit.added.iter().map(opened).collect());
        PlacedRun::new(id, level, run.expect("tables were written in order"))
    }
}

/// What the manifest is to know of a new run, beside its tables.
#[derive(Clone, Copy)]
pub(crate) struct NewRun {
    pub(crate) flush: FlushNumber,
    /// Its least and its greatest sequence number.
    pub(crate) first: Sequence,
    pub(crate) last: Sequence,
    /// Whether it was a memtable.
    pub(crate) is_flushed: bool,
    /// The log with its first entry. None: it came from no log.
    pub(crate) first_log: Option<u64>,
}

impl NewRun {
    fn of(sealed: &Sealed) -> Self {
        let Sealed { first_log, first, last, flush, .. } = *sealed;
        NewRun { flush, first, last, is_flushed: true, first_log }
    }
}

/// What a step of a flush has done.
pub(crate) enum Flushed {
    Written {
        bytes: u64,
    },
    /// The flush is done: its bytes, and when it began.
    Installed {
        bytes: u64,
        begun: Duration,
    },
}

impl FlushTask {
    pub(crate) fn new(sealed: Arc<Sealed>, begun: Duration) -> Self {
        FlushTask { sealed, written: None, may_be_named: false, begun }
    }

    /// One step: writes the table, or installs it.
    pub(crate) fn step(&mut self, tree: &OpenTree) -> Result<Flushed> {
        let Some(written) = &self.written else {
            let written = Box::new(write_run(tree, &self.sealed.memtable)?);
            let written = self.written.insert(written);
            return Ok(Flushed::Written { bytes: written.output.bytes() });
        };
        // After an error the table is good, and the manifest may name it: it is not written again.
        self.may_be_named = true;
        install(tree, &NewRun::of(&self.sealed), written)?;
        if self.sealed.first_log.is_none() {
            // As of what is loaded past the logs: damage to the edit is then no torn end.
            let _ = tree.installer().repeat_edit(tree);
        }
        Ok(Flushed::Installed { bytes: written.output.bytes(), begun: self.begun })
    }

    /// The memory of its entries.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.sealed.memtable.size_bytes()
    }

    /// Removes what it has written: the store is closed, and the log has the entries.
    pub(crate) fn abandon(self, tree: &OpenTree) {
        if let Some(written) = self.written.filter(|_| !self.may_be_named) {
            written.output.abandon(&tree.table_files);
        }
    }
}

fn write_run(tree: &OpenTree, memtable: &Arc<Memtable>) -> Result<Written> {
    let takes_keys = tree.current.hold().guard.takes_flushed_keys();
    let mut keys = KeyList::default();
    let snapshots = tree.snapshots.copy();
    let ranges = memtable.ranges().visible_at(&snapshots);
    let retention = Retention::new(snapshots, false, tree.env.clock.since_epoch(), ranges);
    let mut retention = retention.merging(tree.merge_operator.get().cloned());
    let bits = tree.filter_bits(&[], memtable.len() as u64);
    let writer = RunWriter::new(&tree.table_files, retention.kept_tombstones());
    let mut writer = writer.with_filter_bits(bits);
    let mut cursor = MergeCursor::over(std::iter::once(memtable.cursor()))?;
    writer.write_kept(&mut cursor, usize::MAX, |writer, entry, _| {
        let verdict = retention.judge(entry);
        if retention.has_ready() {
            writer.add_made(retention.take_ready())?;
        }
        if verdict != Verdict::Drop && takes_keys {
            keys.push_if_new(entry.key);
        }
        Ok(verdict == Verdict::Keep)
    })?;
    retention.end();
    writer.add_made(retention.take_ready())?;
    let output = writer.finish()?;
    tree.counters.flushed(output.bytes(), output.filter_seconds());
    Ok(Written { output, keys: Some(keys) })
}

/// Gives the guard the keys of a new run, and installs both.
pub(crate) fn install(tree: &OpenTree, new: &NewRun, written: &Written) -> Result<()> {
    let output = &written.output;
    loop {
        let prepared_for = tree.current.hold();
        let change = prepare_guard(tree, &prepared_for, new, written)?;
        tree.env.pauses.at(PausePoint::FlushPrepared);
        let mut installer = tree.installer();
        let now = tree.current.hold();
        let has_same_base = now.runs.is_empty() == prepared_for.runs.is_empty();
        let fitting = now.guard.with(&change, &prepared_for.guard).filter(|_| has_same_base);
        let Some(guard) = fitting else { continue };
        let edit = edit(tree, &now, new, output);
        // Of a key space without a log change feeds tell nothing.
        let unlogged = (!new.is_flushed && tree.has_log()).then_some(new.last);
        let origin = Origin { first_log: new.first_log, unlogged };
        return installer.install_flushed(tree, &edit, origin, &output.opened, guard);
    }
}

fn edit(tree: &OpenTree, now: &Version, new: &NewRun, output: &RunOutput) -> Edit {
    let span = flush_span(now, new.flush);
    let run = output.tables.first().map_or(0, |(file, _)| *file);
    Edit {
        added: output.records(run, level_of(tree, now, new, output), |_| span),
        flushes: vec![FlushRecord { flush: new.flush, first: new.first }],
        next_file: Some(tree.table_files.next_file()),
        next_flush: Some(now.layout.next_flush.max(new.flush.next())),
        last_sequence: Some(now.layout.last_sequence.max(new.last)),
        ..Edit::default()
    }
}

/// Level 0; but what is loaded into an empty store is its last level, whose number is by its size.
fn level_of(tree: &OpenTree, now: &Version, new: &NewRun, output: &RunOutput) -> usize {
    if new.is_flushed || !now.runs.is_empty() {
        return 0;
    }
    let options = &tree.table_files.options;
    let flushes = output.bytes() as f64 / options.write_buffer_bytes as f64;
    options.schedule().level_holding(flushes)
}

/// The span of a flushed run. The oldest run begins at 0 by definition.
fn flush_span(now: &Version, flush: FlushNumber) -> Span {
    if now.runs.is_empty() {
        return Span::new(FlushNumber(0), flush.next()).expect("0 is below every end");
    }
    Span::of_flush(flush)
}

/// The guard of `version` with the flushed keys in it. The first run of a tree is its base. An
/// error: keys are to be read from tables, and cannot be.
fn prepare_guard(
    tree: &OpenTree,
    version: &Version,
    new: &NewRun,
    written: &Written,
) -> Result<Change> {
    let (start, flush) = (Instant::now(), new.flush);
    let edit = edit(tree, version, new, &written.output);
    let change = match &version.guard {
        Guard::Open | Guard::PerTable => return Ok(Change::Whole(version.guard.clone())),
        Guard::Locator(guard) => {
            let Some(run) = run_of(&edit) else { return Ok(Change::Whole(version.guard.clone())) };
            let options = &tree.table_files.options;
            let remade = remade(tree, version, &edit, &written.output.opened);
            let next = match (remade, written.keys(&edit)) {
                (Some(remade), _) => remade,
                (None, NewKeys::Listed(keys)) => locator::with_flush(guard, options, run, keys),
                (None, NewKeys::Stored(run)) => locator::with_run(guard, options, &run)?,
            };
            Change::Whole(Guard::Locator(Arc::new(next)))
        }
        Guard::Global(parts) if version.runs.is_empty() => {
            let begin = |_: &KeyBounds, part: &Part| PartBuilder::new(part.options());
            let end = |base: PartBuilder| base.finish(flush.next());
            with_keys(parts, &written.keys(&edit), begin, end)?
        }
        Guard::Global(parts) => {
            let begin = |bounds: &KeyBounds, part: &Part| {
                part.inserter(flush, &tree.shape_within(&version.layout, bounds))
            };
            with_keys(parts, &written.keys(&edit), begin, Inserter::finish)?
        }
    };
    tree.counters.guard_worked(start.elapsed());
    Ok(change)
}

/// The parts that have some of the keys, each with these. `begin`: what takes the keys of a part.
/// `end`: the part that comes of it.
fn with_keys<F: TakeKeys>(
    parts: &Parts,
    keys: &NewKeys<'_>,
    begin: impl Fn(&KeyBounds, &Part) -> F,
    end: impl Fn(F) -> Part,
) -> Result<Change> {
    let changes = match keys {
        NewKeys::Listed(keys) => parts.changes(keys, |bounds, part, keys| {
            let mut filter = begin(bounds, part);
            keys.give_to(&mut filter);
            end(filter)
        }),
        NewKeys::Stored(placed) => parts.changes_of_run(&placed.run, |bounds, part, run| {
            let mut filter = begin(bounds, part);
            for_each_key(run, |key| filter.take(key))?;
            Ok(end(filter))
        })?,
    };
    Ok(Change::Parts(changes))
}

#[cfg(test)]
mod tests;
