//! Which groups of a log count for a follower: those that their writer has not refused, with the
//! values that they refer to.
//! ```text
//! log    [group] [group] [group]          the last one may have been refused
//! next        the next log, or a group behind it, says that it counts
//! values [.....] [.....] [gone            a log ends before a value that a crash has taken
//! ```

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use trommel::storage::{Memory, Storage};
use trommel::testing::{Fault, PausePoint, Pauses};
use trommel::{Db, Error, FollowOptions, Follower, KeyspaceOptions, SyncPolicy};

use super::{catch_up, environment, follow, follow_write, open, open_with, options, text};

#[test]
fn what_was_refused_is_never_seen() {
    let mut refused = 0;
    for fault in 0..6 {
        let disk = Memory::new();
        let db = open_with(&disk, options().sync(SyncPolicy::Always));
        db.put("before", "it").expect("puts");
        let follower = follow(&disk);
        disk.fail_at(fault, Fault::Io);
        let is_there = db.put("doubtful", "value").is_ok();
        disk.mend();
        refused += u32::from(!is_there);
        let check = |follower: &Follower| {
            catch_up(follower);
            let seen = text(follower, "doubtful").is_some();
            assert!(is_there || !seen, "fault {fault}: refused, and seen");
            seen
        };
        check(&follower);
        for number in 0..3 {
            db.put("after", format!("{number}")).expect("puts");
            check(&follower);
        }
        let late = follow(&disk);
        assert_eq!((check(&follower), check(&late)), (is_there, is_there), "fault {fault}");
        assert_eq!(text(&follower, "after"), Some("1".into()));
        db.flush().expect("flushes");
        assert_eq!((check(&follower), text(&follower, "after")), (is_there, Some("2".into())));
    }
    assert!(refused >= 2, "{refused} writes were refused");
}

// A flush told that older logs were needed no more, before the log that has their entries was on
// record: who read along then had the number of the flush, and lacked those entries.
#[test]
fn a_log_that_takes_the_place_of_a_failed_one_is_on_record_before_others_are_needed_no_more() {
    let disk = Memory::new();
    let stage: Arc<Mutex<Option<(Db, Follower)>>> = Arc::default();
    let looks = Arc::new(AtomicU64::new(0));
    let (on_stage, counted) = (Arc::clone(&stage), Arc::clone(&looks));
    let pauses = Pauses::new(move |point| {
        if point != PausePoint::LogMade {
            return;
        }
        let Some((db, follower)) = on_stage.lock().expect("no panic").take() else { return };
        while db.step().expect("flushes the other key space") {}
        catch_up(&follower);
        assert!(follower.sequence() > 3, "{}", follower.sequence());
        assert_eq!(text(&follower, "drum").as_deref(), Some("turns"));
        counted.fetch_add(1, Ordering::SeqCst);
    });
    let environment = environment(&disk).pauses(pauses);
    let db = Db::open_with("db", options().write_buffer_bytes(1024), environment).expect("opens");
    let other = db.keyspace("other", KeyspaceOptions::default()).expect("makes it");
    db.put("grain", "falls").expect("puts");
    other.put("grain", "falls").expect("puts");
    let follower = follow(&disk);
    db.put("drum", "turns").expect("puts");
    for number in 0..12 {
        other.put(format!("{number}"), [7; 100]).expect("puts");
    }
    disk.fail_at(0, Fault::Io);
    db.put("refused", "value").expect_err("the log fails");
    disk.mend();
    *stage.lock().expect("no panic") = Some((db.clone(), follower));
    db.put("later", "value").expect("goes on in another log");
    assert_eq!(looks.load(Ordering::SeqCst), 1);
}

#[test]
fn a_log_ends_for_a_follower_before_a_value_that_a_crash_has_taken() {
    let disk = Memory::new();
    let db = open_with(&disk, options().value_threshold(256).sync(SyncPolicy::Never));
    db.put("a", "1").expect("puts");
    db.put("b", [7; 9000]).expect("puts");
    db.put("c", "1").expect("puts");
    db.put("d", "1").expect("puts");
    let crashed = disk.kill();
    drop(db);
    let folder = crashed.open_folder("db".as_ref()).expect("opens");
    let is_value = |name: &String| name.ends_with(".value");
    for name in folder.list().expect("lists").into_iter().filter(is_value) {
        folder.remove(&name).expect("removes");
    }
    let follower = Db::follow_with("db", FollowOptions::default(), environment(&crashed));
    let follower = follower.expect("follows");
    let seen = || -> Vec<Vec<u8>> {
        follower.range(..).expect("open").map(|entry| entry.expect("reads").0).collect()
    };
    assert_eq!(seen(), [b"a"]);
    let db = open_with(&crashed, options().value_threshold(256));
    for _ in 0..3 {
        assert_eq!(db.iter().count(), 1, "the owner finds as much");
        follower.catch_up().expect("there is nothing new");
        assert_eq!(seen(), [b"a"]);
    }
    // The log is made anew, and the manifest tells nothing.
    db.put("e", [7; 9000]).expect("puts");
    db.put("f", "1").expect("puts");
    db.put("g", "1").expect("puts");
    follower.catch_up().expect("goes on");
    assert_eq!(seen(), [b"a", b"e", b"f"]);
    assert!(!follower.catch_up().expect("there is nothing new"));
    db.flush().expect("flushes");
    db.close().expect("closes");
    follower.catch_up().expect("goes on");
    assert_eq!(seen(), [b"a", b"e", b"f", b"g"]);
}

// Whether the middle of a value is sound, only who reads it knows.
#[test]
fn an_opening_follower_reads_those_values_of_the_newest_log_that_may_not_be_durable() {
    let disk = Memory::new();
    let db = open_with(&disk, options().value_threshold(256).compression(false));
    let (durable, unsure) = (*b"012", *b"34");
    let put = |key: u8| db.put([key], [key; 9000]).expect("puts");
    durable.into_iter().for_each(put);
    db.sync().expect("syncs");
    unsure.into_iter().for_each(put);
    follow_write(&db);
    let names = disk.list(Path::new("db")).expect("lists");
    let name = names.iter().find(|name| name.ends_with(".value")).expect("values are apart");
    let path = Path::new("db").join(name);
    let bytes = disk.file(&path).expect("is there");
    let all = [&durable[..], &unsure].concat();
    for (place, key) in all.iter().enumerate() {
        let begins = |window: &[u8]| window.iter().all(|byte| byte == key);
        let value = bytes.windows(100).position(begins).expect("it is in the file");
        let middle = value as u64 + 4500;
        disk.flip_bit(&path, middle, 1);
        let follower = follow(&disk);
        let seen = follower.range(..).expect("open").keys_only();
        let seen: Vec<u8> = seen.flat_map(|entry| entry.expect("reads no value").0).collect();
        let is_read = place >= durable.len();
        assert_eq!(seen, if is_read { &all[..place] } else { &all[..] }, "{place}");
        let found = follower.get([*key]);
        let is_right = if is_read {
            matches!(found, Ok(None))
        } else {
            found.as_ref().is_err_and(Error::tells_of_damage)
        };
        assert!(is_right, "{place}: {found:?}");
        disk.flip_bit(&path, middle, 1);
    }
    let follower = follow(&disk);
    assert!(all.iter().all(|key| follower.get([*key]).is_ok_and(|found| found.is_some())));
}

#[test]
fn a_log_that_is_gone_without_reason_is_an_error_and_an_end() {
    let disk = Memory::new();
    let db = open(&disk);
    db.put("a", "1").expect("puts");
    follow_write(&db);
    let follower = follow(&disk);
    let folder = disk.open_folder("db".as_ref()).expect("opens");
    let is_log = |name: &String| name.ends_with(".wal");
    for name in folder.list().expect("lists").into_iter().filter(is_log) {
        folder.remove(&name).expect("removes");
    }
    for _ in 0..2 {
        follower.catch_up().expect_err("its log is gone");
        assert_eq!(text(&follower, "a"), Some("1".into()), "what was read stays");
    }
}
