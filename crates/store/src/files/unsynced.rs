//! What of the log is durable, and since when something is not: shared by the writer and by who
//! syncs the log beside it.
//! ```text
//! log       | durable | appended before the sync began | appended since |
//! times               \ saving                         \ since: the first of these
//! writer    append -> appended -> since, if none is noted      sync: when a write asks for it, or the interval is over
//! keeper    note what was appended -> sync -> durable          when the oldest write is about to be as old as the interval
//! ```
//! Invariants: `durable` moves to what was appended before a sync began, and only if it succeeded.
//! One sync of a log at a time: the system tells an error of the disk once, so of two at once one
//! would succeed in vain. After a failed one none succeeds any more.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::files::record::RecordWriter;
use crate::storage::Syncer;
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering, lock};

/// No time.
const NONE: u64 = u64::MAX;

/// How much of one log is durable.
pub(crate) struct LogEnd {
    path: PathBuf,
    /// None: the writer alone can sync it.
    syncer: Option<Arc<dyn Syncer>>,
    appended: AtomicU64,
    durable: AtomicU64,
    failed: AtomicBool,
}

impl LogEnd {
    pub(crate) fn of(records: &RecordWriter) -> Arc<Self> {
        Arc::new(LogEnd {
            path: records.path().to_path_buf(),
            syncer: records.syncer(),
            appended: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            failed: AtomicBool::new(false),
        })
    }

    /// The log has whole records up to `bytes`.
    pub(crate) fn appended(&self, bytes: u64) {
        // In one order with the times: who takes a time to save sees what was appended before it
        // was noted.
        self.appended.store(bytes, Ordering::SeqCst);
    }

    pub(crate) fn durable_bytes(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }
}

/// Since when something that was acknowledged is not durable, by the clock.
struct UnsyncedTimes {
    /// The oldest write that no sync has begun to save.
    since: AtomicU64,
    /// The oldest one that the sync under way is to save.
    saving: AtomicU64,
}

/// The log that takes writes, and since when not all of them are durable.
pub(crate) struct Unsynced {
    log: Mutex<Option<Arc<LogEnd>>>,
    /// Held during a sync.
    turn: Mutex<()>,
    times: UnsyncedTimes,
    /// What the last sync took, in nanoseconds.
    sync_nanos: AtomicU64,
}

impl Default for Unsynced {
    fn default() -> Self {
        let times = UnsyncedTimes { since: AtomicU64::new(NONE), saving: AtomicU64::new(NONE) };
        let (log, turn) = (Mutex::default(), Mutex::default());
        Unsynced { log, turn, times, sync_nanos: AtomicU64::new(0) }
    }
}

impl Unsynced {
    /// Writes go into this log from now on.
    pub(crate) fn follow(&self, log: Option<&Arc<LogEnd>>) {
        *lock(&self.log) = log.cloned();
    }

    /// Notes that something was appended that is not synced now. True: all before it is durable, or
    /// about to be.
    pub(crate) fn wrote(&self, now: Duration) -> bool {
        let is_first = self.times.since.load(Ordering::SeqCst) == NONE;
        if is_first {
            self.times.since.store(nanos(now), Ordering::SeqCst);
        }
        is_first
    }

    /// Nothing is owed any more: all is in tables.
    pub(crate) fn forget(&self) {
        self.times.since.store(NONE, Ordering::SeqCst);
    }

    /// Since when something waits for a sync to begin.
    #[inline]
    fn since(&self) -> Option<Duration> {
        time(self.times.since.load(Ordering::SeqCst))
    }

    /// How long something has waited for a sync to begin. A clock that has gone back since does not
    /// tell: then it is as old as can be, or nobody would sync it until the clock is where it was.
    #[inline]
    pub(crate) fn age(&self, now: Duration) -> Option<Duration> {
        self.since().map(|since| now.checked_sub(since).unwrap_or(Duration::MAX))
    }

    /// Since when something that was acknowledged is not durable.
    pub(crate) fn oldest(&self) -> Option<Duration> {
        let [since, saving] = [&self.times.since, &self.times.saving];
        time(saving.load(Ordering::Acquire).min(since.load(Ordering::SeqCst)))
    }

    /// What the last sync took.
    pub(crate) fn sync_time(&self) -> Duration {
        Duration::from_nanos(self.sync_nanos.load(Ordering::Relaxed))
    }

    pub(crate) fn note_sync_time(&self, took: Duration) {
        self.sync_nanos.store(nanos(took), Ordering::Relaxed);
    }

    /// Whether a sync may save what is owed. False: there is no log, or it has failed: tables are
    /// to save it.
    pub(crate) fn has_log(&self) -> bool {
        lock(&self.log).as_ref().is_some_and(|log| !log.has_failed())
    }

    /// Has the writer sync its log.
    pub(crate) fn sync(&self, log: &LogEnd, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let _turn = lock(&self.turn);
        self.begin(log).end(sync).map(drop)
    }

    /// Syncs the log beside its writer; false: all of it was durable. None: it cannot be done.
    /// `failed` hears of an error, if the log still takes writes.
    pub(crate) fn sync_beside(&self, failed: impl FnOnce(&Error)) -> Option<Result<bool>> {
        let _turn = lock(&self.turn);
        // The times are those of this log, until its writer gets at the next one.
        let present = lock(&self.log);
        let log = present.clone()?;
        let syncer = Arc::clone(log.syncer.as_ref()?);
        let begun = self.begin(&log);
        drop(present);
        // A storage that panics has failed, and the next write is to hear of it.
        let sync = || catch_unwind(AssertUnwindSafe(|| syncer.sync()));
        let panicked = |_| Err(std::io::Error::other("the storage has panicked"));
        let synced = begun.end(|| sync().unwrap_or_else(panicked).map_err(Error::io(&log.path)));
        if let Err(error) = &synced {
            let present = lock(&self.log);
            if present.as_ref().is_some_and(|present| Arc::ptr_eq(present, &log)) {
                failed(error);
            }
        }
        Some(synced)
    }

    /// Notes what a sync that begins now is to save.
    fn begin<'s>(&'s self, log: &'s LogEnd) -> Begun<'s> {
        let since = self.times.since.swap(NONE, Ordering::SeqCst);
        self.times.saving.store(since, Ordering::Release);
        let upto = log.appended.load(Ordering::SeqCst);
        Begun { log, times: &self.times, since, upto, has_failed: true }
    }
}

/// A sync under way. Dropped before it ends well: it has failed, perhaps by a panic, and what it
/// was to save is as old as it was.
struct Begun<'s> {
    log: &'s LogEnd,
    times: &'s UnsyncedTimes,
    since: u64,
    upto: u64,
    has_failed: bool,
}

impl Begun<'_> {
    /// False: all was durable already. After an error no sync of the log succeeds.
    fn end(mut self, sync: impl FnOnce() -> Result<()>) -> Result<bool> {
        if self.log.has_failed() {
            let refused = std::io::Error::other("an earlier sync of this file failed");
            return Err(Error::io(&self.log.path)(refused));
        }
        let has_more = self.upto > self.log.durable_bytes();
        if has_more {
            sync()?;
            self.log.durable.store(self.upto, Ordering::Release);
        }
        (self.has_failed, self.since) = (false, NONE);
        Ok(has_more)
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if self.has_failed {
            self.log.failed.store(true, Ordering::Release);
        }
        self.times.since.fetch_min(self.since, Ordering::SeqCst);
        self.times.saving.store(NONE, Ordering::Release);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NONE - 1).min(NONE - 1)
}

fn time(nanos: u64) -> Option<Duration> {
    (nanos != NONE).then(|| Duration::from_nanos(nanos))
}
