//! Group commit: writers that wait together share one log record and one sync.
//! ```text
//! writer A --.
//! writer B ---+-> queue --> the first becomes leader: log, sync, memtable, publish --> all wake
//! writer C --'
//! ```
//! Writers that were just woken come back a moment later. A leader that is to sync waits for them, for part of the time that
//! a sync takes: else a group of one and a group of all others would take turns, two syncs for what one could do.
//!
//! Invariants (ordering rule 1): one leader at a time; a group lies in one memtable and becomes
//! visible as a whole, after all of it is in the memtable; a memtable is sealed between groups only.

use std::time::Duration;

use crate::batch::Batch;
use crate::core::Core;
use crate::entry::Sequence;
use crate::environment::PausePoint;
use crate::error::{Error, Result};
use crate::memtable::Memtable;
use crate::options::{Background, Sync};
use crate::stalls::Debt;
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, lock, pause, wait, wait_for};
use crate::version::Active;
use crate::wal::{Predecessor, Wal};

/// Bytes of one group at most, unless one batch alone is larger.
const GROUP_BYTES_MAX: usize = 1 << 20;

/// A sync that takes less is not worth waiting for others.
const SYNC_WORTH_SHARING: Duration = Duration::from_micros(50);
/// The longest that a leader waits for others.
const PATIENCE_MAX: Duration = Duration::from_millis(5);
/// Groups that do not wait for others after one has waited in vain.
const HURRIED_GROUPS: u32 = 8;

/// The queue of writers, and what only the leader touches.
pub(crate) struct Commit {
    queue: Mutex<Queue>,
    /// Signalled when a leader has finished.
    turn: Condvar,
    /// Signalled when all are there whom a leader waits for.
    gathered: Condvar,
    writer: Mutex<Writer>,
    log_failure: LogFailure,
}

/// Why a log has failed, until its entries are safe and another has taken its place. Read without the writer's lock.
type LogFailure = Arc<Mutex<Option<String>>>;

#[derive(Default)]
struct Queue {
    waiting: Vec<Arc<Waiting>>,
    leading: bool,
    /// The writers of the last group, and those who waited when it ended.
    recent: usize,
    /// How many the leader waits for; 0: for nobody.
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

/// A batch in the queue, and its result once a leader has written it.
struct Waiting {
    batch: Batch,
    sync: bool,
    result: Mutex<Option<Result<()>>>,
}

/// The log of the active memtable.
pub(crate) enum Log {
    Open(Wal),
    /// The first write makes its file, with the entries of the memtable: those that were read when the store was opened, so that
    /// a store that is only read writes nothing; or none, after a log that has failed.
    Unmade {
        number: u64,
        before: Predecessor,
    },
}

/// The log and the next sequence number.
struct Writer {
    log: Log,
    /// After a failed append or sync the log's end is unknown: no more is written to it.
    wal_failed: bool,
    /// Entries of a log that failed are in memory only. The next log takes none before they are in
    /// tables: a crash could otherwise lose them and keep later ones.
    owes_flush: bool,
    log_failure: LogFailure,
    next: Sequence,
    synced_at: Duration,
    unsynced: bool,
    debt: Debt,
}

impl Commit {
    pub(crate) fn new(log: Log, next: Sequence) -> Self {
        let log_failure = LogFailure::default();
        let writer = Writer {
            log,
            wal_failed: false,
            owes_flush: false,
            log_failure: Arc::clone(&log_failure),
            next,
            synced_at: Duration::ZERO,
            unsynced: false,
            debt: Debt::default(),
        };
        let (turn, gathered) = (Condvar::new(), Condvar::new());
        Commit { queue: Mutex::default(), turn, gathered, writer: Mutex::new(writer), log_failure }
    }

    /// What is wrong with the log, if something is.
    pub(crate) fn failure(&self) -> Option<String> {
        lock(&self.log_failure).clone()
    }

    /// Writes a batch. When it returns, readers see it; with `sync`, it survives any crash.
    pub(crate) fn write(&self, core: &Core, batch: Batch, sync: bool) -> Result<()> {
        let mut queue = lock(&self.queue);
        let is_alone = !queue.leading && queue.waiting.is_empty();
        if is_alone && !(sync && queue.expects_more_than(1)) {
            queue.leading = true;
            drop(queue);
            let start = core.env.clock.now();
            let result = lock(&self.writer).commit(core, &[&batch], sync);
            self.hand_over(1, sync.then(|| core.since(start)));
            return result;
        }
        let own = Arc::new(Waiting { batch, sync, result: Mutex::new(None) });
        queue.waiting.push(Arc::clone(&own));
        if queue.waiting.len() == queue.wanted {
            self.gathered.notify_one();
        }
        loop {
            if let Some(result) = lock(&own.result).take() {
                return result;
            }
            if queue.leading {
                queue = wait(&self.turn, queue);
                continue;
            }
            queue.leading = true;
            if sync {
                queue = self.gather(core, queue);
            }
            let group = take_group(&mut queue.waiting);
            drop(queue);
            let start = core.env.clock.now();
            let synced = self.lead(core, &group);
            self.hand_over(group.len(), synced.then(|| core.since(start)));
            queue = lock(&self.queue);
        }
    }

    /// Waits for writers who are likely to come soon. Requires: the caller leads.
    fn gather<'q>(
        &'q self,
        core: &Core,
        mut queue: MutexGuard<'q, Queue>,
    ) -> MutexGuard<'q, Queue> {
        if !queue.expects_more_than(queue.waiting.len()) {
            return queue;
        }
        queue.wanted = queue.recent;
        let (start, patience) = (core.env.clock.now(), (queue.sync_time / 2).min(PATIENCE_MAX));
        let mut is_over = false;
        while queue.waiting.len() < queue.wanted {
            let left = patience.checked_sub(core.since(start)).filter(|_| !is_over);
            let Some(left) = left else {
                queue.hurried = HURRIED_GROUPS;
                break;
            };
            (queue, is_over) = wait_for(&self.gathered, &self.queue, queue, left);
        }
        queue.wanted = 0;
        queue
    }

    /// Writes a group. True: it was to be synced.
    fn lead(&self, core: &Core, group: &[Arc<Waiting>]) -> bool {
        let batches: Vec<&Batch> = group.iter().map(|waiting| &waiting.batch).collect();
        let sync = group.iter().any(|waiting| waiting.sync);
        let result = lock(&self.writer).commit(core, &batches, sync);
        for waiting in group {
            let shared = match &result {
                Ok(()) => Ok(()),
                Err(error) => Err(error.for_another()),
            };
            *lock(&waiting.result) = Some(shared);
        }
        sync
    }

    /// Ends the leading of a group of so many, which took so long if it was synced.
    fn hand_over(&self, writers: usize, sync_time: Option<Duration>) {
        let mut queue = lock(&self.queue);
        queue.leading = false;
        queue.recent = writers + queue.waiting.len();
        queue.hurried = queue.hurried.saturating_sub(1);
        queue.sync_time = sync_time.unwrap_or(queue.sync_time);
        drop(queue);
        self.turn.notify_all();
    }

    /// Seals the active memtable if it has entries.
    pub(crate) fn seal(&self, core: &Core) -> Result<()> {
        lock(&self.writer).seal(core)
    }

    /// Syncs the log from a background thread. A writer that is at work does it itself; and who waits
    /// for a flush must not be waited for by the thread that flushes.
    pub(crate) fn sync_if_free(&self, core: &Core) {
        if let Ok(mut writer) = self.writer.try_lock() {
            // A failure stays noted in the writer: the next write meets it.
            let _ = writer.sync(core);
        }
    }

    /// Has `work` done while nobody writes, when all that was written before is in tables: it gets a sequence number of its own,
    /// which readers see if it succeeds.
    pub(crate) fn write_apart<T, E: From<Error>>(
        &self,
        core: &Core,
        work: impl FnOnce(Sequence) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let mut writer = lock(&self.writer);
        let sequence = writer.stand_apart(core)?;
        let done = work(sequence)?;
        core.snapshots.publish(sequence);
        Ok(done)
    }

    /// Makes all writes so far durable: in the log, or if that has failed, in tables.
    pub(crate) fn make_durable(&self, core: &Core) -> Result<()> {
        lock(&self.writer).make_durable(core)
    }

    /// Moves on from a log that has failed, if it has, and has its entries flushed.
    pub(crate) fn leave_if_failed(&self, core: &Core) -> Result<()> {
        let mut writer = lock(&self.writer);
        if writer.wal_failed || writer.owes_flush { writer.leave_failed_log(core) } else { Ok(()) }
    }

    /// Syncs the log as it is, and ends it: nothing is written after this.
    pub(crate) fn close(&self, core: &Core) -> Result<()> {
        let mut writer = lock(&self.writer);
        writer.sync(core)?;
        let next = writer.next;
        if let Log::Open(wal) = &mut writer.log {
            // A log without this end is as good; damage to its last groups is taken for a torn tail.
            let _ = wal.mark_end(next);
        }
        Ok(())
    }
}

/// The front of the queue, up to a group's size. Requires: someone waits.
fn take_group(waiting: &mut Vec<Arc<Waiting>>) -> Vec<Arc<Waiting>> {
    let mut bytes = 0;
    let fits = waiting.iter().take_while(|waiting| {
        let first = bytes == 0;
        bytes += waiting.batch.size_bytes() + 1;
        first || bytes <= GROUP_BYTES_MAX
    });
    let count = fits.count();
    waiting.drain(..count).collect()
}

impl Writer {
    /// Makes all writes so far durable: in the log, or if that has failed, in tables.
    fn make_durable(&mut self, core: &Core) -> Result<()> {
        if self.wal_failed || self.owes_flush {
            return self.leave_failed_log(core);
        }
        if !core.current.pin().active.memtable.is_empty() {
            self.open_log(core)?;
        }
        self.sync(core)
    }

    fn commit(&mut self, core: &Core, batches: &[&Batch], sync: bool) -> Result<()> {
        let count: usize = batches.iter().map(|batch| batch.len()).sum();
        if count == 0 {
            return if sync { self.make_durable(core) } else { Ok(()) };
        }
        self.make_room(core, batches.iter().map(|batch| batch.size_bytes()).sum())?;
        let first = self.next;
        let writes = || batches.iter().flat_map(|batch| batch.writes());
        // Spent even if logging fails: the log may hold them.
        self.next = Sequence(first.0 + count as u64);
        let appended = self.open_log(core)?.append(first, count, writes());
        self.note_failure(appended)?;
        self.unsynced = true;
        if sync || self.interval_is_over(core) {
            self.sync(core)?;
        }
        let memtable = Arc::clone(&core.current.pin().active.memtable);
        for ((kind, key, value), sequence) in writes().zip(first.0..) {
            memtable.insert(key, Sequence(sequence), kind, value);
        }
        core.env.pauses.at(PausePoint::WritesInserted);
        core.snapshots.publish(Sequence(first.0 + count as u64 - 1));
        let bytes = batches.iter().map(|batch| batch.size_bytes()).sum::<usize>();
        core.counters.wrote(count as u64, bytes as u64);
        Ok(())
    }

    /// The log, ready to be written.
    fn open_log(&mut self, core: &Core) -> Result<&mut Wal> {
        if let Log::Unmade { number, before } = self.log {
            let (storage, dir) = (&*core.shelf.storage, &core.shelf.dir);
            let memtable = Arc::clone(&core.current.pin().active.memtable);
            let created = Wal::create_from(storage, dir, number, before, &memtable);
            self.tell_failure(created.as_ref().err());
            self.log = Log::Open(created?);
        }
        match &mut self.log {
            Log::Open(wal) => Ok(wal),
            Log::Unmade { .. } => unreachable!("opened above"),
        }
    }

    fn note_failure<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            self.wal_failed = true;
            self.tell_failure(Some(error));
        }
        result
    }

    /// For `stats`: what is wrong with the log. None: nothing is any more.
    fn tell_failure(&self, error: Option<&Error>) {
        *lock(&self.log_failure) = error.map(|error| format!("the log has failed: {error}"));
    }

    fn sync(&mut self, core: &Core) -> Result<()> {
        if self.unsynced {
            let synced = self.open_log(core)?.sync();
            self.note_failure(synced)?;
            self.unsynced = false;
        }
        self.synced_at = core.env.clock.now();
        Ok(())
    }

    fn interval_is_over(&self, core: &Core) -> bool {
        match core.shelf.options.sync {
            Sync::Always => true,
            Sync::Interval(time) => core.env.clock.now() >= self.synced_at + time,
            Sync::Never => false,
        }
    }

    /// Seals a full memtable, and holds writers back while flushes or merges lag behind.
    fn make_room(&mut self, core: &Core, bytes: usize) -> Result<()> {
        if self.wal_failed || self.owes_flush {
            self.leave_failed_log(core)?;
        }
        let full = core.current.pin().active.memtable.size_bytes();
        if full >= core.shelf.options.write_buffer_bytes {
            core.wait_for_flushes()?;
            self.seal(core)?;
        }
        core.wait_for_merges()?;
        self.slow_down(core, bytes);
        Ok(())
    }

    /// Moves from a log whose end is unknown to a new one, and has the old one's entries flushed. After
    /// an error the next write tries again what is left to do.
    fn leave_failed_log(&mut self, core: &Core) -> Result<()> {
        if self.wal_failed {
            let is_empty = core.current.pin().active.memtable.is_empty();
            self.owes_flush |= !is_empty;
            if is_empty { self.replace_log(core)? } else { self.seal_before_new_log(core) }
        }
        core.flush_sealed()?;
        if self.owes_flush && !core.current.pin().sealed.is_empty() {
            let cause = "a flush that must come before the next write is under way elsewhere";
            return Err(Error::Stopped { cause: cause.into() });
        }
        self.owes_flush = false;
        self.tell_failure(None);
        Ok(())
    }

    fn seal(&mut self, core: &Core) -> Result<()> {
        if self.wal_failed {
            return self.leave_failed_log(core);
        }
        if core.current.pin().active.memtable.is_empty() {
            return Ok(());
        }
        self.open_log(core)?;
        // Later logs may be synced while this one's entries are in memory only.
        self.sync(core)?;
        self.seal_onto_new_log(core)
    }

    /// Brings all that was written into tables, and takes a number for what is to be written past the log.
    fn stand_apart(&mut self, core: &Core) -> Result<Sequence> {
        if self.wal_failed || self.owes_flush {
            self.leave_failed_log(core)?;
        }
        self.seal(core)?;
        core.flush_sealed()?;
        let _installer = core.installer();
        let mut next = (*core.current.hold()).clone();
        if !next.sealed.is_empty() {
            let cause = "a flush that must come first is under way elsewhere".into();
            return Err(Error::Stopped { cause });
        }
        let sequence = self.next;
        // Spent even if it comes to nothing.
        self.next = Sequence(sequence.0 + 1);
        next.active.first = self.next;
        core.current.store(Arc::new(next));
        Ok(sequence)
    }

    fn seal_onto_new_log(&mut self, core: &Core) -> Result<()> {
        let (wal, active) = self.new_log(core)?;
        self.seal_onto(core, Log::Open(wal), active);
        Ok(())
    }

    /// The next log is made by the write that needs it. Until then the failed one is the last: who is killed meanwhile finds
    /// all in it that was acknowledged, whereas a next one would say that only what was synced counts.
    fn seal_before_new_log(&mut self, core: &Core) {
        let before = self.as_predecessor();
        let number = core.shelf.new_file();
        let memtable = Arc::new(Memtable::new(core.shelf.options.write_buffer_bytes));
        let active = Active { memtable, wal: number, first: self.next };
        self.seal_onto(core, Log::Unmade { number, before }, active);
    }

    fn seal_onto(&mut self, core: &Core, log: Log, active: Active) {
        let mut installer = core.installer();
        core.seal(&mut installer, active, Sequence(self.next.0 - 1));
        drop(installer);
        self.log = log;
        (self.wal_failed, self.unsynced) = (false, false);
        core.work_appeared();
    }

    /// What the next log says of this one.
    fn as_predecessor(&self) -> Predecessor {
        match &self.log {
            Log::Open(wal) => Predecessor { wal: wal.number(), valid_bytes: wal.valid_bytes() },
            Log::Unmade { before, .. } => *before,
        }
    }

    /// Requires: the active memtable is empty.
    fn replace_log(&mut self, core: &Core) -> Result<()> {
        let (wal, active) = self.new_log(core)?;
        let _installer = core.installer();
        let mut next = (*core.current.hold()).clone();
        next.active = active;
        core.current.store(Arc::new(next));
        self.log = Log::Open(wal);
        (self.wal_failed, self.unsynced) = (false, false);
        Ok(())
    }

    fn new_log(&mut self, core: &Core) -> Result<(Wal, Active)> {
        let shelf = &core.shelf;
        let number = shelf.new_file();
        self.open_log(core)?;
        let before = self.as_predecessor();
        let created = Wal::create(&*shelf.storage, &shelf.dir, number, before);
        // The new log may be there all the same, and it says how long the old one is: that must stay so.
        let wal = self.note_failure(created)?;
        let memtable = Arc::new(Memtable::new(shelf.options.write_buffer_bytes));
        Ok((wal, Active { memtable, wal: number, first: self.next }))
    }

    /// Slows a writer down while flushes or merges lag behind.
    fn slow_down(&mut self, core: &Core, bytes: usize) {
        let due = self.debt.charge(&core.lag(), core.run_limits, bytes);
        if let Some(time) = due {
            if core.shelf.options.background != Background::Stepped {
                pause(time);
            }
            core.counters.slowdowns.add(time);
        }
    }
}
