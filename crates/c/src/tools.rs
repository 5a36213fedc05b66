//! Tools that inspect, copy and repair a store.
//!
//! Invariant: reports are JSON, and a separate number distinguishes good reports from bad ones.

use std::ffi::c_char;

use crate::border::{handle, out_if, path};
use crate::db::trommel_db;
use crate::error::trommel_error;
use crate::json::{repair_json, stats_json, text_of, verify_json};
use crate::keyspace::trommel_keyspace;
use crate::library::know_guards;

/// Returns the statistics of a key space as JSON: every number by its path, such as {"guard":
/// {"memory_bytes": 4096}}. "failure" is null, or says why background work fails. Free it with
/// trommel_text_free.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_stats(
    db: *const trommel_db,
    keyspace: *const trommel_keyspace,
    error: *mut *mut trommel_error,
) -> *mut c_char {
    call!(error, {
        let keyspace = handle("db", db)?.keyspace(keyspace)?;
        Ok(text_of(&stats_json(&keyspace.stats()?)))
    })
}

/// Reads and checks every byte of every table and log, and checks every key against the guard.
/// Returns a report as JSON, with "ok" and a list "damage"; free it with trommel_text_free.
/// `damages`: NULL, or set to the length of that list; 0: the store is sound.
///
/// Threads: any. Errors: TROMMEL_IO, TROMMEL_CLOSED. Damage is no error: it is in the report.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_verify(
    db: *const trommel_db,
    damages: *mut usize,
    error: *mut *mut trommel_error,
) -> *mut c_char {
    call!(error, {
        let report = handle("db", db)?.db.verify()?;
        out_if(damages).set(report.damage.len());
        Ok(text_of(&verify_json(&report)))
    })
}

/// Makes a second store with all writes that are visible now, in a folder that is empty or does not
/// exist. Tables are hard links where possible.
///
/// Threads: any. Errors: TROMMEL_NOT_EMPTY, TROMMEL_IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_checkpoint(
    db: *const trommel_db,
    folder: *const c_char,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, Ok(handle("db", db)?.db.checkpoint(path("folder", folder)?)?))
}

/// Repairs a store that nobody has open, so that it opens and verifies. Returns a report as JSON;
/// free it with trommel_text_free. `losses`: NULL, or set to the number of entries in its lists
/// "lost" and "doubts"; 0: everything was saved. Damaged files move to the folder `lost` inside the
/// store's folder.
///
/// Threads: any. Errors: TROMMEL_LOCKED, TROMMEL_MISSING, TROMMEL_NOT_A_STORE, TROMMEL_VERSION,
/// TROMMEL_IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_repair(
    folder: *const c_char,
    losses: *mut usize,
    error: *mut *mut trommel_error,
) -> *mut c_char {
    call!(error, {
        know_guards();
        let report = store::tools::repair(path("folder", folder)?)?;
        out_if(losses).set(report.lost.len() + report.doubts.len());
        Ok(text_of(&repair_json(&report)))
    })
}
