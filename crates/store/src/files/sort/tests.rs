//! Tests of sorting against a map, with so little memory that every row goes through several files.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use super::*;
use crate::storage::memory::{Fault, Memory};
use crate::storage::traits::Storage as _;

type Row = (Vec<u8>, Vec<u8>);

const FOLDER: &str = "sort";

fn disk() -> Memory {
    let disk = Memory::new();
    disk.create_dir(Path::new(FOLDER)).expect("made");
    disk
}

/// Sorts rows with `memory_bytes` bytes of memory.
fn sort(disk: &Memory, memory_bytes: usize, rows: &[Row]) -> Result<Vec<Row>> {
    let next = AtomicU64::new(1);
    let new_number = move || next.fetch_add(1, Ordering::Relaxed);
    let mut listener = |_| ControlFlow::Continue(());
    let folder = OpenFolder::open(disk, Path::new(FOLDER))?;
    let mut sorter = Sorter::new(memory_bytes, folder, new_number, &mut listener);
    for (key, value) in rows {
        sorter.add(key, value)?;
        assert!(sorter.spills.len() < sorter.inputs_max);
    }
    let mut sorted = sorter.finish()?;
    let mut found = Vec::new();
    while let Some((key, value)) = sorted.next()? {
        found.push((key.to_vec(), value.to_vec()));
    }
    assert!(sorted.next()?.is_none(), "nothing comes behind the end");
    Ok(found)
}

fn expected(rows: &[Row]) -> Vec<Row> {
    rows.iter().cloned().collect::<BTreeMap<_, _>>().into_iter().collect()
}

fn any_rows(count_max: usize) -> impl Strategy<Value = Vec<Row>> {
    let byte = || prop::sample::select(vec![0u8, 1, b'a', 0xff]);
    let prefix = prop::collection::vec(byte(), 0..10);
    let row = (prop::collection::vec(byte(), 0..12), prop::collection::vec(any::<u8>(), 0..60));
    (prefix, prop::collection::vec(row, 0..count_max)).prop_map(|(prefix, rows)| {
        rows.into_iter().map(|(key, value)| ([&prefix[..], &key].concat(), value)).collect()
    })
}

/// Rows with distinct keys, unsorted.
fn rows(count: u64) -> Vec<Row> {
    let key = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec();
    (0..count).map(|n| (key(n), n.to_le_bytes().repeat(3))).collect()
}

proptest! {
    #[test]
    fn each_key_comes_once_in_order_with_its_last_value(
        rows in any_rows(1500),
        memory_bytes in prop::sample::select(vec![0usize, 4 << 10, 64 << 10, 1 << 20]),
    ) {
        let disk = disk();
        prop_assert_eq!(sort(&disk, memory_bytes, &rows).expect("sorts"), expected(&rows));
        prop_assert!(disk.list(Path::new(FOLDER)).expect("lists").is_empty());
        prop_assert_eq!(disk.handles().open, 0);
    }
}

#[test]
fn many_files_become_few_before_too_many_are_open() {
    let (disk, rows) = (disk(), rows(60_000));
    assert_eq!(sort(&disk, 64 << 10, &rows).expect("sorts"), expected(&rows));
    // Ten files may be read, and one is written with two handles. Each name was removed at once.
    let handles = disk.handles();
    assert_eq!((handles.most, handles.open), (12, 0));
    assert!(disk.list(Path::new(FOLDER)).expect("lists").is_empty());
}

#[test]
fn what_has_room_in_memory_goes_through_no_file() {
    let (disk, rows) = (disk(), rows(5_000));
    let before = disk.operations();
    assert_eq!(sort(&disk, 1 << 20, &rows).expect("sorts"), expected(&rows));
    // Only the folder was opened.
    assert_eq!(disk.operations() - before, 1);
    assert_eq!(sort(&disk, 1 << 20, &[]).expect("sorts"), []);
}

#[test]
fn long_values_go_through_memory_of_any_size() {
    let disk = disk();
    // Longer than a block that is compressed, and some that shrink.
    let lengths = [0, 100, 5 << 20, 1, 70_000, 3 << 20, 2_000, 5 << 20];
    let value = |(at, len): (usize, usize)| match at % 2 {
        0 => vec![at as u8; len],
        _ => (0..len).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 11) as u8).collect(),
    };
    let values = lengths.into_iter().enumerate().map(value);
    let rows: Vec<Row> =
        values.enumerate().map(|(at, it)| (vec![100 - at as u8 / 2], it)).collect();
    assert!(sort(&disk, 16 << 10, &rows).expect("sorts") == expected(&rows));
}

#[test]
fn keys_and_values_that_no_store_takes_are_refused() {
    let long = vec![b'k'; KEY_BYTES_MAX + 1];
    let refused = sort(&disk(), 1 << 20, &[(long, Vec::new())]);
    assert!(matches!(refused, Err(Error::KeyTooLong { .. })), "{refused:?}");
    let longest = (vec![b'k'; KEY_BYTES_MAX], vec![7]);
    assert_eq!(sort(&disk(), 0, std::slice::from_ref(&longest)).expect("sorts"), [longest]);
}

#[test]
fn whatever_fails_no_file_is_left() {
    let rows = rows(3_000);
    let operations = {
        let disk = disk();
        let before = disk.operations();
        sort(&disk, 16 << 10, &rows).expect("sorts");
        disk.operations() - before
    };
    assert!(operations > 100, "{operations}: hardly a file was written");
    for after in 0..operations {
        for (kind, lasts) in [(Fault::Io, false), (Fault::NoSpace, false), (Fault::NoSpace, true)] {
            let disk = disk();
            match lasts {
                true => disk.fail_from(after, kind),
                false => disk.fail_at(after, kind),
            }
            let sorted = sort(&disk, 16 << 10, &rows);
            disk.mend();
            let case = format!("{after} {kind:?} {lasts}");
            match sorted {
                // The name could not be removed at first, or the disk was full too late.
                Ok(sorted) => assert!(sorted == expected(&rows), "{case}"),
                Err(Error::Io { path, .. }) => assert!(path.starts_with(FOLDER), "{case}"),
                Err(error) => panic!("{case}: {error}"),
            }
            let left = disk.list(Path::new(FOLDER)).expect("lists");
            assert!(left.is_empty(), "{case}: {left:?}");
            assert_eq!(disk.handles().open, 0, "{case}");
        }
    }
}

/// Every byte that a disk changes in a file is detected.
#[test]
fn damage_is_told_with_file_and_place() {
    let shape = SpillShape { block_bytes: 256, window_bytes: 1024 };
    let disk = disk();
    let folder = OpenFolder::open(&disk, Path::new(FOLDER)).expect("opens");
    let place = || SpillPlace { folder: folder.clone(), new_number: Box::new(|| 7), shape };
    let mut rows = rows(60);
    rows.sort();
    let len = Cell::new(0);
    let written = |damage: &dyn Fn(&Memory)| -> Result<Vec<Row>> {
        // The name is kept, so that the test can reach the file.
        disk.fail_at(2, Fault::Io);
        let mut writer = SpillWriter::create(&place())?;
        rows.iter().try_for_each(|(key, value)| writer.add(key, value))?;
        let spill = writer.finish()?;
        len.set(spill.bytes);
        damage(&disk);
        let mut merge = Merge::new(vec![Source::Spill(SpillCursor::new(spill, shape))], 0)?;
        let mut found = Vec::new();
        while let Some((key, value)) = merge.next()? {
            found.push((key.to_vec(), value.to_vec()));
        }
        Ok(found)
    };
    assert_eq!(written(&|_| {}).expect("reads"), rows);
    assert!(len.get() > 1000, "{len:?}");
    let name = "sort/000007.sort";
    let is_told = |what: &str, damage: &dyn Fn(&Memory)| match written(damage) {
        Err(Error::Corrupt { path, .. }) => assert_eq!(path, Path::new(name)),
        other => panic!("{what}: {other:?}"),
    };
    for at in 0..len.get() {
        is_told(&format!("byte {at}"), &|disk| disk.flip_bit(name, at, 3));
    }
    is_told("the greatest length", &|disk| {
        let bytes = disk.file(name).expect("is there");
        let zeros = (0..32).filter(|bit| bytes[bit / 8] >> (bit % 8) & 1 == 0);
        zeros.for_each(|bit| disk.flip_bit(name, bit as u64 / 8, bit as u32 % 8));
    });
}
