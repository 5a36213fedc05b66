//! The sync seam: every lock and atomic of the store comes from here, so that a model checker can
//! take their place; and the switch that readers pin a version with.
//! ```text
//! reader   pin() ----> a version that stays as it is while it is held
//! writer   store(new)  later pins see the new one
//! ```
//! Invariant: pinning takes no lock and writes no shared count.

pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};

use arc_swap::{ArcSwap, Guard};

/// One shared value that is replaced as a whole.
pub(crate) struct Switch<T>(ArcSwap<T>);

impl<T> Switch<T> {
    pub(crate) fn new(value: Arc<T>) -> Self {
        Switch(ArcSwap::new(value))
    }

    /// The present value, for a short look.
    pub(crate) fn pin(&self) -> Guard<Arc<T>> {
        self.0.load()
    }

    /// The present value, to keep.
    pub(crate) fn hold(&self) -> Arc<T> {
        self.0.load_full()
    }

    /// Puts a new value in place.
    pub(crate) fn store(&self, value: Arc<T>) {
        self.0.store(value);
    }
}

/// Locks. A thread that panicked while it held the lock has left nothing half-done that
/// the next holder could not see: every critical section of the store replaces values as a whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Waits to be woken. See [`lock`] about panics.
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Waits to be woken, or for `time`.
pub(crate) fn wait_for<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    time: std::time::Duration,
) -> MutexGuard<'a, T> {
    let waited = condition.wait_timeout(guard, time);
    waited.unwrap_or_else(std::sync::PoisonError::into_inner).0
}
