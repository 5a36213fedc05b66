//! Which table goes down, on layouts alone.

use trommel_filters::FlushNumber;

use super::*;
use crate::entries::entry::Sequence;
use crate::plan::layout::tests::table;
use crate::plan::layout::{Edit, FlushRecord};
use crate::plan::partitions::Granularity;
use crate::plan::policy::Policy;

const DIVISION: Division =
    Division { granularity: Granularity::Partial, partition_bytes: 400, table_bytes: 100 };

/// A table with these keys, entries and bytes, in the run numbered 10 + its level.
fn piece(file: u64, level: usize, keys: (&str, &str), entries: u64) -> TableRecord {
    let lo = 20 - 5 * level as u64;
    let of_level = table(file, 10 + level as u64, level, lo, lo + 4);
    TableRecord {
        from: keys.0.into(),
        to: keys.1.into(),
        entries,
        file_entries: entries,
        bytes: entries,
        ..of_level
    }
}

/// Flushes of ten entries each; tables from old to new.
fn layout(tables: Vec<TableRecord>, cuts: &[&str]) -> Layout {
    let record = |n: u64| FlushRecord { flush: FlushNumber(n), first: Sequence(10 * n) };
    let edit = Edit {
        added: tables,
        flushes: (0..24).map(record).collect(),
        last_sequence: Some(Sequence(239)),
        next_file: Some(100),
        next_flush: Some(FlushNumber(24)),
        ..Edit::default()
    };
    let mut layout = Layout::default().apply(&edit).expect("fits");
    layout.cuts = cuts.iter().map(|cut| cut.as_bytes().to_vec()).collect();
    layout
}

fn picked(layout: &Layout) -> Option<MergeJob> {
    let policy = Policy::leveling();
    pick_tables(layout, Schedule { policy: &policy, size_ratio: 4 }, DIVISION).next()
}

fn bounds(from: &str, to: &str) -> KeyBounds {
    KeyBounds { from: from.into(), to: Some(to.into()) }
}

/// Level 1 holds twelve flushes of ten entries: 120.
fn level_1(entries: [u64; 3]) -> [TableRecord; 3] {
    let [first, second, third] = entries;
    [
        piece(1, 1, ("a", "f"), first),
        piece(2, 1, ("f", "m"), second),
        piece(3, 1, ("m", "s"), third),
    ]
}

fn level_2() -> [TableRecord; 3] {
    [piece(4, 2, ("a", "d"), 100), piece(5, 2, ("d", "h"), 100), piece(6, 2, ("k", "m"), 100)]
}

fn last_level() -> Vec<TableRecord> {
    ["a", "e", "i", "o"]
        .windows(2)
        .zip(7..)
        .map(|(keys, file)| TableRecord {
            span: trommel_filters::Span::new(FlushNumber(0), FlushNumber(9)).expect("a span"),
            ..piece(file, 3, (keys[0], keys[1]), 400)
        })
        .collect()
}

#[test]
fn a_level_that_has_room_is_left_alone() {
    let tables = last_level().into_iter().chain(level_2()).chain(level_1([40, 40, 40]));
    assert_eq!(picked(&layout(tables.collect(), &["e", "i"])), None);
}

#[test] // LevelDB's and RocksDB's rule: the least overlap for its bytes.
fn the_table_that_meets_least_for_its_bytes_goes_down() {
    let below = || last_level().into_iter().chain(level_2());
    let job = |entries| {
        let tables = below().chain(level_1(entries)).collect();
        picked(&layout(tables, &["e", "i"])).expect("more than 120 entries")
    };
    // Nothing lies below the third table.
    let moved = job([80, 80, 10]);
    assert_eq!((&moved.range, &moved.moved), (&bounds("m", "s"), &bounds("m", "s")));
    assert_eq!((moved.inputs, moved.target), (vec![11, 12], Target::Inner(2)));
    assert!(moved.joins && moved.progress.is_none());
    // Without it: the other two each overlap two tables, and the larger one is better. The tables
    // that it overlaps are rewritten whole.
    let two = |first, second| {
        let tables = below().chain(level_1([first, second, 1]).into_iter().take(2)).collect();
        let job = picked(&layout(tables, &["e", "i"])).expect("more than 120 entries");
        (job.range, job.moved)
    };
    assert_eq!(two(90, 80), (bounds("a", "h"), bounds("a", "f")));
    assert_eq!(two(80, 90), (bounds("d", "m"), bounds("f", "m")));
}

#[test]
fn a_table_becomes_the_run_of_an_empty_level() {
    let tables = last_level().into_iter().chain(level_1([80, 70, 90]));
    let job = picked(&layout(tables.collect(), &["e", "i"])).expect("240 entries");
    assert_eq!((job.inputs, job.target), (vec![11], Target::Inner(2)));
    assert_eq!((job.moved, job.joins), (bounds("a", "f"), false));
}

#[test]
fn what_goes_into_the_last_level_rewrites_whole_partitions() {
    let level_2 = [piece(4, 2, ("b", "f"), 300), piece(5, 2, ("f", "h"), 300)];
    let job = |cuts: &[&str]| {
        let tables = last_level().into_iter().chain(level_2.clone()).collect();
        picked(&layout(tables, cuts)).expect("more than 480 entries")
    };
    let one = job(&["e", "i"]);
    assert_eq!((one.inputs, one.target), (vec![12, 13], Target::Last));
    assert_eq!((one.range, one.moved), (bounds("e", "i"), bounds("f", "h")));
    // Partitions of several tables, as another granularity leaves them.
    let (all, rest) = (job(&[]), KeyBounds { from: "e".into(), to: None });
    assert_eq!((all.range, all.moved), (KeyBounds::all(), bounds("b", "f")));
    assert_eq!(job(&["e"]).range, rest);
}

#[test]
fn runs_that_another_policy_left_in_the_last_level_are_merged_with_it() {
    let oldest = TableRecord { run: 99, ..last_level()[0].clone() };
    let newer = TableRecord { file: 50, ..piece(50, 3, ("a", "z"), 400) };
    let level_2 = piece(4, 2, ("b", "f"), 600);
    let tree = layout(vec![oldest, newer, level_2], &[]);
    let job = picked(&tree).expect("more than 480 entries");
    assert_eq!((job.inputs, job.target), (vec![12, 13, 99], Target::Last));
    assert_eq!(job.range, KeyBounds::all());
}

#[test]
fn flushed_tables_go_into_the_next_level_however_full_it_is() {
    let flushes =
        (30..34).map(|n| TableRecord { entries: 10, file_entries: 10, ..table(n, n, 0, n, n + 1) });
    let below = last_level().into_iter().chain(level_2()).chain(level_1([40, 40, 40]));
    let tree = layout(below.chain(flushes).collect(), &["e", "i"]);
    let policy = Policy::rocksdb();
    let schedule = Schedule { policy: &policy, size_ratio: 4 };
    let job = pick_tables(&tree, schedule, DIVISION).next().expect("four wait");
    assert_eq!((job.inputs, job.target), (vec![33, 32, 31, 30, 11], Target::Inner(1)));
    assert_eq!((job.range, job.moved, job.joins), (bounds("a", "z"), bounds("a", "z"), true));
}

#[test]
fn one_ingest_says_nothing_of_flushes() {
    let mut tree = layout(last_level(), &[]);
    assert_eq!(FlushSize::median(&tree).entries(), Some(10.0));
    tree.flushes.retain(|record| record.flush.0 != 7);
    tree.last_sequence = Sequence(1_000_000);
    assert_eq!(FlushSize::median(&tree).entries(), Some(10.0));
    tree.flushes.clear();
    assert_eq!(FlushSize::median(&tree).entries(), None);
}
