//! Group commit: writers that wait together share one log record and one sync.
//! ```text
//! writer A --.
//! writer B ---+-> queue --> the first becomes leader: log, sync, memtable, publish --> all wake
//! writer C --'
//! ```
//! Writers that were just woken usually write again a moment later. A leader that is about to sync
//! waits for them, for part of the time that a sync takes. Otherwise groups of one and groups of
//! all others would alternate, with two syncs instead of one.
//!
//! Without syncs a group takes a few microseconds, less than going to sleep and being woken. So
//! writers wait by spinning, up to the number of processors besides the leader's. More would
//! compete for these processors, which costs more than their writes. Further writers rest for a
//! time that spans many groups, and those that spin write for them.
//!
//! A writer that may give up (`sync/giving_up.rs`) leaves the queue to ask its caller, and never
//! leads while others than a leader have the writer, such as a bulk load: there is no way back.
//!
//! Invariants (ordering rule 1): one leader at a time. A group lies in one memtable, and becomes
//! visible as a whole once all of it is in the memtable. A memtable is sealed only between groups.

use std::num::NonZero;
use std::time::Duration;

use crate::entries::batch::Batch;
use crate::entries::entry::Sequence;
use crate::error::{Error, Result};
use crate::files::unsynced::Unsynced;
use crate::storage::life::Life;
use crate::sync::{
    Arc, AtomicU64, Condvar, Mutex, MutexGuard, Ordering, giving_up, lock, now, pause, try_lock,
    wait, wait_for, yield_now,
};
use crate::write::conflicts::Write;
use crate::write::engine::Engine;
use crate::write::key_locks::KeyLocks;

/// The size of a group, at most, unless a single batch is larger.
const GROUP_BYTES_MAX: usize = 1 << 20;

/// Syncs that take less time are not worth waiting for others.
const SYNC_WORTH_SHARING: Duration = Duration::from_micros(50);
/// The longest that a leader waits for others.
const PATIENCE_MAX: Duration = Duration::from_millis(5);
/// Groups that do not wait for others after one has waited in vain.
const HURRIED_GROUPS: u32 = 8;

/// How often a spinning writer checks whether a group has ended before it sleeps. (For a model, a
/// few checks suffice.)
const LOOKS_MAX: u32 = if cfg!(any(loom, shuttle)) { 2 } else { 64 };

/// How long a writer rests when enough others spin: many times the cost of going to sleep.
const REST: Duration = Duration::from_micros(100);
/// How long a writer that may give up rests while others than a leader have the writer.
const LONG_REST: Duration = Duration::from_millis(1);

/// The queue of writers, and the state that only the leader touches.
pub(crate) struct Commit {
    queue: Mutex<Queue>,
    /// The number of writers that may spin.
    awake_max: usize,
    /// Counts groups that have ended. Changed only while the queue is locked.
    ended: AtomicU64,
    /// Signalled when a leader has finished, if a writer sleeps.
    turn: Condvar,
    /// Signalled when all writers have arrived for which a leader waits.
    gathered: Condvar,
    writer: Mutex<Writer>,
    log_failure: LogFailure,
    /// The trees that batches may write into.
    pub(crate) trees: Arc<Trees>,
    /// The locks of keys.
    pub(crate) locks: Arc<KeyLocks>,
    /// Counts conflicts after which a single-key operation was retried.
    pub(crate) late: AtomicU64,
    /// What the writer has not synced.
    pub(crate) unsynced: Arc<Unsynced>,
    /// Threads to call when the writer is free.
    pub(crate) missed: MissedCalls,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Arc<Waiting>>,
    leading: bool,
    /// Writers that spin until the leader has finished.
    awake: usize,
    /// Writers that sleep until a leader has finished.
    asleep: usize,
    /// The number of writers in the last group, plus those that waited when it ended.
    recent: usize,
    /// The number of writers for which the leader waits.
    wanted: usize,
    /// How long the last synced group took.
    sync_time: Duration,
    /// The number of groups that are not to wait for others.
    hurried: u32,
}

impl Queue {
    /// Whether more than `present` writers are likely to arrive soon, and are worth waiting for.
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

    /// Returns the failure of the log, if it has failed.
    pub(crate) fn failure(&self) -> Option<String> {
        lock(&self.log_failure).clone()
    }

    /// Writes a batch. When it returns, readers see the batch; with `sync` it survives any crash.
    #[cfg(test)]
    pub(crate) fn write(&self, engine: &Engine, batch: crate::Batch, sync: bool) -> Result<()> {
        self.write_if(engine, &mut Write::of(batch), sync).map(|_| ())
    }

    /// Writes a batch if all conditions hold; otherwise returns `Conflict`. When it returns,
    /// readers see the batch; with `sync` it survives any crash. Returns the sequence number of the
    /// last write. `write` may be empty afterwards. Waits for locks on its keys; its holder keeps
    /// its own locks.
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

    /// Waits until no key space that the batch writes into stops its writers, or until the caller
    /// gives up. A leader that is stopped cannot give up.
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

    /// As `write_if`, but does not wait for locks: it returns `LockTimeout` and leaves `write` as
    /// it was.
    fn write_once(&self, engine: &Engine, write: &mut Write, sync: bool) -> Result<Sequence> {
        let mut queue = lock(&self.queue);
        let is_alone = !self.is_kept_from_leading(&queue) && queue.waiting.is_empty();
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
        self.enqueue(&mut queue, &own);
        let mut looks = !sync;
        let mut asked_at = giving_up::is_possible().then(now);
        loop {
            if let Some(result) = lock(&own.result).take() {
                if let Err(Error::LockTimeout { .. }) = result {
                    *write = own.write.clone();
                }
                return result;
            }
            if !self.is_kept_from_leading(&queue) {
                queue.leading = true;
                self.lead(engine, queue, sync);
                queue = lock(&self.queue);
                continue;
            }
            queue = self.wait_for_turn(queue, std::mem::take(&mut looks));
            if asked_at.is_some_and(|at| now().saturating_duration_since(at) >= giving_up::STEP) {
                queue = self.ask_outside(engine, queue, &own)?;
                asked_at = Some(now());
            }
        }
    }

    fn enqueue(&self, queue: &mut Queue, own: &Arc<Waiting>) {
        queue.waiting.push(Arc::clone(own));
        if queue.waiting.len() == queue.wanted {
            self.gathered.notify_one();
        }
    }

    /// Whether this writer has to wait: for a leader, or, since a leader cannot give up, for anyone
    /// else who has the writer. Whoever finds the writer free leads, or somebody else does: so who
    /// missed the writer for the moment that this takes is called then.
    fn is_kept_from_leading(&self, queue: &Queue) -> bool {
        queue.leading || giving_up::is_possible() && self.try_writer().is_none()
    }

    /// Asks whether the caller of a waiting write gives up. The write is not in the queue
    /// meanwhile. If a leader has taken it already, nobody is asked.
    #[cold]
    fn ask_outside<'q>(
        &'q self,
        engine: &Engine,
        mut queue: MutexGuard<'q, Queue>,
        own: &Arc<Waiting>,
    ) -> Result<MutexGuard<'q, Queue>> {
        let place = queue.waiting.iter().position(|waiting| Arc::ptr_eq(waiting, own));
        let Some(place) = place else { return Ok(queue) };
        queue.waiting.remove(place);
        drop(queue);
        if giving_up::is_given_up() {
            return Err(Error::Cancelled);
        }
        // This may be a forked child by now, in which the queue may be locked forever.
        engine.check_open()?;
        queue = lock(&self.queue);
        self.enqueue(&mut queue, own);
        Ok(queue)
    }

    /// Writes the waiting group. If it is to be synced, first waits for writers that come soon.
    /// Requires: the caller is the leader.
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

    /// Waits until a leader has finished, or for a moment if there is none. If it may finish soon,
    /// spins first, or rests.
    fn wait_for_turn<'q>(
        &'q self,
        mut queue: MutexGuard<'q, Queue>,
        looks: bool,
    ) -> MutexGuard<'q, Queue> {
        if !queue.leading {
            drop(queue);
            pause(if looks { REST } else { LONG_REST });
            return lock(&self.queue);
        }
        if !looks {
            queue.asleep += 1;
            queue = match giving_up::is_possible() {
                true => wait_for(&self.turn, &self.queue, queue, giving_up::STEP).0,
                false => wait(&self.turn, queue),
            };
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

    /// Waits for writers that are likely to arrive soon. Requires: the caller is the leader.
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

    /// Ends the leadership over a group. `sync_time`: how long the group took, if it was synced.
    fn hand_over(&self, writers: usize, sync_time: Option<Duration>) {
        let mut queue = lock(&self.queue);
        (queue.leading, queue.wanted) = (false, 0);
        queue.recent = writers + queue.waiting.len();
        queue.hurried = queue.hurried.saturating_sub(1);
        queue.sync_time = sync_time.unwrap_or(queue.sync_time);
        self.ended.store(self.ended.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let asleep = queue.asleep;
        drop(queue);
        // Notifying costs a system call even if no writer sleeps.
        if asleep > 0 {
            self.turn.notify_all();
        }
    }

    /// Locks the writer, once no leader is at work.
    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        lock(&self.writer)
    }

    /// Locks the writer, if no leader is at work.
    pub(crate) fn try_writer(&self) -> Option<MutexGuard<'_, Writer>> {
        try_lock(&self.writer)
    }

    /// Syncs the log from a background thread, while the writer may be at work. A failure is
    /// recorded, and the next write returns it. Returns false if the storage does not support that
    /// and the writer is at work.
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

    /// Runs `work` while no writer writes and all earlier writes are in tables. Gives it a sequence
    /// number of its own, which is not reused if `work` fails.
    pub(crate) fn write_exclusively<T, E: From<Error>>(
        &self,
        engine: &Engine,
        work: impl FnOnce(Sequence) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let mut writer = self.writer();
        let sequence = writer.begin_exclusive(engine)?;
        let done = work(sequence);
        engine.snapshots.publish(sequence);
        if done.is_err() && !engine.manifest().is_certain() {
            self.trees.doubt();
        }
        done
    }
}

/// The leadership over a group. When it is dropped, even by a panic, the next writer may lead.
struct Leading<'c> {
    commit: &'c Commit,
    writers: usize,
    sync_time: Option<Duration>,
}

impl Leading<'_> {
    /// Writes a group. Calls `tell` with each write's place and result, unless all fail.
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

/// Why a group failed. When it is dropped, even by a panic, writes without a result get this
/// failure.
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

/// Returns the number of processors. (In a model: few enough to make writers rest.)
fn processors() -> usize {
    if cfg!(any(loom, shuttle)) {
        return 2;
    }
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Takes the front of the queue, up to the size of a group. Requires: a writer waits.
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
