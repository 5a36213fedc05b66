//! Clocks that somebody sets: back by years, ahead by as much as a clock can show, and to and fro.
//! ```text
//! since_epoch   what has expired follows from it alone, wherever it goes
//! now           never goes back, says `Clock`. One that does all the same breaks no promise but
//!               how long something took
//! ```
//! Invariant: nothing panics, waits for years or stays awake; what was acknowledged is synced
//! within the interval.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::door::until;
use trommel::Environment;
use trommel::options::Granularity;
use trommel::storage::{Clock, Memory};
use trommel::{Answer, Background, Batch, Db, Expiry, GuardKind, Options, SyncPolicy};

const SECOND: Duration = Duration::from_secs(1);
const YEAR: Duration = Duration::from_secs(366 * 24 * 3600);
const INTERVAL: Duration = Duration::from_millis(30);

/// A clock whose hands are set by hand.
#[derive(Default)]
struct Hands {
    now: Mutex<Duration>,
    since_epoch: Mutex<Duration>,
}

impl Hands {
    fn set(&self, time: Duration) {
        *self.now.lock().expect("sound") = time;
        *self.since_epoch.lock().expect("sound") = time;
    }
}

impl Clock for Hands {
    fn now(&self) -> Duration {
        *self.now.lock().expect("sound")
    }

    fn since_epoch(&self) -> Duration {
        *self.since_epoch.lock().expect("sound")
    }
}

/// Times from the first to the last that a clock can show, among them those where numbers of 64
/// bits end.
fn times() -> Vec<Duration> {
    let nanoseconds = Duration::from_nanos(u64::MAX);
    let milliseconds = Duration::from_millis(u64::MAX);
    let around = |time: Duration| [time - Duration::from_nanos(1), time, time + SECOND];
    let limits = [SECOND, 54 * YEAR, nanoseconds, milliseconds].into_iter().flat_map(around);
    [Duration::ZERO].into_iter().chain(limits).chain([Duration::MAX]).collect()
}

fn open(disk: &Memory, hands: &Arc<Hands>, options: &Options) -> Db {
    let (storage, clock) = (Arc::new(disk.clone()), Arc::clone(hands) as _);
    let environment = Environment::new().storage(storage).clock(clock);
    Db::open_with(Path::new("db"), options.clone(), environment).expect("opens")
}

fn stepped(sync: SyncPolicy) -> Options {
    let (background, write_buffer_bytes) = (Background::Stepped, 4096);
    Options::new()
        .sync(sync)
        .background(background)
        .write_buffer_bytes(write_buffer_bytes)
        .size_ratio(2)
}

/// The expiries that entries of a test have.
fn expiries() -> Vec<Expiry> {
    let of_times = times().into_iter().map(|time| u64::try_from(time.as_millis()));
    let of_times = of_times.map(|milliseconds| milliseconds.unwrap_or(u64::MAX));
    of_times.flat_map(|at| [at, at.saturating_sub(1)]).map(Expiry::at_milliseconds).collect()
}

/// Whether an entry is there, by what is documented: until its millisecond has come; the last one
/// never does.
fn is_there(expiry: Expiry, time: Duration) -> bool {
    let at = expiry.milliseconds();
    at == u64::MAX || u128::from(at) > time.as_millis()
}

/// Every way of reading shows what is there, and nothing else.
fn shows(db: &Db, expiries: &[Expiry], time: Duration) {
    let expected = |place: &usize| is_there(expiries[*place], time);
    let keys: Vec<_> = (0..expiries.len()).map(|place| (place as u32).to_be_bytes()).collect();
    let there: Vec<_> = (0..expiries.len()).filter(expected).map(|place| keys[place]).collect();
    let all = || db.range(..).map(|entry| entry.expect("reads").0);
    assert!(all().eq(there.iter().map(|key| key.to_vec())), "at {time:?}");
    let backward = db.range(..).rev().map(|entry| entry.expect("reads").0);
    assert!(backward.eq(there.iter().rev().map(|key| key.to_vec())), "at {time:?}");
    let found = db.multi_get(&keys);
    let mut queue = db.queue(4);
    for (place, (key, found)) in keys.iter().zip(found).enumerate() {
        let is_there = expected(&place);
        assert_eq!(found.expect("reads").is_some(), is_there, "{place} at {time:?}");
        assert_eq!(db.get(key).expect("reads").is_some(), is_there, "{place} at {time:?}");
        queue.submit_get(key, place as u64);
        let answer = queue.wait().expect("it is under way").answer;
        let Answer::Value(found) = answer else { panic!("a get") };
        assert_eq!(found.expect("reads").is_some(), is_there, "{place} at {time:?}");
    }
}

#[test]
fn what_has_expired_follows_from_the_clock_alone_wherever_it_goes() {
    let (disk, hands) = (Memory::new(), Arc::<Hands>::default());
    let db = open(&disk, &hands, &stepped(SyncPolicy::Never));
    let expiries = expiries();
    // In tables, and in memory.
    for (place, expiry) in expiries.iter().enumerate() {
        let mut batch = Batch::new();
        batch.put_with_expiry((place as u32).to_be_bytes(), "value", *expiry);
        db.write(batch).expect("writes");
        if place == expiries.len() / 2 {
            db.flush().expect("flushes");
        }
    }
    // Ahead, back, and to and fro.
    let ahead = times();
    let back = ahead.iter().rev().copied();
    let to_and_fro = ahead.iter().zip(ahead.iter().rev()).flat_map(|(one, other)| [*one, *other]);
    for time in ahead.iter().copied().chain(back).chain(to_and_fro) {
        hands.set(time);
        shows(&db, &expiries, time);
    }
}

#[test]
fn what_a_merge_has_dropped_stays_gone_and_all_else_comes_back_with_the_clock() {
    let expiries = expiries();
    for merged_at in times() {
        let (disk, hands) = (Memory::new(), Arc::<Hands>::default());
        let db = open(&disk, &hands, &stepped(SyncPolicy::Never));
        for (place, expiry) in expiries.iter().enumerate() {
            let mut batch = Batch::new();
            batch.put_with_expiry((place as u32).to_be_bytes(), "value", *expiry);
            db.write(batch).expect("writes");
        }
        hands.set(merged_at);
        db.compact().expect("merges");
        for time in times() {
            hands.set(time);
            let found = db.range(..).map(|entry| entry.expect("reads").0);
            let left = (0..expiries.len()).filter(|place| {
                is_there(expiries[*place], time) && is_there(expiries[*place], merged_at)
            });
            let left = left.map(|place| (place as u32).to_be_bytes().to_vec());
            assert!(found.eq(left), "merged at {merged_at:?}, read at {time:?}");
        }
        assert!(db.verify().expect("reads").damage.is_empty());
    }
}

#[test]
fn a_time_to_live_begins_at_any_time_and_never_ends_before_it_began() {
    let (disk, hands) = (Memory::new(), Arc::<Hands>::default());
    let db = open(&disk, &hands, &stepped(SyncPolicy::Never));
    for time in times() {
        for ttl in [SECOND, YEAR, Duration::MAX] {
            hands.set(time);
            db.put_ttl("key", "value", ttl).expect("writes");
            assert!(db.get("key").expect("reads").is_some(), "at {time:?}, for {ttl:?}");
            hands.set(Duration::ZERO);
            assert!(db.get("key").expect("reads").is_some(), "at {time:?}, for {ttl:?}, and back");
        }
    }
}

/// Whether a power cut would leave a key.
fn is_durable(disk: &Memory, key: &str) -> bool {
    let options = stepped(SyncPolicy::Never);
    let left = open(&disk.crash_hard(), &Arc::default(), &options);
    left.get(key).expect("reads").is_some()
}

#[test] // Nobody synced until the clock was where it had been: for years.
fn a_clock_that_goes_back_ends_no_syncs_of_an_interval() {
    for background in [Background::Stepped, Background::Threads(1)] {
        let (disk, hands) = (Memory::new(), Arc::<Hands>::default());
        hands.set(50 * YEAR);
        let options = stepped(SyncPolicy::Interval(INTERVAL)).background(background);
        let db = open(&disk, &hands, &options);
        db.put("before", "value").expect("writes");
        assert!(!is_durable(&disk, "before"), "it was synced at once: this test tests nothing");
        hands.set(SECOND);
        if background == Background::Stepped {
            db.put("after", "value").expect("writes");
        }
        until("a sync", || is_durable(&disk, "before"));
        // From then on the interval is that of the clock as it is.
        until("rest", || db.stats().expect("open").unsynced_seconds.is_none());
        db.put("later", "value").expect("writes");
        assert!(!is_durable(&disk, "later"), "its time has not come");
        hands.set(SECOND + INTERVAL);
        if background == Background::Stepped {
            db.put("last", "value").expect("writes");
        }
        until("a sync", || is_durable(&disk, "later"));
    }
}

#[test]
fn a_clock_that_jumps_ahead_has_what_is_owed_synced_at_once() {
    for time in times() {
        let (disk, hands) = (Memory::new(), Arc::<Hands>::default());
        let options = stepped(SyncPolicy::Interval(INTERVAL)).background(Background::Threads(1));
        let db = open(&disk, &hands, &options);
        db.put("key", "value").expect("writes");
        hands.set(time.max(INTERVAL));
        until("a sync", || is_durable(&disk, "key"));
        db.put("key", "again").expect("writes");
        assert!(db.stats().expect("open").unsynced_seconds.is_none_or(f64::is_finite));
        db.close().expect("closes");
    }
}

#[test] // Merges paused until the clock was where it had been.
fn merges_keep_to_their_rate_whatever_the_clock_does() {
    for (first, then) in [(50 * YEAR, SECOND), (SECOND, 50 * YEAR), (Duration::MAX, SECOND)] {
        let (disk, hands) = (Memory::new(), Arc::<Hands>::default());
        hands.set(first);
        let options = stepped(SyncPolicy::Never)
            .background(Background::Threads(2))
            .merge_bytes_per_second(Some(1 << 20));
        let db = open(&disk, &hands, &options);
        for round in 0..4u32 {
            for number in 0..1000u32 {
                let key = (number * 4 + round).wrapping_mul(2_654_435_761).to_be_bytes();
                db.put(key, [7; 100]).expect("writes");
            }
            db.flush().expect("flushes");
        }
        hands.set(then);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Time goes on from there.
            scope.spawn(|| {
                let mut time = then;
                while !is_over.load(Ordering::Relaxed) {
                    time += Duration::from_millis(100);
                    hands.set(time);
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            let settled = scope.spawn(|| db.settle());
            until("merges", || settled.is_finished());
            is_over.store(true, Ordering::Relaxed);
            settled.join().expect("no panic").expect("merges");
        });
        assert_eq!(db.range(..).count(), 4000);
    }
}

#[test]
fn a_store_lives_through_clocks_that_are_set_all_the_time() {
    for (sync, granularity) in [
        (SyncPolicy::Always, Granularity::Full),
        (SyncPolicy::Interval(INTERVAL), Granularity::Partial),
        (SyncPolicy::Never, Granularity::Partitioned),
    ] {
        let (disk, hands) = (Memory::new(), Arc::<Hands>::default());
        let options = stepped(sync)
            .background(Background::Threads(2))
            .merge_bytes_per_second(Some(64 << 20))
            .slow_down_runs(Some(2))
            .guard(GuardKind::Grf)
            .granularity(granularity);
        let db = open(&disk, &hands, &options);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let times = times();
                for place in (0..).map(|turn| turn * 7 % times.len()) {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    hands.set(times[place]);
                    std::thread::sleep(Duration::from_micros(200));
                }
            });
            let writers: Vec<_> = (0..3u8)
                .map(|writer| {
                    let db = &db;
                    scope.spawn(move || {
                        for number in 0..150u8 {
                            db.put([writer, number], [number; 300]).expect("writes");
                            db.stats().expect("open");
                        }
                    })
                })
                .collect();
            until("the writers", || writers.iter().all(|writer| writer.is_finished()));
            let settled = scope.spawn(|| db.settle());
            until("merges", || settled.is_finished());
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(db.range(..).count(), 450);
        assert!(db.verify().expect("reads").damage.is_empty());
        db.close().expect("closes");
    }
}
