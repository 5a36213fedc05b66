//! The keeper: a thread for work that is due after a while. It syncs the log in time, whatever its
//! writer waits for, and removes files after their last reader.
//! ```text
//! writer   the first write since the last sync   --.
//! reader   drops a table that left the tree      --+-> call -> keeper: sync, remove files -> sleep
//! ```
//! In stepped mode there is no such thread: writes sync what is due, and steps remove files.
//!
//! Invariant: the keeper sleeps when nothing is due, and takes no lock that a writer holds while it
//! waits.

use std::time::Duration;

use crate::storage::life::Life;
use crate::sync::{Arc, Condvar, Mutex, OnceLock, lock, wait, wait_for};

/// Wakes the keeper.
pub(crate) struct Keeper {
    life: Arc<Life>,
    state: Mutex<KeeperState>,
    called: Condvar,
}

#[derive(Default)]
struct KeeperState {
    /// Something may be due that the keeper has not seen.
    is_called: bool,
    stopping: bool,
}

impl Keeper {
    pub(crate) fn new(life: Arc<Life>) -> Self {
        Keeper { life, state: Mutex::default(), called: Condvar::new() }
    }

    /// Has the keeper look for due work. Does nothing if there is no keeper: the store is closed,
    /// or this process is a child.
    pub(crate) fn call(&self) {
        if self.life.check().is_err() {
            return;
        }
        let mut state = lock(&self.state);
        // A keeper that was called and has not looked yet will see this too.
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

    /// Sleeps until it is called, or until a time has passed. False: the thread is to end.
    pub(crate) fn sleep(&self, time: Option<Duration>) -> bool {
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

/// Belongs to a table that has left the tree, and is dropped with it by its last reader.
#[derive(Default)]
pub(crate) struct Farewell(OnceLock<Arc<Keeper>>);

impl Farewell {
    pub(crate) fn call(&self, keeper: &Arc<Keeper>) {
        let _ = self.0.set(Arc::clone(keeper));
    }
}

impl Drop for Farewell {
    fn drop(&mut self) {
        if let Some(keeper) = self.0.get() {
            keeper.call();
        }
    }
}
