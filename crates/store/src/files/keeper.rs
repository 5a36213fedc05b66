//! Who sees to what is owed after a while, in a thread of its own: that the log is synced in time,
//! whatever its writer waits for, and that files go when the last one who reads them does.
//! ```text
//! writer   the first write since the last sync    --.
//! reader   lets go of a table that left the tree  --+-> call -> keeper: sync the log in time, remove files -> sleep
//! ```
//! In stepped mode there is no such thread: writes sync what is due, steps remove files.
//!
//! Invariant: the keeper sleeps when nothing is owed, and takes no lock that a writer holds while
//! it waits.

use std::time::Duration;

use crate::storage::life::Life;
use crate::sync::{Arc, Condvar, Mutex, OnceLock, lock, wait, wait_for};

/// How the keeper is woken.
pub(crate) struct Keeper {
    life: Arc<Life>,
    state: Mutex<KeeperState>,
    called: Condvar,
}

#[derive(Default)]
struct KeeperState {
    /// Something may be owed that it does not know of.
    is_called: bool,
    stopping: bool,
}

impl Keeper {
    pub(crate) fn new(life: Arc<Life>) -> Self {
        Keeper { life, state: Mutex::default(), called: Condvar::new() }
    }

    /// Has the keeper look what is owed. Does nothing where there is none any more: the store is
    /// closed, or this is a child.
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

/// Of a table that has left the tree: dropped with it, when the last one has let go.
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
