//! Faults that follow each other, with crashes behind them: what was acknowledged stays, whatever
//! went wrong before and after, and what went wrong for a while does not stay wrong.
//! ```text
//! write ok | fault | write ok or not | fault | write ok or not | crash | open:
//!     every acknowledged write
//! ```
//! Invariant: a batch that gave an error is there as a whole or not at all; no error unmakes
//! another.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use trommel::Environment;
use trommel::storage::{Memory, Storage};
use trommel::testing::{Fault, PausePoint, Pauses};
use trommel::{Background, Batch, Db, KeyspaceOptions, Options, SyncPolicy};

const DIR: &str = "db";

fn options(sync: SyncPolicy) -> Options {
    Options::new()
        .size_ratio(2)
        .write_buffer_bytes(1024)
        .block_bytes(256)
        .sync(sync)
        .background(Background::Stepped)
}

fn open(disk: &Memory, options: &Options) -> trommel::Result<Db> {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with(Path::new(DIR), options.clone(), environment)
}

fn key_of(number: u32) -> String {
    format!("batch {number:03}")
}

/// Writes batches, flushes now and then, and goes on after errors. At the first error the
/// `second`-th operation from there is made to fail too. From then on `check` sees what was
/// acknowledged so far.
fn history(
    disk: &Memory,
    db: &Db,
    batches: std::ops::Range<u32>,
    second: u64,
    check: &mut dyn FnMut(&[u32]),
) -> Vec<u32> {
    let mut acknowledged = Vec::new();
    let mut failed = false;
    for number in batches {
        let mut batch = Batch::new();
        batch.put("left", number.to_be_bytes()).put("right", number.to_be_bytes());
        batch.put(key_of(number), vec![b'.'; 60]);
        let written = db.write(batch);
        acknowledged.extend(written.is_ok().then_some(number));
        let flushed = if number % 5 == 3 { db.flush() } else { Ok(()) };
        let stepped = if number % 4 == 2 { db.step() } else { Ok(true) };
        if !failed && (written.is_err() || flushed.is_err() || stepped.is_err()) {
            failed = true;
            disk.fail_at(second, Fault::Io);
        }
        if failed {
            check(&acknowledged);
        }
    }
    acknowledged
}

/// Which batches are there. Panics if one is there in half.
fn found(db: &Db) -> Vec<u32> {
    let value = |key: &str| db.get(key).expect("gets").map(|value| value.to_vec());
    assert_eq!(value("left"), value("right"), "half a batch");
    (0..100).filter(|&number| db.get(key_of(number)).expect("gets").is_some()).collect()
}

/// Opens the disk after a crash. Panics if it does not open.
fn open_crashed(disk: &Memory, options: &Options, case: &str) -> Db {
    open(disk, options).unwrap_or_else(|error| panic!("{case}: {error}"))
}

#[test]
fn two_faults_and_a_crash_lose_nothing_that_was_acknowledged() {
    let options = options(SyncPolicy::Always);
    for first in 0..60 {
        for second in 0..7 {
            let disk = Memory::new();
            let db = open(&disk, &options).expect("opens");
            disk.fail_at(first, Fault::Io);
            let mut seed = first * 7 + second;
            history(&disk, &db, 0..16, second, &mut |acknowledged| {
                seed += 1000;
                let case = format!("faults {first} and {second}, crash {seed}");
                for disk in [disk.crash_hard(), disk.crash(seed)] {
                    let db = open_crashed(&disk, &options, &case);
                    let found = found(&db);
                    let lost = acknowledged.iter().find(|number| !found.contains(number));
                    assert_eq!(lost, None, "{case}: an acknowledged write is lost");
                    db.put("more", "x").expect("writing goes on");
                }
            });
        }
    }
}

#[test]
fn two_faults_and_a_crash_without_sync_lose_a_suffix() {
    let options = options(SyncPolicy::Never);
    for first in 0..40 {
        for second in 0..7 {
            let disk = Memory::new();
            let db = open(&disk, &options).expect("opens");
            disk.fail_at(first, Fault::Io);
            let mut seed = first * 7 + second;
            history(&disk, &db, 0..16, second, &mut |acknowledged| {
                seed += 1000;
                let case = format!("faults {first} and {second}, crash {seed}");
                let db = open_crashed(&disk.crash(seed), &options, &case);
                let found = found(&db);
                let there = |number: &&u32| found.contains(*number);
                let kept = acknowledged.iter().take_while(there).count();
                let later = acknowledged[kept..].iter().find(there);
                assert_eq!(later, None, "{case}: a write in the middle is lost");
            });
        }
    }
}

#[test]
fn a_log_goes_on_only_where_no_other_follows_it() {
    for n in 0..12 {
        let disk = Memory::new();
        let big = options(SyncPolicy::Always).write_buffer_bytes(1 << 20);
        let db = open(&disk, &big).expect("opens");
        db.put("before", "1").expect("puts");
        disk.fail_at(n, Fault::Io);
        let flushed = db.flush().is_ok();
        disk.fail_at(1 << 40, Fault::Io);
        // The next log may be there already, and say how long this one is.
        db.put("after", "2").expect("puts");
        drop(db);
        for disk in [disk.crash_hard(), disk] {
            let db = open(&disk, &big).expect("opens");
            for key in ["before", "after"] {
                assert!(db.get(key).expect("gets").is_some(), "{key} lost, {n}, {flushed}");
            }
        }
    }
}

#[test]
fn a_store_whose_log_failed_for_a_while_can_be_closed() {
    for background in [Background::Stepped, Background::Threads(1)] {
        for (sync, last) in
            [(SyncPolicy::Never, false), (SyncPolicy::Always, true), (SyncPolicy::Never, true)]
        {
            let disk = Memory::new();
            let db = open(&disk, &options(sync).background(background)).expect("opens");
            db.put("acknowledged", "1").expect("puts");
            disk.fail_at(0, Fault::Io);
            db.put("refused", "2").expect_err("the log fails");
            if !last {
                db.put("later", "3").expect("writing goes on in another log");
            }
            db.close().expect("the disk is well again");
            let db = open(&disk.crash_hard(), &options(sync)).expect("opens");
            assert!(db.get("acknowledged").expect("gets").is_some(), "{background:?} {sync:?}");
            assert_eq!(db.get("later").expect("gets").is_some(), !last);
        }
    }
}

#[test]
fn stats_tell_of_a_log_that_has_failed() {
    let disk = Memory::new();
    let db = open(&disk, &options(SyncPolicy::Always)).expect("opens");
    let fails = |db: &Db| {
        let refused = db.put("refused", "1").expect_err("the log fails").to_string();
        let failure = db.stats().expect("open").failure.expect("what fails is told");
        assert!(failure.contains("the log has failed") && failure.contains(&refused), "{failure}");
        assert!(db.stats().expect("open").prometheus().contains("trommel_stopped 1"));
    };
    db.put("before", "1").expect("puts");
    disk.fail_at(0, Fault::Io);
    fails(&db);
    db.put("after", "1").expect("another log takes its place");
    assert_eq!(db.stats().expect("open").failure, None);
    db.close().expect("closes");
    // A log that was read is begun anew with the first write.
    let db = open(&disk, &options(SyncPolicy::Always)).expect("opens");
    disk.fail_from(0, Fault::NoSpace);
    fails(&db);
    disk.mend();
    db.put("after", "2").expect("there is space again");
    assert_eq!(db.stats().expect("open").failure, None);
}

// The write that made the logs too long is done, so it gives no error.
#[test]
fn stats_tell_of_a_log_that_fails_while_entries_are_repeated() {
    let disk = Memory::new();
    let sizes = options(SyncPolicy::Never).max_log_bytes(1 << 20).write_buffer_bytes(1 << 20);
    let db = open(&disk, &sizes).expect("opens");
    let busy = db.keyspace("busy", KeyspaceOptions::new()).expect("makes it");
    db.put("quiet", "1").expect("puts");
    let failure = (0..200u32).find_map(|number| {
        if number % 28 == 27 {
            busy.flush().expect("flushes");
            while db.step().expect("works") {}
        }
        // The log takes the write, but nothing behind it.
        disk.fail_at(1, Fault::Io);
        busy.put(number.to_be_bytes(), [7; 10_000]).expect("puts");
        disk.mend();
        db.stats().expect("open").failure
    });
    let failure = failure.expect("entries are repeated, and what fails is told");
    assert!(failure.contains("the log has failed"), "{failure}");
    db.put("after", "1").expect("another log takes its place");
    assert_eq!(db.stats().expect("open").failure, None);
}

type Home = Arc<OnceLock<std::sync::Weak<Db>>>;

/// A store whose threads come to `hook`, which is given the store.
fn open_hooked(
    disk: &Memory,
    options: Options,
    hook: impl Fn(&Db, PausePoint) + Send + std::marker::Sync + 'static,
) -> Arc<Db> {
    let home = Home::default();
    let found = Arc::clone(&home);
    let pauses = Pauses::new(move |point| {
        if let Some(db) = found.get().and_then(std::sync::Weak::upgrade) {
            hook(&db, point);
        }
    });
    let storage = Arc::new(disk.clone());
    let environment = Environment::new().storage(storage).pauses(pauses);
    let db = Db::open_with(Path::new(DIR), options, environment).expect("opens");
    let db = Arc::new(db);
    home.set(Arc::downgrade(&db)).expect("set once");
    db
}

fn threaded() -> Options {
    options(SyncPolicy::Never).background(Background::Threads(1))
}

#[test]
fn everything_may_be_gone_when_everything_is_to_be_merged() {
    let disk = Memory::new();
    let asked = AtomicBool::new(false);
    let db = open_hooked(&disk, options(SyncPolicy::Never), move |db, point| {
        if point == PausePoint::MergePrepared && !asked.swap(true, Ordering::SeqCst) {
            db.compact().expect("someone else is at it");
        }
    });
    db.put("a", "1").expect("puts");
    db.flush().expect("flushes");
    db.delete("a").expect("deletes");
    db.compact().expect("compacts");
    db.settle().expect("there is nothing left to merge");
    assert_eq!(db.range(..).count(), 0);
    db.put("b", "2").expect("puts");
    db.compact().expect("compacts");
    assert_eq!(db.get("b").expect("gets").as_deref(), Some(&b"2"[..]));
}

#[test]
fn a_merge_that_failed_once_can_be_asked_for_again() {
    for n in 0..14 {
        let disk = Memory::new();
        let db = open(&disk, &threaded()).expect("opens");
        db.put("a", "1").expect("puts");
        db.compact().expect("compacts");
        disk.fail_at(n, Fault::Io);
        let first = db.compact();
        disk.fail_at(1 << 40, Fault::Io);
        db.compact().unwrap_or_else(|error| panic!("fault {n}, {first:?}, then {error}"));
        db.settle().expect("all is well again");
        assert_eq!(db.stats().expect("open").failure, None, "fault {n}");
    }
}

#[test]
fn a_flush_waits_for_what_was_written_before_it_only() {
    const ENOUGH: usize = 40;
    let disk = Memory::new();
    let flushes = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&flushes);
    // Each flush finds another full memtable behind it; but a thread that flushes must not wait for
    // flushes, and one may be prepared twice.
    let db = open_hooked(&disk, threaded(), move |db, point| {
        let has_room = || db.stats().expect("open").memtables < 4;
        let is_flush = point == PausePoint::FlushPrepared;
        if is_flush && count.fetch_add(1, Ordering::SeqCst) < ENOUGH && has_room() {
            // A busy machine, too, shall let the one that waits see what is done.
            std::thread::sleep(Duration::from_millis(5));
            db.put("more", vec![b'.'; 2000]).expect("puts");
        }
    });
    for key in ["a", "b"] {
        db.put(key, vec![b'.'; 2000]).expect("puts");
    }
    db.flush().expect("flushes");
    let seen = flushes.swap(ENOUGH, Ordering::SeqCst);
    // The threads hold the store while they are in the hook: it must not end on one of them.
    db.settle().expect("settles");
    assert!(seen < ENOUGH, "it waited for {seen} flushes");
}

#[test]
fn two_lanes_that_fail_do_not_wake_each_other() {
    let disk = Memory::new();
    let (full, hand) = (Arc::new(AtomicBool::new(false)), disk.clone());
    let (armed, is_full) = (AtomicBool::new(false), Arc::clone(&full));
    let db = open_hooked(&disk, threaded(), move |db, point| {
        if point == PausePoint::MergePrepared && !armed.swap(true, Ordering::SeqCst) {
            db.put("more", vec![b'.'; 2000]).expect("puts");
            // The first one is flushed beside this one, and fills the disk: it may be refused.
            let _ = db.put("more", vec![b'.'; 2000]);
            while !is_full.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let once = armed.load(Ordering::SeqCst) && !is_full.load(Ordering::SeqCst);
        if point == PausePoint::FlushPrepared && once {
            hand.no_space(true);
            is_full.store(true, Ordering::SeqCst);
        }
    });
    for key in ["a", "b"] {
        db.put(key, "1").expect("puts");
        db.flush().expect("flushes");
    }
    while !full.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let before = disk.operations();
    std::thread::sleep(Duration::from_millis(600));
    let tried = disk.operations() - before;
    assert!(tried < 400, "{tried} operations on a full disk in half a second");
    disk.no_space(false);
    db.settle().expect("space has come back");
    let tables = disk.list(Path::new(DIR)).expect("lists");
    let tables = tables.iter().filter(|name| name.ends_with(".table")).count();
    assert!(tables < 10, "{tables} tables are left of failed flushes and merges");
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
}

// Writes were refused for a failure that was over, until the flush's pause had ended too.
#[test]
fn a_write_that_waits_for_flushes_tries_a_failed_one_again() {
    let disk = Memory::new();
    let (failed, hand) = (AtomicBool::new(false), disk.clone());
    let db = open_hooked(&disk, threaded(), move |_, point| {
        if point == PausePoint::FlushPrepared && !failed.swap(true, Ordering::SeqCst) {
            hand.fail_at(0, Fault::Io);
        }
    });
    let put = || db.put("a", vec![b'.'; 2000]);
    put().and_then(|()| put()).expect("a full memtable is sealed");
    while db.stats().expect("open").failure.is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    for _ in 0..10 {
        put().expect("what has failed succeeds now");
    }
    db.settle().expect("settles");
}

#[test]
fn a_flush_that_cannot_be_installed_writes_its_table_once() {
    let disk = Memory::new();
    let hand = disk.clone();
    let db = open_hooked(&disk, options(SyncPolicy::Never), move |_, point| {
        if point == PausePoint::FlushPrepared {
            hand.no_space(true);
        }
    });
    db.put("a", "1").expect("puts");
    for _ in 0..5 {
        db.flush().expect_err("the manifest does not fit");
        disk.no_space(false);
        let names = disk.list(Path::new(DIR)).expect("lists");
        let tables = names.iter().filter(|name| name.ends_with(".table")).count();
        assert_eq!(tables, 1, "{names:?}");
    }
    assert_eq!(db.get("a").expect("gets").as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_background_thread_that_panics_leaves_nobody_waiting() {
    let disk = Memory::new();
    let pauses = Pauses::new(|point| {
        assert!(point != PausePoint::FlushPrepared, "this panic is the test's own");
    });
    let storage = Arc::new(disk.clone());
    let environment = Environment::new().storage(storage).pauses(pauses);
    let threaded = options(SyncPolicy::Always).background(Background::Threads(1));
    let db = Db::open_with(Path::new(DIR), threaded, environment).expect("opens");
    db.put("k", "1").expect("puts");
    for _ in 0..2 {
        let error = db.flush().expect_err("nobody flushes any more");
        assert!(error.to_string().contains("panicked"), "{error}");
    }
    assert!(db.stats().expect("open").failure.is_some());
    assert_eq!(db.get("k").expect("gets").as_deref(), Some(&b"1"[..]));
    drop(db);
    let db = open(&disk, &options(SyncPolicy::Always)).expect("opens again");
    assert_eq!(db.get("k").expect("gets").as_deref(), Some(&b"1"[..]));
}

/// The system keeps what a killed process had given it, so nothing that was acknowledged may be
/// missing, synced or not: not even if the log had failed, and its entries could not be flushed
/// before the end.
#[test]
fn a_kill_after_the_log_has_failed_loses_nothing_that_was_acknowledged() {
    for by_sync in [false, true] {
        let mut refused = 0;
        for n in 0..60 {
            let disk = Memory::new();
            let db = open(&disk, &options(SyncPolicy::Never)).expect("opens");
            db.put("before", "synced").expect("puts");
            db.sync().expect("syncs");
            db.put("drum", "turns").expect("puts");
            disk.fail_at(0, Fault::Io);
            let failed = if by_sync { db.sync() } else { db.put("sieve", "sifts") };
            failed.expect_err("the log fails");
            disk.fail_from(n, Fault::Io);
            refused += usize::from(db.put("later", "on").is_err());
            disk.mend();
            let after = disk.kill();
            drop(db);
            let db = open(&after, &options(SyncPolicy::Never)).expect("opens again");
            for (key, value) in [("before", "synced"), ("drum", "turns")] {
                let found = db.get(key).expect("gets");
                assert_eq!(found.as_deref(), Some(value.as_bytes()), "{key}, {n}, {by_sync}");
            }
        }
        assert!((5..60).contains(&refused), "{refused} writes were refused");
    }
}

/// A flush whose edit the manifest has, but not yet on the disk, calls its log dead.
// stress --seed 5: an opening after the fault removed that log, and the power cut took the edit
// back.
#[test]
fn a_fault_a_kill_and_then_a_power_cut_lose_nothing_that_was_acknowledged() {
    let options = options(SyncPolicy::Always);
    for first in 0..60 {
        let disk = Memory::new();
        let db = open(&disk, &options).expect("opens");
        disk.fail_at(first, Fault::Io);
        history(&disk, &db, 0..16, u64::MAX / 2, &mut |acknowledged| {
            let after = disk.kill();
            after.mend();
            let case = format!("fault {first}, {} acknowledged", acknowledged.len());
            drop(open_crashed(&after, &options, &case));
            for disk in [after.crash_hard(), after.crash(first)] {
                let found = found(&open_crashed(&disk, &options, &case));
                let lost = acknowledged.iter().find(|number| !found.contains(number));
                assert_eq!(lost, None, "{case}: an acknowledged write is lost");
            }
        });
    }
}

#[test] // stress --seed 160: a synced deletion of an empty range told of a failure that was over.
fn a_synced_batch_without_writes_moves_on_from_a_failed_log() {
    let disk = Memory::new();
    let db = open(&disk, &options(SyncPolicy::Never)).expect("opens");
    db.put("drum", "turns").expect("puts");
    disk.fail_at(0, Fault::Io);
    db.put("sieve", "sifts").expect_err("the log fails");
    db.write_synced(Batch::new()).expect("all that was acknowledged is made durable");
    let db = open_crashed(&disk.crash_hard(), &options(SyncPolicy::Never), "after an empty batch");
    assert_eq!(db.get("drum").expect("gets").as_deref(), Some(&b"turns"[..]));
}

#[test] // The first write put its log in the place of whatever had that name.
fn the_first_log_takes_no_name_that_somebody_else_has() {
    let first_log = |disk: &Memory| {
        let names = disk.list(Path::new("db")).expect("lists").into_iter();
        names.filter(|name| name.ends_with(".wal")).max()
    };
    let open = |disk: &Memory| {
        let environment = Environment::new().storage(Arc::new(disk.clone()));
        let options = Options::new().background(Background::Stepped);
        Db::open_with("db", options, environment).expect("opens")
    };
    let known = Memory::new();
    open(&known).put("key", "value").expect("writes");
    let name = Path::new("db").join(first_log(&known).expect("it is made by the first write"));
    let disk = Memory::new();
    let db = open(&disk);
    assert_eq!(first_log(&disk), None);
    disk.put_file(&name, b"somebody's");
    for _ in 0..2 {
        let refused = db.put("key", "value").expect_err("the name is taken").to_string();
        assert!(refused.contains(&name.display().to_string()), "{refused}");
        assert_eq!(disk.file(&name).as_deref(), Some(&b"somebody's"[..]));
    }
    disk.remove(&name).expect("removes");
    db.put("key", "value").expect("writes");
    drop(db);
    assert!(open(&disk).get("key").expect("reads").is_some());
}
