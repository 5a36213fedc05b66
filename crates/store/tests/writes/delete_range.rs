//! Deletions of ranges: what they hide is gone for gets, scans and merges, what is newer or older
//! than a snapshot is not; and it costs no walk over what they hide.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use trommel::Environment;
use trommel::storage::{Memory, Storage};
use trommel::tools::{DumpItem, dump, repair_with};
use trommel::{Background, Batch, Db, Error, GuardKind, Options, SyncPolicy};

const DIR: &str = "db";

fn environment(disk: &Memory) -> Environment {
    Environment::new().storage(Arc::new(disk.clone()))
}

fn options(guard: GuardKind) -> Options {
    Options::new()
        .guard(guard)
        .size_ratio(4)
        .block_bytes(256)
        .table_bytes(4096)
        .block_cache_bytes(0)
        .compression(false)
        .sync(SyncPolicy::Always)
        .background(Background::Stepped)
}

fn open(disk: &Memory, guard: GuardKind) -> Db {
    Db::open_with(Path::new(DIR), options(guard), environment(disk)).expect("opens")
}

fn key(number: u32) -> String {
    format!("{number:05}")
}

fn put_all(db: &Db, numbers: std::ops::Range<u32>, value: &str) {
    numbers.for_each(|number| db.put(key(number), value).expect("puts"));
}

fn keys(db: &Db) -> Vec<u32> {
    let number = |entry: trommel::Result<trommel::KeyValue>| {
        let (key, _) = entry.expect("reads");
        String::from_utf8(key).expect("text").parse().expect("a number")
    };
    let forward: Vec<u32> = db.range(..).map(number).collect();
    let mut backward: Vec<u32> = db.range(..).rev().map(number).collect();
    backward.reverse();
    assert_eq!(forward, backward);
    for &number in &forward {
        assert!(db.get(key(number)).expect("gets").is_some(), "{number} is in a scan alone");
    }
    forward
}

#[track_caller]
fn is_sound(db: &Db) {
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
}

#[test]
fn what_is_hidden_is_gone_wherever_it_is() {
    for guard in trommel_guards::all_guards() {
        let disk = Memory::new();
        let db = open(&disk, guard);
        put_all(&db, 0..100, "oldest");
        db.compact().expect("compacts");
        put_all(&db, 40..60, "flushed");
        db.flush().expect("flushes");
        put_all(&db, 90..110, "in memory");
        db.delete_range(key(10), key(95)).expect("deletes");
        db.put(key(50), "newer").expect("puts");
        let expected: Vec<u32> = (0..10).chain([50]).chain(95..110).collect();
        assert_eq!(keys(&db), expected, "{guard}: in memory");
        assert!(db.get(key(42)).expect("gets").is_none());
        drop(db);
        let db = open(&disk, guard);
        assert_eq!(keys(&db), expected, "{guard}: from the log");
        db.flush().expect("flushes");
        assert_eq!(keys(&db), expected, "{guard}: flushed");
        is_sound(&db);
        drop(db);
        let db = open(&disk.crash_hard(), guard);
        assert_eq!(keys(&db), expected, "{guard}: opened again");
        db.compact().expect("compacts");
        assert_eq!(keys(&db), expected, "{guard}: merged");
        assert_eq!(
            db.stats().expect("open").entries(),
            expected.len() as u64,
            "{guard}: what is hidden is dropped"
        );
        is_sound(&db);
    }
}

#[test]
fn a_snapshot_sees_what_was_deleted_later() {
    for guard in trommel_guards::all_guards() {
        let disk = Memory::new();
        let db = open(&disk, guard);
        put_all(&db, 0..50, "first");
        db.flush().expect("flushes");
        let before = db.snapshot();
        db.delete_range(key(10), key(20)).expect("deletes");
        let between = db.snapshot();
        put_all(&db, 15..17, "second");
        db.delete_range(key(0), key(16)).expect("deletes");
        let see = |expected: [&[u32]; 3], when: &str| {
            let of = |snapshot: &trommel::Snapshot| -> Vec<u32> {
                let all = snapshot.range(..).map(|entry| entry.expect("reads").0);
                all.map(|key| String::from_utf8(key).unwrap().parse().unwrap()).collect()
            };
            assert_eq!(of(&before), expected[0], "{guard}: {when}");
            assert_eq!(of(&between), expected[1], "{guard}: {when}");
            assert_eq!(keys(&db), expected[2], "{guard}: {when}");
            for number in 0..50 {
                let found = between.get(key(number)).expect("gets").is_some();
                assert_eq!(found, expected[1].contains(&number), "{guard}: {when}: {number}");
            }
        };
        let first: Vec<u32> = (0..50).collect();
        let second: Vec<u32> = (0..10).chain(20..50).collect();
        let third: Vec<u32> = [16].into_iter().chain(20..50).collect();
        see([&first, &second, &third], "in memory");
        db.flush().expect("flushes");
        see([&first, &second, &third], "flushed");
        db.compact().expect("compacts");
        see([&first, &second, &third], "merged");
        is_sound(&db);
        drop((before, between));
        db.put(key(60), "so that there is something to merge").expect("puts");
        db.compact().expect("compacts");
        assert_eq!(db.stats().expect("open").entries(), 32, "{guard}");
    }
}

/// A range of many blocks is passed with a read or two, from both ends, in whatever direction.
#[test]
fn a_scan_does_not_walk_over_what_is_deleted() {
    for guard in trommel_guards::all_guards() {
        let disk = Memory::new();
        let db = open(&disk, guard);
        put_all(&db, 0..5000, "a value of some length, so that blocks are many");
        db.compact().expect("compacts");
        let runs: u64 = db
            .stats()
            .expect("open")
            .levels
            .iter()
            .flat_map(|l| &l.runs)
            .map(|run| run.tables)
            .sum();
        assert!(runs > 50, "{runs} tables");
        db.delete_range(key(10), key(4990)).expect("deletes");
        for place in ["memory", "a run"] {
            for back in [false, true] {
                let before = db.stats().expect("open").open_seek.blocks_read;
                let scan = db.range(..);
                let read = if back { scan.rev().count() } else { scan.count() };
                assert_eq!(read, 20, "{guard}");
                let blocks = db.stats().expect("open").open_seek.blocks_read - before;
                assert!(blocks < 20, "{guard}: {blocks} blocks, the deletion in {place}");
            }
            db.flush().expect("flushes");
        }
        let before = db.stats().expect("open").point.blocks_read;
        (100..200).for_each(|number| assert!(db.get(key(number)).expect("gets").is_none()));
        assert_eq!(
            db.stats().expect("open").point.blocks_read,
            before,
            "{guard}: gets of what is deleted"
        );
    }
}

/// What is asked for lies within what was deleted: nothing of it is read, though newer runs have
/// keys around it.
#[test]
fn a_scan_within_what_is_deleted_reads_nothing_of_it() {
    // One view of all runs is gone through whatever is deleted.
    for guard in
        trommel_guards::all_guards().into_iter().filter(|guard| guard.name() != "remix-sorted")
    {
        let disk = Memory::new();
        let db = open(&disk, guard);
        put_all(&db, 0..5000, "old");
        db.compact().expect("compacts");
        db.delete_range(key(1000), key(4000)).expect("deletes");
        for place in ["memory", "a run", "a run below another one"] {
            let before = db.stats().expect("open");
            for from in (1100..3900).step_by(100) {
                let range = key(from)..key(from + 20);
                assert_eq!(db.range(range.clone()).count(), 0, "{guard}: {from}");
                assert_eq!(db.range(range).rev().count(), 0, "{guard}: {from}");
            }
            let read =
                db.stats().expect("open").closed_seek.blocks_read - before.closed_seek.blocks_read;
            // Filters that know no ranges name the newest run, whose keys lie around.
            let few = if place == "a run below another one" { 56 } else { 0 };
            assert!(read <= few, "{guard}: {read} blocks, the deletion in {place}");
            assert_eq!(db.range(key(3990)..key(4010)).count(), 10, "{guard}: behind it");
            assert_eq!(db.range(key(3990)..key(4010)).rev().count(), 10, "{guard}: behind it");
            db.flush().expect("flushes");
            put_all(&db, 500..501, "new");
            put_all(&db, 4500..4501, "new");
        }
    }
}

#[test]
fn a_range_of_nothing_deletes_nothing_and_one_that_ends_first_is_refused() {
    let db = open(&Memory::new(), GuardKind::Grf);
    put_all(&db, 0..10, "value");
    db.delete_range("", "").expect("nothing");
    db.delete_range(key(5), key(5)).expect("nothing");
    let refused = db.delete_range(key(6), key(5)).expect_err("ends before it begins");
    assert!(
        matches!(&refused, Error::InvertedRange { from, to } if from == b"00006" && to == b"00005")
    );
    assert!(refused.to_string().contains("from 00006 to 00005"), "{refused}");
    let long = vec![b'z'; trommel::limits::KEY_BYTES_MAX + 1];
    assert!(matches!(db.delete_range("a", &long), Err(Error::KeyTooLong { .. })));
    assert_eq!(keys(&db).len(), 10);
    assert_eq!(db.stats().expect("open").writes, 10);
    db.delete_range("", key(9)).expect("deletes");
    assert_eq!(keys(&db), [9]);
}

#[test]
fn a_batch_is_applied_in_its_order() {
    let db = open(&Memory::new(), GuardKind::Grf);
    let mut batch = Batch::new();
    batch.put(key(1), "gone").delete_range(key(0), key(5)).put(key(2), "stays");
    batch.put(key(3), "gone").delete_range(key(3), key(4));
    db.write(batch).expect("writes");
    assert_eq!(keys(&db), [2]);
    db.flush().expect("flushes");
    assert_eq!(keys(&db), [2]);
}

/// Nothing but deletions in memory, in runs, and in a store without anything to delete.
#[test]
fn a_run_may_have_no_entries() {
    for guard in trommel_guards::all_guards() {
        let disk = Memory::new();
        let db = open(&disk, guard);
        db.delete_range("a", "z").expect("deletes");
        db.flush().expect("flushes");
        is_sound(&db);
        assert_eq!(
            (db.stats().expect("open").run_count(), db.stats().expect("open").entries()),
            (1, 0),
            "{guard}"
        );
        assert_eq!(db.stats().expect("open").levels[0].runs[0].range_deletes, 1);
        put_all(&db, 0..30, "value");
        db.flush().expect("flushes");
        for number in 0..6 {
            db.delete_range(key(number), key(number + 1)).expect("deletes");
            db.flush().expect("flushes");
            is_sound(&db);
            assert_eq!(keys(&db), (number + 1..30).collect::<Vec<_>>(), "{guard}");
        }
        drop(db);
        let db = open(&disk, guard);
        assert_eq!(keys(&db), (6..30).collect::<Vec<_>>(), "{guard}");
        assert!(
            !db.may_contain_range(key(100)..key(200)).expect("asks") || guard == GuardKind::Open
        );
        db.settle().expect("merges");
        is_sound(&db);
        db.delete_range("", "z").expect("deletes");
        db.compact().expect("compacts");
        assert_eq!((db.stats().expect("open").run_count(), keys(&db).len()), (0, 0), "{guard}");
    }
}

/// The tables of a run share out what it deletes, and a merge of it loses nothing.
#[test]
fn deletions_are_cut_between_tables() {
    for guard in trommel_guards::all_guards() {
        let disk = Memory::new();
        let db = open(&disk, guard);
        put_all(&db, 0..500, "a value of some length, so that tables are many");
        db.compact().expect("compacts");
        let held = db.snapshot();
        db.delete_range("", key(480)).expect("deletes");
        put_all(&db, 100..300, "newer");
        db.delete_range(key(150), key(250)).expect("deletes");
        let expected: Vec<u32> = (100..150).chain(250..300).chain(480..500).collect();
        db.flush().expect("flushes");
        assert_eq!(keys(&db), expected, "{guard}");
        // The snapshot has all of it kept, in many tables.
        db.compact().expect("compacts");
        let run = &db
            .stats()
            .expect("open")
            .levels
            .iter()
            .flat_map(|l| &l.runs)
            .next()
            .expect("a run")
            .clone();
        assert!(run.tables > 5 && run.range_deletes > 5, "{run:?}");
        assert_eq!(keys(&db), expected, "{guard}");
        assert_eq!(held.range(..).count(), 500);
        is_sound(&db);
        drop((held, db));
        let db = open(&disk, guard);
        assert_eq!(keys(&db), expected, "{guard}");
        db.compact().expect("compacts");
        assert_eq!((keys(&db), db.stats().expect("open").entries()), (expected, 120), "{guard}");
    }
}

#[test]
fn a_checkpoint_has_the_deletions() {
    let disk = Memory::new();
    let db = open(&disk, GuardKind::Grf);
    put_all(&db, 0..50, "value");
    db.delete_range(key(0), key(10)).expect("deletes");
    db.flush().expect("flushes");
    db.delete_range(key(20), key(30)).expect("deletes");
    db.checkpoint("copy").expect("copies");
    let options = options(GuardKind::Grf);
    let copy = Db::open_with(Path::new("copy"), options, environment(&disk)).expect("opens");
    assert_eq!(keys(&copy), keys(&db));
    assert_eq!(keys(&copy).len(), 30);
}

/// A store with a deletion in a run and one in the log.
fn store_with_deletions() -> (Memory, Vec<u32>) {
    let disk = Memory::new();
    let db = open(&disk, GuardKind::Grf);
    put_all(&db, 0..60, "oldest");
    db.compact().expect("compacts");
    put_all(&db, 5..15, "newer");
    db.delete_range(key(10), key(30)).expect("deletes");
    db.flush().expect("flushes");
    db.delete_range(key(40), key(50)).expect("deletes");
    db.put(key(45), "newest").expect("puts");
    let expected: Vec<u32> = (0..10).chain(30..40).chain([45]).chain(50..60).collect();
    assert_eq!(keys(&db), expected);
    (disk, expected)
}

#[test]
fn a_dump_tells_of_every_deletion() {
    let (disk, _) = store_with_deletions();
    let mut dumped = BTreeMap::new();
    let tell = &mut |item: DumpItem<'_>| {
        if let DumpItem::Entry { kind: "delete-range", key, value, sequence, .. } = item {
            dumped.insert(sequence, (key.to_vec(), value.to_vec()));
        }
        ControlFlow::Continue(())
    };
    dump(&disk, DIR, tell).expect("dumps");
    let range = |from, to| (key(from).into_bytes(), key(to).into_bytes());
    assert_eq!(dumped.into_values().collect::<Vec<_>>(), [range(10, 30), range(40, 50)]);
}

fn files(disk: &Memory, ending: &str) -> Vec<std::path::PathBuf> {
    let names = disk.list(Path::new(DIR)).expect("lists").into_iter();
    names.filter(|name| name.ends_with(ending)).map(|name| Path::new(DIR).join(name)).collect()
}

#[test]
fn a_repair_keeps_the_deletions() {
    for guard in [GuardKind::Open, GuardKind::Grf] {
        let (disk, expected) = store_with_deletions();
        disk.remove(&Path::new(DIR).join("MANIFEST")).expect("removes");
        let report = repair_with(DIR, &environment(&disk)).expect("repairs");
        assert!(report.lost.is_empty() && report.manifest_rebuilt, "{report:?}");
        let db = open(&disk, guard);
        assert_eq!(keys(&db), expected);
        is_sound(&db);
        db.compact().expect("compacts");
        assert_eq!(keys(&db), expected);
    }
}

/// Of a damaged table, and of its damaged deletions.
#[test]
fn whatever_bit_of_a_table_is_flipped_deletions_are_kept_or_their_loss_is_told() {
    let (disk, expected) = store_with_deletions();
    let newest = files(&disk, ".table").pop().expect("a table");
    let bytes = disk.file(&newest).expect("is there");
    let (mut kept, mut lost) = (0, 0);
    for at in (0..bytes.len()).step_by(7) {
        let copy = disk.kill();
        copy.flip_bit(&newest, at as u64, 3);
        let report = repair_with(DIR, &environment(&copy)).expect("repairs");
        let db = open(&copy, GuardKind::Grf);
        is_sound(&db);
        let shown = keys(&db);
        let seen_again = |number: &&u32| (10..30).contains(*number);
        match shown.iter().filter(seen_again).count() {
            0 => kept += 1,
            _ => {
                lost += 1;
                assert!(!report.lost.is_empty(), "byte {at}: {shown:?} after {report:?}");
            }
        }
        assert!(shown.iter().all(|number| expected.contains(number) || (10..30).contains(number)));
    }
    assert!(kept > 10 && lost > 2, "{kept} kept, {lost} lost");
}

/// Its deletions could be read, and so nothing was said of its entries: found by the simulation.
#[test]
fn whatever_bit_is_flipped_entries_beside_deletions_are_kept_or_their_loss_is_told() {
    let disk = Memory::new();
    let db = open(&disk, GuardKind::Open);
    put_all(&db, 0..20, "value");
    db.delete_range(key(30), key(40)).expect("deletes");
    db.flush().expect("flushes");
    let (expected, table) = (keys(&db), files(&disk, ".table").pop().expect("a table"));
    drop(db);
    let mut lossy = 0;
    for at in 0..disk.file(&table).expect("is there").len() {
        let copy = disk.kill();
        copy.flip_bit(&table, at as u64, 3);
        let report = repair_with(DIR, &environment(&copy)).expect("repairs");
        let shown = keys(&open(&copy, GuardKind::Open));
        assert!(shown == expected || !report.lost.is_empty(), "byte {at}: {report:?}");
        lossy += u32::from(shown.is_empty());
    }
    assert!(lossy > 10, "the index tells where entries are: {lossy}");
}

/// Deletions that merges have left over must not come to lie below what they hide.
#[test]
fn left_over_tables_with_deletions_are_merged_by_a_repair() {
    let disk = Memory::new();
    let db = open(&disk, GuardKind::Open);
    put_all(&db, 0..20, "one");
    db.delete_range(key(5), key(10)).expect("deletes");
    db.flush().expect("flushes");
    put_all(&db, 7..25, "two");
    db.delete_range(key(12), key(15)).expect("deletes");
    db.flush().expect("flushes");
    let inputs: Vec<_> =
        files(&disk, ".table").into_iter().map(|path| (disk.file(&path).unwrap(), path)).collect();
    let held = db.snapshot();
    db.compact().expect("compacts");
    let expected = keys(&db);
    drop((held, db));
    for (bytes, path) in inputs {
        disk.put_file(&path, bytes);
    }
    disk.remove(&Path::new(DIR).join("MANIFEST")).expect("removes");
    repair_with(DIR, &environment(&disk)).expect("repairs");
    let db = open(&disk, GuardKind::Grf);
    assert_eq!(keys(&db), expected);
    for number in 0..6 {
        db.put("zz", "something").and_then(|()| db.flush()).expect("flushes");
        db.settle().expect("merges");
        let shown = db.range(..key(100)).count();
        assert_eq!(shown, expected.len(), "after {number} more flushes");
    }
}
