//! Files that the tree needs no more go when their last reader does, and `stats` tells which that
//! is.
//! ```text
//! merge -> its inputs leave the tree -> the last reader lets go
//!     -> the files are gone, though nothing else is done
//! ```
//! Invariant: at rest, and without readers, there are the files of the tree alone.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use trommel::research::Research as _;

use crate::door::{Door, until};
use trommel::Environment;
use trommel::options::Granularity;
use trommel::storage::{Memory, Storage};
use trommel::{Background, Db, GuardKind, Options, SyncPolicy};

fn options(background: Background) -> Options {
    Options::new()
        .size_ratio(2)
        .write_buffer_bytes(4096)
        .block_bytes(256)
        .table_bytes(8192)
        .partition_bytes(16 << 10)
        .merge_piece_bytes(16 << 10)
        .sync(SyncPolicy::Never)
        .background(background)
}

fn open(disk: &Memory, options: Options) -> Db {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with("db", options, environment).expect("opens")
}

fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(2_654_435_761).to_be_bytes()
}

fn fill(db: &Db, numbers: std::ops::Range<u32>) {
    for number in numbers {
        db.put(key(number), vec![number as u8; 60]).expect("puts");
    }
}

/// Bytes of the tables on the disk.
fn table_bytes(disk: &Memory) -> u64 {
    let names = disk.list(Path::new("db")).expect("lists");
    let tables = names.iter().filter(|name| name.ends_with(".table"));
    let bytes = |name: &String| disk.file(Path::new("db").join(name)).map_or(0, |b| b.len() as u64);
    tables.map(bytes).sum()
}

/// Bytes of the files of the tree, each once.
fn live_bytes(db: &Db) -> u64 {
    db.stats().expect("open").table_bytes()
}

// They stayed until the next flush or merge was installed: a store at rest had twice its space.
#[test]
fn replaced_tables_go_though_nothing_else_is_done() {
    let disk = Memory::new();
    let db = open(&disk, options(Background::Threads(2)));
    for _ in 0..3 {
        fill(&db, 0..2000);
        db.flush().expect("flushes");
        db.compact().expect("merges");
        until("the space of the tree alone", || table_bytes(&disk) == live_bytes(&db));
        let obsolete = db.stats().expect("open").obsolete;
        assert_eq!((obsolete.tables, obsolete.bytes), (0, 0));
    }
}

// Each flush and merge added to it for as long as the store was open, and the next opening read it
// all.
#[test]
fn the_manifest_of_a_store_that_stays_open_has_a_bound() {
    let disk = Memory::new();
    let db = open(&disk, options(Background::Stepped));
    let manifest = Path::new("db").join("MANIFEST");
    let bytes = || disk.file(&manifest).expect("is there").len();
    let (mut longest, mut fresh) = (0, 0);
    for round in 0..2000u32 {
        let before = bytes();
        db.put(round.to_be_bytes(), b"value").expect("puts");
        db.flush().expect("flushes");
        db.settle().expect("merges");
        fresh += u32::from(bytes() < before);
        longest = longest.max(bytes());
    }
    assert!(longest < 100 << 10, "{longest} bytes");
    assert!(fresh > 1, "it has begun anew {fresh} times");
    drop(db);
    let db = open(&disk, options(Background::Stepped));
    assert_eq!(db.range(..).count(), 2000);
}

#[test]
fn replaced_tables_go_with_the_last_reader_and_stats_tell_who_that_is() {
    let disk = Memory::new();
    let db = open(&disk, options(Background::Threads(1)));
    fill(&db, 0..500);
    db.compact().expect("merges");
    let mut scan = db.range(..);
    scan.next().expect("there are keys").expect("reads");
    let (tree, snapshot) = (db.pinned_tree(), db.snapshot());
    let pinned = live_bytes(&db);
    let followed = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&followed);
    db.follow_tree(move |tree| {
        keep.lock().expect("no panic").get_or_insert(tree);
    })
    .expect("open");
    fill(&db, 500..1000);
    db.compact().expect("merges");
    until("only held tables", || {
        db.stats().expect("open").obsolete.bytes == table_bytes(&disk) - live_bytes(&db)
    });
    let held = db.stats().expect("open").obsolete;
    assert!(held.tables > 0 && held.bytes > 0);
    let holders = (held.scans, held.pinned_trees, held.followed_trees);
    assert_eq!(holders, (1, 1, 1), "a snapshot holds no files");
    assert_eq!(db.stats().expect("open").leaving_tables, held.tables);
    // The merge's own thread removes what is not held, and then sleeps: what goes later, goes by
    // the keeper's hand.
    until("what nobody holds has gone", || db.stats().expect("open").obsolete.bytes == pinned);
    std::thread::sleep(Duration::from_millis(30));
    // A scan that moves lets go.
    scan.next().expect("there are more").expect("reads");
    let held = db.stats().expect("open").obsolete;
    let holders = (held.scans, held.pinned_trees, held.followed_trees);
    assert_eq!((holders, held.tables > 0), ((0, 1, 1), true));
    drop(tree);
    let held = db.stats().expect("open").obsolete;
    let holders = (held.scans, held.pinned_trees, held.followed_trees);
    assert_eq!((holders, held.tables > 0), ((0, 0, 1), true));
    *followed.lock().expect("no panic") = None;
    until("the space of the tree alone", || table_bytes(&disk) == live_bytes(&db));
    let free = db.stats().expect("open").obsolete;
    let holders = (free.scans, free.pinned_trees, free.followed_trees);
    assert_eq!((free.tables, free.bytes, holders), (0, 0, (0, 0, 0)));
    assert_eq!(scan.count(), 498);
    drop(snapshot);
}

#[test]
fn in_steps_replaced_tables_go_with_the_next_step() {
    let disk = Memory::new();
    let db = open(&disk, options(Background::Stepped));
    fill(&db, 0..500);
    db.compact().expect("merges");
    assert_eq!(table_bytes(&disk), live_bytes(&db));
    let tree = db.pinned_tree();
    fill(&db, 0..500);
    db.compact().expect("merges");
    assert!(table_bytes(&disk) > live_bytes(&db));
    drop(tree);
    assert!(!db.step().expect("steps"), "nothing is due");
    assert_eq!(table_bytes(&disk), live_bytes(&db));
}

#[test]
fn at_rest_every_tree_has_its_own_files_alone() {
    let granularities = [Granularity::Full, Granularity::Partitioned, Granularity::Partial];
    for guard in trommel_guards::all_guards() {
        for granularity in granularities {
            let disk = Memory::new();
            let stepped = options(Background::Stepped);
            let db = open(&disk, stepped.guard(guard).granularity(granularity));
            for round in 0..3 {
                fill(&db, 0..200);
                fill(&db, 200 * round..200 * (round + 1));
                db.flush().expect("flushes");
                db.settle().expect("settles");
                let (there, live) = (table_bytes(&disk), live_bytes(&db));
                let names = disk.list(Path::new("db")).expect("lists");
                let trimmed = db.stats().expect("open").trimmed_tables;
                assert!(there == live || trimmed > 0, "{guard}, {granularity:?}: {there}, {live}");
                let tables = names.iter().filter(|name| name.ends_with(".table")).count() as u64;
                let runs = db.stats().expect("open").levels;
                let in_tree: u64 = runs.iter().flat_map(|l| &l.runs).map(|run| run.tables).sum();
                assert!(tables <= in_tree, "{guard}, {granularity:?}: {names:?}");
            }
        }
    }
}

#[test] // A merge that was closed in the middle left half a table, which `dump` called damaged.
fn closing_leaves_nothing_of_what_is_half_done() {
    for granularity in [Granularity::Full, Granularity::Partitioned, Granularity::Partial] {
        for steps in 1..40 {
            let disk = Memory::new();
            let merges_at_once = Some(3);
            let stepped = options(Background::Stepped);
            let db = open(&disk, stepped.granularity(granularity).merges_at_once(merges_at_once));
            fill(&db, 0..3000);
            for choice in 0..steps {
                db.step_any(choice).expect("steps");
            }
            let live = live_bytes(&db);
            let trimmed = db.stats().expect("open").trimmed_tables;
            db.close().expect("closes");
            let left = table_bytes(&disk);
            assert!(left == live || trimmed > 0, "{granularity:?}, {steps} steps: {left}, {live}");
            let again = open(&disk, options(Background::Stepped));
            assert_eq!(again.range(..).count(), 3000);
        }
    }
}

// Each try left what it had written: on a full disk retries made it fuller, and what was freed was
// never enough.
#[test]
fn merges_whose_edits_find_no_room_leave_no_tables() {
    for (guard, granularity) in
        [(GuardKind::Open, Granularity::Full), (GuardKind::Grf, Granularity::Partitioned)]
    {
        let (disk, is_full) = (Memory::new(), Arc::new(AtomicBool::new(false)));
        let fullness = Arc::clone(&is_full);
        let door = Door::refusing(&disk, move |operation, path| {
            let is_manifest = path.to_string_lossy().contains("MANIFEST");
            if operation == "append" && is_manifest && fullness.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            Ok(())
        });
        let environment = Environment::new().storage(Arc::new(door));
        let options = options(Background::Stepped).guard(guard).granularity(granularity);
        let db = Db::open_with("db", options.clone(), environment).expect("opens");
        fill(&db, 0..500);
        db.flush().expect("flushes");
        is_full.store(true, Ordering::Relaxed);
        let mut left = Vec::new();
        for _ in 0..5 {
            db.compact().expect_err("the manifest takes nothing");
            left.push(table_bytes(&disk) - live_bytes(&db));
        }
        // The first edit may be in the manifest or not, and so its tables stay; those that follow
        // are surely not.
        assert!(left[1..].iter().all(|bytes| *bytes == left[0]), "{left:?}");
        is_full.store(false, Ordering::Relaxed);
        db.compact().expect("there is room again");
        assert_eq!(table_bytes(&disk), live_bytes(&db));
        drop(db);
        assert_eq!(open(&disk, options).range(..).count(), 500);
    }
}
