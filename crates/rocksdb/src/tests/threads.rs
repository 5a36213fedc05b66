//! Writers, readers and scans at once; they wait where they may overtake each other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rocksdb::{ColumnFamilyDescriptor, WriteBatch};

use super::{Numbers, count, count_from, options, wait};
use crate::pause::{self, Point};
use crate::{Db, DoorOptions, ReadOptions};

const WRITERS: u64 = 3;
const READERS: u64 = 2;
/// What a run checks, and how often its door denies or is scanned for, at the least.
const CHECKED_LEAST: u64 = 51;
const WORKED_LEAST: u64 = 6;
/// A busy machine takes longer than a run is meant to last.
const PATIENCE: Duration = Duration::from_secs(120);

fn key(writer: u64, at: u64) -> Vec<u8> {
    let mut key = Numbers(at).next().to_be_bytes().to_vec();
    key.push(writer as u8);
    key
}

struct World<'a> {
    db: &'a Db,
    /// Of each writer, how many of its keys are written.
    written: [AtomicU64; WRITERS as usize],
    is_over: AtomicBool,
    checked: AtomicU64,
}

impl World<'_> {
    fn write(&self, writer: u64) {
        let mut at = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            match at % 8 {
                7 => {
                    let mut batch = WriteBatch::default();
                    (at..at + 5).for_each(|at| batch.put(key(writer, at), b"value"));
                    self.db.write(batch).expect("written");
                    at += 5;
                }
                // Seldom: each time, nothing is denied until a scan has ended.
                6 if writer == 0 && at % 1024 == 6 => {
                    let put = |inner: &crate::RocksDb| inner.put(key(writer, at), b"value");
                    self.db.unguarded(put).expect("written");
                    at += 1;
                }
                5 => {
                    self.db.merge(key(writer, at), b"value").expect("written");
                    at += 1;
                }
                _ => {
                    self.db.put(key(writer, at), b"value").expect("written");
                    // Comes and goes: a scan may see it, and one must not forget it.
                    self.db.put([b"x", &key(writer, at)[..]].concat(), b"").expect("written");
                    self.db.delete([b"x", &key(writer, at)[..]].concat()).expect("written");
                    at += 1;
                }
            }
            self.written[writer as usize].store(at, Ordering::Release);
        }
    }

    /// Whatever is known to be written is found, the last keys above all.
    fn read(&self, reader: u64) {
        let mut numbers = Numbers(reader);
        while !self.is_over.load(Ordering::Relaxed) {
            let writer = numbers.below(WRITERS);
            let written = self.written[writer as usize].load(Ordering::Acquire);
            let Some(last) = written.checked_sub(1) else { continue };
            let back = if numbers.below(2) == 0 { 3 } else { written };
            let key = key(writer, last - numbers.below(back.min(written)));
            let end = [&key[..], b"\0"].concat();
            let is_found = match numbers.below(4) {
                0 => count(self.db, &key, &end) == 1,
                1 => count_from(self.db, &key, &end, ReadOptions::default()) == 1,
                2 => {
                    let mut options = ReadOptions::default();
                    options.set_iterate_upper_bound(&end[..]);
                    let mut rows = self.db.raw_iterator_opt(options);
                    rows.seek(&key);
                    rows.valid()
                }
                _ => self.db.get(&key).expect("read").is_some(),
            };
            assert!(is_found, "{key:?} of writer {writer} was written");
            self.checked.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn run(points: &[Point], lasts: Duration) -> (u64, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let door = DoorOptions { may_sleep: false, ..DoorOptions::default() };
    let families = [ColumnFamilyDescriptor::new("default", options())];
    let db = Db::open_with(&options(), folder.path(), families, None, door).expect("it opens");
    wait(&db);
    let world = World {
        db: &db,
        written: Default::default(),
        is_over: AtomicBool::new(false),
        checked: AtomicU64::new(0),
    };
    pause::set(points, Duration::from_millis(2));
    std::thread::scope(|scope| {
        let world = &world;
        let mut all = Vec::new();
        (0..WRITERS).for_each(|writer| all.push(scope.spawn(move || world.write(writer))));
        (0..READERS).for_each(|reader| all.push(scope.spawn(move || world.read(reader))));
        let start = Instant::now();
        let is_done = || {
            let checked = world.checked.load(Ordering::Relaxed);
            let is_enough = checked >= CHECKED_LEAST && worked(world.db) >= WORKED_LEAST;
            start.elapsed() >= if is_enough { lasts } else { PATIENCE }
        };
        while !is_done() && !all.iter().any(|thread| thread.is_finished()) {
            std::thread::sleep(Duration::from_millis(3));
            world.db.shared().doors()[0].want_scan();
        }
        world.is_over.store(true, Ordering::Relaxed);
    });
    pause::set(&[], Duration::ZERO);
    (world.checked.into_inner(), worked(&db))
}

fn worked(db: &Db) -> u64 {
    let state = db.door_state();
    state.denied + state.scans
}

/// One test, since pauses are those of all threads.
#[test]
fn what_was_written_is_found_whoever_overtakes_whom() {
    let all = [
        Point::Noted,
        Point::Entered,
        Point::Rolled,
        Point::Scanned,
        Point::Looked,
        Point::Pinning,
    ];
    let one = all.map(|point| vec![point]);
    let some = [vec![], all.to_vec(), vec![Point::Noted, Point::Scanned]];
    for points in one.into_iter().chain(some) {
        let (checked, worked) = run(&points, Duration::from_millis(1500));
        assert!(
            checked >= CHECKED_LEAST && worked >= WORKED_LEAST,
            "{points:?}: {checked} checked, {worked}"
        );
    }
}
