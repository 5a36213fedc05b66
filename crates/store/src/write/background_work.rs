//! The work that threads do for an open store, step by step.
//! ```text
//! flush    seal, if write memory is short -> a step of a flush      -> the next | a pause
//! merge    failed merges whose pause is over -> a step of a merge   -> the next | a pause
//!          no merge is due -> a step of a refit (a part that gets other bits)
//! keep     remove files -> sync the log, if its oldest write is almost too old  -> a pause
//!                       -> an empty group behind the last one, if nobody writes
//! ```
//! In stepped mode there are no threads: writes sync what is due, and steps do the rest.
//!
//! Invariants: a thread does not sleep for one store, but works for other stores meanwhile. Keeping
//! the log takes no lock that a writer holds while it waits.

use std::time::Duration;

use crate::entries::keyspace_id::KeyspaceId;
use crate::error::Error;
use crate::plan::sync_policy::SyncPolicy;
use crate::shared::worker_pool::{Client, RETRY_FIRST, Reschedule, WorkKind};
use crate::sync::{lock, now};
use crate::write::engine::Engine;

/// The longest pause of a rate-limited merge before it checks again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The pause before another attempt to sync a log that only its writer can sync.
const SYNC_AGAIN: Duration = Duration::from_millis(20);

/// The pause before another attempt to remove files.
const SWEEP_AGAIN: Duration = Duration::from_secs(1);

impl Client for Engine {
    fn work(&self, kind: WorkKind) -> Reschedule {
        if lock(&self.work).stopping {
            return Reschedule::WhenCalled;
        }
        match kind {
            WorkKind::Flush => self.flush_in_background(),
            WorkKind::Merge => self.merge_in_background(),
            WorkKind::Keep => self.keep(),
        }
    }

    fn note_panic(&self, kind: WorkKind) {
        // Writes do not depend on the thread that keeps logs and files.
        if kind == WorkKind::Keep {
            return;
        }
        let panicked = Error::panicked(format!("the {kind:?} thread"));
        lock(&self.work).panicked = Some(panicked.clone());
        self.work_has_changed();
        self.env.tell_failure("a thread", &panicked);
    }

    fn begin_anew(&self) {
        lock(&self.work).panicked = None;
    }
}

impl Engine {
    fn flush_in_background(&self) -> Reschedule {
        let seal_again = (!self.seal_if_requested()).then_some(RETRY_FIRST);
        if let Some(left) = lock(&self.work).flush.pause_left(now()) {
            return Reschedule::After(left).at_latest(seal_again);
        }
        let flushed = self.flush_step();
        if let Some(memory) = self.memory() {
            memory.note_stuck(flushed.is_err());
        }
        let next = match flushed {
            Ok(true) => {
                lock(&self.work).flush.forget_pause();
                Reschedule::Now
            }
            Ok(false) => Reschedule::WhenCalled,
            Err(_) => Reschedule::After(lock(&self.work).flush.pause(now())),
        };
        next.at_latest(seal_again)
    }

    fn merge_in_background(&self) -> Reschedule {
        let retry = self.release_paused_merges();
        let next = if !self.is_wanted(WorkKind::Merge, &lock(&self.work)) {
            Reschedule::WhenCalled
        } else if let Some(debt) = self.debt_of_merges() {
            Reschedule::After(debt.min(LOOK_AGAIN))
        } else {
            match self.merge_step(None) {
                Ok(true) => Reschedule::Now,
                Ok(false) if self.refit_step() => Reschedule::Now,
                Ok(false) => Reschedule::WhenCalled,
                Err(failed) => {
                    let mut work = lock(&self.work);
                    Reschedule::After(work.merges.pause(failed.merge, failed.times, now()))
                }
            }
        };
        next.at_latest(retry).at_latest(self.next_refit_look())
    }

    /// Releases failed merges whose pause is over, or whose failure was forgotten, so that they can
    /// be retried. Returns the time until the next pause is over. No other thread retries the same
    /// merge meanwhile.
    fn release_paused_merges(&self) -> Option<Duration> {
        let mut work = lock(&self.work);
        let (released, left) = work.merges.release_paused(now());
        drop(work);
        if released {
            self.work_has_changed();
        }
        left
    }

    /// Returns how long merges have to pause to keep to their rate. None: they need not pause, or
    /// writers wait for them.
    fn debt_of_merges(&self) -> Option<Duration> {
        let debt = self.rate_limiter.debt(self.env.clock.now())?;
        (!self.lag().waits_for_merges(self.run_limits)).then_some(debt)
    }

    /// Removes files and keeps the log. All key spaces share one log, so only the default one keeps
    /// it.
    fn keep(&self) -> Reschedule {
        let sweep_again = self.sweep().then_some(SWEEP_AGAIN);
        let keeps_log = self.keyspace == KeyspaceId::DEFAULT;
        let sync_again = if keeps_log { self.keep_log() } else { None };
        let look_again = if keeps_log { self.follow_idle_log() } else { None };
        Reschedule::WhenCalled.at_latest(sweep_again).at_latest(sync_again).at_latest(look_again)
    }

    /// Makes the log's last group count for followers, if the log is idle. Returns when to check
    /// again.
    fn follow_idle_log(&self) -> Option<Duration> {
        // The log is not idle while someone writes.
        let Some(mut writer) = self.commit.try_writer() else { return Some(LOOK_AGAIN) };
        let look_again = writer.follow_if_idle(self);
        drop(writer);
        self.writer_is_free();
        look_again
    }

    /// Syncs the log if its oldest unsynced write is about to reach the sync interval. Returns the
    /// time until a sync is due. None: everything is synced; or the log has failed, and the next
    /// write replaces it.
    fn keep_log(&self) -> Option<Duration> {
        let SyncPolicy::Interval(interval) = self.table_files.options.sync else { return None };
        loop {
            let unsynced = &self.commit.unsynced;
            let age = unsynced.age(self.env.clock.now()).filter(|_| unsynced.has_log())?;
            // The sync should be complete when the interval is over. If syncs take long, it begins
            // after half of the interval.
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
