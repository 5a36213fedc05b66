//! A submerge: one key range of a merge, processed step by step from the inputs to finished tables.
//! ```text
//! not begun -> read, keep, write, feed the filter -> ... -> tables, which are installed with those
//!                                                           of all other submerges
//! ```
//! Invariants: all entries of a user key are in one submerge, and its output lies in its range.
//! Submerges are independent, except for the order in which they feed a global filter
//! (`parts_builder`).

use trommel_filters::KeyList;

use crate::entries::entry::Entry;
use crate::entries::held_operands::MadeEntry;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::merge_cursor::MergeCursor;
use crate::entries::retention::{Retention, Verdict};
use crate::error::Result;
use crate::files::dictionary::dictionary_of;
use crate::files::placed_run::PlacedRun;
use crate::plan::partitions::Cutter;
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::run_writer::{RunOutput, RunWriter};
use crate::write::locator_merge::LocatorMerge;
use crate::write::merge_plan::MergePlan;
use crate::write::parts_builder::SubmergeKeys;

/// Entries that one step of a merge reads.
const STEP_ENTRIES: usize = 4096;

/// A submerge in progress.
pub(crate) struct Submerge {
    plan: Arc<MergePlan>,
    /// Its place among the submerges of the merge, in key order.
    place: usize,
    /// None: it has not begun, or it has ended.
    reading: Option<Reading>,
    /// What was read since the last call of `take_read`.
    read: Read,
}

/// What a merge has read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Read {
    pub(crate) entries: u64,
    /// The bytes of their keys and values.
    pub(crate) bytes: u64,
}

/// The state that is kept between steps.
struct Reading {
    cursor: MergeCursor,
    retention: Retention,
    locator: Option<LocatorMerge>,
    writer: RunWriter,
    kept: Kept,
}

/// What receives surviving entries, besides the writer.
struct Kept {
    /// The partition that begins with the first surviving entry, if one does.
    begins: Option<Vec<u8>>,
    cutter: Cutter,
    /// For a merge into the oldest run: the keys for a global filter.
    keys: Option<SubmergeKeys>,
    /// For an inner merge: its keys, if the guard's codes are runs.
    recoded: Option<KeyList>,
}

/// The output of a submerge, or of all submerges of a merge in key order.
#[derive(Default)]
pub(crate) struct MergeOutput {
    pub(crate) place: usize,
    pub(crate) run: RunOutput,
    /// The level of the run. Only set for the outputs of a merge as a whole.
    pub(crate) level: usize,
    /// The keys at which partitions begin.
    pub(crate) cuts: Vec<Vec<u8>>,
    /// For a merge with one submerge: the guard that knows its output.
    pub(crate) locator: Option<LocatorMerge>,
    /// Likewise: the keys that survive an inner merge, if the guard's codes are runs.
    pub(crate) recoded: Option<KeyList>,
}

impl Submerge {
    /// Returns all submerges of a merge, in key order.
    pub(crate) fn all(plan: &Arc<MergePlan>) -> Vec<Submerge> {
        let submerge = |place| {
            let (plan, read) = (Arc::clone(plan), Read::default());
            Submerge { plan, place, reading: None, read }
        };
        (0..plan.submerges.len()).map(submerge).collect()
    }

    pub(crate) fn plan(&self) -> &Arc<MergePlan> {
        &self.plan
    }

    pub(crate) fn place(&self) -> usize {
        self.place
    }

    /// Returns what was read since the last call.
    pub(crate) fn take_read(&mut self) -> Read {
        std::mem::take(&mut self.read)
    }

    /// Runs one step, which reads some entries. Returns the output once the submerge is done; no
    /// further step may follow.
    pub(crate) fn step(&mut self, tree: &OpenTree) -> Result<Option<MergeOutput>> {
        let plan = &*self.plan;
        if plan.only_moves() {
            return Ok(Some(MergeOutput { place: self.place, ..MergeOutput::default() }));
        }
        let mut reading = match self.reading.take() {
            Some(reading) => reading,
            None => Reading::begin(tree, plan, self.place)?,
        };
        let Reading { cursor, retention, locator, writer, kept } = &mut reading;
        let is_done = writer.write_kept(cursor, STEP_ENTRIES, |writer, entry, input| {
            self.read.entries += 1;
            self.read.bytes += (entry.key.len() + entry.value.len()) as u64;
            let verdict = retention.judge(entry);
            if retention.has_ready() {
                kept.write_made(retention.take_ready(), writer, plan, tree)?;
            }
            if let Some(locator) = locator {
                locator.saw(entry.key, input, verdict != Verdict::Drop, tree);
            }
            if verdict == Verdict::Keep {
                kept.keep(entry, writer, plan, tree)?;
            }
            Ok(verdict == Verdict::Keep)
        })?;
        self.read.bytes += writer.take_moved_bytes();
        if is_done {
            retention.end();
            kept.write_made(retention.take_ready(), writer, plan, tree)?;
            return reading.end(tree, plan, self.place).map(Some);
        }
        self.reading = Some(reading);
        Ok(None)
    }

    /// Removes its tables, since the merge failed elsewhere or was cancelled. They still count as
    /// written.
    pub(crate) fn abandon(self, tree: &OpenTree) {
        if let Some(reading) = self.reading {
            tree.counters.merged(reading.writer.written_bytes(), 0.0);
        }
    }
}

/// Returns the tables of runs, each with its key range.
fn tables_of(inputs: &[PlacedRun]) -> Vec<(u64, KeyBounds)> {
    let tables = inputs.iter().flat_map(|placed| placed.run.tables());
    tables.map(|table| (table.table.file(), table.key_bounds())).collect()
}

impl Reading {
    fn begin(tree: &OpenTree, plan: &MergePlan, place: usize) -> Result<Reading> {
        let submerge = &plan.submerges[place];
        let inputs = plan.inputs_within(&submerge.range)?;
        let retention = plan.retention(&inputs).merging(tree.merge_operator.get().cloned());
        let cursor =
            MergeCursor::over(inputs.iter().map(|placed| placed.run.cursor().end_to_end()))?;
        let writer = RunWriter::new(&tree.table_files, retention.kept_tombstones());
        let packing = tree.table_files.options.packing(plan.is_last());
        let dictionary = dictionary_of(&inputs, packing)?;
        let writer = writer.packed(packing.compression, dictionary);
        let writer = writer.with_filter_bits(plan.filter_bits).by_a_merge();
        let writer = writer.moving(&plan.moved_values);
        // Operands may be combined into one. Whoever finds them beside the result must see that it
        // includes them.
        let writer = match tree.merge_operator.get() {
            Some(_) => writer.made_of(tables_of(&inputs)),
            None => writer,
        };
        let locator = plan.locator(tree, &inputs);
        let kept = Kept {
            begins: submerge.begins_partition.then(|| submerge.range.from.clone()),
            cutter: match plan.is_last() {
                true => Cutter::new(tree.table_files.options.division(), submerge.bytes),
                false => Cutter::none(),
            },
            keys: plan.parts.as_ref().map(|_| SubmergeKeys::new(place)),
            recoded: plan.recodes.then(KeyList::default),
        };
        Ok(Reading { cursor, retention, locator, writer, kept })
    }

    fn end(self, tree: &OpenTree, plan: &MergePlan, place: usize) -> Result<MergeOutput> {
        let run = self.writer.finish()?;
        tree.counters.merged(run.bytes(), run.filter_seconds());
        let Kept { cutter, keys, recoded, .. } = self.kept;
        if let (Some(keys), Some(parts)) = (keys, &plan.parts) {
            parts.end(keys, tree);
        }
        let (level, cuts, locator) = (0, cutter.cuts, self.locator);
        Ok(MergeOutput { place, run, level, cuts, locator, recoded })
    }
}

impl Kept {
    /// Writes entries that were made of others.
    fn write_made(
        &mut self,
        made: Vec<MadeEntry>,
        writer: &mut RunWriter,
        plan: &MergePlan,
        tree: &OpenTree,
    ) -> Result<()> {
        for made in made {
            self.keep(&made.entry(), writer, plan, tree)?;
            writer.add(&made.entry())?;
        }
        Ok(())
    }

    /// Notes an entry that is about to be written.
    fn keep(
        &mut self,
        entry: &Entry<'_>,
        writer: &mut RunWriter,
        plan: &MergePlan,
        tree: &OpenTree,
    ) -> Result<()> {
        if let Some(from) = self.begins.take() {
            self.cut(&from, writer);
        } else if self.cutter.is_due(writer.written_bytes()) && writer.is_new(entry.key) {
            writer.cut(entry.key)?;
            self.cut(entry.key, writer);
        }
        if let Some(keys) = &mut self.recoded {
            keys.push_if_new(entry.key);
        }
        if let (Some(keys), Some(parts)) = (&mut self.keys, &plan.parts) {
            keys.push(entry.key, parts, tree);
        }
        Ok(())
    }

    /// Begins a partition at `key`.
    fn cut(&mut self, key: &[u8], writer: &RunWriter) {
        self.cutter.cut(writer.written_bytes(), key);
        if let Some(keys) = &mut self.keys {
            keys.cut(key);
        }
    }
}

impl MergeOutput {
    /// Combines the outputs of all submerges of a merge.
    pub(crate) fn of_all(mut outputs: Vec<MergeOutput>) -> MergeOutput {
        outputs.sort_unstable_by_key(|output| output.place);
        let mut all = MergeOutput::default();
        for output in outputs {
            all.run.tables.extend(output.run.tables);
            all.run.opened.extend(output.run.opened);
            all.cuts.extend(output.cuts);
            (all.locator, all.recoded) = (output.locator, output.recoded);
        }
        all
    }

    /// Removes its tables. The merge failed elsewhere, so no edit names them.
    pub(crate) fn abandon(self, tree: &OpenTree) {
        self.run.abandon(&tree.table_files);
    }
}

#[cfg(test)]
mod tests;
