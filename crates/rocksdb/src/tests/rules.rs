//! The rules of noting keys, one by one.

use std::cmp::Ordering;
use std::time::Duration;

use rocksdb::{
    ColumnFamilyDescriptor, Direction, IteratorMode, Options, ReadTier, SliceTransform, WriteBatch,
};

use super::{LONG, Numbers, count, count_from, options, scan_anew, wait};
use crate::door::{Phase, Ticket};
use crate::pause::{self, Point};
use crate::{Db, DoorOptions, ReadOptions, RocksDb};

fn opened(folder: &tempfile::TempDir) -> Db {
    let db = Db::open(&options(), folder.path()).expect("it opens");
    wait(&db);
    db
}

fn number(at: u64) -> [u8; 8] {
    Numbers(at).next().to_be_bytes()
}

fn filled(folder: &tempfile::TempDir, keys: u64) -> Db {
    let db = opened(folder);
    (0..keys).for_each(|at| db.put(number(at), b"value").expect("written"));
    db
}

#[test]
fn misses_and_empty_ranges_are_denied() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = filled(&folder, 5000);
    wait(&db);
    let before = db.door_state().denied;
    for at in 5000..7000 {
        assert_eq!(db.get(number(at)).expect("read"), None);
        let key = number(at);
        assert_eq!(count(&db, &key, &[&key[..], b"x"].concat()), 0);
    }
    let denied = db.door_state().denied - before;
    assert!(denied > 3800, "{denied} of 4000");
}

#[test]
fn recent_keys_are_put_on_the_line_while_ranges_are_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = filled(&folder, 1000);
    wait(&db);
    let door = &db.shared().doors()[0];
    let mut written = 1000;
    while door.look().current().has_line() {
        db.put(number(written), b"value").expect("written");
        assert_eq!(db.get(number(written + 1)).expect("read"), None);
        written += 1;
        assert!(written < 100_000, "lists have a line for ever");
    }
    let range = |at: u64| count(&db, &number(at), &[&number(at)[..], b"x"].concat());
    assert_eq!((range(written - 1), range(written)), (1, 0));
    assert!(door.look().current().has_line());
    db.put(number(written), b"value").expect("written");
    assert_eq!(range(written), 1);
    let start = std::time::Instant::now();
    let before = db.door_state().denied;
    while db.door_state().denied == before {
        assert!(start.elapsed() < LONG, "lists without a line are given to the filter");
        assert_eq!(range(written + 1), 0);
    }
}

#[test]
fn a_scan_waits_for_writes_that_it_would_not_see() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = filled(&folder, 1000);
    let door = &db.shared().doors()[0];
    for sleeps in [false, true] {
        let key = format!("on its way, {sleeps}");
        if sleeps {
            door.put_to_sleep();
        }
        let mut ticket = Ticket::enter(&**door);
        ticket.note(key.as_bytes());
        door.want_scan();
        std::thread::sleep(Duration::from_millis(150));
        assert_eq!(door.phase(), Phase::Building);
        db.inner().put(&key, b"value").expect("written");
        drop(ticket);
        wait(&db);
        scan_anew(&db);
        assert_eq!(db.get(&key).expect("read").as_deref(), Some(&b"value"[..]));
        assert_eq!(count(&db, key.as_bytes(), &[key.as_bytes(), b"x"].concat()), 1);
    }
}

/// The key is noted in the last list before the scan, and written after the scan's snapshot.
#[test]
fn a_write_in_flight_is_found_right_after_the_scan() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = filled(&folder, 1000);
    let door = &db.shared().doors()[0];
    let mut ticket = Ticket::enter(&**door);
    ticket.note(b"on its way");
    let scans = db.door_state().scans;
    door.want_scan();
    std::thread::sleep(Duration::from_millis(150));
    db.inner().put(b"on its way", b"value").expect("written");
    drop(ticket);
    while db.door_state().scans == scans {
        std::thread::yield_now();
    }
    wait(&db);
    assert!(db.get(b"on its way").expect("read").is_some());
}

const PUTS_AT_ONCE: usize = 5000;
const PUTS_OF_A_LIST: usize = 64;

/// Keys are noted and written during a scan, whose snapshot is older.
#[test]
fn keys_that_come_during_a_scan_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = filled(&folder, 20_000);
    let is_broken = std::env::var(pause::BROKEN).is_ok();
    if is_broken {
        // The process runs no other test. Scans last long enough for lists to fill meanwhile.
        pause::set(&[Point::Scanning], Duration::from_millis(20));
    }
    for round in 0..20 {
        wait(&db);
        let scans = db.door_state().scans;
        let door = &db.shared().doors()[0];
        door.want_scan();
        // A worker that gets too much at once gives up the scan, and begins another one.
        let puts_at_once = if is_broken || round % 2 == 1 { 0 } else { PUTS_AT_ONCE };
        while is_broken && door.phase() != Phase::Building && db.door_state().scans == scans {
            std::thread::yield_now();
        }
        let mut at = 0;
        while db.door_state().scans == scans {
            db.put(format!("round {round:02} {at:05}"), b"value").expect("written");
            at += 1;
            if at > puts_at_once && at.is_multiple_of(PUTS_OF_A_LIST) {
                // A worker that cannot keep up gives up the scan, and must be woken. Lists continue
                // to come while it scans.
                door.wake();
                door.close_quiet(true);
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        wait(&db);
        for at in 0..at {
            let key = format!("round {round:02} {at:05}");
            assert!(db.get(&key).expect("read").is_some(), "{key}");
        }
    }
}

#[test]
fn snapshots_and_iterators_keep_what_a_later_scan_has_forgotten() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = filled(&folder, 1000);
    db.put(b"gone", b"value").expect("written");
    wait(&db);
    let snapshot = db.snapshot();
    let mut pinned = db.raw_iterator_opt({
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(b"gonf");
        options
    });
    db.delete(b"gone").expect("written");
    scan_anew(&db);
    assert_eq!(db.get(b"gone").expect("read"), None);
    assert_eq!(count(&db, b"gone", b"gonf"), 0);
    assert!(snapshot.get(b"gone").expect("read").is_some());
    assert!(snapshot.multi_get([b"gone"])[0].as_ref().is_ok_and(Option::is_some));
    let mut at = ReadOptions::default();
    at.set_snapshot(&snapshot);
    assert_eq!(count_from(&db, b"gone", b"gonf", at), 1);
    pinned.seek(b"gone");
    assert_eq!(pinned.key(), Some(&b"gone"[..]));
    pinned.refresh().expect("refreshed");
    pinned.seek(b"gone");
    assert!(!pinned.valid());
    // The door answers for a snapshot that is newer than the scan.
    let younger = db.snapshot();
    let before = db.door_state().denied;
    assert_eq!(younger.get(b"gone").expect("read"), None);
    assert_eq!(db.door_state().denied, before + 1);
}

/// The door denies the range first, and RocksDB's iterator is needed when the snapshot has ended.
#[test]
fn an_iterator_outlives_the_snapshot_of_its_options() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = filled(&folder, 1000);
    scan_anew(&db);
    let before = count(&db, b"", b"nowherf");
    let snapshot = db.snapshot();
    let mut options = ReadOptions::default();
    options.set_snapshot(&snapshot);
    options.set_iterate_upper_bound(b"nowherf");
    let from = IteratorMode::From(b"nowhere", Direction::Forward);
    let mut rows = db.iterator_opt(from, options);
    assert!(rows.next().is_none());
    drop(snapshot);
    db.put(b"added", b"value").expect("written");
    rows.set_mode(IteratorMode::Start);
    assert_eq!(rows.count(), before);
}

#[test]
fn what_is_written_behind_the_doors_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = filled(&folder, 1000);
    for round in 0..50 {
        wait(&db);
        db.shared().doors()[0].want_scan();
        std::thread::sleep(Duration::from_micros(300 * (round % 7)));
        let key = format!("behind {round}");
        db.unguarded(|inner| inner.put(&key, b"value")).expect("written");
        assert!(db.get(&key).expect("read").is_some(), "{key}");
        wait(&db);
        assert!(db.get(&key).expect("read").is_some(), "{key}");
        assert_eq!(count(&db, key.as_bytes(), &[key.as_bytes(), b"\0"].concat()), 1);
    }
}

#[test]
fn writers_stop_noting_while_nobody_asks() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = opened(&folder);
    let door = &db.shared().doors()[0];
    for at in 0..200_000 {
        db.put(number(at), b"value").expect("written");
        if door.phase() == Phase::Asleep {
            db.put(b"asleep", b"value").expect("written");
            break;
        }
    }
    assert!(!db.door_state().is_open, "{:?}", db.door_state());
    assert!(db.get(b"asleep").expect("read").is_some());
    let start = std::time::Instant::now();
    while !db.door_state().is_open {
        assert!(start.elapsed() < Duration::from_secs(60), "questions wake it");
        assert_eq!(db.get(b"nowhere").expect("read"), None);
    }
    assert!(db.get(b"asleep").expect("read").is_some());
}

#[test]
fn deleted_keys_are_forgotten_when_they_cost_too_much() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = filled(&folder, 4000);
    scan_anew(&db);
    (0..4000).for_each(|at| db.delete(number(at)).expect("written"));
    let scans = db.door_state().scans;
    let start = std::time::Instant::now();
    while db.door_state().scans == scans {
        assert!(start.elapsed() < Duration::from_secs(60), "waste leads to a scan");
        (0..4000).for_each(|at| assert_eq!(db.get(number(at)).expect("read"), None));
    }
    wait(&db);
    assert!(db.door_state().keys < 100, "{:?}", db.door_state());
}

#[test]
fn other_orders_of_keys_are_not_answered_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut folded = options();
    let same_case = |a: &[u8], b: &[u8]| a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase());
    folded.set_comparator("folded", Box::new(same_case));
    let mut back = options();
    back.set_comparator("back", Box::new(|a: &[u8], b: &[u8]| -> Ordering { b.cmp(a) }));
    let families =
        [ColumnFamilyDescriptor::new("folded", folded), ColumnFamilyDescriptor::new("back", back)];
    let db = Db::open_cf_descriptors(&options(), folder.path(), families).expect("it opens");
    wait(&db);
    let [folded, back] = ["folded", "back"].map(|name| db.cf_handle(name).expect("opened"));
    db.put_cf(&folded, b"KEY", b"value").expect("written");
    assert!(db.get_cf(&folded, b"key").expect("read").is_some());
    (0..100_u8).for_each(|at| db.put_cf(&back, [at], b"value").expect("written"));
    let mut options = ReadOptions::default();
    options.set_iterate_range(vec![90]..vec![10]);
    let mode = rocksdb::IteratorMode::Start;
    assert_eq!(db.iterator_cf_opt(&back, options, mode).count(), 80);
    for family in [&folded, &back] {
        let state = db.door_state_cf(family);
        assert!(!state.is_able && state.denied == 0, "{state:?}");
    }
    assert!(db.door_state().is_able);
}

#[test]
fn some_reads_take_the_plain_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = filled(&folder, 100);
    wait(&db);
    let plain: [fn(&mut ReadOptions); 4] = [
        |options| options.set_tailing(true),
        |options| options.set_read_tier(ReadTier::BlockCache),
        |options| options.set_max_skippable_internal_keys(5),
        |options| options.set_ignore_range_deletions(true),
    ];
    let before = db.door_state().denied;
    for set in plain {
        let mut options = ReadOptions::default();
        set(&mut options);
        drop(db.get_opt(b"nowhere", &options));
        assert_eq!(count_from(&db, b"nowhere", b"nowherf", options), 0);
    }
    assert_eq!(db.door_state().denied, before);
    assert_eq!(db.get(b"nowhere").expect("read"), None);
    assert_eq!(db.door_state().denied, before + 1);
}

#[test]
fn prefixes_are_denied_where_they_are_fixed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut with_prefix = options();
    with_prefix.set_prefix_extractor(SliceTransform::create_fixed_prefix(4));
    let db = Db::open(&with_prefix, folder.path()).expect("it opens");
    wait(&db);
    let prefix = |user: u64| number(user)[..4].to_vec();
    for user in 0..300 {
        db.put([&prefix(user * 2)[..], b"row"].concat(), b"value").expect("written");
    }
    // A filter of few keys, to which as many were added, denies little. So a scan follows.
    scan_anew(&db);
    assert_eq!(db.default_door().rules.prefix_bytes(), Some(4));
    let before = db.door_state().denied;
    for user in 0..600 {
        let rows = db.prefix_iterator(prefix(user)).count();
        assert_eq!(rows, usize::from(user % 2 == 0), "{user}");
    }
    let denied = db.door_state().denied - before;
    assert!(denied > 200, "{denied} of 300");
    // An iterator moves from one prefix to another.
    let mut rows = db.prefix_iterator(prefix(1));
    assert!(rows.next().is_none());
    rows.set_mode(rocksdb::IteratorMode::From(&prefix(2), rocksdb::Direction::Forward));
    assert_eq!(rows.count(), 1);
}

#[test]
fn families_come_and_go() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = opened(&folder);
    for round in 0..5 {
        db.create_cf("some", &options()).expect("made");
        let family = db.cf_handle("some").expect("made");
        assert!(db.door_state_cf(&family).is_open);
        let mut batch = WriteBatch::default();
        (0..500).for_each(|at| batch.put_cf(&family, number(at), b"value"));
        db.write(batch).expect("written");
        wait(&db);
        for at in 0..500 {
            assert!(db.get_cf(&family, number(at)).expect("read").is_some(), "{round} {at}");
            assert_eq!(db.get_cf(&family, number(at + 500)).expect("read"), None);
            assert_eq!(db.get(number(at)).expect("read"), None);
        }
        assert!(db.door_state_cf(&family).denied > 400);
        drop(family);
        db.drop_cf("some").expect("gone");
        assert!(db.cf_handle("some").is_none());
    }
}

#[test]
fn a_family_made_behind_the_doors_is_not_the_one_of_its_name_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = Db::open_cf(&options(), folder.path(), ["some"]).expect("it opens");
    wait(&db);
    db.unguarded(|inner| inner.drop_cf("some")).expect("gone");
    db.unguarded(|inner| inner.create_cf("some", &options())).expect("made");
    wait(&db);
    let family = db.cf_handle("some").expect("made");
    let mut batch = WriteBatch::default();
    batch.put_cf(&family, b"key", b"value");
    db.write(batch).expect("written");
    for _ in 0..2 {
        assert!(db.get_cf(&family, b"key").expect("read").is_some());
        assert_eq!(db.get_cf(&family, b"nowhere").expect("read"), None);
        wait(&db);
    }
    assert!(db.door_state_cf(&family).denied > 0);
}

#[test]
fn files_that_are_dropped_bring_no_key_back_unseen() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = filled(&folder, 2000);
    wait(&db);
    db.delete_file_in_range(&[0_u8][..], &[0xff; 9][..]).expect("done");
    wait(&db);
    let plain = (0..2000).filter(|at| db.inner().get(number(*at)).expect("read").is_some());
    let ours = (0..2000).filter(|at| db.get(number(*at)).expect("read").is_some());
    assert_eq!(plain.count(), ours.count());
    assert!(db.door_state().scans >= 1);
}

#[test]
fn entries_with_an_end_of_life_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let ttl = Duration::from_secs(1000);
    let db = Db::open_with_ttl(&options(), folder.path(), ttl).expect("it opens");
    wait(&db);
    (0..2000).for_each(|at| db.put(number(at), b"value").expect("written"));
    scan_anew(&db);
    (2000..4000).for_each(|at| db.put(number(at), b"value").expect("written"));
    for at in 0..4000 {
        assert_eq!(db.get(number(at)).expect("read").as_deref(), Some(&b"value"[..]));
    }
    assert_eq!(db.get(number(4000)).expect("read"), None);
}

/// RocksDB drops expired entries in compactions. Then their keys are absent, though the filter may
/// still have them.
#[test]
fn entries_whose_life_has_ended_are_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let ttl = Duration::from_secs(1);
    let db = Db::open_with_ttl(&options(), folder.path(), ttl).expect("it opens");
    (0..100).for_each(|at| db.put(number(at), b"value").expect("written"));
    wait(&db);
    std::thread::sleep(Duration::from_millis(2500));
    db.flush().expect("flushed");
    db.compact_range(None::<&[u8]>, None::<&[u8]>);
    (50..100).for_each(|at| db.put(number(at), b"anew").expect("written"));
    for _ in 0..2 {
        for at in 0..100 {
            let expected = (at >= 50).then_some(&b"anew"[..]);
            assert_eq!(db.get(number(at)).expect("read").as_deref(), expected, "{at}");
        }
        scan_anew(&db);
    }
}

/// Keys with user timestamps, the newest first: RocksDB alone answers.
#[test]
fn keys_with_times_are_not_answered_for() {
    const TIME: usize = 8;
    let folder = tempfile::tempdir().expect("a folder");
    let time_of = |time: &[u8]| u64::from_le_bytes(time.try_into().expect("eight bytes"));
    let by_time = move |a: &[u8], b: &[u8]| time_of(a).cmp(&time_of(b));
    let split = |key: &[u8]| {
        let (key, time) = key.split_at(key.len() - TIME);
        (key.to_vec(), time.to_vec())
    };
    let by_both = move |a: &[u8], b: &[u8]| {
        let ((a, a_time), (b, b_time)) = (split(a), split(b));
        a.cmp(&b).then_with(|| by_time(&b_time, &a_time))
    };
    let by_key = move |a: &[u8], a_has_time: bool, b: &[u8], b_has_time: bool| {
        let bare =
            |key: &[u8], has_time: bool| key[..key.len() - TIME * usize::from(has_time)].to_vec();
        bare(a, a_has_time).cmp(&bare(b, b_has_time))
    };
    let mut timed = options();
    timed.set_comparator_with_ts(
        "by time",
        TIME,
        Box::new(by_both),
        Box::new(by_time),
        Box::new(by_key),
    );
    let families = [ColumnFamilyDescriptor::new("timed", timed)];
    let db = Db::open_cf_descriptors(&options(), folder.path(), families).expect("it opens");
    wait(&db);
    let family = db.cf_handle("timed").expect("opened");
    assert!(!db.door_state_cf(&family).is_able);
    for time in 1..100_u64 {
        let (key, value) = (number(time % 10), time.to_string());
        db.put_cf_with_ts(&family, key, time.to_le_bytes(), value).expect("written");
    }
    db.delete_cf_with_ts(&family, number(3), 100_u64.to_le_bytes()).expect("deleted");
    let at = |time: u64| {
        let mut options = ReadOptions::default();
        options.set_timestamp(time.to_le_bytes());
        options
    };
    let get = |key: u64, time: u64| db.get_cf_opt(&family, number(key), &at(time)).expect("read");
    assert_eq!(get(3, 99).as_deref(), Some(&b"93"[..]));
    assert_eq!((get(3, 100), get(3, 2)), (None, None));
    assert_eq!(get(4, 50).as_deref(), Some(&b"44"[..]));
}

#[test]
fn a_door_can_be_kept_otherwise() {
    let folder = tempfile::tempdir().expect("a folder");
    let door = DoorOptions { bits_per_key: 20.0, may_sleep: false, is_kept: false };
    let families = [ColumnFamilyDescriptor::new("default", options())];
    let db = Db::open_with(&options(), folder.path(), families, None, door).expect("it opens");
    wait(&db);
    (0..20_000).for_each(|at| db.put(number(at), b"value").expect("written"));
    wait(&db);
    assert!(db.door_state().is_open, "{:?}", db.door_state());
    drop(db);
    let files = std::fs::read_dir(folder.path()).expect("a folder");
    let names = files.map(|file| file.expect("a file").file_name().into_string());
    assert!(names.flatten().all(|name| !name.starts_with("trommel")));
    let plain = RocksDb::open(&Options::default(), folder.path());
    drop(plain.expect("RocksDB opens it as it is"));
}
