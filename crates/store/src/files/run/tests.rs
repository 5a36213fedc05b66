//! Tests of runs, against a plain list of entries.

use proptest::prelude::*;
use trommel_filters::FlushNumber;

use super::*;
use crate::entries::cursor::checks::{Owned, any_entries, any_moves, entry, follows, sorted};
use crate::entries::entry::Sequence;
use crate::entries::keys::successor;
use crate::files::table::tests::{TableFiles, options};

/// Builds tables of about `count` entries each. A key's versions stay together.
fn run_of(table_files: &TableFiles, list: &[Owned], count: usize) -> Arc<Run> {
    let mut tables = Vec::new();
    let mut rest = list;
    while !rest.is_empty() {
        let mut len = count.clamp(1, rest.len());
        while len < rest.len() && rest[len].0 == rest[len - 1].0 {
            len += 1;
        }
        let span = Span::of_flush(FlushNumber(tables.len() as u64));
        tables.push(RunTable::whole(table_files.table(&rest[..len], &options()), span));
        rest = &rest[len..];
    }
    Arc::new(Run::new(tables).expect("in order"))
}

proptest! {
    #[test]
    fn a_run_is_a_sorted_list(
        list in any_entries(150), moves in any_moves(), count in 1usize..60,
    ) {
        let list = sorted(list);
        let run = run_of(&TableFiles::new(1 << 20), &list, count);
        follows(&mut run.cursor().end_to_end(), &list, &moves);
        let mut cursor = run.cursor();
        for (action, index) in &moves {
            let rank = index.index(list.len() + 2);
            cursor.seek_rank(rank as u64).unwrap();
            prop_assert_eq!(cursor.entry(), list.get(rank).map(entry));
            if *action < 4 && rank < list.len() {
                cursor.prev().unwrap();
                let before = rank.checked_sub(1).map(|before| entry(&list[before]));
                prop_assert_eq!(cursor.entry(), before);
            }
        }
        prop_assert_eq!(run.entry_count(), list.len() as u64);
        for (rank, (key, sequence, ..)) in list.iter().enumerate() {
            let bounds = run.rank_bounds(key);
            let before = list.partition_point(|owned| owned.0 < *key) as u64;
            prop_assert!(bounds.least <= before && before <= bounds.most);
            prop_assert!(run.table_of_rank(rank as u64).table.first_key() <= key.as_slice());
            prop_assert!(run.table_of_rank(rank as u64).table.last_key() >= key.as_slice());
            let found = run.find(key).expect("a table covers each of its keys");
            let found = found.table.get(key, Sequence(*sequence), &mut Reads::default());
            prop_assert_eq!(found.unwrap().map(|found| found.sequence.0), Some(*sequence));
        }
    }
}

proptest! {
    #[test]
    fn a_run_within_bounds_is_a_sorted_list(
        list in any_entries(150), moves in any_moves(), count in 1usize..60,
        ends in (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..8),
    ) {
        let list = sorted(list);
        let run = run_of(&TableFiles::new(1 << 20), &list, count);
        let (one, other) = (&list[ends.0.index(list.len())].0, &list[ends.1.index(list.len())].0);
        let mut bounds = KeyBounds { from: one.min(other).clone(), to: Some(one.max(other).clone()) };
        if ends.2 & 1 == 1 {
            bounds.from = successor(&bounds.from);
        }
        if ends.2 & 2 == 2 {
            bounds.to = bounds.to.map(|to| successor(&to));
        }
        if ends.2 == 7 {
            bounds.to = None;
        }
        let within: Vec<Owned> =
            list.iter().filter(|(key, ..)| bounds.contains(key)).cloned().collect();
        let clipped = run.clip(&bounds).expect("reads");
        prop_assert_eq!(clipped.is_some(), !within.is_empty());
        let Some(clipped) = clipped else { return Ok(()) };
        follows(&mut clipped.cursor().end_to_end(), &within, &moves);
        for (key, ..) in &list {
            prop_assert!(clipped.find(key).is_some() || !bounds.contains(key));
        }
        prop_assert_eq!(clipped.entry_count(), within.len() as u64);
        let mut cursor = clipped.cursor();
        for (rank, owned) in within.iter().enumerate() {
            cursor.seek_rank(rank as u64).expect("reads");
            prop_assert_eq!(cursor.entry(), Some(entry(owned)));
            let bounds = clipped.rank_bounds(&owned.0);
            let before = within.partition_point(|other| other.0 < owned.0) as u64;
            prop_assert!(bounds.least <= before && before <= bounds.most);
        }
        // Trims a trimmed table again.
        let twice = clipped.clip(&bounds).expect("reads").expect("the same");
        prop_assert_eq!(twice.entry_count(), clipped.entry_count());
    }
}

#[test]
fn keys_between_tables_are_in_none() {
    let table_files = TableFiles::new(0);
    let list: Vec<Owned> = [b"b", b"d"].map(|key| TableFiles::put(key, 1, b"")).to_vec();
    let run = run_of(&table_files, &list, 1);
    assert_eq!(run.tables().len(), 2);
    assert_eq!((run.span().lo(), run.span().hi()), (FlushNumber(0), FlushNumber(2)));
    assert!(run.find(b"b").is_some() && run.find(b"d").is_some());
    assert!([b"a", b"c", b"e"].iter().all(|key| run.find(*key).is_none()));
    assert!(run.bytes() > 100);
}

#[test]
fn tables_that_overlap_or_are_out_of_order_are_no_run() {
    let table_files = TableFiles::new(0);
    let table = |keys: &[&[u8]]| {
        let list: Vec<Owned> = keys.iter().map(|key| TableFiles::put(key, 1, b"")).collect();
        let span = Span::of_flush(FlushNumber(1));
        RunTable::whole(table_files.table(&list, &options()), span)
    };
    let (early, late, wide) = (table(&[b"a"]), table(&[b"b"]), table(&[b"a", b"c"]));
    assert!(Run::new(vec![]).is_none());
    assert!(Run::new(vec![early.clone(), late.clone()]).is_some());
    assert!(Run::new(vec![late.clone(), early.clone()]).is_none());
    assert!(Run::new(vec![wide, late]).is_none());
    assert!(Run::new(vec![early.clone(), early]).is_none());
}

#[test]
fn a_cursor_reads_only_what_it_comes_to() {
    let list: Vec<Owned> =
        (0..90u8).map(|number| TableFiles::put(&[number], 1, &[number; 50])).collect();
    let run = run_of(&TableFiles::new(0), &list, 30);
    let mut cursor = run.cursor();
    assert_eq!(cursor.reads(), Reads::default());
    cursor.seek(&[40]).unwrap();
    let reads = cursor.reads();
    assert_eq!((reads.blocks, reads.disk_reads), (1, 1));
    (0..30).for_each(|_| cursor.next().unwrap());
    assert_eq!(cursor.entry().unwrap().key, [70]);
    let blocks: usize = run.tables().iter().map(|table| table.table.block_count()).sum();
    assert!((1..blocks as u64).contains(&cursor.reads().blocks));
    cursor.seek(&[200]).unwrap();
    assert_eq!(cursor.entry(), None);
    assert_eq!(cursor.reads(), Reads::default());
}
