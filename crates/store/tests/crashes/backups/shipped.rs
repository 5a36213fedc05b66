//! Changes that were shipped: they lead from a generation to any moment behind it.
//! ```text
//! generation   changes-41-57   changes-57-80         restore_until(60)
//!    41       [42 ....... 57] [58 .. | .. 80]                  ^
//! ```
//! Invariant: what no change tells (bulk loads, what has no log) is told of, never left out in
//! silence.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use trommel::backup::{Unlogged, Until};
use trommel::merge_operators::{Concat, MergeError, MergeOperator};
use trommel::storage::Clock;
use trommel::{Background, Db, Error, KeyspaceOptions, Options};

use super::long_values::noise;
use super::{World, contents, options, write};

// Moments between were refused: only the newest value was left.
#[test]
fn values_that_were_overwritten_and_merged_away_lead_to_any_moment() {
    let world = World::new();
    let (mut db, backups) = (world.open("db"), world.backups());
    backups.back_up(&db).expect("backs up");
    let mut moments = Vec::new();
    for number in 0..12u8 {
        db.put("a", noise(number, 5000)).expect("puts");
        db.put([number % 3], noise(number, 3000)).expect("puts");
        moments.push((db.snapshot().sequence(), contents(&db)));
        match number {
            3 | 5 | 9 => db.compact().expect("merges"),
            7 => {
                drop(db);
                db = world.open("db");
            }
            _ => {}
        }
    }
    db.compact().expect("merges");
    let stats = db.stats().expect("open");
    assert!(stats.kept_value_bytes > 20_000, "{}", stats.kept_value_bytes);
    backups.ship(&db).expect("logs have kept the values");
    for (sequence, expected) in moments {
        let (dir, until) = (sequence.to_string(), Until::Sequence(sequence));
        assert_eq!(backups.restore_until(until, &dir, options()).expect("restores"), sequence);
        assert!(contents(&world.open(&dir)) == expected, "write {sequence}");
    }
}

#[test]
fn a_generation_leads_on_where_the_value_of_a_change_is_gone() {
    let world = World::new();
    let with = options().compression(false).kept_log_bytes(8 << 10);
    let db = Db::open_with("db", with, world.environment()).expect("opens");
    let backups = world.backups();
    db.put("a", noise(1, 5000)).expect("puts");
    backups.back_up(&db).expect("backs up");
    (2..5u8).for_each(|number| db.put("a", noise(number, 5000)).expect("puts"));
    db.compact().expect("merges");
    (0..9u8).for_each(|number| db.put([number], noise(number, 5000)).expect("puts"));
    db.compact().expect("merges");
    db.put("c", "1").expect("puts");
    db.flush().expect("flushes");
    let error = backups.ship(&db).expect_err("an overwritten value is gone");
    assert!(matches!(error, Error::Gone { .. }), "{error}");
    let second = backups.back_up(&db).expect("backs up");
    db.put("b", "1").expect("puts");
    let shipped = backups.ship(&db).expect("goes on");
    assert!(shipped.from >= second.sequence && shipped.to > second.sequence, "{shipped:?}");
}

#[test]
fn changes_that_were_shipped_lead_to_any_moment() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    assert!(matches!(backups.ship(&db), Err(Error::FileMissing { .. })));
    write(&db, 0);
    backups.back_up(&db).expect("backs up");
    let mut moments = vec![(db.snapshot().sequence(), Duration::ZERO, contents(&db))];
    for turn in 1..6 {
        for part in 0..3 {
            db.put(format!("{turn} {part}"), [part; 20]).expect("puts");
            moments.push((db.snapshot().sequence(), Duration::MAX, contents(&db)));
        }
        write(&db, turn);
        world.clock.advance(Duration::from_secs(59));
        let shipped = backups.ship(&db).expect("ships");
        assert_eq!(shipped.to, db.snapshot().sequence());
        moments.push((shipped.to, world.clock.since_epoch(), contents(&db)));
        world.clock.advance(Duration::from_secs(1));
        if turn == 3 {
            backups.back_up(&db).expect("backs up");
        }
    }
    assert_eq!(backups.ship(&db).expect("ships").bytes, 0);
    for (place, (sequence, time, expected)) in moments.iter().enumerate() {
        let dir = format!("as of {place}");
        let until = Until::Sequence(*sequence);
        let last = backups.restore_until(until, &dir, options()).expect("restores");
        assert_eq!(last, *sequence);
        assert_eq!(contents(&world.open(&dir)), *expected, "moment {place}");
        if *time > Duration::ZERO && *time < Duration::MAX {
            let (dir, until) = (format!("then {place}"), Until::Time(*time));
            let last = backups.restore_until(until, &dir, options()).expect("restores");
            assert_eq!((last, contents(&world.open(&dir))), (*sequence, expected.clone()));
        }
    }
    let beyond = Until::Sequence(db.snapshot().sequence() + 1);
    let error = backups.restore_until(beyond, "beyond", options()).expect_err("not shipped");
    assert!(error.to_string().contains("not shipped"), "{error}");
    let before = Until::Sequence(moments[0].0 - 1);
    let error = backups.restore_until(before, "before", options()).expect_err("too old");
    assert!(error.to_string().contains("so old"), "{error}");
}

// A time meant the shipment before it, however long ago.
#[test]
fn times_within_a_shipment_lead_to_their_moments() {
    // The longer ones are shipped as several objects.
    for len in [20, 900 << 10] {
        let world = World::new();
        let (db, backups) = (world.open("db"), world.backups());
        let second = Duration::from_secs(1);
        db.put("before", "1").expect("puts");
        backups.back_up(&db).expect("backs up");
        let moment = || (world.clock.since_epoch(), db.snapshot().sequence(), contents(&db));
        let mut moments = vec![moment()];
        for turn in 1..4u8 {
            world.clock.advance(10 * second);
            for part in 0..11 {
                db.put([turn, part], vec![turn; len]).expect("puts");
                db.step().expect("goes on");
            }
            moments.push(moment());
        }
        world.clock.advance(100 * second);
        backups.ship(&db).expect("ships");
        for (place, (time, sequence, expected)) in moments.iter().enumerate() {
            for later in [Duration::ZERO, 9 * second] {
                let (dir, until) = (format!("{place} {later:?}"), Until::Time(*time + later));
                let last = backups.restore_until(until, &dir, options()).expect("restores");
                assert_eq!(last, *sequence, "{len} bytes, {dir}");
                assert!(contents(&world.open(&dir)) == *expected, "{len} bytes, {dir}");
            }
        }
    }
}

#[test]
fn a_time_leads_to_a_shipment_where_no_logs_are_kept() {
    let world = World::new();
    let with = options().kept_log_bytes(0);
    let db = Db::open_with("db", with, world.environment()).expect("opens");
    let backups = world.backups();
    let generation = backups.back_up(&db).expect("backs up");
    world.clock.advance(Duration::from_secs(10));
    db.put("a", "1").expect("puts");
    world.clock.advance(Duration::from_secs(10));
    let end = backups.ship(&db).expect("ships").to;
    for (seconds, expected) in [(0, generation.sequence), (19, generation.sequence), (20, end)] {
        let (dir, until) = (seconds.to_string(), Until::Time(Duration::from_secs(seconds)));
        let last = backups.restore_until(until, &dir, options()).expect("restores");
        assert_eq!(last, expected, "{seconds} s");
    }
}

#[test]
fn what_an_opening_finds_counts_as_written_then() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    let generation = backups.back_up(&db).expect("backs up");
    world.clock.advance(Duration::from_secs(10));
    db.put("a", "1").expect("puts");
    world.clock.advance(Duration::from_secs(10));
    drop(db);
    let db = world.open("db");
    world.clock.advance(Duration::from_secs(10));
    let before = db.snapshot().sequence();
    db.put("a", "2").expect("puts");
    world.clock.advance(Duration::from_secs(10));
    let end = backups.ship(&db).expect("ships").to;
    let expected = [(19, generation.sequence), (20, before), (29, before), (30, end)];
    for (seconds, expected) in expected {
        let (dir, until) = (seconds.to_string(), Until::Time(Duration::from_secs(seconds)));
        let last = backups.restore_until(until, &dir, options()).expect("restores");
        assert_eq!(last, expected, "{seconds} s");
    }
}

/// The key spaces that a store has, each with one key that tells it.
fn last_values(db: &Db) -> Vec<(String, String)> {
    let all = db.keyspaces().expect("lists").into_iter();
    let value = |name: &String| {
        let value = db.open_keyspace(name).expect("is there").get("told").expect("reads");
        value.map_or_else(String::new, |it| String::from_utf8(it.to_vec()).expect("text"))
    };
    let mut last_values: Vec<_> = all.map(|name| (value(&name), name)).collect();
    last_values.sort_unstable();
    last_values.into_iter().map(|(value, name)| (name, value)).collect()
}

/// The same, as text: `name=value`.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |text: &str| text.split_once('=').map(|(name, value)| (name.into(), value.into()));
    let mut all: Vec<_> = text.split(' ').filter_map(pair).chain(pair("default=")).collect();
    all.sort_unstable_by(|one, other| (&one.1, &one.0).cmp(&(&other.1, &other.0)));
    all
}

/// Feeds tell of writes alone, by the numbers of key spaces.
#[test]
fn key_spaces_that_were_made_renamed_and_dropped_come_back_so() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    let make = |name: &str, value: &str| {
        let options = KeyspaceOptions::new().merge_operator(Concat::new("/"));
        let keyspace = db.keyspace(name, options).expect("made");
        keyspace.put("told", value).expect("puts");
        keyspace
    };
    let first = ["one", "two", "three", "four"].map(|name| make(name, name));
    backups.back_up(&db).expect("backs up");
    let mut moments = Vec::new();
    let mut note = |expected: &str| moments.push((db.snapshot().sequence(), pairs(expected)));
    // Written to by its old handle, under a new name; another one has the old name.
    db.rename_keyspace("one", "first").expect("renames");
    first[0].merge("told", "renamed").expect("merges");
    let other = make("one", "other");
    note("first=one/renamed one=other two=two three=three four=four");
    db.drop_keyspace("two").expect("drops");
    make("two", "another");
    // Nobody knows when it was dropped.
    note("first=one/renamed one=other two=another renamed-2-0=two three=three four=four");
    // These change names.
    for (from, to) in [("three", "between"), ("four", "three"), ("between", "four")] {
        db.rename_keyspace(from, to).expect("renames");
    }
    other.merge("told", "on").expect("merges");
    db.keyspace("empty", KeyspaceOptions::new().log(false)).expect("made");
    note("first=one/renamed one=other/on two=another four=three three=four empty=");
    backups.ship(&db).expect("ships");
    make("late", "late");
    note("first=one/renamed one=other/on two=another four=three three=four empty= late=late");
    db.drop_keyspace("first").expect("drops");
    backups.ship(&db).expect("ships");
    for (place, (sequence, expected)) in moments.iter().enumerate().take(3) {
        let dir = format!("as of {place}");
        backups.restore_until(Until::Sequence(*sequence), &dir, options()).expect("restores");
        let restored = world.open(&dir);
        assert_eq!(last_values(&restored), *expected, "moment {place}");
        // It has its options.
        let keyspace = restored.open_keyspace("one").expect("is there");
        keyspace.merge("told", "more").expect("its operator is known");
    }
    let end = Until::Sequence(db.snapshot().sequence());
    backups.restore_until(end, "end", options()).expect("restores");
    let restored = world.open("end");
    assert_eq!(last_values(&restored), last_values(&db));
    let empty = restored.open_keyspace("empty").expect("is there").stats().expect("open");
    assert!(empty.durable_through.is_some(), "it has no log");
}

/// Who restores need not know what merges operands.
#[test]
fn operands_come_back_without_their_operator() {
    struct Longest;
    impl MergeOperator for Longest {
        fn name(&self) -> &str {
            "longest"
        }
        fn merge(
            &self,
            _key: &[u8],
            existing: Option<&[u8]>,
            operands: &[&[u8]],
        ) -> Result<Vec<u8>, MergeError> {
            let all = existing.into_iter().chain(operands.iter().copied());
            Ok(all.max_by_key(|it| it.len()).unwrap_or_default().to_vec())
        }
    }
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    backups.back_up(&db).expect("backs up");
    let words = |db: &Db| {
        db.keyspace("words", KeyspaceOptions::new().merge_operator(Longest)).expect("is there")
    };
    for word in ["a", "word", "of"] {
        words(&db).merge("longest", word).expect("merges");
    }
    backups.ship(&db).expect("ships");
    let until = Until::Sequence(db.snapshot().sequence());
    let plain = Options::new().background(Background::Stepped);
    backups.restore_until(until, "restored", plain).expect("restores");
    let restored = words(&world.open("restored"));
    assert_eq!(restored.get("longest").expect("reads").as_deref(), Some(&b"word"[..]));
}

#[test]
fn a_key_space_that_was_made_and_dropped_between_shipments_is_left_out_or_told_of() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    backups.back_up(&db).expect("backs up");
    db.put("a", "1").expect("puts");
    let before = db.snapshot().sequence();
    db.keyspace("short", KeyspaceOptions::new()).expect("made").put("a", "2").expect("puts");
    let amid = db.snapshot().sequence();
    db.drop_keyspace("short").expect("drops");
    db.put("a", "3").expect("puts");
    backups.ship(&db).expect("ships");
    let restored = |until, dir: &str| backups.restore_until(Until::Sequence(until), dir, options());
    let wrong = restored(amid, "amid").expect_err("its name is not known").to_string();
    assert!(wrong.contains(&format!("write {amid} is into a key space")), "{wrong}");
    // Nothing is left in that folder.
    restored(before, "amid").expect("restores");
    assert_eq!(world.open("amid").get("a").expect("reads").as_deref(), Some(&b"1"[..]));
    restored(db.snapshot().sequence(), "end").expect("restores");
    assert_eq!(contents(&world.open("end")), contents(&db));
}

#[test]
fn what_no_log_has_is_not_restored_in_silence() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    let cache = db.keyspace("cache", KeyspaceOptions::new().log(false)).expect("made");
    cache.put("a", "1").expect("puts");
    db.put("a", "1").expect("puts");
    let first = backups.back_up(&db).expect("backs up");
    let shipped = |key: &str| {
        db.put(key, "2").expect("puts");
        backups.ship(&db).expect("ships").to
    };
    let restored = |until, dir: &str| backups.restore_until(Until::Sequence(until), dir, options());
    // Nothing was written to it.
    restored(shipped("b"), "b").expect("restores");
    assert_eq!(contents(&world.open("b")), contents(&db));
    for is_flushed in [false, true] {
        cache.put("a", "2").expect("puts");
        if is_flushed {
            cache.flush().expect("flushes");
        }
        let until = shipped("c");
        let wrong = restored(until, "c").expect_err("it is not shipped").to_string();
        assert!(wrong.contains("cache has no log") && wrong.contains("generation 1"), "{wrong}");
        assert!(wrong.contains(&format!("behind write {}", first.sequence)), "{wrong}");
        let (dir, known) = (format!("c {is_flushed}"), Unlogged::AsOfGeneration);
        let moment = Until::Sequence(until);
        let go_on = &mut |_| ControlFlow::Continue(());
        backups
            .restore_until_with_progress(moment, (&dir, options()), known, go_on)
            .expect("restores");
        let restored = world.open(&dir);
        let mut expected = contents(&db);
        expected.insert(("cache".into(), b"a".to_vec()), b"1".to_vec());
        assert_eq!(contents(&restored), expected);
    }
    backups.back_up(&db).expect("backs up");
    restored(shipped("d"), "d").expect("the generation has all of it");
    assert_eq!(contents(&world.open("d")), contents(&db));
}

#[test]
fn a_bulk_load_needs_a_generation_behind_it() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    backups.back_up(&db).expect("backs up");
    db.put("a", "1").expect("puts");
    let before = backups.ship(&db).expect("ships").to;
    let expected = contents(&db);
    db.ingest([("b", "loaded")]).expect("loads");
    db.put("c", "1").expect("puts");
    assert!(matches!(backups.ship(&db), Err(Error::Gone { .. })));
    let restored = |until, dir: &str| backups.restore_until(Until::Sequence(until), dir, options());
    let wrong = restored(db.snapshot().sequence(), "new").expect_err("not shipped").to_string();
    assert!(wrong.contains(&format!("behind write {before} were not shipped")), "{wrong}");
    backups.back_up(&db).expect("backs up");
    db.put("d", "1").expect("puts");
    let after = backups.ship(&db).expect("ships").to;
    restored(after, "after").expect("restores");
    assert_eq!(contents(&world.open("after")), contents(&db));
    restored(before, "before").expect("restores");
    assert_eq!(contents(&world.open("before")), expected);
}

#[test]
fn changes_that_are_damaged_leave_no_store() {
    let world = World::new();
    let (db, backups) = (world.open("db"), world.backups());
    backups.back_up(&db).expect("backs up");
    for turn in 0..2 {
        write(&db, turn);
        backups.ship(&db).expect("ships");
    }
    let mut changes = world.names("backups");
    changes.retain(|name| name.starts_with("changes-"));
    changes.sort_unstable();
    let (path, until) =
        (Path::new("backups").join(&changes[0]), Until::Sequence(db.snapshot().sequence()));
    world.disk.flip_bit(&path, 100, 3);
    let wrong = backups.restore_until(until, "restored", options()).expect_err("damaged");
    assert!(wrong.tells_of_damage(), "{wrong}");
    assert_eq!(world.names("restored"), ["LOCK"]);
    world.disk.flip_bit(&path, 100, 3);
    backups.restore_until(until, "restored", options()).expect("restores");
    assert_eq!(contents(&world.open("restored")), contents(&db));
}
