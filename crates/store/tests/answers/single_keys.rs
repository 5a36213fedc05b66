//! Reading a key and writing it in one step, against every other way to write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use trommel::storage::Memory;
use trommel::testing::ManualClock;
use trommel::{
    Background, Batch, Db, Environment, Error, KeyspaceOptions, Options, Swap, SyncPolicy, Update,
};

fn options() -> Options {
    Options::new().sync(SyncPolicy::Never).write_buffer_bytes(4096).block_bytes(256)
}

fn open(options: Options) -> Db {
    let environment = Environment::new().storage(Arc::new(Memory::new()));
    Db::open_with("db", options, environment).expect("opens")
}

#[test]
fn what_is_absent_is_put_once_by_many_threads() {
    let db = open(options());
    let (keys, threads) = (4_000u64, 8);
    let new = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (db, new) = (&db, &new);
            scope.spawn(move || {
                for number in 0..keys {
                    let key = (number * 7 + thread * 13) % keys;
                    let found = db.put_if_absent(key.to_be_bytes(), thread.to_be_bytes());
                    new.fetch_add(u64::from(found.expect("writes").is_none()), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(new.into_inner(), keys, "the issue's eight threads counted 40,131 of 40,000");
    assert_eq!(db.iter().count() as u64, keys);
}

#[test]
fn nothing_that_is_added_is_lost() {
    let db = open(options());
    let events = db.keyspace("events", KeyspaceOptions::default()).expect("makes it");
    let (threads, adds) = (6i64, 2_000i64);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (db, events) = (&db, &events);
            scope.spawn(move || {
                for number in 0..adds {
                    events.fetch_add("all", 1).expect("adds");
                    db.fetch_add([(number % 10) as u8], thread).expect("adds");
                    if number % 500 == 0 {
                        events.flush().expect("flushes");
                    }
                }
            });
        }
    });
    assert_eq!(events.fetch_add("all", 0).expect("reads"), threads * adds);
    let each = adds / 10 * (0..threads).sum::<i64>();
    assert!((0..10u8).all(|key| db.fetch_add([key], 0).expect("reads") == each));
    db.put("text", "three").expect("puts");
    assert!(matches!(db.fetch_add("text", 1), Err(Error::NoCounter { len: 5, .. })));
}

#[test]
fn a_write_of_any_kind_between_makes_an_update_run_again() {
    let db = open(options().background(Background::Stepped));
    type Write = (&'static str, fn(&Db));
    let between: [Write; 7] = [
        ("put", |db| db.put("k", "2").expect("puts")),
        ("delete", |db| db.delete("k").expect("deletes")),
        ("batch", |db| {
            let mut batch = Batch::new();
            batch.put("a", "1").put("k", "2");
            db.write(batch).expect("writes");
        }),
        ("range", |db| db.delete_range("a", "z").expect("deletes")),
        ("ingest", |db| assert_eq!(db.ingest([("k", "2")]).expect("loads"), 1)),
        ("flushed", |db| {
            db.put("k", "2").expect("puts");
            db.flush().expect("flushes");
        }),
        ("merged", |db| {
            db.delete("k").expect("deletes");
            db.compact().expect("merges");
        }),
    ];
    for (name, write) in between {
        db.put("k", "1").expect("puts");
        let mut runs = 0;
        let before = db.update("k", |old| {
            runs += 1;
            if runs == 1 {
                assert_eq!(old, Some(&b"1"[..]), "{name}");
                write(&db);
            }
            Update::Put(old.map_or(b"none".to_vec(), |old| [old, b"!"].concat()))
        });
        assert_eq!(runs, 2, "{name}");
        let now = db.get("k").expect("reads").expect("is there");
        match before.expect("updates") {
            Some(before) => assert_eq!((&*before, &*now), (&b"2"[..], &b"2!"[..]), "{name}"),
            None => assert_eq!(&*now, b"none", "{name}"),
        }
    }
    let mut runs = 0;
    db.update("k", |_| {
        runs += 1;
        db.put("another", "1").expect("puts");
        Update::Delete
    })
    .expect("updates");
    assert_eq!((runs, db.get("k").expect("reads").is_none()), (1, true));
    db.update("k", |old| if old.is_none() { Update::Keep } else { Update::Delete }).expect("keeps");
}

#[test]
fn what_is_swapped_was_as_expected() {
    let db = open(options());
    let swap = |expected: Option<&str>, new: Option<&str>| {
        let (expected, new) = (expected.map(str::as_bytes), new.map(str::as_bytes));
        match db.compare_and_swap("k", expected, new).expect("writes") {
            Swap::Done => Ok(()),
            Swap::Found(value) => {
                Err(value.map(|it| String::from_utf8(it.to_vec()).expect("text")))
            }
        }
    };
    assert_eq!(swap(Some("a"), Some("b")), Err(None));
    assert_eq!(swap(None, Some("a")), Ok(()));
    assert_eq!(swap(None, Some("b")), Err(Some("a".into())));
    assert_eq!(swap(Some("a"), Some("b")), Ok(()));
    assert_eq!(swap(Some("b"), None), Ok(()));
    assert!(db.get("k").expect("reads").is_none());
}

#[test] // It was read alive, and would have come back.
fn what_expires_between_is_not_brought_back() {
    let clock = Arc::new(ManualClock::default());
    let environment = Environment::new().storage(Arc::new(Memory::new())).clock(clock.clone());
    let options = options().background(Background::Stepped);
    let db = Db::open_with("db", options, environment).expect("opens");
    db.put_ttl("k", "short", Duration::from_secs(10)).expect("puts");
    let mut runs = 0;
    db.update("k", |old| {
        runs += 1;
        if runs == 1 {
            assert!(old.is_some());
            clock.advance(Duration::from_secs(11));
            return Update::Put([old.expect("is there"), b"!"].concat());
        }
        assert!(old.is_none());
        Update::Keep
    })
    .expect("keeps");
    assert_eq!((runs, db.get("k").expect("reads").is_none()), (2, true));
    assert!(db.put_if_absent("k", "new").expect("puts").is_none());
}

#[test]
fn a_batch_is_written_if_all_keys_are_as_it_expects() {
    let db = open(options());
    let names = db.keyspace("names", KeyspaceOptions::default()).expect("makes it");
    let wins = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let (db, names, wins) = (&db, &names, &wins);
            scope.spawn(move || {
                for name in 0..300u64 {
                    let user = thread << 32 | name;
                    let mut batch = Batch::new();
                    batch.put(user.to_be_bytes(), name.to_be_bytes());
                    batch.to(names).only_if(name.to_be_bytes(), None);
                    batch.put(name.to_be_bytes(), user.to_be_bytes());
                    match db.write(batch) {
                        Ok(()) => wins.fetch_add(1, Ordering::Relaxed),
                        Err(Error::Conflict { keyspace: 1, .. }) => 0,
                        Err(other) => panic!("{other}"),
                    };
                }
            });
        }
    });
    assert_eq!(wins.into_inner(), 300, "each name has one user");
    assert_eq!((db.iter().count(), names.iter().count()), (300, 300));
    for entry in db.iter().map(|entry| entry.expect("reads")) {
        let user = names.get(&entry.1).expect("reads");
        assert_eq!(user.as_deref(), Some(&entry.0[..]), "both halves are of one batch");
    }
}

#[test]
fn what_a_batch_expects_is_looked_at_even_if_it_writes_nothing() {
    let clock = Arc::new(ManualClock::default());
    let environment = Environment::new().storage(Arc::new(Memory::new())).clock(clock.clone());
    let db = Db::open_with("db", options(), environment).expect("opens");
    db.put_ttl("k", "1", Duration::from_secs(5)).expect("puts");
    let is_so = |value: Option<&[u8]>| {
        let mut batch = Batch::new();
        batch.only_if("k", value);
        match db.write(batch) {
            Ok(()) => true,
            Err(Error::Conflict { keyspace: 0, key }) => key != b"k",
            Err(other) => panic!("{other}"),
        }
    };
    assert!(is_so(Some(b"1")) && !is_so(Some(b"2")) && !is_so(None));
    clock.advance(Duration::from_secs(6));
    assert!(!is_so(Some(b"1")) && is_so(None), "it has expired");
    let mut batch = Batch::new();
    batch.only_if("k", Some(b"1")).put("a", "1");
    let copy = batch.clone();
    assert!(matches!(db.write(&mut batch), Err(Error::Conflict { .. })));
    assert_eq!(db.get("a").expect("reads"), None, "nothing was written");
    batch.put("a", "2");
    db.write(batch).expect("what a refused batch expected is forgotten with it");
    let mut cleared = copy;
    cleared.clear();
    cleared.put("a", "3");
    db.write(cleared).expect("it expects nothing any more");
    // Its own writes do not count.
    let mut batch = Batch::new();
    batch.put("n", "1").only_if("n", None).put("n", "2");
    db.write(batch).expect("there was none");
    assert_eq!(db.get("n").expect("reads").as_deref(), Some(&b"2"[..]));
}

#[test]
fn what_a_batch_expects_is_of_the_key_space_that_it_is_directed_into_then() {
    let db = open(options());
    let names = db.keyspace("names", KeyspaceOptions::default()).expect("makes it");
    names.put("ann", "7").expect("puts");
    // Of the default key space, although the next write goes elsewhere.
    let mut batch = Batch::new();
    batch.only_if("ann", None).to(&names).put("bob", "8");
    db.write(&mut batch).expect("it has no such key");
    batch.to(&names).only_if("ann", None).to(&db).put("ann", "9");
    match db.write(&mut batch) {
        Err(Error::Conflict { keyspace: 1, key }) => assert_eq!(key, b"ann"),
        other => panic!("{other:?}"),
    }
    assert!(db.get("ann").expect("reads").is_none(), "nothing was written");
}
