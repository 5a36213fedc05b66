//! `SyncPolicy::Interval`: what was acknowledged is synced when it is as old as the interval,
//! whatever writers, flushes and the disk are waiting for.
//! ```text
//! put -> acknowledged ------ interval ------> durable        a writer is stopped,
//!     a flush is under way, an append takes long
//! ```
//! Invariant: time is told by hand, so no test asks how long anything takes; what is durable is
//! what a power cut leaves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::door::{Gate, Opens, until};
use trommel::Environment;
use trommel::storage::{Clock, Memory};
use trommel::testing::{Fault, ManualClock};
use trommel::{Background, Db, Options, SyncPolicy};

const INTERVAL: Duration = Duration::from_millis(30);

fn options(background: Background) -> Options {
    let sync = SyncPolicy::Interval(INTERVAL);
    Options::new().sync(sync).background(background).write_buffer_bytes(1024)
}

/// A store on a disk with a gate, and a clock that stands still.
struct Stage {
    disk: Memory,
    gate: Arc<Gate>,
    clock: Arc<ManualClock>,
    db: Db,
}

impl Stage {
    fn new(background: Background) -> Stage {
        let (disk, gate, clock) = (Memory::new(), Arc::<Gate>::default(), Arc::default());
        let storage = Arc::new(gate.disk(&disk));
        let environment = Environment::new().storage(storage).clock(Arc::clone(&clock) as _);
        let db = Db::open_with("db", options(background), environment).expect("opens");
        Stage { disk, gate, clock, db }
    }

    fn put(&self, number: u32) {
        self.db.put(number.to_be_bytes(), vec![7; 100]).expect("puts");
    }

    /// Whether a power cut would leave all keys below a number.
    fn has_durable(&self, numbers: u32) -> bool {
        let storage = Arc::new(self.disk.crash_hard());
        let environment = Environment::new().storage(storage);
        let left = Db::open_with("db", options(Background::Stepped), environment).expect("opens");
        (0..numbers).all(|number| left.get(number.to_be_bytes()).expect("reads").is_some())
    }

    /// Not before the interval is over, and then.
    fn becomes_durable(&self, numbers: u32) {
        assert!(!self.has_durable(numbers), "it was synced at once: this test tests nothing");
        assert!(self.db.stats().expect("open").unsynced_seconds.is_some());
        self.clock.advance(INTERVAL);
        until("a sync", || self.has_durable(numbers));
        until("the news of it", || self.db.stats().expect("open").unsynced_seconds.is_none());
    }
}

#[test]
fn writes_are_synced_in_time_while_a_flush_is_under_way() {
    let stage = Stage::new(Background::Threads(1));
    let _opens = Opens(&stage.gate);
    stage.gate.close("create", ".table");
    (0..11).for_each(|number| stage.put(number));
    stage.gate.wait();
    stage.put(11);
    stage.becomes_durable(12);
}

#[test]
fn writes_are_synced_in_time_while_a_writer_is_stopped() {
    let stage = Stage::new(Background::Threads(1));
    let acknowledged = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let _opens = Opens(&stage.gate);
        stage.gate.close("create", ".table");
        scope.spawn(|| {
            for number in 0..100 {
                stage.put(number);
                acknowledged.store(number + 1, Ordering::SeqCst);
            }
        });
        until("a stop", || stage.db.stats().expect("open").stops.count > 0);
        let before = acknowledged.load(Ordering::SeqCst);
        assert!(before < 100, "the writer is not stopped");
        stage.becomes_durable(before);
        assert_eq!(acknowledged.load(Ordering::SeqCst), before, "it has gone on");
    });
    assert_eq!(stage.db.range(..).count(), 100);
}

#[test]
fn writes_are_synced_in_time_while_another_one_is_slow() {
    let stage = Stage::new(Background::Threads(1));
    (0..3).for_each(|number| stage.put(number));
    std::thread::scope(|scope| {
        let _opens = Opens(&stage.gate);
        stage.gate.close("append", ".wal");
        scope.spawn(|| stage.put(3));
        stage.gate.wait();
        stage.becomes_durable(3);
    });
}

#[test] // What comes while a sync is under way is not what it has saved.
fn what_is_written_during_a_sync_waits_for_the_next_one() {
    let stage = Stage::new(Background::Threads(1));
    let _opens = Opens(&stage.gate);
    (0..2).for_each(|number| stage.put(number));
    stage.gate.close("sync beside", ".wal");
    stage.clock.advance(INTERVAL);
    stage.gate.wait();
    stage.put(2);
    stage.clock.advance(INTERVAL / 2);
    let age = stage.db.stats().expect("open").unsynced_seconds.expect("the sync is under way");
    assert!((age - (INTERVAL * 3 / 2).as_secs_f64()).abs() < 1e-9, "{age}");
    stage.gate.open();
    until("a sync", || stage.has_durable(2));
    stage.clock.advance(INTERVAL);
    until("another sync", || stage.has_durable(3));
}

#[test]
fn a_sync_that_fails_is_told_and_the_next_write_moves_on() {
    let stage = Stage::new(Background::Threads(1));
    stage.put(0);
    stage.disk.fail_at(0, Fault::Io);
    stage.clock.advance(INTERVAL);
    until("a failure", || stage.db.stats().expect("open").failure.is_some());
    let failure = stage.db.stats().expect("open").failure.expect("it stays until the next write");
    assert!(failure.contains("the log has failed"), "{failure}");
    assert!(
        stage.db.stats().expect("open").unsynced_seconds.is_some(),
        "what it was to save is still owed"
    );
    stage.put(1);
    assert_eq!(stage.db.stats().expect("open").failure, None);
    assert!(stage.has_durable(1), "it is in a table");
    stage.becomes_durable(2);
}

#[test]
fn in_steps_a_write_syncs_what_is_as_old_as_the_interval() {
    let stage = Stage::new(Background::Stepped);
    stage.put(0);
    stage.clock.advance(INTERVAL / 2);
    let age = stage.db.stats().expect("open").unsynced_seconds.expect("nobody has synced it");
    assert!((age - (INTERVAL / 2).as_secs_f64()).abs() < 1e-9, "{age}");
    stage.put(1);
    assert!(!stage.has_durable(1));
    stage.clock.advance(INTERVAL / 2);
    stage.put(2);
    assert!(stage.has_durable(3));
    assert_eq!(stage.db.stats().expect("open").unsynced_seconds, None);
    stage.put(3);
    stage.db.sync().expect("syncs");
    assert_eq!(stage.db.stats().expect("open").unsynced_seconds, None);
}

/// A clock that counts the looks at it.
#[derive(Default)]
struct Looked(AtomicU64);

impl Clock for Looked {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

// With an interval of 0 the flush thread waited for no time, again and again: a core's worth.
#[test]
fn nobody_is_awake_where_nothing_is_owed() {
    for (interval, puts) in [(Duration::ZERO, 1), (Duration::from_millis(1), 0)] {
        let (storage, clock) = (Arc::new(Memory::new()), Arc::new(Looked::default()));
        let environment = Environment::new().storage(storage).clock(Arc::clone(&clock) as _);
        let sync = SyncPolicy::Interval(interval);
        let options = options(Background::Threads(1)).sync(sync);
        let db = Db::open_with("db", options, environment).expect("opens");
        (0..puts).for_each(|_| db.put("key", "value").expect("puts"));
        assert_eq!(db.stats().expect("open").unsynced_seconds, None);
        let before = clock.0.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(200));
        let looks = clock.0.load(Ordering::Relaxed) - before;
        assert!(looks < 20, "{looks} looks at the clock, with {interval:?}");
    }
}
