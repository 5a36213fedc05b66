//! Stress tests like RocksDB's `db_stress` and `db_crashtest`, through doors. Threads write and
//! read keys whose state is known. The process is killed in the middle, and another one continues.
//! ```text
//! block     keys that belong together, under one lock: each answer about them is known
//! expected  | answers so far (8) | for each key: current version (8), version in flight (8) |
//!           a file, so that writes in flight are known after a kill
//! ```
//! Invariant: of the keys that one write changes, all have the old version, or all have the new
//! one.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rocksdb::{Error, IteratorMode, SstFileWriter, TransactionDBOptions, WriteBatch};

use super::{FAMILIES, Numbers, families, options, wait};
use crate::{
    Base, ColumnFamily, Db, DoorDb, OptimisticTransactionDb, ReadOptions, RocksDb,
    RocksOptimisticDb, RocksTransactionDb, Snapshot, Transaction, TransactionDb,
};

const FOLDER: &str = "TROMMEL_STRESSED_FOLDER";
const KIND: &str = "TROMMEL_STRESSED_KIND";
/// A file that exists if a process was killed between both phases of a commit.
const PREPARED: &str = "prepared";
const THREADS: u64 = 4;
const BLOCKS: usize = 400;
const KEYS: usize = 16;
/// Kills of each kind of database, and answers that all of its processes compare together.
const KILLS: u64 = 20;
const ANSWERS: u64 = 1_000_000;
const SNAPSHOTS_MAX: usize = 3;
/// The version of an absent key.
const ABSENT: u64 = 0;
/// Nothing is in flight.
const SETTLED: u64 = u64::MAX;

type Versions = [u64; KEYS];

fn prefix(block: usize) -> String {
    format!("user{:05}{block:03}", Numbers(block as u64).below(100_000))
}

fn key(block: usize, at: usize) -> Vec<u8> {
    format!("{}row{at:02}", prefix(block)).into_bytes()
}

fn value(version: u64) -> Vec<u8> {
    version.to_be_bytes().repeat(1 + (version % 9) as usize)
}

fn version(value: Option<&[u8]>) -> u64 {
    let Some(found) = value else { return ABSENT };
    let version = u64::from_be_bytes(*found.first_chunk().expect("it has a version"));
    assert_eq!(found, self::value(version), "a whole value");
    version
}

/// The expected state of a database, in a file.
struct Expected(fs::File);

impl Expected {
    fn open(folder: &Path) -> Expected {
        let mut options = fs::File::options();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(folder.join("expected")).expect("a file");
        let len = 8 + 16 * (BLOCKS * KEYS) as u64;
        if file.metadata().expect("its length").len() < len {
            file.set_len(len).expect("longer");
            let expected = Expected(file);
            (0..BLOCKS * KEYS).for_each(|at| expected.tell(at, ABSENT, SETTLED));
            return expected;
        }
        Expected(file)
    }

    fn number(&self, place: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, place).expect("read");
        u64::from_le_bytes(bytes)
    }

    fn answers(&self) -> u64 {
        self.number(0)
    }

    fn add_answers(&self, more: u64) {
        let all = self.answers() + more;
        self.0.write_all_at(&all.to_le_bytes(), 0).expect("written");
    }

    fn of(&self, key: usize) -> (u64, u64) {
        let place = 8 + 16 * key as u64;
        (self.number(place), self.number(place + 8))
    }

    fn tell(&self, key: usize, now: u64, next: u64) {
        let bytes = [now.to_le_bytes(), next.to_le_bytes()].concat();
        self.0.write_all_at(&bytes, 8 + 16 * key as u64).expect("written");
    }
}

/// Several keys that change at once, and their new values. None: a deletion.
type Changes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// What each kind of database does in its own way.
trait Kind: Base {
    fn open_in(folder: &Path) -> DoorDb<Self>;

    /// Changes some keys of a block at once. `way` selects how.
    fn change(
        db: &DoorDb<Self>,
        family: &ColumnFamily<'_>,
        changes: &Changes,
        way: u64,
    ) -> Result<(), Error>;

    /// Ends transactions that were prepared before the process was killed. Returns whether there
    /// were any.
    fn end_prepared(_db: &DoorDb<Self>) -> bool {
        false
    }

    fn compact(_db: &DoorDb<Self>, _family: &ColumnFamily<'_>) {}
}

impl Kind for RocksDb {
    fn open_in(folder: &Path) -> DoorDb<Self> {
        Db::open_cf_descriptors(&options(), folder, families()).expect("it opens")
    }

    fn change(
        db: &DoorDb<Self>,
        family: &ColumnFamily<'_>,
        changes: &Changes,
        way: u64,
    ) -> Result<(), Error> {
        let is_put = changes.iter().all(|(_, value)| value.is_some());
        if is_put && way.is_multiple_of(8) {
            return ingest(db, family, changes);
        }
        if let [(first, None), .., (last, None)] = &changes[..]
            && changes.iter().all(|(_, value)| value.is_none())
        {
            let end = [&last[..], b"\0"].concat();
            return db.delete_range_cf(family, first, &end);
        }
        let mut batch = WriteBatch::default();
        for (key, value) in changes {
            match value {
                Some(value) => batch.put_cf(family, key, value),
                None => batch.delete_cf(family, key),
            }
        }
        db.write(batch)
    }

    fn compact(db: &DoorDb<Self>, family: &ColumnFamily<'_>) {
        db.compact_range_cf(family, None::<&[u8]>, None::<&[u8]>);
    }
}

fn ingest(db: &Db, family: &ColumnFamily<'_>, changes: &Changes) -> Result<(), Error> {
    static FILES: AtomicU64 = AtomicU64::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let path = db.path().with_file_name(format!("{}-{number}.sst", std::process::id()));
    let options = options();
    let mut file = SstFileWriter::create(&options);
    file.open(&path)?;
    for (key, value) in changes {
        file.put(key, value.as_deref().unwrap_or_default())?;
    }
    file.finish()?;
    db.ingest_external_file_cf(family, vec![&path])?;
    fs::remove_file(path).expect("it was copied");
    Ok(())
}

fn change_in<B: Base>(
    transaction: &Transaction<'_, B>,
    family: &ColumnFamily<'_>,
    changes: &Changes,
) -> Result<(), Error> {
    changes.iter().try_for_each(|(key, value)| match value {
        Some(value) => transaction.put_cf(family, key, value),
        None => transaction.delete_cf(family, key),
    })
}

impl Kind for RocksOptimisticDb {
    fn open_in(folder: &Path) -> DoorDb<Self> {
        let opened = OptimisticTransactionDb::open_cf_descriptors(&options(), folder, families());
        opened.expect("it opens")
    }

    fn change(
        db: &DoorDb<Self>,
        family: &ColumnFamily<'_>,
        changes: &Changes,
        _way: u64,
    ) -> Result<(), Error> {
        let transaction = db.transaction();
        change_in(&transaction, family, changes)?;
        transaction.commit()
    }

    fn compact(db: &DoorDb<Self>, family: &ColumnFamily<'_>) {
        db.compact_range_cf(family, None::<&[u8]>, None::<&[u8]>);
    }
}

impl Kind for RocksTransactionDb {
    fn open_in(folder: &Path) -> DoorDb<Self> {
        let locks = TransactionDBOptions::default();
        let opened = TransactionDb::open_cf_descriptors(&options(), &locks, folder, families());
        opened.expect("it opens")
    }

    fn change(
        db: &DoorDb<Self>,
        family: &ColumnFamily<'_>,
        changes: &Changes,
        way: u64,
    ) -> Result<(), Error> {
        let transaction = db.transaction();
        change_in(&transaction, family, changes)?;
        if !way.is_multiple_of(3) {
            transaction.set_name(&way.to_be_bytes())?;
            transaction.prepare()?;
            // Sometimes longer, so that some processes are killed between both phases.
            if way.is_multiple_of(64) {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        transaction.commit()
    }

    fn end_prepared(db: &DoorDb<Self>) -> bool {
        let prepared = db.prepared_transactions();
        let is_any = !prepared.is_empty();
        for (at, transaction) in prepared.into_iter().enumerate() {
            if at % 2 == 0 {
                transaction.commit().expect("it was prepared");
            } else {
                transaction.rollback().expect("it was prepared");
            }
        }
        is_any
    }
}

/// A database, and its expected state.
struct World<B: Kind> {
    db: DoorDb<B>,
    expected: Expected,
    blocks: Vec<Mutex<Versions>>,
    version: AtomicU64,
}

/// A locked block, whose keys nobody else changes.
struct Held<'w, B: Kind> {
    world: &'w World<B>,
    block: usize,
    family: ColumnFamily<'w>,
    versions: MutexGuard<'w, Versions>,
}

impl<B: Kind> World<B> {
    /// Opens a database, and checks that each write in flight took effect as a whole or not at all.
    fn open(folder: &Path) -> World<B> {
        let db = B::open_in(&folder.join("db"));
        if B::end_prepared(&db) {
            fs::write(folder.join(PREPARED), b"").expect("written");
        }
        let expected = Expected::open(folder);
        let mut version = 1;
        let blocks = (0..BLOCKS).map(|block| {
            let family = db.cf_handle(FAMILIES[block % 2]).expect("it was opened");
            let mut versions = [ABSENT; KEYS];
            let mut outcomes = [0; 2];
            for (at, found) in versions.iter_mut().enumerate() {
                let (now, next) = expected.of(block * KEYS + at);
                let value = db.get_cf(&family, key(block, at)).expect("read");
                *found = self::version(value.as_deref());
                assert!([now, next].contains(found), "{block} {at}: {found} for {now} or {next}");
                if next != SETTLED {
                    outcomes[usize::from(*found == next)] += 1;
                    expected.tell(block * KEYS + at, *found, SETTLED);
                }
                version = version.max(now).max(if next == SETTLED { 0 } else { next });
            }
            assert!(outcomes.contains(&0), "{block}: half of a write is there");
            Mutex::new(versions)
        });
        let blocks = blocks.collect();
        World { db, expected, blocks, version: AtomicU64::new(version + 1) }
    }

    fn hold(&self, block: usize) -> Held<'_, B> {
        let family = self.db.cf_handle(FAMILIES[block % 2]).expect("it was opened");
        let versions = self.blocks[block].lock().expect("nobody panicked");
        Held { world: self, block, family, versions }
    }

    /// Checks all keys, by every way to read.
    fn check_all(&self) {
        for block in 0..BLOCKS {
            let held = self.hold(block);
            held.check_keys(&ReadOptions::default());
            held.check_range(0, KEYS, ReadOptions::default());
        }
    }

    /// Writes and reads until the process ends.
    fn work(&self, thread: u64) -> ! {
        let mut numbers = Numbers(thread ^ u64::from(std::process::id()) << 20);
        let mut snapshots: Vec<(Snapshot<'_, B>, usize, Versions)> = Vec::new();
        loop {
            let mut answers = 0;
            for _ in 0..64 {
                let mut held = self.hold(numbers.below(BLOCKS as u64) as usize);
                answers += match numbers.below(100) {
                    0..30 => held.check_keys(&ReadOptions::default()),
                    30..60 => {
                        let from = numbers.below(KEYS as u64) as usize;
                        let to = from + 1 + numbers.below((KEYS - from) as u64) as usize;
                        held.check_range(from, to, ReadOptions::default())
                    }
                    60..98 => held.change(&mut numbers),
                    98 if snapshots.len() < SNAPSHOTS_MAX => {
                        snapshots.push((self.db.snapshot(), held.block, *held.versions));
                        0
                    }
                    _ => snapshots.pop().map_or(0, |(snapshot, block, versions)| {
                        drop(held);
                        self.check_at(&snapshot, block, &versions)
                    }),
                };
            }
            self.expected_add(answers);
        }
    }

    fn expected_add(&self, answers: u64) {
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().expect("nobody panicked");
        self.expected.add_answers(answers);
    }

    /// Checks what a snapshot shows of a block, whatever was written since.
    fn check_at(&self, snapshot: &Snapshot<'_, B>, block: usize, versions: &Versions) -> u64 {
        let family = self.db.cf_handle(FAMILIES[block % 2]).expect("it was opened");
        for (at, expected) in versions.iter().enumerate() {
            let found = snapshot.get_cf(&family, key(block, at)).expect("read");
            assert_eq!(version(found.as_deref()), *expected, "{block} {at} at a snapshot");
        }
        KEYS as u64
    }
}

impl<B: Kind> Held<'_, B> {
    fn db(&self) -> &DoorDb<B> {
        &self.world.db
    }

    /// Checks each key of the block, and an absent key beside each.
    fn check_keys(&self, options: &ReadOptions) -> u64 {
        let keys: Vec<Vec<u8>> = (0..KEYS).map(|at| key(self.block, at)).collect();
        for (key, expected) in keys.iter().zip(&*self.versions) {
            let found = self.db().get_cf_opt(&self.family, key, options).expect("read");
            assert_eq!(version(found.as_deref()), *expected, "{key:?}");
            let beside = [&key[..], b"x"].concat();
            let found = self.db().get_cf_opt(&self.family, beside, options).expect("read");
            assert_eq!(found, None, "beside {key:?}");
        }
        let found = self.db().multi_get_cf_opt(keys.iter().map(|key| (&self.family, key)), options);
        for (found, expected) in found.into_iter().zip(&*self.versions) {
            assert_eq!(version(found.expect("read").as_deref()), *expected);
        }
        3 * KEYS as u64
    }

    /// Checks all keys from one place on and before another, forwards and backwards.
    fn check_range(&self, from: usize, to: usize, mut options: ReadOptions) -> u64 {
        let bounds = key(self.block, from)..key(self.block, to);
        let expected: Vec<(Vec<u8>, u64)> = (from..to)
            .map(|at| (key(self.block, at), self.versions[at]))
            .filter(|(_, version)| *version != ABSENT)
            .collect();
        for is_back in [false, true] {
            options.set_iterate_range(bounds.clone());
            let mode = if is_back { IteratorMode::End } else { IteratorMode::Start };
            let options = std::mem::take(&mut options);
            let rows = self.db().iterator_cf_opt(&self.family, options, mode);
            let mut found: Vec<(Vec<u8>, u64)> = rows
                .map(|row| row.expect("read"))
                .map(|(key, value)| (key.to_vec(), version(Some(&value))))
                .collect();
            if is_back {
                found.reverse();
            }
            assert_eq!(found, expected, "{bounds:?}");
        }
        2
    }

    /// Writes in one of many ways.
    fn change(&mut self, numbers: &mut Numbers) -> u64 {
        let version = self.world.version.fetch_add(1, Ordering::Relaxed);
        let at = numbers.below(KEYS as u64) as usize;
        let (db, family, one) = (&self.world.db, self.family.clone(), key(self.block, at));
        match numbers.below(200) {
            0..60 => self.write(&[at], version, |_| db.put_cf(&family, one, value(version))),
            60..90 => self.write(&[at], ABSENT, |_| db.delete_cf(&family, one)),
            90..110 if self.versions[at] == ABSENT => {
                self.write(&[at], version, |_| db.merge_cf(&family, one, value(version)));
            }
            110..130 => {
                let to = at + 1 + numbers.below((KEYS - at) as u64) as usize;
                let places: Vec<usize> = (at..to).collect();
                self.write(&places, ABSENT, |changes| B::change(db, &family, changes, version));
            }
            198 if numbers.below(8) == 0 => db.flush_cf(&family).expect("flushed"),
            199 if numbers.below(16) == 0 => B::compact(db, &family),
            _ => {
                let places: Vec<usize> = (0..KEYS).filter(|_| numbers.below(3) == 0).collect();
                self.write(&places, version, |changes| B::change(db, &family, changes, version));
            }
        }
        0
    }

    /// Gives keys a version, or deletes them. The file says so before and after.
    fn write(
        &mut self,
        places: &[usize],
        version: u64,
        write: impl FnOnce(&Changes) -> Result<(), Error>,
    ) {
        let changed = |at: &&usize| self.versions[**at] != version;
        let places: Vec<usize> = places.iter().filter(changed).copied().collect();
        let number = |at: usize| self.block * KEYS + at;
        let expected = &self.world.expected;
        let new = (version != ABSENT).then(|| value(version));
        let changes = places.iter().map(|at| (key(self.block, *at), new.clone())).collect();
        places.iter().for_each(|at| expected.tell(number(*at), self.versions[*at], version));
        let is_written = places.is_empty() || write(&changes).is_ok();
        for at in places {
            if is_written {
                self.versions[at] = version;
            }
            expected.tell(self.block * KEYS + at, self.versions[at], SETTLED);
        }
    }
}

fn run<B: Kind>(folder: &Path) -> ! {
    let world = World::<B>::open(folder);
    world.check_all();
    wait(&world.db);
    world.check_all();
    let state = world.db.door_state();
    assert!(state.denied > 1000, "the door denies: {state:?}");
    fs::write(folder.join("ready"), b"").expect("written");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let world = &world;
            scope.spawn(move || {
                // The parent process learns of a panic at once.
                let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    world.work(thread);
                }));
                std::process::exit(if worked.is_err() { 1 } else { 2 });
            });
        }
    });
    unreachable!("threads end with the process")
}

/// The process that is killed. As a test it does nothing.
#[test]
fn the_process_that_is_stressed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    match std::env::var(KIND).as_deref() {
        Ok("optimistic") => run::<RocksOptimisticDb>(folder),
        Ok("locks") => run::<RocksTransactionDb>(folder),
        _ => run::<RocksDb>(folder),
    }
}

fn start(folder: &Path, kind: &str) -> Child {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args(["--exact", "tests::stress::the_process_that_is_stressed", "--nocapture"]);
    command.env(FOLDER, folder).env(KIND, kind).stdout(Stdio::null());
    command.spawn().expect("it starts")
}

/// Returns whether a process was killed between both phases of a commit.
fn stress(kind: &str) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let expected = Expected::open(folder.path());
    for kill in 1..=KILLS {
        let ready = folder.path().join("ready");
        let _ = fs::remove_file(&ready);
        let mut child = start(folder.path(), kind);
        while !ready.exists() || expected.answers() < kill * ANSWERS / KILLS {
            std::thread::sleep(Duration::from_millis(1));
            let ended = child.try_wait().expect("its state");
            assert_eq!(ended, None, "{kind}: an answer was wrong, see above");
        }
        std::thread::sleep(Duration::from_micros(700 * kill));
        child.kill().expect("killed");
        child.wait().expect("ended");
    }
    folder.path().join(PREPARED).exists()
}

#[test]
fn every_answer_is_right_through_kills() {
    stress("plain");
}

#[test]
fn every_answer_is_right_through_kills_with_optimistic_transactions() {
    stress("optimistic");
}

#[test]
fn every_answer_is_right_through_kills_with_locks_and_two_phases() {
    assert!(stress("locks"), "some were killed between both phases");
}
