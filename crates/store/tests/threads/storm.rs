//! A storm: writers, readers, flushes, compactions, checkpoints and faults at once, then a crash,
//! then again with other options. What was acknowledged is there after each; what a snapshot saw
//! stays.
//! ```text
//! writer w     round 1, 2, 3, ... of its own keys, a batch each     begun, then acknowledged
//! crash        each writer's keys are all of one round, not older than the last acknowledged one
//! checkpoint   the same: acknowledged before it was asked for <= round <= begun when it was made
//! ```
//! Invariant: a writer's keys are written by its batches only, so they are always of one round.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use trommel::Environment;
use trommel::storage::{Disk, Memory, Storage};
use trommel::testing::Fault;
use trommel::{Background, Batch, Db, GuardKind, Options, Snapshot, SyncPolicy};
use trommel_guards::kinds;

const WRITERS: usize = 3;
const KEYS: u32 = 12;
/// Rounds of a writer in one generation of the store, and between two checkpoints.
const ROUNDS: u32 = 25;
const ROUNDS_PER_COPY: u32 = 6;
const DIR: &str = "db";
const COPIES: &str = "copies";

/// How far a writer has come.
#[derive(Default)]
struct Lane {
    /// The newest round that was handed to the store.
    begun: AtomicU32,
    /// The newest round that was acknowledged.
    done: AtomicU32,
}

type Lanes = [Lane; WRITERS];

/// One of each kind of guard: there are fewer generations than guards.
const GUARDS: [GuardKind; 10] = [
    GuardKind::Grf,
    GuardKind::Locator(kinds::CHUCKY),
    GuardKind::Table(kinds::BLOCKED_BLOOM),
    GuardKind::Locator(kinds::REMIX),
    GuardKind::Locator(kinds::REMIX_SORTED),
    GuardKind::GrfHuffman,
    GuardKind::Table(kinds::ELASTIC),
    GuardKind::Open,
    GuardKind::Table(kinds::SURF_REAL),
    GuardKind::Table(kinds::CELL),
];

fn options(generation: usize) -> Options {
    Options::new()
        .guard(GUARDS[generation % GUARDS.len()])
        .size_ratio([2, 4, 3, 2][generation % 4])
        .write_buffer_bytes([1 << 10, 1 << 15, 1 << 12][generation % 3])
        .block_bytes(256)
        .table_bytes(4096)
        .block_cache_bytes(1 << 14)
        .sync(SyncPolicy::Always)
        .background(Background::Threads(1 + generation % 2))
        .merge_piece_bytes(4096)
}

/// Where the store is: on the simulated disk, or on the real one, which neither fails nor crashes.
struct TestDisk {
    memory: Option<Memory>,
    root: PathBuf,
}

impl TestDisk {
    fn simulated(memory: Memory) -> TestDisk {
        TestDisk { memory: Some(memory), root: PathBuf::new() }
    }

    fn real(root: &Path) -> TestDisk {
        TestDisk { memory: None, root: root.to_path_buf() }
    }

    fn storage(&self) -> Arc<dyn Storage> {
        match &self.memory {
            Some(memory) => Arc::new(memory.clone()),
            None => Arc::new(Disk),
        }
    }

    /// What another process, or the next one, finds.
    fn left(&self, leave: impl FnOnce(&Memory) -> Memory) -> TestDisk {
        match &self.memory {
            Some(memory) => TestDisk::simulated(leave(memory)),
            None => TestDisk::real(&self.root),
        }
    }
}

fn open(disk: &TestDisk, dir: &str, options: Options) -> trommel::Result<Db> {
    let environment = Environment::new().storage(disk.storage());
    Db::open_with(disk.root.join(dir), options, environment)
}

/// Keys that are prefixes of each other, that differ in zeros at their ends, and long ones.
fn key(writer: usize, number: u32) -> Vec<u8> {
    let mut key = vec![b'0' + writer as u8];
    match number % 3 {
        0 => key.extend(std::iter::repeat_n(0, number as usize)),
        1 => key.extend(number.to_be_bytes()),
        _ => {
            key.push(0xff);
            // The last one is as long as a key may be.
            let len = if number == 11 { 64 << 10 } else { 700 * number as usize };
            key.resize(len.max(key.len()), b'k');
        }
    }
    key
}

/// One round of a writer: every other key is deleted and put in the same batch, or the other way
/// round.
fn round_of(writer: usize, round: u32) -> Batch {
    let mut batch = Batch::new();
    for number in 0..KEYS {
        let key = key(writer, number);
        let mut value = round.to_be_bytes().to_vec();
        // Some values are larger than the write buffer.
        value.resize(if round % 17 == 3 && number == 0 { 40_000 } else { 4 + number as usize }, 7);
        batch.put(&key, b"not this one").delete(&key);
        // In every fifth round all keys but the first vanish.
        if number == 0 || round % 5 != 4 {
            batch.put(&key, value);
        }
    }
    batch
}

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// The round that a writer's entries are of. Panics if they are of several, or some are missing.
fn check_round(writer: usize, entries: &Contents) -> u32 {
    let Some(first) = entries.get(&key(writer, 0)) else {
        assert!(entries.is_empty(), "half a batch");
        return 0;
    };
    let round = u32::from_be_bytes(first[..4].try_into().expect("four bytes"));
    let expected = if round % 5 == 4 { 1 } else { KEYS };
    assert_eq!(entries.len() as u32, expected, "half a batch of round {round}");
    assert!(entries.values().all(|value| value[..4] == first[..4]), "two rounds at once");
    round
}

/// Reads a writer's keys: a scan from both ends, by turns that `seed` decides.
fn read(scan: trommel::Scan, mut seed: u32) -> Contents {
    let mut scan = scan;
    let mut found = Contents::new();
    loop {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let entry = if seed >> 31 == 0 { scan.next() } else { scan.next_back() };
        let Some(entry) = entry else { return found };
        let (key, value) = entry.expect("reads");
        assert!(found.insert(key, value.to_vec()).is_none(), "a key twice");
    }
}

fn bounds(writer: usize) -> std::ops::Range<Vec<u8>> {
    vec![b'0' + writer as u8]..vec![b'1' + writer as u8]
}

fn write_rounds(db: &Db, writer: usize, rounds: std::ops::Range<u32>, lane: &Lane) {
    for round in rounds {
        lane.begun.store(round, Ordering::SeqCst);
        if db.write(round_of(writer, round)).is_ok() {
            lane.done.store(round, Ordering::SeqCst);
        }
    }
}

fn read_on(db: &Db, over: &AtomicBool, faults: bool, seed: u32) {
    let mut held: Option<(Snapshot, usize, u32)> = None;
    for turn in seed.. {
        let writer = turn as usize % WRITERS;
        if over.load(Ordering::SeqCst) {
            return;
        }
        if faults {
            // A read may meet the fault: it must say so, and not panic.
            let _ = db.range(bounds(writer)).rev().find(Result::is_err);
            continue;
        }
        let snapshot = db.snapshot();
        let round = check_round(writer, &read(snapshot.range(bounds(writer)), turn));
        if let Some((snapshot, writer, round)) = &held {
            let again = check_round(*writer, &read(snapshot.range(bounds(*writer)), turn + 1));
            assert_eq!(again, *round, "a snapshot has changed");
        }
        if turn % 4 == 0 {
            held = Some((snapshot, writer, round));
        }
    }
}

fn disturb(db: &Db, disk: &TestDisk, over: &AtomicBool, faults: bool) {
    let harm = |what: &dyn Fn(&Memory)| disk.memory.iter().for_each(what);
    for turn in 0.. {
        if over.load(Ordering::SeqCst) {
            harm(&|disk| disk.no_space(false));
            return;
        }
        if faults && turn % 3 == 0 {
            let fault = if turn % 2 == 0 { Fault::Io } else { Fault::NoSpace };
            harm(&|disk| disk.fail_at(turn % 23, fault));
        }
        harm(&|disk| disk.no_space(faults && turn % 8 == 5));
        let done = if turn % 4 == 0 { db.compact() } else { db.flush() };
        assert!(faults || done.is_ok(), "{done:?}");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Makes checkpoints, and looks at each as another process finds it, or as it is after a power cut.
fn copy_on(
    db: &Db,
    disk: &TestDisk,
    generation: usize,
    over: &AtomicBool,
    lanes: &Lanes,
    faults: bool,
) {
    for turn in 0.. {
        let least = lanes.each_ref().map(|lane| lane.done.load(Ordering::SeqCst));
        let dir = format!("{COPIES}/{generation}-{turn}");
        let made = db.checkpoint(disk.root.join(&dir));
        assert!(faults || made.is_ok(), "{made:?}");
        let found =
            disk.left(|disk| if turn % 2 == 0 { disk.crash(turn as u64) } else { disk.kill() });
        let is_complete = check_copy(&found, &dir, generation + turn + 1, &least, lanes);
        assert!(is_complete || made.is_err(), "checkpoint {dir} is acknowledged and not there");
        // Not counted by `done`: that stays where it is while writes fail.
        let next = lanes[0].begun.load(Ordering::SeqCst) + ROUNDS_PER_COPY;
        while lanes[0].begun.load(Ordering::SeqCst) < next {
            if over.load(Ordering::SeqCst) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

/// Panics if the folder opens as a store without what was acknowledged before, or with more than
/// was begun. Gives whether it opens.
fn check_copy(
    disk: &TestDisk,
    dir: &str,
    seed: usize,
    least: &[u32; WRITERS],
    lanes: &Lanes,
) -> bool {
    let options = options(seed).create_if_missing(false);
    let Ok(copy) = open(disk, dir, options) else { return false };
    for (writer, &least) in least.iter().enumerate() {
        let round = check_round(writer, &read(copy.range(bounds(writer)), seed as u32));
        let most = lanes[writer].begun.load(Ordering::SeqCst);
        let fits = (least..=most).contains(&round);
        assert!(fits, "{dir}: round {round} of writer {writer}, not in {least} to {most}");
    }
    assert_eq!(copy.verify().expect("verifies").damage, [""; 0], "{dir}");
    true
}

/// The crash may have come while a checkpoint was made: it is refused, or holds one round of each
/// writer.
fn check_copies_cut_short(disk: &TestDisk, generation: usize, lanes: &Lanes) {
    let names = disk.storage().list(&disk.root.join(COPIES)).unwrap_or_default();
    let of_generation = format!("{generation}-");
    for name in names.iter().filter(|name| name.starts_with(&of_generation)) {
        let dir = format!("{COPIES}/{name}");
        check_copy(disk, &dir, generation, &[0; WRITERS], lanes);
    }
}

/// One generation of the store; the disk as a crash in the middle of it leaves it.
fn live(disk: &TestDisk, generation: usize, lanes: &Lanes, faults: bool) -> TestDisk {
    let db = open(disk, DIR, options(generation)).expect("opens");
    let over = AtomicBool::new(false);
    let mut first = 0;
    for (writer, lane) in lanes.iter().enumerate() {
        let round = check_round(writer, &read(db.range(bounds(writer)), 1));
        let least = lane.done.load(Ordering::SeqCst);
        assert!(round >= least, "round {least} of writer {writer} is lost: {round}");
        first = first.max(round + 1);
    }
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
    let rounds = first..first + ROUNDS;
    std::thread::scope(|scope| {
        let (db, over) = (&db, &over);
        (0..2).for_each(|seed| drop(scope.spawn(move || read_on(db, over, faults, seed))));
        (0..2).for_each(|_| drop(scope.spawn(move || disturb(db, disk, over, faults))));
        scope.spawn(move || copy_on(db, disk, generation, over, lanes, faults));
        let writer = |(writer, lane)| {
            let rounds = rounds.clone();
            scope.spawn(move || write_rounds(db, writer, rounds, lane))
        };
        let writers: Vec<_> = lanes.iter().enumerate().map(writer).collect();
        writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
        // The power goes while flushes and merges are under way.
        let crashed = disk.left(|disk| disk.crash(generation as u64));
        over.store(true, Ordering::SeqCst);
        crashed
    })
}

fn storm(mut disk: TestDisk, generations: usize, faults: bool) {
    let lanes = Lanes::default();
    for generation in 0..generations {
        disk = live(&disk, generation, &lanes, faults);
        check_copies_cut_short(&disk, generation, &lanes);
    }
    live(&disk, generations, &lanes, false);
}

#[test]
fn nothing_is_lost_in_a_storm() {
    storm(TestDisk::simulated(Memory::new()), 6, false);
}

#[test]
fn nothing_is_lost_in_a_storm_of_faults() {
    storm(TestDisk::simulated(Memory::new()), 12, true);
}

/// Each generation ends by letting go of the store, in the middle of its flushes and merges.
#[test]
fn nothing_is_lost_in_a_storm_on_the_real_disk() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    storm(TestDisk::real(folder.path()), 3, false);
}
