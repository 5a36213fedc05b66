//! The clock of a history. Syncs and pauses use the machine's time; expiries use a time that stands
//! still between ticks.
//! ```text
//! reader, writer: [ read, compare ]  [ read, compare ]        each at one tick
//! keeper:                          ^ tick
//! ```
//! Invariant: a tick comes only while no thread compares, so the expired keys are known.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use trommel::storage::Clock;

use crate::stress::setup::INTERVAL;

/// The most ticks of a history: expiries have no room for more.
const TICKS_MAX: u32 = 1500;

/// The clock of a history.
pub(super) struct TickClock {
    start: Instant,
    ticks: AtomicU32,
    gate: RwLock<()>,
}

impl TickClock {
    pub(super) fn new() -> Self {
        TickClock { start: Instant::now(), ticks: AtomicU32::new(0), gate: RwLock::new(()) }
    }

    /// Returns the current tick, which stays as long as the guard lives.
    pub(super) fn hold(&self) -> (RwLockReadGuard<'_, ()>, u32) {
        let guard = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        (guard, self.ticks.load(Ordering::SeqCst))
    }

    /// Advances by a tick, unless a thread compares.
    pub(super) fn try_tick(&self) {
        if let Ok(_guard) = self.gate.try_write()
            && self.ticks.load(Ordering::SeqCst) < TICKS_MAX
        {
            self.ticks.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Clock for TickClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn since_epoch(&self) -> Duration {
        INTERVAL * self.ticks.load(Ordering::SeqCst)
    }
}
