//! The writer: into the log, then into the memtable; and what becomes of a log that fails.
//! ```text
//! group -> log -> sync, if asked for or due -> memtable -> published
//! a log failed: its memtable is sealed and flushed, and the next write makes another log
//! ```
//! Invariant: what was acknowledged is in a log that counts, or in tables, or (not synced) in
//! memory and owed to tables.

use crate::entries::batch::Batch;
use crate::entries::entry::{NUMBER_MAX, Sequence};
use crate::entries::memtable::Memtable;
use crate::error::{Error, Result};
use crate::events::Event;
use crate::files::unsynced::Unsynced;
use crate::files::wal::{Predecessor, Wal};
use crate::plan::background::Background;
use crate::plan::run_limits::SEALED_MAX;
use crate::plan::sync_policy::SyncPolicy;
use crate::shared::worker_pool::WorkKind;
use crate::storage::pauses::PausePoint;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, lock, pause};
use crate::tree::version::Active;
use crate::tree::write_stalls::Debt;
use crate::write::engine::Engine;

/// Why a log has failed, until its entries are safe and another has taken its place. Read without
/// the writer's lock.
pub(super) type LogFailure = Arc<Mutex<Option<String>>>;

/// The text of a failure of the log.
pub(super) fn log_failure(error: &Error) -> String {
    format!("the log has failed: {error}")
}

/// The log of the active memtable.
pub(crate) enum Log {
    Open(Wal),
    /// The first write makes its file, with the entries of the memtable. These were read when the
    /// store was opened, so that a store that is only read writes nothing. After a log that has
    /// failed there are none.
    Unmade {
        number: u64,
        before: Predecessor,
        /// Its entries are those of the file that has its name, which it replaces. Else the name
        /// must be free.
        replaces: bool,
    },
}

/// The log and the next sequence number.
pub(crate) struct Writer {
    log: Log,
    /// The next log may be there, after it could not be made: no more is written to this one.
    next_failed: bool,
    /// Entries of a log that failed are in memory only. The next log takes none before they are in
    /// tables: a crash could otherwise lose them and keep later ones.
    owes_flush: bool,
    log_failure: LogFailure,
    unsynced: Arc<Unsynced>,
    next: Sequence,
    debt: Debt,
}

/// A log, once the manifest names it.
fn on_record(engine: &Engine, wal: Wal) -> Result<Wal> {
    engine.installer().record_log(engine, wal.number())?;
    Ok(wal)
}

impl Writer {
    pub(super) fn new(
        log: Log,
        next: Sequence,
        log_failure: LogFailure,
        unsynced: Arc<Unsynced>,
    ) -> Self {
        let (next_failed, owes_flush, debt) = (false, false, Debt::default());
        Writer { log, next_failed, owes_flush, log_failure, unsynced, next, debt }
    }

    /// After any failed append or sync the log's end is unknown: no more is written to it.
    fn has_failed(&self) -> bool {
        self.next_failed || matches!(&self.log, Log::Open(wal) if wal.has_failed())
    }

    /// Whether something must be done before the next write.
    fn is_stuck(&self) -> bool {
        self.owes_flush || self.has_failed()
    }

    /// Moves on from a log that has failed, if it has, and has its entries flushed.
    pub(crate) fn leave_if_failed(&mut self, engine: &Engine) -> Result<()> {
        if self.is_stuck() { self.leave_failed_log(engine) } else { Ok(()) }
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
        let before = self.as_predecessor();
        self.log = Log::Unmade { number: 0, before, replaces: false };
        self.unsynced.follow(None);
    }

    /// Makes all writes so far durable: in the log, or if that has failed, in tables.
    pub(crate) fn make_durable(&mut self, engine: &Engine) -> Result<()> {
        if self.is_stuck() {
            return self.leave_failed_log(engine);
        }
        if !engine.current.pin().active.memtable.is_empty() {
            self.open_log(engine)?;
        }
        self.sync(engine)
    }

    pub(super) fn commit(&mut self, engine: &Engine, batches: &[&Batch], sync: bool) -> Result<()> {
        engine.life().check()?;
        let count: usize = batches.iter().map(|batch| batch.len()).sum();
        if count == 0 {
            return if sync { self.make_durable(engine) } else { Ok(()) };
        }
        let bytes = batches.iter().map(|batch| batch.size_bytes()).sum();
        self.make_room(engine, bytes)?;
        // Spent even if logging fails: the log may hold them.
        let first = self.take_sequences(engine, count as u64)?;
        let writes = || batches.iter().flat_map(|batch| batch.writes());
        let log = self.open_log(engine)?;
        let appended = log.append(first, count, writes()).map(|()| log.len());
        let log_bytes = appended.inspect_err(|error| self.tell_failure(Some(error)))?;
        if sync || self.is_sync_due(engine) {
            self.sync(engine)?;
        }
        let memtable = {
            let now = engine.current.pin();
            now.active.log_bytes.store(log_bytes, Ordering::Relaxed);
            Arc::clone(&now.active.memtable)
        };
        for ((kind, key, value), sequence) in writes().zip(first.0..) {
            memtable.insert(key, Sequence(sequence), kind, value);
        }
        if let Some(memory) = &engine.memory {
            memory.note_active(memtable.size_bytes());
        }
        engine.env.pauses.at(PausePoint::WritesInserted);
        engine.snapshots.publish(Sequence(first.0 + count as u64 - 1));
        engine.counters.wrote(count as u64, bytes as u64);
        Ok(())
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
    fn open_log(&mut self, engine: &Engine) -> Result<&mut Wal> {
        if let Log::Unmade { number, before, replaces } = self.log {
            engine.leaving.expect_logs([number]);
            let memtable = Arc::clone(&engine.current.pin().active.memtable);
            // After a failure, or a panic, the file that has the name may be this one.
            self.log = Log::Unmade { number, before, replaces: true };
            let created = if replaces {
                Wal::create_from(&engine.table_files.folder, number, before, &memtable)
            } else {
                let count = memtable.len();
                assert!(memtable.is_empty(), "a new log has no entries yet, and {count}");
                Wal::create(&engine.table_files.folder, number, before)
            };
            if created.as_ref().is_err_and(Error::is_name_taken) {
                self.log = Log::Unmade { number, before, replaces };
            }
            let created = created.and_then(|wal| on_record(engine, wal));
            self.tell_failure(created.as_ref().err());
            let wal = created?;
            engine.current.pin().active.log_bytes.store(wal.len(), Ordering::Relaxed);
            self.unsynced.follow(Some(wal.end()));
            self.log = Log::Open(wal);
        }
        match &mut self.log {
            Log::Open(wal) => Ok(wal),
            Log::Unmade { .. } => unreachable!("opened above"),
        }
    }

    /// For `stats`: what is wrong with the log. None: nothing is any more.
    fn tell_failure(&self, error: Option<&Error>) {
        *lock(&self.log_failure) = error.map(log_failure);
    }

    pub(super) fn sync(&mut self, engine: &Engine) -> Result<()> {
        let Log::Open(wal) = &mut self.log else { return Ok(()) };
        if !wal.is_unsynced() {
            return Ok(());
        }
        let start = engine.env.clock.now();
        let synced = wal.sync(&self.unsynced);
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
        if self.is_stuck() {
            self.leave_failed_log(engine)?;
        }
        let full = engine.current.pin().active.memtable.size_bytes();
        let is_asked = engine.memory.as_ref().is_some_and(|memory| memory.asked());
        if full >= engine.table_files.options.write_buffer_bytes || is_asked {
            engine.wait_for_flushes()?;
            self.seal(engine)?;
        }
        engine.wait_for_merges()?;
        self.slow_down(engine, bytes);
        Ok(())
    }

    /// Moves from a log whose end is unknown to a new one, and has the old one's entries flushed.
    /// After an error the next write tries again what is left to do.
    fn leave_failed_log(&mut self, engine: &Engine) -> Result<()> {
        if self.has_failed() {
            let is_empty = engine.current.pin().active.memtable.is_empty();
            self.owes_flush |= !is_empty;
            if is_empty { self.replace_log(engine)? } else { self.seal_before_new_log(engine) }
        }
        engine.flush_sealed()?;
        if self.owes_flush && !engine.current.pin().sealed.is_empty() {
            return Err(Error::stopped(&Error::FlushUnderWay));
        }
        self.owes_flush = false;
        self.unsynced.forget();
        self.tell_failure(None);
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
        if self.has_failed() {
            self.owes_flush = true;
            self.seal_before_new_log(engine);
            return Ok(());
        }
        self.seal(engine)
    }

    /// Seals the active memtable if it has entries.
    pub(crate) fn seal(&mut self, engine: &Engine) -> Result<()> {
        if self.has_failed() {
            return self.leave_failed_log(engine);
        }
        if engine.current.pin().active.memtable.is_empty() {
            return Ok(());
        }
        self.open_log(engine)?;
        // Later logs may be synced while this one's entries are in memory only.
        self.sync(engine)?;
        let (wal, active) = self.new_log(engine)?;
        self.seal_onto(engine, Log::Open(wal), active);
        Ok(())
    }

    /// Brings all that was written into tables, and takes a number for what is to be written past
    /// the log.
    pub(super) fn stand_apart(&mut self, engine: &Engine) -> Result<Sequence> {
        if self.is_stuck() {
            self.leave_failed_log(engine)?;
        }
        self.seal(engine)?;
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

    /// The next log is made by the write that needs it. Until then the failed one is the last: a
    /// process that is killed meanwhile finds all acknowledged writes in it. A next log would say
    /// that only synced ones count.
    fn seal_before_new_log(&mut self, engine: &Engine) {
        let before = self.as_predecessor();
        let number = engine.table_files.new_file();
        let active = self.new_active(engine, number, 0);
        self.seal_onto(engine, Log::Unmade { number, before, replaces: false }, active);
    }

    fn seal_onto(&mut self, engine: &Engine, log: Log, active: Active) {
        // Before it is there to be flushed.
        if let Some(memory) = &engine.memory {
            memory.note_sealed(engine.current.pin().active.memtable.size_bytes());
        }
        let mut installer = engine.installer();
        engine.seal(&mut installer, active, Sequence(self.next.0 - 1));
        drop(installer);
        self.go_on_with(log);
        engine.work_appeared();
    }

    fn go_on_with(&mut self, log: Log) {
        let end = if let Log::Open(wal) = &log { Some(wal.end()) } else { None };
        self.unsynced.follow(end);
        (self.log, self.next_failed) = (log, false);
    }

    /// What the next log says of this one.
    fn as_predecessor(&self) -> Predecessor {
        match &self.log {
            Log::Open(wal) => Predecessor { wal: wal.number(), valid_bytes: wal.valid_bytes() },
            Log::Unmade { before, .. } => *before,
        }
    }

    /// Requires: the active memtable is empty.
    fn replace_log(&mut self, engine: &Engine) -> Result<()> {
        let (wal, active) = self.new_log(engine)?;
        let _installer = engine.installer();
        let mut next = (*engine.current.hold()).clone();
        next.active = active;
        engine.current.store(Arc::new(next));
        self.go_on_with(Log::Open(wal));
        Ok(())
    }

    fn new_log(&mut self, engine: &Engine) -> Result<(Wal, Active)> {
        let table_files = &engine.table_files;
        let number = table_files.new_file();
        self.open_log(engine)?;
        let before = self.as_predecessor();
        // After a failure, or a panic, the new log may be there all the same. It says how long the
        // old one is, which must stay so.
        self.next_failed = true;
        engine.leaving.expect_logs([number]);
        let created = Wal::create(&table_files.folder, number, before);
        let created = created.and_then(|wal| on_record(engine, wal));
        let wal = created.inspect_err(|error| self.tell_failure(Some(error)))?;
        let active = self.new_active(engine, number, wal.len());
        Ok((wal, active))
    }

    /// An empty memtable for the entries of a log that has so many bytes.
    fn new_active(&self, engine: &Engine, wal: u64, log_bytes: u64) -> Active {
        let memtable = Arc::new(Memtable::sized(engine.memtable_size));
        let log_bytes = Arc::new(AtomicU64::new(log_bytes));
        Active { memtable, wal, log_bytes, first: self.next }
    }

    /// Slows a writer down while flushes or merges lag behind.
    fn slow_down(&mut self, engine: &Engine, bytes: usize) {
        if let Some(time) = self.debt.charge(&engine.lag(), engine.run_limits, bytes) {
            if engine.table_files.options.background != Background::Stepped {
                pause(time);
            }
            engine.counters.slowdowns.add(time);
            engine.env.tell(Event::WriterSlowed { time });
        }
    }
}
