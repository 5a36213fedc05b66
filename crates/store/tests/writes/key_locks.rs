//! Keys that transactions have locked: who waits for them, how long, and what ends it.
//! ```text
//! t1: get_for_update k ........ put k, commit
//!         t2: get_for_update k  (waits)       the value of t1 -> put k, commit: no conflict
//!         put k                 (waits)                                             -> put
//! ```

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Scope, ScopedJoinHandle, yield_now};
use std::time::Duration;

use trommel::storage::Memory;
use trommel::testing::{PausePoint, Pauses};
use trommel::{
    Background, Batch, Db, Environment, Error, Isolation, KeyspaceOptions, Options, Result,
    SyncPolicy, Transaction, Update, Value,
};

/// Longer than any test waits, unless it fails.
const LONG: Duration = Duration::from_secs(60);

const BOTH: [Isolation; 2] = [Isolation::Serializable, Isolation::Snapshot];

fn open(lock_timeout: Duration) -> Db {
    let environment = Environment::new().storage(Arc::new(Memory::new()));
    let options = Options::new().sync(SyncPolicy::Never).lock_timeout(lock_timeout);
    Db::open_with("db", options, environment).expect("opens")
}

fn text(value: Option<Value>) -> String {
    value.map_or_else(String::new, |value| String::from_utf8(value.to_vec()).expect("text"))
}

/// What a key has, locked.
fn locked(transaction: &Transaction, key: &str) -> String {
    text(transaction.get_for_update(key).expect("locks"))
}

fn waits(db: &Db) -> u64 {
    db.stats().expect("open").lock_waits.count
}

/// Runs `work` on another thread until it waits for a lock.
fn begin<'s, T: Send + 's>(
    scope: &'s Scope<'s, '_>,
    db: &Db,
    work: impl FnOnce() -> T + Send + 's,
) -> ScopedJoinHandle<'s, T> {
    let before = waits(db);
    let thread = scope.spawn(work);
    while waits(db) == before {
        assert!(!thread.is_finished(), "it has not waited");
        yield_now();
    }
    thread
}

fn is_timeout<T>(result: Result<T>) -> bool {
    match result {
        Ok(_) => false,
        Err(Error::LockTimeout { .. }) => true,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn of_two_that_read_for_update_the_second_reads_what_the_first_has_written() {
    for isolation in BOTH {
        let db = open(LONG);
        db.put("k", "1").expect("puts");
        let (one, other) = (db.transaction_with(isolation), db.transaction_with(isolation));
        assert_eq!(locked(&one, "k"), "1");
        std::thread::scope(|scope| {
            let second = begin(scope, &db, || {
                let found = locked(&other, "k");
                other.put("k", format!("{found}3")).expect("puts");
                other.commit().expect("nobody else has written it")
            });
            one.put("k", "12").expect("puts");
            let first = one.commit().expect("nobody else has written it");
            assert!(first < second.join().expect("no panic"));
        });
        assert_eq!(text(db.get("k").expect("reads")), "123");
    }
}

#[test]
fn a_wait_that_is_given_up_writes_nothing_and_leaves_the_others_in_line() {
    static GIVEN_UP: AtomicBool = AtomicBool::new(false);
    let asked = || GIVEN_UP.load(Ordering::SeqCst);
    let db = open(LONG);
    db.put("k", "1").expect("puts");
    let (one, other) = (db.transaction(), db.transaction());
    assert_eq!(locked(&one, "k"), "1");
    std::thread::scope(|scope| {
        let writes = begin(scope, &db, || trommel::giving_up(asked, || db.put("k", "2")));
        let reads =
            begin(scope, &db, || trommel::giving_up(asked, || other.get_for_update("k").map(drop)));
        let stays = begin(scope, &db, || db.put("k", "3"));
        GIVEN_UP.store(true, Ordering::SeqCst);
        for given_up in [writes.join(), reads.join()] {
            let given_up = given_up.expect("no panic");
            assert!(matches!(given_up, Err(Error::Cancelled)), "{given_up:?}");
        }
        assert!(!stays.is_finished(), "it was not asked");
        one.commit().expect("commits");
        stays.join().expect("no panic").expect("it was next");
    });
    // Where nobody else has the key there is no wait to give up.
    trommel::giving_up(asked, || db.put("k", "4")).expect("puts");
    assert_eq!(text(db.get("k").expect("reads")), "4");
}

#[test] // The lock was handed over while it was asked; the write was there, and said that it was not.
fn a_lock_that_comes_while_the_wait_is_given_up_is_free_again() {
    static HOLDER: Mutex<Option<Transaction>> = Mutex::new(None);
    let ends_the_holder = || {
        let ended = HOLDER.lock().expect("no panic").take();
        ended.is_some_and(|transaction| transaction.commit().is_ok())
    };
    let panics = || {
        drop(HOLDER.lock().expect("no panic").take());
        panic!("on purpose")
    };
    let db = open(LONG);
    let lock_by_another = || {
        let transaction = db.transaction();
        assert_eq!(locked(&transaction, "k"), "");
        *HOLDER.lock().expect("no panic") = Some(transaction);
    };
    lock_by_another();
    let put = trommel::giving_up(ends_the_holder, || db.put("k", "1"));
    assert!(matches!(put, Err(Error::Cancelled)), "{put:?}");
    lock_by_another();
    let other = db.transaction();
    let read = trommel::giving_up(ends_the_holder, || other.get_for_update("k").map(drop));
    assert!(matches!(read, Err(Error::Cancelled)), "{read:?}");
    lock_by_another();
    let wait = || trommel::giving_up(panics, || db.put("k", "2"));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(wait)).is_err());
    assert!(db.get("k").expect("reads").is_none());
    db.put("k", "3").expect("nobody has it");
}

#[test]
fn who_is_asked_may_close_the_store() {
    static DB: Mutex<Option<Db>> = Mutex::new(None);
    let db = open(LONG);
    let transaction = db.transaction();
    assert_eq!(locked(&transaction, "k"), "");
    *DB.lock().expect("no panic") = Some(db.clone());
    let closes = || {
        DB.lock().expect("no panic").take().expect("it is asked once").close().expect("closes");
        false
    };
    let put = trommel::giving_up(closes, || db.put_reader("k", 1, &b"1"[..]));
    assert!(matches!(put, Err(Error::Closed { .. })), "{put:?}");
}

#[test]
fn a_counter_of_four_threads_that_lock_it_never_conflicts() {
    let (threads, adds) = (4, 500);
    for isolation in BOTH {
        let db = open(LONG);
        let add = || {
            let transaction = db.transaction_with(isolation);
            let count = locked(&transaction, "count").parse().unwrap_or(0);
            transaction.put("count", (count + 1).to_string()).expect("puts");
            transaction.commit().expect("never conflicts");
        };
        std::thread::scope(|scope| {
            (0..threads).for_each(|_| drop(scope.spawn(|| (0..adds).for_each(|_| add()))));
        });
        assert_eq!(text(db.get("count").expect("reads")), (threads * adds).to_string());
    }
}

#[test] // With a moment that stays, the second key has mostly been written since.
fn transfers_that_lock_both_accounts_in_order_never_conflict() {
    let db = open(LONG);
    ["a", "b", "c"].iter().for_each(|key| db.put(key, "1000").expect("puts"));
    let transfer = |from: &str, to: &str| {
        let transaction = db.transaction();
        let [low, high] = if from < to { [from, to] } else { [to, from] };
        let money = |key| locked(&transaction, key).parse::<i64>().expect("a number");
        let both = [(low, money(low)), (high, money(high))];
        for (key, money) in both {
            let money = if key == from { money - 1 } else { money + 1 };
            transaction.put(key, money.to_string()).expect("puts");
        }
        transaction.commit().expect("never conflicts");
    };
    std::thread::scope(|scope| {
        for (from, to) in [("a", "b"), ("b", "c"), ("c", "a"), ("b", "a")] {
            scope.spawn(move || (0..200).for_each(|_| transfer(from, to)));
        }
    });
    let all = db.iter().map(|entry| text(Some(entry.expect("reads").1)));
    let all: Vec<i64> = all.map(|money| money.parse().expect("a number")).collect();
    assert_eq!(all, [1200, 800, 1000]);
}

/// Every way to write a key.
type Write = (&'static str, fn(&Db) -> Result<()>);
const WRITES: [Write; 9] = [
    ("put", |db| db.put("k", "w")),
    ("delete", |db| db.delete("k")),
    ("delete_range", |db| db.delete_range("j", "l")),
    ("write", |db| {
        let mut batch = Batch::new();
        db.write(batch.put("a", "w").put("k", "w").put("z", "w"))
    }),
    ("only_if", |db| {
        let mut batch = Batch::new();
        db.write(batch.only_if("a", None).put("k", "w"))
    }),
    ("update", |db| db.update("k", |_| Update::Put(b"w".to_vec())).map(drop)),
    ("compare_and_swap", |db| db.compare_and_swap("k", Some(b"1"), Some(b"w")).map(drop)),
    ("commit", |db| {
        let transaction = db.transaction();
        transaction.put("k", "w")?;
        transaction.commit().map(drop)
    }),
    ("run", |db| db.run(|transaction| transaction.delete("k"))),
];

#[test]
fn a_write_of_any_kind_waits_until_the_transaction_ends() {
    for (name, write) in WRITES {
        let db = open(LONG);
        db.put("k", "1").expect("puts");
        let transaction = db.transaction();
        assert_eq!(locked(&transaction, "k"), "1");
        std::thread::scope(|scope| {
            let writes = begin(scope, &db, || write(&db));
            assert_eq!(text(db.get("k").expect("reads")), "1", "{name}: reads wait for nobody");
            db.put("j", "of another key").expect("puts");
            transaction.put("other", "x").expect("puts");
            transaction.commit().unwrap_or_else(|error| panic!("{name}: {error}"));
            writes.join().expect("no panic").unwrap_or_else(|error| panic!("{name}: {error}"));
        });
        assert_ne!(text(db.get("k").expect("reads")), "1", "{name}");
        assert_eq!(db.stats().expect("open").lock_waits.count, 1, "{name}");
    }
}

#[test]
fn a_write_of_any_kind_gives_up_in_time_and_has_written_nothing() {
    for (name, write) in WRITES {
        let db = open(Duration::from_millis(3));
        db.put("k", "1").expect("puts");
        let transaction = db.transaction();
        assert_eq!(locked(&transaction, "k"), "1");
        assert!(is_timeout(write(&db)), "{name}");
        assert!(is_timeout(db.transaction().get_for_update("k")), "{name}");
        assert_eq!(db.iter().count(), 1, "{name}");
        drop(transaction);
        write(&db).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn locks_are_handed_over_in_the_order_in_which_they_were_asked_for() {
    let db = open(LONG);
    let (first, order) = (db.transaction(), Mutex::new(Vec::new()));
    assert_eq!(locked(&first, "k"), "");
    std::thread::scope(|scope| {
        for number in 0..6 {
            let (db, order) = (&db, &order);
            begin(scope, db, move || {
                // Reads for update and writes stand in one queue.
                if number % 2 == 0 {
                    return db.put("k", number.to_string()).expect("puts");
                }
                let transaction = db.transaction();
                let before = locked(&transaction, "k");
                order.lock().expect("no panic").push((before, number));
            });
        }
        drop(first);
    });
    let seen = [("0", 1), ("2", 3), ("4", 5)].map(|(before, number)| (before.to_string(), number));
    assert_eq!(order.into_inner().expect("no panic"), seen);
}

/// A ring of transactions: each has locked one key, and asks for the next one's.
fn ring(count: usize) {
    let db = open(LONG);
    let keys: Vec<String> = (0..count).map(|number| number.to_string()).collect();
    let all: Vec<_> = keys.iter().map(|_| Mutex::new(Some(db.transaction()))).collect();
    let take = |number: usize| all[number].lock().expect("no panic").take().expect("it is there");
    for (key, transaction) in keys.iter().zip(&all) {
        locked(transaction.lock().expect("no panic").as_ref().expect("it is there"), key);
    }
    std::thread::scope(|scope| {
        let ask = |number: usize| {
            let transaction = take(number);
            move || {
                let found = transaction.get_for_update(number_after(number, count))?;
                transaction.put("last", text(found))?;
                transaction.commit()
            }
        };
        let others: Vec<_> = (1..count).map(|number| begin(scope, &db, ask(number))).collect();
        let last = take(0);
        let found = last.get_for_update("1");
        assert!(matches!(&found, Err(Error::Deadlock { keyspace: 0, key }) if **key == *b"1"));
        assert!(is_deadlock(last.put("1", "x").and_then(|()| last.commit().map(drop))));
        let done = others.into_iter().map(|other| other.join().expect("no panic"));
        assert!(done.into_iter().all(|done| done.is_ok()), "one of them gives way, not two");
    });
}

fn number_after(number: usize, count: usize) -> String {
    ((number + 1) % count).to_string()
}

fn is_deadlock<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Deadlock { .. }))
}

#[test]
fn of_two_or_three_that_wait_for_each_other_one_is_told() {
    ring(2);
    ring(3);
    ring(5);
}

#[test]
fn deadlocks_are_run_again_until_all_is_done() {
    let db = open(LONG);
    let (runs, done) = (AtomicU64::new(0), 100);
    let move_one = |from: &str, to: &str| {
        db.run(|transaction| {
            runs.fetch_add(1, Ordering::Relaxed);
            for key in [from, to] {
                let count: u32 = locked_or(transaction, key)?.parse().unwrap_or(0);
                transaction.put(key, (count + 1).to_string())?;
            }
            Ok(())
        })
    };
    std::thread::scope(|scope| {
        for (from, to) in [("a", "b"), ("b", "a"), ("b", "a")] {
            scope.spawn(move || (0..done).for_each(|_| move_one(from, to).expect("commits")));
        }
    });
    assert!(runs.into_inner() >= 3 * done);
    for key in ["a", "b"] {
        assert_eq!(text(db.get(key).expect("reads")), (3 * done).to_string());
    }
}

fn locked_or(transaction: &Transaction, key: &str) -> Result<String> {
    transaction.get_for_update(key).map(text)
}

#[test] // Each of them has taken one lock for its batch, and would wait for the other's for ever.
fn batches_that_wait_for_locks_are_in_no_deadlock() {
    let db = open(LONG);
    let holders = ["a", "b"].map(|key| {
        let transaction = db.transaction();
        locked(&transaction, key);
        transaction
    });
    std::thread::scope(|scope| {
        let write = |one: &'static str, other: &'static str| {
            let db = &db;
            move || {
                let mut batch = Batch::new();
                db.write(batch.put(one, "w").put(other, "w"))
            }
        };
        let threads =
            [("a", "b"), ("b", "a")].map(|(one, other)| begin(scope, &db, write(one, other)));
        holders.into_iter().for_each(drop);
        for thread in threads {
            thread.join().expect("no panic").expect("writes");
        }
    });
    assert_eq!(db.iter().count(), 2);
}

#[test] // The transaction has the lock of b; the batch has a, and lets it go.
fn a_batch_gives_way_to_a_transaction_that_waits_for_it() {
    let db = open(LONG);
    let (one, other) = (db.transaction(), db.transaction());
    locked(&one, "a");
    locked(&other, "b");
    std::thread::scope(|scope| {
        let batch = begin(scope, &db, || {
            let mut batch = Batch::new();
            db.write(batch.put("a", "w").put("b", "w"))
        });
        let asks = begin(scope, &db, || {
            let found = locked(&other, "a");
            other.put("b", format!("{found}t"))?;
            other.commit()
        });
        drop(one);
        asks.join().expect("no panic").expect("it is not the one that gives way");
        batch.join().expect("no panic").expect("writes");
    });
    assert_eq!(text(db.get("b").expect("reads")), "w", "the batch came last");
}

#[test]
fn a_commit_that_writes_what_others_have_locked_may_be_in_a_deadlock() {
    let db = open(LONG);
    let (one, other) = (db.transaction(), db.transaction());
    locked(&one, "a");
    locked(&other, "b");
    std::thread::scope(|scope| {
        let commits = begin(scope, &db, move || {
            one.put("b", "1")?;
            one.commit()
        });
        other.put("a", "2").expect("puts");
        assert!(is_deadlock(other.commit()));
        commits.join().expect("no panic").expect("the other one has given way");
    });
    assert_eq!(text(db.get("b").expect("reads")), "1");
    assert!(db.get("a").expect("reads").is_none());
}

#[test] // The group had been let through before there was a lock, and was not to be seen yet.
fn a_lock_that_is_taken_while_a_group_is_written_waits_for_its_end() {
    let (holds, held) = std::sync::mpsc::channel();
    let (opens, opened) = std::sync::mpsc::channel::<()>();
    let (is_armed, gate) = (Arc::new(AtomicBool::new(false)), Mutex::new((holds, opened)));
    let arm = Arc::clone(&is_armed);
    let pauses = Pauses::new(move |point| {
        if point == PausePoint::WritesInserted && is_armed.swap(false, Ordering::SeqCst) {
            let (holds, opened) = &*gate.lock().expect("no panic");
            holds.send(()).expect("somebody listens");
            opened.recv().expect("it is opened");
        }
    });
    let environment = Environment::new().storage(Arc::new(Memory::new())).pauses(pauses);
    let options = Options::new().sync(SyncPolicy::Never).lock_timeout(LONG);
    let db = Db::open_with("db", options, environment).expect("opens");
    db.put("k", "1").expect("puts");
    arm.store(true, Ordering::SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(|| db.put("k", "2").expect("puts"));
        held.recv().expect("it is in the gap");
        let reads = scope.spawn(|| {
            let transaction = db.transaction();
            let found = locked(&transaction, "k");
            transaction.put("k", format!("{found}3")).expect("puts");
            transaction.commit().expect("nobody else has written it since")
        });
        // It would be over by now if it waited for nobody.
        std::thread::sleep(Duration::from_millis(30));
        opens.send(()).expect("it waits");
        reads.join().expect("no panic");
    });
    assert_eq!(text(db.get("k").expect("reads")), "23");
}

#[test]
fn threads_may_share_a_transaction_and_its_locks() {
    let db = open(LONG);
    let (own, other) = (db.transaction(), db.transaction());
    ["a", "b"].iter().for_each(|key| drop(locked(&other, key)));
    std::thread::scope(|scope| {
        let first = begin(scope, &db, || locked(&own, "a"));
        let more = ["a", "b", "b", "c"].map(|key| scope.spawn(|| locked(&own, key)));
        drop(other);
        [first].into_iter().chain(more).for_each(|thread| drop(thread.join().expect("no panic")));
    });
    ["a", "b", "c"].iter().for_each(|key| own.put(key, "x").expect("puts"));
    own.commit().expect("it has the locks");
    assert_eq!(db.iter().count(), 3);
}

#[test]
fn rolling_back_frees_what_was_locked_since() {
    let db = open(Duration::ZERO);
    let transaction = db.transaction();
    locked(&transaction, "a");
    let savepoint = transaction.savepoint();
    locked(&transaction, "b");
    locked(&transaction, "a");
    assert!(is_timeout(db.put("a", "x")) && is_timeout(db.put("b", "x")));
    transaction.roll_back_to(&savepoint);
    assert!(is_timeout(db.put("a", "x")));
    db.put("b", "x").expect("it is free");
    // It was read all the same.
    transaction.put("c", "y").expect("puts");
    assert!(matches!(transaction.commit(), Err(Error::Conflict { key, .. }) if key == b"b"));
    db.put("a", "x").expect("it is free");
}

#[test] // It counted locks: as many as there were at the savepoint stayed, whichever they were.
fn rolling_back_to_a_savepoint_that_was_rolled_back_past_keeps_no_lock_taken_since() {
    let db = open(Duration::ZERO);
    let transaction = db.transaction();
    locked(&transaction, "kept");
    let first = transaction.savepoint();
    locked(&transaction, "a");
    transaction.put("a", "own").expect("puts");
    let second = transaction.savepoint();
    transaction.roll_back_to(&first);
    db.put("a", "x").expect("it is free");
    locked(&transaction, "b");
    locked(&transaction, "c");
    transaction.roll_back_to(&second);
    for key in ["a", "b", "c"] {
        db.put(key, "y").expect("it was locked before the savepoint, or after it");
    }
    assert!(is_timeout(db.put("kept", "x")));
    assert_eq!(text(transaction.get("a").expect("reads")), "own", "its write has come back");
    transaction.roll_back_to(&first);
    assert!(is_timeout(db.put("kept", "x")), "it is older than both");
}

#[test]
fn its_own_writes_are_read_and_its_own_locks_do_not_hold_it_up() {
    let db = open(Duration::ZERO);
    let transaction = db.transaction();
    transaction.put("k", "own").expect("puts");
    assert_eq!(locked(&transaction, "k"), "own");
    assert_eq!(locked(&transaction, "k"), "own");
    transaction.delete_range("a", "z").expect("deletes");
    assert_eq!(locked(&transaction, "k"), "");
    transaction.commit().expect("it has the lock");
    db.put("k", "w").expect("it is free");
}

#[test]
fn other_key_spaces_have_other_locks() {
    let db = open(Duration::ZERO);
    let events = db.keyspace("events", KeyspaceOptions::default()).expect("makes it");
    let transaction = db.transaction();
    transaction.of(&events).get_for_update("k").expect("locks");
    db.put("k", "w").expect("it is free");
    assert!(is_timeout(events.put("k", "w")));
    let mut both = Batch::new();
    both.put("k", "x").to(&events).delete_range("a", "z");
    let refused = db.write(both);
    assert!(matches!(refused, Err(Error::LockTimeout { keyspace: 1.., key }) if key == b"k"));
    assert_eq!(text(db.get("k").expect("reads")), "w", "all of it or nothing");
}

#[test]
fn a_moment_moves_if_what_was_read_is_as_it_was() {
    for isolation in BOTH {
        let db = open(LONG);
        ["a", "b", "c"].iter().for_each(|key| db.put(key, "1").expect("puts"));
        let transaction = db.transaction_with(isolation);
        let before = transaction.sequence();
        assert_eq!(locked(&transaction, "a"), "1");
        transaction.put("a", "2").expect("puts");
        db.put("b", "2").expect("puts");
        assert_eq!(locked(&transaction, "b"), "2", "the newest");
        assert!(transaction.sequence() > before);
        // Of one moment with what is read later.
        assert_eq!(text(transaction.get("c").expect("reads")), "1");
        assert_eq!(transaction.range("c"..).count(), 1);
        db.put("c", "2").expect("puts");
        // What is not noted cannot be looked at again; what is, has changed.
        let late = transaction.get_for_update("c");
        assert!(matches!(late, Err(Error::Conflict { .. })), "{isolation:?}");
        db.put("c", "3").expect("an error leaves no lock");
        let committed = transaction.commit();
        assert_eq!(committed.is_ok(), isolation == Isolation::Snapshot, "it has read c");
    }
}

#[test]
fn a_moment_stays_while_a_scan_goes_on() {
    let db = open(LONG);
    ["a", "b"].iter().for_each(|key| db.put(key, "1").expect("puts"));
    let transaction = db.transaction();
    let mut scan = transaction.range(.."b");
    scan.next().expect("an entry").expect("reads");
    db.put("b", "2").expect("puts");
    assert!(matches!(transaction.get_for_update("b"), Err(Error::Conflict { .. })));
    drop(scan);
    assert_eq!(locked(&transaction, "b"), "2", "what the scan has read is as it was");
}

#[test] // A blind write is looked at in this mode: the moment must not pass over another's.
fn with_snapshot_isolation_what_is_written_must_be_as_it_was() {
    let db = open(LONG);
    ["a", "b"].iter().for_each(|key| db.put(key, "1").expect("puts"));
    let transaction = db.transaction_with(Isolation::Snapshot);
    transaction.put("a", "of the transaction").expect("puts");
    db.put("a", "2").expect("puts");
    db.put("b", "2").expect("puts");
    let late = transaction.get_for_update("b");
    assert!(matches!(late, Err(Error::Conflict { key, .. }) if key == b"a"));
}

#[test]
fn a_bulk_load_passes_over_locks_and_the_commit_says_so() {
    let db = open(LONG);
    let transaction = db.transaction();
    locked(&transaction, "k");
    db.ingest([("k", "loaded")]).expect("loads");
    transaction.put("k", "w").expect("puts");
    assert!(matches!(transaction.commit(), Err(Error::Conflict { .. })));
}

#[test]
fn closing_ends_all_waits() {
    let db = open(LONG);
    let transaction = db.transaction();
    locked(&transaction, "k");
    std::thread::scope(|scope| {
        let puts = begin(scope, &db, || db.put("k", "w"));
        let reads = begin(scope, &db, || db.transaction().get_for_update("k").map(drop));
        db.close().expect("closes");
        for thread in [puts, reads] {
            let ended = thread.join().expect("no panic");
            assert!(matches!(ended, Err(Error::Closed { .. })), "{ended:?}");
        }
    });
    assert!(matches!(transaction.get_for_update("k"), Err(Error::Closed { .. })));
}

#[test]
fn dropping_a_key_space_ends_waits_for_its_keys_alone() {
    let db = open(LONG);
    let events = db.keyspace("events", KeyspaceOptions::default()).expect("makes it");
    let transaction = db.transaction();
    locked(&transaction, "k");
    transaction.of(&events).get_for_update("k").expect("locks");
    db.rename_keyspace("events", "past events").expect("renames");
    std::thread::scope(|scope| {
        let stays = begin(scope, &db, || db.put("k", "w"));
        let before = events.stats().expect("open").lock_waits.count;
        let ends = scope.spawn(|| events.put("k", "w"));
        while events.stats().expect("open").lock_waits.count == before {
            yield_now();
        }
        db.drop_keyspace("past events").expect("drops");
        let ended = ends.join().expect("no panic");
        assert!(matches!(ended, Err(Error::KeyspaceDropped { .. })), "{ended:?}");
        assert!(!stays.is_finished());
        drop(transaction);
        stays.join().expect("no panic").expect("puts");
    });
    let gone = db.transaction().of(&events).get_for_update("k").map(drop);
    assert!(matches!(gone, Err(Error::KeyspaceDropped { .. })), "{gone:?}");
}

#[test]
fn a_transaction_that_panics_or_fails_leaves_no_lock() {
    let db = open(Duration::ZERO);
    let _ = std::thread::scope(|scope| {
        let panics = scope.spawn(|| {
            let transaction = db.transaction();
            locked(&transaction, "k");
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        panics.join().map(drop)
    });
    db.put("k", "w").expect("it is free");
    let transaction = db.transaction();
    transaction.get("other").expect("reads");
    locked(&transaction, "k");
    db.put("other", "w").expect("puts");
    transaction.put("k", "x").expect("puts");
    assert!(matches!(transaction.commit(), Err(Error::Conflict { .. })));
    db.put("k", "y").expect("it is free");
}

#[test]
fn in_stepped_mode_nobody_waits() {
    let environment = Environment::new().storage(Arc::new(Memory::new()));
    let options = Options::new().background(Background::Stepped).lock_timeout(LONG);
    let db = Db::open_with("db", options, environment).expect("opens");
    let (one, other) = (db.transaction(), db.transaction());
    locked(&one, "k");
    assert!(is_timeout(other.get_for_update("k")) && is_timeout(db.put("k", "w")));
    assert!(is_timeout(db.run(|transaction| transaction.put("k", "w"))));
    drop(one);
    assert_eq!(locked(&other, "k"), "");
    other.put("k", "w").expect("puts");
    other.commit().expect("it has the lock");
}
