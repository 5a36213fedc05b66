//! The sync seam: every lock and atomic of the store comes from here, so that a model checker can
//! take their place; the switch that readers pin a version with; and the slots of cached blocks.
//! ```text
//! reader   pin() ----> a version that stays as it is while it is held
//! writer   store(new)  later pins see the new one
//! slot     hold() ---> what is in it, or nothing; replace(..) changes it
//! ```
//! Invariant: pinning takes no lock and writes no shared count; holding takes no lock.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};

use arc_swap::{ArcSwap, ArcSwapAny, Guard};
use triomphe::ThinArc;

/// A header and bytes in one piece of memory with their reference count; a handle is one pointer.
pub(crate) type Shared<H> = ThinArc<H, u8>;

/// A place for one shared piece of memory. It takes the room of a pointer.
pub(crate) struct Slot<H>(ArcSwapAny<Option<Shared<H>>>);

const _: () = assert!(size_of::<Slot<u64>>() == size_of::<usize>());

impl<H> Slot<H> {
    pub(crate) fn empty() -> Self {
        Slot(ArcSwapAny::new(None))
    }

    /// What is in it, to keep. Takes no lock.
    #[inline]
    pub(crate) fn hold(&self) -> Option<Shared<H>> {
        self.0.load_full()
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load().is_none()
    }

    /// Puts something else in it. What was there lives on with those who hold it.
    pub(crate) fn replace(&self, new: Option<Shared<H>>) -> Option<Shared<H>> {
        self.0.swap(new)
    }
}

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
