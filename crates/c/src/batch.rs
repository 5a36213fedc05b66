//! Batches: writes that become visible together.
//!
//! Invariant: a batch writes into key spaces of one opening of a store, and only that opening
//! applies it.

use std::ffi::c_void;
use std::time::Duration;

use store::{Batch, Db};

use crate::border::{Outcome, bytes, handle, handle_mut, some_bytes};
use crate::db::{Opening, of_another_store, trommel_db};
use crate::error::trommel_error;
use crate::keyspace::trommel_keyspace;

/// Writes that are applied atomically: readers see all of them or none, and so does recovery. Of
/// two writes of a key, the later one wins.
///
/// Threads: one at a time, not always the same one.
pub struct trommel_batch {
    batch: Batch,
    /// The store and the opening of its key spaces, except for the default one.
    of: Option<(Db, Opening)>,
}

impl trommel_batch {
    fn boxed(batch: Batch) -> Box<trommel_batch> {
        Box::new(trommel_batch { batch, of: None })
    }

    /// Directs further writes to a key space. Requires: null, or a handle.
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

/// Creates an empty batch. Free it with trommel_batch_free.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn trommel_batch_new() -> *mut trommel_batch {
    crate::border::plain(std::ptr::null_mut(), || Box::into_raw(trommel_batch::boxed(Batch::new())))
}

/// Creates a batch of packed writes into the default key space. Each write begins with a byte: 1
/// put, 2 delete, 3 delete range, 4 put with expiry, 5 merge. Then follow the lengths of its key
/// and of its value, its key and its value. A length has 4 bytes, little-endian. The value of a
/// range deletion is the range's end; a deletion has no value. The value of a put with expiry
/// begins with the time to live in nanoseconds, in 8 bytes, little-endian.
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
/// Threads: one at a time. Errors: TROMMEL_ARGUMENT. Lengths are checked when the batch is written.
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

/// Sets the value of a key for `milliseconds` after the batch is written.
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

/// Merges an operand into the value of a key, like trommel_merge.
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

/// Deletes a key.
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

/// Deletes all keys at or after `from` and before `to`. If `from` is greater than `to`, writing the
/// batch is an error.
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

/// Adds a condition: the batch is written only if the key then has this value, or, for NULL with a
/// length of 0, no value. Otherwise writing it returns TROMMEL_CONFLICT and writes nothing. Writes
/// of the batch itself do not count.
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

/// Returns the number of writes; 0 for NULL.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_batch_count(batch: *const trommel_batch) -> usize {
    plain!(0, batch.as_ref().map_or(0, |batch| batch.batch.len()))
}

/// Removes all writes and conditions from the batch.
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

/// Frees a batch. Does nothing for NULL.
///
/// Threads: one; no other call may use the handle during or after this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_batch_free(batch: *mut trommel_batch) {
    free!(batch);
}

/// Applies a batch. `synced`: it is on disk when this returns, whatever the options say. The batch
/// is empty afterwards, even after an error.
///
/// Threads: any for a store; one at a time for a batch. Errors: TROMMEL_CONFLICT,
/// TROMMEL_KEY_TOO_LONG, TROMMEL_VALUE_TOO_LONG, TROMMEL_BATCH_TOO_LONG, TROMMEL_INVERTED_RANGE,
/// TROMMEL_LOCK_TIMEOUT, TROMMEL_KEYSPACE_DROPPED: nothing was written. TROMMEL_IO,
/// TROMMEL_STOPPED: the batch is not visible now, and after a crash it is there as a whole or not
/// at all. TROMMEL_ARGUMENT: the batch is unchanged.
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
