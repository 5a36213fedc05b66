//! Writers, readers, scanners and snapshots beside flushes and merges on threads: what is read is
//! never older than what was there when the question was asked, nor older than what the same reader
//! has read before.
//! ```text
//! writer     begun[k] = v -> put, delete, delete_range, put_ttl, ingest -> done[k] = v
//! reader     least = done[k] -> get -> most = begun[k]
//!            least <= what was read <= most, and it never goes back
//! ```
//! Versions of a key count up; those that five divides are deletions. A writer has its keys to
//! itself.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use trommel::Environment;
use trommel::options::Granularity;
use trommel::storage::Memory;
use trommel::{Background, Batch, Db, GuardKind, Options, Snapshot, SyncPolicy};
use trommel_guards::kinds;

const WRITERS: usize = 2;
/// Keys of a writer.
const KEYS: usize = 400;
const WRITES: u64 = 2500;
const DELETION: u64 = 5;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

fn key(number: usize) -> [u8; 4] {
    (number as u32 * 77).to_be_bytes()
}

fn number_of(key: &[u8]) -> usize {
    u32::from_be_bytes(key.try_into().expect("a key of this test")) as usize / 77
}

fn value(version: u64) -> Vec<u8> {
    let mut value = version.to_be_bytes().to_vec();
    value.resize(8 + (version % 40) as usize, 0);
    value
}

fn version_of(value: &[u8]) -> u64 {
    u64::from_be_bytes(*value.first_chunk().expect("a value of this test"))
}

/// What writers have begun and done: a version for each key.
struct Versions {
    begun: Vec<AtomicU64>,
    done: Vec<AtomicU64>,
}

impl Versions {
    fn new() -> Self {
        let zeros = || (0..WRITERS * KEYS).map(|_| AtomicU64::new(0)).collect();
        Versions { begun: zeros(), done: zeros() }
    }

    /// The next version of a key that is, or is not, a deletion.
    fn begin(&self, number: usize, deletes: bool) -> u64 {
        let last = self.begun[number].load(Ordering::SeqCst);
        let next = match deletes {
            true => (last / DELETION + 1) * DELETION,
            false => last + 1 + u64::from((last + 1).is_multiple_of(DELETION)),
        };
        self.begun[number].store(next, Ordering::SeqCst);
        next
    }

    fn end(&self, numbers: impl Iterator<Item = usize>) {
        for number in numbers {
            let begun = self.begun[number].load(Ordering::SeqCst);
            self.done[number].store(begun, Ordering::SeqCst);
        }
    }

    fn all_done(&self) -> Vec<u64> {
        self.done.iter().map(|version| version.load(Ordering::SeqCst)).collect()
    }

    fn all_begun(&self) -> Vec<u64> {
        self.begun.iter().map(|version| version.load(Ordering::SeqCst)).collect()
    }
}

/// The least version that a reader may have seen that found this, of those from `least` to `most`.
/// None found: a deletion.
#[track_caller]
fn seen(found: Option<u64>, least: u64, most: u64) -> u64 {
    let version = found.unwrap_or_else(|| least.div_ceil(DELETION) * DELETION);
    assert!(
        least <= version && version <= most,
        "{found:?} was read, of versions {least} to {most}"
    );
    version
}

struct Stage {
    db: Db,
    versions: Versions,
    writing: AtomicUsize,
}

impl Stage {
    fn write(&self, lane: usize, seed: u64) {
        let mut random = Random(seed);
        let own = lane * KEYS..(lane + 1) * KEYS;
        for _ in 0..WRITES {
            let number = own.start + random.below(KEYS);
            let some = number..(number + 1 + random.below(20)).min(own.end);
            match random.below(40) {
                0 => self.delete_range(some.clone()),
                1 => self.ingest(some.clone()),
                2 => self.write_batch(some.clone()),
                3..8 => self.delete(number),
                8..12 => {
                    let version = self.versions.begin(number, false);
                    let hour = Duration::from_secs(3600);
                    self.db.put_ttl(key(number), value(version), hour).expect("puts");
                }
                _ => {
                    let version = self.versions.begin(number, false);
                    self.db.put(key(number), value(version)).expect("puts");
                }
            }
            self.versions.end(some.chain([number]));
        }
        self.writing.fetch_sub(1, Ordering::SeqCst);
    }

    fn delete(&self, number: usize) {
        self.versions.begin(number, true);
        self.db.delete(key(number)).expect("deletes");
    }

    fn delete_range(&self, numbers: std::ops::Range<usize>) {
        numbers.clone().for_each(|number| _ = self.versions.begin(number, true));
        self.db.delete_range(key(numbers.start), key(numbers.end)).expect("deletes");
    }

    fn ingest(&self, numbers: std::ops::Range<usize>) {
        let entries: Vec<_> =
            numbers.map(|n| (key(n), value(self.versions.begin(n, false)))).collect();
        self.db.ingest(entries).expect("ingests");
    }

    fn write_batch(&self, numbers: std::ops::Range<usize>) {
        let mut batch = Batch::new();
        for number in numbers {
            if number.is_multiple_of(3) {
                self.versions.begin(number, true);
                batch.delete(key(number));
            } else {
                batch.put(key(number), value(self.versions.begin(number, false)));
            }
        }
        self.db.write(batch).expect("writes");
    }

    fn is_over(&self) -> bool {
        self.writing.load(Ordering::SeqCst) == 0
    }

    fn read(&self, seed: u64) {
        let mut random = Random(seed);
        let mut read_before = vec![0; WRITERS * KEYS];
        while !self.is_over() {
            let number = random.below(WRITERS * KEYS);
            let least = self.versions.done[number].load(Ordering::SeqCst).max(read_before[number]);
            let found = self.db.get(key(number)).expect("gets").map(|value| version_of(&value));
            let most = self.versions.begun[number].load(Ordering::SeqCst);
            read_before[number] = seen(found, least, most);
        }
    }

    fn scan(&self, seed: u64) {
        let mut random = Random(seed);
        let mut held: Vec<(Snapshot, Vec<(usize, u64)>)> = Vec::new();
        while !self.is_over() {
            let least = self.versions.all_done();
            let snapshot = self.db.snapshot();
            let most = self.versions.all_begun();
            let found = forward(&snapshot);
            let mut versions = vec![None; WRITERS * KEYS];
            found.iter().for_each(|(number, version)| versions[*number] = Some(*version));
            for (number, version) in versions.into_iter().enumerate() {
                seen(version, least[number], most[number]);
            }
            held.push((snapshot, found));
            let (snapshot, found) = &held[random.below(held.len())];
            assert_eq!(forward(snapshot), *found, "later, forward");
            assert_eq!(backward(snapshot), *found, "later, backward");
            let number = random.below(WRITERS * KEYS);
            let got = snapshot.get(key(number)).expect("gets").map(|value| version_of(&value));
            let scanned = found.iter().find(|(other, _)| *other == number);
            assert_eq!(got, scanned.map(|(_, version)| *version), "later, key {number}");
            if held.len() > 3 {
                held.swap_remove(random.below(4));
            }
        }
    }
}

fn forward(snapshot: &Snapshot) -> Vec<(usize, u64)> {
    let entries = snapshot.range(..).map(|entry| entry.expect("reads"));
    entries.map(|(key, value)| (number_of(&key), version_of(&value))).collect()
}

fn backward(snapshot: &Snapshot) -> Vec<(usize, u64)> {
    let entries = snapshot.range(..).rev().map(|entry| entry.expect("reads"));
    let mut found: Vec<_> =
        entries.map(|(key, value)| (number_of(&key), version_of(&value))).collect();
    found.reverse();
    found
}

fn open(disk: &Memory, guard: GuardKind, granularity: Granularity) -> Db {
    let options = Options::new()
        .guard(guard)
        .granularity(granularity)
        .size_ratio(3)
        .write_buffer_bytes(8 << 10)
        .block_bytes(256)
        .table_bytes(4096)
        .partition_bytes(4096)
        .block_cache_bytes(1 << 14)
        .sync(SyncPolicy::Never)
        .background(Background::Threads(2));
    let environment = Environment::new().storage(Arc::new(disk.clone()));
    Db::open_with(Path::new("db"), options, environment).expect("opens")
}

/// All that was written is there, and nothing else.
fn check(db: &Db, versions: &Versions) {
    let found = forward(&db.snapshot());
    let is_put = |(_, version): &(usize, u64)| !version.is_multiple_of(DELETION);
    let done: Vec<_> = versions.all_done().into_iter().enumerate().filter(is_put).collect();
    assert_eq!(found, done);
    assert_eq!(db.verify().expect("verifies").damage, [""; 0]);
}

#[test]
fn what_is_read_beside_writers_and_merges_never_goes_back() {
    let chucky = GuardKind::Locator(kinds::CHUCKY);
    let kinds = [GuardKind::Grf, GuardKind::Open, chucky];
    for (turn, guard) in (0..).zip(kinds) {
        for granularity in Granularity::ALL {
            let disk = Memory::new();
            let (db, versions) = (open(&disk, guard, granularity), Versions::new());
            let stage = Stage { db, versions, writing: AtomicUsize::new(WRITERS) };
            std::thread::scope(|scope| {
                let stage = &stage;
                (0..WRITERS).for_each(|lane| {
                    scope.spawn(move || stage.write(lane, 100 * turn + lane as u64));
                });
                scope.spawn(|| stage.read(100 * turn + 50));
                scope.spawn(|| stage.scan(100 * turn + 60));
            });
            let Stage { db, versions, .. } = stage;
            check(&db, &versions);
            assert!(
                db.stats().expect("open").merges > 10,
                "{guard}, {granularity}: {}",
                db.stats().expect("open").merges
            );
            db.close().expect("closes");
            check(&open(&disk, guard, granularity), &versions);
        }
    }
}
