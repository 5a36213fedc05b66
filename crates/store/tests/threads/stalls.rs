//! Write stalls: slower before stopped, counted, the same every time in steps, and never for ever.
//! ```text
//! puts ... | more runs than slow_down_runs: pauses | stop_runs:
//!     the writer waits | a merge ends: it goes on
//! ```
//! Invariant: what decides here is the state of the tree, not how long anything takes.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use trommel::Environment;
use trommel::stats::Stats;
use trommel::storage::{Clock as _, Memory};
use trommel::testing::{ManualClock, PausePoint, Pauses};
use trommel::{Background, Db, Error, Options, SyncPolicy};

const STOP_RUNS: u64 = 12;

fn options(background: Background) -> Options {
    Options::new()
        .size_ratio(2)
        .slow_down_runs(Some(3))
        .stop_runs(Some(STOP_RUNS as usize))
        .write_buffer_bytes(1024)
        .sync(SyncPolicy::Never)
        .background(background)
}

fn put(db: &Db, numbers: std::ops::Range<u32>) {
    for number in numbers {
        db.put(number.to_be_bytes(), vec![7; 200]).expect("puts");
    }
}

/// A history in steps; what was counted after so many puts, again and again.
fn in_steps(flush_after: u32, merge: bool) -> Vec<Stats> {
    let environment = Environment::new().storage(Arc::new(Memory::new()));
    let db = Db::open_with("db", options(Background::Stepped), environment).expect("opens");
    let round = |round: u32| {
        put(&db, 10 * round..10 * round + 10);
        if round % flush_after == flush_after - 1 {
            db.flush().expect("flushes");
            while merge && db.step().expect("steps") {}
        }
        db.stats().expect("open")
    };
    (0..40).map(round).collect()
}

#[test]
fn stalls_in_steps_are_the_same_every_time() {
    for (flush_after, merge) in [(1, true), (1, false), (5, true), (100, false)] {
        let count = |stats: &Stats| (stats.slowdowns, stats.stops);
        let [first, second] =
            [0, 1].map(|_| in_steps(flush_after, merge).iter().map(count).collect::<Vec<_>>());
        assert_eq!(first, second, "flushes after {flush_after}, merges: {merge}");
    }
}

#[test]
fn who_keeps_up_is_not_slowed_and_who_does_not_is_slowed_before_stopped() {
    let kept_up = in_steps(1, true).pop().expect("rounds");
    assert_eq!((kept_up.slowdowns.count, kept_up.stops.count, kept_up.stalls), (0, 0, 0));
    // Runs pile up in level 0, then memtables do.
    for history in [in_steps(1, false), in_steps(100, false)] {
        let slowed = history.iter().position(|stats| stats.slowdowns.count > 0).expect("slowed");
        let stopped = history.iter().position(|stats| stats.stops.count > 0).expect("stopped");
        assert!(slowed <= stopped, "stopped in round {stopped}, slowed in round {slowed}");
        let last = history.last().expect("rounds");
        assert!(last.slowdowns.seconds > 0.0 && last.stops.seconds == 0.0, "nobody waits in steps");
        assert_eq!(last.stalls, last.slowdowns.count + last.stops.count);
        let text = last.prometheus();
        let line = format!("trommel_stops_total {}\n", last.stops.count);
        assert!(text.contains(&line) && text.contains("trommel_slowdown_seconds_total"), "{text}");
    }
}

/// Merges wait here until they may begin.
#[derive(Default)]
struct Leash {
    free: Mutex<bool>,
    changed: Condvar,
}

impl Leash {
    fn wait(&self) {
        let free = self.free.lock().expect("no panic");
        drop(self.changed.wait_while(free, |free| !*free).expect("no panic"));
    }

    fn let_go(&self) {
        *self.free.lock().expect("no panic") = true;
        self.changed.notify_all();
    }
}

fn until(what: impl Fn() -> bool) {
    while !what() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "pauses are compiled out in release builds")]
fn writers_stop_for_merges_and_go_on_after_them() {
    let leash = Arc::new(Leash::default());
    let hook = Arc::clone(&leash);
    let pauses = Pauses::new(move |point| {
        if point == PausePoint::MergeStarted {
            hook.wait();
        }
    });
    let storage = Arc::new(Memory::new());
    let environment = Environment::new().storage(storage).pauses(pauses);
    let db = Db::open_with("db", options(Background::Threads(1)), environment).expect("opens");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| put(&db, 0..400));
        until(|| {
            db.stats().expect("open").stops.count > 0
                && db.stats().expect("open").run_count() as u64 >= STOP_RUNS
        });
        // It has stopped: runs and memtables do not grow beyond what was on its way.
        let is_over = writer.is_finished();
        let found = db.get(0u32.to_be_bytes());
        // Who may give up does not join those that are stopped.
        let given_up = trommel::giving_up(|| true, || db.put("given up", ""));
        leash.let_go();
        assert!(!is_over, "a writer that stops waits");
        assert!(found.expect("reads").is_some());
        assert!(matches!(given_up, Err(Error::Cancelled)), "{given_up:?}");
        writer.join().expect("the writer goes on");
    });
    db.settle().expect("settles");
    trommel::giving_up(|| true, || db.put(0u32.to_be_bytes(), "")).expect("nobody is stopped");
    assert_eq!(db.range(..).count(), 400);
    assert!(db.stats().expect("open").stops.seconds > 0.0 && db.stats().expect("open").merges > 0);
}

#[test]
fn merges_that_fail_slow_writers_down_and_do_not_stop_them() {
    let disk = Memory::new();
    let environment = || Environment::new().storage(Arc::new(disk.clone()));
    let db = Db::open_with("db", options(Background::Stepped), environment()).expect("opens");
    put(&db, 0..4);
    db.flush().expect("flushes");
    drop(db);
    let names = trommel::storage::Storage::list(&disk, Path::new("db")).expect("lists");
    let table = names.iter().find(|name| name.ends_with(".table")).expect("a table");
    // Within its first block.
    disk.flip_bit(Path::new("db").join(table), 40, 0);
    let options = options(Background::Threads(1)).guard(trommel::GuardKind::Open);
    let db = Db::open_with("db", options, environment()).expect("opens");
    put(&db, 100..260);
    until(|| db.stats().expect("open").failure.is_some());
    put(&db, 300..460);
    let stats = db.stats().expect("open");
    assert!(stats.run_count() as u64 > STOP_RUNS && stats.slowdowns.count > 0, "{stats:?}");
    assert!(db.get(459u32.to_be_bytes()).expect("reads").is_some());
}

#[test]
fn merges_that_keep_to_a_rate_stop_no_writer_for_ever() {
    // The clock stands still, so nothing that was spent is ever paid for.
    let clock = Arc::new(ManualClock::default());
    let storage = Arc::new(Memory::new());
    let environment = Environment::new().storage(storage).clock(clock);
    let options = options(Background::Threads(1)).merge_bytes_per_second(Some(1));
    let db = Db::open_with("db", options, environment).expect("opens");
    put(&db, 0..2_000);
    let stats = db.stats().expect("open");
    assert!(stats.merges > 0, "writers were slowed down, so merges went on");
    let level_0 = stats.levels.first().map_or(0, |level| level.runs.len() as u64);
    assert!(level_0 <= STOP_RUNS, "{level_0} runs");
}

#[test]
fn merges_without_writers_keep_to_their_rate() {
    [1, 2].into_iter().for_each(merges_of_threads_keep_to_their_rate);
}

/// They share one rate.
fn merges_of_threads_keep_to_their_rate(threads: usize) {
    let clock = Arc::new(ManualClock::default());
    let storage = Arc::new(Memory::new());
    let environment = Environment::new().storage(storage).clock(clock.clone());
    let options = options(Background::Threads(threads))
        .merge_bytes_per_second(Some(1_000))
        .slow_down_runs(Some(100))
        .stop_runs(Some(200));
    let db = Db::open_with("db", options, environment).expect("opens");
    put(&db, 0..400);
    db.flush().expect("flushes");
    // What flushes have spent is owed. One merge may have been about to begin when nothing was.
    let stats = db.stats().expect("open");
    assert!(stats.flushes > 20 && stats.merges <= 1, "{} merges", stats.merges);
    std::thread::scope(|scope| {
        let merging = scope.spawn(|| db.compact().expect("merges"));
        while !merging.is_finished() {
            clock.advance(Duration::from_secs(10));
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let runs: usize = db.stats().expect("open").levels.iter().map(|level| level.runs.len()).sum();
    assert_eq!(runs, 1);
}

#[test]
fn values_that_merges_move_count_towards_their_rate() {
    const RATE: u64 = 1 << 20;
    const VALUE_BYTES: usize = 64 << 10;
    let (disk, clock) = (Memory::new(), Arc::new(ManualClock::default()));
    let environment = Environment::new().storage(Arc::new(disk.clone())).clock(clock.clone());
    let options = options(Background::Threads(1))
        .merge_bytes_per_second(Some(RATE))
        .write_buffer_bytes(1 << 20)
        .compression(false)
        .value_move_oldest(1.0);
    let db = Db::open_with("db", options, environment).expect("opens");
    for number in 0..300u32 {
        db.put(number.to_be_bytes(), vec![number as u8; VALUE_BYTES]).expect("puts");
    }
    db.flush().expect("flushes");
    let value_files = || {
        let names = trommel::storage::Storage::list(&disk, Path::new("db")).expect("lists");
        names.into_iter().filter(|name| name.ends_with(".value")).collect::<Vec<_>>()
    };
    let before = value_files();
    let begun = clock.now();
    std::thread::scope(|scope| {
        let merging = scope.spawn(|| db.compact().expect("merges"));
        while !merging.is_finished() {
            clock.advance(Duration::from_millis(20));
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    until(|| before.iter().all(|name| !value_files().contains(name)));
    // Nobody waits for what the last step has moved.
    let paid_bytes = 300 * VALUE_BYTES as u64 - (5 << 20);
    let time = clock.now() - begun;
    assert!(time >= Duration::from_secs(paid_bytes / RATE), "all was moved within {time:?}");
}
