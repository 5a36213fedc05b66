//! What is done when the process, or the system, has no descriptor left: files of tables are
//! closed, and it is tried again.
//! ```text
//! open, create, ...  -EMFILE-> close a quarter of the idle files of each store of the process -> again
//!                                '-- none is idle: the error
//! ```
//! Invariant: it is tried again only when a file was closed meanwhile, and not for ever.

use std::io;

use crate::error::is_exhausted;

// It outlives every model: no model checker's lock.
use std::sync::{Mutex, MutexGuard, TryLockError};

use rustix::process::{Resource, getrlimit};

use crate::storage::open_files::OpenFiles;
use crate::sync::{Arc, Weak};

/// Others may take what was closed for this one.
const ATTEMPTS_MAX: usize = 64;
/// Nobody has the list of stores for long.
const LOOKS_MAX: usize = 10_000;

/// The open files of all stores of the process.
static STORES: Mutex<Vec<Weak<OpenFiles>>> = Mutex::new(Vec::new());

/// How many files of tables a store may have open that was not told: half of what the process may.
/// The other half is for its logs, manifest, rings and new tables, for the rest of the program, and
/// for its other stores.
pub(crate) fn share_of_process() -> usize {
    let all = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(all / 2).unwrap_or(usize::MAX)
}

/// Has this store close files when another one needs descriptors.
pub(crate) fn join(files: &Arc<OpenFiles>) {
    // A store that is not in the list closes no files for others; it has its own limit all the
    // same.
    if let Some(mut stores) = stores() {
        stores.retain(|store| store.strong_count() > 0);
        stores.push(Arc::downgrade(files));
    }
}

/// The list of stores. None: in a process that was forked while a thread had it, it stays locked.
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

/// Does what needs descriptors; if there is none, files of tables are closed for it.
pub(crate) fn with_room<T>(mut f: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..ATTEMPTS_MAX {
        match f() {
            Err(error) if is_exhausted(&error) && close_idle() => {}
            result => return result,
        }
    }
    f()
}

/// Closes files of all stores. False: all that are open are being read.
fn close_idle() -> bool {
    let Some(stores) = stores().map(|stores| stores.clone()) else { return false };
    let stores: Vec<_> = stores.iter().filter_map(Weak::upgrade).collect();
    // Each of them: no `any`.
    stores.iter().filter(|store| store.close_idle()).count() > 0
}
