//! The writer: puts groups into the log, then into memtables, and replaces a log that has failed.
//! ```text
//! group -> log -> sync, if asked for or due -> memtable -> published
//! a log failed: the next one begins with a copy of the active memtables
//! ```
//! Invariant: an acknowledged write is in a valid log, in tables, or (if it was not synced) in
//! memory. In the last case the next log begins with it.

use std::time::Duration;

use crate::entries::batch::Batch;
use crate::entries::entry::{NUMBER_MAX, Sequence};
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::memtable::Memtable;
use crate::error::{Error, Result};
use crate::events::Event;
use crate::files::unsynced::Unsynced;
use crate::files::wal::{self, NumberedWrite, Predecessor, Wal};
use crate::plan::background::Background;
use crate::plan::run_limits::SEALED_MAX;
use crate::plan::sync_policy::SyncPolicy;
use crate::shared::worker_pool::WorkKind;
use crate::storage::pauses::PausePoint;
use crate::sync::{Arc, Mutex, lock, pause};
use crate::tree::version::Active;
use crate::tree::write_stalls::{Debt, Lag};
use crate::write::commit::trees::{Touch, Touched, Trees};
use crate::write::conflicts::Write;
use crate::write::engine::Engine;

/// Why the log has failed, until its entries are safe and another log has replaced it. It is read
/// without the writer's lock.
pub(super) type LogFailure = Arc<Mutex<Option<String>>>;

/// Returns the text of a failure of the log.
pub(super) fn log_failure(error: &Error) -> String {
    format!("the log has failed: {error}")
}

/// The log that takes writes.
pub(crate) enum Log {
    Open(Wal),
    /// The first write creates its file, which begins with a copy of the active memtables. After an
    /// opening these were replayed from logs, so a store that is only read writes nothing.
    /// Otherwise they were in a log that has failed.
    Unmade {
        number: u64,
        before: Predecessor,
        /// A file of this name may exist with the same entries, and is replaced. Otherwise the name
        /// must be free.
        replaces: bool,
        /// The content of the memtables was in a log that has failed: no valid log has it.
        is_needed: bool,
        /// That many bytes of the file with this name were read at opening. They are copied,
        /// including what tables have of them, so that change feeds can continue there.
        was_read: Option<u64>,
    },
}

impl Log {
    /// Returns a log whose file does not exist yet.
    pub(crate) fn unmade(number: u64, before: Predecessor) -> Log {
        Log::Unmade { number, before, replaces: false, is_needed: false, was_read: None }
    }

    /// Returns a log of which `bytes` bytes were read back.
    pub(crate) fn read_back(number: u64, before: Predecessor, bytes: u64) -> Log {
        Log::Unmade { number, before, replaces: true, is_needed: false, was_read: Some(bytes) }
    }
}

/// The state of the writer: the log and the next sequence number.
pub(crate) struct Writer {
    log: Log,
    pub(super) trees: Arc<Trees>,
    /// Creating the next log failed, but its file may exist. So nothing more is written to this
    /// log.
    next_failed: bool,
    log_failure: LogFailure,
    unsynced: Arc<Unsynced>,
    next: Sequence,
    /// No file may name the last sequence numbers, since they went to writes without a log.
    has_unnamed: bool,
    /// The last write visible when a memtable was last sealed. All later writes are in active
    /// memtables, and thus in a log that begins with a copy of these.
    sealed_last: Sequence,
    debt: Debt,
    /// Reusable memory for the trees that a group writes into.
    room: Vec<Touch>,
    tail: Tail,
}

/// The last group of the log. Followers take it for refused until something comes after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Tail {
    /// Something comes after it, or the log is empty.
    #[default]
    Followed,
    /// Nothing comes after it, and the keeper thread was called, which last saw the log with
    /// `seen_bytes` bytes.
    Open { seen_bytes: u64 },
}

/// A log that has not grown for this long gets an empty group. That is often enough for followers,
/// and rarely enough for the disk.
const IDLE: Duration = Duration::from_millis(200);

/// Records a log in the manifest, and returns it.
fn on_record(engine: &Engine, wal: Wal) -> Result<Wal> {
    engine.installer().record_log(engine, wal.number())?;
    Ok(wal)
}

impl Writer {
    pub(super) fn new(
        (log, next): (Log, Sequence),
        trees: Arc<Trees>,
        log_failure: LogFailure,
        unsynced: Arc<Unsynced>,
    ) -> Self {
        Writer {
            log,
            trees,
            next_failed: false,
            log_failure,
            unsynced,
            next,
            has_unnamed: false,
            sealed_last: Sequence(next.0.saturating_sub(1)),
            debt: Debt::default(),
            room: Vec::new(),
            tail: Tail::Followed,
        }
    }

    /// Whether the log has failed. After a failed append or sync its end is unknown, so nothing
    /// more is written to it.
    fn has_failed(&self) -> bool {
        match &self.log {
            Log::Open(wal) => self.next_failed || wal.has_failed(),
            Log::Unmade { is_needed, .. } => self.next_failed || *is_needed,
        }
    }

    /// Replaces the log if it has failed.
    #[inline]
    pub(crate) fn leave_if_failed(&mut self, engine: &Engine) -> Result<()> {
        if self.has_failed() { self.leave_failed_log(engine) } else { Ok(()) }
    }

    /// Syncs and ends the log. Nothing is written after this.
    pub(crate) fn close(&mut self, engine: &Engine) -> Result<()> {
        self.sync(engine)?;
        if let Log::Open(wal) = &mut self.log {
            // A log without an end mark is valid too. But damage to its last groups looks like a
            // torn tail.
            let _ = wal.mark_end(self.next);
        }
        Ok(())
    }

    /// Closes the log's file. Requires: nothing is written after this.
    pub(crate) fn let_go_of_files(&mut self) {
        self.log = Log::unmade(0, Predecessor::none(Sequence(0)));
        self.unsynced.follow(None);
    }

    /// Makes all earlier writes durable that have a log, and what was loaded past the logs. After
    /// this, not even a crash lets a sequence number be reused.
    pub(crate) fn make_durable(&mut self, engine: &Engine) -> Result<()> {
        self.leave_if_failed(engine)?;
        engine.manifest().make_durable()?;
        if engine.logs.has_active() {
            self.open_log(engine)?;
        }
        if self.has_unnamed {
            let next = self.next;
            let noted = self.open_log(engine)?.note_next(next);
            noted.inspect_err(|error| self.tell_failure(Some(error)))?;
            self.has_unnamed = false;
        }
        self.sync(engine)
    }

    /// Writes a group, except for the writes that it refuses: those into a dropped key space, and
    /// those with a condition that does not hold. Tells the result of each: its last sequence
    /// number, or the error.
    pub(super) fn commit(
        &mut self,
        engine: &Engine,
        writes: &[&Write],
        sync: bool,
        mut tell: impl FnMut(usize, Result<Sequence>),
    ) -> Result<()> {
        engine.life().check()?;
        self.trees.make_certain(engine)?;
        if let [only] = writes {
            tell(0, self.commit_one(engine, only, sync));
            return Ok(());
        }
        let mut touched = Touched::new(engine, std::mem::take(&mut self.room));
        let mut batches: Vec<&Batch> = Vec::with_capacity(writes.len());
        let mut refused: Vec<(usize, Error)> = Vec::new();
        for (place, write) in writes.iter().enumerate() {
            match self.accepts(write, &batches, &mut touched) {
                Ok(()) => batches.push(&write.batch),
                Err(error) => refused.push((place, error)),
            }
        }
        let mut last = self.commit_all(&batches, &touched, sync)?.0 - 1;
        self.room = touched.into_room();
        let mut refused = refused.into_iter().peekable();
        for (place, write) in writes.iter().enumerate() {
            if let Some((_, error)) = refused.next_if(|(refused, _)| *refused == place) {
                tell(place, Err(error));
                continue;
            }
            last += write.batch.len() as u64;
            tell(place, Ok(Sequence(last)));
        }
        Ok(())
    }

    /// Writes a group of one, which is the most frequent case, without building lists. Returns its
    /// last sequence number.
    fn commit_one(&mut self, engine: &Engine, write: &Write, sync: bool) -> Result<Sequence> {
        let first = if write.is_plain() {
            engine.commit.locks.check(write)?;
            let mut touched = Touched::new(engine, Vec::new());
            touched.count(&write.batch);
            self.commit_all(&[&write.batch], &touched, sync)?
        } else {
            let mut touched = Touched::new(engine, std::mem::take(&mut self.room));
            self.accepts(write, &[], &mut touched)?;
            let first = self.commit_all(&[&write.batch], &touched, sync)?;
            self.room = touched.into_room();
            first
        };
        Ok(Sequence(first.0 + write.batch.len() as u64 - 1))
    }

    /// Checks that a write may join a group, behind these batches. Nothing is published meanwhile.
    fn accepts(&self, write: &Write, before: &[&Batch], touched: &mut Touched<'_>) -> Result<()> {
        touched.find(&self.trees, &write.batch)?;
        self.check_conditions(touched.main(), write, before)?;
        touched.main().commit.locks.check(write)?;
        touched.count(&write.batch);
        Ok(())
    }

    /// Returns an error if a condition of a write does not hold.
    fn check_conditions(&self, engine: &Engine, write: &Write, before: &[&Batch]) -> Result<()> {
        for condition in &write.conditions {
            let tree = self.trees.of(engine, condition.keyspace)?;
            let is_touched = before.iter().any(|batch| condition.is_touched_by(batch));
            if is_touched || !condition.holds(&tree)? {
                return Err(condition.conflict());
            }
        }
        let Some(reads) = &write.reads else { return Ok(()) };
        before.iter().try_for_each(|batch| reads.check_batch(batch))?;
        reads.check(|keyspace| self.trees.of(engine, keyspace))
    }

    /// Writes batches. Returns the sequence number of the first write, or the next number if there
    /// is none.
    fn commit_all(
        &mut self,
        batches: &[&Batch],
        touched: &Touched<'_>,
        sync: bool,
    ) -> Result<Sequence> {
        let engine = touched.main();
        let count: usize = batches.iter().map(|batch| batch.len()).sum();
        if count == 0 {
            if sync {
                self.make_durable(engine)?;
            }
            return Ok(self.next);
        }
        for (engine, tally) in touched.iter() {
            self.make_room(engine, tally.bytes)?;
        }
        if sync {
            // If this fails, nothing is logged.
            engine.table_files.values.store.sync()?;
        }
        if engine.table_files.options.kept_log_bytes > 0 {
            let now = engine.env.clock.since_epoch();
            engine.logs.times.note(engine.snapshots.visible(), now);
        }
        // The numbers are spent even if logging fails, since the log may contain them.
        let first = self.take_sequences(engine, count as u64)?;
        let writes = || batches.iter().flat_map(|batch| batch.logged()).zip(first.0..);
        // The prefetch completes while the log takes the write.
        writes().next().into_iter().for_each(|write| touched.prefetch(write));
        let logged = touched.logged(writes(), (first, count));
        let grown = logged.map(|(first, count)| {
            let logged = writes().filter(|write| touched.is_logged(write));
            self.log_group(engine, (first, count), logged, sync)
        });
        let grown = grown.transpose()?;
        self.has_unnamed = touched.some_unlogged();
        if sync && grown.is_none() {
            self.sync(engine)?;
        }
        touched.insert(writes());
        engine.env.pauses.at(PausePoint::WritesInserted);
        engine.snapshots.publish(Sequence(first.0 + count as u64 - 1));
        for (engine, tally) in touched.iter() {
            engine.counters.wrote(tally.writes, tally.bytes as u64);
        }
        if grown.is_some_and(|(before, now)| self.is_long_again(engine, before, now)) {
            // The writes are done. If this fails, it is retried when the log has grown further.
            let _ = self.make_room_in_logs(engine);
        }
        Ok(first)
    }

    /// Appends a group of `count` writes, numbered from `first`, to the log. Returns the log's size
    /// before and after.
    fn log_group<'w>(
        &mut self,
        engine: &Engine,
        (first, count): (Sequence, usize),
        writes: impl Iterator<Item = NumberedWrite<'w>>,
        sync: bool,
    ) -> Result<(u64, u64)> {
        let log = self.open_log(engine)?;
        let before = log.len();
        let appended = log.append(first, count, writes).map(|()| log.len());
        let bytes = appended.inspect_err(|error| self.tell_failure(Some(error)))?;
        if sync || self.is_sync_due(engine) {
            self.sync(engine)?;
        }
        engine.logs.note_bytes(bytes);
        if self.tail == Tail::Followed {
            self.tail = Tail::Open { seen_bytes: 0 };
            engine.workers.call(&[WorkKind::Keep]);
        }
        Ok((before, bytes))
    }

    /// Appends an empty group if nothing was written for a while. Returns when to check again.
    /// None: not before the next write.
    pub(crate) fn follow_if_idle(&mut self, engine: &Engine) -> Option<Duration> {
        let Tail::Open { seen_bytes } = self.tail else { return None };
        if self.has_failed() {
            return None;
        }
        let (next, is_synced) = (self.next, engine.table_files.options.sync != SyncPolicy::Never);
        let Log::Open(wal) = &mut self.log else { return None };
        // A failed append ends the log. So its content must be durable before, unless writes are
        // never synced.
        if wal.len() != seen_bytes || is_synced && wal.is_unsynced() {
            self.tail = Tail::Open { seen_bytes: wal.len() };
            return Some(IDLE);
        }
        let noted = wal.note_next(next).map(|()| wal.len());
        self.tail = Tail::Followed;
        match noted {
            Ok(bytes) => engine.logs.note_bytes(bytes),
            Err(error) => self.tell_failure(Some(&error)),
        }
        None
    }

    /// Takes `count` sequence numbers, which no other write gets, and returns the first. Returns an
    /// error if an opening would reject the last one.
    fn take_sequences(&mut self, engine: &Engine, count: u64) -> Result<Sequence> {
        let first = self.next;
        if first.0 + count > NUMBER_MAX {
            let what = format!("after write {} there are no numbers left", first.0 - 1);
            return Err(Error::corrupt(engine.table_files.folder.path(), 0, what));
        }
        self.next = Sequence(first.0 + count);
        Ok(first)
    }

    /// Returns the log, ready for writing.
    pub(super) fn open_log(&mut self, engine: &Engine) -> Result<&mut Wal> {
        if let Log::Unmade { number, before, replaces, is_needed, was_read } = self.log {
            // The copied entries may refer to values, which must be durable before the log is.
            let values = engine.table_files.values.store.sync();
            values.inspect_err(|error| self.tell_failure(Some(error)))?;
            engine.obsolete_files.expect_logs([number]);
            let memtables = self.trees.active_memtables(engine);
            // After a failure or a panic, the file of this name may be this log.
            self.log = Log::Unmade { number, before, replaces: true, is_needed, was_read };
            let folder = engine.table_files.log_folder();
            let created = match was_read {
                Some(bytes) => self.copy_log(engine, (number, bytes), before, &memtables),
                None if replaces || !memtables.is_empty() => {
                    Wal::create_from(folder, number, before, &memtables)
                }
                None => Wal::create(folder, number, before),
            };
            if created.as_ref().is_err_and(Error::is_name_taken) {
                self.log = Log::Unmade { number, before, replaces, is_needed, was_read };
            }
            let created = created.and_then(|wal| {
                // A log that is created again after a failure has the same bytes.
                engine.logs.follow_log(number, wal.len(), (before, wal.end().durable()));
                engine.env.pauses.at(PausePoint::LogMade);
                let wal = on_record(engine, wal)?;
                // Not earlier: followers ignore a log that is not on record, and a flush meanwhile
                // would declare the older logs unneeded.
                if was_read.is_none() {
                    self.trees.move_to_newest(engine);
                }
                Ok(wal)
            });
            self.tell_failure(created.as_ref().err());
            let wal = created?;
            self.unsynced.follow(Some(wal.end()));
            self.log = Log::Open(wal);
        }
        match &mut self.log {
            Log::Open(wal) => Ok(wal),
            Log::Unmade { .. } => unreachable!("opened above"),
        }
    }

    /// Creates a log anew that was read at opening. If it cannot be read any more, a copy of the
    /// memtables replaces it, and change feeds end there.
    fn copy_log(
        &self,
        engine: &Engine,
        (number, bytes): (u64, u64),
        before: Predecessor,
        memtables: &[(KeyspaceId, Arc<Memtable>)],
    ) -> Result<Wal> {
        let folder = engine.table_files.log_folder();
        let copied = Wal::create_again(folder, number, bytes);
        let is_gone = |error: &Error| {
            error.tells_of_damage() || wal::replay(folder.0, number, None, &mut |_| Ok(())).is_err()
        };
        if !copied.as_ref().is_err_and(is_gone) {
            return copied;
        }
        engine.installer().end_feeds(engine)?;
        Wal::create_from(folder, number, before, memtables)
    }

    pub(super) fn tell_failure(&self, error: Option<&Error>) {
        *lock(&self.log_failure) = error.map(log_failure);
    }

    pub(super) fn sync(&mut self, engine: &Engine) -> Result<()> {
        let Log::Open(wal) = &mut self.log else { return Ok(()) };
        if !wal.is_unsynced() {
            return Ok(());
        }
        let start = engine.env.clock.now();
        let synced = wal.sync(&self.unsynced, || engine.table_files.values.store.sync());
        self.unsynced.note_sync_time(engine.since(start));
        synced.inspect_err(|error| self.tell_failure(Some(error)))
    }

    /// Whether an unsynced write is as old as the sync interval. If not, calls the keeper thread,
    /// which syncs it in time.
    fn is_sync_due(&self, engine: &Engine) -> bool {
        let time = match engine.table_files.options.sync {
            SyncPolicy::Always => return true,
            SyncPolicy::Never => return false,
            SyncPolicy::Interval(time) => time,
        };
        let now = engine.env.clock.now();
        if self.unsynced.age(now).unwrap_or_default() >= time {
            return true;
        }
        if self.unsynced.wrote(now) {
            engine.workers.call(&[WorkKind::Keep]);
        }
        false
    }

    /// Seals a full memtable, and delays writers while flushes or merges lag behind.
    fn make_room(&mut self, engine: &Engine, bytes: usize) -> Result<()> {
        self.leave_if_failed(engine)?;
        let mut lag = engine.lag();
        if engine.must_seal(&lag) {
            engine.wait_for_flushes()?;
            self.seal(engine)?;
            lag = engine.lag();
        }
        if lag.runs >= engine.run_limits.stop {
            engine.wait_for_merges()?;
            lag = engine.lag();
        }
        self.slow_down(engine, &lag, bytes);
        Ok(())
    }

    /// Replaces a log whose end is unknown by a new one, which begins with a copy of the active
    /// memtables. Sealed memtables were synced before. Until the new log has its name, the failed
    /// log is the last one: after a kill, recovery finds all acknowledged writes there. After an
    /// error the next write tries again.
    fn leave_failed_log(&mut self, engine: &Engine) -> Result<()> {
        // A log that could not be created before keeps its number.
        if matches!(self.log, Log::Open(_)) {
            let before =
                Predecessor { last: Some(self.sealed_last), ..self.as_predecessor(engine) };
            let number = engine.table_files.new_file();
            let (replaces, is_needed, was_read) = (false, true, None);
            self.go_on_with(Log::Unmade { number, before, replaces, is_needed, was_read });
        }
        self.open_log(engine)?;
        self.unsynced.forget();
        Ok(())
    }

    /// Seals the active memtable before it is full, since stores that share write memory have asked
    /// for it, or since the logs are long. Does not wait for a flush, since the caller may be a
    /// thread that flushes: while too many memtables wait, the active one goes on.
    pub(crate) fn seal_early(&mut self, engine: &Engine) -> Result<()> {
        let now = engine.current.pin();
        if now.sealed.len() >= SEALED_MAX || now.active.memtable.is_empty() {
            return Ok(());
        }
        drop(now);
        self.seal(engine)
    }

    /// Seals the active memtable, unless it is empty.
    pub(crate) fn seal(&mut self, engine: &Engine) -> Result<()> {
        self.leave_if_failed(engine)?;
        let now = engine.current.pin();
        let (is_empty, first_log) = (now.active.memtable.is_empty(), now.active.first_log());
        drop(now);
        if is_empty {
            return Ok(());
        }
        // A table may survive a crash only if all earlier writes do, also those of other trees that
        // were read back from a log.
        if engine.logs.has_active() {
            self.open_log(engine)?;
        }
        self.sync(engine)?;
        let next = first_log.map(|_| self.next_log(engine)).transpose()?.flatten();
        self.seal_active(engine);
        if let Some(next) = next {
            self.go_on_with(Log::Open(next));
        }
        engine.work_appeared();
        Ok(())
    }

    /// Flushes everything that a tree has in memory, in this thread. Requires: no other thread
    /// works for the tree.
    pub(crate) fn flush_here(&mut self, engine: &Engine) -> Result<()> {
        self.seal(engine)?;
        while engine.flush_step()? {}
        Ok(())
    }

    /// Returns the log that follows when the memtable of a tree is sealed. None: the present log
    /// continues.
    fn next_log(&mut self, engine: &Engine) -> Result<Option<Wal>> {
        let bytes = self.open_log(engine)?.len();
        self.ends_log(engine, bytes).then(|| self.new_log(engine)).transpose()
    }

    /// Flushes all earlier writes, and takes a sequence number for entries that bypass the log.
    pub(super) fn begin_exclusive(&mut self, engine: &Engine) -> Result<Sequence> {
        self.seal(engine)?;
        // If the entries survive a crash, earlier writes to other key spaces must survive too.
        self.make_durable(engine)?;
        engine.flush_sealed()?;
        let _installer = engine.installer();
        let mut next = (*engine.current.hold()).clone();
        if !next.sealed.is_empty() {
            return Err(Error::stopped(&Error::FlushUnderWay));
        }
        // The number is spent even if the load fails.
        let sequence = self.take_sequences(engine, 1)?;
        next.active.first = self.next;
        engine.current.store(Arc::new(next));
        Ok(sequence)
    }

    /// Replaces the active memtable with a new one, and seals it.
    fn seal_active(&mut self, engine: &Engine) {
        // Counted before a flush can find it.
        if let Some(memory) = engine.memory() {
            memory.note_sealed(engine.current.pin().active.memtable.size_bytes());
        }
        self.note_leaving(engine);
        let memtable = Arc::new(Memtable::sized(engine.memtable_size));
        let mut installer = engine.installer();
        engine.seal(&mut installer, Active::new(memtable, self.next), Sequence(self.next.0 - 1));
    }

    /// Notes that the active memtable of a tree is about to stop taking writes.
    pub(crate) fn note_leaving(&mut self, engine: &Engine) {
        self.sealed_last = engine.snapshots.visible();
    }

    fn go_on_with(&mut self, log: Log) {
        let end = if let Log::Open(wal) = &log { Some(wal.end()) } else { None };
        self.unsynced.follow(end);
        (self.log, self.next_failed, self.tail) = (log, false, Tail::Followed);
    }

    /// Returns what the next log records about this one.
    fn as_predecessor(&self, engine: &Engine) -> Predecessor {
        let last = Some(engine.snapshots.visible());
        match &self.log {
            Log::Open(wal) => {
                Predecessor { wal: wal.number(), valid_bytes: wal.valid_bytes(), last }
            }
            Log::Unmade { before, .. } => *before,
        }
    }

    /// Creates the log that follows this one. Requires: this one is durable as a whole.
    fn new_log(&mut self, engine: &Engine) -> Result<Wal> {
        let (folder, number) = (engine.table_files.log_folder(), engine.table_files.new_file());
        let before = self.as_predecessor(engine);
        // After a failure or a panic the new log may exist nevertheless. It records the length of
        // the old one, which must not change any more.
        self.next_failed = true;
        engine.obsolete_files.expect_logs([number]);
        let created = Wal::create(folder, number, before);
        let created = created.and_then(|wal| on_record(engine, wal));
        let wal = created.inspect_err(|error| self.tell_failure(Some(error)))?;
        engine.logs.follow_log(number, wal.len(), (before, wal.end().durable()));
        Ok(wal)
    }

    /// Delays a writer while flushes or merges lag behind.
    fn slow_down(&mut self, engine: &Engine, lag: &Lag, bytes: usize) {
        if let Some(time) = self.debt.charge(lag, engine.run_limits, bytes) {
            if engine.table_files.options.background != Background::Stepped {
                pause(time);
            }
            engine.counters.slowdowns.add(time);
            engine.env.tell(Event::WriterSlowed { time });
        }
    }
}
