//! Threads that found the writer at work, and that it calls once it is free.
//! ```text
//! thread   wants to seal -> the writer is locked -> registers -> still locked -> does other work
//! writer   unlocks -> calls the threads that are registered
//! ```
//! Invariant: no call is lost. A thread registers and then tries the lock again. If it is still
//! held, its holder will see the registration after unlocking. Without registrations this costs the
//! holder one atomic operation.

use crate::shared::worker_pool::{WorkKind, Workers};
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering, lock};

/// Workers whose flush thread is to be called.
#[derive(Default)]
pub(crate) struct MissedCalls {
    count: AtomicUsize,
    workers: Mutex<Vec<Arc<Workers>>>,
}

impl MissedCalls {
    /// Registers a thread, which has to try the lock once more afterwards.
    pub(crate) fn note(&self, workers: &Arc<Workers>) {
        let mut all = lock(&self.workers);
        all.push(Arc::clone(workers));
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    /// Calls all registered threads. Requires: the caller has unlocked the writer.
    pub(crate) fn call(&self) {
        // A read-modify-write, which is ordered with the registrations and with the lock.
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
