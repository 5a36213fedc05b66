//! File systems that can only be read: from the start, and from some moment on, until they can be
//! written again.
//! ```text
//! mount -o remount,ro    opening is refused, with what to do; what needs no lock is read;
//!                        nothing is changed
//! while it is open       writes are errors that say so, reads go on;
//!                        then writes go on, without opening it again
//! ```
//! Invariant: nothing waits, nothing is lost, and nothing is left over.

mod door;
mod mounts;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use door::{Door, until};
use mounts::on_file_system;
use trommel::Environment;
use trommel::storage::{Disk, Memory, Storage};
use trommel::tools::{dump, peek, repair};
use trommel::{Background, Db, Error, FollowOptions, GuardKind, Options, SyncPolicy};

fn options(sync: SyncPolicy, background: Background) -> Options {
    Options::new()
        .guard(GuardKind::Grf)
        .size_ratio(2)
        .write_buffer_bytes(4096)
        .block_cache_bytes(0)
        .sync(sync)
        .background(background)
}

fn remount(place: &Path, how: &str) {
    let how = format!("remount,{how}");
    let status = Command::new("mount").args(["-o", &how]).arg(place).status().expect("starts");
    assert!(status.success(), "{how}");
}

fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).expect("lists").map(|entry| entry.expect("an entry"));
    entries
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).expect("reads"))
        })
        .collect()
}

fn says_why(error: &Error, path: &Path) {
    let message = error.to_string();
    assert!(message.contains("Read-only file system"), "{message}");
    assert!(message.contains(&path.display().to_string()), "{message}");
}

#[test]
fn a_store_on_a_file_system_that_can_only_be_read_is_not_opened_and_not_changed() {
    let test = "a_store_on_a_file_system_that_can_only_be_read_is_not_opened_and_not_changed";
    let Some(place) = on_file_system(test, 4 << 20) else { return };
    let (dir, options) = (place.join("db"), options(SyncPolicy::Always, Background::Threads(1)));
    let db = Db::open(&dir, options.clone()).expect("opens");
    for row in 0..200u32 {
        db.put(row.to_be_bytes(), [7; 100]).expect("writes");
    }
    db.close().expect("closes");
    let before = contents(&dir);
    remount(&place, "ro");
    for _ in 0..2 {
        let refused = Db::open(&dir, options.clone()).map(drop).expect_err("it takes no lock");
        says_why(&refused, &dir.join("LOCK"));
        assert!(refused.to_string().contains("open a copy"), "{refused}");
        says_why(&repair(&dir).expect_err("it takes no lock"), &dir.join("LOCK"));
        let follower = Db::follow(&dir, FollowOptions::default()).expect("it needs no lock");
        assert_eq!(follower.range(..).expect("open").count(), 200);
        assert_eq!(follower.verify().expect("verifies").damage, [""; 0]);
    }
    let new = place.join("new");
    says_why(&Db::open(&new, options.clone()).map(drop).expect_err("no folder is made"), &new);
    assert!(!peek(&dir).expect("reads").runs.is_empty());
    let mut items = 0;
    dump(&Disk, &dir, &mut |_| {
        items += 1;
        ControlFlow::Continue(())
    })
    .expect("reads");
    assert!(items > 200, "{items}");
    assert!(contents(&dir) == before, "something was changed");
    remount(&place, "rw");
    let db = Db::open(&dir, options).expect("opens");
    assert_eq!(db.range(..).filter(Result::is_ok).count(), 200);
    db.put("late", "value").expect("writes");
}

/// A disk that changes nothing while it can only be read.
fn guarded(disk: &Memory, is_read_only: &Arc<AtomicBool>) -> Environment {
    let is_read_only = Arc::clone(is_read_only);
    let door = Door::refusing(disk, move |operation, _| {
        const READS: [&str; 5] = ["open_folder", "list", "open", "size", "read"];
        match is_read_only.load(Ordering::Relaxed) && !READS.contains(&operation) {
            true => Err(io::Error::from_raw_os_error(30)),
            false => Ok(()),
        }
    });
    Environment::new().storage(Arc::new(door))
}

fn key(row: u32) -> [u8; 4] {
    row.wrapping_mul(2_654_435_761).to_be_bytes()
}

fn reads(db: &Db, rows: u32) {
    assert_eq!(db.range(..).filter(Result::is_ok).count(), rows as usize);
    assert!((0..rows).all(|row| db.get(key(row)).expect("reads").is_some()));
    assert_eq!(db.snapshot().range(..).rev().filter(Result::is_ok).count(), rows as usize);
}

/// The tables in the folder are as large as those of the tree.
fn has_no_other_tables(disk: &Memory, db: &Db) -> bool {
    let live = db.stats().expect("open").table_bytes();
    let names = disk.list(Path::new("db")).expect("lists");
    let files = names.iter().filter(|name| name.ends_with(".table"));
    let bytes = files.map(|name| disk.file(Path::new("db").join(name)));
    bytes.map(|bytes| bytes.map_or(0, |b| b.len() as u64)).sum::<u64>() == live
}

#[test]
fn a_table_that_could_not_be_removed_when_it_was_given_up_is_removed_later() {
    let (disk, is_refusing) = (Memory::new(), Arc::<AtomicBool>::default());
    let refuses = Arc::clone(&is_refusing);
    let door = Door::refusing(&disk, move |operation, path| {
        let of_table = path.extension().is_some_and(|it| it == "table");
        let is_refused = of_table && ["sync", "remove"].contains(&operation);
        match is_refused && refuses.load(Ordering::Relaxed) {
            true => Err(io::Error::from_raw_os_error(30)),
            false => Ok(()),
        }
    });
    let environment = Environment::new().storage(Arc::new(door));
    let options = options(SyncPolicy::Always, Background::Stepped);
    let db = Db::open_with("db", options, environment).expect("opens");
    db.put("key", "value").expect("writes");
    is_refusing.store(true, Ordering::Relaxed);
    says_why(&db.flush().expect_err("its table is not durable"), Path::new("db"));
    assert!(!has_no_other_tables(&disk, &db), "it could not be removed");
    is_refusing.store(false, Ordering::Relaxed);
    db.flush().expect("the disk takes it now");
    assert!(has_no_other_tables(&disk, &db), "the first attempt's table has stayed");
}

#[test]
fn a_store_goes_on_when_its_file_system_can_be_written_again() {
    for background in [Background::Stepped, Background::Threads(2)] {
        for sync in
            [SyncPolicy::Always, SyncPolicy::Interval(Duration::from_millis(1)), SyncPolicy::Never]
        {
            let (disk, is_read_only) = (Memory::new(), Arc::<AtomicBool>::default());
            let options = options(sync, background);
            let environment = guarded(&disk, &is_read_only);
            let db = Db::open_with("db", options.clone(), environment.clone()).expect("opens");
            for row in 0..300 {
                db.put(key(row), [7; 100]).expect("writes");
            }
            is_read_only.store(true, Ordering::Relaxed);
            for _ in 0..3 {
                says_why(
                    &db.put("refused", "value").expect_err("nothing is written"),
                    Path::new("db"),
                );
                says_why(&db.flush().expect_err("nothing is written"), Path::new("db"));
                says_why(&db.compact().expect_err("nothing is written"), Path::new("db"));
                says_why(&db.checkpoint("copy").expect_err("nothing is made"), Path::new(""));
                reads(&db, 300);
                assert!(db.get("refused").expect("reads").is_none());
            }
            let failure = db.stats().expect("open").failure.expect("writing has stopped");
            assert!(failure.contains("Read-only"), "{failure}");
            is_read_only.store(false, Ordering::Relaxed);
            // The same open store.
            for row in 300..600 {
                db.put(key(row), [7; 100]).expect("writes go on");
            }
            db.compact().expect("merges");
            reads(&db, 600);
            assert_eq!(db.stats().expect("open").failure, None);
            // Another merge may have begun meanwhile.
            until("no files that are left over", || has_no_other_tables(&disk, &db));
            db.close().expect("closes");
            let db = Db::open_with("db", options, environment).expect("opens");
            reads(&db, 600);
            assert!(db.verify().expect("reads").damage.is_empty());
        }
    }
}

#[test]
fn a_store_that_is_closed_while_nothing_can_be_written_loses_nothing() {
    for sync in [SyncPolicy::Always, SyncPolicy::Never] {
        let (disk, is_read_only) = (Memory::new(), Arc::<AtomicBool>::default());
        let options = options(sync, Background::Threads(1));
        let environment = guarded(&disk, &is_read_only);
        let db = Db::open_with("db", options.clone(), environment.clone()).expect("opens");
        for row in 0..100 {
            db.put(key(row), [7; 100]).expect("writes");
        }
        is_read_only.store(true, Ordering::Relaxed);
        says_why(&db.put("refused", "value").expect_err("nothing is written"), Path::new("db"));
        says_why(&db.close().expect_err("what is owed is in memory"), Path::new("db"));
        let refused = Db::open_with("db", options.clone(), environment.clone()).map(drop);
        says_why(&refused.expect_err("it takes no lock"), Path::new("db/LOCK"));
        is_read_only.store(false, Ordering::Relaxed);
        let db = Db::open_with("db", options, environment).expect("opens");
        reads(&db, 100);
    }
}
