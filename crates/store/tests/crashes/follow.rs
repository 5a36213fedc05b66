//! A follower shows the store as its writer showed it, at some number, and goes forward alone.
//! ```text
//! writer    writes, refused writes, flushes, merges, drops, reopenings   history: number -> state
//! follower  catches up now and then                                     state at its number, whole
//! ```

mod faults;
mod gone;
mod histories;
mod logs;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trommel::merge_operators::Concat;
use trommel::storage::{Memory, Storage};
use trommel::testing::{Fault, ManualClock};
use trommel::{
    Background, Batch, Db, Environment, Error, FollowOptions, Follower, KeyspaceOptions, Options,
    SyncPolicy,
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

fn owned(entry: trommel::Result<(Vec<u8>, trommel::Value)>) -> (Vec<u8>, Vec<u8>) {
    let (key, value) = entry.expect("reads");
    (key, value.to_vec())
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

/// The memtable of the moment goes on, and refers to value files that go before they are copied.
#[test]
fn a_checkpoint_of_a_follower_takes_no_values_of_later_moments() {
    let disk = Memory::new();
    let options = || options().value_threshold(256).value_file_bytes(4096).compression(false);
    let db = open_with(&disk, options());
    db.put("table", vec![1; 300]).expect("puts");
    db.flush().expect("flushes");
    db.put("log", vec![2; 3000]).expect("puts");
    follow_write(&db);
    let follower = follow(&disk);
    let names = || disk.list(Path::new("db")).expect("lists").into_iter();
    let value_files = || names().filter(|it| it.ends_with(".value")).collect::<BTreeSet<_>>();
    let (before, mut is_first) = (value_files(), true);
    let mut listener = |_: trommel::tools::Progress| {
        if std::mem::take(&mut is_first) {
            ["later", "last"].iter().for_each(|key| db.put(key, vec![3; 5000]).expect("puts"));
            follow_write(&db);
            assert!(catch_up(&follower));
            let later = value_files().difference(&before).cloned().collect::<BTreeSet<_>>();
            ["later", "last"].iter().for_each(|key| db.put(key, "short").expect("puts"));
            db.compact().expect("merges");
            assert!(!later.is_empty() && value_files().is_disjoint(&later), "{later:?}");
        }
        std::ops::ControlFlow::Continue(())
    };
    follower.checkpoint_with_progress("copy", &mut listener).expect("all of its moment is there");
    let copy = Db::open_with("copy", options(), environment(&disk)).expect("opens");
    let found = |key: &str| copy.get(key).expect("reads").map(|value| value.len());
    assert_eq!(["table", "log", "later", "last"].map(found), [Some(300), Some(3000), None, None]);
    assert!(copy.verify().expect("verifies").damage.is_empty());
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
