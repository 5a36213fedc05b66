//! Change feeds: all committed writes, once, in their order, or `Gone`.
//! ```text
//! history   what was written, as the test knows it
//! reader    keeps its number over crashes, and has told a beginning of the history each time
//! anew      a feed from any number tells the rest of the history, or is `Gone`, with a reason
//! ```

mod faults;
mod histories;

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
type ChangeLine = (u64, String);

fn line(keyspace: &str, key: &[u8], kind: &str) -> String {
    format!("{keyspace}/{} {kind}", key.escape_ascii())
}

fn lines(batch: &ChangeBatch) -> Vec<ChangeLine> {
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
fn changes_since(db: &Db, since: u64) -> trommel::Result<(Vec<Vec<ChangeLine>>, u64)> {
    let mut feed = db.changes_since(since)?;
    let mut delivered = Vec::new();
    while let Some(batch) = feed.next_batch()? {
        assert_eq!(batch.sequence(), feed.sequence());
        delivered.push(lines(&batch));
    }
    Ok((delivered, feed.sequence()))
}

fn keys_since(db: &Db, since: u64) -> Vec<String> {
    let (delivered, _) = changes_since(db, since).expect("tells");
    let key = |(_, line): ChangeLine| line.split(['/', ' ']).nth(1).expect("has a key").to_string();
    delivered.into_iter().flatten().map(key).collect()
}

fn is_gone<T: std::fmt::Debug>(delivered: trommel::Result<T>) -> u64 {
    match delivered {
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
    let expected: Vec<ChangeLine> = (1..).zip(expected.map(String::from)).collect();
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
    let (delivered, at) = changes_since(&db, 3).expect("tells");
    assert_eq!(
        (delivered[0].iter().map(|(number, _)| *number).collect::<Vec<_>>(), at),
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
                        let (delivered, at) = changes_since(db, since).expect("tells");
                        assert_eq!((delivered.len() as u64, at), (9 - since, 9), "{kept} {when}");
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
        let (mut feed, mut delivered) = (db.changes_since(0).expect("is new"), Vec::new());
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
                delivered.extend(feed.by_ref().map(|batch| batch.expect("reads")));
            }
        }
        db.sync().expect("syncs");
        delivered.extend(feed.by_ref().map(|batch| batch.expect("reads")));
        let numbers = |delivered: &[ChangeBatch]| {
            delivered.iter().flat_map(|it| &it.changes).map(|it| it.sequence).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&delivered), (1..=612).collect::<Vec<_>>());
        let log = |log: String| disk.file(Path::new("db").join(log)).expect("is there").len();
        let bytes: usize = logs(&disk).into_iter().map(log).sum();
        assert!(kept > 0 || bytes < 1 << 17, "old logs went, so what is quiet was repeated");
        drop((feed, busy, quiet, db));
        let db = open_with(&disk.crash_hard(), small);
        db.sync().expect("syncs");
        let Ok(feed) = db.changes_since(0) else {
            assert_eq!(kept, 0);
            let first = is_gone(db.changes_since(0));
            let delivered: Vec<_> = db
                .changes_since(first - 1)
                .expect("is there")
                .map(|it| it.expect("reads"))
                .collect();
            assert_eq!(numbers(&delivered), (first..=612).collect::<Vec<_>>());
            continue;
        };
        let delivered: Vec<_> = feed.map(|batch| batch.expect("reads")).collect();
        assert_eq!((kept, numbers(&delivered)), (KEEP_ALL, (1..=612).collect::<Vec<_>>()));
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
        let delivered = feed.sequence();
        db.flush().expect("flushes");
        assert_eq!(feed.next_batch().expect("nothing is gone"), None, "after {number}");
        assert_eq!(db.changes_since(delivered).expect("nothing is gone").count(), 0);
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
    assert_eq!(changes_since(&db, 3).expect("is kept").0.len(), 2);
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
    let delivered: Vec<_> =
        db.changes_since(0).expect("is there").map(|it| it.expect("reads")).collect();
    assert_eq!(delivered.iter().map(|it| it.changes[0].keyspace).collect::<Vec<_>>(), [1, 1]);
    assert!(delivered.iter().all(|it| it.changes[0].keyspace_name.is_none()));
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
