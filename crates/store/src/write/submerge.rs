//! One piece of a merge: a range of its keys, from the inputs to tables that are done, step by
//! step.
//! ```text
//! not begun -> read, keep, write, tell the filter -> ... -> tables, which are installed with those of all other pieces
//! ```
//! Invariants: what a piece writes lies in its range, and so does all of a user key. Pieces know
//! nothing of each other, but for the order in which they tell a global filter of their keys
//! (`merge_parts`).

use crate::entries::cursor::Cursor;
use crate::entries::entry::Entry;
use crate::entries::merge_cursor::MergeCursor;
use crate::entries::retention::Retention;
use crate::error::Result;
use crate::files::distinct_keys::KeyList;
use crate::plan::partitions::Cutter;
use crate::sync::Arc;
use crate::tree::open_tree::OpenTree;
use crate::tree::run_writer::{RunOutput, RunWriter, RunWriterState};
use crate::write::locator_merge::LocatedMerge;
use crate::write::merge_plan::MergePlan;
use crate::write::parts_builder::PieceKeys;

/// Entries that one step of a merge reads.
const STEP_ENTRIES: usize = 4096;

/// A piece on its way.
pub(crate) struct MergePiece {
    plan: Arc<MergePlan>,
    /// Of the pieces of the merge, in key order.
    place: usize,
    /// None: it has not begun, or it has ended.
    reading: Option<Reading>,
    /// Bytes of entries that were read since someone asked.
    read_bytes: u64,
}

/// What lives on between two steps.
struct Reading {
    cursor: MergeCursor,
    retention: Retention,
    located: Option<LocatedMerge>,
    writer: RunWriterState,
    kept: Kept,
}

/// What entries that outlive the merge are told to, beside the writer.
struct Kept {
    /// The partition that begins with the first of them, if one does.
    begins: Option<Vec<u8>>,
    cutter: Cutter,
    /// The keys of a merge into the oldest run, for a global filter.
    keys: Option<PieceKeys>,
    /// The keys of an inner merge, if the guard's codes are runs.
    recoded: Option<KeyList>,
}

/// What a piece has written.
#[derive(Default)]
pub(crate) struct PieceOutput {
    pub(crate) place: usize,
    pub(crate) run: RunOutput,
    /// Where partitions begin in it.
    pub(crate) cuts: Vec<Vec<u8>>,
    pub(crate) located: Option<LocatedMerge>,
    pub(crate) recoded: Option<KeyList>,
}

impl MergePiece {
    /// All pieces of a merge, in key order.
    pub(crate) fn all(plan: &Arc<MergePlan>) -> Vec<MergePiece> {
        let piece =
            |place| MergePiece { plan: Arc::clone(plan), place, reading: None, read_bytes: 0 };
        (0..plan.pieces.len()).map(piece).collect()
    }

    pub(crate) fn plan(&self) -> &Arc<MergePlan> {
        &self.plan
    }

    pub(crate) fn place(&self) -> usize {
        self.place
    }

    /// Bytes of entries that were read since the last call.
    pub(crate) fn take_read_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.read_bytes)
    }

    /// One step: some entries. The output, when it is done; then there is no other step.
    pub(crate) fn step(&mut self, tree: &OpenTree) -> Result<Option<PieceOutput>> {
        let plan = &*self.plan;
        if plan.only_moves() {
            return Ok(Some(PieceOutput { place: self.place, ..PieceOutput::default() }));
        }
        let mut reading = match self.reading.take() {
            Some(reading) => reading,
            None => Reading::begin(tree, plan, self.place)?,
        };
        let mut writer = RunWriter::new(&tree.table_files, std::mem::take(&mut reading.writer));
        for _ in 0..STEP_ENTRIES {
            let Some(entry) = reading.cursor.entry() else {
                return reading.end(tree, plan, self.place, writer).map(Some);
            };
            self.read_bytes += (entry.key.len() + entry.value.len()) as u64;
            let keeps = reading.retention.keeps(&entry);
            if let Some(located) = &mut reading.located {
                located.saw(entry.key, reading.cursor.input(), keeps, tree);
            }
            if keeps {
                reading.kept.keep(&entry, &mut writer, plan, tree)?;
            }
            reading.cursor.next()?;
        }
        reading.writer = writer.pause();
        self.reading = Some(reading);
        Ok(None)
    }

    /// Removes what it has written, which was written all the same: the merge has failed elsewhere,
    /// or was given up.
    pub(crate) fn abandon(self, tree: &OpenTree) {
        if let Some(reading) = self.reading {
            let writer = RunWriter::new(&tree.table_files, reading.writer);
            tree.counters.merged(writer.written_bytes(), 0.0);
        }
    }
}

impl Reading {
    fn begin(tree: &OpenTree, plan: &MergePlan, place: usize) -> Result<Reading> {
        let bounds = &plan.pieces[place];
        let inputs = plan.inputs_within(&bounds.range)?;
        let retention = plan.retention(&inputs);
        let cursors = inputs.iter().map(|placed| {
            let cursor: Box<dyn Cursor + Send> = Box::new(placed.run.cursor().end_to_end());
            cursor
        });
        let cursor = MergeCursor::new(cursors.collect())?;
        let writer = RunWriterState::with_filter_bits(plan.filter_bits).by_a_merge();
        let writer = writer.deleting(retention.kept_tombstones());
        let located = plan.located(tree, &inputs);
        let kept = Kept {
            begins: bounds.begins_partition.then(|| bounds.range.from.clone()),
            cutter: match plan.is_last() {
                true => Cutter::new(tree.table_files.options.division(), bounds.bytes),
                false => Cutter::none(),
            },
            keys: plan.parts.as_ref().map(|_| PieceKeys::new(place)),
            recoded: plan.recodes.then(KeyList::default),
        };
        Ok(Reading { cursor, retention, located, writer, kept })
    }

    fn end(
        self,
        tree: &OpenTree,
        plan: &MergePlan,
        place: usize,
        writer: RunWriter<'_>,
    ) -> Result<PieceOutput> {
        let run = writer.finish()?;
        tree.counters.merged(run.bytes(), run.filter_seconds());
        let Kept { cutter, keys, recoded, .. } = self.kept;
        if let (Some(keys), Some(parts)) = (keys, &plan.parts) {
            parts.end(keys, tree);
        }
        Ok(PieceOutput { place, run, cuts: cutter.cuts, located: self.located, recoded })
    }
}

impl Kept {
    fn keep(
        &mut self,
        entry: &Entry<'_>,
        writer: &mut RunWriter<'_>,
        plan: &MergePlan,
        tree: &OpenTree,
    ) -> Result<()> {
        if let Some(from) = self.begins.take() {
            self.cut(&from, writer);
        } else if self.cutter.is_due(writer.written_bytes()) && writer.is_new(entry.key) {
            writer.cut(entry.key)?;
            self.cut(entry.key, writer);
        }
        writer.add(entry)?;
        if let Some(keys) = &mut self.recoded
            && keys.last() != Some(entry.key)
        {
            keys.push(entry.key);
        }
        if let (Some(keys), Some(parts)) = (&mut self.keys, &plan.parts) {
            keys.push(entry.key, parts, tree);
        }
        Ok(())
    }

    /// A partition begins at `key`.
    fn cut(&mut self, key: &[u8], writer: &RunWriter<'_>) {
        self.cutter.cut(writer.written_bytes(), key);
        if let Some(keys) = &mut self.keys {
            keys.cut(key);
        }
    }
}

impl PieceOutput {
    /// Removes its tables: the merge has failed elsewhere, so that nothing names them.
    pub(crate) fn abandon(self, tree: &OpenTree) {
        self.run.abandon(&tree.table_files);
    }
}
