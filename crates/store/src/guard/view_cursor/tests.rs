//! A view's cursor is compared with a plain list of what a reader sees of the runs.

use proptest::prelude::*;
use trommel_filters::{FlushNumber, RunLocatorBuilder, RunSlot, Span, TreePlan};
use trommel_guards::SortedRemixBuilder;

use super::*;
use crate::entries::cursor::checks::{Owned, any_entries, any_moves, entry, follows, sorted};
use crate::files::run_table::RunTable;
use crate::files::table::tests::{TableFiles, options};

const SLOTS: usize = 5;

/// Makes runs of these entries, with tables of about `count` entries, and a view of them in
/// segments of `segment_keys`.
fn view_of(
    table_files: &TableFiles,
    list: &[(Owned, usize)],
    (count, segment_keys): (usize, usize),
    at: u64,
) -> ViewCursor {
    let plan = TreePlan {
        runs_of_levels: vec![SLOTS as u8 - 1, 1],
        waiting_runs: 0,
        size_ratio: 4,
        entries: list.len() as u64,
        bits_per_key: 10.0,
    };
    let mut builder = SortedRemixBuilder::with_segment_keys(&plan, segment_keys);
    list.iter().for_each(|((key, ..), slot)| builder.add(key, RunSlot(*slot as u8)));
    let run = |slot: usize| {
        let own = list.iter().filter(|(_, other)| *other == slot).map(|(owned, _)| owned.clone());
        let (own, mut tables) = (own.collect::<Vec<Owned>>(), Vec::new());
        let mut rest = &own[..];
        while !rest.is_empty() {
            let mut len = count.min(rest.len());
            while len < rest.len() && rest[len].0 == rest[len - 1].0 {
                len += 1;
            }
            let span = Span::of_flush(FlushNumber(slot as u64));
            tables.push(RunTable::whole(table_files.table(&rest[..len], &options()), span));
            rest = &rest[len..];
        }
        Run::new(tables).map(Arc::new)
    };
    let runs = (0..SLOTS).map(run).collect();
    let view = Arc::new(RunLocatorBuilder::finish(builder));
    ViewCursor::new(view, runs, Sequence(at), KeyBounds::default())
}

proptest! {
    #[test]
    fn a_view_is_the_list_of_what_a_reader_sees(
        list in any_entries(150),
        slots in prop::collection::vec(0..SLOTS, 150),
        moves in any_moves(),
        sizes in (1usize..60, 1usize..40),
        at in 0u64..45,
    ) {
        let list: Vec<(Owned, usize)> = sorted(list).into_iter().zip(slots).collect();
        let mut seen: Vec<Owned> =
            list.iter().filter(|(owned, _)| owned.1 <= at).map(|(owned, _)| owned.clone()).collect();
        // The newest entry of a key comes first.
        seen.dedup_by(|later, first| later.0 == first.0);
        prop_assume!(!seen.is_empty());
        let table_files = TableFiles::new(1 << 20);
        follows(&mut view_of(&table_files, &list, sizes, at), &seen, &moves);
        let mut cursor = view_of(&table_files, &list, sizes, at);
        cursor.seek_first().unwrap();
        for owned in &seen {
            prop_assert_eq!(cursor.entry(), Some(entry(owned)));
            cursor.next().unwrap();
        }
        prop_assert_eq!(cursor.entry(), None);
        let runs = cursor.runs_read().expect("it reads several");
        prop_assert!(runs.useful <= runs.positioned && runs.positioned <= SLOTS as u64);
        cursor.seek_last().unwrap();
        for owned in seen.iter().rev() {
            prop_assert_eq!(cursor.entry(), Some(entry(owned)));
            cursor.prev().unwrap();
        }
        prop_assert_eq!(cursor.entry(), None);
    }
}

/// Returns keys 0, 1, ... in alternating runs, every fifth of them twice.
fn numbered(count: u32) -> Vec<(Owned, usize)> {
    let mut list = Vec::new();
    for number in 0..count {
        let (key, slot) = (number.to_be_bytes(), (number * 7 / 3) as usize % SLOTS);
        list.push((TableFiles::put(&key, 9, &[1; 40]), slot));
        if number % 5 == 0 {
            list.push((TableFiles::put(&key, 3, &[2; 40]), (slot + 1) % SLOTS));
        }
    }
    list
}

#[test]
fn a_seek_reads_no_more_blocks_than_it_takes_halves_to_search_a_segment() {
    let (table_files, list) = (TableFiles::new(0), numbered(2000));
    for segment_keys in [1, 8, 32, 100] {
        let mut most = 0;
        for number in (0..2000u32).step_by(13) {
            let mut cursor = view_of_all(&table_files, &list, segment_keys);
            cursor.seek(&number.to_be_bytes()).unwrap();
            assert_eq!(cursor.entry().expect("a key").key, number.to_be_bytes());
            most = most.max(cursor.reads().blocks);
        }
        // A segment may have one entry more: another version of its last key.
        let halves = u64::from((segment_keys as u32 + 1).ilog2() + 1);
        assert!(most <= halves + 1, "{most} blocks in segments of {segment_keys}");
    }
}

/// The runs are made but once.
fn view_of_all(
    table_files: &TableFiles,
    list: &[(Owned, usize)],
    segment_keys: usize,
) -> ViewCursor {
    view_of(table_files, list, (usize::MAX, segment_keys), u64::MAX)
}

#[test]
fn a_run_is_not_touched_for_tables_beyond_the_bounds_nor_where_memory_tells() {
    let (table_files, key) = (TableFiles::new(0), |number: u8| vec![number]);
    // Runs side by side, of one table each.
    let list: Vec<(Owned, usize)> = (0..50u8)
        .map(|number| (TableFiles::put(&key(number), 1, b"v"), usize::from(number / 10)))
        .collect();
    let asked = |lower: u8, end: u8, back: bool| {
        let mut cursor = view_of_all(&table_files, &list, 16);
        cursor.bounds = KeyBounds { from: key(lower), to: Some(key(end)) };
        if back { cursor.seek_before(&key(end)) } else { cursor.seek(&key(lower)) }.unwrap();
        (cursor.entry().map(|entry| entry.key[0]), cursor.reads().blocks)
    };
    for back in [false, true] {
        assert_eq!(asked(55, 60, back), (None, 0));
        assert_eq!(asked(10, 11, back), (Some(10), 1));
        assert_eq!(asked(19, 20, back), (Some(19), 1));
    }
    let untouched = view_of_all(&table_files, &list, 16);
    assert_eq!(untouched.runs_read(), Some(RunsRead { positioned: 0, useful: 0 }));
    // A gap between two runs, as if nothing lay between keys 9 and 10: [9\0, 10).
    let mut cursor = view_of_all(&table_files, &list, 16);
    cursor.bounds = KeyBounds { from: vec![9, 0], to: Some(key(10)) };
    cursor.seek(&[9, 0]).unwrap();
    assert!(cursor.entry().is_none() && cursor.reads().blocks == 0);
    cursor.seek_before(&key(10)).unwrap();
    assert!(cursor.entry().is_none() && cursor.reads().blocks == 0);
}

#[test]
fn a_scan_reads_each_block_of_each_run_once_and_passes_older_versions_unread() {
    let (table_files, list) = (TableFiles::new(0), numbered(600));
    let mut cursor = view_of_all(&table_files, &list, 16);
    let blocks = |run: &Arc<Run>| -> u64 {
        run.tables().iter().map(|table| table.table.block_count() as u64).sum()
    };
    let all: u64 = cursor.runs.runs.iter().flatten().map(blocks).sum();
    cursor.seek_first().unwrap();
    let mut count = 0;
    while let Some(entry) = cursor.entry() {
        assert_eq!(entry.sequence, Sequence(9), "the older version of {:?}", entry.key);
        count += 1;
        cursor.next().unwrap();
    }
    assert_eq!(count, 600);
    assert_eq!(cursor.reads().blocks, all);
    // With two versions of every key in separate runs, the older run is never touched.
    let twice = |number: u8| {
        [(9, 0), (3, 1)].map(|(at, slot)| (TableFiles::put(&[number], at, b"v"), slot))
    };
    let list: Vec<_> = (0..200).flat_map(twice).collect();
    let mut cursor = view_of_all(&table_files, &list, 16);
    cursor.seek_first().unwrap();
    (0..199).for_each(|_| cursor.next().unwrap());
    assert_eq!(cursor.entry().expect("the last").key, [199]);
    assert_eq!(cursor.runs_read(), Some(RunsRead { positioned: 1, useful: 1 }));
}

#[test]
fn damage_ends_a_view_until_it_is_positioned_elsewhere() {
    let (table_files, list) = (TableFiles::new(0), numbered(600));
    let mut cursor = view_of_all(&table_files, &list, 16);
    let path = cursor.runs.runs[2].as_ref().expect("a run").tables()[0].table.path().to_path_buf();
    table_files.disk.flip_bit(&path, 1_000, 0);
    cursor.seek_first().unwrap();
    let error = loop {
        if let Err(error) = cursor.next() {
            break error;
        }
        assert!(cursor.entry().is_some(), "the damage was not seen");
    };
    assert!(matches!(error, Error::Corrupt { path: at, .. } if at == path));
    assert_eq!(cursor.entry(), None);
    cursor.seek_first().unwrap();
    assert_eq!(cursor.entry().expect("the first").key, [0; 4]);
}
