//! Which tables make up a tree, as plain data; and how an edit changes it.
//! ```text
//! runs, newest first     id 9, level 0   [table 31]
//!                        id 7, level 1   [table 24] [table 25]
//!                        id 2, level 2   [table 20] [table 21] [table 22]
//! edit                   removes tables 31, 24, 25; adds table 40 as run 10, level 1
//! ```
//! Invariants: per key the runs are one list by age (ordering rule 1), levels are labels; a merge
//! takes a contiguous stretch of the list and its output takes that place. No I/O here.

use trommel_filters::{FlushNumber, Shape, Span};

use crate::entry::Sequence;

/// The largest number of a file, flush or write that is believed: far beyond all that a store can
/// reach, and far below what its encodings hold.
pub(crate) const NUMBER_MAX: u64 = 1 << 60;

/// One table as the manifest knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableRecord {
    pub(crate) file: u64,
    /// The run it belongs to.
    pub(crate) run: u64,
    /// The level of that run.
    pub(crate) level: usize,
    /// Its keys lie in [from, to).
    pub(crate) from: Vec<u8>,
    pub(crate) to: Vec<u8>,
    /// [least, greatest + 1) of its entries' flush numbers; begins at 0 in the oldest run.
    pub(crate) span: Span,
    /// The part of the filter that covers it, once merges are partitioned.
    pub(crate) part: Option<u64>,
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
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

    /// The numbers of its files, in key order.
    pub(crate) fn files(&self) -> Vec<u64> {
        self.tables.iter().map(|table| table.file).collect()
    }

    fn in_order(&self) -> bool {
        self.tables.iter().all(|table| table.from < table.to)
            && self.tables.windows(2).all(|pair| pair[0].to <= pair[1].from)
    }
}

/// A flush, and the first sequence number it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlushRecord {
    pub(crate) flush: FlushNumber,
    pub(crate) first: Sequence,
}

/// The filter's image, as the manifest knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageRecord {
    pub(crate) file: u64,
    pub(crate) bytes: u64,
    /// CRC-32C of them.
    pub(crate) checksum: u32,
    /// Every flush below this one that was installed is in the image.
    pub(crate) watermark: FlushNumber,
    /// The tables that its base stands for: those of the oldest run, in key order.
    pub(crate) tables: Vec<u64>,
}

impl ImageRecord {
    /// Whether it says all that `other` says.
    pub(crate) fn is_as_new_as(&self, other: &ImageRecord) -> bool {
        self.watermark == other.watermark && self.tables == other.tables
    }
}

/// A change of the tree. Applied to the newest layout, not to the one its job began with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Edit {
    /// Files that leave the tree.
    pub(crate) removed: Vec<u64>,
    /// Tables that join it, runs from old to new.
    pub(crate) added: Vec<TableRecord>,
    /// Flushes that this edit makes known, in number order.
    pub(crate) flushes: Vec<FlushRecord>,
    /// Flushes below this one are in the oldest run: their records are no longer needed.
    pub(crate) forget_below: Option<FlushNumber>,
    /// Logs below this one hold nothing that is not in tables.
    pub(crate) live_wal: Option<u64>,
    /// No file has this number or a larger one.
    pub(crate) next_file: Option<u64>,
    /// No flush has this number or a larger one.
    pub(crate) next_flush: Option<FlushNumber>,
    /// The newest sequence number in the tables.
    pub(crate) last_sequence: Option<Sequence>,
    /// The filter's image that takes the place of the one before.
    pub(crate) image: Option<ImageRecord>,
}

/// The tree as plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Newest first.
    pub(crate) runs: Vec<RunRecord>,
    /// In number order.
    pub(crate) flushes: Vec<FlushRecord>,
    pub(crate) live_wal: u64,
    pub(crate) next_file: u64,
    pub(crate) next_flush: FlushNumber,
    pub(crate) last_sequence: Sequence,
    /// The filter's image; it goes with the first table of its base.
    pub(crate) image: Option<ImageRecord>,
}

impl Layout {
    /// The layout after `edit`; an error that says what does not fit, with the layout unchanged.
    pub(crate) fn apply(&self, edit: &Edit) -> Result<Layout, &'static str> {
        let mut next = self.clone();
        let mut place = next.remove_tables(&edit.removed)?;
        for table in &edit.added {
            place = next.add_table(table, place)?;
        }
        next.runs.retain(|run| !run.tables.is_empty());
        if !next.runs.iter().all(RunRecord::in_order) {
            return Err("tables of a run overlap");
        }
        next.flushes.extend(&edit.flushes);
        if !next.flushes.windows(2).all(|p| p[0].flush < p[1].flush && p[0].first <= p[1].first) {
            return Err("flushes out of order");
        }
        if let Some(least) = edit.forget_below {
            next.flushes.retain(|record| record.flush >= least);
        }
        next.live_wal = edit.live_wal.unwrap_or(next.live_wal);
        next.next_file = edit.next_file.unwrap_or(next.next_file);
        next.next_flush = edit.next_flush.unwrap_or(next.next_flush);
        next.last_sequence = edit.last_sequence.unwrap_or(next.last_sequence);
        let is_gone = |file: &u64| edit.removed.contains(file);
        next.image.take_if(|image| image.tables.iter().any(is_gone));
        if let Some(image) = &edit.image {
            next.image = Some(image.clone());
        }
        Ok(next)
    }

    /// What a layout from disk must obey, or its store could not go on: numbers that leave room for
    /// more of their kind, and newer runs above older ones.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let numbers = [self.next_file, self.next_flush.0, self.last_sequence.0, self.live_wal];
        if numbers.into_iter().any(|number| number > NUMBER_MAX) {
            return Err("a number beyond all that a store gives");
        }
        if self.live_wal > self.next_file {
            return Err("a log that was never made");
        }
        let tables = || self.runs.iter().flat_map(|run| &run.tables);
        if tables().any(|table| table.file >= self.next_file) {
            return Err("a table that was never made");
        }
        if tables().any(|table| table.span.hi() > self.next_flush) {
            return Err("a flush that never was");
        }
        if self.flushes.iter().any(|record| record.flush >= self.next_flush) {
            return Err("a record of a flush that never was");
        }
        let never_was =
            |image: &ImageRecord| image.file >= self.next_file || image.watermark > self.next_flush;
        if self.image.as_ref().is_some_and(never_was) {
            return Err("an image that was never made");
        }
        let out_of_order = |pair: &[RunRecord]| pair[0].level > pair[1].level;
        if self.runs.windows(2).any(out_of_order) {
            return Err("a newer run below an older one");
        }
        Ok(())
    }

    /// Takes tables out; gives the place of the newest run that lost one, which new runs take.
    /// Runs that are left without tables stay for now, to hold the place.
    fn remove_tables(&mut self, files: &[u64]) -> Result<usize, &'static str> {
        let loses = |run: &RunRecord| run.tables.iter().any(|table| files.contains(&table.file));
        let place = self.runs.iter().position(loses).unwrap_or(0);
        let before: usize = self.runs.iter().map(|run| run.tables.len()).sum();
        for run in &mut self.runs {
            run.tables.retain(|table| !files.contains(&table.file));
        }
        let after: usize = self.runs.iter().map(|run| run.tables.len()).sum();
        if before - after == files.len() {
            Ok(place)
        } else {
            Err("removes a table that is not there")
        }
    }

    /// Puts a table into its run; a run that is not there yet is made at `place`.
    fn add_table(&mut self, table: &TableRecord, place: usize) -> Result<usize, &'static str> {
        if self.runs.iter().flat_map(|run| &run.tables).any(|other| other.file == table.file) {
            return Err("adds a table that is there already");
        }
        match self.runs.iter_mut().find(|run| run.id == table.run) {
            Some(run) => {
                let at = run.tables.partition_point(|other| other.from < table.from);
                run.tables.insert(at, table.clone());
                run.level = table.level;
            }
            None => {
                let run =
                    RunRecord { id: table.run, level: table.level, tables: vec![table.clone()] };
                self.runs.insert(place, run);
            }
        }
        Ok(place)
    }

    /// The flush that wrote an entry; None if it is older than all that are still on record.
    pub(crate) fn flush_of(&self, sequence: Sequence) -> Option<FlushNumber> {
        flush_of(&self.flushes, sequence)
    }

    /// The number of levels: the oldest run's level is the last one.
    pub(crate) fn level_count(&self) -> usize {
        self.runs.last().map_or(1, |run| run.level + 1)
    }

    /// How many runs a level has.
    pub(crate) fn runs_in(&self, level: usize) -> usize {
        self.runs.iter().filter(|run| run.level == level).count()
    }

    /// The runs per level, each with its span.
    pub(crate) fn shape(&self) -> Shape {
        let mut levels = vec![Vec::new(); self.level_count()];
        for run in &self.runs {
            if run.level >= levels.len() {
                levels.resize(run.level + 1, Vec::new());
            }
            levels[run.level].push(run.span());
        }
        Shape { levels }
    }

    /// The edit that makes this layout out of an empty one.
    pub(crate) fn as_edit(&self) -> Edit {
        let from_old_to_new = self.runs.iter().rev();
        Edit {
            added: from_old_to_new.flat_map(|run| run.tables.iter().cloned()).collect(),
            flushes: self.flushes.clone(),
            live_wal: Some(self.live_wal),
            next_file: Some(self.next_file),
            next_flush: Some(self.next_flush),
            last_sequence: Some(self.last_sequence),
            image: self.image.clone(),
            ..Edit::default()
        }
    }
}

/// The flush that wrote an entry; None if it is older than all in `flushes`.
pub(crate) fn flush_of(flushes: &[FlushRecord], sequence: Sequence) -> Option<FlushNumber> {
    let later = flushes.partition_point(|record| record.first <= sequence);
    later.checked_sub(1).map(|place| flushes[place].flush)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn table(file: u64, run: u64, level: usize, lo: u64, hi: u64) -> TableRecord {
        let span = Span::new(FlushNumber(lo), FlushNumber(hi)).expect("not empty");
        let (from, to) = (b"a".to_vec(), b"z".to_vec());
        TableRecord { file, run, level, from, to, span, part: None, entries: hi - lo, bytes: 100 }
    }

    fn ids(layout: &Layout) -> Vec<u64> {
        layout.runs.iter().map(|run| run.id).collect()
    }

    #[test]
    fn the_output_of_a_merge_takes_the_place_of_its_inputs() {
        let added = (0..4).map(|n| table(n, n, 0, n, n + 1)).collect();
        let four = Layout::default().apply(&Edit { added, ..Edit::default() }).expect("fits");
        assert_eq!(ids(&four), [3, 2, 1, 0]);
        let merge =
            Edit { removed: vec![1, 2], added: vec![table(9, 9, 1, 1, 3)], ..Edit::default() };
        let merged = four.apply(&merge).expect("fits");
        assert_eq!(ids(&merged), [3, 9, 0]);
        assert_eq!(merged, Layout::default().apply(&merged.as_edit()).expect("fits"));
    }

    #[test]
    fn an_image_stays_until_its_base_is_merged() {
        let added = (0..3).map(|n| table(n, n, 0, n, n + 1)).collect();
        let record = |file, watermark| {
            let (bytes, checksum, tables) = (100, 7, vec![0]);
            let watermark = FlushNumber(watermark);
            Some(ImageRecord { file, bytes, checksum, watermark, tables })
        };
        let edit = Edit { added, image: record(3, 3), ..Edit::default() };
        let three = Layout::default().apply(&edit).expect("fits");
        assert_eq!(three.image, record(3, 3));
        let newer = Edit { image: record(4, 3), ..Edit::default() };
        let three = three.apply(&newer).expect("fits");
        let inner =
            Edit { removed: vec![1, 2], added: vec![table(9, 9, 0, 1, 3)], ..Edit::default() };
        let two = three.apply(&inner).expect("fits");
        assert_eq!(two.image, record(4, 3));
        let last =
            Edit { removed: vec![0, 9], added: vec![table(10, 10, 1, 0, 3)], ..Edit::default() };
        assert_eq!(two.apply(&last).expect("fits").image, None);
    }

    #[test]
    fn edits_that_do_not_fit_are_refused() {
        let one = Edit { added: vec![table(1, 1, 0, 0, 1)], ..Edit::default() };
        let layout = Layout::default().apply(&one).expect("fits");
        assert!(layout.apply(&one).is_err(), "the same table twice");
        assert!(layout.apply(&Edit { removed: vec![7], ..Edit::default() }).is_err());
        let overlapping = Edit { added: vec![table(2, 1, 0, 0, 1)], ..Edit::default() };
        assert!(layout.apply(&overlapping).is_err(), "two tables of one run overlap");
    }

    #[test]
    fn a_flush_is_an_interval_of_sequence_numbers() {
        let record =
            |flush, first| FlushRecord { flush: FlushNumber(flush), first: Sequence(first) };
        let flushes = [record(4, 10), record(5, 20)];
        assert_eq!(flush_of(&flushes, Sequence(9)), None);
        assert_eq!(flush_of(&flushes, Sequence(10)), Some(FlushNumber(4)));
        assert_eq!(flush_of(&flushes, Sequence(25)), Some(FlushNumber(5)));
    }
}
