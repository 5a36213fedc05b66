//! Writes of single keys, keys that are read and written in one step, and many keys at once.
//!
//! Invariant: an argument that makes no sense is told before anything is written.

use std::ffi::c_void;
use std::time::Duration;

use store::{Error, Swap, Value};

use crate::border::{bytes, handle, out, out_if, raw_if, some_bytes};
use crate::db::trommel_db;
use crate::error::trommel_error;
use crate::keyspace::trommel_keyspace;
use crate::scan::row_at;
use crate::value::trommel_value;

/// Gives a value, or null for none, where there is a place for it. Requires: null, or such a place.
unsafe fn give_value(place: *mut *mut trommel_value, value: Option<Value>) {
    if !place.is_null() {
        // SAFETY: required.
        unsafe { out_if(place) }.set(raw_if(value.map(trommel_value::boxed)));
    }
}

/// Sets the value of a key.
///
/// Threads: any. Errors: TROMMEL_KEY_TOO_LONG, TROMMEL_VALUE_TOO_LONG, TROMMEL_LOCK_TIMEOUT,
/// nothing was written; TROMMEL_IO, TROMMEL_STOPPED, it is not visible now, and after a crash it is
/// there or not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_put(
    db: *const trommel_db,
    keyspace: *const trommel_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let keyspace = handle("db", db)?.keyspace(keyspace)?;
        Ok(keyspace.put(bytes("key", key, key_len)?, bytes("value", value, value_len)?)?)
    })
}

/// Sets the value of a key for so many milliseconds; then it has none, not an older one either.
///
/// Threads: any. Errors: as of trommel_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_put_ttl(
    db: *const trommel_db,
    keyspace: *const trommel_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    milliseconds: u64,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let keyspace = handle("db", db)?.keyspace(keyspace)?;
        let (key, value) = (bytes("key", key, key_len)?, bytes("value", value, value_len)?);
        Ok(keyspace.put_ttl(key, value, Duration::from_millis(milliseconds))?)
    })
}

/// Merges an operand into the value of a key, as the key space's merge operator says (the option
/// "merge_operator"). Nothing is read.
///
/// Threads: any. Errors: TROMMEL_NO_MERGE_OPERATOR; else as of trommel_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_merge(
    db: *const trommel_db,
    keyspace: *const trommel_keyspace,
    key: *const c_void,
    key_len: usize,
    operand: *const c_void,
    operand_len: usize,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let keyspace = handle("db", db)?.keyspace(keyspace)?;
        Ok(keyspace.merge(bytes("key", key, key_len)?, bytes("operand", operand, operand_len)?)?)
    })
}

/// Removes a key. No error if it is not there.
///
/// Threads: any. Errors: as of trommel_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_delete(
    db: *const trommel_db,
    keyspace: *const trommel_keyspace,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let keyspace = handle("db", db)?.keyspace(keyspace)?;
        Ok(keyspace.delete(bytes("key", key, key_len)?)?)
    })
}

/// Removes all keys from `from` on and before `to`, in one write, however many there are.
///
/// Threads: any. Errors: TROMMEL_INVERTED_RANGE; else as of trommel_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_delete_range(
    db: *const trommel_db,
    keyspace: *const trommel_keyspace,
    from: *const c_void,
    from_len: usize,
    to: *const c_void,
    to_len: usize,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let keyspace = handle("db", db)?.keyspace(keyspace)?;
        Ok(keyspace.delete_range(bytes("from", from, from_len)?, bytes("to", to, to_len)?)?)
    })
}

/// Sets the value of a key that has none. `was_set`: whether that was so. `existing`: where it was
/// not, the value that the key has, to be freed; else NULL. `existing` may be NULL.
///
/// Threads: any. Errors: as of trommel_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_put_if_absent(
    db: *const trommel_db,
    keyspace: *const trommel_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    was_set: *mut bool,
    existing: *mut *mut trommel_value,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let keyspace = handle("db", db)?.keyspace(keyspace)?;
        let (key, value) = (bytes("key", key, key_len)?, bytes("value", value, value_len)?);
        let was_set = out("was_set", was_set)?;
        let found = keyspace.put_if_absent(key, value)?;
        was_set.set(found.is_none());
        give_value(existing, found);
        Ok(())
    })
}

/// Sets a key to `value` if it has the value `expected`. NULL with a length of 0 means none: as
/// `expected`, that the key has no value; as `value`, that it is deleted. (A value without bytes is
/// any other pointer, with a length of 0.) `swapped`: whether that was so. `found`: where it was
/// not, the value that the key has, to be freed, or NULL if it has none. `found` may be NULL.
///
/// Threads: any. Errors: as of trommel_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_compare_and_swap(
    db: *const trommel_db,
    keyspace: *const trommel_keyspace,
    key: *const c_void,
    key_len: usize,
    expected: *const c_void,
    expected_len: usize,
    value: *const c_void,
    value_len: usize,
    swapped: *mut bool,
    found: *mut *mut trommel_value,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let keyspace = handle("db", db)?.keyspace(keyspace)?;
        let expected = some_bytes("expected", expected, expected_len)?;
        let value = some_bytes("value", value, value_len)?;
        let swapped = out("swapped", swapped)?;
        let swap = keyspace.compare_and_swap(bytes("key", key, key_len)?, expected, value)?;
        swapped.set(matches!(swap, Swap::Done));
        let other = match swap {
            Swap::Done => None,
            Swap::Found(value) => value,
        };
        give_value(found, other);
        Ok(())
    })
}

/// Adds to a counter: 8 bytes, a signed number, the low byte first. A key without a value counts as
/// 0. It wraps around. `before`: NULL, or what it was.
///
/// Threads: any. Errors: TROMMEL_NO_COUNTER; else as of trommel_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_fetch_add(
    db: *const trommel_db,
    keyspace: *const trommel_keyspace,
    key: *const c_void,
    key_len: usize,
    add: i64,
    before: *mut i64,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let keyspace = handle("db", db)?.keyspace(keyspace)?;
        let was = keyspace.fetch_add(bytes("key", key, key_len)?, add)?;
        out_if(before).set(was);
        Ok(())
    })
}

/// Packed rows, one behind the other. What is none ends them.
struct Rows<'b> {
    buffer: &'b [u8],
    at: usize,
}

impl<'b> Iterator for Rows<'b> {
    type Item = Result<(&'b [u8], &'b [u8]), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.buffer.len() {
            return None;
        }
        let Some((key, value, behind)) = row_at(self.buffer, self.at) else {
            let what = "no whole row begins there".into();
            return Some(Err(Error::Malformed { offset: self.at, what }));
        };
        self.at = behind;
        Some(Ok((key, value)))
    }
}

/// Writes rows whose keys ascend as one sorted run, in one pass, past log and memory: for much data
/// that is sorted already. The rows are packed as trommel_scan_next gives them. Readers see all of
/// them or none, and so does a recovery; they are durable when this returns. Other writes wait
/// meanwhile. `count`: NULL, or how many rows there were.
///
/// Threads: any. Errors: TROMMEL_UNSORTED, TROMMEL_MALFORMED, TROMMEL_KEY_TOO_LONG: nothing was
/// written. TROMMEL_IO, as of trommel_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_ingest(
    db: *const trommel_db,
    keyspace: *const trommel_keyspace,
    rows: *const c_void,
    rows_len: usize,
    count: *mut u64,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let keyspace = handle("db", db)?.keyspace(keyspace)?;
        let rows = Rows { buffer: bytes("rows", rows, rows_len)?, at: 0 };
        let written = keyspace.try_ingest(rows)?;
        out_if(count).set(written);
        Ok(())
    })
}
