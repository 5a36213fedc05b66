//! Backups in a folder: generations of a store, of which only what is new is stored.
//!
//! Invariant: as of `store::backup`: each generation that is listed is whole.

use std::ffi::c_char;

use store::backup::Backups;

use crate::border::{handle, out_if, path};
use crate::db::trommel_db;
use crate::error::trommel_error;
use crate::json::{backup_json, generations_json, text_of};

/// A folder of backups of one store. It is locked until the handle is freed.
///
/// Threads: any, at once; but freeing it is the last use.
pub struct trommel_backups(Backups);

/// The backups in a folder, which is made if there is none. Free the handle with
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

/// Stores all writes that are visible now as a new generation. `number`: NULL, or which one it is.
///
/// Threads: any; of calls that change the backups one waits for the other. Errors: TROMMEL_IO: no
/// generation is made.
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

/// All generations, the oldest first, as JSON: a list of objects with "number", "sequence",
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

/// Reads all that a generation has, and checks it. Gives a report as JSON; free it with
/// trommel_text_free. `damages`: NULL, or how many are in its list "damage"; 0: it is sound.
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

/// Makes a store of a generation, in a folder that is empty or not there.
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

/// Removes all generations but the newest `keep`, and what only they needed. `removed`: NULL, or
/// how many generations went.
///
/// Threads: any. Errors: TROMMEL_IO: something stays, and the next call removes it.
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

/// Frees the handle, and the lock of the folder. NULL is none.
///
/// Threads: one, which uses it last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_backups_free(backups: *mut trommel_backups) {
    free!(backups);
}
