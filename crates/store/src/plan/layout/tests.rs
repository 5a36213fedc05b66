//! Edits that fit, and edits that do not.

use super::*;

impl RunRecord {
    /// The file numbers of a layout, in key order.
    pub(crate) fn files(&self) -> Vec<u64> {
        self.tables.iter().map(|table| table.file).collect()
    }
}

impl Layout {
    /// The spans of the runs, by level.
    pub(crate) fn shape(&self) -> Shape {
        self.shape_within(&KeyBounds::all())
    }
}

pub(crate) fn table(file: u64, run: u64, level: usize, lo: u64, hi: u64) -> TableRecord {
    let span = Span::new(FlushNumber(lo), FlushNumber(hi)).expect("not empty");
    let (from, to) = (b"a".to_vec(), b"z".to_vec());
    let (is_trimmed, skipped, entries, file_entries) = (false, 0, hi - lo, hi - lo);
    TableRecord {
        file,
        run,
        level,
        from,
        to,
        span,
        is_trimmed,
        skipped,
        entries,
        file_entries,
        bytes: 100,
    }
}

fn ids(layout: &Layout) -> Vec<u64> {
    layout.runs.iter().map(|run| run.id).collect()
}

#[test]
fn the_output_of_a_merge_takes_the_place_of_its_inputs() {
    let added = (0..4).map(|n| table(n, n, 0, n, n + 1)).collect();
    let four = Layout::default().apply(&Edit { added, ..Edit::default() }).expect("fits");
    assert_eq!(ids(&four), [3, 2, 1, 0]);
    let merge = Edit { removed: vec![1, 2], added: vec![table(9, 9, 1, 1, 3)], ..Edit::default() };
    let merged = four.apply(&merge).expect("fits");
    assert_eq!(ids(&merged), [3, 9, 0]);
    assert_eq!(merged, Layout::default().apply(&merged.as_edit()).expect("fits"));
}

#[test] // stress --seed 8: the store refused its own manifest, "a newer run below an older one".
fn an_oldest_run_that_has_shrunk_is_in_no_level_above_a_newer_run() {
    let added = vec![table(1, 1, 3, 0, 1), table(2, 2, 2, 1, 2), table(3, 3, 0, 2, 3)];
    let three = Layout::default().apply(&Edit { added, ..Edit::default() }).expect("fits");
    let shrunk = Edit { removed: vec![1], added: vec![table(4, 4, 1, 0, 1)], ..Edit::default() };
    let after = three.apply(&shrunk).expect("fits");
    let levels: Vec<usize> = after.runs.iter().map(|run| run.level).collect();
    assert_eq!((ids(&after), levels), (vec![3, 2, 4], vec![0, 2, 2]));
    assert_eq!(after.runs[2].tables[0].level, 2);
    assert_eq!(after, Layout::default().apply(&after.as_edit()).expect("fits"));
}

#[test]
fn an_image_stays_until_its_base_is_merged() {
    let added = (0..3).map(|n| table(n, n, 0, n, n + 1)).collect();
    let record = |file, watermark| {
        let (bytes, checksum, tables) = (100, 7, vec![0]);
        let watermark = FlushNumber(watermark);
        vec![ImageRecord { lower: Vec::new(), file, bytes, checksum, watermark, tables }]
    };
    let edit = Edit { added, images: record(3, 3), ..Edit::default() };
    let three = Layout::default().apply(&edit).expect("fits");
    assert_eq!(three.images, record(3, 3));
    let newer = Edit { images: record(4, 3), ..Edit::default() };
    let three = three.apply(&newer).expect("fits");
    let inner = Edit { removed: vec![1, 2], added: vec![table(9, 9, 0, 1, 3)], ..Edit::default() };
    let two = three.apply(&inner).expect("fits");
    assert_eq!(two.images, record(4, 3));
    let last = Edit { removed: vec![0, 9], added: vec![table(10, 10, 1, 0, 3)], ..Edit::default() };
    assert_eq!(two.apply(&last).expect("fits").images, []);
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
    let record = |flush, first| FlushRecord { flush: FlushNumber(flush), first: Sequence(first) };
    let flushes = vec![record(4, 10), record(5, 20)];
    let layout = Layout { flushes, ..Layout::default() };
    assert_eq!(layout.flush_of(Sequence(9)), None);
    assert_eq!(layout.flush_of(Sequence(10)), Some(FlushNumber(4)));
    assert_eq!(layout.flush_of(Sequence(25)), Some(FlushNumber(5)));
}
