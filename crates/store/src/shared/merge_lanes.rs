//! How many merges are open at once, of all stores that share threads: each has blocks of all its
//! inputs in memory.
//! ```text
//! a merge begins -> a lane is free? -yes-> it is open -> installed, failed or given up: free again
//!                                 '--no-> writers wait for it? -yes-> it has one beyond the number
//!                                                             '--no-> its store is called later
//! ```
//! Without it, threads would begin a merge of every store in turn, and go on with all of them.
//!
//! Invariant: no store waits while a lane is free.

use crate::shared::worker_pool::{WorkKind, Workers};
use crate::sync::{Arc, Mutex, lock};

/// The lanes of all stores.
pub(crate) struct MergeLanes(Mutex<State>);

struct State {
    /// Below 0: so many are beyond the number.
    free: isize,
    waiting: Vec<Arc<Workers>>,
}

/// One of them, until it is dropped.
pub(crate) struct Lane(Arc<MergeLanes>);

impl MergeLanes {
    pub(crate) fn new(count: usize) -> Self {
        let count = isize::try_from(count).unwrap_or(isize::MAX);
        MergeLanes(Mutex::new(State { free: count, waiting: Vec::new() }))
    }

    /// As many as the options of a store say that shares nothing.
    pub(crate) fn unlimited() -> Self {
        MergeLanes::new(usize::MAX)
    }

    /// A lane for a merge of this store. None: it is called when one is free. Large merges of
    /// others are no reason that its writers wait: then there is one.
    pub(crate) fn take(
        self: &Arc<Self>,
        workers: &Arc<Workers>,
        do_writers_wait: impl FnOnce() -> bool,
    ) -> Option<Lane> {
        let mut state = lock(&self.0);
        if state.free > 0 || do_writers_wait() {
            state.free -= 1;
            return Some(Lane(Arc::clone(self)));
        }
        if !state.waiting.iter().any(|waiting| Arc::ptr_eq(waiting, workers)) {
            state.waiting.push(Arc::clone(workers));
        }
        None
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let mut state = lock(&self.0.0);
        state.free += 1;
        let is_free = state.free > 0;
        let waiting = if is_free { std::mem::take(&mut state.waiting) } else { Vec::new() };
        drop(state);
        waiting.iter().for_each(|workers| workers.call(&[WorkKind::Merge]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::worker_pool::{PoolSize, WorkerPool};
    use crate::storage::life::Life;

    #[test]
    fn lanes_are_given_back() {
        let pool = WorkerPool::new(PoolSize::of_one_store(1));
        let store = || Arc::new(pool.place(Arc::new(Life::new("store".as_ref()))));
        let (lanes, one, other) = (Arc::new(MergeLanes::new(2)), store(), store());
        let take = |store, do_writers_wait| lanes.take(store, || do_writers_wait);
        let (first, second) = (take(&one, false), take(&one, false));
        assert!(first.is_some() && second.is_some());
        assert!(take(&one, false).is_none() && take(&other, false).is_none());
        assert!(take(&other, false).is_none());
        assert_eq!(lock(&lanes.0).waiting.len(), 2, "each once");
        let urgent = take(&other, true);
        assert!(urgent.is_some(), "its writers wait");
        drop(urgent);
        assert_eq!(lock(&lanes.0).waiting.len(), 2, "still none is free");
        drop(first);
        assert_eq!(lock(&lanes.0).waiting.len(), 0, "all are called");
        assert_eq!(lock(&lanes.0).free, 1);
        assert!(take(&other, false).is_some());
    }
}
