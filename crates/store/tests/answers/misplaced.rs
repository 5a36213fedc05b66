//! Sound bytes in a place that is not theirs: blocks and tables that a disk, or somebody, has put
//! elsewhere.
//! ```text
//! a block    in the place of another one of its table, or of the like one of another table
//! a table    under the name of another one with the same keys, entries and bytes; or from another
//!            store, under its own name
//! ```
//! Invariant: it is damage, and named; no older value is an answer.

use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trommel::Environment;
use trommel::storage::{Memory, Storage as _};
use trommel::tools::{DumpItem, dump, repair_with};
use trommel::{Background, Db, Error, GuardKind, Options, SyncPolicy};

fn environment(disk: &Memory) -> Environment {
    Environment::new().storage(Arc::new(disk.clone()))
}

fn open(disk: &Memory) -> trommel::Result<Db> {
    open_with(disk, GuardKind::Open, 4)
}

fn open_with(disk: &Memory, guard: GuardKind, size_ratio: u32) -> trommel::Result<Db> {
    let options = Options::new()
        .guard(guard)
        .size_ratio(size_ratio)
        .block_bytes(256)
        .compression(false)
        .sync(SyncPolicy::Always)
        .background(Background::Stepped);
    Db::open_with("db", options, environment(disk))
}

/// Oldest first.
fn tables(disk: &Memory) -> Vec<PathBuf> {
    let names = disk.list(Path::new("db")).expect("lists");
    let tables = names.iter().filter(|name| name.ends_with(".table"));
    tables.map(|name| Path::new("db").join(name)).collect()
}

fn bytes(disk: &Memory, path: &Path) -> Vec<u8> {
    disk.file(path).expect("is there")
}

/// Where the blocks of a table lie, but for the last one.
fn blocks(disk: &Memory, path: &Path) -> Vec<Range<usize>> {
    let mut starts = BTreeSet::new();
    let tell = &mut |item: DumpItem<'_>| {
        if let DumpItem::Entry { offset, .. } = item {
            starts.insert(offset as usize);
        }
        ControlFlow::Continue(())
    };
    dump(disk, path, tell).expect("dumps");
    let starts: Vec<_> = starts.into_iter().collect();
    starts.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

#[test]
fn blocks_of_one_key_that_change_places_are_no_right_answer() {
    let disk = Memory::new();
    let db = open(&disk).expect("opens");
    let put = |version| {
        db.put("key", format!("{version:03} {}", "x".repeat(40))).expect("puts");
        db.snapshot()
    };
    let held: Vec<_> = (100..200).map(put).collect();
    db.flush().expect("flushes");
    drop((held, db));
    let path = tables(&disk).remove(0);
    let (sound, blocks) = (bytes(&disk, &path), blocks(&disk, &path));
    let [one, two, ..] = &blocks[..] else { panic!("{blocks:?}") };
    assert_eq!(one.len(), two.len());
    let parts = [&sound[two.clone()], &sound[one.clone()], &sound[two.end..]];
    disk.put_file(&path, parts.concat());
    let db = open(&disk).expect("opens");
    assert!(matches!(db.get("key"), Err(Error::Corrupt { .. })));
    let damage = db.verify().expect("verifies").damage;
    assert!(damage.iter().any(|what| what.contains("data block 0")), "{damage:?}");
}

/// Of the tables that are alike: more than two blocks each.
const KEYS: usize = 90;

/// The newest two tables have the same keys, as many entries and bytes.
fn two_alike() -> Memory {
    let disk = Memory::new();
    let db = open(&disk).expect("opens");
    (0..200).for_each(|n| db.put(format!("other {n}"), "").expect("puts"));
    db.flush().expect("flushes");
    for value in ["old", "new"] {
        (0..KEYS).for_each(|n| db.put(format!("key {n:03}"), value).expect("puts"));
        db.flush().expect("flushes");
    }
    disk
}

/// How many keys have their newest value; none has an older one.
fn newest(db: &Db) -> usize {
    let right = |n: &usize| match db.get(format!("key {n:03}")) {
        Ok(value) => {
            assert_eq!(value.as_deref(), Some(&b"new"[..]), "key {n}");
            true
        }
        Err(error) => {
            assert!(matches!(error, Error::Corrupt { .. }), "{error}");
            false
        }
    };
    (0..KEYS).filter(right).count()
}

#[test]
fn tables_that_change_places_are_named() {
    let disk = two_alike();
    let files = tables(&disk);
    let [.., one, two] = &files[..] else { panic!("three tables") };
    let (first, second) = (bytes(&disk, one), bytes(&disk, two));
    assert_eq!(first.len(), second.len());
    disk.put_file(one, second);
    disk.put_file(two, first);
    let refused = open(&disk).map(drop).expect_err("another table is in its place").to_string();
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let says = refused.contains(&format!("it is {}, under another name", name(one)));
    assert!(says && refused.contains(&name(two)), "{refused}");
    let report = repair_with("db", &environment(&disk)).expect("repairs");
    assert!(report.lost.len() >= 2 && report.rewritten == 0, "{report:?}");
    let db = open(&disk).expect("opens");
    assert_eq!(db.get("key 007").expect("gets"), None, "neither is in the tree");
    assert_eq!(db.range(..).count(), 200);
}

#[test]
fn a_block_in_the_same_place_of_another_table_is_named() {
    let disk = two_alike();
    let files = tables(&disk);
    let [.., one, two] = &files[..] else { panic!("three tables") };
    let block = blocks(&disk, one).remove(1);
    assert_eq!(blocks(&disk, two)[1], block);
    let (old, mut new) = (bytes(&disk, one), bytes(&disk, two));
    new[block.clone()].copy_from_slice(&old[block]);
    disk.put_file(two, new);
    let db = open(&disk).expect("opens");
    assert!((1..KEYS).contains(&newest(&db)));
    let damage = db.verify().expect("verifies").damage;
    assert!(damage.iter().all(|what| what.contains("data block 1")), "{damage:?}");
    drop(db);
    repair_with("db", &environment(&disk)).expect("repairs");
}

/// A store whose oldest two runs of level 0 are about to be merged into level 1, and a newer one.
/// `writes`: how often those keys are written, of which one entry each is kept.
fn before_an_inner_merge(guard: GuardKind, writes: usize) -> Memory {
    let disk = Memory::new();
    let db = open_with(&disk, guard, 2).expect("opens");
    let put = |n: usize, times: usize| {
        for _ in 0..times {
            (0..10).for_each(|at| db.put(format!("key {n:03} {at}"), "value").expect("puts"));
        }
        db.flush().expect("flushes");
    };
    for n in 0..20 {
        put(n, 1);
        db.settle().expect("merges");
    }
    while db.step().expect("steps") {}
    [writes, writes, 1].into_iter().for_each(|times| put(20, times));
    disk
}

#[test]
fn tables_of_another_store_with_later_writes_are_damage_to_a_merge() {
    for guard in [GuardKind::Open, GuardKind::Grf] {
        let (disk, other) = (before_an_inner_merge(guard, 1), before_an_inner_merge(guard, 100));
        let files = tables(&disk);
        assert_eq!(files, tables(&other));
        let [.., one, two, _] = &files[..] else { panic!("{files:?}") };
        [one, two].into_iter().for_each(|path| disk.put_file(path, bytes(&other, path)));
        let Ok(db) = open_with(&disk, guard, 2) else { continue };
        let merged = db.settle();
        assert!(matches!(merged, Err(Error::Corrupt { .. })), "{guard:?}: {merged:?}");
        assert_eq!(tables(&disk), files, "{guard:?}: tables are left");
    }
}
