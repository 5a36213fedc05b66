//! The writer: into the log, then into the memtable; and what becomes of a log that fails.
//! ```text
//! group -> log -> sync, if asked for or due -> memtable -> published
//! a log failed: the next one begins with what is in memory
//! ```
//! Invariant: what was acknowledged is in a log that counts, or in tables, or (not synced) in
//! memory, and then in the next log before anything else.

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

/// Why a log has failed, until its entries are safe and another has taken its place. Read without
/// the writer's lock.
pub(super) type LogFailure = Arc<Mutex<Option<String>>>;

/// The text of a failure of the log.
pub(super) fn log_failure(error: &Error) -> String {
    format!("the log has failed: {error}")
}

/// The log that takes writes.
pub(crate) enum Log {
    Open(Wal),
    /// The first write makes its file, with what is in active memtables. After opening that was
    /// read from logs: a store that is only read writes nothing. Else it was in a log that has
    /// failed.
    Unmade {
        number: u64,
        before: Predecessor,
        /// The file that has its name may have the same entries, and is replaced. Else the name
        /// must be free.
        replaces: bool,
        /// It was in a log that has failed: no log that counts has it.
        is_needed: bool,
        /// So many bytes of the file that has its name were read when the store was opened. They
        /// are copied, with what tables have of them: change feeds go on from there.
        was_read: Option<u64>,
    },
}

impl Log {
    /// A log whose file is not there.
    pub(crate) fn unmade(number: u64, before: Predecessor) -> Log {
        Log::Unmade { number, before, replaces: false, is_needed: false, was_read: None }
    }

    /// A log of which so many bytes were read back.
    pub(crate) fn read_back(number: u64, before: Predecessor, bytes: u64) -> Log {
        Log::Unmade { number, before, replaces: true, is_needed: false, was_read: Some(bytes) }
    }
}

/// The log and the next sequence number.
pub(crate) struct Writer {
    log: Log,
    pub(super) trees: Arc<Trees>,
    /// The next log may be there, after it could not be made: no more is written to this one.
    next_failed: bool,
    log_failure: LogFailure,
    unsynced: Arc<Unsynced>,
    next: Sequence,
    /// No file may name the last numbers: they were given to writes without a log.
    has_unnamed: bool,
    /// All later writes are in active memtables: a log that begins with these has them.
    sealed_last: Sequence,
    debt: Debt,
    /// Memory for what a group writes into.
    room: Vec<Touch>,
    tail: Tail,
}

/// The last group of the log: who follows the store takes it for refused until something is behind
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Tail {
    /// Something is, or the log is empty.
    #[default]
    Followed,
    /// Nothing is, and the keeper was called. It has seen the log when it had so many bytes.
    Open { seen_bytes: u64 },
}

/// So long a log has not grown when it gets an empty group: often enough for readers in other
/// processes, and seldom enough for the disk.
const IDLE: Duration = Duration::from_millis(200);

/// A log, once the manifest names it.
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

    /// After any failed append or sync the log's end is unknown: no more is written to it.
    fn has_failed(&self) -> bool {
        match &self.log {
            Log::Open(wal) => self.next_failed || wal.has_failed(),
            Log::Unmade { is_needed, .. } => self.next_failed || *is_needed,
        }
    }

    /// Moves on from a log that has failed, if it has.
    #[inline]
    pub(crate) fn leave_if_failed(&mut self, engine: &Engine) -> Result<()> {
        if self.has_failed() { self.leave_failed_log(engine) } else { Ok(()) }
    }

    /// Syncs the log as it is, and ends it: nothing is written after this.
    pub(crate) fn close(&mut self, engine: &Engine) -> Result<()> {
        self.sync(engine)?;
        if let Log::Open(wal) = &mut self.log {
            // A log without this end is as good; damage to its last groups is taken for a torn
            // tail.
            let _ = wal.mark_end(self.next);
        }
        Ok(())
    }

    /// Closes the log's file. Requires: nothing is written after this.
    pub(crate) fn let_go_of_files(&mut self) {
        self.log = Log::unmade(0, Predecessor::none(Sequence(0)));
        self.unsynced.follow(None);
    }

    /// Makes all writes so far durable that have a log, and what was loaded past the logs. After a
    /// crash no number is given again that a write had.
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

    /// Writes a group, but those that it refuses: of a dropped key space, or with a condition that
    /// does not hold. Tells what has come of each: the number of its last write, or why not.
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

    /// Writes a group of one, as most are: no lists are made. Gives the number of its last write.
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

    /// Whether a write may be part of a group, behind these batches. Nothing is published
    /// meanwhile.
    fn accepts(&self, write: &Write, before: &[&Batch], touched: &mut Touched<'_>) -> Result<()> {
        touched.find(&self.trees, &write.batch)?;
        self.check_conditions(touched.main(), write, before)?;
        touched.main().commit.locks.check(write)?;
        touched.count(&write.batch);
        Ok(())
    }

    /// An error if something that a write expects is not so.
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

    /// Gives the number of the first write, or what it would be.
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
            // If that fails, nothing is logged.
            engine.table_files.values.store.sync()?;
        }
        // Spent even if logging fails: the log may hold them.
        let first = self.take_sequences(engine, count as u64)?;
        let writes = || batches.iter().flat_map(|batch| batch.logged()).zip(first.0..);
        // It comes while the log takes the write.
        writes().next().into_iter().for_each(|write| touched.ask_for(write));
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
            // The writes are there. What fails here is tried again when the log has grown further.
            let _ = self.make_room_in_logs(engine);
        }
        Ok(first)
    }

    /// Writes a group into the log: so many writes, from the first one's number on. Gives the log's
    /// bytes before and behind it.
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

    /// Adds an empty group behind the last one, if nothing was written for a while. When to look
    /// again; None: there is nothing to do before the next write.
    pub(crate) fn follow_if_idle(&mut self, engine: &Engine) -> Option<Duration> {
        let Tail::Open { seen_bytes } = self.tail else { return None };
        if self.has_failed() {
            return None;
        }
        let (next, is_synced) = (self.next, engine.table_files.options.sync != SyncPolicy::Never);
        let Log::Open(wal) = &mut self.log else { return None };
        // If it fails, the log takes no more: what it has must be durable before, if it is to be.
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

    /// The first of so many sequence numbers, which no other write gets. An error: opening would
    /// not believe the last one.
    fn take_sequences(&mut self, engine: &Engine, count: u64) -> Result<Sequence> {
        let first = self.next;
        if first.0 + count > NUMBER_MAX {
            let what = format!("after write {} there are no numbers left", first.0 - 1);
            return Err(Error::corrupt(engine.table_files.folder.path(), 0, what));
        }
        self.next = Sequence(first.0 + count);
        Ok(first)
    }

    /// The log, ready to be written.
    pub(super) fn open_log(&mut self, engine: &Engine) -> Result<&mut Wal> {
        if let Log::Unmade { number, before, replaces, is_needed, was_read } = self.log {
            // What it repeats is durable when it is.
            let values = engine.table_files.values.store.sync();
            values.inspect_err(|error| self.tell_failure(Some(error)))?;
            engine.leaving.expect_logs([number]);
            let memtables = self.trees.active_memtables(engine);
            // After a failure, or a panic, the file that has the name may be this one.
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
                // Made again after a failure it has the same bytes.
                engine.logs.follow_log(number, wal.len(), (before, wal.end().durable()));
                engine.env.pauses.at(PausePoint::LogMade);
                let wal = on_record(engine, wal)?;
                // Not before: who reads along looks into no log that is not on record, and a flush
                // meanwhile would tell that the older ones are needed no more.
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

    /// Makes a log anew that was read when the store was opened. If it cannot be read any more,
    /// what is in memory takes its place, and change feeds end there.
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

    fn tell_failure(&self, error: Option<&Error>) {
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

    /// Whether an unsynced write is as old as the interval. If not, the keeper is called, which
    /// syncs it in time.
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

    /// Seals a full memtable, and holds writers back while flushes or merges lag behind.
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

    /// Moves from a log whose end is unknown to a new one, which begins with what is in active
    /// memtables: what is in sealed ones was synced. Until it has its name the failed log is the
    /// last: a process that is killed meanwhile finds all acknowledged writes there. After an error
    /// the next write tries again.
    fn leave_failed_log(&mut self, engine: &Engine) -> Result<()> {
        // One that could not be made before has its number.
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

    /// Seals the active memtable before it is full, since stores that share memory for writes have
    /// asked for it. Waits for no flush: the caller is a thread that flushes.
    pub(crate) fn seal_early(&mut self, engine: &Engine) -> Result<()> {
        let now = engine.current.pin();
        if now.sealed.len() >= SEALED_MAX || now.active.memtable.is_empty() {
            return Ok(());
        }
        drop(now);
        self.seal(engine)
    }

    /// Seals the active memtable if it has entries.
    pub(crate) fn seal(&mut self, engine: &Engine) -> Result<()> {
        self.leave_if_failed(engine)?;
        let now = engine.current.pin();
        let (is_empty, first_log) = (now.active.memtable.is_empty(), now.active.first_log());
        drop(now);
        if is_empty {
            return Ok(());
        }
        if first_log.is_some() {
            self.open_log(engine)?;
        }
        // A table may be there after a crash only if all that was written before is.
        self.sync(engine)?;
        let next = first_log.map(|_| self.next_log(engine)).transpose()?.flatten();
        self.seal_active(engine);
        if let Some(next) = next {
            self.go_on_with(Log::Open(next));
        }
        engine.work_appeared();
        Ok(())
    }

    /// Brings all that a tree has in memory into tables, in this thread. Requires: no other works
    /// for it.
    pub(crate) fn flush_here(&mut self, engine: &Engine) -> Result<()> {
        self.seal(engine)?;
        while engine.flush_step()? {}
        Ok(())
    }

    /// The log that follows when the memtable of a tree is sealed. None: this one goes on.
    fn next_log(&mut self, engine: &Engine) -> Result<Option<Wal>> {
        let bytes = self.open_log(engine)?.len();
        self.ends_log(engine, bytes).then(|| self.new_log(engine)).transpose()
    }

    /// Brings all that was written into tables, and takes a number for what is to be written past
    /// the log.
    pub(super) fn stand_apart(&mut self, engine: &Engine) -> Result<Sequence> {
        self.seal(engine)?;
        // What other key spaces were given before must not be lost where this is there.
        self.make_durable(engine)?;
        engine.flush_sealed()?;
        let _installer = engine.installer();
        let mut next = (*engine.current.hold()).clone();
        if !next.sealed.is_empty() {
            return Err(Error::stopped(&Error::FlushUnderWay));
        }
        // Spent even if it comes to nothing.
        let sequence = self.take_sequences(engine, 1)?;
        next.active.first = self.next;
        engine.current.store(Arc::new(next));
        Ok(sequence)
    }

    /// Puts a new memtable in place of the active one.
    fn seal_active(&mut self, engine: &Engine) {
        // Before it is there to be flushed.
        if let Some(memory) = engine.memory() {
            memory.note_sealed(engine.current.pin().active.memtable.size_bytes());
        }
        self.note_leaving(engine);
        let memtable = Arc::new(Memtable::sized(engine.memtable_size));
        let mut installer = engine.installer();
        engine.seal(&mut installer, Active::new(memtable, self.next), Sequence(self.next.0 - 1));
    }

    /// The active memtable of a tree is to be no longer among those that take writes.
    pub(crate) fn note_leaving(&mut self, engine: &Engine) {
        self.sealed_last = engine.snapshots.visible();
    }

    fn go_on_with(&mut self, log: Log) {
        let end = if let Log::Open(wal) = &log { Some(wal.end()) } else { None };
        self.unsynced.follow(end);
        (self.log, self.next_failed, self.tail) = (log, false, Tail::Followed);
    }

    /// What the next log says of this one.
    fn as_predecessor(&self, engine: &Engine) -> Predecessor {
        let last = Some(engine.snapshots.visible());
        match &self.log {
            Log::Open(wal) => {
                Predecessor { wal: wal.number(), valid_bytes: wal.valid_bytes(), last }
            }
            Log::Unmade { before, .. } => *before,
        }
    }

    /// A log for what comes behind this one. Requires: all of this one is durable.
    fn new_log(&mut self, engine: &Engine) -> Result<Wal> {
        let (folder, number) = (engine.table_files.log_folder(), engine.table_files.new_file());
        let before = self.as_predecessor(engine);
        // After a failure, or a panic, the new log may be there all the same. It says how long the
        // old one is, which must stay so.
        self.next_failed = true;
        engine.leaving.expect_logs([number]);
        let created = Wal::create(folder, number, before);
        let created = created.and_then(|wal| on_record(engine, wal));
        let wal = created.inspect_err(|error| self.tell_failure(Some(error)))?;
        engine.logs.follow_log(number, wal.len(), (before, wal.end().durable()));
        Ok(wal)
    }

    /// Slows a writer down while flushes or merges lag behind.
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
