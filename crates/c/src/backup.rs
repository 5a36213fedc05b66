//! Backups in a folder: generations of a store, of which each stores only what is new.
//!
//! Invariant: the same as in `store::backup`: each listed generation is complete.

use std::ffi::c_char;

use store::backup::Backups;

use crate::border::{handle, out_if, path};
use crate::db::trommel_db;
use crate::error::trommel_error;
use crate::json::{backup_json, generations_json, text_of};

/// A folder of backups of one store. It is locked until the handle is freed.
///
/// Threads: any, at once; no call may run during or after freeing it.
pub struct trommel_backups(Backups);

/// Opens the backups in a folder, which is created if it does not exist. Free the handle with
/// trommel_backups_free.
///
/// Threads: any. Errors: TROMMEL_LOCKED, TROMMEL_IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_backups_open(
    folder: *const c_char,
    error: *mut *mut trommel_error,
) -> *mut trommel_backups {
    call!(error, Ok(Box::new(trommel_backups(Backups::in_folder(path("folder", folder)?)?))))
}

/// Stores all writes that are visible now as a new generation. `number`: NULL, or set to its
/// number.
///
/// Threads: any; calls that change the backups wait for each other. Errors: TROMMEL_IO: no
/// generation was made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_backups_create(
    backups: *const trommel_backups,
    db: *const trommel_db,
    number: *mut u64,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let backups = handle("backups", backups)?;
        let generation = backups.0.back_up(&handle("db", db)?.db)?;
        out_if(number).set(generation.number);
        Ok(())
    })
}

/// Returns all generations, oldest first, as JSON: a list of objects with "number", "sequence",
/// "milliseconds" (since the start of 1970), "files" and "bytes". Free it with trommel_text_free.
///
/// Threads: any. Errors: TROMMEL_CORRUPT, TROMMEL_IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_backups_list(
    backups: *const trommel_backups,
    error: *mut *mut trommel_error,
) -> *mut c_char {
    call!(error, Ok(text_of(&generations_json(&handle("backups", backups)?.0.generations()?))))
}

/// Reads and checks everything in a generation. Returns a report as JSON; free it with
/// trommel_text_free. `damages`: NULL, or set to the length of its list "damage"; 0: it is sound.
///
/// Threads: any. Errors: TROMMEL_FILE_MISSING, there is no such generation; TROMMEL_IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_backups_verify(
    backups: *const trommel_backups,
    number: u64,
    damages: *mut usize,
    error: *mut *mut trommel_error,
) -> *mut c_char {
    call!(error, {
        let report = handle("backups", backups)?.0.verify(number)?;
        out_if(damages).set(report.damage.len());
        Ok(text_of(&backup_json(&report)))
    })
}

/// Makes a store of a generation, in a folder that is empty or does not exist.
///
/// Threads: any. Errors: TROMMEL_FILE_MISSING, there is no such generation; TROMMEL_NOT_EMPTY,
/// TROMMEL_CORRUPT, TROMMEL_IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_backups_restore(
    backups: *const trommel_backups,
    number: u64,
    folder: *const c_char,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, Ok(handle("backups", backups)?.0.restore(number, path("folder", folder)?)?))
}

/// Removes all generations except the newest `keep`, and the data that only they needed. `removed`:
/// NULL, or set to the number of removed generations.
///
/// Threads: any. Errors: TROMMEL_IO: something is left, and the next call removes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_backups_prune(
    backups: *const trommel_backups,
    keep: usize,
    removed: *mut usize,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let pruned = handle("backups", backups)?.0.prune(keep)?;
        out_if(removed).set(pruned.generations.len());
        Ok(())
    })
}

/// Frees the handle, and releases the lock of the folder. Does nothing for NULL.
///
/// Threads: one; no other call may use the handle during or after this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_backups_free(backups: *mut trommel_backups) {
    free!(backups);
}
