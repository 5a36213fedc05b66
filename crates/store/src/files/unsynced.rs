//! How much of the log is durable, and since when some of it is not. The writer shares this with
//! the thread that syncs the log concurrently.
//! ```text
//! log      | durable | appended before the sync began | appended since |
//! times              \ saving                         \ since: the first of these
//! writer   append -> appended -> since, if unset     syncs: on request, or after the interval
//! keeper   note what was appended -> sync -> durable     syncs: before the oldest write is too old
//! ```
//! Invariants: `durable` advances to what was appended before a sync began, and only if that sync
//! succeeded. Only one sync of a log runs at a time. The system reports a disk error only once, so
//! one of two syncs would succeed wrongly. After a failed sync none succeeds.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::files::record::RecordWriter;
use crate::storage::traits::Syncer;
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering, lock};

/// Stands for no time.
const NONE: u64 = u64::MAX;

/// How much of one log is durable.
pub(crate) struct LogEnd {
    path: PathBuf,
    /// `None`: only the writer can sync it.
    syncer: Option<Arc<dyn Syncer>>,
    appended: AtomicU64,
    /// Shared with change feeds, which do not need the file.
    durable: Arc<AtomicU64>,
    failed: AtomicBool,
}

impl LogEnd {
    pub(crate) fn of(records: &RecordWriter) -> Arc<Self> {
        Arc::new(LogEnd {
            path: records.path().to_path_buf(),
            syncer: records.syncer(),
            appended: AtomicU64::new(0),
            durable: Arc::new(AtomicU64::new(0)),
            failed: AtomicBool::new(false),
        })
    }

    /// Notes that the log has whole records up to `bytes`.
    pub(crate) fn appended(&self, bytes: u64) {
        // Ordered with the times: a thread that reads a time also sees what was appended before it
        // was set.
        self.appended.store(bytes, Ordering::SeqCst);
    }

    pub(crate) fn durable_bytes(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Returns a view of `durable_bytes`.
    pub(crate) fn durable(&self) -> DurableBytes {
        DurableBytes(Arc::clone(&self.durable))
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }
}

/// The number of durable bytes of a log. It keeps no file open.
#[derive(Clone)]
pub(crate) struct DurableBytes(Arc<AtomicU64>);

impl DurableBytes {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// The log that takes writes, and since when some of them are not durable.
pub(crate) struct Unsynced {
    log: Mutex<Option<Arc<LogEnd>>>,
    /// Held during a sync.
    turn: Mutex<()>,
    /// The time of the oldest write that no sync has begun to save.
    since: AtomicU64,
    /// The time of the oldest write that the current sync is to save.
    saving: AtomicU64,
    /// The duration of the last sync, in nanoseconds.
    sync_nanos: AtomicU64,
}

impl Default for Unsynced {
    fn default() -> Self {
        let [since, saving] = [NONE, NONE].map(AtomicU64::new);
        let (log, turn) = (Mutex::default(), Mutex::default());
        Unsynced { log, turn, since, saving, sync_nanos: AtomicU64::new(0) }
    }
}

impl Unsynced {
    /// Follows another log, which takes writes from now on.
    pub(crate) fn follow(&self, log: Option<&Arc<LogEnd>>) {
        *lock(&self.log) = log.cloned();
    }

    /// Notes that something was appended that is not synced now. True: everything before it is
    /// durable, or about to be.
    pub(crate) fn wrote(&self, now: Duration) -> bool {
        let is_first = self.since.load(Ordering::SeqCst) == NONE;
        if is_first {
            self.since.store(nanos(now), Ordering::SeqCst);
        }
        is_first
    }

    /// Forgets what waits for a sync, since everything is in tables.
    pub(crate) fn forget(&self) {
        self.since.store(NONE, Ordering::SeqCst);
    }

    /// The time since which something waits for a sync to begin.
    #[inline]
    fn since(&self) -> Option<Duration> {
        time(self.since.load(Ordering::SeqCst))
    }

    /// Returns how long something has waited for a sync to begin. If the clock has gone back, the
    /// wait counts as the longest possible. Otherwise no sync would come until the clock catches
    /// up.
    #[inline]
    pub(crate) fn age(&self, now: Duration) -> Option<Duration> {
        self.since().map(|since| now.checked_sub(since).unwrap_or(Duration::MAX))
    }

    /// The time since which acknowledged writes are not durable.
    pub(crate) fn oldest(&self) -> Option<Duration> {
        let [since, saving] = [&self.since, &self.saving];
        time(saving.load(Ordering::Acquire).min(since.load(Ordering::SeqCst)))
    }

    /// The duration of the last sync.
    pub(crate) fn sync_time(&self) -> Duration {
        Duration::from_nanos(self.sync_nanos.load(Ordering::Relaxed))
    }

    pub(crate) fn note_sync_time(&self, took: Duration) {
        self.sync_nanos.store(nanos(took), Ordering::Relaxed);
    }

    /// Whether a sync can save what waits. False: there is no log, or it has failed, so tables must
    /// save it.
    pub(crate) fn has_log(&self) -> bool {
        lock(&self.log).as_ref().is_some_and(|log| !log.has_failed())
    }

    /// Lets the writer sync its log.
    pub(crate) fn sync(&self, log: &LogEnd, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let _turn = lock(&self.turn);
        self.begin(log).end(sync).map(drop)
    }

    /// Syncs the log concurrently with its writer. First `values` syncs what the log refers to.
    /// False: all of it was durable. `None`: the log cannot be synced this way. Calls `failed` with
    /// an error if the log still takes writes.
    pub(crate) fn sync_beside(
        &self,
        values: impl FnOnce() -> Result<()>,
        failed: impl FnOnce(&Error),
    ) -> Option<Result<bool>> {
        let _turn = lock(&self.turn);
        // The times belong to this log until its writer gets the next one.
        let present = lock(&self.log);
        let log = present.clone()?;
        let syncer = Arc::clone(log.syncer.as_ref()?);
        let begun = self.begin(&log);
        drop(present);
        // A panic of the storage is a failure, which the next write must see.
        let sync = || {
            values()?;
            syncer.sync().map_err(Error::io(&log.path))
        };
        let panicked = || std::io::Error::other("the storage has panicked");
        let synced = begun.end(|| {
            let synced = catch_unwind(AssertUnwindSafe(sync));
            synced.unwrap_or_else(|_| Err(Error::io(&log.path)(panicked())))
        });
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
        let since = self.since.swap(NONE, Ordering::SeqCst);
        self.saving.store(since, Ordering::Release);
        let upto = log.appended.load(Ordering::SeqCst);
        Begun { log, unsynced: self, since, upto, has_failed: true }
    }
}

/// A sync in progress. If it is dropped early, it has failed, perhaps by a panic. Then its writes
/// are as old as before.
struct Begun<'s> {
    log: &'s LogEnd,
    unsynced: &'s Unsynced,
    since: u64,
    upto: u64,
    has_failed: bool,
}

impl Begun<'_> {
    /// False: everything was durable already. After an error no sync of the log succeeds.
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
        self.unsynced.since.fetch_min(self.since, Ordering::SeqCst);
        self.unsynced.saving.store(NONE, Ordering::Release);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NONE - 1).min(NONE - 1)
}

fn time(nanos: u64) -> Option<Duration> {
    (nanos != NONE).then(|| Duration::from_nanos(nanos))
}
