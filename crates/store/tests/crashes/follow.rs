//! A follower shows the store as its writer showed it, at some number, and goes forward alone.
//! ```text
//! writer    writes, refused writes, flushes, merges, drops, reopenings   history: number -> state
//! follower  catches up now and then                                     state at its number, whole
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::door::Door;
use trommel::merge_operators::Concat;
use trommel::storage::{Memory, Storage};
use trommel::testing::{Fault, ManualClock, PausePoint, Pauses};
use trommel::{
    Background, Batch, Db, Environment, Error, FollowOptions, Follower, GuardKind, KeyspaceOptions,
    Options, Snapshot, SyncPolicy,
};

/// So often a test looks for what must come.
const LOOKS: u32 = 2000;
const PAUSE: Duration = Duration::from_millis(10);

fn options() -> Options {
    Options::new().background(Background::Stepped).sync(SyncPolicy::Never)
}

fn environment(disk: &Memory) -> Environment {
    Environment::new().storage(Arc::new(disk.clone()))
}

fn open_with(disk: &Memory, options: Options) -> Db {
    Db::open_with("db", options, environment(disk)).expect("opens")
}

fn open(disk: &Memory) -> Db {
    open_with(disk, options())
}

fn follow(disk: &Memory) -> Follower {
    Db::follow_with("db", FollowOptions::default(), environment(disk)).expect("follows")
}

/// Has the last write count: another one follows it.
fn follow_write(db: &Db) {
    db.put("~", "").expect("puts");
}

fn text(follower: &Follower, key: &str) -> Option<String> {
    let value = follower.get(key).expect("reads");
    value.map(|value| String::from_utf8_lossy(&value).into_owned())
}

fn catch_up(follower: &Follower) -> bool {
    follower.catch_up().expect("catches up")
}

#[test]
fn a_write_is_seen_once_something_valid_follows_it() {
    let disk = Memory::new();
    let db = open(&disk);
    db.put("drum", "turns").expect("puts");
    let follower = follow(&disk);
    assert_eq!((text(&follower, "drum"), follower.sequence()), (None, 0));
    db.put("sieve", "sifts").expect("puts");
    assert!(catch_up(&follower));
    assert_eq!((text(&follower, "drum"), follower.sequence()), (Some("turns".into()), 1));
    assert_eq!(text(&follower, "sieve"), None);
    assert!(!catch_up(&follower));
    db.close().expect("closes");
    assert!(catch_up(&follower), "a closed log says that all of it counts");
    assert_eq!((text(&follower, "sieve"), follower.sequence()), (Some("sifts".into()), 2));
}

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
fn batches_over_key_spaces_are_seen_as_a_whole() {
    let disk = Memory::new();
    let db = open(&disk);
    let other = db.keyspace("other", KeyspaceOptions::default()).expect("makes it");
    let follower = follow(&disk);
    assert_eq!(follower.keyspaces(), ["default", "other"]);
    let followed = follower.keyspace("other").expect("is there");
    assert!(followed.get("key").expect("reads").is_none());
    for number in 0..50 {
        let mut batch = Batch::new();
        batch.put("key", format!("{number}")).to(&other).put("key", format!("{number}"));
        db.write(batch).expect("writes");
        match number % 10 {
            3 => other.flush().expect("flushes"),
            7 => db.flush().expect("flushes"),
            _ => {}
        }
        catch_up(&follower);
        let moment = follower.moment().expect("open");
        let of = |name: &str| moment.keyspace(name).and_then(|it| it.get("key")).expect("reads");
        assert_eq!(of("default").as_deref(), of("other").as_deref(), "after {number}");
        assert!(number == 0 || of("other").is_some());
        assert_eq!(moment.sequence(), follower.sequence());
    }
    assert!(matches!(follower.keyspace("none"), Err(Error::NoKeyspace { .. })));
}

#[test]
fn key_spaces_that_are_made_renamed_and_dropped_are_followed() {
    let disk = Memory::new();
    let db = open(&disk);
    let follower = follow(&disk);
    let made = db.keyspace("made", KeyspaceOptions::default()).expect("makes it");
    made.put("key", "value").expect("puts");
    follow_write(&db);
    catch_up(&follower);
    let followed = follower.keyspace("made").expect("it is there");
    assert_eq!(followed.get("key").expect("reads").as_deref(), Some(&b"value"[..]));
    db.rename_keyspace("made", "renamed").expect("renames");
    catch_up(&follower);
    assert_eq!(follower.keyspaces(), ["default", "renamed"]);
    assert!(followed.get("key").expect("reads").is_some());
    let before = followed.snapshot().expect("is there");
    drop(made);
    db.drop_keyspace("renamed").expect("drops");
    catch_up(&follower);
    assert_eq!(follower.keyspaces(), ["default"]);
    assert!(matches!(followed.get("key"), Err(Error::KeyspaceDropped { .. })));
    assert!(before.get("key").expect("it was there then").is_some());
}

#[test]
fn nothing_is_changed_in_the_folder() {
    let disk = Memory::new();
    let db = open(&disk);
    let files = || -> BTreeMap<String, Vec<u8>> {
        let names = disk.list(Path::new("db")).expect("lists");
        let bytes = |name: &String| disk.file(Path::new("db").join(name)).expect("a file");
        names.iter().map(|name| (name.clone(), bytes(name))).collect()
    };
    for round in 0..4 {
        for number in 0..100 {
            db.put(format!("{number}"), format!("{round}").repeat(40)).expect("puts");
        }
        if round < 3 {
            db.flush().expect("flushes");
        }
    }
    let before = files();
    let follower = follow(&disk);
    assert_eq!(follower.range(..).expect("open").count(), 100);
    catch_up(&follower);
    follower.verify().expect("verifies");
    follower.stats().expect("tells");
    follower.close().expect("closes");
    assert!(matches!(follower.get("1"), Err(Error::Closed { .. })));
    assert!(matches!(follower.catch_up(), Err(Error::Closed { .. })));
    drop(follower);
    assert!(files() == before, "a follower has changed the folder");
}

#[test]
fn a_store_that_nobody_has_open_is_read_as_it_is() {
    let disk = Memory::new();
    let missing = Db::follow_with("db", FollowOptions::default(), environment(&disk));
    assert!(matches!(missing, Err(Error::Missing { .. })));
    let db = open(&disk);
    db.put("drum", "turns").expect("puts");
    db.close().expect("closes");
    let follower = follow(&disk);
    assert_eq!(text(&follower, "drum"), Some("turns".into()));
    assert_eq!(follower.verify().expect("verifies").damage, [""; 0]);
}

#[test] // What the last edit loads past the logs may have been refused.
fn what_is_loaded_is_seen_in_its_turn() {
    let disk = Memory::new();
    let db = open(&disk);
    db.put("a", "first").expect("puts");
    let follower = follow(&disk);
    db.ingest([("b", "loaded"), ("c", "loaded")]).expect("loads");
    db.put("d", "later").expect("puts");
    follow_write(&db);
    catch_up(&follower);
    let seen: Vec<_> = ["a", "b", "c", "d"].map(|key| text(&follower, key)).into();
    assert!(seen.iter().all(Option::is_some), "{seen:?}");
    assert_eq!(follower.sequence(), 3);
}

#[test]
fn operands_are_merged_once_whatever_tables_have_of_them() {
    let disk = Memory::new();
    let db = open_with(&disk, options().merge_operator(Concat::new(",")));
    let follower = follow(&disk);
    for number in 0..40 {
        db.merge("key", format!("{number}")).expect("merges");
        if number % 7 == 3 {
            db.flush().expect("flushes");
        }
        if number % 3 == 0 {
            catch_up(&follower);
        }
        let expected = (0..follower.sequence()).map(|it| it.to_string());
        let expected = expected.collect::<Vec<_>>().join(",");
        assert_eq!(text(&follower, "key").unwrap_or_default(), expected, "after {number}");
    }
}

#[test]
fn values_apart_are_read_along_while_their_file_grows() {
    let disk = Memory::new();
    let options = options().value_threshold(256).value_garbage_share(0.2);
    let db = open_with(&disk, options);
    let follower = follow(&disk);
    let mut snapshots = Vec::new();
    let value = |number: u64| format!("{number} ").repeat(300);
    for number in 0..60 {
        db.put(format!("{}", number % 5), value(number)).expect("puts");
        if number % 20 == 19 {
            db.compact().expect("merges");
        }
        catch_up(&follower);
        if number % 10 == 0 {
            snapshots.push(follower.snapshot().expect("open"));
        }
        for snapshot in snapshots.iter().chain([&follower.snapshot().expect("open")]) {
            let last = snapshot.sequence();
            for key in 0..last.min(5) {
                let newest = (0..last).rev().find(|it| it % 5 == key).expect("was put");
                let found = snapshot.get(format!("{key}")).expect("reads").expect("was put");
                assert!(&*found == value(newest).as_bytes(), "{key} at {last}");
            }
        }
    }
    let mut reader = follower.get_reader("1").expect("reads").expect("is there");
    let mut read = String::new();
    std::io::Read::read_to_string(&mut reader, &mut read).expect("reads");
    assert_eq!(read, value(56));
}

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
            let told = error.to_string();
            assert!(told.contains(".table was removed") && told.contains("catch up"), "{told}");
        }
        other => panic!("{other:?}"),
    }
    let mut gone = (0..200).filter_map(|key| snapshot.get(format!("{key}")).err());
    assert!(gone.all(|error| matches!(error, Error::Gone { .. })));
    assert_eq!(text(&follower, "7"), Some("new".into()));
}

#[test]
fn staleness_is_told_by_number_and_age() {
    let disk = Memory::new();
    let db = open(&disk);
    let clock = Arc::new(ManualClock::default());
    let environment = environment(&disk).clock(clock.clone());
    let follower = Db::follow_with("db", FollowOptions::default(), environment).expect("follows");
    let second = Duration::from_secs(1);
    clock.advance(second);
    db.put("a", "1").expect("puts");
    assert_eq!(follower.staleness().since_look, second);
    // It does not count yet, and tells that the writer is at work.
    catch_up(&follower);
    let now = follower.staleness();
    assert_eq!((now.sequence, now.since_look, now.since_news), (0, Duration::ZERO, Duration::ZERO));
    db.put("b", "1").expect("puts");
    catch_up(&follower);
    db.flush().expect("flushes");
    catch_up(&follower);
    clock.advance(second);
    catch_up(&follower);
    let now = follower.staleness();
    assert_eq!((now.sequence, now.since_look, now.since_news), (2, Duration::ZERO, second));
    disk.fail_from(0, Fault::Io);
    clock.advance(second);
    follower.catch_up().expect_err("the disk fails");
    disk.mend();
    let now = follower.staleness();
    assert_eq!((now.since_look, now.failure.is_some()), (second, true));
    catch_up(&follower);
    assert_eq!(follower.staleness().failure, None);
}

#[test]
fn an_idle_writer_lets_a_thread_see_its_last_write() {
    let disk = Memory::new();
    for policy in [SyncPolicy::Always, SyncPolicy::Never, SyncPolicy::Interval(PAUSE)] {
        let db = open_with(&disk, Options::new().sync(policy));
        let options = FollowOptions::new().interval(PAUSE);
        let follower = Db::follow_with("db", options, environment(&disk)).expect("follows");
        let value = format!("{policy:?}");
        db.put("drum", &value).expect("puts");
        let is_seen = || {
            std::thread::sleep(PAUSE);
            text(&follower, "drum").as_ref() == Some(&value)
        };
        assert!((0..LOOKS).any(|_| is_seen()), "{policy:?}: the last write was never seen");
        let numbers = (follower.sequence(), db.snapshot().sequence());
        assert_eq!(numbers.0, numbers.1);
        db.close().expect("closes");
    }
}

#[test]
fn key_spaces_without_a_log_are_seen_as_they_were_flushed() {
    let disk = Memory::new();
    let db = open(&disk);
    let unlogged = db.keyspace("unlogged", KeyspaceOptions::new().log(false)).expect("makes it");
    let follower = follow(&disk);
    unlogged.put("key", "1").expect("puts");
    db.put("logged", "1").expect("puts");
    follow_write(&db);
    catch_up(&follower);
    let followed = follower.keyspace("unlogged").expect("is there");
    assert_eq!(followed.get("key").expect("reads").as_deref(), None);
    assert_eq!(text(&follower, "logged"), Some("1".into()));
    unlogged.flush().expect("flushes");
    catch_up(&follower);
    assert_eq!(followed.get("key").expect("reads").as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_checkpoint_of_a_follower_is_a_store_of_its_moment() {
    let disk = Memory::new();
    let db = open_with(&disk, options().value_threshold(256));
    let other = db.keyspace("other", KeyspaceOptions::default()).expect("makes it");
    for number in 0..200 {
        db.put(format!("{number:03}"), "v".repeat(200 + number)).expect("puts");
        other.put(format!("{number:03}"), "w").expect("puts");
        if number == 100 {
            db.flush().expect("flushes");
        }
    }
    let follower = follow(&disk);
    let expected: Vec<_> = follower.range(..).expect("open").map(|it| it.expect("reads")).collect();
    assert!((198..=200).contains(&expected.len()));
    db.compact().expect("merges");
    db.delete_range("0", "9").expect("deletes");
    follower.checkpoint("copy").expect("its files are there, or open");
    let copy = Db::open_with("copy", options(), environment(&disk)).expect("opens");
    let found: Vec<_> = copy.iter().map(|it| it.expect("reads")).collect();
    assert!(found == expected, "{} keys, not {}", found.len(), expected.len());
    assert_eq!(copy.verify().expect("verifies").damage, [""; 0]);
    let others = copy.open_keyspace("other").expect("is there").iter().count();
    assert_eq!(
        others,
        follower.keyspace("other").expect("is there").range(..).expect("open").count()
    );
}

/// Rows that are written in rounds, so that a number tells which of them are there.
const KEYS: u64 = 30;
const ROUNDS: u64 = 4;

fn key_text(key: u64) -> String {
    format!("{key:02}")
}

/// Every third one is apart.
fn row(key: u64, round: u64) -> String {
    format!("{round}").repeat(if key.is_multiple_of(3) { 600 } else { 20 })
}

fn write_round(db: &Db, round: u64) {
    for key in 0..KEYS {
        db.put(key_text(key), row(key, round)).expect("puts");
    }
}

/// Rounds that are flushed and merged, and one that is in the log alone.
fn write_later_rounds(db: &Db) {
    for round in 2..ROUNDS {
        write_round(db, round);
        db.flush().expect("flushes");
    }
    db.compact().expect("merges");
    while db.step().expect("removes files") {}
    write_round(db, ROUNDS);
    follow_write(db);
}

/// What a follower shows is what the store was at its number.
fn shows_its_number(follower: &Follower, what: &str) {
    let last = follower.sequence();
    let mut rows = Vec::new();
    for key in 0..KEYS {
        let round = ((last + KEYS - key - 1) / KEYS).min(ROUNDS);
        let expected = (round > 0).then(|| row(key, round));
        assert_eq!(text(follower, &key_text(key)), expected, "{what}: {key} at {last}");
        rows.extend(expected.map(|value| (key_text(key).into_bytes(), value.into_bytes())));
    }
    let scanned = follower.range(..).expect("open").map(owned);
    let scanned: Vec<_> = scanned.filter(|(key, _)| *key != b"~").collect();
    assert!(scanned == rows, "{what}: {} rows at {last}, not {}", scanned.len(), rows.len());
}

fn is_the_fault(error: &Error) -> bool {
    error.to_string().contains("input/output error")
}

/// Far more operations than a look at so small a store takes.
const OPERATIONS_MAX: u64 = 2000;

#[test]
fn a_follower_whose_first_reads_fail_is_refused_or_right() {
    let disk = Memory::new();
    let db = open_with(&disk, options().value_threshold(256));
    write_round(&db, 1);
    db.flush().expect("flushes");
    write_later_rounds(&db);
    let mut failed = 0;
    for n in 0..OPERATIONS_MAX {
        let what = format!("operation {n}");
        disk.fail_at(n, Fault::Io);
        let followed = Db::follow_with("db", FollowOptions::default(), environment(&disk));
        let has_fired = !disk.may_fail();
        disk.mend();
        match followed {
            Ok(follower) => {
                shows_its_number(&follower, &what);
                catch_up(&follower);
                assert!(follower.sequence() >= ROUNDS * KEYS, "{what}");
                shows_its_number(&follower, &what);
            }
            Err(error) => {
                assert!(has_fired && is_the_fault(&error), "{what}: {error}");
                failed += 1;
            }
        }
        let again = follow(&disk);
        assert!(again.sequence() >= ROUNDS * KEYS, "{what}, again");
        shows_its_number(&again, &format!("{what}, again"));
        if !has_fired {
            assert!(failed > 10, "{failed} have failed");
            return;
        }
    }
    panic!("a look has no end");
}

#[test]
fn a_follower_whose_later_reads_fail_stays_right_and_goes_on() {
    let mut failed = 0;
    for n in 0..OPERATIONS_MAX {
        let what = format!("operation {n}");
        let disk = Memory::new();
        let db = open_with(&disk, options().value_threshold(256));
        write_round(&db, 1);
        db.flush().expect("flushes");
        let follower = follow(&disk);
        let before = follower.sequence();
        assert!(before > 0, "{what}: nothing of the flush is seen");
        // What it has read stays open.
        shows_its_number(&follower, &what);
        write_later_rounds(&db);
        disk.fail_at(n, Fault::Io);
        let caught_up = follower.catch_up();
        let has_fired = !disk.may_fail();
        disk.mend();
        if let Err(error) = caught_up {
            assert!(has_fired && is_the_fault(&error), "{what}: {error}");
            failed += 1;
        }
        assert!(follower.sequence() >= before, "{what}: it went back");
        shows_its_number(&follower, &what);
        catch_up(&follower);
        for follower in [follower, follow(&disk)] {
            assert!(follower.sequence() >= ROUNDS * KEYS, "{what}, again");
            shows_its_number(&follower, &format!("{what}, again"));
        }
        if !has_fired {
            assert!(failed > 10, "{failed} have failed");
            return;
        }
    }
    panic!("a look has no end");
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

/// A store of three key spaces as it was at each of its numbers.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct State(BTreeMap<(usize, Vec<u8>), Vec<u8>>);

const NAMES: [&str; 3] = ["default", "one", "two"];

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

struct World {
    disk: Memory,
    db: Option<Db>,
    options: Options,
    random: Random,
    now: State,
    history: BTreeMap<u64, State>,
    /// When the last key space was dropped, and what the store was then.
    drops: Vec<(u64, State)>,
    written: u64,
}

impl World {
    fn new(seed: u64, guard: GuardKind) -> World {
        let options = options().guard(guard).write_buffer_bytes(3 << 10).size_ratio(3);
        let options = options.value_threshold(256).merge_operator(Concat::new("+"));
        let (disk, random) = (Memory::new(), Random(seed));
        let db = Some(open_with(&disk, options.clone()));
        let history = BTreeMap::from([(0, State::default())]);
        let (now, drops) = (State::default(), Vec::new());
        World { disk, db, options, random, now, history, drops, written: 0 }
    }

    fn db(&self) -> Db {
        self.db.clone().expect("open")
    }

    fn keyspace(&self, place: usize) -> trommel::Result<trommel::Keyspace> {
        let options = KeyspaceOptions::new().write_buffer_bytes(2 << 10);
        self.db().keyspace(NAMES[place], options.merge_operator(Concat::new("+")))
    }

    /// One batch, which may be refused.
    fn write(&mut self) {
        let (mut batch, mut next) = (Batch::new(), self.now.clone());
        for _ in 0..=self.random.below(3) {
            let place = self.random.below(3) as usize;
            let Ok(keyspace) = self.keyspace(place) else { continue };
            batch.to(&keyspace);
            let key = format!("{:02}", self.random.below(40)).into_bytes();
            self.written += 1;
            let value = format!("{}", self.written).repeat(1 + self.random.below(90) as usize);
            let state = &mut next.0;
            match self.random.below(12) {
                0..=6 => {
                    batch.put(&key, &value);
                    state.insert((place, key), value.into_bytes());
                }
                7..=8 => {
                    batch.delete(&key);
                    state.remove(&(place, key));
                }
                9..=10 => {
                    let operand = format!("{}", self.written);
                    batch.merge(&key, &operand);
                    let old = state.entry((place, key)).or_default();
                    if !old.is_empty() {
                        old.push(b'+');
                    }
                    old.extend_from_slice(operand.as_bytes());
                }
                _ => {
                    let to = format!("{:02}", self.random.below(40)).into_bytes();
                    let (from, to) = (key.clone().min(to.clone()), key.max(to));
                    batch.delete_range(&from, &to);
                    let is_in =
                        |at: &usize, key: &Vec<u8>| *at == place && (&from..&to).contains(&key);
                    state.retain(|(at, key), _| !is_in(at, key));
                }
            }
        }
        if self.db().write(batch).is_ok() {
            self.note(next);
        }
    }

    fn note(&mut self, state: State) {
        self.history.insert(self.db().snapshot().sequence(), state.clone());
        self.now = state;
    }

    /// Anything that a writer does; some of it while the disk fails.
    fn step(&mut self) {
        let fails = self.random.below(12) == 0;
        if fails {
            let kind = [Fault::Io, Fault::NoSpace][self.random.below(2) as usize];
            self.disk.fail_at(self.random.below(20), kind);
        }
        match self.random.below(40) {
            0 => drop(self.db().flush()),
            1 => drop(self.db().compact()),
            2..=9 => drop(self.db().step()),
            10 => drop(self.db().sync()),
            11 => self.load(),
            12 if !fails => {
                self.db.take().expect("open").close().expect("closes");
                self.db = Some(open_with(&self.disk, self.options.clone()));
            }
            13 => {
                let (last, place) = (self.db().snapshot().sequence(), NAMES.len() - 1);
                if self.db().drop_keyspace(NAMES[place]).is_ok() {
                    self.drops.push((last, self.now.clone()));
                    self.now.0.retain(|(at, _), _| *at != place);
                }
            }
            _ => self.write(),
        }
        self.disk.mend();
    }

    fn load(&mut self) {
        let keys: Vec<String> = (0..self.random.below(6)).map(|it| format!("{it:02}")).collect();
        let entries = keys.iter().map(|key| (key, "loaded"));
        if self.db().ingest(entries).is_ok_and(|loaded| loaded > 0) {
            let mut next = self.now.clone();
            keys.iter().for_each(|key| {
                next.0.insert((0, key.clone().into_bytes()), b"loaded".to_vec());
            });
            self.note(next);
        }
    }

    /// What a follower shows must be what the store was at its number. Dropping a key space has no
    /// number: before and after it, it may be there, or not.
    fn check(&self, moment: &trommel::Moment, what: &str) {
        let at = moment.sequence();
        let (_, state) = self.history.range(..=at).next_back().expect("from 0 on");
        for (place, name) in NAMES.iter().enumerate() {
            let Ok(snapshot) = moment.keyspace(name) else { continue };
            let found: Vec<_> = snapshot.range(..).map(owned).collect();
            let expected = state.of(place);
            let was_dropped = place + 1 == NAMES.len() && found != expected && {
                let is_empty = found.is_empty() && self.drops.iter().any(|(drop, _)| *drop >= at);
                let before = |(drop, state): &(u64, State)| *drop <= at && state.of(place) == found;
                is_empty || self.drops.iter().any(before)
            };
            if was_dropped {
                continue;
            }
            let what = format!("{what}: {name} at {at}");
            assert_eq!(found, expected, "{what}");
            let mut back: Vec<_> = snapshot.range(..).rev().map(owned).collect();
            back.reverse();
            assert_eq!(back, expected, "{what}, backward");
            for key in (0..40).map(|it| format!("{it:02}")) {
                let found = snapshot.get(&key).expect("reads");
                let value = expected.iter().find(|(it, _)| *it == key.as_bytes());
                assert_eq!(found.as_deref(), value.map(|it| &*it.1), "{what}, {key}");
                let may = snapshot.may_contain_range(key.as_str()..=key.as_str()).expect("asks");
                assert!(may || value.is_none(), "{what}: the guard denies {key}");
            }
        }
    }
}

fn owned(entry: trommel::Result<(Vec<u8>, trommel::Value)>) -> (Vec<u8>, Vec<u8>) {
    let (key, value) = entry.expect("reads");
    (key, value.to_vec())
}

impl State {
    /// A key space of it.
    fn of(&self, place: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let own = self.0.iter().filter(|((of, _), _)| *of == place);
        own.map(|((_, key), value)| (key.clone(), value.clone())).collect()
    }
}

fn random_history(seed: u64, guard: GuardKind) {
    let mut world = World::new(seed, guard);
    let options = FollowOptions::new()
        .options(Options::new().merge_operator(Concat::new("+")))
        .keyspace("one", KeyspaceOptions::new().merge_operator(Concat::new("+")))
        .keyspace("two", KeyspaceOptions::new().merge_operator(Concat::new("+")));
    let follow = |world: &World| {
        Db::follow_with("db", options.clone(), environment(&world.disk)).expect("follows")
    };
    // They catch up always, often, seldom.
    let mut followers: Vec<(Follower, u64)> =
        [1, 5, 60].map(|every| (follow(&world), every)).into();
    let mut held: Vec<trommel::Moment> = Vec::new();
    let mut before = [0; 3];
    for step in 0..400 {
        world.step();
        for (place, (follower, every)) in followers.iter_mut().enumerate() {
            if world.random.below(*every) > 0 {
                continue;
            }
            let what = format!("seed {seed}, {guard}, step {step}, follower {place}");
            follower.catch_up().unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(follower.sequence() >= before[place], "{what} went back");
            before[place] = follower.sequence();
            let moment = follower.moment().expect("open");
            world.check(&moment, &what);
            if world.random.below(20) == 0 {
                held.push(moment);
            }
            if held.len() > 3 {
                held.remove(0);
            }
            held.iter().for_each(|moment| world.check(moment, &format!("{what}, held")));
        }
        if world.random.below(80) == 0 {
            followers[1].0 = follow(&world);
            before[1] = followers[1].0.sequence();
        }
    }
    // All of it, in the end.
    world.db().close().expect("closes");
    for (follower, _) in &followers {
        catch_up(follower);
        let moment = follower.moment().expect("open");
        world.check(&moment, &format!("seed {seed}, in the end"));
        let last = world.history.last_key_value().expect("from 0 on");
        assert!(moment.sequence() >= *last.0, "{} before {}", moment.sequence(), last.0);
        assert_eq!(follower.verify().expect("verifies").damage, [""; 0]);
    }
}

#[test]
fn every_answer_is_from_a_state_that_was() {
    trommel_guards::register().expect("they have names of their own");
    for guard in ["grf", "none", "ribbon", "chucky", "elastic"] {
        let guard: GuardKind = guard.parse().expect("a guard");
        (0..4).for_each(|seed| random_history(seed, guard));
    }
}
