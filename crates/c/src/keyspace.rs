//! Key spaces: separate trees in one store.
//!
//! Invariant: a handle is used only on the opening of the store that it belongs to.

use std::ffi::c_char;

use store::{Db, Keyspace};

use crate::border::{Outcome, handle, text};
use crate::db::{Opening, of_another_store, trommel_db};
use crate::error::trommel_error;
use crate::options::{keyspace_options_or_none, trommel_options};
use crate::text::{c_string, trommel_names};

/// A key space of a store. NULL stands for the default key space, which every store has.
///
/// Threads: any, at once; no call may run during or after freeing it.
pub struct trommel_keyspace {
    pub(crate) keyspace: Keyspace,
    pub(crate) db: Db,
    pub(crate) opening: Opening,
}

impl trommel_keyspace {
    /// Returns the key space for calls on this opening of a store.
    pub(crate) fn of(&self, opening: Opening) -> Outcome<&Keyspace> {
        match self.opening == opening {
            true => Ok(&self.keyspace),
            false => Err(of_another_store("the key space")),
        }
    }

    fn boxed(db: &trommel_db, keyspace: Keyspace) -> Box<trommel_keyspace> {
        Box::new(trommel_keyspace { keyspace, db: db.db.clone(), opening: db.opening })
    }
}

/// Opens the key space with this name, or creates it. `options`: NULL for none; the store keeps
/// them. Free the handle with trommel_keyspace_free.
///
/// Threads: any. Errors: TROMMEL_OPTION: the name or an option is invalid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_keyspace_make(
    db: *const trommel_db,
    name: *const c_char,
    options: *const trommel_options,
    error: *mut *mut trommel_error,
) -> *mut trommel_keyspace {
    call!(error, {
        let (db, options) = (handle("db", db)?, keyspace_options_or_none(options)?);
        Ok(trommel_keyspace::boxed(db, db.db.keyspace(text("name", name)?, options)?))
    })
}

/// Opens the key space with this name. Free the handle with trommel_keyspace_free.
///
/// Threads: any. Errors: TROMMEL_NO_KEYSPACE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_keyspace_open(
    db: *const trommel_db,
    name: *const c_char,
    error: *mut *mut trommel_error,
) -> *mut trommel_keyspace {
    call!(error, {
        let db = handle("db", db)?;
        Ok(trommel_keyspace::boxed(db, db.db.open_keyspace(text("name", name)?)?))
    })
}

/// Returns its current name. Free it with trommel_text_free.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_keyspace_name(
    keyspace: *const trommel_keyspace,
    error: *mut *mut trommel_error,
) -> *mut c_char {
    call!(error, Ok(c_string(&handle("keyspace", keyspace)?.keyspace.name())))
}

/// Frees a handle; the key space stays. Does nothing for NULL.
///
/// Threads: one; no other call may use the handle during or after this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_keyspace_free(keyspace: *mut trommel_keyspace) {
    free!(keyspace);
}

/// Returns the names of all key spaces, the default one first. Free them with trommel_names_free.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_keyspaces(
    db: *const trommel_db,
    error: *mut *mut trommel_error,
) -> *mut trommel_names {
    call!(error, Ok(trommel_names::of(handle("db", db)?.db.keyspaces()?)))
}

/// Drops a key space with everything in it. Its handles, snapshots and scans return
/// TROMMEL_KEYSPACE_DROPPED from then on.
///
/// Threads: any. Errors: TROMMEL_NO_KEYSPACE; TROMMEL_OPTION: it is the default one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_keyspace_drop(
    db: *const trommel_db,
    name: *const c_char,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, Ok(handle("db", db)?.db.drop_keyspace(text("name", name)?)?))
}

/// Renames a key space. Its handles stay valid.
///
/// Threads: any. Errors: TROMMEL_NO_KEYSPACE, TROMMEL_KEYSPACE_EXISTS; TROMMEL_OPTION: it is the
/// default one, or the new name is invalid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_keyspace_rename(
    db: *const trommel_db,
    from: *const c_char,
    to: *const c_char,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let db = handle("db", db)?;
        Ok(db.db.rename_keyspace(text("from", from)?, text("to", to)?)?)
    })
}
