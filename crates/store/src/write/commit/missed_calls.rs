//! Threads that found the writer at work: they are called when it lets go.
//! ```text
//! thread   is to seal -> the writer is locked -> noted -> locked still -> other work
//! writer   unlocked -> calls those that are noted
//! ```
//! Invariant: no call is lost. A thread that is noted and finds the writer locked once more is
//! noted before whoever has locked it looks. Who finds none here pays one step in memory.

use crate::shared::worker_pool::{WorkKind, Workers};
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering, lock};

/// The threads of these flush, and are to be called.
#[derive(Default)]
pub(crate) struct MissedCalls {
    count: AtomicUsize,
    workers: Mutex<Vec<Arc<Workers>>>,
}

impl MissedCalls {
    /// Notes a thread. It tries once more then.
    pub(crate) fn note(&self, workers: &Arc<Workers>) {
        let mut all = lock(&self.workers);
        all.push(Arc::clone(workers));
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    /// Calls them. Requires: the caller has let go of the writer's lock.
    pub(crate) fn call(&self) {
        // It writes, so that it is in one order with what is noted, and with the lock.
        if self.count.fetch_or(0, Ordering::AcqRel) > 0 {
            self.call_all();
        }
    }

    #[cold]
    fn call_all(&self) {
        let mut all = lock(&self.workers);
        let missed = std::mem::take(&mut *all);
        self.count.fetch_sub(missed.len(), Ordering::AcqRel);
        drop(all);
        missed.iter().for_each(|workers| workers.call(&[WorkKind::Flush]));
    }
}
