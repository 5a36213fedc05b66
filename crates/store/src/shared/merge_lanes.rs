//! Limits the open merges of all stores that share threads, since each open merge has blocks of all
//! its inputs in memory.
//! ```text
//! a merge begins -> a lane is free? -yes-> it is open -> installed, failed or given up: free again
//!                                 '--no-> writers wait for it? -yes-> it gets an extra lane
//!                                                             '--no-> its store is called later
//! ```
//! Without lanes, threads would begin a merge of every store in turn, and continue with all of
//! them.
//!
//! Invariant: no store waits while a lane is free.

use crate::shared::worker_pool::{WorkKind, Workers};
use crate::sync::{Arc, Mutex, lock};

/// The lanes that all stores share.
pub(crate) struct MergeLanes(Mutex<State>);

struct State {
    /// Negative: this many extra lanes are in use.
    free: isize,
    waiting: Vec<Arc<Workers>>,
}

/// A lane that is held until it is dropped.
pub(crate) struct Lane(Arc<MergeLanes>);

impl MergeLanes {
    pub(crate) fn new(count: usize) -> Self {
        let count = isize::try_from(count).unwrap_or(isize::MAX);
        MergeLanes(Mutex::new(State { free: count, waiting: Vec::new() }))
    }

    /// Makes lanes for a store that shares nothing. Its options limit its merges.
    pub(crate) fn unlimited() -> Self {
        MergeLanes::new(usize::MAX)
    }

    /// Takes a lane for a merge of this store. None: no lane is free, and the store is called when
    /// one is. If writers wait for the merge, it gets a lane in any case: large merges of other
    /// stores must not block them.
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
