//! Change feeds: all committed writes, once, in their order, or `Gone`.
//! ```text
//! history   what was written, as the test knows it
//! reader    keeps its number over crashes, and has told a beginning of the history each time
//! anew      a feed from any number tells the rest of the history, or is `Gone`, with a reason
//! ```

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trommel::storage::{Memory, Storage};
use trommel::testing::Fault;
use trommel::{
    Background, Batch, ChangeBatch, ChangeKind, Db, Environment, Error, Keyspace, KeyspaceOptions,
    Options, SyncPolicy,
};

const KEEP_ALL: u64 = 1 << 40;

fn options() -> Options {
    Options::new().background(Background::Stepped).sync(SyncPolicy::Never)
}

fn open_with(disk: &Memory, options: Options) -> Db {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with("db", options, environment).expect("opens")
}

fn open(disk: &Memory) -> Db {
    open_with(disk, options().kept_log_bytes(KEEP_ALL))
}

/// After a crash all that is left is told once it is surely durable.
fn open_after_crash(disk: &Memory) -> Db {
    let db = open(disk);
    db.sync().expect("syncs");
    db
}

fn keyspace(db: &Db, name: &str) -> Keyspace {
    db.keyspace(name, KeyspaceOptions::default()).expect("makes or opens it")
}

fn logs(disk: &Memory) -> Vec<String> {
    let mut names = disk.list(Path::new("db")).expect("lists");
    names.retain(|name| name.ends_with(".wal"));
    names
}

/// A write in one line, with its key space.
type Told = (u64, String);

fn line(keyspace: &str, key: &[u8], kind: &str) -> String {
    format!("{keyspace}/{} {kind}", key.escape_ascii())
}

fn lines(batch: &ChangeBatch) -> Vec<Told> {
    let line = |change: &trommel::Change| {
        let kind = match &change.kind {
            ChangeKind::Put(value) => format!("= {}", value.escape_ascii()),
            ChangeKind::PutWithExpiry { value, .. } => format!("until {}", value.escape_ascii()),
            ChangeKind::Delete => "deleted".into(),
            ChangeKind::DeleteRange { to } => format!("deleted to {}", to.escape_ascii()),
            _ => unreachable!("there are no others"),
        };
        let name = change.keyspace_name.as_deref().unwrap_or("?");
        (change.sequence, line(name, &change.key, &kind))
    };
    batch.changes.iter().map(line).collect()
}

/// All that a feed tells from a number on, batch by batch, and where it is then.
fn told_since(db: &Db, since: u64) -> trommel::Result<(Vec<Vec<Told>>, u64)> {
    let mut feed = db.changes_since(since)?;
    let mut told = Vec::new();
    while let Some(batch) = feed.next_batch()? {
        assert_eq!(batch.sequence(), feed.sequence());
        told.push(lines(&batch));
    }
    Ok((told, feed.sequence()))
}

fn keys_since(db: &Db, since: u64) -> Vec<String> {
    let (told, _) = told_since(db, since).expect("tells");
    let key = |(_, line): Told| line.split(['/', ' ']).nth(1).expect("has a key").to_string();
    told.into_iter().flatten().map(key).collect()
}

fn is_gone<T: std::fmt::Debug>(told: trommel::Result<T>) -> u64 {
    match told {
        Err(Error::Gone { first, .. }) => first,
        other => panic!("{other:?}"),
    }
}

#[test]
fn batches_are_told_whole_and_in_order_once_they_are_durable() {
    let disk = Memory::new();
    let db = open(&disk);
    let events = keyspace(&db, "events");
    let mut feed = db.changes_since(0).expect("nothing is gone");
    let mut batch = Batch::new();
    batch.put("a", "1").delete("b");
    batch.to(&events).put("c", "2").delete_range("d", "f").put_ttl("g", "3", Duration::MAX);
    db.write(batch).expect("writes");
    db.put("h", "4").expect("puts");
    assert_eq!(feed.next_batch().expect("reads"), None, "a crash may take it back");
    db.sync().expect("syncs");
    let first = feed.next_batch().expect("reads").expect("it is durable");
    let expected = [
        "default/a = 1",
        "default/b deleted",
        "events/c = 2",
        "events/d deleted to f",
        "events/g until 3",
    ];
    let expected: Vec<Told> = (1..).zip(expected.map(String::from)).collect();
    assert_eq!((lines(&first), feed.sequence()), (expected, 5));
    assert_eq!(
        feed.by_ref().map(|batch| batch.expect("reads").sequence()).collect::<Vec<_>>(),
        [6]
    );
    db.delete("a").expect("deletes");
    db.sync().expect("syncs");
    let more: Vec<_> = feed.by_ref().map(|batch| lines(&batch.expect("reads"))).collect();
    assert_eq!(more, [[(7, "default/a deleted".to_string())]], "it goes on");
    // From within a batch.
    let (told, at) = told_since(&db, 3).expect("tells");
    assert_eq!(
        (told[0].iter().map(|(number, _)| *number).collect::<Vec<_>>(), at),
        (vec![4, 5], 7)
    );
    assert_eq!(is_gone(db.changes_since(8)), 8, "nothing has this number");
}

#[test]
fn a_feed_ends_where_its_store_is_closed() {
    let disk = Memory::new();
    let db = open(&disk);
    db.put("a", "1").expect("puts");
    db.put("b", "1").expect("puts");
    db.sync().expect("syncs");
    let mut feed = db.changes_since(0).expect("nothing is gone");
    feed.next_batch().expect("reads").expect("it is durable");
    db.close().expect("closes");
    assert!(matches!(feed.next_batch(), Err(Error::Closed { .. })));
    assert!(matches!(db.changes_since(0), Err(Error::Closed { .. })));
    assert_eq!(disk.handles().open, 0, "of a feed that lives on");
    assert_eq!(keys_since(&open(&disk), 1), ["b"]);
}

#[test]
fn what_is_in_tables_is_gone_unless_logs_are_kept() {
    for kept in [0, 3 * 4096, KEEP_ALL] {
        let disk = Memory::new();
        let db = open_with(&disk, options().kept_log_bytes(kept));
        for number in 1..=9u64 {
            db.put(number.to_be_bytes(), "x").expect("puts");
            db.flush().expect("flushes");
        }
        while db.step().expect("steps") {}
        let check = |db: &Db, when: &str| {
            let first = if kept == 0 {
                10
            } else if kept == KEEP_ALL {
                1
            } else {
                7
            };
            let stats = db.stats().expect("open");
            assert_eq!((stats.logs, stats.kept_logs), (1, 10 - first), "{kept} {when}");
            assert_eq!(logs(&disk).len() as u64, 1 + stats.kept_logs, "{kept} {when}");
            for since in 0..=9 {
                match since + 1 < first {
                    true => assert_eq!(is_gone(db.changes_since(since)), first),
                    false => {
                        let (told, at) = told_since(db, since).expect("tells");
                        assert_eq!((told.len() as u64, at), (9 - since, 9), "{kept} {when}");
                    }
                }
            }
        };
        check(&db, "open");
        db.close().expect("closes");
        let db = open_with(&disk, options());
        check(&db, "opened again, by somebody who does not name the option");
        assert_eq!(db.verify().expect("reads").damage, [""; 0]);
        db.close().expect("closes");
        // With fewer bytes, the oldest go.
        let db = open_with(&disk, options().kept_log_bytes(0));
        assert_eq!((db.stats().expect("open").kept_logs, logs(&disk).len()), (0, 1));
        assert_eq!(is_gone(db.changes_since(8)), 10);
    }
}

/// A trap: where the newest log begins says nothing of what the one before could not keep.
#[test]
fn an_empty_new_log_counts_no_numbers_as_told() {
    let disk = Memory::new();
    let db = open(&disk);
    db.put("a", "1").expect("puts");
    db.sync().expect("syncs");
    let mut feed = db.changes_since(0).expect("nothing is gone");
    feed.next_batch().expect("reads").expect("it is durable");
    // Acknowledged, in memory and in a log that fails then.
    db.put("b", "2").expect("puts");
    db.put("c", "3").expect("puts");
    disk.fail_at(0, Fault::Io);
    db.sync().expect_err("the disk refuses");
    assert_eq!((feed.next_batch().expect("reads"), feed.sequence()), (None, 1));
    db.sync().expect("a new log has what was in memory");
    let batch = feed.next_batch().expect("reads").expect("it is durable");
    let told: Vec<u64> = batch.changes.iter().map(|change| change.sequence).collect();
    assert_eq!((told, feed.sequence()), (vec![2, 3], 3));
    assert_eq!(feed.next_batch().expect("reads"), None);
    drop((feed, db));
    assert_eq!(keys_since(&open_after_crash(&disk.crash_hard()), 0), ["a", "b", "c"]);
}

#[test]
fn after_a_failed_log_numbers_are_told_once() {
    for fail in 0..40 {
        for kind in [Fault::Io, Fault::NoSpace] {
            let disk = Memory::new();
            let db = open(&disk);
            let other = keyspace(&db, "other");
            let (mut acknowledged, mut feed) = (Vec::new(), db.changes_since(0).expect("is new"));
            disk.fail_at(fail, kind);
            let mut told = Vec::new();
            for number in 1..=20u64 {
                let mut batch = Batch::new();
                batch.put(format!("{number:02}"), "x").to(&other).put(format!("{number:02}"), "x");
                let written =
                    if number % 3 == 0 { db.write_synced(batch) } else { db.write(batch) };
                if written.is_ok() {
                    acknowledged.push(number);
                }
                if number % 8 == 0 {
                    let _ = other.flush();
                }
                while let Ok(Some(batch)) = feed.next_batch() {
                    told.extend(batch.changes);
                }
            }
            disk.mend();
            db.sync().expect("the disk is well");
            while let Some(batch) = feed.next_batch().expect("reads") {
                told.extend(batch.changes);
            }
            let pairs: Vec<u64> = told
                .chunks(2)
                .map(|two| {
                    assert_eq!((two.len(), &two[0].key), (2, &two[1].key), "half a batch");
                    String::from_utf8_lossy(&two[0].key).parse().expect("a number")
                })
                .collect();
            assert_eq!(pairs, acknowledged, "operation {fail}");
        }
    }
}

/// A trap: memtables of two key spaces that are written seldom are repeated again and again.
#[test]
fn what_logs_repeat_is_told_once() {
    for kept in [0, KEEP_ALL] {
        let disk = Memory::new();
        let small = options().max_log_bytes(1 << 16).kept_log_bytes(kept);
        let db = open_with(&disk, small.clone());
        let busy = db
            .keyspace("busy", KeyspaceOptions::new().write_buffer_bytes(20_000))
            .expect("makes it");
        let quiet = ["a", "b"].map(|name| keyspace(&db, name));
        let (mut feed, mut told) = (db.changes_since(0).expect("is new"), Vec::new());
        for number in 0..600u64 {
            if number % 100 == 0 {
                let mut batch = Batch::new();
                quiet.iter().for_each(|space| _ = batch.to(space).put(number.to_be_bytes(), "x"));
                db.write(batch).expect("writes");
            }
            busy.put(number.to_be_bytes(), [7; 500]).expect("puts");
            while db.step().expect("steps") {}
            if number % 10 == 0 {
                db.sync().expect("syncs");
                told.extend(feed.by_ref().map(|batch| batch.expect("reads")));
            }
        }
        db.sync().expect("syncs");
        told.extend(feed.by_ref().map(|batch| batch.expect("reads")));
        let numbers = |told: &[ChangeBatch]| {
            told.iter().flat_map(|it| &it.changes).map(|it| it.sequence).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&told), (1..=612).collect::<Vec<_>>());
        let log = |log: String| disk.file(Path::new("db").join(log)).expect("is there").len();
        let bytes: usize = logs(&disk).into_iter().map(log).sum();
        assert!(kept > 0 || bytes < 1 << 17, "old logs went, so what is quiet was repeated");
        drop((feed, busy, quiet, db));
        let db = open_with(&disk.crash_hard(), small);
        db.sync().expect("syncs");
        let Ok(feed) = db.changes_since(0) else {
            assert_eq!(kept, 0);
            let first = is_gone(db.changes_since(0));
            let told: Vec<_> = db
                .changes_since(first - 1)
                .expect("is there")
                .map(|it| it.expect("reads"))
                .collect();
            assert_eq!(numbers(&told), (first..=612).collect::<Vec<_>>());
            continue;
        };
        let told: Vec<_> = feed.map(|batch| batch.expect("reads")).collect();
        assert_eq!((kept, numbers(&told)), (KEEP_ALL, (1..=612).collect::<Vec<_>>()));
    }
}

/// A trap: a crash, or a disk that refuses, leaves a log that nobody follows.
#[test]
fn a_stray_log_is_no_part_of_a_feed() {
    let mut strays = 0;
    for fail in 0..20 {
        let disk = Memory::new();
        let db = open(&disk);
        let mut feed = db.changes_since(0).expect("is new");
        // Else the log after the failed one has all, and nobody needs those before it.
        db.put("0", "1").expect("puts");
        db.flush().expect("flushes");
        db.put("a", "1").expect("puts");
        // The next log is made, but the manifest cannot name it.
        disk.fail_at(fail, Fault::NoSpace);
        let _ = db.flush();
        disk.mend();
        db.put("b", "1").expect("puts");
        db.flush().expect("flushes");
        db.put("c", "1").expect("puts");
        db.sync().expect("syncs");
        let told: usize = feed.by_ref().map(|batch| batch.expect("reads").changes.len()).sum();
        assert_eq!((told, feed.sequence()), (4, 4), "operation {fail}");
        strays += usize::from(logs(&disk).len() > 4);
        let after = disk.crash_hard();
        drop((feed, db));
        assert_eq!(
            keys_since(&open_after_crash(&after), 0),
            ["0", "a", "b", "c"],
            "operation {fail}"
        );
    }
    assert!(strays > 0, "no operation has left a log");
}

// A log that was made anew says that all of it is durable; its name may not have been.
#[test]
fn nothing_is_told_that_a_power_cut_takes_back_after_a_killed_process() {
    for fail in 0..20 {
        let disk = Memory::new();
        let db = open(&disk);
        (0..10).for_each(|number: u32| db.put(number.to_be_bytes(), "1").expect("puts"));
        let disk = disk.kill();
        let db = open(&disk);
        disk.fail_at(fail, Fault::Io);
        let _ = db.put("next", "1").and_then(|()| db.sync());
        let disk = disk.kill();
        let db = open(&disk);
        let mut feed = db.changes_since(0).expect("is there");
        feed.by_ref().for_each(|batch| drop(batch.expect("reads")));
        for cut in [disk.crash_hard(), disk.crash(fail)] {
            let there = open(&cut).snapshot().sequence();
            assert!(feed.sequence() <= there, "operation {fail}: {there} of {}", feed.sequence());
        }
    }
}

/// A trap: between two loads a reader may have begun anew.
#[test]
fn a_feed_does_not_cross_what_was_loaded_past_the_logs() {
    let disk = Memory::new();
    let db = open(&disk);
    let other = keyspace(&db, "other");
    db.put("a", "1").expect("puts");
    db.sync().expect("syncs");
    let mut feed = db.changes_since(1).expect("is there");
    db.ingest([("b", "2")]).expect("loads");
    let snapshot = db.snapshot().sequence();
    assert_eq!(is_gone(feed.next_batch()), snapshot + 1);
    let mut anew = db.changes_since(snapshot).expect("begins anew");
    other.ingest([("c", "3")]).expect("loads");
    db.put("d", "4").expect("puts");
    db.sync().expect("syncs");
    // The second load is behind the first one, before what is durable.
    let first = is_gone(anew.next_batch());
    assert_eq!(first, snapshot + 2);
    assert_eq!(keys_since(&db, first - 1), ["d"]);
    let after = disk.crash_hard();
    drop((feed, anew, other, db));
    let db = open_after_crash(&after);
    for since in 0..first - 1 {
        assert_eq!(is_gone(db.changes_since(since)), first, "after {since}");
    }
    assert_eq!(keys_since(&db, first - 1), ["d"]);
}

/// A trap: the log that was told last may go when it was told, and a reader misses nothing then.
#[test]
fn a_flush_that_frees_the_newest_told_log_makes_nothing_gone() {
    let disk = Memory::new();
    let db = open_with(&disk, options());
    let mut feed = db.changes_since(0).expect("is new");
    for number in 1..=20u64 {
        db.put(number.to_be_bytes(), "x").expect("puts");
        if number % 3 == 0 {
            // A number that is given to nobody is before the next log.
            disk.fail_at(0, Fault::NoSpace);
            db.put("refused", "x").expect_err("the disk is full");
            disk.mend();
        }
        db.sync().expect("syncs");
        assert_eq!(
            feed.by_ref().map(|batch| batch.expect("reads").changes.len()).sum::<usize>(),
            1
        );
        let told = feed.sequence();
        db.flush().expect("flushes");
        assert_eq!(feed.next_batch().expect("nothing is gone"), None, "after {number}");
        assert_eq!(db.changes_since(told).expect("nothing is gone").count(), 0);
        assert!(logs(&disk).len() <= 2);
    }
}

/// A trap: files may claim any length.
#[test]
fn huge_logs_do_not_overflow_what_is_kept() {
    let disk = Memory::new();
    let db = open_with(&disk, options().kept_log_bytes(u64::MAX));
    for number in 0..5u64 {
        db.put(number.to_be_bytes(), vec![1; 9000]).expect("puts");
        db.flush().expect("flushes");
    }
    let stats = db.stats().expect("open");
    assert!(stats.kept_logs == 5 && stats.kept_log_bytes > 45_000);
    drop(db);
    let db = open_with(&disk, options().kept_log_bytes(20_000));
    assert_eq!(db.stats().expect("open").kept_logs, 2);
    assert_eq!(told_since(&db, 3).expect("is kept").0.len(), 2);
}

#[test]
fn what_a_killed_process_has_not_synced_is_told_when_it_is_durable() {
    let disk = Memory::new();
    let db = open(&disk);
    db.put("a", "1").expect("puts");
    db.sync().expect("syncs");
    db.put("b", "2").expect("puts");
    db.put("c", "2").expect("puts");
    let killed = disk.kill();
    drop(db);
    let db = open(&killed);
    let mut feed = db.changes_since(0).expect("nothing is gone");
    let told: Vec<u64> = feed.by_ref().map(|batch| batch.expect("reads").sequence()).collect();
    assert_eq!(told, [1], "a power cut could take back the others");
    db.sync().expect("syncs");
    let told: Vec<u64> = feed.by_ref().map(|batch| batch.expect("reads").sequence()).collect();
    assert_eq!(told, [2, 3]);
    let after = killed.crash_hard();
    drop((feed, db));
    assert_eq!(keys_since(&open(&after), 0), ["a", "b", "c"]);
}

#[test]
fn a_dropped_key_space_is_told_by_its_number() {
    let disk = Memory::new();
    let db = open(&disk);
    let events = keyspace(&db, "events");
    events.put("a", "1").expect("puts");
    db.sync().expect("syncs");
    let mut knows = db.changes_since(0).expect("is new");
    knows.next_batch().expect("reads").expect("is durable");
    events.put("b", "2").expect("puts");
    db.drop_keyspace("events").expect("drops");
    db.sync().expect("syncs");
    let batch = knows.next_batch().expect("reads").expect("is durable");
    assert_eq!(lines(&batch), [(2, "events/b = 2".to_string())]);
    let told: Vec<_> =
        db.changes_since(0).expect("is there").map(|it| it.expect("reads")).collect();
    assert_eq!(told.iter().map(|it| it.changes[0].keyspace).collect::<Vec<_>>(), [1, 1]);
    assert!(told.iter().all(|it| it.changes[0].keyspace_name.is_none()));
}

#[test]
fn a_damaged_log_is_told_with_its_place_and_nothing_is_passed_over() {
    let disk = Memory::new();
    let db = open(&disk);
    for number in 0..3u64 {
        db.put(number.to_be_bytes(), "x").expect("puts");
    }
    db.flush().expect("flushes");
    db.put("d", "x").expect("puts");
    db.sync().expect("syncs");
    let mut feed = db.changes_since(0).expect("is there");
    let log = Path::new("db").join(&logs(&disk)[0]);
    let whole = disk.file(&log).expect("is there");
    disk.flip_bit(&log, whole.len() as u64 - 3, 1);
    match feed.next_batch() {
        Err(Error::Corrupt { path, offset, .. }) => assert!(path == log && offset > 12),
        other => panic!("{other:?}"),
    }
    assert_eq!(feed.sequence(), 0);
    assert!(!db.verify().expect("reads").damage.is_empty(), "verify tells it");
    disk.put_file(&log, whole);
    assert!(feed.next().is_none(), "as an iterator it ends");
    assert_eq!(feed.map(|batch| batch.expect("reads").changes.len()).sum::<usize>(), 4);
    assert_eq!(db.verify().expect("reads").damage, [""; 0]);
    // One that is missing is told, too.
    let mut feed = db.changes_since(0).expect("is there");
    disk.remove(&log).expect("removes");
    assert!(matches!(feed.next_batch(), Err(Error::FileMissing { .. })));
}

#[test]
fn a_damaged_log_that_is_kept_costs_a_repair_nothing_but_the_feed() {
    let disk = Memory::new();
    let db = open(&disk);
    for number in 0..4u64 {
        db.put(number.to_be_bytes(), "x").expect("puts");
        db.flush().expect("flushes");
    }
    db.close().expect("closes");
    drop(db);
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    let verify = || trommel::tools::verify_files_with("db", &environment).expect("reads").damage;
    assert_eq!(verify(), [""; 0]);
    let log = Path::new("db").join(&logs(&disk)[1]);
    disk.flip_bit(&log, 40, 1);
    assert_eq!(verify().len(), 1);
    let report = trommel::tools::repair_with("db", &environment).expect("repairs");
    assert_eq!(
        (report.lost.len(), report.doubts.len(), report.changed),
        (0, 0, true),
        "{report:?}"
    );
    assert_eq!(verify(), [""; 0]);
    let db = open(&disk);
    assert_eq!((db.iter().count(), is_gone(db.changes_since(1))), (4, 3));
    assert_eq!(told_since(&db, 2).expect("is there").0.len(), 2);
}

#[test]
fn a_checkpoint_begins_anew() {
    let disk = Memory::new();
    let db = open(&disk);
    db.put("a", "1").expect("puts");
    db.flush().expect("flushes");
    db.put("b", "2").expect("puts");
    db.checkpoint("copy").expect("copies");
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    let copy = Db::open_with("copy", options(), environment).expect("opens");
    assert_eq!(is_gone(copy.changes_since(1)), 3);
    copy.put("c", "3").expect("puts");
    copy.sync().expect("syncs");
    assert_eq!(keys_since(&copy, 2), ["c"]);
}

/// SplitMix64.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// A batch that was written, or may have been.
#[derive(Clone, Debug)]
struct Written {
    /// A key that it alone writes.
    mark: String,
    lines: Vec<String>,
    /// The number of its last write; None: it was refused, and a crash may bring it back.
    last: Option<u64>,
}

const SPACES: [&str; 3] = ["default", "busy", "quiet"];

/// A store, what was written to it, and a reader that keeps its number over crashes.
struct World {
    disk: Memory,
    db: Db,
    options: Options,
    history: Vec<Written>,
    /// What the reader was told.
    told: Vec<String>,
    read_to: u64,
    batches: u64,
    /// The newest write past the logs.
    loaded: u64,
    gone: u64,
    asked: u64,
}

impl World {
    fn new(options: Options) -> World {
        let disk = Memory::new();
        let db = open_with(&disk, options.clone());
        let mut world = World {
            disk,
            db,
            options,
            history: Vec::new(),
            told: Vec::new(),
            read_to: 0,
            batches: 0,
            loaded: 0,
            gone: 0,
            asked: 0,
        };
        world.spaces();
        world
    }

    fn spaces(&mut self) -> Vec<Keyspace> {
        let small = KeyspaceOptions::new().write_buffer_bytes(9000);
        let busy = || self.db.keyspace("busy", small.clone()).expect("opens");
        SPACES.map(|name| if name == "busy" { busy() } else { keyspace(&self.db, name) }).into()
    }

    fn write(&mut self, draws: &mut Draws) {
        self.batches += 1;
        let mark = format!("batch {:06}", self.batches);
        let (spaces, mut batch) = (self.spaces(), Batch::new());
        let mut lines = vec![line("default", mark.as_bytes(), "= ")];
        batch.put(&mark, "");
        let of_quiet = if draws.below(12) == 0 { 3 } else { 2 };
        for _ in 0..draws.below(4) {
            let place = draws.below(of_quiet) as usize;
            let (name, key) = (SPACES[place], format!("k{:03}", draws.below(200)));
            batch.to(&spaces[place]);
            let kind = match draws.below(8) {
                0 => {
                    batch.delete(&key);
                    "deleted".into()
                }
                1 => {
                    batch.delete_range(&key, format!("{key}~"));
                    format!("deleted to {key}~")
                }
                other => {
                    let value = "v".repeat(1 + (draws.below(40) * other * 8) as usize);
                    batch.put(&key, &value);
                    format!("= {value}")
                }
            };
            lines.push(line(name, key.as_bytes(), &kind));
        }
        let count = lines.len() as u64;
        let synced = draws.below(6) == 0;
        let written = if synced { self.db.write_synced(batch) } else { self.db.write(batch) };
        let last = written.is_ok().then(|| self.db.snapshot().sequence());
        assert!(last.is_none_or(|last| last >= count));
        self.history.push(Written { mark, lines, last });
    }

    /// What was acknowledged, or is there after all: lines, and where batches end.
    fn all_lines(&self) -> Vec<String> {
        let there = self.history.iter().filter(|written| written.last.is_some());
        there.flat_map(|written| written.lines.iter().cloned()).collect()
    }

    /// The reader goes on. It never tells what a crash can take back.
    fn read(&mut self) {
        let mut feed = match self.db.changes_since(self.read_to) {
            Ok(feed) => feed,
            Err(Error::Gone { first, .. }) => return self.begin_anew(first),
            Err(error) => panic!("{error}"),
        };
        loop {
            match feed.next_batch() {
                Ok(Some(batch)) => {
                    self.told.extend(lines(&batch).into_iter().map(|(_, line)| line));
                    let ends = self.history.iter().filter_map(|it| it.last);
                    let is_end = ends.into_iter().any(|last| last == batch.sequence());
                    assert!(is_end, "half a batch, up to {}", batch.sequence());
                }
                Ok(None) => break,
                Err(error) => {
                    // That of a fault: nothing is passed over.
                    assert!(matches!(error, Error::Io { .. }), "{error}");
                    break;
                }
            }
        }
        self.read_to = feed.sequence();
    }

    fn begin_anew(&mut self, first: u64) {
        self.gone += 1;
        let keeps_all = self.options.kept_log_bytes == KEEP_ALL;
        assert!(!keeps_all || self.read_to < self.loaded, "{} is kept", self.read_to);
        // As from a snapshot.
        self.disk.mend();
        self.db.sync().expect("syncs");
        self.read_to = self.db.snapshot().sequence();
        assert!(first <= self.read_to + 1);
        self.told = self.all_lines();
    }

    /// What was refused is there or not, and what was not durable is gone.
    fn reopen(&mut self, disk: Memory) {
        self.disk = disk;
        let db = open_with(&self.disk, self.options.clone());
        self.db = db;
        let is_there = |written: &Written| self.db.contains_key(&written.mark).expect("reads");
        self.history.retain(is_there);
        // The numbers of those that were refused follow from the numbers around.
        let newest = self.db.snapshot().sequence();
        let mut next = newest + 1;
        for written in self.history.iter_mut().rev() {
            let last = written.last.unwrap_or(next - 1);
            assert!(last < next);
            written.last = Some(last);
            next = last + 1 - written.lines.len() as u64;
        }
        let all = self.all_lines();
        assert!(self.told.len() <= all.len(), "the reader was told what is gone");
        assert!(self.told[..] == all[..self.told.len()], "the reader was told something else");
    }

    /// A feed from any number tells all that is newer.
    fn check_anew(&mut self, draws: &mut Draws, is_settled: bool) {
        let newest = self.db.snapshot().sequence();
        let since = draws.below(newest + 1);
        self.asked += 1;
        self.disk.mend();
        let (told, at) = match told_since(&self.db, since) {
            Ok(told) => told,
            Err(Error::Gone { first, .. }) => {
                let keeps_all = self.options.kept_log_bytes == KEEP_ALL;
                assert!(!keeps_all || since < self.loaded, "{since} is kept");
                assert!(first > since + 1 - u64::from(since < self.loaded) && first <= newest + 1);
                told_since(&self.db, first - 1).expect("begins with what it has named");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let mut expected = Vec::new();
        for written in self.history.iter().filter(|written| written.last.is_some()) {
            let first = written.last.expect("looked at") + 1 - written.lines.len() as u64;
            let numbered = (first..).zip(written.lines.iter().cloned());
            expected.extend(numbered.filter(|(number, _)| *number > since));
        }
        let told: Vec<Told> = told.into_iter().flatten().collect();
        assert!(
            told.len() <= expected.len() && told[..] == expected[..told.len()],
            "since {since}"
        );
        assert!(!is_settled || (told.len() == expected.len() && at == newest), "all is durable");
        let after = expected.get(told.len());
        assert!(after.is_none_or(|(number, _)| at < *number), "at {at}");
    }

    fn step(&mut self, draws: &mut Draws) {
        match draws.below(100) {
            0..60 => self.write(draws),
            60..75 => {
                let _ = self.db.step();
            }
            75..85 => self.read(),
            85..89 => {
                let spaces = self.spaces();
                let _ = spaces[draws.below(3) as usize].flush();
            }
            89..92 => self.check_anew(draws, false),
            92..94 => {
                if self.db.sync().is_ok() {
                    self.disk.mend();
                    self.check_anew(draws, true);
                }
            }
            94..95 if draws.below(4) == 0 => {
                let key = format!("loaded {:06}", self.batches);
                self.disk.mend();
                let before = self.db.snapshot().sequence();
                // It may have to wait for a flush that has failed.
                let is_loaded = self.db.ingest([(key, "x")]).is_ok();
                self.loaded = if is_loaded { self.db.snapshot().sequence() } else { before + 1 };
            }
            95..97 => self
                .disk
                .fail_at(draws.below(6), [Fault::Io, Fault::NoSpace][self.batches as usize % 2]),
            97 => {
                self.disk.mend();
                self.db.close().expect("closes");
                self.reopen(self.disk.clone());
            }
            98 => self.reopen(self.disk.crash(draws.below(u64::MAX))),
            _ => self.reopen(if draws.below(2) == 0 {
                self.disk.kill()
            } else {
                self.disk.crash_hard()
            }),
        }
    }
}

#[test]
fn any_history_is_told_from_any_number_or_is_gone() {
    let (mut gone, mut asked) = (0, 0);
    for seed in 0..60u64 {
        let kept = [0, KEEP_ALL, 40_000][seed as usize % 3];
        let small = options().write_buffer_bytes(30_000).max_log_bytes(1 << 16);
        let mut world = World::new(small.kept_log_bytes(kept));
        let mut draws = Draws(seed);
        for _ in 0..400 {
            world.step(&mut draws);
        }
        world.disk.mend();
        world.db.sync().expect("syncs");
        world.check_anew(&mut draws, true);
        world.read();
        assert_eq!(world.told.len(), world.all_lines().len(), "seed {seed}");
        assert!(world.told == world.all_lines(), "seed {seed}");
        assert_eq!(world.db.verify().expect("reads").damage, [""; 0], "seed {seed}");
        (gone, asked) = (gone + world.gone, asked + world.asked);
    }
    assert!(gone > 10 && asked > 500, "{gone} of {asked}");
}
