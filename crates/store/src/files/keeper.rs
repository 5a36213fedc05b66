//! Who sees to what is owed after a while, in a thread of its own: that the log is synced in time, whatever its writer waits for, and that files
//! go when the last one who reads them does.
//! ```text
//! writer   the first write since the last sync    --.
//! reader   lets go of a table that left the tree  --+-> call -> keeper: sync the log in time, remove files -> sleep
//! ```
//! In stepped mode there is no such thread: writes sync what is due, steps remove files.
//!
//! Invariant: the keeper sleeps when nothing is owed, and takes no lock that a writer holds while it waits.

use std::time::Duration;

use crate::plan::options::Sync;
use crate::storage::life::Life;
use crate::sync::{Arc, Condvar, Mutex, lock, wait, wait_for};
use crate::tree::shared::Core;

/// After this time the log is tried again that only its writer can sync.
const SYNC_AGAIN: Duration = Duration::from_millis(20);
/// After this time files are tried again that could not be removed.
const SWEEP_AGAIN: Duration = Duration::from_secs(1);

/// How the keeper is woken.
pub(crate) struct Keeper {
    life: Arc<Life>,
    state: Mutex<State>,
    called: Condvar,
}

#[derive(Default)]
struct State {
    /// Something may be owed that it does not know of.
    is_called: bool,
    stopping: bool,
}

impl Keeper {
    pub(crate) fn new(life: Arc<Life>) -> Self {
        Keeper { life, state: Mutex::default(), called: Condvar::new() }
    }

    /// Has the keeper look what is owed. Does nothing where there is none any more: the store is closed, or this is a child.
    pub(crate) fn call(&self) {
        if self.life.check().is_err() {
            return;
        }
        let mut state = lock(&self.state);
        // Who was called and has not come yet will.
        if !state.is_called {
            state.is_called = true;
            self.called.notify_one();
        }
    }

    /// Ends the keeper's thread.
    pub(crate) fn stop(&self) {
        lock(&self.state).stopping = true;
        self.called.notify_one();
    }

    /// Sleeps until it is called, or for a time if there is one. False: it is to end.
    fn sleep(&self, time: Option<Duration>) -> bool {
        let mut state = lock(&self.state);
        let mut is_over = false;
        while !state.is_called && !state.stopping && !is_over {
            (state, is_over) = match time {
                Some(time) => wait_for(&self.called, &self.state, state, time),
                None => (wait(&self.called, state), false),
            };
        }
        state.is_called = false;
        !state.stopping
    }
}

impl Core {
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

    /// Syncs the log if what was written is about to be as old as the interval. The time until it is due; None: nothing is owed, or
    /// the log has failed, and the next write moves on from it.
    fn keep_log(&self) -> Option<Duration> {
        let Sync::Interval(interval) = self.shelf.options.sync else { return None };
        loop {
            let unsynced = &self.commit.unsynced;
            let age = unsynced.age(self.env.clock.now()).filter(|_| unsynced.has_log())?;
            // It is to be done when the interval is over; where syncs take long, it begins at half of it.
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
