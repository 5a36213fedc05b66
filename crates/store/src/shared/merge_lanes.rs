//! How many merges are open at once, of all stores that share threads: each has blocks of all its
//! inputs in memory.
//! ```text
//! a merge begins -> a lane is free? -yes-> it is open -> installed, failed or given up: free again
//!                                 '--no-> its store waits, and is called
//! ```
//! Without it, threads would begin a merge of every store in turn, and go on with all of them.
//!
//! Invariant: no store waits while a lane is free.

use crate::shared::worker_pool::{WorkKind, Workers};
use crate::sync::{Arc, Mutex, lock};

/// The lanes of all stores.
pub(crate) struct MergeLanes(Mutex<State>);

struct State {
    free: usize,
    waiting: Vec<Arc<Workers>>,
}

/// One of them, until it is dropped.
pub(crate) struct Lane(Arc<MergeLanes>);

impl MergeLanes {
    pub(crate) fn new(count: usize) -> Self {
        MergeLanes(Mutex::new(State { free: count, waiting: Vec::new() }))
    }

    /// As many as the options of a store say that shares nothing.
    pub(crate) fn unlimited() -> Self {
        MergeLanes::new(usize::MAX)
    }

    /// A lane for a merge of this store. None: it is called when one is free.
    pub(crate) fn take(self: &Arc<Self>, workers: &Arc<Workers>) -> Option<Lane> {
        let mut state = lock(&self.0);
        if let Some(left) = state.free.checked_sub(1) {
            state.free = left;
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
        let waiting = std::mem::take(&mut state.waiting);
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
        let (first, second) = (lanes.take(&one), lanes.take(&one));
        assert!(first.is_some() && second.is_some());
        assert!(lanes.take(&one).is_none() && lanes.take(&other).is_none());
        assert!(lanes.take(&other).is_none());
        assert_eq!(lock(&lanes.0).waiting.len(), 2, "each once");
        drop(first);
        assert_eq!(lock(&lanes.0).waiting.len(), 0, "all are called");
        assert_eq!(lock(&lanes.0).free, 1);
        assert!(lanes.take(&other).is_some());
    }
}
