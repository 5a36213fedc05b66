//! Key spaces without a log: what a crash takes, and what it never takes.
//! ```text
//! written    1 2 3 4 5 | 6 7 8 9     in tables | in memory alone
//! crash      1 2 3 4 5               a beginning, what was flushed at least
//! closed     1 2 3 4 5   6 7 8 9     all of it; in a checkpoint, too
//! ```

use std::path::Path;
use std::sync::Arc;

use trommel::storage::{Memory, Storage};
use trommel::testing::Fault;
use trommel::{
    Background, Batch, Db, Environment, Error, Keyspace, KeyspaceOptions, Options, SyncPolicy,
};

fn options() -> Options {
    Options::new().background(Background::Stepped).sync(SyncPolicy::Never)
}

fn open_with(disk: &Memory, options: Options) -> Db {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with("db", options, environment).expect("opens")
}

fn open(disk: &Memory) -> Db {
    open_with(disk, options())
}

fn unlogged(db: &Db) -> Keyspace {
    db.keyspace("unlogged", KeyspaceOptions::new().log(false)).expect("makes or opens it")
}

fn logged(db: &Db) -> Keyspace {
    db.keyspace("logged", KeyspaceOptions::new()).expect("makes or opens it")
}

fn keys(space: &Keyspace) -> Vec<String> {
    let keys = space.iter().map(|entry| entry.expect("reads").0);
    keys.map(|key| String::from_utf8(key.to_vec()).expect("text")).collect()
}

fn durable_through(space: &Keyspace) -> u64 {
    space.stats().expect("open").durable_through.expect("it has no log")
}

fn files(disk: &Memory, end: &str) -> Vec<String> {
    let mut names = disk.list(Path::new("db")).expect("lists");
    names.retain(|name| name.ends_with(end));
    names
}

#[test]
fn a_crash_takes_what_was_not_flushed_and_nothing_else() {
    let disk = Memory::new();
    let db = open(&disk);
    let (space, other) = (unlogged(&db), logged(&db));
    assert_eq!(other.stats().expect("open").durable_through, None);
    space.put("a", "1").expect("puts");
    other.put("b", "1").expect("puts");
    assert_eq!(durable_through(&space), 0);
    space.flush().expect("flushes");
    assert_eq!(durable_through(&space), 2);
    space.put("c", "1").expect("puts");
    let mut batch = Batch::new();
    batch.to(&space).put("d", "1").to(&other).put("e", "1").to(&space).put("f", "1");
    batch.to(&other).put("g", "1");
    db.write_synced(batch).expect("writes");
    assert_eq!((keys(&space).len(), durable_through(&space)), (4, 2));
    for cut in [disk.crash_hard(), disk.kill()] {
        let db = open(&cut);
        assert_eq!(
            (keys(&unlogged(&db)), keys(&logged(&db))),
            (vec!["a".to_string()], ["b", "e", "g"].map(String::from).to_vec())
        );
        assert_eq!(db.verify().expect("reads").damage, [""; 0]);
        assert_eq!(files(&cut, ".table").len(), 1, "no log has anything of it");
        let space = unlogged(&db);
        assert_eq!(durable_through(&space), 0, "a killed process may have left what is there");
        db.sync().expect("syncs");
        assert_eq!(durable_through(&space), db.snapshot().sequence());
    }
}

// The log that was read back was not synced: a killed process may have left it in memory alone.
#[test]
fn after_a_kill_its_flush_keeps_the_older_writes_of_others() {
    let disk = Memory::new();
    let db = open(&disk);
    let (_, other) = (unlogged(&db), logged(&db));
    db.sync().expect("syncs");
    other.put("a", "1").expect("puts");
    for closes in [false, true] {
        let killed = disk.kill();
        let db = open(&killed);
        let space = unlogged(&db);
        space.put("b", "1").expect("puts");
        match closes {
            true => db.close().expect("closes"),
            false => space.flush().expect("flushes"),
        }
        let db = open(&killed.crash_hard());
        let found = (keys(&logged(&db)), keys(&unlogged(&db)));
        assert_eq!(found, (vec!["a".to_string()], vec!["b".to_string()]), "closes: {closes}");
    }
}

#[test]
fn a_store_without_any_log_writes_none() {
    let disk = Memory::new();
    let db = open_with(&disk, options().log(false).write_buffer_bytes(1 << 10));
    for number in 0..300 {
        db.put(format!("{number:03}"), "value").expect("puts");
        while db.step().expect("works") {}
    }
    assert!(db.stats().expect("open").flushes > 2);
    assert_eq!(files(&disk, ".wal"), [""; 0]);
    let through = durable_through(&db);
    assert!((1..300).contains(&through), "{through}");
    let after = open(&disk.crash_hard());
    let found = keys(&after);
    assert!(found.len() as u64 >= through, "{} of {through}", found.len());
    assert!(found.iter().enumerate().all(|(place, key)| *key == format!("{place:03}")));
    assert!(after.stats().expect("open").durable_through.is_some(), "the option is kept");
    db.close().expect("closes");
    assert_eq!((keys(&open(&disk)).len(), files(&disk, ".wal")), (300, vec![]));
}

#[test]
fn closing_flushes_what_no_log_has() {
    for background in [Background::Stepped, Background::Threads(1)] {
        let disk = Memory::new();
        let db = open_with(&disk, options().background(background));
        let space = unlogged(&db);
        space.put("a", "1").expect("puts");
        db.close().expect("closes");
        drop((db, space));
        let db = open_with(&disk.crash_hard(), options().background(background));
        let space = unlogged(&db);
        assert_eq!(keys(&space), ["a"]);
        // So does letting go of it.
        space.put("b", "1").expect("puts");
        space.delete("a").expect("deletes");
        drop(space);
        drop(db);
    }
    let disk = Memory::new();
    let db = open(&disk);
    let space = unlogged(&db);
    space.put("a", "1").expect("puts");
    disk.fail_from(0, Fault::NoSpace);
    assert!(matches!(db.close(), Err(Error::Io { .. })), "it tells that it could not");
    disk.mend();
    assert_eq!(keys(&unlogged(&open(&disk))), [""; 0]);
}

#[test]
fn what_is_dropped_without_closing_is_flushed_too() {
    let disk = Memory::new();
    let db = open(&disk);
    let space = unlogged(&db);
    space.put("a", "1").expect("puts");
    drop((db, space));
    assert_eq!(keys(&unlogged(&open(&disk.crash_hard()))), ["a"]);
}

#[test]
fn numbers_of_flushed_writes_are_never_given_again() {
    let disk = Memory::new();
    let db = open(&disk);
    let space = unlogged(&db);
    (0..9).for_each(|number| space.put(number.to_string(), "1").expect("puts"));
    space.flush().expect("flushes");
    for cut in [disk.crash_hard(), disk.kill()] {
        let db = open(&cut);
        assert_eq!(db.snapshot().sequence(), 9);
        // What is older than what tables have would hide nothing, or be left out by a replay.
        let (space, other) = (unlogged(&db), logged(&db));
        space.delete("3").expect("deletes");
        other.put("x", "1").expect("puts");
        space.put("4", "2").expect("puts");
        assert_eq!(db.snapshot().sequence(), 12);
        assert_eq!((keys(&space).len(), space.get("3").expect("reads")), (8, None));
        db.drop_keyspace("unlogged").expect("drops");
        assert_eq!(open(&cut.crash_hard()).snapshot().sequence(), 12);
    }
}

#[test]
fn after_a_sync_no_number_that_was_seen_is_given_again() {
    let disk = Memory::new();
    let db = open_with(&disk, options().kept_log_bytes(1 << 30));
    let (space, other) = (unlogged(&db), logged(&db));
    other.put("a", "1").expect("puts");
    space.put("b", "1").expect("puts");
    space.put("c", "1").expect("puts");
    let seen = db.snapshot().sequence();
    db.sync().expect("syncs");
    let after = open(&disk.crash_hard());
    logged(&after).put("d", "1").expect("puts");
    after.sync().expect("syncs");
    let mut feed = after.changes_since(seen).expect("nothing is gone");
    let batch = feed.next_batch().expect("reads").expect("it is durable");
    assert_eq!((batch.changes[0].key.as_slice(), batch.sequence()), (&b"d"[..], seen + 1));
}

#[test]
fn a_checkpoint_has_what_no_log_has() {
    let disk = Memory::new();
    let db = open(&disk);
    let (space, other) = (unlogged(&db), logged(&db));
    space.put("a", "1").expect("puts");
    space.flush().expect("flushes");
    space.put("b", "1").expect("puts");
    other.put("c", "1").expect("puts");
    db.checkpoint("copy").expect("makes it");
    let environment = || Environment::new().storage(Arc::new(disk.crash_hard()));
    let copy = Db::open_with("copy", options(), environment()).expect("opens");
    assert_eq!(
        (keys(&unlogged(&copy)), keys(&logged(&copy))),
        (vec!["a".to_string(), "b".to_string()], vec!["c".to_string()])
    );
    // It has no log there either: what the copy's log had is flushed, and no log is written.
    unlogged(&copy).put("d", "1").expect("puts");
    assert_eq!(unlogged(&copy).stats().expect("open").memtables, 2, "they lie apart");
    copy.settle().expect("flushes");
    assert_eq!(keys(&unlogged(&copy)), ["a", "b", "d"]);
    assert_eq!(copy.verify().expect("reads").damage, [""; 0]);
}

#[test]
fn a_log_may_be_given_up_and_taken_up_again() {
    let disk = Memory::new();
    let with = |log: bool| KeyspaceOptions::new().log(log);
    let db = open(&disk);
    let space = db.keyspace("space", with(true)).expect("makes it");
    space.put("a", "1").expect("puts");
    db.sync().expect("syncs");
    // What the log has comes back, and is flushed before anything is written beside the log.
    let disk = disk.crash_hard();
    let db = open(&disk);
    let space = db.keyspace("space", with(false)).expect("opens it");
    assert_eq!(keys(&space), ["a"]);
    space.put("b", "1").expect("puts");
    db.settle().expect("flushes");
    assert_eq!(keys(&db.open_keyspace("space").expect("is there")), ["a", "b"]);
    {
        let after = open(&disk.crash_hard());
        assert_eq!(keys(&after.open_keyspace("space").expect("is there")), ["a"]);
    }
    drop(space);
    db.close().expect("closes");
    let db = open(&disk);
    let space = db.keyspace("space", with(true)).expect("opens it");
    assert_eq!(space.stats().expect("open").durable_through, None);
    space.put("c", "1").expect("puts");
    db.sync().expect("syncs");
    let after = open(&disk.crash_hard());
    assert_eq!(keys(&after.open_keyspace("space").expect("is there")), ["a", "b", "c"]);
}

#[test]
fn a_feed_tells_nothing_of_it_and_is_not_gone_for_it() {
    let disk = Memory::new();
    let db = open_with(&disk, options().kept_log_bytes(1 << 30));
    let (space, other) = (unlogged(&db), logged(&db));
    let mut changes = Vec::new();
    for number in 0..6 {
        let mut batch = Batch::new();
        batch.to(&space).put("a", "1").to(&other).put(number.to_string(), "1");
        batch.to(&space).put("b", "1").to(&other).put("x", "1").to(&space).put("c", "1");
        db.write(batch).expect("writes");
        space.put("d", "1").expect("puts");
        if number == 2 {
            space.ingest([("e", "1")]).expect("loads");
        }
        if number == 3 {
            space.flush().expect("flushes");
        }
        if number == 4 {
            other.flush().expect("flushes");
        }
    }
    db.sync().expect("syncs");
    for batch in db.changes_since(0).expect("nothing is gone") {
        let batch = batch.expect("reads");
        let all = batch.changes.iter();
        changes.push(all.map(|it| (it.sequence, it.key.clone(), it.keyspace)).collect::<Vec<_>>());
    }
    let id = changes[0][0].2;
    let ingested = |number: u64| u64::from(number > 2);
    let expected = (0..6u64).map(|number| {
        let first = 6 * number + ingested(number) + 1;
        vec![(first + 1, number.to_string().into_bytes(), id), (first + 3, b"x".to_vec(), id)]
    });
    assert_eq!(changes, expected.collect::<Vec<_>>());
    let after = open_with(&disk.crash_hard(), options().kept_log_bytes(1 << 30));
    after.sync().expect("syncs");
    assert_eq!(after.changes_since(0).expect("nothing is gone").count(), 6);
}

#[test]
fn a_failed_log_does_not_take_it_along() {
    for fail in 0..30 {
        let disk = Memory::new();
        let db = open_with(&disk, options().kept_log_bytes(1 << 30));
        let (space, other) = (unlogged(&db), logged(&db));
        other.put("a", "1").expect("puts");
        space.put("b", "1").expect("puts");
        disk.fail_at(fail, Fault::Io);
        let refused = other.put("c", "1").and_then(|()| db.sync());
        disk.mend();
        space.put("d", "1").expect("puts");
        other.put("e", "1").expect("puts");
        db.sync().expect("syncs");
        assert_eq!(keys(&space), ["b", "d"], "operation {fail}");
        let changes = db.changes_since(0).expect("nothing is gone");
        let changes: Vec<Vec<u8>> =
            changes.flat_map(|batch| batch.expect("reads").changes).map(|it| it.key).collect();
        let is_delivered = |key: &str| changes.iter().any(|it| it == key.as_bytes());
        assert!(
            is_delivered("a") && is_delivered("e") && !is_delivered("b") && !is_delivered("d"),
            "{changes:?}"
        );
        assert!(refused.is_err() || is_delivered("c"), "operation {fail}");
        let after = open(&disk.crash_hard());
        let found = keys(&logged(&after));
        assert!(found.contains(&"a".into()) && found.contains(&"e".into()), "{found:?}");
        assert_eq!(keys(&unlogged(&after)), [""; 0], "operation {fail}");
    }
}

#[test]
fn it_holds_no_logs() {
    let disk = Memory::new();
    let db = open_with(&disk, options().max_log_bytes(1 << 16).write_buffer_bytes(1 << 14));
    let (space, other) = (unlogged(&db), logged(&db));
    space.put("a", "1").expect("puts");
    for number in 0..3000 {
        other.put(format!("{number:05}"), [7; 100]).expect("puts");
        while db.step().expect("works") {}
    }
    assert_eq!(space.stats().expect("open").flushes, 0, "nobody needs it flushed");
    let stats = other.stats().expect("open");
    assert!(stats.flushes > 10 && stats.log_bytes < 1 << 17, "{} logs", stats.logs);
}

// No log has what such a flush brings, as with a bulk load.
#[test]
fn damage_to_the_edit_of_its_flush_is_no_torn_end() {
    let disk = Memory::new();
    let db = open(&disk);
    let space = unlogged(&db);
    let manifest = |disk: &Memory| disk.file("db/MANIFEST").expect("is there").len() as u64;
    space.put("a", "1").expect("puts");
    let before = manifest(&disk);
    space.flush().expect("flushes");
    // The record's payload begins there; which edit it is does not matter.
    disk.flip_bit("db/MANIFEST", before + 20, 3);
    let environment = Environment::new().storage(Arc::new(disk.kill()));
    match Db::open_with("db", options(), environment) {
        Err(Error::Corrupt { offset, .. }) => assert_eq!(offset, before),
        other => panic!("{:?}", other.map(|db| keys(&unlogged(&db)))),
    }
}

#[test]
fn transactions_find_conflicts_in_it() {
    let disk = Memory::new();
    let db = open(&disk);
    let space = unlogged(&db);
    space.put("a", "1").expect("puts");
    for flushes in [false, true] {
        let (one, other) = (db.transaction(), db.transaction());
        for (transaction, value) in [(&one, "2"), (&other, "3")] {
            transaction.of(&space).get("a").expect("reads");
            transaction.of(&space).put("a", value).expect("puts");
        }
        one.commit().expect("commits");
        if flushes {
            space.flush().expect("flushes");
        }
        assert!(matches!(other.commit(), Err(Error::Conflict { .. })));
        assert_eq!(space.get("a").expect("reads").as_deref(), Some(&b"2"[..]));
    }
}

struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % bound
    }
}

fn number(space: &Keyspace, key: &str) -> u64 {
    space.get(key).expect("reads").map_or(0, |value| {
        String::from_utf8(value.to_vec()).expect("text").parse().expect("a number")
    })
}

/// How much of each key space's history is there: a beginning of it.
fn found(db: &Db) -> [u64; 3] {
    let spaces = [unlogged(db), logged(db), (**db).clone()];
    let [of_unlogged, of_logged, _] = spaces.each_ref().map(|space| number(space, "both"));
    assert!(of_unlogged <= of_logged, "the half without a log is there, the other one is not");
    spaces.map(|space| {
        let last = number(&space, "last");
        let all = keys(&space).into_iter().filter(|key| key != "last" && key != "both");
        let mut all: Vec<u64> = all.map(|key| key.parse().expect("a number")).collect();
        all.sort_unstable();
        assert_eq!(all, (1..=last).collect::<Vec<_>>());
        last
    })
}

#[test]
fn after_any_crash_a_beginning_is_there() {
    for seed in 0..300 {
        let mut draws = Draws(seed);
        let mut disk = Memory::new();
        let mut written = [0u64; 3];
        // Of each key space: the writes that no crash may take.
        let mut safe = [0u64; 3];
        for _ in 0..1 + draws.below(5) {
            let db = open(&disk);
            let (space, other) = (unlogged(&db), logged(&db));
            let spaces = [&space, &other, &*db];
            let found = found(&db);
            for (place, number) in found.iter().enumerate() {
                assert!((safe[place]..=written[place]).contains(number), "seed {seed}: {found:?}");
            }
            assert_eq!(found[1], found[2], "seed {seed}: of a batch all that has a log is there");
            assert_eq!(db.verify().expect("reads").damage, [""; 0]);
            written = found;
            if draws.below(2) == 0 {
                db.sync().expect("syncs");
                safe = found;
            }
            let mut last_of_unlogged = 0;
            for _ in 0..draws.below(40) {
                match draws.below(8) {
                    0 => spaces[draws.below(3) as usize].flush().expect("flushes"),
                    1 => {
                        db.sync().expect("syncs");
                        (safe[1], safe[2]) = (written[1], written[2]);
                    }
                    2 => while db.step().expect("works") {},
                    3 => {
                        written[0] += 1;
                        let (key, value) = (written[0].to_string(), written[0].to_string());
                        let mut batch = Batch::new();
                        batch.to(&space).put(key, "1").put("last", value);
                        db.write(batch).expect("writes");
                        last_of_unlogged = db.snapshot().sequence();
                    }
                    _ => {
                        let (mut batch, both) = (Batch::new(), written[1] + 1);
                        for (place, space) in spaces.into_iter().enumerate() {
                            written[place] += 1;
                            let number = written[place].to_string();
                            batch.to(space).put(&number, "1").put("last", &number);
                            batch.put("both", both.to_string());
                        }
                        db.write(batch).expect("writes");
                        last_of_unlogged = db.snapshot().sequence();
                    }
                }
                if durable_through(&space) >= last_of_unlogged && last_of_unlogged > 0 {
                    safe[0] = written[0];
                }
            }
            disk = match draws.below(4) {
                0 => {
                    db.close().expect("closes");
                    safe = written;
                    disk.kill()
                }
                1 => disk.kill(),
                2 => disk.crash_hard(),
                _ => disk.crash(seed),
            };
        }
    }
}

#[test]
fn where_all_is_flushed_nothing_is_told_of_that_a_crash_takes() {
    let disk = Memory::new();
    let db = open(&disk);
    let first = |space: &Keyspace| space.stats().expect("open").first_unflushed;
    let (space, other) = (unlogged(&db), logged(&db));
    assert_eq!(first(&space), None, "it was just made");
    other.put("a", "1").expect("puts");
    assert_eq!(first(&space), None, "another's writes are not its own");
    assert!(first(&other).is_some_and(|first| first <= 1));
    space.put("b", "1").expect("puts");
    space.put("c", "1").expect("puts");
    assert!(first(&space).is_some_and(|first| first <= 2));
    space.flush().expect("flushes");
    assert_eq!(first(&space), None);
    space.delete_range("a", "z").expect("deletes");
    assert_eq!(first(&space), Some(4), "a deleted range is a write, too");
    space.flush().expect("flushes");
    drop((space, other, db));
    let db = open(&disk);
    assert_eq!((first(&unlogged(&db)), durable_through(&unlogged(&db))), (None, 0));
}
