//! The victim process. It opens the store, writes from several threads while a keeper does
//! everything else, closes the store, and begins again, until it is killed.
//! ```text
//! open -> writer, writer, ...  (each its lane; reads back)  -> close or drop -> open again -> ...
//!         keeper: flush, merge all, checkpoint, scan, verify                    other options
//! ```
//! Invariant: a write is reported when it is acknowledged, and the lane's next write begins after
//! that. Neighbouring slots are in different key spaces, so most batches cover all key spaces. Any
//! error ends the process: a victim that was not killed has failed.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trommel::Environment;
use trommel::options::{DirectIo, Granularity, Overlap};
use trommel::{Background, Batch, Db, Expiry, Options, SyncPolicy};

use super::history::{Change, LANES, Name, SLOTS, bytes_of, key_of};
use super::spaces::{SPACES, Spaces, UNLOGGED, has_unlogged, space_of};
use super::watched::Watched;
use super::wire::{Activity, Message, Teller, nobody_listens};
use crate::keys::rng::{Rng, scramble};
use crate::stress::setup::{compression, policy};

/// The folder of the store, in the folder of the test.
pub(super) const STORE: &str = "store";
/// The folders of a session's checkpoints: `copy-0`, `copy-1`, ...
pub(super) const COPY: &str = "copy-";

/// A deliberate fault, which shows that the test can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Several writes are reported as acknowledged before any of them is made.
    EarlyAck,
    /// A batch is written change by change.
    SplitBatch,
    /// Some writes are reported but not made.
    LostWrite,
}

impl Lie {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Lie::EarlyAck => "early-ack",
            Lie::SplitBatch => "split-batch",
            Lie::LostWrite => "lost-write",
        }
    }

    /// Returns the lie with this name. None: there is no such lie.
    pub fn named(name: &str) -> Option<Self> {
        [Lie::EarlyAck, Lie::SplitBatch, Lie::LostWrite].into_iter().find(|lie| lie.name() == name)
    }
}

/// The plan of one victim process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VictimPlan {
    /// The folder of the test.
    pub folder: PathBuf,
    /// The seed of the test.
    pub seed: u64,
    /// Which process of the test this is; the first is 1.
    pub session: u32,
    /// A lie that the test must find, for tests of the kill test itself.
    pub lie: Option<Lie>,
}

/// Writes that a liar reports at once, before it makes the first of them.
const EARLY: u32 = 16;
/// One write in this many is ingested instead of logged, if it deletes nothing.
const INGEST_EVERY: u32 = 23;
/// The writes of a lane between two marks of how far they are visible.
const MARK_EVERY: u32 = 8;
/// A liar loses one write in this many.
const LOST_EVERY: u32 = 50;

/// Runs the victim process, which reports its progress to `pipe`. Returns only with an error.
///
/// # Errors
/// The store's error, a wrong answer of it, or a closed pipe.
pub fn run_victim(plan: &VictimPlan, pipe: File) -> crate::error::Result<()> {
    let victim = Victim {
        plan,
        teller: Arc::new(Teller(pipe)),
        next: Default::default(),
        copies: AtomicU32::new(0),
        marks: Mutex::default(),
    };
    let mut rng = Rng::new(plan.seed ^ scramble(u64::from(plan.session)));
    loop {
        victim.open_and_write(&mut rng)?;
    }
}

struct Victim<'p> {
    plan: &'p VictimPlan,
    teller: Arc<Teller>,
    /// The number of the next write of each lane.
    next: [AtomicU32; LANES],
    copies: AtomicU32,
    /// A lane, how many of its writes were made, and the newest sequence number visible at that
    /// time.
    marks: Mutex<Vec<(u8, u32, u64)>>,
}

/// Draws the options of an opening: buffers are small, so that flushes and merges are frequent.
pub(crate) fn options(rng: &mut Rng) -> Options {
    let interval = SyncPolicy::Interval(Duration::from_millis(5));
    Options::new()
        .size_ratio([2, 3, 4, 10][rng.place(4)])
        .policy(policy(rng))
        .write_buffer_bytes([8 << 10, 32 << 10, 32 << 10, 256 << 10][rng.place(4)])
        .guard(trommel_guards::all_guards()[rng.place(trommel_guards::all_guards().len())])
        .block_bytes([512, 4096][rng.place(2)])
        .block_cache_bytes([0, 1 << 16, 1 << 20][rng.place(3)])
        .table_bytes([1 << 14, 1 << 17, 1 << 20][rng.place(3)])
        .granularity(Granularity::ALL[rng.place(Granularity::ALL.len())])
        .partition_bytes([1 << 14, 1 << 17, 1 << 20][rng.place(3)])
        .sync([SyncPolicy::Always, SyncPolicy::Always, SyncPolicy::Never, interval][rng.place(4)])
        .background(Background::Threads(1 + rng.place(2)))
        .merge_piece_bytes(1 << 14)
        .direct([DirectIo::default(), DirectIo::ALL][rng.place(2)])
        .overlap(Overlap::ALL[rng.place(Overlap::ALL.len())])
        .compression(compression(rng))
        .last_level_compression(Some(compression(rng)))
        .dictionary_bytes([0, 1 << 10, 1 << 14][rng.place(3)])
        .value_threshold([0, 256, 256, 1024][rng.place(4)])
        .value_garbage_share([0.05, 0.3, 0.9][rng.place(3)])
        .value_file_bytes([1 << 12, 1 << 16, 1 << 20][rng.place(3)])
        .mapped_log(rng.below(2) == 0)
}

impl Victim<'_> {
    fn open_and_write(&self, rng: &mut Rng) -> crate::error::Result<()> {
        let options = options(rng);
        let store = self.plan.folder.join(STORE);
        let spaces = self.teller.during(Activity::Open, 0, || {
            let storage = Arc::new(Watched(Arc::clone(&self.teller)));
            let environment = Environment::new().storage(storage);
            let db = Db::open_with(store, options, environment)?;
            Ok(Spaces::open(db, rng, has_unlogged(self.plan.seed))?)
        })?;
        let (writers, seed) = (1 + rng.place(LANES), rng.next_u64());
        let writes = [30, 300, 3000][rng.place(3)];
        self.teller
            .during(Activity::Write, 0, || self.write_all(&spaces, writers, writes, seed))?;
        let drops = rng.below(3) == 0;
        self.teller.during(Activity::Close, 0, || {
            if drops {
                drop(spaces);
                return Ok(());
            }
            Ok(spaces.db.close()?)
        })
    }

    /// Runs `writers` writers that make `writes` writes each, with the keeper beside them.
    fn write_all(
        &self,
        spaces: &Spaces,
        writers: usize,
        writes: u32,
        seed: u64,
    ) -> crate::error::Result<()> {
        let at_work = AtomicUsize::new(writers);
        std::thread::scope(|scope| {
            let keeper = scope.spawn(|| self.keep(spaces, seed, &at_work));
            let write = |lane| {
                let done = self.write_lane(spaces, lane, writes);
                at_work.fetch_sub(1, Ordering::SeqCst);
                done
            };
            let writers: Vec<_> =
                (0..writers).map(|lane| scope.spawn(move || write(lane))).collect();
            let mut ended = writers.into_iter().chain([keeper]).map(|thread| thread.join());
            let panicked = || Err(wrong("a thread has panicked".into()));
            ended.try_for_each(|end| end.unwrap_or_else(|_| panicked()))
        })
    }

    fn write_lane(&self, spaces: &Spaces, lane: usize, writes: u32) -> crate::error::Result<()> {
        let first = self.next[lane].load(Ordering::Relaxed);
        for number in first..first + writes {
            let is_early = self.plan.lie == Some(Lie::EarlyAck);
            if is_early && (number - first).is_multiple_of(EARLY) {
                (0..EARLY.min(first + writes - number)).try_for_each(|_| self.acknowledge(lane))?;
            }
            let name = Name { session: self.plan.session, lane: lane as u8, number };
            let changes = name.changes(self.plan.seed);
            self.write(spaces, lane, number, &changes)?;
            if !is_early {
                self.acknowledge(lane)?;
            }
            if number.is_multiple_of(MARK_EVERY) && has_unlogged(self.plan.seed) {
                let visible = spaces.db.snapshot().sequence();
                lock(&self.marks).push((lane as u8, number + 1, visible));
            }
            if number.is_multiple_of(7) && self.plan.lie.is_none() {
                read_back(spaces, lane, &changes)?;
            }
        }
        self.next[lane].store(first + writes, Ordering::Relaxed);
        Ok(())
    }

    fn acknowledge(&self, lane: usize) -> crate::error::Result<()> {
        self.teller.tell(Message::Done { lane: lane as u8 }).map_err(nobody_listens)
    }

    fn write(
        &self,
        spaces: &Spaces,
        lane: usize,
        number: u32,
        changes: &[Change],
    ) -> crate::error::Result<()> {
        match self.plan.lie {
            Some(Lie::LostWrite) if number.is_multiple_of(LOST_EVERY) => return Ok(()),
            Some(Lie::SplitBatch) => {
                for change in changes {
                    spaces.db.write(batch_of(spaces, lane, std::slice::from_ref(change)))?;
                }
                return Ok(());
            }
            _ => {}
        }
        let space = space_of(changes[0].slot);
        let loads = |change: &Change| change.value != 0 && space_of(change.slot) == space;
        if number.is_multiple_of(INGEST_EVERY) && changes.iter().all(loads) {
            // The last change of a slot wins.
            let entries: BTreeMap<_, _> =
                changes.iter().map(|change| (key_of(lane, change.slot), change.value)).collect();
            let entries = entries.into_iter().map(|(key, value)| (key, bytes_of(value)));
            spaces.of(changes[0].slot).ingest(entries)?;
            return Ok(());
        }
        if let [Change { slot, value }] = changes
            && number.is_multiple_of(3)
            && *value != 0
            && slot % 3 != 2
        {
            let value = bytes_of(*value);
            let length = value.len() as u64;
            spaces.of(*slot).put_reader(key_of(lane, *slot), length, &value[..])?;
            return Ok(());
        }
        let (db, batch) = (&spaces.db, batch_of(spaces, lane, changes));
        if number.is_multiple_of(20) {
            db.write_synced(batch)?
        } else {
            db.write(batch)?
        }
        Ok(())
    }

    /// Does everything except writing, as long as there are writers.
    fn keep(&self, spaces: &Spaces, seed: u64, at_work: &AtomicUsize) -> crate::error::Result<()> {
        let (mut rng, db) = (Rng::new(seed), &spaces.db);
        while at_work.load(Ordering::SeqCst) > 0 {
            self.tell_durable(spaces)?;
            match rng.below(16) {
                0..3 => db.flush()?,
                3 => spaces.all()[rng.place(SPACES)].compact()?,
                // A liar makes no checkpoints: the files after the kill must reveal the lie.
                4..7 if self.plan.lie.is_none() => self.checkpoint(spaces)?,
                7 => db.sync()?,
                8 => verify(db)?,
                9 => both_ways(spaces)?,
                10 => spaces.all()[rng.place(SPACES)].flush()?,
                _ => std::thread::sleep(Duration::from_micros(rng.below(10_000))),
            }
        }
        Ok(())
    }

    /// Reports how many writes are durable without a log.
    fn tell_durable(&self, spaces: &Spaces) -> crate::error::Result<()> {
        let Some(through) = spaces.all()[UNLOGGED].stats()?.durable_through else { return Ok(()) };
        let mut marks = lock(&self.marks);
        let (durable, rest): (Vec<_>, Vec<_>) =
            marks.drain(..).partition(|(_, _, visible)| *visible <= through);
        *marks = rest;
        for (lane, count, _) in durable {
            let message = Message::Durable { lane, count: count.into() };
            self.teller.tell(message).map_err(nobody_listens)?;
        }
        Ok(())
    }

    fn checkpoint(&self, spaces: &Spaces) -> crate::error::Result<()> {
        let number = self.copies.fetch_add(1, Ordering::Relaxed);
        let folder = self.plan.folder.join(format!("{COPY}{number}"));
        self.teller
            .during(Activity::Checkpoint, number.into(), || Ok(spaces.db.checkpoint(folder)?))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wrong(what: String) -> crate::error::LabError {
    crate::error::LabError::Victim(what)
}

/// Returns a batch. Keys are deleted in every possible way: one by one, as a range of one key, and
/// by an expiry in the past. Other keys expire in the far future.
fn batch_of(spaces: &Spaces, lane: usize, changes: &[Change]) -> Batch {
    let (passed, never) = (Expiry::at_milliseconds(1), Expiry::at_milliseconds(u64::MAX));
    let mut batch = Batch::new();
    for change in changes {
        let key = spaces.enter(&mut batch, lane, change.slot);
        match (change.value, change.slot % 3) {
            (0, 0) => batch.delete(key),
            (0, 1) => batch.delete_range(&key, [&key[..], b"\0"].concat()),
            (0, _) => batch.put_with_expiry(key, bytes_of(1), passed),
            (value, 2) => batch.put_with_expiry(key, bytes_of(value), never),
            (value, _) => batch.put(key, bytes_of(value)),
        };
    }
    batch
}

/// Checks that the last change of a batch is visible: no other writer writes its key.
fn read_back(spaces: &Spaces, lane: usize, changes: &[Change]) -> crate::error::Result<()> {
    let Some(last) = changes.last() else { return Ok(()) };
    match spaces.has(lane, last.slot, last.value)? {
        true => Ok(()),
        false => Err(wrong(format!(
            "slot {} of lane {lane}: what was just written is not read",
            last.slot
        ))),
    }
}

fn verify(db: &Db) -> crate::error::Result<()> {
    let damage = db.verify()?.damage;
    if damage.is_empty() { Ok(()) } else { Err(wrong(format!("verify: {}", damage.join("; ")))) }
}

/// Checks that scans of a snapshot in both directions give the same keys.
fn both_ways(spaces: &Spaces) -> crate::error::Result<()> {
    let snapshot = spaces.db.snapshot();
    for space in spaces.all() {
        let part = snapshot.of(space);
        let keys = |entry: trommel::Result<trommel::KeyValue>| entry.map(|(key, _)| key.to_vec());
        let forward: Vec<_> = part.range(..).map(keys).collect::<trommel::Result<_>>()?;
        let mut back: Vec<_> = part.range(..).rev().map(keys).collect::<trommel::Result<_>>()?;
        back.reverse();
        if forward != back || forward.len() > LANES * SLOTS {
            return Err(wrong("a scan backward has other keys than forward".into()));
        }
    }
    Ok(())
}

/// Returns the folder of a checkpoint of the current session.
pub(super) fn copy_folder(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{COPY}{number}"))
}
