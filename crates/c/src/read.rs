//! Reads of the current state of a store.
//! ```text
//! get        key  --> handle on the value where it lies       no copy
//! get_into   key  --> the caller's buffer                     no handle
//! multi_get  keys --> handles, or one behind the other in a buffer
//! ```
//! Invariant: after an error, no handle was returned, and nothing needs to be freed.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use store::{Result, Value};
use trommel_filters::CountBounds;

use crate::border::{Given, Out, Outcome, bytes, copy_to, handle, out, places, raw_if};
use crate::bounds::{OF_RANGE, bounds, trommel_bytes, trommel_range};
use crate::db::trommel_db;
use crate::error::trommel_error;
use crate::keyspace::trommel_keyspace;
use crate::value::trommel_value;

/// The length that stands for an absent value.
pub(crate) const ABSENT: usize = usize::MAX;

/// Bounds and an estimate of the entries in a range, without reading the range.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct trommel_count {
    /// The least number of entries. (There may be fewer keys.)
    pub least: u64,
    /// The estimated number of entries.
    pub estimate: u64,
    /// The greatest number of entries, and so of keys.
    pub most: u64,
}

impl From<CountBounds> for trommel_count {
    fn from(CountBounds { least, estimate, most }: CountBounds) -> Self {
        trommel_count { least, estimate, most }
    }
}

/// Sets a value, or null for None.
pub(crate) fn give(place: Out<'_, *mut trommel_value>, value: Option<Value>) {
    place.set(raw_if(value.map(trommel_value::boxed)));
}

/// Copies a value if the buffer has room for all of it, and sets its length.
pub(crate) fn give_into(
    buffer: &mut [MaybeUninit<u8>],
    len: Out<'_, usize>,
    value: Option<&Value>,
) {
    if let Some(value) = value.filter(|value| value.len() <= buffer.len()) {
        copy_to(buffer, value);
    }
    len.set(value.map_or(ABSENT, |value| value.len()));
}

/// Sets values, or null for absent ones.
pub(crate) fn give_many(
    places: &mut [MaybeUninit<*mut trommel_value>],
    values: Vec<Result<Option<Value>>>,
) -> Outcome<()> {
    let values: Vec<Option<Value>> = values.into_iter().collect::<Result<_>>()?;
    for (place, value) in places.iter_mut().zip(values) {
        place.write(value.map_or(null_mut(), |value| trommel_value::boxed(value).raw()));
    }
    Ok(())
}

/// Copies values one behind the other if there is room for all of them, and sets their lengths.
pub(crate) fn give_many_into(
    buffer: &mut [MaybeUninit<u8>],
    lens: &mut [MaybeUninit<usize>],
    len: Out<'_, usize>,
    values: Vec<Result<Option<Value>>>,
) -> Outcome<()> {
    let values: Vec<Option<Value>> = values.into_iter().collect::<Result<_>>()?;
    let all = values.iter().flatten().map(|value| value.len()).sum::<usize>();
    for (place, value) in lens.iter_mut().zip(&values) {
        place.write(value.as_ref().map_or(ABSENT, |value| value.len()));
    }
    if all <= buffer.len() {
        let mut at = 0;
        for value in values.iter().flatten() {
            copy_to(&mut buffer[at..], value);
            at += value.len();
        }
    }
    len.set(all);
    Ok(())
}

/// Returns the value of a key: a handle to be freed with trommel_value_free, or NULL if the key has
/// no value. Nothing is copied.
///
/// Threads: any. Errors: TROMMEL_IO, TROMMEL_CORRUPT, TROMMEL_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_get(
    db: *const trommel_db,
    keyspace: *const trommel_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut trommel_value,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (keyspace, value) = (handle("db", db)?.keyspace(keyspace)?, out("value", value)?);
        give(value, keyspace.get(bytes("key", key, key_len)?)?);
        Ok(())
    })
}

/// Copies the value of a key into a buffer. `len`: set to its length, or to TROMMEL_ABSENT if the
/// key has no value. If the value is longer than the buffer's capacity, nothing is copied: repeat
/// the call with a larger buffer.
///
/// Threads: any. Errors: as of trommel_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_get_into(
    db: *const trommel_db,
    keyspace: *const trommel_keyspace,
    key: *const c_void,
    key_len: usize,
    buffer: *mut c_void,
    capacity: usize,
    len: *mut usize,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (keyspace, len) = (handle("db", db)?.keyspace(keyspace)?, out("len", len)?);
        let buffer = places("buffer", buffer.cast(), capacity)?;
        give_into(buffer, len, keyspace.get(bytes("key", key, key_len)?)?.as_ref());
        Ok(())
    })
}

/// Returns the values of several keys at one moment, in the order of the keys. Each is a handle to
/// be freed, or NULL if that key has no value. `values` has room for `count`. It takes less time
/// per key than single gets.
///
/// Threads: any. Errors: that of the first key that cannot be read; then no value is returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_multi_get(
    db: *const trommel_db,
    keyspace: *const trommel_keyspace,
    keys: *const trommel_bytes,
    count: usize,
    values: *mut *mut trommel_value,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let keyspace = handle("db", db)?.keyspace(keyspace)?;
        let keys = trommel_bytes::slices("keys", keys, count)?;
        give_many(places("values", values, count)?, keyspace.multi_get(&keys))
    })
}

/// Like trommel_multi_get, but copies the values one behind the other into a buffer. `lens`, with
/// room for `count`: set to the length of each value, or to TROMMEL_ABSENT. `len`: set to the
/// length of all values. If that exceeds the buffer's capacity, no value is copied: repeat the call
/// with a larger buffer.
///
/// Threads: any. Errors: as of trommel_multi_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_multi_get_into(
    db: *const trommel_db,
    keyspace: *const trommel_keyspace,
    keys: *const trommel_bytes,
    count: usize,
    buffer: *mut c_void,
    capacity: usize,
    lens: *mut usize,
    len: *mut usize,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (keyspace, len) = (handle("db", db)?.keyspace(keyspace)?, out("len", len)?);
        let keys = trommel_bytes::slices("keys", keys, count)?;
        let buffer = places("buffer", buffer.cast(), capacity)?;
        let lens = places("lens", lens, count)?;
        give_many_into(buffer, lens, len, keyspace.multi_get(&keys))
    })
}

/// Returns whether a range may have a key. False proves that it has none. `flags`: the flags of the
/// range. No block of a table is read.
///
/// Threads: any. Errors: TROMMEL_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_may_contain_range(
    db: *const trommel_db,
    keyspace: *const trommel_keyspace,
    range: *const trommel_range,
    flags: u32,
    may: *mut bool,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (keyspace, may) = (handle("db", db)?.keyspace(keyspace)?, out("may", may)?);
        may.set(keyspace.may_contain_range(bounds(range, flags, OF_RANGE)?)?);
        Ok(())
    })
}

/// Estimates the number of entries in a range. No block of a table is read. Old values and
/// tombstones count until they are merged.
///
/// Threads: any. Errors: TROMMEL_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_approximate_count(
    db: *const trommel_db,
    keyspace: *const trommel_keyspace,
    range: *const trommel_range,
    flags: u32,
    count: *mut trommel_count,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (keyspace, count) = (handle("db", db)?.keyspace(keyspace)?, out("count", count)?);
        count.set(keyspace.approximate_count(bounds(range, flags, OF_RANGE)?)?.into());
        Ok(())
    })
}
