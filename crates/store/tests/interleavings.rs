//! The real store under a scheduler that decides at every lock, atomic and wait which thread goes
//! on: writers, readers, a checkpoint, the threads that flush and merge. Each schedule is another
//! interleaving; one that fails is printed and can be replayed.
//! ```sh
//! RUSTFLAGS="--cfg shuttle" cargo test -p trommel --target-dir target/shuttle --test interleavings
//! TROMMEL_SCHEDULES=5000 ...     so many schedules of each kind, instead of a few
//! ```
//! ```text
//! writer w   round 1, 2, ...: one batch writes the round to all keys of w;
//!            done[w] is the last one acknowledged
//! reader     in any view all keys of w are of one round, not older than done[w] was before;
//!            later views are not older
//! ```
//! Invariant: a key of a writer is missing only where no round was acknowledged before the view was
//! taken.
#![cfg(shuttle)]

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use shuttle::rand::Rng;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner, thread};
use trommel::Environment;
use trommel::options::{Granularity, ResourceOptions};
use trommel::storage::{Clock, Memory, Storage};
use trommel::testing::Pauses;
use trommel::{
    Background, Batch, Db, GuardKind, Options, Resources, Scan, SyncPolicy, Update, Value,
};
use trommel_guards::kinds;

const WRITERS: usize = 2;
const KEYS: usize = 3;
const ROUNDS: u32 = 5;
const STACK_BYTES: usize = 1 << 20;
const PCT_DEPTH: usize = 4;

/// Of all schedules: that there was something to interleave.
static FLUSHES: AtomicU64 = AtomicU64::new(0);
static MERGES: AtomicU64 = AtomicU64::new(0);

/// A clock that goes on by itself, the same way in every run of a schedule.
#[derive(Default)]
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Duration {
        Duration::from_micros(self.0.fetch_add(20, Ordering::Relaxed))
    }
}

/// Of a schedule: which granularity it has is drawn with it.
fn options(guard: GuardKind) -> Options {
    let granularities = [Granularity::Full, Granularity::Partitioned, Granularity::Partial];
    Options::new()
        .guard(guard)
        .granularity(granularities[shuttle::rand::thread_rng().gen_range(0..3)])
        .partition_bytes(1024)
        .size_ratio(2)
        .write_buffer_bytes(1024)
        .block_bytes(256)
        .table_bytes(4096)
        .block_cache_bytes(2048)
        .sync(SyncPolicy::Always)
        .background(Background::Threads(2))
        .merge_piece_bytes(1024)
}

fn open(disk: &Memory, options: Options) -> Db {
    open_with(disk, options, Environment::new())
}

fn open_with(disk: &Memory, options: Options, environment: Environment) -> Db {
    let (storage, clock) = (Arc::new(disk.clone()), Arc::new(Ticking::default()));
    // In the gaps that the ordering rules close a thread often lets all others go first.
    let pauses = Pauses::new(|_| {
        if shuttle::rand::thread_rng().gen_ratio(1, 4) {
            thread::yield_now();
        }
    });
    let environment = environment.storage(storage).clock(clock).pauses(pauses);
    Db::open_with("db", options, environment).expect("opens")
}

fn key(writer: usize, number: usize) -> Vec<u8> {
    vec![writer as u8, number as u8]
}

fn round_of(value: &[u8]) -> u32 {
    u32::from_be_bytes(value[..4].try_into().expect("a round"))
}

/// What all threads of one schedule share.
struct Stage {
    db: Db,
    disk: Memory,
    done: [AtomicU32; WRITERS],
    value_bytes: usize,
}

impl Stage {
    fn new(guard: GuardKind) -> Arc<Self> {
        let disk = Memory::new();
        let db = open(&disk, options(guard));
        Arc::new(Stage { db, disk, done: Default::default(), value_bytes: 150 })
    }

    /// A store whose values each fill a file of their own. Merges into the last level move all.
    fn of_values_apart(guard: GuardKind) -> Arc<Self> {
        let disk = Memory::new();
        let options = options(guard).value_threshold(256).value_file_bytes(4096);
        let db = open(&disk, options.value_move_oldest(1.0).compression(false));
        Arc::new(Stage { db, disk, done: Default::default(), value_bytes: 4200 })
    }

    /// A store that shares memory for writes, of which it needs much.
    fn sharing(guard: GuardKind, resources: &Resources) -> Arc<Self> {
        let disk = Memory::new();
        let options = options(guard).write_buffer_bytes(1 << 20).merge_piece_bytes(32 << 10);
        let db = open_with(&disk, options, Environment::new().resources(resources));
        Arc::new(Stage { db, disk, done: Default::default(), value_bytes: 3_000 })
    }

    fn write_round(&self, writer: usize, round: u32) {
        let mut batch = Batch::new();
        let mut value = round.to_be_bytes().to_vec();
        value.resize(self.value_bytes, 7);
        for number in 0..KEYS {
            // The deletion is older: it must never be what is found.
            batch.delete(key(writer, number)).put(key(writer, number), &value);
        }
        self.db.write(batch).expect("writes");
        self.done[writer].store(round, Ordering::SeqCst);
    }

    /// The least round that a view taken from now on must show.
    fn least(&self, writer: usize) -> u32 {
        self.done[writer].load(Ordering::SeqCst)
    }
}

/// The round that a scan shows, from either end by turns; 0: no key is there. Panics on half a
/// batch.
fn scanned_round(mut scan: Scan, turn: usize) -> u32 {
    let mut rounds = Vec::new();
    while let Some(entry) =
        if (rounds.len() + turn).is_multiple_of(2) { scan.next() } else { scan.next_back() }
    {
        rounds.push(round_of(&entry.expect("reads").1));
    }
    let whole = rounds.is_empty() || rounds.len() == KEYS;
    assert!(whole && rounds.iter().all(|round| *round == rounds[0]), "half a batch: {rounds:?}");
    rounds.first().copied().unwrap_or(0)
}

fn read_by_get(stage: &Stage, turn: usize) {
    let (writer, number) = (turn % WRITERS, turn % KEYS);
    let least = stage.least(writer);
    let found = stage.db.get(key(writer, number)).expect("reads");
    let round = found.as_deref().map_or(0, round_of);
    assert!(round >= least, "a get has missed round {least} of writer {writer}: {round}");
}

/// What a snapshot shows: of all writers, by scans and by gets.
fn read_snapshot(stage: &Stage, snapshot: &trommel::Snapshot, turn: usize) -> [u32; WRITERS] {
    std::array::from_fn(|writer| {
        let round = scanned_round(snapshot.range(key(writer, 0)..key(writer, KEYS)), turn);
        let found = snapshot.get(key(writer, turn % KEYS)).expect("reads");
        assert_eq!(found.as_deref().map_or(0, round_of), round, "a get and a scan differ");
        assert!(round <= stage.least(writer) + 1, "a round that nobody has written yet");
        round
    })
}

fn read_on(stage: &Stage, turns: usize) {
    let mut before = [0; WRITERS];
    let mut held: Option<(trommel::Snapshot, [u32; WRITERS])> = None;
    for turn in 0..turns {
        read_by_get(stage, turn);
        let least: [u32; WRITERS] = std::array::from_fn(|writer| stage.least(writer));
        let snapshot = stage.db.snapshot();
        let rounds = read_snapshot(stage, &snapshot, turn);
        for writer in 0..WRITERS {
            let bound = least[writer].max(before[writer]);
            assert!(rounds[writer] >= bound, "a snapshot has missed round {bound}: {rounds:?}");
        }
        if let Some((old, seen)) = &held {
            assert_eq!(read_snapshot(stage, old, turn), *seen, "a snapshot has changed");
        } else {
            held = Some((snapshot, rounds));
        }
        before = rounds;
    }
}

/// After the storm: all is there, on disk too, and what is not needed is gone.
fn check_end(stage: Arc<Stage>, rounds: u32) {
    let Ok(Stage { db, disk, .. }) = Arc::try_unwrap(stage).map_err(|_| ()) else {
        panic!("a thread has kept the store");
    };
    for writer in 0..WRITERS {
        let found = scanned_round(db.range(key(writer, 0)..key(writer, KEYS)), 0);
        assert_eq!(found, rounds, "the end of writer {writer}");
    }
    db.settle().expect("settles");
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
    let stats = db.stats().expect("open");
    let tables: u64 = stats.levels.iter().flat_map(|level| &level.runs).map(|run| run.tables).sum();
    assert_eq!((stats.oldest_pin, stats.failure), (None, None));
    FLUSHES.fetch_add(stats.flushes, Ordering::Relaxed);
    MERGES.fetch_add(stats.merges, Ordering::Relaxed);
    db.close().expect("closes");
    let names = disk.list(Path::new("db")).expect("lists");
    let count = |end: &str| names.iter().filter(|name| name.ends_with(end)).count() as u64;
    assert_eq!(count(".table"), tables, "tables that nobody needs: {names:?}");
    assert_eq!(count(".value"), stats.value_files, "values that nobody needs: {names:?}");
    assert!(count(".wal") == 1 && count(".filter") <= 1, "files that nobody needs: {names:?}");
}

fn spawn(stage: &Arc<Stage>, work: impl Fn(&Stage) + Send + 'static) -> thread::JoinHandle<()> {
    let stage = Arc::clone(stage);
    thread::spawn(move || work(&stage))
}

fn writers_readers_flushes_and_merges(guard: GuardKind) {
    let stage = Stage::new(guard);
    let writer = |writer| {
        spawn(&stage, move |stage| (1..=ROUNDS).for_each(|round| stage.write_round(writer, round)))
    };
    let mut threads: Vec<_> = (0..WRITERS).map(writer).collect();
    threads.extend((0..2).map(|_| spawn(&stage, |stage| read_on(stage, 4))));
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    check_end(stage, ROUNDS);
}

/// A snapshot for one look.
fn read_by_short_snapshot(stage: &Stage, turn: usize) {
    let (writer, number) = (turn % WRITERS, turn % KEYS);
    let least = stage.least(writer);
    let found = stage.db.snapshot().get(key(writer, number)).expect("reads");
    let round = found.as_deref().map_or(0, round_of);
    assert!(round >= least, "a snapshot has missed round {least} of writer {writer}: {round}");
}

/// No snapshot keeps old values for long, so that merges drop them as soon as they may.
fn gets_beside_merges(guard: GuardKind) {
    let stage = Stage::new(guard);
    let writer = |writer| {
        spawn(&stage, move |stage| (1..=ROUNDS).for_each(|round| stage.write_round(writer, round)))
    };
    let mut threads: Vec<_> = (0..WRITERS).map(writer).collect();
    let read_on = |read: fn(&Stage, usize)| {
        spawn(&stage, move |stage| (0..25).for_each(|turn| read(stage, turn)))
    };
    threads.extend([read_by_get, read_by_short_snapshot].map(read_on));
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    check_end(stage, ROUNDS);
}

/// A long scan that begins in one version and ends in another, and users who flush and merge all by
/// hand.
fn long_scans_and_compactions(guard: GuardKind) {
    let stage = Stage::new(guard);
    (0..WRITERS).for_each(|writer| stage.write_round(writer, 1));
    let scans = |stage: &Stage| {
        for turn in 0..2 {
            let mut scan = stage.db.range(..);
            let mut rounds = Vec::new();
            while let Some(entry) = if turn == 0 { scan.next() } else { scan.next_back() } {
                rounds.push(round_of(&entry.expect("reads").1));
            }
            assert_eq!(rounds.len(), WRITERS * KEYS, "a scan has missed keys: {rounds:?}");
            let of_one_round = |chunk: &[u32]| chunk.iter().all(|round| *round == chunk[0]);
            assert!(rounds.chunks(KEYS).all(of_one_round), "half a batch: {rounds:?}");
        }
    };
    let write = |writer| {
        spawn(&stage, move |stage| (2..=ROUNDS).for_each(|round| stage.write_round(writer, round)))
    };
    let mut threads: Vec<_> = (0..WRITERS).map(write).collect();
    threads.extend([
        spawn(&stage, scans),
        spawn(&stage, |stage| stage.db.flush().expect("flushes")),
        spawn(&stage, |stage| stage.db.compact().expect("merges")),
    ]);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    check_end(stage, ROUNDS);
}

/// The power goes at some moment, and a checkpoint is made at another: both have what was
/// acknowledged before.
fn a_crash_and_a_checkpoint(guard: GuardKind) {
    let stage = Stage::new(guard);
    let writer = |writer| {
        spawn(&stage, move |stage| (1..=ROUNDS).for_each(|round| stage.write_round(writer, round)))
    };
    let mut threads: Vec<_> = (0..WRITERS).map(writer).collect();
    let saved = move |disk: &Memory, path: &str, least: [u32; WRITERS]| {
        let environment = Environment::new().storage(Arc::new(disk.clone()));
        let options = options(guard).background(Background::Stepped);
        let db = Db::open_with(path, options, environment).expect("opens");
        for (writer, least) in least.into_iter().enumerate() {
            let round = scanned_round(db.range(key(writer, 0)..key(writer, KEYS)), 0);
            assert!(round >= least, "{path}: round {least} of writer {writer} is lost: {round}");
        }
        assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
    };
    threads.push(spawn(&stage, move |stage| {
        for fate in 0..2 {
            let least = std::array::from_fn(|writer| stage.least(writer));
            let crashed = stage.disk.crash(fate);
            saved(&crashed, "db", least);
        }
    }));
    threads.push(spawn(&stage, move |stage| {
        let least = std::array::from_fn(|writer| stage.least(writer));
        stage.db.checkpoint("copy").expect("a checkpoint");
        saved(&stage.disk, "copy", least);
    }));
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    check_end(stage, ROUNDS);
}

/// Two stores have one thread of each kind, and memory for writes that each alone fills: what one
/// writes has the other's memtable flushed. One is closed while the other goes on.
fn stores_that_share(guard: GuardKind) {
    let shared = ResourceOptions::new().write_memory_bytes(64 << 10).merge_threads(1);
    let resources = Resources::new(shared).expect("they make sense");
    let stages = [Stage::sharing(guard, &resources), Stage::sharing(guard, &resources)];
    let writer = |stage: &Arc<Stage>, writer| {
        spawn(stage, move |stage| (1..=ROUNDS).for_each(|round| stage.write_round(writer, round)))
    };
    let write = |stage| (0..WRITERS).map(move |number| writer(stage, number));
    let short: Vec<_> = write(&stages[0]).collect();
    let mut long: Vec<_> = write(&stages[1]).collect();
    long.push(spawn(&stages[1], |stage| read_on(stage, 2)));
    short.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let [short, other] = stages;
    // Else memtables that were asked for may be sealed while files are counted.
    short.db.flush().expect("flushes");
    check_end(short, ROUNDS);
    long.into_iter().for_each(|thread| thread.join().expect("no panic"));
    other.db.flush().expect("flushes");
    check_end(other, ROUNDS);
    assert_eq!(resources.stats().write_memory_bytes, 0);
}

/// Reads a value piece by piece, while it may be replaced and moved.
fn read_by_reader(stage: &Stage, turn: usize) {
    let (writer, number) = (turn % WRITERS, turn % KEYS);
    let least = stage.least(writer);
    let mut round = 0;
    if let Some(mut reader) = stage.db.get_reader(key(writer, number)).expect("reads") {
        let mut value = Vec::new();
        reader.read_to_end(&mut value).expect("its file stays");
        assert_eq!(value.len(), stage.value_bytes);
        round = round_of(&value);
    }
    assert!(round >= least, "a reader has missed round {least} of writer {writer}: {round}");
}

/// Files of values come and go with each write and merge: none goes before its value is published,
/// or while somebody reads it.
fn values_apart(guard: GuardKind) {
    let stage = Stage::of_values_apart(guard);
    let writer = |writer| {
        spawn(&stage, move |stage| (1..=ROUNDS).for_each(|round| stage.write_round(writer, round)))
    };
    let mut threads: Vec<_> = (0..WRITERS).map(writer).collect();
    threads.extend([
        spawn(&stage, |stage| read_on(stage, 2)),
        spawn(&stage, |stage| (0..6).for_each(|turn| read_by_reader(stage, turn))),
        spawn(&stage, |stage| stage.db.compact().expect("merges")),
    ]);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    check_end(stage, ROUNDS);
}

/// A counter that is read for update, in both of two accounts that are locked against the order by
/// one thread; and a writer that knows of no lock.
fn locked_keys(guard: GuardKind) {
    let stage = Stage::new(guard);
    let number = |value: Option<Value>| value.map_or(0, |value| round_of(&value));
    let add = move |db: &Db, keys: [&'static str; 2]| {
        db.run(|transaction| {
            for key in keys {
                let before = number(transaction.get_for_update(key)?);
                transaction.put(key, (before + 1).to_be_bytes())?;
            }
            Ok(())
        })
    };
    let orders = [["a", "b"], ["b", "a"]];
    let adders = orders.map(|keys| {
        spawn(&stage, move |stage| {
            (0..ROUNDS).for_each(|_| add(&stage.db, keys).expect("adds"));
        })
    });
    // With one lock there is nothing to run again.
    let counts = [(); 2].map(|()| {
        spawn(&stage, move |stage| {
            for _ in 0..ROUNDS {
                let transaction = stage.db.transaction();
                let before = number(transaction.get_for_update("c").expect("locks"));
                transaction.put("c", (before + 1).to_be_bytes()).expect("puts");
                transaction.commit().expect("it has the lock");
            }
        })
    });
    let puts = spawn(&stage, move |stage| {
        for _ in 0..ROUNDS {
            let before = stage.db.update("c", |old| {
                let before = old.map_or(0, round_of);
                Update::Put((before + 1).to_be_bytes().to_vec())
            });
            before.expect("updates");
            stage.db.put("d", "x").expect("puts");
        }
    });
    let all = adders.into_iter().chain(counts).chain([puts]);
    all.for_each(|thread| thread.join().expect("no panic"));
    let found = ["a", "b", "c"].map(|key| number(stage.db.get(key).expect("reads")));
    assert_eq!(found, [2 * ROUNDS, 2 * ROUNDS, 3 * ROUNDS]);
    let stage = Arc::into_inner(stage).expect("its threads have ended");
    stage.db.close().expect("closes");
}

/// Threads that put the same keys if they are absent, while memtables are sealed and flushed.
fn absent_keys(guard: GuardKind) {
    const KEYS: usize = 12;
    let stage = Stage::new(guard);
    let counts: Arc<[AtomicU32; KEYS]> = Arc::default();
    let put = |thread: u8| {
        let counts = Arc::clone(&counts);
        spawn(&stage, move |stage| {
            for (key, count) in counts.iter().enumerate() {
                let found = stage.db.put_if_absent([key as u8], [thread; 150]).expect("writes");
                count.fetch_add(u32::from(found.is_none()), Ordering::SeqCst);
            }
        })
    };
    [1, 2, 3].map(put).into_iter().for_each(|thread| thread.join().expect("no panic"));
    let counts: Vec<u32> = counts.iter().map(|count| count.load(Ordering::SeqCst)).collect();
    assert_eq!(counts, [1; KEYS], "each key was absent for one thread");
    let stage = Arc::into_inner(stage).expect("its threads have ended");
    stage.db.close().expect("closes");
}

fn run(scheduler: impl Scheduler + 'static, scene: fn(GuardKind), guard: GuardKind) {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    Runner::new(scheduler, config).run(move || scene(guard));
}

/// Random schedules, and such as starve a thread for long (PCT), under guards of each kind.
fn explore(scene: fn(GuardKind), seed: u64) {
    let count = std::env::var("TROMMEL_SCHEDULES").ok().and_then(|count| count.parse().ok());
    let count: usize = count.unwrap_or(120);
    let guards = [
        GuardKind::Grf,
        GuardKind::Table(kinds::BLOCKED_BLOOM),
        GuardKind::Locator(kinds::CHUCKY),
        GuardKind::Locator(kinds::REMIX),
        GuardKind::Locator(kinds::REMIX_SORTED),
    ];
    for guard in guards {
        run(RandomScheduler::new_from_seed(seed, count), scene, guard);
        run(PctScheduler::new_from_seed(seed, PCT_DEPTH, count), scene, guard);
    }
    let least = 2 * guards.len() as u64 * count as u64;
    let [flushes, merges] = [&FLUSHES, &MERGES].map(|done| done.load(Ordering::Relaxed));
    assert!(flushes >= 2 * least && merges >= least, "{flushes} flushes, {merges} merges");
}

#[test]
fn no_schedule_of_writers_readers_flushes_and_merges_is_wrong() {
    explore(writers_readers_flushes_and_merges, 1);
}

#[test]
fn no_schedule_of_gets_beside_merges_is_wrong() {
    explore(gets_beside_merges, 4);
}

#[test]
fn no_schedule_of_long_scans_and_compactions_is_wrong() {
    explore(long_scans_and_compactions, 2);
}

#[test]
fn no_schedule_of_a_crash_and_a_checkpoint_is_wrong() {
    explore(a_crash_and_a_checkpoint, 3);
}

/// Under one guard alone: what is looked at does not depend on it.
fn explore_under_one_guard(scene: fn(GuardKind), seed: u64) {
    let count = std::env::var("TROMMEL_SCHEDULES").ok().and_then(|count| count.parse().ok());
    let (count, guard) = (count.unwrap_or(300), GuardKind::Grf);
    run(RandomScheduler::new_from_seed(seed, count), scene, guard);
    run(PctScheduler::new_from_seed(seed, PCT_DEPTH, count), scene, guard);
}

#[test]
fn no_schedule_of_locked_keys_is_wrong() {
    explore_under_one_guard(locked_keys, 6);
}

#[test]
fn no_schedule_of_absent_keys_is_wrong() {
    explore_under_one_guard(absent_keys, 7);
}

#[test]
fn no_schedule_of_values_apart_is_wrong() {
    explore_under_one_guard(values_apart, 8);
}

#[test]
fn no_schedule_of_stores_that_share_is_wrong() {
    explore(stores_that_share, 5);
}
