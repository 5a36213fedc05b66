//! Clocks: for durations, and for entries that expire.
//!
//! Invariant: `now` never goes back.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::sync::{AtomicU64, Ordering};

/// A clock that never goes back.
pub trait Clock: Send + Sync {
    /// Returns the time since a fixed moment in the past.
    fn now(&self) -> Duration;

    /// Returns the time since the start of 1970, for entries that expire. It may go back if someone
    /// sets the clock. Expired entries may then reappear, unless a merge has dropped them. A test's
    /// clock may keep the default, [`now`](Clock::now).
    fn since_epoch(&self) -> Duration {
        self.now()
    }
}

/// The system's clocks.
pub(crate) struct SystemClock {
    start: Instant,
}

impl SystemClock {
    pub(crate) fn new() -> Self {
        SystemClock { start: Instant::now() }
    }
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

/// A clock for tests, which moves only on request.
#[derive(Debug, Default)]
pub struct ManualClock {
    nanoseconds: AtomicU64,
}

impl ManualClock {
    /// Moves the clock forward, at most to the last nanosecond that it can show.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // Once, it started again at 0.
    fn a_manual_clock_stays_at_its_last_moment() {
        let clock = ManualClock::default();
        clock.advance(Duration::from_secs(7));
        clock.advance(Duration::MAX);
        clock.advance(Duration::from_secs(7));
        assert_eq!(clock.now(), Duration::from_nanos(u64::MAX));
    }
}
