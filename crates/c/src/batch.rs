//! Batches: writes that become visible together.
//!
//! Invariant: a batch writes into key spaces of one opening of a store, and is written there.

use std::ffi::c_void;
use std::time::Duration;

use store::{Batch, Db};

use crate::border::{Outcome, bytes, handle, handle_mut, some_bytes};
use crate::db::{Opening, of_another_store, trommel_db};
use crate::error::trommel_error;
use crate::keyspace::trommel_keyspace;

/// Writes that are applied together: readers see all of them or none, and so does a recovery. Of
/// two writes of one key the later one counts.
///
/// Threads: one at a time, whichever.
pub struct trommel_batch {
    batch: Batch,
    /// Of the key spaces that it writes into, beside the default one.
    of: Option<(Db, Opening)>,
}

impl trommel_batch {
    fn boxed(batch: Batch) -> Box<trommel_batch> {
        Box::new(trommel_batch { batch, of: None })
    }

    /// Has writes go into a key space from here on. Requires: null, or a handle.
    unsafe fn to(&mut self, keyspace: *const trommel_keyspace) -> Outcome<&mut Batch> {
        // SAFETY: required.
        match (unsafe { keyspace.as_ref() }, &self.of) {
            (None, None) => {}
            (None, Some((db, _))) => {
                self.batch.to(db);
            }
            (Some(keyspace), Some((_, opening))) => {
                self.batch.to(keyspace.of(*opening)?);
            }
            (Some(keyspace), None) => {
                self.of = Some((keyspace.db.clone(), keyspace.opening));
                self.batch.to(&keyspace.keyspace);
            }
        }
        Ok(&mut self.batch)
    }

    fn forget(&mut self) {
        self.batch.clear();
        self.of = None;
    }
}

/// A batch without writes. Free it with trommel_batch_free.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn trommel_batch_new() -> *mut trommel_batch {
    crate::border::plain(std::ptr::null_mut(), || Box::into_raw(trommel_batch::boxed(Batch::new())))
}

/// A batch of packed writes into the default key space, one behind the other, each: a byte (1 put,
/// 2 delete, 3 delete a range, 4 put for a while, 5 merge), the length of its key and that of its
/// value, each in 4 bytes, the low one first; its key; its value. Of a range that is its end. A
/// deletion has none. Of 4 it begins with nanoseconds in 8 bytes, the low one first.
///
/// Threads: any. Errors: TROMMEL_MALFORMED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_batch_from_packed(
    data: *const c_void,
    len: usize,
    error: *mut *mut trommel_error,
) -> *mut trommel_batch {
    call!(error, Ok(trommel_batch::boxed(Batch::from_packed(bytes("data", data, len)?)?)))
}

/// Sets the value of a key.
///
/// Threads: one at a time. Errors: TROMMEL_ARGUMENT. What is too long is told when it is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_batch_put(
    batch: *mut trommel_batch,
    keyspace: *const trommel_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (key, value) = (bytes("key", key, key_len)?, bytes("value", value, value_len)?);
        handle_mut("batch", batch)?.to(keyspace)?.put(key, value);
        Ok(())
    })
}

/// Sets the value of a key for so many milliseconds after the batch is written.
///
/// Threads: one at a time. Errors: as of trommel_batch_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_batch_put_ttl(
    batch: *mut trommel_batch,
    keyspace: *const trommel_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    milliseconds: u64,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (key, value) = (bytes("key", key, key_len)?, bytes("value", value, value_len)?);
        let ttl = Duration::from_millis(milliseconds);
        handle_mut("batch", batch)?.to(keyspace)?.put_ttl(key, value, ttl);
        Ok(())
    })
}

/// Merges an operand into the value of a key, as trommel_merge does.
///
/// Threads: one at a time. Errors: as of trommel_batch_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_batch_merge(
    batch: *mut trommel_batch,
    keyspace: *const trommel_keyspace,
    key: *const c_void,
    key_len: usize,
    operand: *const c_void,
    operand_len: usize,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let key = bytes("key", key, key_len)?;
        let operand = bytes("operand", operand, operand_len)?;
        handle_mut("batch", batch)?.to(keyspace)?.merge(key, operand);
        Ok(())
    })
}

/// Removes a key.
///
/// Threads: one at a time. Errors: as of trommel_batch_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_batch_delete(
    batch: *mut trommel_batch,
    keyspace: *const trommel_keyspace,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let key = bytes("key", key, key_len)?;
        handle_mut("batch", batch)?.to(keyspace)?.delete(key);
        Ok(())
    })
}

/// Removes all keys from `from` on and before `to`. If `from` is behind `to`, writing the batch is
/// an error.
///
/// Threads: one at a time. Errors: as of trommel_batch_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_batch_delete_range(
    batch: *mut trommel_batch,
    keyspace: *const trommel_keyspace,
    from: *const c_void,
    from_len: usize,
    to: *const c_void,
    to_len: usize,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (from, to) = (bytes("from", from, from_len)?, bytes("to", to, to_len)?);
        handle_mut("batch", batch)?.to(keyspace)?.delete_range(from, to);
        Ok(())
    })
}

/// The batch is written only if the key then has this value; NULL with a length of 0: only if it
/// has none. Else writing it gives TROMMEL_CONFLICT, and nothing is written. What the batch itself
/// writes does not count.
///
/// Threads: one at a time. Errors: as of trommel_batch_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_batch_only_if(
    batch: *mut trommel_batch,
    keyspace: *const trommel_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (key, value) = (bytes("key", key, key_len)?, some_bytes("value", value, value_len)?);
        handle_mut("batch", batch)?.to(keyspace)?.only_if(key, value);
        Ok(())
    })
}

/// How many writes it has. 0 of NULL.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_batch_count(batch: *const trommel_batch) -> usize {
    plain!(0, batch.as_ref().map_or(0, |batch| batch.batch.len()))
}

/// Forgets all that the batch has.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_batch_clear(batch: *mut trommel_batch) {
    plain!(
        (),
        if let Some(batch) = batch.as_mut() {
            batch.forget();
        }
    );
}

/// Frees a batch. NULL is none.
///
/// Threads: one, which uses it last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_batch_free(batch: *mut trommel_batch) {
    free!(batch);
}

/// Applies a batch. `synced`: it is on disk when this returns, whatever the options say. The batch
/// is empty then, after an error too.
///
/// Threads: any of a store; one at a time of a batch. Errors: TROMMEL_CONFLICT,
/// TROMMEL_KEY_TOO_LONG, TROMMEL_VALUE_TOO_LONG, TROMMEL_BATCH_TOO_LONG, TROMMEL_INVERTED_RANGE,
/// TROMMEL_LOCK_TIMEOUT, TROMMEL_KEYSPACE_DROPPED, nothing was written; TROMMEL_IO,
/// TROMMEL_STOPPED, it is not visible now, and after a crash it is there as a whole or not at all.
/// TROMMEL_ARGUMENT: it is as it was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_write(
    db: *const trommel_db,
    batch: *mut trommel_batch,
    synced: bool,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (db, batch) = (handle("db", db)?, handle_mut("batch", batch)?);
        if batch.of.as_ref().is_some_and(|(_, opening)| *opening != db.opening) {
            return Err(of_another_store("a key space of the batch"));
        }
        let written = match synced {
            true => db.db.write_synced(&mut batch.batch),
            false => db.db.write(&mut batch.batch),
        };
        batch.forget();
        Ok(written?)
    })
}
