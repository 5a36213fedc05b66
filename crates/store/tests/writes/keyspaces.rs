//! Several trees in one store: apart from each other, and written together.
//! ```text
//! batch       all key spaces, or none: for readers, after a crash, in a checkpoint
//! logs        shared: they stay as long as one key space needs them
//! options     kept for each, until they are set anew
//! dropped     gone for all handles at once, and its files with it
//! ```

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use trommel::storage::{Memory, Storage};
use trommel::testing::{Fault, PausePoint, Pauses};
use trommel::{
    Background, Batch, Db, Environment, Error, Keyspace, KeyspaceOptions, Options, SyncPolicy,
};

use crate::door::Door;

fn options() -> Options {
    Options::new().background(Background::Stepped).sync(SyncPolicy::Never)
}

fn try_open(disk: &Memory) -> trommel::Result<Db> {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with("db", options(), environment)
}

fn open(disk: &Memory) -> Db {
    try_open(disk).expect("opens")
}

fn keyspace(db: &Db, name: &str) -> Keyspace {
    db.keyspace(name, KeyspaceOptions::default()).expect("makes or opens it")
}

fn value(keyspace: &Keyspace, key: &str) -> Option<String> {
    let value = keyspace.get(key).expect("reads");
    value.map(|value| String::from_utf8(value.to_vec()).expect("text"))
}

fn files(disk: &Memory, end: &str) -> Vec<String> {
    let mut names = disk.list(Path::new("db")).expect("lists");
    names.retain(|name| name.ends_with(end));
    names
}

// A drop or a new name that failed may be on disk: a power cut then took what was written after it.
#[test]
fn what_is_written_after_a_failed_drop_or_rename_is_there_after_a_power_cut() {
    for number in 0..48 {
        let (is_drop, after) = (number % 2 == 0, number / 4);
        let disk = Memory::new();
        let db = open(&disk);
        let events = keyspace(&db, "events");
        events.put("before", "1").expect("puts");
        db.sync().expect("syncs");
        match number % 4 < 2 {
            true => disk.fail_at(after, Fault::Io),
            false => disk.fail_from(after, Fault::Io),
        }
        let done = match is_drop {
            true => db.drop_keyspace("events"),
            false => db.rename_keyspace("events", "history"),
        };
        // The disk may refuse still: what is written is refused, or is there.
        let refused = events.put("refused", "1").and_then(|()| db.sync());
        disk.mend();
        let written = events.put("after", "1").and_then(|()| db.sync());
        assert_eq!(written.is_err(), done.is_ok() && is_drop, "{written:?} after {done:?}");
        for seed in 0..10 {
            let cut = open(&disk.crash(seed));
            let name = if done.is_ok() { "history" } else { "events" };
            let what = format!("{is_drop}, {after}, {done:?}, seed {seed}");
            match cut.open_keyspace(name) {
                Err(error) => assert!(written.is_err(), "{what}: {error}"),
                Ok(events) => {
                    assert_eq!(value(&events, "after").is_some(), written.is_ok(), "{what}");
                    let is_there = value(&events, "refused").is_some();
                    assert!(refused.is_err() || is_there, "{what}");
                }
            }
        }
    }
}

// The edit that had failed was on disk, and nothing took it back before the next opening.
#[test]
fn a_drop_a_new_name_or_a_bulk_load_that_failed_takes_no_effect_by_closing() {
    let mut failures = 0;
    for number in 0..96 {
        let (kind, after) = (number % 3, number / 6);
        let disk = Memory::new();
        let db = open(&disk);
        let events = keyspace(&db, "events");
        events.put("before", "1").expect("puts");
        db.sync().expect("syncs");
        match number % 6 < 3 {
            true => disk.fail_at(after, Fault::Io),
            false => disk.fail_from(after, Fault::Io),
        }
        let done = match kind {
            0 => db.drop_keyspace("events"),
            1 => db.rename_keyspace("events", "history"),
            _ => events.ingest([("loaded", "1")]).map(drop),
        };
        failures += u32::from(done.is_err());
        disk.mend();
        drop(events);
        db.close().expect("the disk is well again");
        let db = open(&disk);
        let what = format!("{kind}, {number}, {done:?}");
        let names = db.keyspaces().expect("open");
        let expected: &[&str] = match (kind, done.is_ok()) {
            (0, true) => &["default"],
            (1, true) => &["default", "history"],
            _ => &["default", "events"],
        };
        assert_eq!(names, expected, "{what}");
        if let Some(name) = names.get(1) {
            let events = keyspace(&db, name);
            assert_eq!(value(&events, "before").as_deref(), Some("1"), "{what}");
            let is_loaded = value(&events, "loaded").is_some();
            assert_eq!(is_loaded, kind == 2 && done.is_ok(), "{what}");
        }
    }
    assert!(failures >= 30, "{failures}");
}

// What a killed process had not made durable was taken for durable by the next one.
#[test]
fn a_key_space_that_a_killed_process_has_made_keeps_what_is_synced_later() {
    let mut was_found = 0;
    for fail in 0..12 {
        let disk = Memory::new();
        let db = open(&disk);
        keyspace(&db, "first").put("a", "1").expect("puts");
        disk.fail_at(fail, Fault::Io);
        let _ = db.keyspace("second", KeyspaceOptions::default());
        let disk = disk.kill();
        let db = open(&disk);
        let Ok(second) = db.open_keyspace("second") else { continue };
        was_found += 1;
        second.put("b", "1").expect("puts");
        db.sync().expect("syncs");
        for cut in [disk.crash_hard(), disk.crash(fail)] {
            let second = open(&cut).open_keyspace("second").expect("is there");
            assert_eq!(value(&second, "b").as_deref(), Some("1"), "operation {fail}");
        }
    }
    assert!(was_found > 0, "no failure has left it");
}

// A bulk load that failed may be on disk: after a crash it was there, beneath what came later.
#[test]
fn a_bulk_load_that_failed_does_not_come_back_once_something_is_written() {
    for fail in 0..40 {
        let disk = Memory::new();
        let db = open(&disk);
        db.put("a", "1").expect("puts");
        db.sync().expect("syncs");
        disk.fail_at(fail, Fault::Io);
        let loaded = db.ingest([("b", "loaded")]);
        disk.mend();
        db.put("c", "1").expect("puts");
        db.sync().expect("syncs");
        let is_there = value(&db, "b").is_some();
        assert_eq!(is_there, loaded.is_ok(), "operation {fail}");
        for seed in 0..10 {
            let cut = open(&disk.crash(seed));
            assert_eq!(value(&cut, "b").is_some(), is_there, "operation {fail}, seed {seed}");
            assert_eq!(value(&cut, "c").as_deref(), Some("1"), "operation {fail}, seed {seed}");
        }
    }
}

// Found by `stress --transactions`: the load was there after a power cut, the write before it not.
#[test]
fn a_bulk_load_makes_durable_what_other_key_spaces_were_given_before() {
    let disk = Memory::new();
    let db = open(&disk);
    let events = keyspace(&db, "events");
    db.put("before", "1").expect("puts");
    events.ingest([("loaded", "1")]).expect("loads");
    let after = open(&disk.crash_hard());
    assert_eq!(value(&keyspace(&after, "events"), "loaded").as_deref(), Some("1"));
    assert_eq!(value(&after, "before").as_deref(), Some("1"));
}

// Found by `stress --transactions`: a log that was to follow a failed one counted as made when the
// store was closed.
#[test]
fn what_was_durable_stays_so_after_a_failed_flush_and_an_opening() {
    for sync in [SyncPolicy::Always, SyncPolicy::Never] {
        for after in 0..40 {
            let disk = Memory::new();
            let open = |disk: &Memory| {
                let environment = Environment::new().storage(Arc::new(disk.clone()));
                Db::open_with("db", options().sync(sync), environment).expect("opens")
            };
            let db = open(&disk);
            let spaces = ["1", "2"].map(|name| keyspace(&db, name));
            spaces[0].put("first", "1").expect("puts");
            spaces[0].compact().expect("merges");
            disk.fail_from(after, Fault::Io);
            let written = spaces[1].put("second", "1").is_ok();
            let flushed = spaces[1].flush().is_ok();
            let third = spaces[0].put("third", "1").is_ok();
            let closed = db.close().is_ok();
            let what = format!("{sync:?}, {after}: {written} {flushed} {third} {closed}");
            drop((db, spaces));
            disk.mend();
            let db = open(&disk);
            let has = |db: &Db| value(&keyspace(db, "2"), "second").is_some();
            assert!(!written || has(&db), "{what}");
            drop(db);
            for seed in 0..10 {
                let after = open(&disk.crash(seed));
                let is_durable = written && (closed || sync == SyncPolicy::Always || flushed);
                assert!(!is_durable || has(&after), "{what}, seed {seed}");
            }
        }
    }
}

#[test]
fn each_key_space_has_its_own_keys() {
    let disk = Memory::new();
    let db = open(&disk);
    let (events, users) = (keyspace(&db, "events"), keyspace(&db, "users"));
    for (space, name) in [(&*db, "default"), (&events, "events"), (&users, "users")] {
        space.put("name", name).expect("puts");
        space.put(format!("only {name}"), "1").expect("puts");
        assert_eq!(space.name(), name);
    }
    let check = |db: &Db| {
        let (events, users) = (keyspace(db, "events"), keyspace(db, "users"));
        for (space, name) in [(&**db, "default"), (&events, "events"), (&users, "users")] {
            assert_eq!(value(space, "name").as_deref(), Some(name));
            let keys = space.iter().map(|entry| entry.expect("reads").0);
            assert_eq!(keys.collect::<Vec<_>>(), [b"name".to_vec(), format!("only {name}").into()]);
            assert!(space.may_contain_range("only a".."only z").expect("open"));
        }
        assert_eq!(db.keyspaces().expect("open"), ["default", "events", "users"]);
    };
    check(&db);
    db.close().expect("closes");
    let db = open(&disk);
    check(&db);
    db.flush().expect("flushes");
    check(&db);
    db.compact().expect("merges");
    assert_eq!(db.verify().expect("reads").damage, [""; 0]);
    db.close().expect("closes");
    check(&open(&disk));
}

#[test]
fn a_batch_over_key_spaces_is_seen_as_a_whole() {
    let disk = Memory::new();
    let db = open(&disk);
    let (events, users) = (keyspace(&db, "events"), keyspace(&db, "users"));
    let before = db.snapshot();
    let mut batch = Batch::new();
    batch.put("a", "0").to(&events).put("a", "1").put("b", "1").to(&users).put("a", "2");
    batch.to(&db).put("c", "0").to(&users).delete("a").put("d", "2");
    db.write(batch).expect("writes");
    let after = db.snapshot();
    assert!(before.of(&events).get("a").expect("reads").is_none());
    let all = |space: &Keyspace| -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        let entries = after.of(space).iter().map(|entry| entry.expect("reads"));
        entries.map(|(key, value)| (text(&key), text(&value))).collect()
    };
    let pairs = |all: &[(&str, &str)]| -> Vec<(String, String)> {
        all.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    };
    for _ in 0..2 {
        assert_eq!(all(&db), pairs(&[("a", "0"), ("c", "0")]));
        assert_eq!(all(&events), pairs(&[("a", "1"), ("b", "1")]));
        assert_eq!(all(&users), pairs(&[("d", "2")]));
        events.put("a", "9").expect("puts");
        db.flush().expect("flushes");
        db.compact().expect("merges");
    }
}

/// Batches over four key spaces, with flushes of one or the other; then a power cut, after which
/// each batch is there wholly or not at all, and none without those before it.
#[test]
fn after_a_power_cut_no_half_of_a_batch_is_there() {
    for seed in 0..200u64 {
        let disk = Memory::new();
        let db = open(&disk);
        let spaces: Vec<Keyspace> =
            ["default", "a", "b", "c"].iter().map(|name| keyspace(&db, name)).collect();
        let mut random = seed;
        let mut draw = |below: u64| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (random >> 33) % below
        };
        let mut synced = 0;
        let count = 1 + draw(30);
        for number in 1..=count {
            let mut batch = Batch::new();
            for space in &spaces {
                batch.to(space).put("last", number.to_string()).put(number.to_be_bytes(), "x");
            }
            db.write(batch).expect("writes");
            match draw(8) {
                0 => {
                    db.sync().expect("syncs");
                    synced = number;
                }
                1 => {
                    spaces[draw(4) as usize].flush().expect("flushes");
                    synced = number;
                }
                2 => drop(db.step().expect("steps")),
                _ => {}
            }
        }
        let after = disk.crash(seed);
        drop((spaces, db));
        let db = open(&after);
        let last =
            |name: &str| value(&keyspace(&db, name), "last").map_or(0, |it| it.parse().unwrap());
        let lasts = ["default", "a", "b", "c"].map(last);
        assert!(lasts.iter().all(|last: &u64| *last == lasts[0]), "seed {seed}: {lasts:?}");
        assert!(lasts[0] >= synced && lasts[0] <= count, "seed {seed}: {lasts:?}, synced {synced}");
        for name in ["default", "a", "b", "c"] {
            assert_eq!(
                keyspace(&db, name).iter().count() as u64,
                lasts[0] + u64::from(lasts[0] > 0)
            );
        }
    }
}

#[test]
fn a_log_stays_as_long_as_one_key_space_needs_it() {
    let disk = Memory::new();
    let db = open(&disk);
    let (quiet, busy) = (keyspace(&db, "quiet"), keyspace(&db, "busy"));
    quiet.put("seldom", "1").expect("puts");
    for number in 0..5 {
        busy.put("often", number.to_string()).expect("puts");
        busy.flush().expect("flushes");
    }
    let logs = db.stats().expect("open").logs;
    let db = {
        db.sync().expect("syncs");
        let after = disk.crash_hard();
        drop((quiet, busy, db));
        open(&after)
    };
    assert!(logs >= 1);
    assert_eq!(value(&keyspace(&db, "quiet"), "seldom").as_deref(), Some("1"));
    assert_eq!(value(&keyspace(&db, "busy"), "often").as_deref(), Some("4"));
    db.flush().expect("flushes");
    assert_eq!(db.stats().expect("open").logs, 1, "nobody needs an older one");
}

/// Bytes of logs that there are.
fn log_bytes(disk: &Memory) -> usize {
    let logs = files(disk, ".wal").into_iter();
    logs.map(|name| disk.file(Path::new("db").join(name)).expect("is there").len()).sum()
}

#[test]
fn a_key_space_that_is_written_seldom_holds_back_no_logs() {
    let disk = Memory::new();
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    let options = options().max_log_bytes(1 << 20);
    let db = Db::open_with("db", options, environment).expect("opens");
    let small = KeyspaceOptions::new().write_buffer_bytes(100_000);
    let busy = db.keyspace("busy", small).expect("makes it");
    let quiet: Vec<Keyspace> = (0..20).map(|n| keyspace(&db, &format!("quiet {n}"))).collect();
    let mut most = 0;
    for round in 0..400u64 {
        if round % 40 == 0 {
            let quiet = &quiet[(round / 40) as usize % 7];
            quiet.put(format!("round {round:03}"), round.to_string()).expect("puts");
        }
        for number in 0..10u64 {
            busy.put((round * 10 + number).to_be_bytes(), [7; 2000]).expect("puts");
        }
        while db.step().expect("steps") {}
        most = most.max(log_bytes(&disk));
    }
    assert!(most < 2 << 20, "{most} bytes of logs, of 8 MB that were written");
    let flushed =
        |space: &Keyspace| space.stats().expect("open").levels.iter().any(|it| !it.runs.is_empty());
    assert!(!quiet.iter().any(flushed), "they are small: nothing of them is flushed");
    let check = |db: &Db| {
        for round in (0..400u64).step_by(40) {
            let quiet = keyspace(db, &format!("quiet {}", (round / 40) as usize % 7));
            assert_eq!(value(&quiet, &format!("round {round:03}")), Some(round.to_string()));
        }
        assert_eq!(keyspace(db, "busy").iter().count(), 4000);
    };
    check(&db);
    db.sync().expect("syncs");
    let after = disk.crash_hard();
    drop((quiet, busy, db));
    let db = open(&after);
    check(&db);
    assert_eq!(db.verify().expect("reads").damage, [""; 0]);
}

#[test]
fn after_a_failed_log_all_key_spaces_have_what_was_acknowledged() {
    for fail in 0..60 {
        let disk = Memory::new();
        let db = open(&disk);
        let spaces = ["default", "a", "b"].map(|name| keyspace(&db, name));
        let mut acknowledged = 0;
        disk.fail_at(fail, Fault::NoSpace);
        for number in 1..=20u64 {
            let mut batch = Batch::new();
            for space in &spaces {
                batch.to(space).put("last", number.to_string());
            }
            if db.write_synced(batch).is_ok() {
                acknowledged = number;
            }
            if number % 7 == 0 {
                let _ = spaces[1].flush();
            }
        }
        let after = disk.crash_hard();
        drop((spaces, db));
        let db = open(&after);
        for name in ["default", "a", "b"] {
            let last =
                value(&keyspace(&db, name), "last").map_or(0, |it| it.parse::<u64>().unwrap());
            assert!(last >= acknowledged, "operation {fail}: {name} has {last} of {acknowledged}");
        }
    }
}

// Logs that were too long had memtables sealed without end, and no write was refused.
#[test]
fn writes_are_refused_while_flushes_fail_however_short_logs_are_to_be() {
    let disk = Door::refusing(&Memory::new(), |operation, path| {
        let is_table = path.extension().is_some_and(|end| end == "table");
        let is_refused = operation == "create" && is_table;
        if is_refused { Err(io::Error::other("no table is taken")) } else { Ok(()) }
    });
    let environment = Environment::new().storage(Arc::new(disk));
    let options = options().background(Background::Threads(1));
    let options = options.max_log_bytes(64 << 10).write_buffer_bytes(1 << 20);
    let db = Db::open_with("db", options, environment).expect("opens");
    let put = |number: u32| db.put(number.to_be_bytes(), [7; 1000]);
    match (0..4000).find_map(|number| put(number).err()) {
        Some(Error::Stopped { .. }) => {}
        other => panic!("{other:?}, with {} memtables", db.stats().expect("open").memtables),
    }
    let memtables = db.stats().expect("open").memtables;
    assert!(memtables <= 5, "{memtables} memtables");
}

/// A store of which somebody drops `events` when its next flush is about to install its table. The
/// thread that drops it is sent.
fn open_dropping_amid_a_flush(
    disk: &Memory,
    background: Background,
) -> (Db, mpsc::Receiver<std::thread::JoinHandle<trommel::Result<()>>>) {
    let (sender, dropping) = mpsc::channel();
    let armed: Arc<Mutex<Option<Db>>> = Arc::default();
    let at_gap = Arc::clone(&armed);
    let pauses = Pauses::new(move |point| {
        let mut armed = at_gap.lock().expect("no panic");
        let Some(db) = armed.take_if(|_| point == PausePoint::FlushPrepared) else { return };
        let dropper = db.clone();
        let thread = std::thread::spawn(move || dropper.drop_keyspace("events"));
        sender.send(thread).expect("somebody listens");
        while db.keyspaces().expect("open").len() > 1 {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let environment = Environment::new().storage(Arc::new(disk.clone())).pauses(pauses);
    let options = options().background(background);
    let db = Db::open_with("db", options, environment).expect("opens");
    *armed.lock().expect("no panic") = Some(db.clone());
    (db, dropping)
}

#[test] // Its table stayed until the next opening.
#[cfg_attr(not(debug_assertions), ignore = "pauses are compiled out in release builds")]
fn a_key_space_that_is_dropped_amid_a_flush_leaves_no_table() {
    for background in [Background::Stepped, Background::Threads(1)] {
        let disk = Memory::new();
        let (db, dropping) = open_dropping_amid_a_flush(&disk, background);
        let events = keyspace(&db, "events");
        events.put("a", "1").expect("puts");
        // The flush may end before the drop has, or behind it.
        let _ = events.flush();
        let dropping = dropping.recv().expect("it was flushed");
        dropping.join().expect("no panic").expect("drops");
        while db.step().expect("steps") {}
        assert_eq!(files(&disk, ".table"), [""; 0], "{background:?}");
    }
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "pauses are compiled out in release builds")]
fn a_key_space_whose_flush_could_not_be_installed_leaves_no_table_when_it_is_dropped() {
    let disk = Memory::new();
    let hand = disk.clone();
    let pauses = Pauses::new(move |point| {
        if point == PausePoint::FlushPrepared {
            hand.no_space(true);
        }
    });
    let environment = Environment::new().storage(Arc::new(disk.clone())).pauses(pauses);
    let db = Db::open_with("db", options(), environment).expect("opens");
    let events = keyspace(&db, "events");
    events.put("a", "1").expect("puts");
    events.flush().expect_err("the manifest does not fit");
    disk.no_space(false);
    assert_eq!(files(&disk, ".table").len(), 1);
    db.drop_keyspace("events").expect("drops");
    assert_eq!(files(&disk, ".table"), [""; 0]);
}

#[test]
fn what_is_dropped_is_gone_for_all_its_handles() {
    let disk = Memory::new();
    let db = open(&disk);
    let events = keyspace(&db, "events");
    for number in 0..100u32 {
        events.put(number.to_be_bytes(), "x").expect("puts");
    }
    events.flush().expect("flushes");
    events.put("in memory", "x").expect("puts");
    let (tables, snapshot, mut scan) = (files(&disk, ".table"), db.snapshot(), events.iter());
    assert_eq!(tables.len(), 1);
    scan.next().expect("has entries").expect("reads");
    db.drop_keyspace("events").expect("drops");
    let is_dropped = |result: trommel::Result<()>| match result {
        Err(Error::KeyspaceDropped { name }) => assert!(name == "events" || name == "number 1"),
        other => panic!("{other:?}"),
    };
    is_dropped(events.get("in memory").map(drop));
    is_dropped(events.put("a", "b"));
    is_dropped(snapshot.of(&events).get("in memory").map(drop));
    is_dropped(events.iter().next().expect("tells").map(drop));
    is_dropped(events.flush());
    let mut batch = Batch::new();
    batch.put("in default", "x").to(&events).put("a", "b");
    is_dropped(db.write(batch));
    assert!(db.get("in default").expect("reads").is_none(), "nothing of it was written");
    drop(scan);
    while db.step().expect("steps") {}
    assert_eq!(files(&disk, ".table"), [""; 0]);
    // Another one of that name is another one.
    let anew = keyspace(&db, "events");
    assert!(anew.iter().next().is_none());
    anew.put("new", "x").expect("puts");
    is_dropped(events.get("new").map(drop));
    db.sync().expect("syncs");
    let after = disk.crash_hard();
    drop((anew, events, db));
    let db = open(&after);
    let keys = keyspace(&db, "events").iter().map(|entry| entry.expect("reads").0);
    assert_eq!(keys.collect::<Vec<_>>(), [b"new".to_vec()]);
    let unknown = db.drop_keyspace("nobody").expect_err("is not there").to_string();
    assert!(unknown.contains("default, events"), "{unknown}");
    assert!(db.drop_keyspace("default").is_err());
}

#[test]
fn a_key_space_keeps_what_it_has_under_another_name() {
    let disk = Memory::new();
    let db = open(&disk);
    let events = keyspace(&db, "events");
    events.put("a", "1").expect("puts");
    db.rename_keyspace("events", "history").expect("renames");
    assert_eq!((events.name().as_str(), value(&events, "a").as_deref()), ("history", Some("1")));
    keyspace(&db, "events").put("a", "2").expect("puts");
    match db.rename_keyspace("events", "history") {
        Err(Error::KeyspaceExists { name }) => assert_eq!(name, "history"),
        other => panic!("{other:?}"),
    }
    assert!(db.rename_keyspace("default", "other").is_err());
    assert!(matches!(db.rename_keyspace("nobody", "x"), Err(Error::NoKeyspace { .. })));
    assert!(db.keyspace("", KeyspaceOptions::default()).is_err());
    assert!(db.keyspace("n".repeat(256), KeyspaceOptions::default()).is_err());
    drop(events);
    db.close().expect("closes");
    let db = open(&disk);
    let values = ["history", "events"].map(|name| value(&keyspace(&db, name), "a"));
    assert_eq!(values, [Some("1".into()), Some("2".into())]);
    assert!(matches!(db.open_keyspace("nobody"), Err(Error::NoKeyspace { .. })));
    assert!(db.open_keyspace("history").is_ok());
}

#[test]
fn options_of_each_key_space_are_kept() {
    let disk = Memory::new();
    let bits = |keyspace: &Keyspace| {
        let stats = keyspace.stats().expect("open");
        (stats.size_ratio, stats.guard.kind.to_string())
    };
    let environment = || Environment::new().storage(Arc::new(disk.clone()));
    let own = options().size_ratio(7);
    let db = Db::open_with("db", own, environment()).expect("opens");
    let small = KeyspaceOptions::new().size_ratio(3).guard(trommel::GuardKind::Open);
    let events = db.keyspace("events", small).expect("makes it");
    assert_eq!((bits(&db).0, bits(&events)), (7, (3, "none".into())));
    events.put("a", "1").expect("puts");
    drop(events);
    db.close().expect("closes");
    let db = open(&disk);
    assert_eq!((bits(&db).0, bits(&keyspace(&db, "events"))), (7, (3, "none".into())));
    db.close().expect("closes");
    let db = Db::open_with("db", options().size_ratio(9), environment()).expect("opens");
    assert_eq!(bits(&db).0, 9);
    db.close().expect("closes");
    assert_eq!(bits(&open(&disk)).0, 9);
}

// They were ignored, and nobody was told.
#[test]
fn options_that_are_set_for_the_default_key_space_hold_from_the_next_opening_on() {
    let disk = Memory::new();
    let ratio = |keyspace: &Keyspace| keyspace.stats().expect("open").size_ratio;
    let set = |db: &Db, options| db.keyspace("default", options);
    let db = open(&disk);
    let before = ratio(&db);
    assert_ne!(before, 7);
    let same = set(&db, KeyspaceOptions::new().size_ratio(7)).expect("they are kept");
    assert_eq!((same.name().as_str(), ratio(&same)), ("default", before), "it is in use");
    let refused = set(&db, KeyspaceOptions::new().size_ratio(0)).expect_err("is no ratio");
    assert!(matches!(refused, Error::Option { .. }), "{refused}");
    drop(same);
    db.close().expect("closes");
    let db = open(&disk);
    assert_eq!(ratio(&db), 7);
    set(&db, KeyspaceOptions::new()).expect("nothing is set");
    db.close().expect("closes");
    assert_eq!(ratio(&open(&disk)), 7);
}

// What was set for a key space that had something was neither kept nor obeyed.
#[test]
fn options_that_are_set_anew_hold_at_once_where_nobody_uses_the_key_space() {
    for background in [Background::Stepped, Background::Threads(2)] {
        let disk = Memory::new();
        let open = || {
            let environment = Environment::new().storage(Arc::new(disk.clone()));
            Db::open_with("db", options().background(background), environment).expect("opens")
        };
        let ratio = |keyspace: &Keyspace| keyspace.stats().expect("open").size_ratio;
        let with = |db: &Db, ratio| {
            db.keyspace("events", KeyspaceOptions::new().size_ratio(ratio)).expect("opens it")
        };
        let db = open();
        let events = with(&db, 3);
        (0..100).for_each(|key| events.put(key.to_string(), "1").expect("puts"));
        events.flush().expect("flushes");
        events.put("logged", "1").expect("puts");
        drop(events);
        db.close().expect("closes");
        let db = open();
        let before = db.snapshot();
        let events = with(&db, 5);
        events.put("memory", "1").expect("puts");
        assert_eq!((ratio(&events), ratio(&with(&db, 7))), (5, 5), "somebody uses it");
        let scan = events.iter();
        drop(events);
        assert_eq!(ratio(&with(&db, 7)), 5, "somebody reads it");
        drop(scan);
        assert_eq!(ratio(&keyspace(&db, "events")), 5, "nothing is set");
        let of_events = Batch::new().to(&keyspace(&db, "events")).put("batch", "1").clone();
        assert_eq!(ratio(&with(&db, 7)), 7);
        db.write(of_events).expect("writes");
        let all = |events: &Keyspace| events.iter().inspect(|it| assert!(it.is_ok())).count();
        let events = keyspace(&db, "events");
        assert_eq!((ratio(&events), all(&events)), (7, 103));
        assert_eq!(before.of(&events).iter().count(), 101);
        events.put("later", "1").expect("puts");
        db.compact().expect("merges");
        assert_eq!((all(&events), db.verify().expect("reads").damage), (104, vec![]));
        drop((events, before));
        with(&db, 7).put("last", "1").expect("puts");
        db.close().expect("closes");
        let events = keyspace(&open(), "events");
        assert_eq!((ratio(&events), all(&events)), (7, 105));
    }
}

#[test]
fn transactions_go_on_while_a_key_space_is_opened_anew() {
    let guards = [trommel::GuardKind::Grf, trommel::GuardKind::BLOOM];
    let laters = ["memory", "flushed", "merged"];
    for (later, guard) in laters.into_iter().flat_map(|later| guards.map(|guard| (later, guard))) {
        let disk = Memory::new();
        let db = open(&disk);
        let events = keyspace(&db, "events");
        (0..100).for_each(|key| events.put(key.to_string(), "1").expect("puts"));
        db.compact().expect("merges");
        events.put("200", "1").expect("puts");
        let transactions = ["1", "2", "200", "300"].map(|key| (key, db.transaction()));
        for (key, transaction) in &transactions {
            transaction.of(&events).get(key).expect("reads");
            transaction.put(format!("read {key}"), "1").expect("puts");
        }
        drop(events);
        let anew = KeyspaceOptions::new().size_ratio(5).guard(guard);
        let events = db.keyspace("events", anew).expect("opens it");
        assert_eq!(events.stats().expect("open").size_ratio, 5);
        ["1", "200", "300"].iter().for_each(|key| events.put(key, "2").expect("puts"));
        match later {
            "memory" => {}
            "flushed" => events.flush().expect("flushes"),
            _ => db.compact().expect("merges"),
        }
        for (key, transaction) in transactions {
            let committed = transaction.commit();
            assert_eq!(committed.is_ok(), key == "2", "{later}, {guard}, {key}: {committed:?}");
        }
    }
}

#[test]
fn options_that_cannot_be_set_anew_lose_nothing() {
    let mut failures = 0;
    for background in [Background::Stepped, Background::Threads(1)] {
        for fail in 0..60 {
            let disk = Memory::new();
            let open = |disk: &Memory| {
                let environment = Environment::new().storage(Arc::new(disk.clone()));
                Db::open_with("db", options().background(background), environment).expect("opens")
            };
            let db = open(&disk);
            keyspace(&db, "events").put("a", "1").expect("puts");
            db.flush().expect("flushes");
            keyspace(&db, "events").put("b", "1").expect("puts");
            disk.fail_from(fail, Fault::Io);
            let set = db.keyspace("events", KeyspaceOptions::new().size_ratio(5));
            disk.mend();
            failures += u32::from(set.is_err());
            drop(set);
            let events = keyspace(&db, "events");
            events.put("c", "1").expect("puts");
            db.sync().expect("syncs");
            let found = |events: &Keyspace| ["a", "b", "c"].map(|key| value(events, key).is_some());
            assert_eq!(found(&events), [true; 3], "operation {fail}");
            events.flush().expect("flushes");
            db.compact().expect("merges");
            assert_eq!(found(&events), [true; 3], "operation {fail}");
            for cut in [disk.crash_hard(), disk.kill()] {
                assert_eq!(found(&keyspace(&open(&cut), "events")), [true; 3], "operation {fail}");
            }
        }
    }
    assert!(failures > 20, "{failures}");
}

#[test]
fn a_checkpoint_has_all_key_spaces_at_one_moment() {
    let disk = Memory::new();
    let db = open(&disk);
    let spaces = ["default", "a", "b"].map(|name| keyspace(&db, name));
    for number in 1..=9u64 {
        let mut batch = Batch::new();
        for space in &spaces {
            batch.to(space).put("last", number.to_string());
        }
        db.write(batch).expect("writes");
        if number % 3 == 0 {
            spaces[number as usize / 3 - 1].flush().expect("flushes");
        }
    }
    keyspace(&db, "empty");
    db.checkpoint("copy").expect("makes it");
    spaces.iter().for_each(|space| space.put("last", "later").expect("puts"));
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    let copy = Db::open_with("copy", options(), environment).expect("opens");
    assert_eq!(copy.keyspaces().expect("open"), ["default", "a", "b", "empty"]);
    for name in ["default", "a", "b"] {
        assert_eq!(value(&keyspace(&copy, name), "last").as_deref(), Some("9"), "{name}");
    }
    assert_eq!(copy.verify().expect("reads").damage, [""; 0]);
}

/// A store with three key spaces, of which some is in tables and some in the log.
fn damaged(disk: &Memory, damage: impl FnOnce(&Memory)) -> Db {
    let db = open(disk);
    for (place, name) in ["default", "a", "b"].into_iter().enumerate() {
        let space = keyspace(&db, name);
        for number in 0..50 {
            space.put(format!("{name} {number:02}"), "flushed").expect("puts");
        }
        space.flush().expect("flushes");
        space.put(format!("{name} {}", 50 + place), "logged").expect("puts");
    }
    keyspace(&db, "dropped").put("x", "y").expect("puts");
    db.drop_keyspace("dropped").expect("drops");
    db.close().expect("closes");
    damage(disk);
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    trommel::tools::repair_with("db", &environment).expect("repairs");
    open(disk)
}

fn counts(db: &Db) -> Vec<(String, usize)> {
    let names = db.keyspaces().expect("open");
    names.into_iter().map(|name| (name.clone(), keyspace(db, &name).iter().count())).collect()
}

#[test]
fn a_repair_keeps_key_spaces_apart() {
    let disk = Memory::new();
    let lost_log = |disk: &Memory| {
        let logs = files(disk, ".wal");
        let path = Path::new("db").join(logs.last().expect("there is one"));
        let bytes = disk.file(&path).expect("is there");
        disk.flip_bit(&path, bytes.len() as u64 / 2, 0);
    };
    let db = damaged(&disk, lost_log);
    let names: Vec<String> = counts(&db).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["default", "a", "b"]);
    for (name, count) in counts(&db) {
        assert!((50..=51).contains(&count), "{name}: {count}");
        let own = |key: &[u8]| key.starts_with(name.as_bytes());
        assert!(keyspace(&db, &name).iter().all(|entry| own(&entry.expect("reads").0)));
    }
    assert_eq!(db.verify().expect("reads").damage, [""; 0]);
}

#[test]
fn without_a_manifest_key_spaces_are_found_by_number() {
    let disk = Memory::new();
    let db = damaged(&disk, |disk| {
        disk.remove(Path::new("db/MANIFEST")).expect("removes");
    });
    let all = [("default", 51), ("recovered-1", 51), ("recovered-2", 51)];
    let mut found = counts(&db);
    // What was dropped may be in the log.
    found.retain(|(name, _)| name != "recovered-3");
    assert_eq!(found, all.map(|(name, count)| (name.to_string(), count)));
    assert_eq!(db.verify().expect("reads").damage, [""; 0]);
    keyspace(&db, "new").put("a", "b").expect("puts");
    assert!(!keyspace(&db, "recovered-1").iter().any(|entry| entry.expect("reads").0 == b"a"));
}

/// Each had a lock that the other one waited for.
#[test]
fn checkpoints_and_key_spaces_that_come_and_go_do_not_wait_for_each_other() {
    let (db, (done, both)) = (open(&Memory::new()), mpsc::channel());
    let (copied, copying) = (done.clone(), db.clone());
    std::thread::spawn(move || {
        for copy in 0..300 {
            copying.checkpoint(format!("copy {copy}")).expect("copies");
        }
        copied.send(()).expect("it is waited for");
    });
    std::thread::spawn(move || {
        for number in 0..1000 {
            keyspace(&db, "one").put("number", number.to_string()).expect("puts");
            db.rename_keyspace("one", "other").expect("renames");
            db.drop_keyspace("other").expect("drops");
        }
        done.send(()).expect("it is waited for");
    });
    for _ in 0..2 {
        both.recv_timeout(Duration::from_secs(120)).expect("each goes on, and none panics");
    }
}
