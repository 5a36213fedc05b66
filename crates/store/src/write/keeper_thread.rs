//! The keeper's work, in a thread of its own. It syncs the log in time, whatever its writer waits
//! for, and removes files when their last reader is gone.
//! ```text
//! called, or a time is over -> remove files -> sync the log, if its oldest -> sleep
//!                                              write is almost too old
//! ```
//! In stepped mode there is no such thread: writes sync what is due, steps remove files.
//!
//! Invariant: the keeper sleeps when there is nothing to do, and takes no lock that a writer holds
//! while it waits.

use std::time::Duration;

use crate::plan::sync_policy::SyncPolicy;
use crate::write::engine::Engine;

/// The pause before another attempt to sync a log that only its writer can sync.
const SYNC_AGAIN: Duration = Duration::from_millis(20);

/// The pause before another attempt to remove files.
const SWEEP_AGAIN: Duration = Duration::from_secs(1);

impl Engine {
    /// The life of the keeper's thread.
    pub(crate) fn keep_loop(&self) {
        loop {
            let sweep_again = self.sweep().then_some(SWEEP_AGAIN);
            let sync_again = self.keep_log();
            let next = [sweep_again, sync_again].into_iter().flatten().min();
            if !self.keeper.sleep(next) {
                return;
            }
        }
    }

    /// Syncs the log if its oldest write is about to be as old as the interval. The time until that
    /// is due; None: all is synced, or the log has failed, and the next write moves on from it.
    fn keep_log(&self) -> Option<Duration> {
        let SyncPolicy::Interval(interval) = self.table_files.options.sync else { return None };
        loop {
            let unsynced = &self.commit.unsynced;
            let age = unsynced.age(self.env.clock.now()).filter(|_| unsynced.has_log())?;
            // The sync is to be done when the interval is over. Where syncs take long, it begins
            // after half of it.
            let early = unsynced.sync_time().min(interval / 2);
            let left = (interval - early).saturating_sub(age);
            if !left.is_zero() {
                return Some(left);
            }
            if !self.commit.sync_beside(self) {
                return Some(SYNC_AGAIN);
            }
        }
    }
}
