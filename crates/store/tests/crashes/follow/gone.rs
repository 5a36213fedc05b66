//! Files that the writer removes while a follower needs them.
//! ```text
//! open     stays open                      snapshots go on
//! closed   `Gone`, and the way out         catch up
//! amid     removed between two openings    the manifest is read again, which tells why
//! ```

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use trommel::storage::{Memory, Storage};
use trommel::testing::Fault;
use trommel::{
    Batch, Db, Environment, Error, FollowOptions, Follower, KeyspaceOptions, Options, Snapshot,
    SyncPolicy,
};

use super::{catch_up, environment, follow_write, open_with, options, text};
use crate::door::Door;

/// Tables that are merged away while others read them.
fn merged_away(max_open_files: usize) -> (Db, Follower, Snapshot) {
    let disk = Memory::new();
    let db = open_with(&disk, options().block_cache_bytes(0));
    for round in 0..4 {
        (0..200).for_each(|key| db.put(format!("{key}"), format!("{round}")).expect("puts"));
        db.flush().expect("flushes");
    }
    let options = Options::new().max_open_files(max_open_files).block_cache_bytes(0);
    let options = FollowOptions::new().options(options);
    let follower = Db::follow_with("db", options, environment(&disk)).expect("follows");
    let snapshot = follower.snapshot().expect("open");
    (0..200).for_each(|key| db.put(format!("{key}"), "new").expect("puts"));
    db.compact().expect("merges");
    db.step().expect("removes files");
    catch_up(&follower);
    (db, follower, snapshot)
}

#[test]
fn what_a_snapshot_needs_stays_open() {
    let (_db, follower, snapshot) = merged_away(100);
    assert_eq!(text(&follower, "7"), Some("new".into()));
    for key in 0..200 {
        let value = snapshot.get(format!("{key}")).expect("its tables are open");
        assert_eq!(value.as_deref(), Some(&b"3"[..]));
    }
    assert_eq!(snapshot.range(..).count(), 200);
}

#[test]
fn what_was_removed_is_not_closed_for_want_of_room() {
    let disk = Memory::new();
    let db = open_with(&disk, options().block_cache_bytes(0));
    for round in 0..4 {
        (0..200).for_each(|key| db.put(format!("{key}"), format!("{round}")).expect("puts"));
        db.flush().expect("flushes");
    }
    let options = Options::new().max_open_files(4).block_cache_bytes(0);
    let options = FollowOptions::new().options(options);
    let follower = Db::follow_with("db", options, environment(&disk)).expect("follows");
    let before = follower.snapshot().expect("open");
    for round in 4..9 {
        (0..200).for_each(|key| db.put(format!("{key}"), format!("{round}")).expect("puts"));
        db.compact().expect("merges");
        db.step().expect("removes files");
        catch_up(&follower);
        // The new table needs a file, too.
        assert_eq!(text(&follower, "7"), Some(round.to_string()));
        assert_eq!(before.get("7").expect("is open").as_deref(), Some(&b"3"[..]));
        assert_eq!(before.range(..).filter(|entry| entry.is_ok()).count(), 200);
    }
}

#[test]
fn what_was_closed_and_removed_is_gone_and_told_so() {
    // One of its four tables is open.
    let (_db, follower, snapshot) = merged_away(1);
    match snapshot.range(..).find_map(Result::err) {
        Some(error @ Error::Gone { .. }) => {
            let message = error.to_string();
            assert!(
                message.contains(".table was removed") && message.contains("catch up"),
                "{message}"
            );
        }
        other => panic!("{other:?}"),
    }
    let mut gone = (0..200).filter_map(|key| snapshot.get(format!("{key}")).err());
    assert!(gone.all(|error| matches!(error, Error::Gone { .. })));
    assert_eq!(text(&follower, "7"), Some("new".into()));
}

/// A follower at whose n-th opening of a file the writer does something.
fn disturbed(disk: &Memory, n: u64, deed: impl Fn() + Send + Sync + 'static) -> Environment {
    disturbed_once(disk, n, deed, &Arc::new(AtomicBool::new(true)))
}

/// As above; openings are counted once that is so.
fn disturbed_once(
    disk: &Memory,
    n: u64,
    deed: impl Fn() + Send + Sync + 'static,
    is_begun: &Arc<AtomicBool>,
) -> Environment {
    let (opened, is_done, is_begun) =
        (AtomicU64::new(0), AtomicBool::new(false), Arc::clone(is_begun));
    let door = Door::new(disk, move |operation, _| {
        let is_open = operation == "open" && is_begun.load(Ordering::SeqCst);
        let is_due = is_open && opened.fetch_add(1, Ordering::SeqCst) == n;
        if is_due && !is_done.swap(true, Ordering::SeqCst) {
            deed();
        }
    });
    Environment::new().storage(Arc::new(door))
}

// The edit that tells why a file is gone was the last one of a manifest that was made anew after a
// failure, and did not count yet: a spurious error, until the follower was asked once more.
#[test]
fn what_vanishes_with_a_key_space_that_is_dropped_meanwhile_is_no_error() {
    let mut vanished = 0;
    for (n, fault) in (0..8).flat_map(|n| (0..8).map(move |fault| (n, fault))) {
        let disk = Memory::new();
        let db = open_with(&disk, options().sync(SyncPolicy::Always));
        let other = db.keyspace("other", KeyspaceOptions::default()).expect("makes it");
        let deed = {
            let (db, disk) = (db.clone(), disk.clone());
            move || {
                disk.fail_at(fault, Fault::Io);
                let _ = db.drop_keyspace("other");
                disk.mend();
                while db.step().expect("removes files") {}
                db.flush().expect("makes the manifest anew");
                while db.step().expect("removes files") {}
            }
        };
        let is_begun = Arc::new(AtomicBool::new(false));
        let environment = disturbed_once(&disk, n, deed, &is_begun);
        let follower = Db::follow_with("db", FollowOptions::default(), environment);
        let follower = follower.expect("follows");
        other.put("drum", "turns").expect("puts");
        other.flush().expect("flushes");
        drop(other);
        let names = || disk.list(Path::new("db")).expect("lists");
        let tables = || names().iter().filter(|name| name.ends_with(".table")).count();
        assert_eq!(tables(), 1);
        is_begun.store(true, Ordering::SeqCst);
        let caught_up = follower.catch_up();
        caught_up.unwrap_or_else(|error| panic!("at opening {n}, fault {fault}: {error}"));
        vanished += u32::from(tables() == 0);
    }
    assert!(vanished > 8, "{vanished} times it was dropped meanwhile");
}

#[test]
fn what_vanishes_between_two_openings_has_the_manifest_read_again() {
    let mut vanished = 0;
    for (n, is_merging) in (0..40).flat_map(|n| [(n, true), (n, false)]) {
        let disk = Memory::new();
        let db = open_with(&disk, options().value_threshold(256));
        let fill = |round: u64| {
            for key in 0..30 {
                db.put(format!("{key:02}"), format!("{round}").repeat(300)).expect("puts");
            }
            db.flush().expect("flushes");
        };
        fill(1);
        fill(2);
        let deed = {
            let db = db.clone();
            move || {
                for key in 0..30 {
                    db.put(format!("{key:02}"), "3".repeat(300)).expect("puts");
                }
                let late = db.keyspace("late", KeyspaceOptions::default()).expect("makes it");
                let mut batch = Batch::new();
                batch.put("late", "there").to(&late).put("late", "there");
                db.write(batch).expect("writes");
                follow_write(&db);
                if is_merging {
                    db.compact().expect("merges");
                    while db.step().expect("removes files") {}
                }
            }
        };
        let follower =
            Db::follow_with("db", FollowOptions::default(), disturbed(&disk, n, deed.clone()));
        let follower = follower.unwrap_or_else(|error| panic!("at opening {n}: {error}"));
        vanished += u64::from(follower.sequence() > 60 && is_merging);
        let check = |follower: &Follower| {
            let last = follower.sequence();
            for key in 0..30 {
                let round = ((last - key - 1) / 30 + 1).min(3);
                let value = text(follower, &format!("{key:02}")).expect("is there");
                assert!(value == format!("{round}").repeat(300), "{key} at opening {n}");
            }
            let moment = follower.moment().expect("open");
            let of = |name| moment.keyspace(name).and_then(|it| it.get("late")).expect("reads");
            let is_late = moment.keyspaces().len() > 1 && of("late").is_some();
            assert_eq!(of("default").is_some(), is_late, "at opening {n}: half a batch");
            assert_eq!(is_late, last >= 92);
        };
        check(&follower);
        catch_up(&follower);
        check(&follower);
    }
    assert!(vanished > 3, "{vanished} times something had vanished");
}
