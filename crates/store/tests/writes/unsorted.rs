//! Entries in any order, loaded at once: as if they had been put one after the other, or not at
//! all.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trommel::sorting::{SortOptions, SortStage};
use trommel::storage::{Memory, Storage};
use trommel::testing::Fault;
use trommel::{Background, Db, Environment, Error, GuardKind, Options, SyncPolicy};

const MEMORY_BYTES: usize = 16 << 10;

fn open(disk: &Memory, guard: GuardKind) -> trommel::Result<Db> {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    let options = Options::new()
        .guard(guard)
        .size_ratio(4)
        .block_bytes(512)
        .table_bytes(32 << 10)
        .value_threshold(1000)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped);
    Db::open_with(Path::new("db"), options, environment)
}

fn small() -> SortOptions {
    SortOptions { memory_bytes: MEMORY_BYTES, folder: None }
}

fn key(number: u64) -> Vec<u8> {
    format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).into_bytes()
}

/// So many rows, of which each tenth has the key of another one; some values are apart.
fn rows(count: u64) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> + Clone {
    (0..count).map(move |n| {
        let repeated = if n % 500 == 0 { 200 } else { 3 };
        (key(n % (count - count / 10)), n.to_le_bytes().repeat(repeated))
    })
}

fn contents(db: &Db) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let entries = db.range(..).map(|entry| entry.expect("reads"));
    entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

fn spills(disk: &Memory, folder: &str) -> Vec<String> {
    let names = disk.list(Path::new(folder)).expect("lists");
    names.into_iter().filter(|name| name.ends_with(".sort")).collect()
}

#[test]
fn it_is_as_if_they_had_been_put() {
    for guard in trommel_guards::all_guards() {
        let disk = Memory::new();
        let db = open(&disk, guard).expect("opens");
        db.put(key(5), "before").and_then(|()| db.put("other", "before")).expect("puts");
        let mut expected: BTreeMap<_, _> = [(b"other".to_vec(), b"before".to_vec())].into();
        expected.extend(rows(5000));
        let loaded = db.ingest_unsorted(rows(5000), &small()).expect("loads");
        assert_eq!(loaded, 4500, "{guard}");
        assert!(contents(&db) == expected, "{guard}");
        db.put(key(6), "after").expect("puts");
        expected.insert(key(6), b"after".to_vec());
        db.compact().expect("merges");
        assert_eq!(db.verify().expect("verifies").damage, [""; 0], "{guard}");
        drop(db);
        let db = open(&disk.crash_hard(), guard).expect("opens");
        // What was put behind it is in no synced log.
        expected.remove(&key(6));
        let mut found = contents(&db);
        found.remove(&key(6));
        assert!(found == expected, "{guard}");
    }
}

#[test]
fn nothing_is_left_of_what_is_refused() {
    let disk = Memory::new();
    let db = open(&disk, GuardKind::Grf).expect("opens");
    db.put("a", "1").expect("puts");
    let failing = rows(5000).map(Ok).chain([Err(Error::Missing { path: "the source".into() })]);
    let error = db.try_ingest_unsorted(failing, &small(), &mut |_| ControlFlow::Continue(()));
    assert!(error.expect_err("the source fails").to_string().contains("the source"));
    let long = vec![b'z'; trommel::limits::KEY_BYTES_MAX + 1];
    let error = db.ingest_unsorted(rows(5000).chain([(long, Vec::new())]), &small());
    assert!(matches!(error, Err(Error::KeyTooLong { .. })), "{error:?}");
    let little = SortOptions { memory_bytes: MEMORY_BYTES - 1, folder: None };
    let error = db.ingest_unsorted(rows(10), &little).expect_err("too little");
    assert!(error.to_string().contains("at least 16384"), "{error}");
    let nowhere = SortOptions { folder: Some(PathBuf::from("nowhere")), ..small() };
    let error = db.ingest_unsorted(rows(10), &nowhere).expect_err("no folder");
    assert!(error.to_string().contains("nowhere"), "{error}");
    assert_eq!(db.ingest_unsorted(rows(0), &small()).expect("nothing"), 0);
    assert_eq!((contents(&db).len(), db.stats().expect("open").run_count()), (1, 0));
    assert_eq!(spills(&disk, "db"), [""; 0]);
    // A key without bytes is one, as for `ingest`.
    let empty = [("b", "2"), ("", "1"), ("b", "3")];
    assert_eq!(db.ingest_unsorted(empty, &small()).expect("loads"), 2);
    assert_eq!(db.get("").expect("gets").as_deref(), Some(&b"1"[..]));
}

#[test]
fn its_listener_hears_all_of_it_and_can_stop_it() {
    let disk = Memory::new();
    let db = open(&disk, GuardKind::Open).expect("opens");
    for stage in [SortStage::Reading, SortStage::Merging, SortStage::Writing] {
        let mut heard = Vec::new();
        let stopped = db.try_ingest_unsorted(rows(100_000).map(Ok), &small(), &mut |progress| {
            heard.push(progress);
            let reached = progress.stage == stage && progress.done > 0;
            if reached { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(matches!(stopped, Err(Error::Cancelled)), "{stage:?}: {stopped:?}");
        let last = heard.last().expect("it heard something");
        assert_eq!(last.stage, stage);
        assert!(last.done <= last.total || stage == SortStage::Reading, "{last:?}");
        assert_eq!((contents(&db).len(), spills(&disk, "db").len()), (0, 0), "{stage:?}");
    }
}

/// Every operation of the disk fails once, or from then on: all of it is there, or nothing, and no
/// file of the sort is left.
#[test]
fn whatever_fails_all_is_there_or_nothing() {
    let operations = {
        let disk = Memory::new();
        let db = open(&disk, GuardKind::Grf).expect("opens");
        let before = disk.operations();
        db.ingest_unsorted(rows(1000), &small()).expect("loads");
        disk.operations() - before
    };
    assert!(operations > 80, "{operations}");
    let faults = [(Fault::Io, false), (Fault::NoSpace, false), (Fault::NoSpace, true)];
    for (after, (kind, lasts)) in (0..operations).flat_map(|n| faults.map(|fault| (n, fault))) {
        let disk = Memory::new();
        let db = open(&disk, GuardKind::Grf).expect("opens");
        db.put(key(3), "old").and_then(|()| db.sync()).expect("puts");
        match lasts {
            true => disk.fail_from(after, kind),
            false => disk.fail_at(after, kind),
        }
        let loaded = db.ingest_unsorted(rows(1000), &small());
        disk.mend();
        let case = format!("{after} {kind:?} {lasts}: {loaded:?}");
        let mut expected: BTreeMap<_, _> = [(key(3), b"old".to_vec())].into();
        if loaded.is_ok() {
            expected.extend(rows(1000));
        }
        assert!(contents(&db) == expected, "{case}");
        assert_eq!(spills(&disk, "db"), [""; 0], "{case}");
        db.put("later", "1").and_then(|()| db.sync()).expect("the store goes on");
        let again = open(&disk.crash_hard(), GuardKind::Grf).expect("opens");
        let mut found = contents(&again);
        assert!(found.remove(&b"later"[..]).is_some(), "{case}");
        let whole = {
            let mut all = expected.clone();
            all.extend(rows(1000));
            all
        };
        assert!(found == expected || found == whole, "{case}: half of it");
    }
}

/// A process that is killed leaves nothing, but where names of open files cannot be removed.
#[test]
fn what_a_killed_sort_has_left_is_removed_at_the_next_opening() {
    let disk = Memory::new();
    disk.create_dir(Path::new("elsewhere")).expect("made");
    let elsewhere = SortOptions { folder: Some("elsewhere".into()), ..small() };
    for (options, folder) in [(small(), "db"), (elsewhere, "elsewhere")] {
        let db = open(&disk, GuardKind::Grf).expect("opens");
        let mut killed = None;
        let watched = rows(4000).enumerate().map(|(at, row)| {
            if at == 3500 {
                killed = Some(disk.kill());
            }
            row
        });
        db.ingest_unsorted(watched, &options).expect("loads");
        assert_eq!(spills(&killed.expect("it was"), folder), [""; 0]);
    }
    // A name that was never removed, and names of others.
    for name in ["000009.sort", "9.sort", "words.sort"] {
        disk.put_file(Path::new("db").join(name), b"rows".to_vec());
    }
    drop(open(&disk, GuardKind::Grf).expect("opens"));
    assert_eq!(spills(&disk, "db"), ["9.sort", "words.sort"]);
    // Another's file in the folder is passed over.
    disk.put_file("elsewhere/000030.sort", b"another's".to_vec());
    let db = open(&disk, GuardKind::Grf).expect("opens");
    let elsewhere = SortOptions { folder: Some("elsewhere".into()), ..small() };
    db.ingest_unsorted(rows(20_000), &elsewhere).expect("loads");
    assert_eq!(spills(&disk, "elsewhere"), ["000030.sort"]);
}
