//! What a store needs from outside that cannot be plain data: storage, clock, pauses.

use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::error::Error;
use crate::events::{Event, Listener, Listening};
use crate::storage::disk::Disk;
use crate::storage::traits::Storage;
use crate::sync::{Arc, AtomicU64, Ordering};

/// Where a store gets its files, its time and its pauses from.
#[derive(Clone)]
#[non_exhaustive]
pub struct Environment {
    /// Where the files are.
    pub storage: Arc<dyn Storage>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What is called when a thread reaches a gap between two steps.
    pub pauses: Pauses,
    pub(crate) listening: Listening,
}

impl Default for Environment {
    fn default() -> Self {
        let clock = Arc::new(SystemClock { start: Instant::now() });
        Environment {
            storage: Arc::new(Disk),
            clock,
            pauses: Pauses::default(),
            listening: Listening::default(),
        }
    }
}

impl Environment {
    /// The real disk, the system's clock, no pauses.
    pub fn new() -> Environment {
        Environment::default()
    }

    /// This environment with its files elsewhere.
    #[must_use]
    pub fn storage(self, storage: Arc<dyn Storage>) -> Self {
        Environment { storage, ..self }
    }

    /// This environment with another clock.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Environment { clock, ..self }
    }

    /// This environment with a listener, which hears what happens in the store.
    #[must_use]
    pub fn listener(self, listener: Arc<dyn Listener>) -> Self {
        Environment { listening: Listening(Some(listener)), ..self }
    }

    /// This environment with pauses.
    #[must_use]
    pub fn pauses(self, pauses: Pauses) -> Self {
        Environment { pauses, ..self }
    }
}

impl Environment {
    /// Tells the listener.
    pub(crate) fn tell(&self, event: Event<'_>) {
        self.listening.tell(event);
    }

    /// Tells the listener what has failed, where it has.
    pub(crate) fn tell_failure(&self, work: &str, error: &Error) {
        self.tell(Event::Failed { work, error });
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").finish_non_exhaustive()
    }
}

/// A clock that never goes back.
pub trait Clock: Send + Sync {
    /// The time since a fixed moment in the past.
    fn now(&self) -> Duration;

    /// The time since the start of 1970, for entries that expire. It may go back if someone sets
    /// the clock. Expired entries may then return, unless a merge has dropped them. A test's clock
    /// may leave it at [`now`](Clock::now).
    fn since_epoch(&self) -> Duration {
        self.now()
    }
}

struct SystemClock {
    start: Instant,
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn since_epoch(&self) -> Duration {
        // Before 1970 nothing has expired.
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

/// A clock for tests, which moves only when it is told to.
#[derive(Debug, Default)]
pub struct ManualClock {
    nanoseconds: AtomicU64,
}

impl ManualClock {
    /// Moves forward, at most to the last nanosecond that it can show.
    pub fn advance(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let later = |now: u64| Some(now.saturating_add(time));
        let _ = self.nanoseconds.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }
}

/// A gap between two steps in which the order of threads matters (the ordering rules of the
/// design).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PausePoint {
    /// A get has pinned its version, and has not read its sequence number yet.
    GetPinned,
    /// A snapshot or scan has registered its sequence number, and has not pinned a version yet.
    SnapshotRegistered,
    /// A group of batches is in the memtable, and is not visible yet.
    WritesInserted,
    /// A flush has written its table and prepared the guard, and has not installed them yet.
    FlushPrepared,
    /// A merge has copied the registered sequence numbers, and has not read an entry yet.
    MergeStarted,
    /// A merge has written its tables and prepared the guard, and has not installed them yet.
    MergePrepared,
    /// An image of the filter is on disk, and no edit names it yet.
    ImageWritten,
}

type PauseHook = dyn Fn(PausePoint) + Send + Sync;

/// Calls a test's function at each [`PausePoint`]. In release builds it does nothing.
#[derive(Clone, Default)]
pub struct Pauses {
    hook: Option<Arc<PauseHook>>,
}

impl Pauses {
    /// Calls `hook` on the thread that reaches the gap. The thread continues when `hook` returns.
    pub fn new(hook: impl Fn(PausePoint) + Send + Sync + 'static) -> Self {
        Pauses { hook: Some(Arc::new(hook)) }
    }

    #[inline(always)]
    pub(crate) fn at(&self, point: PausePoint) {
        if cfg!(debug_assertions)
            && let Some(hook) = &self.hook
        {
            hook(point);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // It began anew at 0.
    fn a_manual_clock_stays_at_its_last_moment() {
        let clock = ManualClock::default();
        clock.advance(Duration::from_secs(7));
        clock.advance(Duration::MAX);
        clock.advance(Duration::from_secs(7));
        assert_eq!(clock.now(), Duration::from_nanos(u64::MAX));
    }
}
