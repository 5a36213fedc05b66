//! The single source of all locks, atomics and threads of the store, so that a model checker can
//! replace them. Also the switch with which readers pin a version, the slots of cached blocks, and
//! how callers give up.
//! ```text
//! reader   pin() ----> a version that does not change while it is held
//! writer   store(new)  later pins see the new version
//! slot     hold() ---> its content, or nothing; replace(..) changes it
//!
//!                      locks, atomics, threads    switch, slot
//! an ordinary build    std                        arc-swap: sync/swap.rs
//! --cfg loom           loom                       a list, and its current index: sync/model.rs
//! --cfg shuttle        shuttle                    the same
//! ```
//! Invariant: pinning takes no lock and writes to no shared counter; holding takes no lock.

pub(crate) mod giving_up;
#[cfg(any(loom, shuttle))]
mod model;
#[cfg(not(any(loom, shuttle)))]
mod swap;

#[cfg(loom)]
use loom::{sync, thread};
#[cfg(shuttle)]
use shuttle::{sync, thread};
#[cfg(not(any(loom, shuttle)))]
use std::{sync, thread};

use std::sync::{PoisonError, TryLockError};
use std::time::{Duration, Instant};

use triomphe::ThinArc;

#[cfg(any(loom, shuttle))]
pub(crate) use model::{Pinned, Slot, Switch, Witness};
pub(crate) use std::sync::{Arc, OnceLock, Weak};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use swap::{Pinned, Slot, Switch, Witness};
pub(crate) use sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};
pub(crate) use sync::{Condvar, Mutex, MutexGuard};
pub(crate) use thread::{Builder, JoinHandle, ThreadId, current, yield_now};

/// A header and bytes in one allocation with their reference count. A handle is one pointer.
pub(crate) type Shared<H> = ThinArc<H, u8>;

/// Locks a mutex. A thread that panicked with the lock has left nothing half-done: every critical
/// section of the store replaces values as a whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a mutex, unless another thread has the lock. See [`lock`] about panics.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Waits for a signal. See [`lock`] about panics.
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a signal, for at most `time`. True: the time is over. Requires: `guard` is of `mutex`.
#[cfg(not(any(loom, shuttle)))]
pub(crate) fn wait_for<'a, T>(
    condition: &Condvar,
    _mutex: &'a Mutex<T>,
    guard: MutexGuard<'a, T>,
    time: Duration,
) -> (MutexGuard<'a, T>, bool) {
    let waited = condition.wait_timeout(guard, time);
    let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
    (guard, timeout.timed_out())
}

/// The same in a model, where no time passes: the wait may end as soon as other threads have run.
#[cfg(any(loom, shuttle))]
pub(crate) fn wait_for<'a, T>(
    _condition: &Condvar,
    mutex: &'a Mutex<T>,
    guard: MutexGuard<'a, T>,
    _time: Duration,
) -> (MutexGuard<'a, T>, bool) {
    drop(guard);
    let_time_pass();
    (lock(mutex), true)
}

/// Like [`wait_for`]. But in a model the wait does not time out, so the model notices if no thread
/// would end it.
pub(crate) fn wait_at_most<'a, T>(
    condition: &Condvar,
    mutex: &'a Mutex<T>,
    guard: MutexGuard<'a, T>,
    time: Duration,
) -> (MutexGuard<'a, T>, bool) {
    match cfg!(any(loom, shuttle)) {
        true => (wait(condition, guard), false),
        false => wait_for(condition, mutex, guard, time),
    }
}

/// Returns the time that decides which work is due.
#[cfg(not(any(loom, shuttle)))]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The same in a model, where time passes only while a thread waits for it. A thread that polls
/// without waiting would not let others run.
#[cfg(any(loom, shuttle))]
pub(crate) fn now() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    let waits = WAITS.load(std::sync::atomic::Ordering::Relaxed);
    *START.get_or_init(Instant::now) + waits * LEAP
}

/// How often a thread has waited for time to pass, and the time that each wait adds. It exceeds
/// anything that is waited for.
#[cfg(any(loom, shuttle))]
static WAITS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
#[cfg(any(loom, shuttle))]
const LEAP: Duration = Duration::from_secs(60);

#[cfg(any(loom, shuttle))]
fn let_time_pass() {
    thread::yield_now();
    WAITS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
}

/// Sleeps for `time`.
pub(crate) fn pause(time: Duration) {
    #[cfg(not(any(loom, shuttle)))]
    thread::sleep(time);
    #[cfg(any(loom, shuttle))]
    {
        let _ = time;
        let_time_pass();
    }
}

#[cfg(all(test, loom))]
mod models;
