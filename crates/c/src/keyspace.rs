//! Key spaces: trees of their own in one store.
//!
//! Invariant: a handle is used on the store alone that it is of.

use std::ffi::c_char;

use store::{Db, Keyspace};

use crate::border::{Outcome, handle, text};
use crate::db::{Opening, of_another_store, trommel_db};
use crate::error::trommel_error;
use crate::options::{keyspace_options_or_none, trommel_options};
use crate::text::{c_string, trommel_names};

/// A key space of a store. NULL instead of one means the default key space, which every store has.
///
/// Threads: any, at once; but freeing it is the last use.
pub struct trommel_keyspace {
    pub(crate) keyspace: Keyspace,
    pub(crate) db: Db,
    pub(crate) opening: Opening,
}

impl trommel_keyspace {
    /// The key space, for who works on this opening of a store.
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

/// The key space of a name, which is made if it is not there. `options`: NULL, or what is set; the
/// store keeps it. Free the handle with trommel_keyspace_free.
///
/// Threads: any. Errors: TROMMEL_OPTION, the name or an option makes no sense.
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

/// The key space of a name. Free the handle with trommel_keyspace_free.
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

/// Its name, as it is now. Free it with trommel_text_free.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_keyspace_name(
    keyspace: *const trommel_keyspace,
    error: *mut *mut trommel_error,
) -> *mut c_char {
    call!(error, Ok(c_string(&handle("keyspace", keyspace)?.keyspace.name())))
}

/// Frees a handle. The key space stays. NULL is none.
///
/// Threads: one, which uses it last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_keyspace_free(keyspace: *mut trommel_keyspace) {
    free!(keyspace);
}

/// The names of all key spaces, the default one first. Free them with trommel_names_free.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_keyspaces(
    db: *const trommel_db,
    error: *mut *mut trommel_error,
) -> *mut trommel_names {
    call!(error, Ok(trommel_names::of(handle("db", db)?.db.keyspaces()?)))
}

/// Drops a key space with all that is in it. Handles, snapshots and scans of it give
/// TROMMEL_KEYSPACE_DROPPED from then on.
///
/// Threads: any. Errors: TROMMEL_NO_KEYSPACE; TROMMEL_OPTION, it is the default one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_keyspace_drop(
    db: *const trommel_db,
    name: *const c_char,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, Ok(handle("db", db)?.db.drop_keyspace(text("name", name)?)?))
}

/// Gives a key space another name. Its handles stay good.
///
/// Threads: any. Errors: TROMMEL_NO_KEYSPACE, TROMMEL_KEYSPACE_EXISTS; TROMMEL_OPTION, it is the
/// default one, or the new name makes no sense.
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
