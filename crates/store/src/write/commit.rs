//! Group commit: writers that wait together share one log record and one sync.
//! ```text
//! writer A --.
//! writer B ---+-> queue --> the first becomes leader: log, sync, memtable, publish --> all wake
//! writer C --'
//! ```
//! Writers that were just woken come back a moment later. A leader that is to sync waits for them,
//! for part of the time that a sync takes. Else a group of one and a group of all others would take
//! turns: two syncs instead of one. Where nothing is synced, a group takes a few microseconds, less
//! than to sleep and to be woken. So as many writers wait awake as there are processors beside the
//! leader's. More would take turns on them, which costs more than what they write. The others rest
//! for a moment that is many groups long, and are written by those that are awake.
//!
//! Invariants (ordering rule 1): one leader at a time. A group lies in one memtable and becomes
//! visible as a whole, after all of it is in the memtable. A memtable is sealed between groups
//! only.

use std::num::NonZero;
use std::time::Duration;

use crate::entries::batch::Batch;
use crate::entries::entry::Sequence;
use crate::error::{Error, Result};
use crate::files::unsynced::Unsynced;
use crate::storage::life::Life;
use crate::sync::{
    Arc, AtomicU64, Condvar, Mutex, MutexGuard, Ordering, lock, pause, try_lock, wait, wait_for,
    yield_now,
};
use crate::write::conflicts::Write;
use crate::write::engine::Engine;
use crate::write::giving_up;
use crate::write::key_locks::KeyLocks;

/// Bytes of one group at most, unless one batch alone is larger.
const GROUP_BYTES_MAX: usize = 1 << 20;

/// A sync that takes less is not worth waiting for others.
const SYNC_WORTH_SHARING: Duration = Duration::from_micros(50);
/// The longest that a leader waits for others.
const PATIENCE_MAX: Duration = Duration::from_millis(5);
/// Groups that do not wait for others after one has waited in vain.
const HURRIED_GROUPS: u32 = 8;

/// How often a writer looks whether a group has ended before it sleeps. (A model gains nothing by
/// more than a few.)
const LOOKS_MAX: u32 = if cfg!(any(loom, shuttle)) { 2 } else { 64 };

/// How long a writer rests that finds enough others awake: many times what it costs to sleep.
const REST: Duration = Duration::from_micros(100);

/// The queue of writers, and what only the leader touches.
pub(crate) struct Commit {
    queue: Mutex<Queue>,
    /// So many writers may wait awake.
    awake_max: usize,
    /// Groups that have ended. Who changes it holds the queue.
    ended: AtomicU64,
    /// Signalled when a leader has finished, if a writer sleeps.
    turn: Condvar,
    /// Signalled when all writers have come that a leader waits for.
    gathered: Condvar,
    writer: Mutex<Writer>,
    log_failure: LogFailure,
    /// Those that batches may write into.
    pub(crate) trees: Arc<Trees>,
    /// Keys that one alone may write.
    pub(crate) locks: Arc<KeyLocks>,
    /// Times that somebody was too late with a key, and looked at it anew.
    pub(crate) late: AtomicU64,
    /// What the writer has not synced.
    pub(crate) unsynced: Arc<Unsynced>,
    /// Threads that wait for the writer.
    pub(crate) missed: MissedCalls,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Arc<Waiting>>,
    leading: bool,
    /// Writers that look whether the leader has finished.
    awake: usize,
    /// Writers that sleep until a leader has finished.
    asleep: usize,
    /// The writers of the last group, and those that waited when it ended.
    recent: usize,
    /// How many writers the leader waits for.
    wanted: usize,
    /// How long the last group took that was synced.
    sync_time: Duration,
    /// So many groups do not wait for others.
    hurried: u32,
}

impl Queue {
    /// Whether more writers than `present` are likely to be there soon, and worth waiting for.
    fn expects_more_than(&self, present: usize) -> bool {
        self.recent > present && self.hurried == 0 && self.sync_time >= SYNC_WORTH_SHARING
    }
}

/// A write in the queue, and its result once a leader has written it.
struct Waiting {
    write: Write,
    sync: bool,
    result: Mutex<Option<Result<Sequence>>>,
}

impl Commit {
    pub(crate) fn new(log: Log, next: Sequence, life: Arc<Life>) -> Self {
        let log_failure = LogFailure::default();
        let unsynced = Arc::<Unsynced>::default();
        let trees = Arc::<Trees>::default();
        let writer = Writer::new(
            (log, next),
            Arc::clone(&trees),
            Arc::clone(&log_failure),
            Arc::clone(&unsynced),
        );
        let (turn, gathered) = (Condvar::new(), Condvar::new());
        Commit {
            queue: Mutex::default(),
            awake_max: processors().saturating_sub(1).max(1),
            ended: AtomicU64::new(0),
            turn,
            gathered,
            writer: Mutex::new(writer),
            log_failure,
            trees,
            locks: Arc::new(KeyLocks::new(life)),
            late: AtomicU64::new(0),
            unsynced,
            missed: MissedCalls::default(),
        }
    }

    /// What is wrong with the log, if something is.
    pub(crate) fn failure(&self) -> Option<String> {
        lock(&self.log_failure).clone()
    }

    /// Writes a batch. When it returns, readers see it; with `sync`, it survives any crash.
    #[cfg(test)]
    pub(crate) fn write(&self, engine: &Engine, batch: crate::Batch, sync: bool) -> Result<()> {
        self.write_if(engine, &mut Write::of(batch), sync).map(|_| ())
    }

    /// Writes a batch if conditions hold: `Conflict`, one does not. When it returns, readers see
    /// it; with `sync`, it survives any crash. Gives the number of its last write. What it is given
    /// may be empty then. It waits for locks of its keys; those of its holder stay.
    pub(crate) fn write_if(
        &self,
        engine: &Engine,
        write: &mut Write,
        sync: bool,
    ) -> Result<Sequence> {
        if giving_up::is_possible() {
            self.wait_for_room(engine, &write.batch)?;
        }
        match self.write_once(engine, write, sync) {
            Err(Error::LockTimeout { keyspace, key }) => {
                self.write_in_turn(engine, write, sync, (keyspace, key))
            }
            written => written,
        }
    }

    /// Waits until no key space that is written to stops its writers, or the caller gives up. Later
    /// it may not: others' writes are with its own then.
    pub(super) fn wait_for_room(&self, engine: &Engine, batch: &Batch) -> Result<()> {
        for keyspace in batch.all_keyspaces() {
            if keyspace == engine.keyspace {
                engine.wait_for_room()?;
            } else if let Some(other) = self.trees.get(keyspace) {
                other.wait_for_room()?;
            }
        }
        Ok(())
    }

    /// As above, but does not wait for locks: `LockTimeout`, and the write is as it was.
    fn write_once(&self, engine: &Engine, write: &mut Write, sync: bool) -> Result<Sequence> {
        let mut queue = lock(&self.queue);
        let is_alone = !queue.leading && queue.waiting.is_empty();
        if is_alone && !(sync && queue.expects_more_than(1)) {
            queue.leading = true;
            drop(queue);
            let mut leading = Leading { commit: self, writers: 1, sync_time: None };
            let mut own = None;
            leading.write(engine, &[write], sync, |_, result| own = Some(result))?;
            return own.expect("a group that is written has a result for each write");
        }
        let taken = std::mem::take(write);
        let own = Arc::new(Waiting { write: taken, sync, result: Mutex::new(None) });
        queue.waiting.push(Arc::clone(&own));
        if queue.waiting.len() == queue.wanted {
            self.gathered.notify_one();
        }
        let mut looks = !sync;
        loop {
            if let Some(result) = lock(&own.result).take() {
                if let Err(Error::LockTimeout { .. }) = result {
                    *write = own.write.clone();
                }
                return result;
            }
            if queue.leading {
                queue = self.wait_for_turn(queue, std::mem::take(&mut looks));
                continue;
            }
            queue.leading = true;
            self.lead(engine, queue, sync);
            queue = lock(&self.queue);
        }
    }

    /// Writes the group that is waiting, with writers that come soon if it is to be synced.
    /// Requires: the caller leads.
    fn lead<'q>(&'q self, engine: &Engine, mut queue: MutexGuard<'q, Queue>, sync: bool) {
        let mut leading = Leading { commit: self, writers: 0, sync_time: None };
        if sync {
            queue = self.gather(engine, queue);
        }
        let group = take_group(&mut queue.waiting);
        drop(queue);
        leading.writers = group.len();
        let writes: Vec<&Write> = group.iter().map(|waiting| &waiting.write).collect();
        let sync = group.iter().any(|waiting| waiting.sync);
        let panicked = Error::panicked("the thread that wrote for several");
        let mut outcome = Outcome { group: &group, failure: Error::stopped(&panicked) };
        let tell = |place: usize, result| *lock(&group[place].result) = Some(result);
        if let Err(error) = leading.write(engine, &writes, sync, tell) {
            outcome.failure = error;
        }
    }

    /// Waits until a leader has finished, awake at first if it may end soon, or for a moment.
    fn wait_for_turn<'q>(
        &'q self,
        mut queue: MutexGuard<'q, Queue>,
        looks: bool,
    ) -> MutexGuard<'q, Queue> {
        if !looks {
            queue.asleep += 1;
            queue = wait(&self.turn, queue);
            queue.asleep -= 1;
            return queue;
        }
        if queue.awake >= self.awake_max {
            drop(queue);
            pause(REST);
            return lock(&self.queue);
        }
        queue.awake += 1;
        let ended = self.ended.load(Ordering::Relaxed);
        drop(queue);
        for _ in 0..LOOKS_MAX {
            if self.ended.load(Ordering::Relaxed) != ended {
                break;
            }
            yield_now();
        }
        queue = lock(&self.queue);
        queue.awake -= 1;
        queue
    }

    /// Waits for writers that are likely to come soon. Requires: the caller leads.
    fn gather<'q>(
        &'q self,
        engine: &Engine,
        mut queue: MutexGuard<'q, Queue>,
    ) -> MutexGuard<'q, Queue> {
        if !queue.expects_more_than(queue.waiting.len()) {
            return queue;
        }
        queue.wanted = queue.recent;
        let (start, patience) = (engine.env.clock.now(), (queue.sync_time / 2).min(PATIENCE_MAX));
        let mut is_over = false;
        while queue.waiting.len() < queue.wanted {
            let left = patience.checked_sub(engine.since(start)).filter(|_| !is_over);
            let Some(left) = left else {
                queue.hurried = HURRIED_GROUPS;
                break;
            };
            (queue, is_over) = wait_for(&self.gathered, &self.queue, queue, left);
        }
        queue.wanted = 0;
        queue
    }

    /// Ends the leading of a group of so many, which took so long if it was synced.
    fn hand_over(&self, writers: usize, sync_time: Option<Duration>) {
        let mut queue = lock(&self.queue);
        (queue.leading, queue.wanted) = (false, 0);
        queue.recent = writers + queue.waiting.len();
        queue.hurried = queue.hurried.saturating_sub(1);
        queue.sync_time = sync_time.unwrap_or(queue.sync_time);
        self.ended.store(self.ended.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let asleep = queue.asleep;
        drop(queue);
        // It costs a system call, whether a writer sleeps or not.
        if asleep > 0 {
            self.turn.notify_all();
        }
    }

    /// The writer, once no leader is at work.
    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        lock(&self.writer)
    }

    /// The writer, if no leader is at work.
    pub(crate) fn try_writer(&self) -> Option<MutexGuard<'_, Writer>> {
        try_lock(&self.writer)
    }

    /// Syncs the log from a background thread, beside a writer that is at work. A failure stays
    /// noted: the next write meets it. False: the storage cannot do that, and a writer is at work.
    pub(crate) fn sync_beside(&self, engine: &Engine) -> bool {
        let start = engine.env.clock.now();
        let tell = |error: &Error| *lock(&self.log_failure) = Some(writer::log_failure(error));
        let values = || engine.table_files.values.store.sync();
        match self.unsynced.sync_beside(values, tell) {
            Some(Ok(true)) => self.unsynced.note_sync_time(engine.since(start)),
            Some(_) => {}
            None => {
                let Some(mut writer) = try_lock(&self.writer) else { return false };
                let _ = writer.sync(engine);
                drop(writer);
                engine.writer_is_free();
            }
        }
        true
    }

    /// Does `work` while no writer writes, when all earlier writes are in tables. It gets a
    /// sequence number of its own, which nothing else has if it fails.
    pub(crate) fn write_apart<T, E: From<Error>>(
        &self,
        engine: &Engine,
        work: impl FnOnce(Sequence) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let mut writer = self.writer();
        let sequence = writer.stand_apart(engine)?;
        let done = work(sequence);
        engine.snapshots.publish(sequence);
        if done.is_err() && !engine.manifest().is_certain() {
            self.trees.doubt();
        }
        done
    }
}

/// The leader of a group. Dropped, by a panic too: the next writer may lead.
struct Leading<'c> {
    commit: &'c Commit,
    writers: usize,
    sync_time: Option<Duration>,
}

impl Leading<'_> {
    /// `tell` is called with the place of each write and what has come of it, unless all fail.
    fn write(
        &mut self,
        engine: &Engine,
        writes: &[&Write],
        sync: bool,
        tell: impl FnMut(usize, Result<Sequence>),
    ) -> Result<()> {
        let start = sync.then(|| engine.env.clock.now());
        let written = self.commit.writer().commit(engine, writes, sync, tell);
        engine.writer_is_free();
        self.sync_time = start.map(|start| engine.since(start));
        written
    }
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        self.commit.hand_over(self.writers, self.sync_time);
    }
}

/// Why a group has failed. Dropped, by a panic too: those get it who have no result.
struct Outcome<'g> {
    group: &'g [Arc<Waiting>],
    failure: Error,
}

impl Drop for Outcome<'_> {
    fn drop(&mut self) {
        for waiting in self.group {
            lock(&waiting.result).get_or_insert_with(|| Err(self.failure.clone()));
        }
    }
}

/// Of this machine. (In a model, as few as make writers rest.)
fn processors() -> usize {
    if cfg!(any(loom, shuttle)) {
        return 2;
    }
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// The front of the queue, up to a group's size. Requires: a writer waits.
fn take_group(waiting: &mut Vec<Arc<Waiting>>) -> Vec<Arc<Waiting>> {
    let mut bytes = 0;
    let fits = waiting.iter().take_while(|waiting| {
        let first = bytes == 0;
        bytes += waiting.write.batch.size_bytes() + 1;
        first || bytes <= GROUP_BYTES_MAX
    });
    let count = fits.count();
    waiting.drain(..count).collect()
}

mod in_turn;
mod log_room;
mod missed_calls;
mod trees;
mod writer;
use missed_calls::MissedCalls;
use trees::Trees;
use writer::LogFailure;
pub(crate) use writer::{Log, Writer};
