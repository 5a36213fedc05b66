//! A flush: one sealed memtable becomes one run.
//! ```text
//! write the table -> prepare the guard for the newest version -> install, if the parts that it
//!                         ^                                        adds to are still the newest
//!                         '------------- prepare again -------------- else
//! ```
//! Invariants: flushes are installed in the order of their numbers (ordering rule 1). Writing the
//! table and preparing the guard happen outside all locks; installing is a short step (rule 3).

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

/// A flush in progress.
pub(crate) struct FlushTask {
    sealed: Arc<Sealed>,
    written: Option<Box<Written>>,
    /// When the flush began, by the store's clock.
    begun: Duration,
}

/// The tables of a flush or of a bulk load.
pub(crate) struct Written {
    pub(crate) output: RunOutput,
    /// The keys, collected while the tables were written, for a guard that takes the keys of each
    /// flush. None: there are too many for memory.
    pub(crate) keys: Option<KeyList>,
}

/// Where a guard gets the keys of a new run.
enum NewKeys<'k> {
    Listed(&'k KeyList),
    /// They are read from the run's tables.
    Stored(PlacedRun),
}

impl Written {
    /// Returns the source of the run's keys. `edit`: the edit that adds its tables to the tree.
    fn keys(&self, edit: &Edit) -> NewKeys<'_> {
        match &self.keys {
            Some(keys) => NewKeys::Listed(keys),
            None => NewKeys::Stored(self.run(edit)),
        }
    }

    /// Returns the run of the tables. Requires: `edit` adds them, and there is at least one.
    fn run(&self, edit: &Edit) -> PlacedRun {
        let opened = |record: &TableRecord| {
            RunTable::of_record(Arc::clone(&self.output.opened[&record.file]), record)
        };
        let TableRecord { run: id, level, .. } = edit.added[0];
        let run = Run::new(edit.added.iter().map(opened).collect());
        PlacedRun::new(id, level, run.expect("tables were written in order"))
    }
}

/// What the manifest records about a new run, besides its tables.
#[derive(Clone, Copy)]
pub(crate) struct NewRun {
    pub(crate) flush: FlushNumber,
    /// Its smallest and its greatest sequence number.
    pub(crate) first: Sequence,
    pub(crate) last: Sequence,
    /// Whether it was flushed from a memtable.
    pub(crate) is_flushed: bool,
    /// The log that has its first entry. None: no log has it.
    pub(crate) first_log: Option<u64>,
}

impl NewRun {
    fn of(sealed: &Sealed) -> Self {
        let Sealed { first_log, first, last, flush, .. } = *sealed;
        NewRun { flush, first, last, is_flushed: true, first_log }
    }
}

/// The result of a step of a flush.
pub(crate) enum Flushed {
    Written {
        bytes: u64,
    },
    /// The flush is complete: its bytes, and when it began.
    Installed {
        bytes: u64,
        begun: Duration,
    },
}

impl FlushTask {
    pub(crate) fn new(sealed: Arc<Sealed>, begun: Duration) -> Self {
        FlushTask { sealed, written: None, begun }
    }

    /// Runs one step: writes the table, or installs it.
    pub(crate) fn step(&mut self, tree: &OpenTree) -> Result<Flushed> {
        let Some(written) = &self.written else {
            let written = Box::new(write_run(tree, &self.sealed.memtable)?);
            let written = self.written.insert(written);
            return Ok(Flushed::Written { bytes: written.output.bytes() });
        };
        // The table stays valid after an error, and the manifest may name it. So it is not written
        // again.
        install(tree, &NewRun::of(&self.sealed), written)?;
        if self.sealed.first_log.is_none() {
            // As for bulk loads: damage to the edit then cannot look like a torn tail.
            let _ = tree.installer().repeat_edit(tree);
        }
        Ok(Flushed::Installed { bytes: written.output.bytes(), begun: self.begun })
    }

    /// Returns the memory that its entries take.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.sealed.memtable.size_bytes()
    }

    /// Gives up the tables that it has written. The store is being closed, and the log has the
    /// entries; or the key space was dropped.
    pub(crate) fn abandon(self, tree: &OpenTree) {
        if let Some(written) = self.written {
            tree.installer().give_up(tree, &written.output);
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

/// Adds the keys of a new run to the guard, and installs both.
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
        // Change feeds never deliver the writes of a key space without a log. But if it has one at
        // its next opening, nothing else would tell of these.
        let bypasses_log = !new.is_flushed || !tree.has_log();
        let unlogged = (bypasses_log && (tree.has_log() || keeps_log(tree))).then_some(new.last);
        let origin = Origin { first_log: new.first_log, unlogged };
        return installer.install_flushed(tree, &edit, origin, &output.opened, guard);
    }
}

/// Whether the next opening has a log for the tree's writes, as far as the manifest tells.
fn keeps_log(tree: &OpenTree) -> bool {
    let manifest = tree.manifest();
    let keyspace = manifest.layout().keyspaces.get(&tree.keyspace);
    keyspace.is_some_and(|keyspace| keyspace.record.has_log())
}

fn edit(tree: &OpenTree, now: &Version, new: &NewRun, output: &RunOutput) -> Edit {
    let span = flush_span(now, new.flush);
    let run = output.tables.first().map_or(0, |(file, _)| *file);
    Edit {
        added: output.records(run, level_of(tree, now, new, output), span),
        flushes: vec![FlushRecord { flush: new.flush, first: new.first }],
        next_file: Some(tree.table_files.next_file()),
        next_flush: Some(now.layout.next_flush.max(new.flush.next())),
        last_sequence: Some(now.layout.last_sequence.max(new.last)),
        ..Edit::default()
    }
}

/// Returns level 0. A bulk load into an empty tree becomes the last level, whose number depends on
/// its size.
fn level_of(tree: &OpenTree, now: &Version, new: &NewRun, output: &RunOutput) -> usize {
    if new.is_flushed || !now.runs.is_empty() {
        return 0;
    }
    let options = &tree.table_files.options;
    let flushes = output.bytes() as f64 / options.write_buffer_bytes as f64;
    options.schedule().level_holding(flushes)
}

/// Returns the span of a flushed run. The oldest run begins at 0 by definition.
fn flush_span(now: &Version, flush: FlushNumber) -> Span {
    if now.runs.is_empty() {
        return Span::new(FlushNumber(0), flush.next()).expect("0 is below every end");
    }
    Span::of_flush(flush)
}

/// Returns the change of the guard of `version` that adds the new run's keys. The first run of a
/// tree becomes the guard's base. Returns an error if keys must be read from tables and cannot be.
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

/// Returns the parts that get some of the keys. `begin`: what takes the keys of a part. `end`:
/// makes the new part of it.
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
