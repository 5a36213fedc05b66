//! User code that panics, and is caught, leaves the store no worse: iterators, followers, keys,
//! storage and clock.
//! ```text
//! history   put .. flush .. merge .. ingest .. scan
//!           call n of the storage, or of the clock, panics; then they go on
//! after     reads are right, writes work or give an error, closing works,
//!           and all that was acknowledged is there when it is opened again
//! ```
//! Invariant: no thread waits for one that has panicked.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use trommel::research::Research as _;

use crate::door::{Door, PATIENCE, until};
use trommel::Environment;
use trommel::storage::{Clock, Memory};
use trommel::{Background, Batch, Db, Options, SyncPolicy};

/// Says nothing: thousands of panics would fill the screen.
fn fail() -> ! {
    resume_unwind(Box::new("on purpose"))
}

fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// Panics once, when so many calls were made.
#[derive(Default)]
struct Fuse {
    calls: AtomicU64,
    /// 0: never.
    at: u64,
    /// Calls do not count.
    is_off: AtomicBool,
}

impl Fuse {
    fn call(&self) {
        if self.is_off.load(Ordering::SeqCst) {
            return;
        }
        if self.calls.fetch_add(1, Ordering::SeqCst) + 1 == self.at {
            fail();
        }
    }
}

struct Fused(Arc<Fuse>);

impl Clock for Fused {
    fn now(&self) -> Duration {
        self.0.call();
        Duration::from_millis(self.0.calls.load(Ordering::SeqCst))
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Panics {
    Storage,
    Clock,
}

fn options(background: Background) -> Options {
    Options::new()
        .size_ratio(2)
        .write_buffer_bytes(1024)
        .block_bytes(256)
        .block_cache_bytes(1024)
        .sync(SyncPolicy::Interval(Duration::from_millis(40)))
        .background(background)
}

fn environment(disk: &Memory, fuse: &Arc<Fuse>, who: Panics) -> Environment {
    let of_storage = Arc::clone(fuse);
    let hook = move |_: &'static str, _: &std::path::Path| {
        if who == Panics::Storage {
            of_storage.call();
        }
    };
    let environment = Environment::default();
    let clock = match who {
        Panics::Storage => Arc::clone(&environment.clock),
        Panics::Clock => Arc::new(Fused(Arc::clone(fuse))) as _,
    };
    environment.storage(Arc::new(Door::new(disk, hook))).clock(clock)
}

/// What was acknowledged, and what may be there besides.
#[derive(Default)]
struct Acknowledged {
    values: std::collections::BTreeMap<u32, (u32, Vec<u32>)>,
}

impl Acknowledged {
    fn wrote(&mut self, key: u32, value: u32, acknowledged: bool) {
        let (last, maybe) = self.values.entry(key).or_default();
        if acknowledged {
            (*last, *maybe) = (value, Vec::new());
        } else {
            maybe.push(value);
        }
    }

    /// Whether a value may be what a key has; 0: none.
    fn fits(&self, key: u32, found: u32) -> bool {
        self.values.get(&key).is_none_or(|(last, maybe)| found == *last || maybe.contains(&found))
    }

    fn check(&self, db: &Db, when: &str) {
        for &key in self.values.keys() {
            let found = db.get(key.to_be_bytes()).expect("reads");
            let found = found.map_or(0, |value| number(&value));
            assert!(
                self.fits(key, found),
                "{when}: key {key} has {found}: {:?}",
                self.values[&key]
            );
        }
    }
}

fn number(value: &[u8]) -> u32 {
    u32::from_be_bytes(value[..4].try_into().expect("a number"))
}

fn value(number: u32) -> Vec<u8> {
    [&number.to_be_bytes()[..], &[7; 60]].concat()
}

/// Everything that a store does, of which any call may panic.
fn history(db: &Db, acknowledged: &mut Acknowledged) {
    for round in 1..4u32 {
        for key in 0..8u32 {
            let put = caught(|| db.put(key.to_be_bytes(), value(10 * round)).is_ok());
            acknowledged.wrote(key, 10 * round, put == Some(true));
        }
        let mut batch = Batch::new();
        for key in 4..10u32 {
            batch.put(key.to_be_bytes(), value(10 * round + 1));
        }
        let synced = caught(|| db.write_synced(batch).is_ok());
        (4..10u32).for_each(|key| acknowledged.wrote(key, 10 * round + 1, synced == Some(true)));
        let _ = caught(|| db.get(3u32.to_be_bytes()).is_ok());
        let _ = caught(|| db.flush().is_ok());
        let entries = (8..12u32).map(|key| (key.to_be_bytes(), value(10 * round + 2)));
        let ingested = caught(|| db.ingest(entries).is_ok());
        (8..12u32).for_each(|key| acknowledged.wrote(key, 10 * round + 2, ingested == Some(true)));
        let _ = caught(|| db.range(..).take(3).count());
        let _ = caught(|| db.settle().is_ok());
    }
    let _ = caught(|| db.compact().is_ok());
    let _ = caught(|| db.checkpoint("copy").is_ok());
}

/// The number of tables in the store's folder.
fn tables_on(disk: &Memory) -> u64 {
    let names = trommel::storage::Storage::list(disk, "db".as_ref()).expect("lists");
    names.iter().filter(|name| name.ends_with(".table")).count() as u64
}

/// The number of tables in the tree.
fn tables_of(db: &Db) -> u64 {
    db.pinned_tree().peek().runs.iter().map(|run| run.tables).sum()
}

/// Runs the history with a panic at a call. How many calls there were.
fn survives(background: Background, who: Panics, at: u64) -> u64 {
    let (disk, fuse) = (Memory::new(), Arc::new(Fuse { at, ..Fuse::default() }));
    let open = || Db::open_with("db", options(background), environment(&disk, &fuse, who));
    let when = format!("{background:?}, {who:?}, call {at}");
    let mut acknowledged = Acknowledged::default();
    let opened = caught(open).unwrap_or_else(open);
    let db = opened.unwrap_or_else(|error| panic!("{when}: {error}"));
    history(&db, &mut acknowledged);
    fuse.is_off.store(true, Ordering::SeqCst);
    acknowledged.check(&db, &when);
    match db.put("after", value(1)) {
        Ok(()) => assert!(db.get("after").expect("reads").is_some(), "{when}"),
        Err(error) => assert!(error.to_string().contains("panicked"), "{when}: {error}"),
    }
    let goes_on = || {
        let done = db.put("later", value(1)).and_then(|()| db.flush()).and_then(|()| db.compact());
        done.inspect_err(|error| assert!(error.to_string().contains("panicked"), "{when}: {error}"))
    };
    match background {
        // A thread that has panicked begins anew in a moment.
        Background::Threads(_) => until("writes, flushes and merges", || goes_on().is_ok()),
        _ => {
            goes_on().expect("writes, flushes and merges go on");
            assert_eq!(tables_on(&disk), tables_of(&db), "{when}: tables are left");
        }
    }
    acknowledged.check(&db, &when);
    fuse.is_off.store(false, Ordering::SeqCst);
    let _ = caught(|| db.close().is_ok());
    let calls = fuse.calls.load(Ordering::SeqCst);
    let plain = Environment::new().storage(Arc::new(disk.clone()));
    let again = Db::open_with("db", options(Background::Stepped), plain);
    let again = again.unwrap_or_else(|error| panic!("{when}, opened again: {error}"));
    acknowledged.check(&again, &format!("{when}, opened again"));
    let verified = again.verify().expect("verifies");
    assert_eq!(verified.damage, [""; 0], "{when}");
    calls
}

/// As above, but in a thread, so that waiting for ever is an end of the test.
fn survives_in_time(background: Background, who: Panics, at: u64) -> u64 {
    let (done, ended) = channel();
    let test = std::thread::spawn(move || {
        let calls = survives(background, who, at);
        done.send(calls).expect("the test waits");
    });
    match ended.recv_timeout(PATIENCE) {
        Ok(calls) => calls,
        Err(RecvTimeoutError::Disconnected) => {
            resume_unwind(test.join().expect_err("it has sent nothing"))
        }
        Err(RecvTimeoutError::Timeout) => {
            panic!("{background:?}, {who:?}, call {at}: someone waits for ever")
        }
    }
}

#[test]
fn a_storage_may_panic_at_every_call() {
    let calls = survives_in_time(Background::Stepped, Panics::Storage, 0);
    assert!(calls > 200, "{calls}");
    for at in 1..=calls {
        survives_in_time(Background::Stepped, Panics::Storage, at);
    }
}

#[test]
fn a_clock_may_panic_at_every_call() {
    let calls = survives_in_time(Background::Stepped, Panics::Clock, 0);
    assert!(calls > 50, "{calls}");
    for at in 1..=calls {
        survives_in_time(Background::Stepped, Panics::Clock, at);
    }
}

#[test]
fn storage_and_clock_may_panic_in_threads() {
    for who in [Panics::Storage, Panics::Clock] {
        let calls = survives_in_time(Background::Threads(2), who, 0);
        // Which call is which depends on the threads.
        for at in (1..=calls).step_by(7) {
            survives_in_time(Background::Threads(2), who, at);
        }
    }
}

fn plain(disk: &Memory, background: Background, interval: u64) -> Db {
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    let sync = SyncPolicy::Interval(Duration::from_millis(interval));
    Db::open_with("db", options(background).sync(sync), environment).expect("opens")
}

fn is_durable(disk: &Memory, key: &str) -> bool {
    let left = plain(&disk.crash_hard(), Background::Stepped, 1);
    left.get(key).expect("reads").is_some()
}

// The keeper's thread had ended: what was written last was never synced, and replaced tables
// stayed.
#[test]
fn a_storage_that_panics_beside_the_writer_ends_no_sync_and_no_sweep() {
    for panics_at in ["sync beside", "remove"] {
        let disk = Memory::new();
        let panics = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&panics);
        let hook = move |operation: &'static str, _: &std::path::Path| {
            let is_keeper = std::thread::current().name() == Some("trommel-keeper");
            if is_keeper && operation == panics_at && count.fetch_add(1, Ordering::SeqCst) < 3 {
                fail();
            }
        };
        let storage = Arc::new(Door::new(&disk, hook));
        let environment = Environment::new().storage(storage);
        let options = options(Background::Threads(1));
        let db = Db::open_with("db", options, environment).expect("opens");
        // The last reader lets go of a table. The keeper or the worker that has just merged removes
        // it, whichever comes first.
        let replace_a_table = || {
            for round in 0..2 {
                db.put("old", value(round)).expect("puts");
                db.flush().expect("flushes");
            }
            let tree = db.pinned_tree();
            db.compact().expect("merges");
            drop(tree);
        };
        replace_a_table();
        let failure = || db.stats().expect("open").failure;
        if panics_at == "sync beside" {
            db.put("key", "value").expect("puts");
            // As after an error: the log has failed, and the next write moves on from it.
            until("a failure", || failure().is_some_and(|failure| failure.contains("panicked")));
        } else {
            until("a panic", || {
                replace_a_table();
                panics.load(Ordering::SeqCst) > 0
            });
        }
        until("a sync", || {
            db.put("key", "value").expect("puts");
            std::thread::sleep(Duration::from_millis(60));
            is_durable(&disk, "key")
        });
        until("a sweep", || tables_on(&disk) == 1);
        db.flush().expect("the keeper stops nobody");
        assert_eq!(failure(), None);
        db.close().expect("closes");
    }
}

#[test] // The interval's sync never came again: it took the writer's lock for one that someone has.
fn an_iterator_that_panics_ends_no_sync() {
    let disk = Memory::new();
    let db = plain(&disk, Background::Threads(1), 20);
    for at in 0..9u32 {
        let entries = (0..9u32).map(|number| {
            if number == at {
                fail();
            }
            (number.to_be_bytes(), value(number))
        });
        assert!(caught(|| db.ingest(entries)).is_none());
        let failing = (0..9u32).map(|number| match number == at {
            true => fail(),
            false => Ok::<_, trommel::Error>((number.to_be_bytes(), "value")),
        });
        assert!(caught(|| db.try_ingest(failing)).is_none());
    }
    assert!(db.get(0u32.to_be_bytes()).expect("reads").is_none());
    db.put("key", "value").expect("puts");
    until("a sync", || is_durable(&disk, "key"));
    assert_eq!(tables_on(&disk), 0, "it has left tables");
    assert_eq!(db.ingest([("a", "b")]).expect("ingests"), 1);
}

/// A key that cannot be read.
#[derive(Clone)]
struct NoKey;

impl AsRef<[u8]> for NoKey {
    fn as_ref(&self) -> &[u8] {
        fail()
    }
}

#[test]
fn keys_that_panic_change_nothing() {
    let disk = Memory::new();
    let db = plain(&disk, Background::Threads(1), 20);
    assert!(caught(|| db.put(NoKey, "value")).is_none());
    assert!(caught(|| db.put("key", NoKey)).is_none());
    assert!(caught(|| db.get(NoKey)).is_none());
    assert!(caught(|| db.multi_get(&[NoKey])).is_none());
    assert!(caught(|| db.range(NoKey..).count()).is_none());
    assert!(caught(|| db.delete_range(NoKey, NoKey)).is_none());
    assert!(caught(|| db.ingest([(NoKey, "value")])).is_none());
    assert!(caught(|| db.ingest([("key", NoKey)])).is_none());
    assert_eq!(db.range(..).count(), 0);
    db.put("key", "value").expect("puts");
    until("a sync", || is_durable(&disk, "key"));
    db.close().expect("closes");
}

#[test]
fn a_follower_that_panics_hears_no_more_and_holds_up_nobody() {
    for background in [Background::Stepped, Background::Threads(1)] {
        let disk = Memory::new();
        let db = plain(&disk, background, 20);
        let calls = Arc::new(AtomicU64::new(0));
        let heard = Arc::clone(&calls);
        db.follow_tree(move |_| {
            if heard.fetch_add(1, Ordering::SeqCst) == 2 {
                fail();
            }
        })
        .expect("open");
        for round in 0..6 {
            db.put("key", value(round)).expect("puts");
            db.flush().expect("flushes");
        }
        db.compact().expect("merges");
        assert_eq!(calls.load(Ordering::SeqCst), 3);
        assert_eq!(db.stats().expect("open").failure, None);
        assert!(caught(|| db.follow_tree(|_| fail())).is_none());
        db.put("key", value(7)).expect("puts");
        db.compact().expect("merges");
        assert_eq!(number(&db.get("key").expect("reads").expect("there")), 7);
        db.close().expect("closes");
    }
}
