//! Stores: opening, closing, and what is done to a store as a whole.
//!
//! Invariant: every handle of a store knows which one it is of.

use std::ffi::c_char;
use std::sync::atomic::{AtomicU64, Ordering};

use store::{Db, Keyspace};

use crate::border::{Outcome, handle, path};
use crate::error::{Failure, trommel_error};
use crate::keyspace::trommel_keyspace;
use crate::library::know_guards;
use crate::options::{options_or_none, trommel_options};

/// An opening of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opening(u64);

impl Opening {
    /// One that no other is.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Opening(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// An open store.
///
/// Threads: any, at once; but freeing it is the last use.
pub struct trommel_db {
    pub(crate) db: Db,
    pub(crate) opening: Opening,
}

impl trommel_db {
    /// The key space that is meant. Requires: null, for the default one, or a handle.
    pub(crate) unsafe fn keyspace(&self, keyspace: *const trommel_keyspace) -> Outcome<&Keyspace> {
        // SAFETY: required.
        match unsafe { keyspace.as_ref() } {
            None => Ok(&self.db),
            Some(keyspace) => keyspace.of(self.opening),
        }
    }
}

/// An error: two handles are not of one store.
pub(crate) fn of_another_store(what: &str) -> Failure {
    Failure::argument(format!("{what} is of another store, or of another opening of it"))
}

/// Opens the store in a folder, and makes one if there is none. `options`: NULL, or what is set.
/// Close the store with trommel_close, then free the handle with trommel_db_free.
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

/// Closes a store: waits for calls under way, makes all writes durable, ends background work. The
/// folder is then free to be opened again. All other handles of the store give TROMMEL_CLOSED from
/// then on. They, and this one, are still to be freed. Closing it again does nothing.
///
/// Threads: any, at once with all other calls. Errors: what kept writes from becoming durable; the
/// store is closed all the same. TROMMEL_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_close(
    db: *mut trommel_db,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, Ok(handle("db", db)?.db.close()?))
}

/// Frees the handle of a store. One that is not closed is closed, and nobody hears what went wrong.
/// NULL is none.
///
/// Threads: one, which uses it last.
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

/// Writes what is in memory to runs on disk, of each key space.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_flush(
    db: *const trommel_db,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, Ok(handle("db", db)?.db.flush()?))
}

/// Merges everything of each key space into one run.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_compact(
    db: *const trommel_db,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, Ok(handle("db", db)?.db.compact()?))
}

/// Returns when no flush or merge is due.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_settle(
    db: *const trommel_db,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, Ok(handle("db", db)?.db.settle()?))
}
