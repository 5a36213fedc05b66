//! The tables of a tree as plain data, and how an edit changes it.
//! ```text
//! runs, newest first     id 9, level 0   [table 31]
//!                        id 7, level 1   [table 24] [table 25]
//!                        id 2, level 2   [table 20] [table 21] [table 22]
//! edit                   removes tables 31, 24, 25; adds table 40 as run 10, level 1
//! edit of a key range    removes tables 31, 24; adds table 40, and 24 again with narrower bounds
//! ```
//! A record says which keys of its table belong to the tree. A merge of a key range does not
//! rewrite a table across an end of the range; it trims the table. The file may then have two
//! records: one before the range and one after it.
//!
//! Invariants: a file leaves the tree with its last record. For each key, the runs are one list by
//! age (ordering rule 1), and levels are labels. A merge takes a contiguous stretch of the list,
//! and its output takes that place. No I/O here.

use std::collections::HashSet;

use trommel_filters::{FlushNumber, Shape, Span};

use crate::cost::step;
use crate::entries::entry::{NUMBER_MAX, Sequence};
use crate::entries::key_bounds::KeyBounds;

/// One table as the manifest knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableRecord {
    pub(crate) file: u64,
    /// The run it belongs to.
    pub(crate) run: u64,
    /// The level of that run.
    pub(crate) level: usize,
    /// The table's keys and deleted ranges that belong to the tree lie in [from, to).
    pub(crate) from: Vec<u8>,
    pub(crate) to: Vec<u8>,
    /// [least, greatest + 1) of its entries' flush numbers; begins at 0 in the oldest run.
    pub(crate) span: Span,
    /// Whether some keys of the file no longer belong to the tree.
    pub(crate) is_trimmed: bool,
    /// Entries of the file before `from`.
    pub(crate) skipped: u64,
    /// Entries within the bounds.
    pub(crate) entries: u64,
    /// Entries of the file.
    pub(crate) file_entries: u64,
    /// Bytes of the file.
    pub(crate) bytes: u64,
}

impl TableRecord {
    /// Returns the bounds of the keys and deleted ranges that belong to the tree.
    pub(crate) fn key_bounds(&self) -> KeyBounds {
        KeyBounds { from: self.from.clone(), to: Some(self.to.clone()) }
    }

    /// Returns the share of the file's bytes that belongs to the entries within the bounds.
    pub(crate) fn bytes_within(&self) -> u64 {
        let share = self.entries as f64 / self.file_entries.max(1) as f64;
        if self.is_trimmed { (self.bytes as f64 * share) as u64 } else { self.bytes }
    }
}

/// One run: disjoint tables in key order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunRecord {
    pub(crate) id: u64,
    pub(crate) level: usize,
    pub(crate) tables: Vec<TableRecord>,
}

impl RunRecord {
    pub(crate) fn span(&self) -> Span {
        let spans = self.tables.iter().map(|table| table.span);
        spans.reduce(Span::hull).expect("a run has tables")
    }

    pub(crate) fn entries(&self) -> u64 {
        self.tables.iter().map(|table| table.entries).sum()
    }

    pub(crate) fn flush_count(&self) -> u64 {
        let span = self.span();
        span.hi().0 - span.lo().0
    }

    /// Returns the tables with keys in the range.
    pub(crate) fn within(&self, bounds: &KeyBounds) -> &[TableRecord] {
        let first = self.tables.partition_point(|table| *table.to <= *bounds.from);
        let after = self.tables.partition_point(|table| bounds.ends_after(&table.from));
        &self.tables[first..after.max(first)]
    }

    /// Sets the level of the run and of all its tables.
    fn set_level(&mut self, level: usize) {
        if self.level != level {
            self.level = level;
            self.tables.iter_mut().for_each(|table| table.level = level);
        }
    }

    fn in_order(&self) -> bool {
        let follows = |pair: &[TableRecord]| {
            step();
            pair[0].to <= pair[1].from
        };
        self.tables.iter().all(|table| table.from < table.to) && self.tables.windows(2).all(follows)
    }
}

/// A flush, and its first sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlushRecord {
    pub(crate) flush: FlushNumber,
    pub(crate) first: Sequence,
}

/// The image of a filter part, as the manifest knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageRecord {
    /// The lower key bound of the part.
    pub(crate) lower: Vec<u8>,
    pub(crate) file: u64,
    pub(crate) bytes: u64,
    /// CRC-32C of these bytes.
    pub(crate) checksum: u32,
    /// The image contains every installed flush below this one.
    pub(crate) watermark: FlushNumber,
    /// The tables that the part's base covers, in key order: those of the oldest run with keys of
    /// the part.
    pub(crate) tables: Vec<u64>,
}

/// A merge into the last level that proceeds by key ranges, and its progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LastMerge {
    /// The id of the run that it merges into: the oldest one.
    pub(crate) oldest: u64,
    /// The ids of the other inputs, newest first. Their keys before `done_to` are in the oldest run
    /// already.
    pub(crate) inputs: Vec<u64>,
    /// The key up to which the merge is done. Empty in an edit: the whole merge is done.
    pub(crate) done_to: Vec<u8>,
    /// The span and the entries of these inputs when the merge began.
    pub(crate) span: Span,
    pub(crate) entries: u64,
}

/// The new boundaries of partitions of the last level, and thus of filter parts, within a merged
/// range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CutsEdit {
    pub(crate) within: KeyBounds,
    /// Ascending keys. They replace the boundaries inside the range.
    pub(crate) cuts: Vec<Vec<u8>>,
}

/// A change of the tree. It is applied to the newest layout, not to the one that its job began
/// with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Edit {
    /// Files that leave the tree.
    pub(crate) removed: Vec<u64>,
    /// Tables that join it, runs from old to new.
    pub(crate) added: Vec<TableRecord>,
    /// Flushes to record, in number order.
    pub(crate) flushes: Vec<FlushRecord>,
    /// Flushes below this one are in the oldest run, so their records are no longer needed.
    pub(crate) forget_below: Option<FlushNumber>,
    /// No file has this number or a larger one.
    pub(crate) next_file: Option<u64>,
    /// No flush has this number or a larger one.
    pub(crate) next_flush: Option<FlushNumber>,
    /// The newest sequence number in the tables.
    pub(crate) last_sequence: Option<Sequence>,
    /// New images of filter parts. Each replaces the part's former image.
    pub(crate) images: Vec<ImageRecord>,
    /// The new partition boundaries, after a merge into the last level.
    pub(crate) cuts: Option<CutsEdit>,
    /// The progress of a merge by key ranges.
    pub(crate) last_merge: Option<LastMerge>,
}

/// A set of file numbers, sorted and without duplicates. An edit has few files, but many tables are
/// looked up in them.
pub(crate) struct FileSet(Vec<u64>);

impl FileSet {
    fn of(files: &[u64]) -> FileSet {
        let mut files = files.to_vec();
        files.sort_unstable();
        files.dedup();
        FileSet(files)
    }

    pub(crate) fn contains(&self, file: u64) -> bool {
        step();
        self.0.binary_search(&file).is_ok()
    }
}

/// The tree as plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Newest first.
    pub(crate) runs: Vec<RunRecord>,
    /// In number order.
    pub(crate) flushes: Vec<FlushRecord>,
    pub(crate) next_file: u64,
    pub(crate) next_flush: FlushNumber,
    pub(crate) last_sequence: Sequence,
    /// Images of filter parts, in key order. An image is dropped with the first table that leaves
    /// its base.
    pub(crate) images: Vec<ImageRecord>,
    /// The first keys of all partitions of the last level but the first. Each partition has its own
    /// filter part.
    pub(crate) cuts: Vec<Vec<u8>>,
    /// The merge into the last level that is under way, if it proceeds by key ranges.
    pub(crate) last_merge: Option<LastMerge>,
}

impl Layout {
    pub(crate) fn run(&self, id: u64) -> Option<&RunRecord> {
        self.runs.iter().find(|run| run.id == id)
    }

    /// Returns the files of the oldest run with keys in the range.
    pub(crate) fn base_files(&self, bounds: &KeyBounds) -> Vec<u64> {
        self.base_tables(bounds).iter().map(|table| table.file).collect()
    }

    /// Returns the tables of the oldest run with keys in the range.
    pub(crate) fn base_tables(&self, bounds: &KeyBounds) -> &[TableRecord] {
        self.runs.last().map_or(&[], |oldest| oldest.within(bounds))
    }

    /// Returns the layout after `edit`, or an error that says what does not fit.
    pub(crate) fn apply(&self, edit: &Edit) -> Result<Layout, &'static str> {
        let next = self.clone().followed_by(edit)?;
        next.check_tables().map(|()| next)
    }

    /// Like [`apply`](Self::apply), but consumes the layout and does not check the tables that the
    /// edit leaves alone, so that many edits are read fast. Requires:
    /// [`check_tables`](Self::check_tables) follows.
    pub(crate) fn followed_by(self, edit: &Edit) -> Result<Layout, &'static str> {
        let mut next = self;
        let place = next.remove_tables(&FileSet::of(&edit.removed))?;
        edit.added.iter().for_each(|table| next.add_table(table, place));
        next.runs.retain(|run| !run.tables.is_empty());
        next.follow_last_merge(edit);
        next.order_levels();
        let known = next.flushes.len().saturating_sub(1);
        next.flushes.extend(&edit.flushes);
        let follows =
            |pair: &[FlushRecord]| pair[0].flush < pair[1].flush && pair[0].first <= pair[1].first;
        if !next.flushes[known..].windows(2).all(follows) {
            return Err("flushes out of order");
        }
        if let Some(least) = edit.forget_below {
            next.flushes.retain(|record| record.flush >= least);
        }
        next.next_file = edit.next_file.unwrap_or(next.next_file);
        next.next_flush = edit.next_flush.unwrap_or(next.next_flush);
        next.last_sequence = edit.last_sequence.unwrap_or(next.last_sequence);
        next.recut(edit)?;
        next.replace_images(edit);
        Ok(next)
    }

    /// Records the progress of a merge by key ranges. Its newer inputs are labelled with the level
    /// just above the last one, so that newer runs can be merged meanwhile.
    fn follow_last_merge(&mut self, edit: &Edit) {
        if let Some(merge) = &edit.last_merge {
            self.last_merge = (!merge.done_to.is_empty()).then(|| merge.clone());
        }
        self.end_last_merge();
        if let (Some(merge), Some(oldest)) = (&self.last_merge, self.runs.last()) {
            let last = oldest.level;
            let inputs = self.runs.iter_mut().filter(|run| merge.inputs.contains(&run.id));
            inputs.for_each(|run| run.set_level(run.level.max(last.saturating_sub(1))));
        }
    }

    /// Raises levels so that no run has a lower level than a newer one. A merge labels the oldest
    /// run by its entries. If most of them were deleted, the label may be lower than those of runs
    /// merged meanwhile.
    pub(crate) fn order_levels(&mut self) {
        let mut least = 0;
        for run in &mut self.runs {
            least = least.max(run.level);
            run.set_level(least);
        }
    }

    /// Ends a merge by key ranges whose runs are gone.
    pub(crate) fn end_last_merge(&mut self) {
        let oldest = self.runs.last().map(|run| run.id);
        let has_input =
            |ids: &[u64]| ids.is_empty() || self.runs.iter().any(|run| ids.contains(&run.id));
        self.last_merge.take_if(|merge| oldest != Some(merge.oldest) || !has_input(&merge.inputs));
    }

    fn recut(&mut self, edit: &Edit) -> Result<(), &'static str> {
        let Some(CutsEdit { within, cuts }) = &edit.cuts else { return Ok(()) };
        if !cuts.iter().all(|cut| *cut > within.from && within.ends_after(cut)) {
            return Err("a partition that begins outside of what was merged");
        }
        self.cuts.retain(|cut| *cut <= within.from || !within.ends_after(cut));
        let at = self.cuts.partition_point(|cut| *cut <= within.from);
        self.cuts.splice(at..at, cuts.iter().cloned());
        let ascend = self.cuts.is_sorted_by(|one, next| one < next);
        ascend.then_some(()).ok_or("partitions out of order")
    }

    /// Drops images whose part was rebuilt or whose tables are gone, and adds new ones.
    fn replace_images(&mut self, edit: &Edit) {
        if edit.removed.is_empty() && edit.cuts.is_none() && edit.images.is_empty() {
            return;
        }
        let gone = self.without(&edit.removed);
        let remade =
            |lower: &[u8]| edit.cuts.as_ref().is_some_and(|cuts| cuts.within.contains(lower));
        let outdated = |image: &ImageRecord| {
            remade(&image.lower)
                || image.tables.iter().any(|file| gone.contains(*file))
                || edit.images.iter().any(|new| new.lower == image.lower)
        };
        self.images.retain(|image| !outdated(image));
        self.images.extend(edit.images.iter().cloned());
        self.images.sort_by(|one, other| one.lower.cmp(&other.lower));
    }

    /// Returns those of these files that the layout does not name. (A trimmed file stays until its
    /// last record goes.)
    pub(crate) fn without(&self, files: &[u64]) -> FileSet {
        let files = FileSet::of(files);
        if files.0.is_empty() {
            return files;
        }
        let tables = self.runs.iter().flat_map(|run| &run.tables);
        let named = tables.filter(|table| files.contains(table.file)).map(|table| table.file);
        let named = FileSet::of(&named.collect::<Vec<_>>());
        FileSet(files.0.into_iter().filter(|&file| !named.contains(file)).collect())
    }

    /// Returns an error if a number is implausibly large.
    pub(crate) fn check_numbers(&self) -> Result<(), &'static str> {
        let numbers = [self.next_file, self.next_flush.0, self.last_sequence.0];
        let believed = numbers.into_iter().all(|number| number <= NUMBER_MAX);
        believed.then_some(()).ok_or("a number beyond all that a store gives")
    }

    /// Checks the rules that a layout from disk must obey. Its numbers must leave room for more of
    /// their kind, or the store could not go on.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        self.check_numbers()?;
        self.check_tables()?;
        let (next_file, next_flush) = (self.next_file, self.next_flush);
        let tables = || self.runs.iter().flat_map(|run| &run.tables);
        let were = |image: &ImageRecord| image.file < next_file && image.watermark <= next_flush;
        let counts_fit = |table: &TableRecord| {
            let (of_file, most) = (table.skipped.checked_add(table.entries), table.file_entries);
            of_file.is_some_and(|all| all == most || table.is_trimmed && all < most)
        };
        // Many places add up entries and bytes.
        let sum =
            |count: fn(&TableRecord) -> u64| tables().map(count).map(u128::from).sum::<u128>();
        let sums = [sum(|t| t.entries), sum(|t| t.file_entries), sum(|t| t.bytes)];
        let sums_fit = sums.into_iter().all(|sum| sum <= u128::from(NUMBER_MAX));
        let flushes = self.flushes.iter().all(|record| record.flush < next_flush);
        let rules = [
            (tables().all(|table| table.file < next_file), "a table that was never made"),
            (tables().all(|table| table.span.hi() <= next_flush), "a flush that never was"),
            (flushes, "a record of a flush that never was"),
            (self.images.iter().all(were), "an image that was never made"),
            (tables().all(counts_fit), "more entries of a table than it has"),
            (sums_fit, "more in tables than there can be"),
            (self.runs.iter().all(|run| run.id < next_file), "a run that was never made"),
        ];
        if let Some((_, wrong)) = rules.into_iter().find(|(holds, _)| !holds) {
            return Err(wrong);
        }
        self.last_merge.as_ref().map_or(Ok(()), |merge| self.check_last_merge(merge))
    }

    /// Checks that a half-done merge continues at the beginning of a partition, with runs just
    /// above the oldest one.
    fn check_last_merge(&self, merge: &LastMerge) -> Result<(), &'static str> {
        if !self.cuts.contains(&merge.done_to) {
            return Err("a merge that is half done within a partition");
        }
        if merge.span.hi() > self.next_flush || merge.entries > NUMBER_MAX {
            return Err("a merge of more than there can be");
        }
        let ids: HashSet<u64> = merge.inputs.iter().copied().collect();
        let is_input = |run: &RunRecord| ids.contains(&run.id);
        let newer = &self.runs[..self.runs.len() - 1];
        let after = newer.iter().position(is_input).unwrap_or(newer.len());
        let stretch = newer[after..].iter().all(is_input) && !ids.contains(&merge.oldest);
        if !stretch || ids.len() < merge.inputs.len() {
            return Err("a merge of runs that do not follow each other");
        }
        Ok(())
    }

    /// Removes files, with all their records. Returns the place for new runs: behind the oldest run
    /// that lost a table. Runs without tables stay for now, to keep their places.
    fn remove_tables(&mut self, files: &FileSet) -> Result<usize, &'static str> {
        if files.0.is_empty() {
            return Ok(0);
        }
        let (mut place, mut removed) = (0, Vec::new());
        for (at, run) in self.runs.iter_mut().enumerate() {
            let before = removed.len();
            let leaving = run.tables.extract_if(.., |table| files.contains(table.file));
            removed.extend(leaving.map(|table| table.file));
            if removed.len() > before {
                place = at + 1;
            }
        }
        match FileSet::of(&removed).0.len() == files.0.len() {
            true => Ok(place),
            false => Err("removes a table that is not there"),
        }
    }

    /// Adds a table to its run; a new run is inserted at `place`. A file may have several records
    /// in one run.
    fn add_table(&mut self, table: &TableRecord, place: usize) {
        match self.runs.iter_mut().find(|run| run.id == table.run) {
            Some(run) => {
                let at = run.tables.partition_point(|other| other.from < table.from);
                run.tables.insert(at, table.clone());
                run.set_level(table.level);
            }
            None => {
                let run =
                    RunRecord { id: table.run, level: table.level, tables: vec![table.clone()] };
                self.runs.insert(place, run);
            }
        }
    }

    /// Returns an error if tables of a run overlap, or if a table is in two runs.
    pub(crate) fn check_tables(&self) -> Result<(), &'static str> {
        if !self.runs.iter().all(RunRecord::in_order) {
            return Err("tables of a run overlap");
        }
        let places = self.runs.iter().flat_map(|run| run.tables.iter().map(|t| (t.file, run.id)));
        let mut places: Vec<(u64, u64)> = places.collect();
        places.sort_unstable();
        let in_two = |pair: &[(u64, u64)]| pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1;
        match places.windows(2).any(in_two) {
            true => Err("a table that is in two runs"),
            false => Ok(()),
        }
    }

    /// Returns the flush that wrote an entry. None: it is older than all recorded flushes.
    pub(crate) fn flush_of(&self, sequence: Sequence) -> Option<FlushNumber> {
        let later = self.flushes.partition_point(|record| record.first <= sequence);
        later.checked_sub(1).map(|place| self.flushes[place].flush)
    }

    /// Returns the number of levels. The oldest run's level is the last one.
    pub(crate) fn level_count(&self) -> usize {
        self.runs.last().map_or(1, |run| run.level + 1)
    }

    /// Returns the number of runs in a level.
    pub(crate) fn runs_in(&self, level: usize) -> usize {
        self.runs.iter().filter(|run| run.level == level).count()
    }

    /// Returns the runs with keys in the range, by level, each with the span of its tables there.
    pub(crate) fn shape_within(&self, bounds: &KeyBounds) -> Shape {
        let mut levels = vec![Vec::new(); self.level_count()];
        for run in &self.runs {
            if run.level >= levels.len() {
                levels.resize(run.level + 1, Vec::new());
            }
            let spans = run.within(bounds).iter().map(|table| table.span);
            levels[run.level].extend(spans.reduce(Span::hull));
        }
        Shape { levels }
    }

    /// Returns the key ranges of the partitions, which are also those of the filter's parts.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = KeyBounds> + '_ {
        KeyBounds::between(&self.cuts)
    }

    /// Returns the edit that makes this layout out of an empty one.
    pub(crate) fn as_edit(&self) -> Edit {
        let from_old_to_new = self.runs.iter().rev();
        Edit {
            added: from_old_to_new.flat_map(|run| run.tables.iter().cloned()).collect(),
            flushes: self.flushes.clone(),
            next_file: Some(self.next_file),
            next_flush: Some(self.next_flush),
            last_sequence: Some(self.last_sequence),
            images: self.images.clone(),
            cuts: (!self.cuts.is_empty())
                .then(|| CutsEdit { within: KeyBounds::all(), cuts: self.cuts.clone() }),
            last_merge: self.last_merge.clone(),
            ..Edit::default()
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
