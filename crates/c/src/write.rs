//! Writes of single keys, atomic read-modify-writes, and bulk loads.
//!
//! Invariant: an invalid argument is an error before anything is written.

use std::ffi::c_void;
use std::time::Duration;

use store::{Error, Swap, Value};

use crate::border::{bytes, handle, out, out_if, raw_if, some_bytes};
use crate::db::trommel_db;
use crate::error::trommel_error;
use crate::keyspace::trommel_keyspace;
use crate::scan::row_at;
use crate::value::trommel_value;

/// Sets a value, or null for None, if there is a place for it. Requires: null, or such a place.
unsafe fn give_value(place: *mut *mut trommel_value, value: Option<Value>) {
    if !place.is_null() {
        // SAFETY: required.
        unsafe { out_if(place) }.set(raw_if(value.map(trommel_value::boxed)));
    }
}

/// Sets the value of a key.
///
/// Threads: any. Errors: TROMMEL_KEY_TOO_LONG, TROMMEL_VALUE_TOO_LONG, TROMMEL_LOCK_TIMEOUT:
/// nothing was written. TROMMEL_IO, TROMMEL_STOPPED: the write is not visible now, and may be there
/// after a crash.
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

/// Sets the value of a key for `milliseconds`. After that, the key has no value, not even an older
/// one.
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

/// Merges an operand into the value of a key, by the key space's merge operator (the option
/// "merge_operator"). Nothing is read.
///
/// Threads: any. Errors: TROMMEL_NO_MERGE_OPERATOR; otherwise as of trommel_put.
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

/// Deletes a key. An absent key is no error.
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

/// Deletes all keys at or after `from` and before `to`, in one write, however many there are.
///
/// Threads: any. Errors: TROMMEL_INVERTED_RANGE; otherwise as of trommel_put.
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

/// Sets the value of a key that has none. `was_set`: set to whether it had none. `existing`: NULL,
/// or set to the value that the key has, to be freed; NULL if it had none.
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
/// `expected`, that the key has no value; as `value`, that the key is deleted. (An empty value is
/// any other pointer with a length of 0.) `swapped`: set to whether the key was written. `found`:
/// NULL, or set, if it was not, to the value that the key has, to be freed, or NULL if it has none.
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

/// Adds to a counter: 8 bytes, a signed little-endian number. A key without a value counts as 0.
/// The sum wraps around. `before`: NULL, or set to the previous number.
///
/// Threads: any. Errors: TROMMEL_NO_COUNTER; otherwise as of trommel_put.
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

/// Packed rows, one behind the other. Bytes that are no complete row are an error.
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

/// Writes rows with ascending keys as one sorted run in one pass, without log and memtable: for
/// large sorted data. The rows are packed as trommel_scan_next returns them. Readers see all of
/// them or none, and so does recovery; they are durable when this returns. Other writes wait
/// meanwhile. `count`: NULL, or set to the number of rows.
///
/// Threads: any. Errors: TROMMEL_UNSORTED, TROMMEL_MALFORMED, TROMMEL_KEY_TOO_LONG: nothing was
/// written. TROMMEL_IO: as of trommel_put.
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
