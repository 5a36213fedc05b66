//! Closing a store: what it waits for, what lives on, and that the folder is free afterwards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use trommel::research::Research as _;

use trommel::{Answer, Background, Batch, Db, Error, GuardKind, Options};

fn options() -> Options {
    Options::new().write_buffer_bytes(16 << 10)
}

fn is_closed<T: std::fmt::Debug>(result: Result<T, Error>) {
    assert!(matches!(result, Err(Error::Closed { .. })), "{result:?}");
}

/// The files below a folder that this process has open, as far as the system tells.
fn open_files(dir: &Path) -> Vec<PathBuf> {
    let own = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    let files = own.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    files.filter(|file| file.starts_with(dir)).collect()
}

/// Every file of a folder, with its bytes.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).expect("lists").map(|entry| entry.expect("an entry"));
    let read = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().expect("a plain name");
        (name, std::fs::read(entry.path()).expect("reads"))
    };
    entries.map(read).collect()
}

#[test] // It said Ok, and the next open "open elsewhere", until the last of them was gone.
fn a_store_is_free_when_it_was_closed_whatever_lives_on() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let db = Db::open(dir.path(), options()).expect("opens");
    for number in 0..1000u32 {
        db.put(number.to_be_bytes(), [7; 100]).expect("writes");
    }
    let (snapshot, mut fresh, mut moved) = (db.snapshot(), db.range(..), db.range(..));
    assert!(moved.next().expect("an entry").is_ok());
    let (mut queue, pinned) = (db.queue(8), db.pinned_tree());
    db.close().expect("closes");
    db.close().expect("is closed already");

    let left = open_files(dir.path());
    assert!(left.iter().all(|file| file == dir.path()), "a closed store has {left:?} open");
    let again = Db::open(dir.path(), options()).expect("the folder is free");
    again.put(5u32.to_be_bytes(), "another").expect("writes");
    is_closed(snapshot.get(5u32.to_be_bytes()));
    is_closed(snapshot.multi_get(&["a", "b"]).pop().expect("an answer"));
    is_closed(snapshot.range(..).next().expect("an answer"));
    is_closed(fresh.next().expect("an answer"));
    is_closed(moved.next().expect("an answer"));
    is_closed(moved.next_back().map_or(Err(Error::Closed { path: "".into() }), |found| found));
    queue.submit_get("a", 1);
    let Some(Answer::Value(answer)) = queue.wait().map(|answered| answered.answer) else {
        panic!("a get has a value")
    };
    is_closed(answer);
    queue.submit_range("a".."z", 3, 2);
    let Some(Answer::Entries(answer)) = queue.wait().map(|answered| answered.answer) else {
        panic!("a range has entries")
    };
    is_closed(answer);
    assert_eq!(queue.under_way(), 0);
    is_closed(pinned.holders(b"a"));
    is_closed(pinned.asked_tables(b"a"));
    drop((snapshot, fresh, moved, queue, pinned));
    assert_eq!(again.get(5u32.to_be_bytes()).expect("reads").as_deref(), Some(&b"another"[..]));
}

#[test]
fn a_closed_store_has_no_value_file_open() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let db = Db::open(dir.path(), options()).expect("opens");
    let space = db.keyspace("space", trommel::KeyspaceOptions::new()).expect("makes it");
    for space in [&*db, &space] {
        space.put("a", [7; 20_000]).expect("puts");
    }
    let (snapshot, scan) = (db.snapshot(), space.range(..));
    db.close().expect("closes");
    let left = open_files(dir.path());
    assert!(left.iter().all(|file| file == dir.path()), "a closed store has {left:?} open");
    is_closed(db.put("a", [8; 20_000]));
    drop((snapshot, scan));
}

#[test]
fn every_call_of_a_closed_store_says_that_it_is_closed_and_touches_no_file() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let copy = tempfile::tempdir().expect("a temporary folder");
    let db = Db::open(dir.path(), options()).expect("opens");
    for number in 0..3000u32 {
        db.put(number.to_be_bytes(), [7; 100]).expect("writes");
    }
    let snapshot = db.snapshot();
    db.close().expect("closes");
    let before = files(dir.path());

    is_closed(db.get("a"));
    is_closed(db.multi_get(&["a"]).pop().expect("an answer"));
    is_closed(db.put("a", "b"));
    is_closed(db.put_ttl("a", "b", std::time::Duration::from_secs(1)));
    is_closed(db.delete("a"));
    is_closed(db.delete_range("a", "b"));
    is_closed(db.ingest([("a", "b")]));
    is_closed(db.write(Batch::new()));
    is_closed(db.write_synced(Batch::new()));
    is_closed(db.sync());
    is_closed(db.range(..).next().expect("an answer"));
    is_closed(db.snapshot().get("a"));
    is_closed(db.estimate_count(..));
    is_closed(db.approximate_count(..));
    is_closed(db.may_contain_range(..));
    is_closed(db.multi_may_contain([..]));
    is_closed(db.flush());
    is_closed(db.compact());
    is_closed(db.settle());
    is_closed(db.step());
    is_closed(db.step_any(1));
    is_closed(db.checkpoint(copy.path()));
    is_closed(db.verify());
    is_closed(db.stats());
    is_closed(db.follow_tree(drop));
    is_closed(db.unfollow_tree());
    assert_eq!(db.path(), dir.path());
    drop((snapshot, db));
    assert!(files(dir.path()) == before, "a closed store has changed a file");
    assert!(files(copy.path()).is_empty());
}

#[test]
fn closing_amid_everything_loses_nothing_that_was_acknowledged() {
    for guard in [GuardKind::Grf, GuardKind::Open] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let background = Background::Threads(2);
        let options = options().guard(guard).background(background);
        let db = Arc::new(Db::open(dir.path(), options.clone()).expect("opens"));
        let acknowledged: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        let has_begun = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (lane, acknowledged) in acknowledged.iter().enumerate() {
                let (db, has_begun) = (&db, &has_begun);
                scope.spawn(move || {
                    for number in 1.. {
                        match db.put(key(lane, number), [lane as u8; 64]) {
                            Ok(()) => acknowledged.store(number, Ordering::Relaxed),
                            end => return is_closed(end),
                        }
                        has_begun.fetch_or(number > 2000, Ordering::Relaxed);
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Ok(mut scan) = db.snapshot().get("a").map(|_| db.range(..)) {
                        let end = scan.find_map(|entry| entry.err());
                        assert!(matches!(end, None | Some(Error::Closed { .. })), "{end:?}");
                    }
                });
            }
            scope.spawn(|| while db.compact().is_ok() {});
            scope.spawn(|| while db.verify().is_ok() {});
            while !has_begun.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let other = scope.spawn(|| db.close());
            db.close().expect("closes");
            other.join().expect("no panic").expect("closes");
            let again = Db::open(dir.path(), options.clone()).expect("the folder is free");
            for (lane, acknowledged) in acknowledged.iter().enumerate() {
                for number in 1..=acknowledged.load(Ordering::Relaxed) {
                    let found = again.get(key(lane, number)).expect("reads");
                    assert_eq!(found.as_deref(), Some(&[lane as u8; 64][..]), "{lane} {number}");
                }
            }
            assert!(again.verify().expect("reads").damage.is_empty());
        });
    }
}

fn key(lane: usize, number: u64) -> Vec<u8> {
    [&[lane as u8][..], &number.to_be_bytes()].concat()
}

#[test]
fn what_a_closed_store_has_held_is_removed_by_its_next_open_alone() {
    for background in [Background::Stepped, Background::Threads(1)] {
        for is_opened_again in [false, true] {
            let dir = tempfile::tempdir().expect("a temporary folder");
            let db = Db::open(dir.path(), options().background(background)).expect("opens");
            let fill = |db: &Db, round: u8| {
                for number in 0..1000u64 {
                    db.put(key(0, number), [round; 100]).expect("writes");
                }
                db.compact().expect("merges");
            };
            fill(&db, 1);
            let (pinned, mut scan) = (db.pinned_tree(), db.range(..));
            assert!(scan.next().expect("an entry").is_ok());
            fill(&db, 2);
            let stats = db.stats().expect("open");
            let held = stats.obsolete;
            assert!(held.tables > 0 && (held.scans, held.pinned_trees) == (1, 1), "{held:?}");
            db.close().expect("closes");
            let tables = |files: &BTreeMap<String, Vec<u8>>| {
                files.keys().filter(|name| name.ends_with(".table")).count() as u64
            };
            let in_tree: u64 =
                stats.levels.iter().flat_map(|l| &l.runs).map(|run| run.tables).sum();
            assert!(tables(&files(dir.path())) > in_tree, "they are held still");
            let again = is_opened_again.then(|| {
                let stepped = options().background(Background::Stepped);
                let again = Db::open(dir.path(), stepped).expect("the folder is free");
                assert_eq!(tables(&files(dir.path())), in_tree, "an open leaves its own");
                fill(&again, 3);
                again
            });
            let before = files(dir.path());
            drop((scan, pinned, db));
            // A thread that was still there would be at it by now.
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(files(dir.path()) == before, "a closed store has changed a file");
            drop(again);
        }
    }
}
