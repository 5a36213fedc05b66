//! Frees descriptors when the process or the system runs out of them: closes table files, and
//! retries the operation.
//! ```text
//! open, create, ...  -EMFILE-> close a quarter of the idle files of each store -> again
//!                                '-- none is idle: the error
//! ```
//! Invariant: an operation is retried only if a file was closed meanwhile, and only finitely often.

use std::io;

use crate::error::is_exhausted;

// The list outlives every model, so it needs the lock of std, not that of a model checker.
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::storage::disk::system::open_files_max;
use crate::storage::open_files::OpenFiles;
use crate::sync::{Arc, Weak};

/// Other threads may take the descriptors that were freed for this operation.
const ATTEMPTS_MAX: usize = 64;
/// Attempts to lock the list of stores, which no thread holds for long.
const LOOKS_MAX: usize = 10_000;

/// The open files of all stores of the process.
static STORES: Mutex<Vec<Weak<OpenFiles>>> = Mutex::new(Vec::new());

/// Returns how many table files a store may have open by default: half of the process's limit. The
/// other half is for logs, the manifest, rings, new tables, other stores and the rest of the
/// program.
pub(crate) fn share_of_process() -> usize {
    usize::try_from(open_files_max() / 2).unwrap_or(usize::MAX)
}

/// Registers a store that closes files when another one needs descriptors.
pub(crate) fn join(files: &Arc<OpenFiles>) {
    // A store that is not in the list closes no files for others, but still has its own limit.
    if let Some(mut stores) = stores() {
        stores.retain(|store| store.strong_count() > 0);
        stores.push(Arc::downgrade(files));
    }
}

/// Locks the list of stores. None: the lock stays held in a child that was forked while a thread
/// held it.
fn stores() -> Option<MutexGuard<'static, Vec<Weak<OpenFiles>>>> {
    for _ in 0..LOOKS_MAX {
        match STORES.try_lock() {
            Ok(stores) => return Some(stores),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}

/// Runs an operation that needs descriptors. If there are none, closes files of tables and retries.
pub(crate) fn with_room<T>(mut f: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..ATTEMPTS_MAX {
        match f() {
            Err(error) if is_exhausted(&error) && close_idle() => {}
            result => return result,
        }
    }
    f()
}

/// Closes idle files of all stores. False: all open files are being read.
fn close_idle() -> bool {
    let Some(stores) = stores().map(|stores| stores.clone()) else { return false };
    let stores: Vec<_> = stores.iter().filter_map(Weak::upgrade).collect();
    // Every store must close files, so this is no `any`.
    stores.iter().filter(|store| store.close_idle()).count() > 0
}
