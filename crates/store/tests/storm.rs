//! A storm: writers, readers, flushes, compactions and faults at once, then a crash, then again with
//! other options. What was acknowledged is there after each; what a snapshot saw stays.
//! ```text
//! writer w   round 1, 2, 3, ... of its own keys, a batch each     the last acknowledged round is known
//! crash      each writer's keys are all of one round, not older than the last acknowledged one
//! ```
//! Invariant: a writer's keys are written by its batches only, so they are always of one round.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use trommel::{
    Background, Batch, Db, Environment, Fault, GuardKind, Memory, Options, Snapshot, Sync,
};

const WRITERS: usize = 3;
const KEYS: u32 = 12;

fn options(generation: usize) -> Options {
    Options {
        guard: GuardKind::ALL[generation % GuardKind::ALL.len()],
        size_ratio: [2, 4, 3, 2][generation % 4],
        write_buffer_bytes: [1 << 10, 1 << 15, 1 << 12][generation % 3],
        block_bytes: 256,
        table_bytes: 4096,
        block_cache_bytes: 1 << 14,
        sync: Sync::Always,
        background: Background::Threads(1 + generation % 2),
        ..Options::default()
    }
}

fn open(disk: &Memory, generation: usize) -> Db {
    let environment = Environment { storage: Arc::new(disk.clone()), ..Environment::default() };
    Db::open_with(Path::new("db"), options(generation), environment).expect("opens")
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

/// One round of a writer: every other key is deleted and put in the same batch, or the other way round.
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

type Found = BTreeMap<Vec<u8>, Vec<u8>>;

/// The round that a writer's entries are of. Panics if they are of several, or some are missing.
fn check_round(writer: usize, entries: &Found) -> u32 {
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
fn read(scan: trommel::Scan, mut seed: u32) -> Found {
    let mut scan = scan;
    let mut found = Found::new();
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

fn write_rounds(db: &Db, writer: usize, rounds: std::ops::Range<u32>, done: &AtomicU32) {
    for round in rounds {
        if db.write(round_of(writer, round)).is_ok() {
            done.store(round, Ordering::SeqCst);
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

fn disturb(db: &Db, disk: &Memory, over: &AtomicBool, faults: bool) {
    for turn in 0.. {
        if over.load(Ordering::SeqCst) {
            disk.no_space(false);
            return;
        }
        if faults && turn % 3 == 0 {
            disk.fail_at(turn % 23, if turn % 2 == 0 { Fault::Io } else { Fault::NoSpace });
        }
        disk.no_space(faults && turn % 8 == 5);
        let done = if turn % 4 == 0 { db.compact() } else { db.flush() };
        assert!(faults || done.is_ok(), "{done:?}");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// One generation of the store; the disk as a crash in the middle of it leaves it.
fn live(disk: &Memory, generation: usize, done: &[AtomicU32; WRITERS], faults: bool) -> Memory {
    let db = open(disk, generation);
    let over = AtomicBool::new(false);
    let mut first = 0;
    for (writer, done) in done.iter().enumerate() {
        let round = check_round(writer, &read(db.range(bounds(writer)), 1));
        let least = done.load(Ordering::SeqCst);
        assert!(round >= least, "round {least} of writer {writer} is lost: {round}");
        first = first.max(round + 1);
    }
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
    let rounds = first..first + 25;
    std::thread::scope(|scope| {
        let (db, over) = (&db, &over);
        (0..2).for_each(|seed| drop(scope.spawn(move || read_on(db, over, faults, seed))));
        (0..2).for_each(|_| drop(scope.spawn(move || disturb(db, disk, over, faults))));
        let writer = |(writer, done)| {
            let rounds = rounds.clone();
            scope.spawn(move || write_rounds(db, writer, rounds, done))
        };
        let writers: Vec<_> = done.iter().enumerate().map(writer).collect();
        writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
        // The power goes while flushes and merges are under way.
        let crashed = disk.crash(generation as u64);
        over.store(true, Ordering::SeqCst);
        crashed
    })
}

fn storm(generations: usize, faults: bool) {
    let mut disk = Memory::new();
    let done = [const { AtomicU32::new(0) }; WRITERS];
    for generation in 0..generations {
        disk = live(&disk, generation, &done, faults);
    }
    live(&disk, generations, &done, false);
}

#[test]
fn nothing_is_lost_in_a_storm() {
    storm(6, false);
}

#[test]
fn nothing_is_lost_in_a_storm_of_faults() {
    storm(12, true);
}
