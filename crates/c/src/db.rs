//! Stores: opening, closing, and operations on a store as a whole.
//!
//! Invariant: every handle knows the opening of the store that it belongs to.

use std::ffi::c_char;
use std::sync::atomic::{AtomicU64, Ordering};

use store::{Db, Keyspace};

use crate::border::{Outcome, handle, path};
use crate::error::{Failure, trommel_error};
use crate::keyspace::trommel_keyspace;
use crate::library::know_guards;
use crate::options::{options_or_none, trommel_options};

/// The identity of one opening of a store, or of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opening(u64);

impl Opening {
    /// Returns a new identity.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Opening(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// An open store.
///
/// Threads: any, at once; no call may run during or after freeing it.
pub struct trommel_db {
    pub(crate) db: Db,
    pub(crate) opening: Opening,
}

impl trommel_db {
    /// Returns the key space of a handle. Requires: null, for the default one, or a handle.
    pub(crate) unsafe fn keyspace(&self, keyspace: *const trommel_keyspace) -> Outcome<&Keyspace> {
        // SAFETY: required.
        match unsafe { keyspace.as_ref() } {
            None => Ok(&self.db),
            Some(keyspace) => keyspace.of(self.opening),
        }
    }
}

/// Returns the error for two handles of different stores.
pub(crate) fn of_another_store(what: &str) -> Failure {
    Failure::argument(format!("{what} is of another store, or of another opening of it"))
}

/// Opens the store in a folder, or creates it. `options`: NULL for the defaults. Close the store
/// with trommel_close, then free the handle with trommel_db_free.
///
/// Threads: any. Errors: TROMMEL_LOCKED, TROMMEL_NOT_A_STORE, TROMMEL_VERSION, TROMMEL_CORRUPT,
/// TROMMEL_OPTION, TROMMEL_IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_open(
    folder: *const c_char,
    options: *const trommel_options,
    error: *mut *mut trommel_error,
) -> *mut trommel_db {
    call!(error, {
        know_guards();
        let db = Db::open(path("folder", folder)?, options_or_none(options))?;
        Ok(Box::new(trommel_db { db, opening: Opening::new() }))
    })
}

/// Closes a store: waits for running calls, makes all writes durable, and ends background work. The
/// folder can then be opened again. All other handles of the store return TROMMEL_CLOSED from then
/// on. They, and this one, must still be freed. Closing it again does nothing.
///
/// Threads: any, at once with all other calls. Errors: whatever kept writes from becoming durable;
/// the store is closed all the same. TROMMEL_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_close(
    db: *mut trommel_db,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, Ok(handle("db", db)?.db.close()?))
}

/// Frees the handle of a store. If the store is open, closes it without reporting errors. Does
/// nothing for NULL.
///
/// Threads: one; no other call may use the handle during or after this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_db_free(db: *mut trommel_db) {
    plain!(
        (),
        if let Some(db) = db.as_ref() {
            // Other handles may live on; they do not keep the store open.
            let _ = db.db.close();
        }
    );
    free!(db);
}

/// Makes all writes so far durable.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_sync(
    db: *const trommel_db,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, Ok(handle("db", db)?.db.sync()?))
}

/// Flushes the memtables of every key space to runs on disk.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_flush(
    db: *const trommel_db,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, Ok(handle("db", db)?.db.flush()?))
}

/// Merges each key space into one run.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_compact(
    db: *const trommel_db,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, Ok(handle("db", db)?.db.compact()?))
}

/// Waits until no flush and no merge is due.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_settle(
    db: *const trommel_db,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, Ok(handle("db", db)?.db.settle()?))
}
