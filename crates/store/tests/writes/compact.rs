//! Merging everything: once, whatever was due before, was open, or was half done.

use std::path::Path;
use std::sync::Arc;

use trommel::Environment;
use trommel::options::Granularity;
use trommel::storage::{Memory, Storage};
use trommel::{Background, Db, GuardKind, Options, SyncPolicy};

const RUN_KEYS: u32 = 400;

fn options(size_ratio: u32, granularity: Granularity) -> Options {
    Options::new()
        .guard(GuardKind::Grf)
        .size_ratio(size_ratio)
        .granularity(granularity)
        .partition_bytes(16 << 10)
        .table_bytes(8 << 10)
        .block_bytes(512)
        .compression(false)
        .sync(SyncPolicy::Never)
        .background(Background::Stepped)
}

fn open(disk: &Memory, options: Options) -> Db {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with("db", options, environment).expect("opens")
}

fn write_run(db: &Db, run: u32) {
    for number in 0..RUN_KEYS {
        let key = (number * 64 + run).wrapping_mul(0x9e37_79b1).to_be_bytes();
        db.put(key, [run as u8; 24]).expect("puts");
    }
    db.flush().expect("flushes");
}

/// So many runs of the same size, none of which is merged.
fn runs(count: u32, granularity: Granularity) -> Memory {
    let disk = Memory::new();
    let db = open(&disk, options(60, granularity));
    (0..count).for_each(|run| write_run(&db, run));
    assert_eq!(db.stats().expect("open").run_count(), count as usize);
    disk
}

/// Everything was merged, and little more was written than there is, but for `spent` bytes.
#[track_caller]
fn was_written_once(db: &Db, count: u32, spent: u64, case: &str) {
    let stats = db.stats().expect("open");
    let (written, there) = (stats.bytes_merged, stats.table_bytes());
    assert_eq!((stats.run_count(), stats.merging), (1, 0), "{case}");
    assert_eq!(stats.entries(), u64::from(count * RUN_KEYS), "{case}");
    let most = there * 12 / 10 + spent;
    assert!(written <= most, "{case}: {written} bytes written, {most} expected, for {there}");
    assert_eq!(db.verify().expect("verifies").damage, [""; 0], "{case}");
    let scanned = db.range(..).filter(|entry| entry.is_ok()).count();
    assert_eq!(scanned, (count * RUN_KEYS) as usize, "{case}");
}

#[test] // What was due was merged first, and then again with all the rest.
fn everything_is_written_once_when_merges_are_due() {
    for granularity in Granularity::ALL {
        let disk = runs(26, granularity);
        let db = open(&disk, options(4, granularity));
        db.compact().expect("compacts");
        was_written_once(&db, 26, 0, granularity.name());
    }
}

#[test]
fn merges_that_are_open_are_given_up() {
    /// What a step writes at most: its entries, of less than 40 bytes each.
    const STEP_BYTES: u64 = 4096 * 40;
    for steps in [1, 2] {
        let disk = runs(26, Granularity::Full);
        let db = open(&disk, options(4, Granularity::Full));
        for _ in 0..steps {
            assert!(db.step().expect("steps"), "merges are due");
        }
        assert!(db.stats().expect("open").merging > 0);
        db.compact().expect("compacts");
        // The first step opens a merge.
        was_written_once(&db, 26, (steps - 1) * STEP_BYTES, &format!("{steps} steps"));
        let stats = db.stats().expect("open");
        let tables: u64 = stats.levels.iter().flat_map(|l| &l.runs).map(|run| run.tables).sum();
        db.close().expect("closes");
        let names = disk.list(Path::new("db")).expect("lists");
        let on_disk = names.iter().filter(|name| name.ends_with(".table")).count();
        assert_eq!(on_disk as u64, tables, "nothing is left of what was given up");
    }
}

#[test]
fn a_merge_from_partition_to_partition_is_not_ended_first() {
    let disk = runs(20, Granularity::Partitioned);
    let db = open(&disk, options(60, Granularity::Partitioned));
    db.compact().expect("compacts");
    drop(db);
    let db = open(&disk, options(60, Granularity::Partitioned));
    (20..40).for_each(|run| write_run(&db, run));
    drop(db);
    let db = open(&disk, options(4, Granularity::Partitioned));
    while db.stats().expect("open").under_way.is_none() {
        assert!(db.step().expect("steps"), "a merge into the last level is due");
    }
    let before = db.stats().expect("open").bytes_merged;
    db.compact().expect("compacts");
    let stats = db.stats().expect("open");
    let written = stats.bytes_merged - before;
    assert!(written * 10 <= stats.table_bytes() * 12, "{written} for {}", stats.table_bytes());
    assert_eq!((stats.run_count(), stats.under_way.is_none()), (1, true));
    assert_eq!(stats.entries(), u64::from(40 * RUN_KEYS));
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
}

#[test]
fn threads_give_up_what_they_are_at() {
    let disk = runs(26, Granularity::Full);
    let threaded = options(4, Granularity::Full).background(Background::Threads(2));
    let db = open(&disk, threaded);
    db.compact().expect("compacts");
    let stats = db.stats().expect("open");
    assert_eq!((stats.run_count(), stats.merging), (1, 0));
    assert_eq!(stats.entries(), u64::from(26 * RUN_KEYS));
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
    db.put("more", "").and_then(|()| db.compact()).expect("it goes on");
}

/// A key of the first partition, or behind it.
fn ordered_key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// An oldest run that lies in the first of several partitions, and above it so many runs: all of
/// them behind that partition, and the newest one deletes all that is in it.
fn oldest_run_that_empties_first(db: &Db, runs_behind: u32) {
    const HALF: u32 = 2000;
    let put = |number: u32| db.put(ordered_key(number), [number as u8; 24]).expect("puts");
    (0..2 * HALF).for_each(put);
    db.compact().expect("compacts");
    let cuts: Vec<Vec<u8>> =
        db.stats().expect("open").partitions.into_iter().skip(1).map(|part| part.from).collect();
    let cut = cuts.first().expect("several partitions").clone();
    db.delete_range(&cut[..], ordered_key(2 * HALF)).expect("deletes");
    db.compact().expect("compacts");
    let partitions = db.stats().expect("open").partitions;
    let behind = partitions[1..].iter().map(|part| part.bytes).sum::<u64>();
    assert_eq!((partitions.len() > 1, behind), (true, 0), "all of it is in the first one");
    for run in 0..runs_behind {
        (0..RUN_KEYS).for_each(|number| put(2 * HALF + number * runs_behind + run));
        if run + 1 == runs_behind {
            (0..2 * HALF).for_each(|number| db.delete(ordered_key(number)).expect("deletes"));
        }
        db.flush().expect("flushes");
    }
    assert_eq!(db.stats().expect("open").run_count(), runs_behind as usize + 1);
}

/// One run is left, without the deletions, and it answers.
#[track_caller]
fn holds_what_was_behind(db: &Db, runs_behind: u32) {
    let (stats, left) = (db.stats().expect("open"), u64::from(runs_behind * RUN_KEYS));
    assert_eq!((stats.run_count(), stats.merging, stats.under_way.is_none()), (1, 0, true));
    assert_eq!(stats.entries(), left, "deletions are gone, too");
    let scanned = db.range(..).map(|entry| entry.expect("reads").0);
    let expected = (4000..4000 + runs_behind * RUN_KEYS).map(|number| ordered_key(number).to_vec());
    assert!(scanned.eq(expected));
    assert!(db.get(ordered_key(7)).expect("reads").is_none());
    assert!(db.get(ordered_key(4007)).expect("reads").is_some());
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
}

#[test] // stress --seed 100014 --steps 1500: the merge ended with the run that it went into.
fn an_oldest_run_that_empties_in_the_first_partition_leaves_no_runs_unmerged() {
    for guard in [GuardKind::Grf, GuardKind::GrfHuffman, GuardKind::Open] {
        for runs_behind in 1..4 {
            let options = options(60, Granularity::Partitioned).guard(guard);
            let disk = Memory::new();
            let db = open(&disk, options.clone());
            oldest_run_that_empties_first(&db, runs_behind);
            db.compact().expect("compacts");
            holds_what_was_behind(&db, runs_behind);
            drop(db);
            holds_what_was_behind(&open(&disk, options), runs_behind);
        }
    }
}

#[test]
fn a_merge_whose_oldest_run_is_gone_goes_on_in_a_store_that_was_opened_again() {
    let options = options(60, Granularity::Partitioned);
    let disk = Memory::new();
    let db = open(&disk, options.clone());
    oldest_run_that_empties_first(&db, 3);
    // A merge is due under this ratio.
    drop(db);
    let db = open(&disk, options.clone().size_ratio(2));
    while db.stats().expect("open").under_way.is_none() {
        assert!(db.step().expect("steps"), "a merge into the last level is due");
    }
    assert_eq!(db.stats().expect("open").run_count(), 3, "the oldest one is gone");
    drop(db);
    let db = open(&disk, options);
    assert!(db.stats().expect("open").under_way.is_some());
    db.settle().expect("settles");
    holds_what_was_behind(&db, 3);
}
