//! Writers, readers and scans at once, which wait wherever they may overtake each other.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rocksdb::{ColumnFamilyDescriptor, SstFileWriter, WriteBatch};

use super::{Numbers, count, count_from, options, wait};
use crate::pause::{self, Point};
use crate::{Db, DoorOptions, ReadOptions};

const WRITERS: u64 = 3;
const READERS: u64 = 2;
/// The least number of checks of a run, and of denials and scans together.
const CHECKED_LEAST: u64 = 51;
const WORKED_LEAST: u64 = 6;
/// A busy machine takes longer than a run is meant to last.
const PATIENCE: Duration = Duration::from_secs(120);

fn key(writer: u64, at: u64) -> Vec<u8> {
    let mut key = Numbers(at).next().to_be_bytes().to_vec();
    key.push(writer as u8);
    key
}

/// A key that was present for a moment only.
fn gone(writer: u64, at: u64) -> Vec<u8> {
    [b"x", &key(writer, at)[..]].concat()
}

struct World<'a> {
    db: &'a Db,
    /// The folder of files that are ingested.
    scratch: &'a Path,
    /// How many keys each writer has written.
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
                // Rarely, and more rarely the longer a scan takes: until one has ended, nothing is
                // denied.
                6 if writer == 0 && at > 1000 && (at - 6).is_power_of_two() => {
                    let put = |inner: &crate::RocksDb| inner.put(key(writer, at), b"value");
                    self.db.unguarded(put).expect("written");
                    at += 1;
                }
                3 if writer == 1 && at % 256 == 3 => {
                    self.ingest((at..at + 5).map(|at| key(writer, at)).collect());
                    at += 5;
                }
                5 => {
                    self.db.merge(key(writer, at), b"value").expect("written");
                    at += 1;
                }
                _ => {
                    self.db.put(key(writer, at), b"value").expect("written");
                    self.come_and_go(&gone(writer, at), at);
                    at += 1;
                }
            }
            self.written[writer as usize].store(at, Ordering::Release);
        }
    }

    /// Writes a key and deletes it again. A scan may see it in between.
    fn come_and_go(&self, key: &[u8], at: u64) {
        self.db.put(key, b"").expect("written");
        if !at.is_multiple_of(16) {
            return self.db.delete(key).expect("written");
        }
        let family = self.db.cf_handle("default").expect("there is one");
        let end = [key, b"\0"].concat();
        self.db.delete_range_cf(&family, key, &end).expect("written");
    }

    fn ingest(&self, mut keys: Vec<Vec<u8>>) {
        let path = self.scratch.join("some.sst");
        let options = options();
        let mut file = SstFileWriter::create(&options);
        keys.sort();
        file.open(&path).expect("a file");
        keys.iter().for_each(|key| file.put(key, b"value").expect("written"));
        file.finish().expect("written");
        self.db.ingest_external_file(vec![path]).expect("ingested");
    }

    /// Finds everything that is known to be written, the newest keys above all.
    fn read(&self, reader: u64) {
        let mut numbers = Numbers(reader);
        while !self.is_over.load(Ordering::Relaxed) {
            let writer = numbers.below(WRITERS);
            let written = self.written[writer as usize].load(Ordering::Acquire);
            let Some(last) = written.checked_sub(1) else { continue };
            let back = if numbers.below(2) == 0 { 3 } else { written };
            let at = last - numbers.below(back.min(written));
            let (key, gone) = (key(writer, at), gone(writer, at));
            let end = [&key[..], b"\0"].concat();
            let is_found = match numbers.below(7) {
                0 => count(self.db, &key, &end) == 1,
                1 => count_from(self.db, &key, &end, ReadOptions::default()) == 1,
                2 => {
                    let mut options = ReadOptions::default();
                    options.set_iterate_upper_bound(&end[..]);
                    let mut rows = self.db.raw_iterator_opt(options);
                    rows.seek(&key);
                    rows.valid()
                }
                3 => self.db.snapshot().get(&key).expect("read").is_some(),
                4 => {
                    let found = self.db.multi_get([&gone, &key]);
                    let [gone, found] = &found[..] else { panic!("two answers") };
                    assert_eq!(gone.as_ref().expect("read"), &None, "it was deleted");
                    found.as_ref().expect("read").is_some()
                }
                5 => {
                    assert_eq!(self.db.get(&gone).expect("read"), None, "it was deleted");
                    true
                }
                _ => self.db.get(&key).expect("read").is_some(),
            };
            assert!(is_found, "{key:?} of writer {writer} was written");
            self.checked.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn run(points: &[Point], lasts: Duration) -> (u64, u64) {
    let [folder, scratch] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let door = DoorOptions { may_sleep: false, ..DoorOptions::default() };
    let families = [ColumnFamilyDescriptor::new("default", options())];
    let db = Db::open_with(&options(), folder.path(), families, None, door).expect("it opens");
    wait(&db);
    let world = World {
        db: &db,
        scratch: scratch.path(),
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

/// A single test, since pauses apply to all threads.
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
