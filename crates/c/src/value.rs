//! Values that are returned without being copied.
//!
//! Invariant: the bytes stay in place and unchanged while the handle lives.

use std::ffi::c_void;
use std::ptr::null;
use std::sync::Arc;

use store::Value;

/// The bytes of a value in the store's memory; nothing is copied. It keeps a block of a table, or a
/// memtable, in memory, so free it soon. It may outlive its store.
///
/// Threads: any, at once; no call may run during or after freeing it.
pub struct trommel_value(Value);

impl trommel_value {
    pub(crate) fn boxed(value: Value) -> Box<trommel_value> {
        Box::new(trommel_value(value))
    }

    /// Makes a value of bytes that no store holds.
    pub(crate) fn of_bytes(bytes: Vec<u8>) -> Box<trommel_value> {
        trommel_value::boxed(Value::from(Arc::<[u8]>::from(bytes)))
    }
}

/// Returns its bytes, which live as long as the value. Not NULL for an empty value. NULL for NULL.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_value_data(value: *const trommel_value) -> *const c_void {
    plain!(null(), value.as_ref().map_or(null(), |value| value.0.as_ptr().cast()))
}

/// Returns its length in bytes; 0 for NULL.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_value_len(value: *const trommel_value) -> usize {
    plain!(0, value.as_ref().map_or(0, |value| value.0.len()))
}

/// Returns when the value expires, in milliseconds since the start of 1970. 0: it does not expire.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_value_expiry(value: *const trommel_value) -> u64 {
    plain!(0, {
        let expiry = value.as_ref().and_then(|value| value.0.expiry());
        expiry.map_or(0, |expiry| expiry.milliseconds())
    })
}

/// Frees a value. Does nothing for NULL.
///
/// Threads: one; no other call may use the handle during or after this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_value_free(value: *mut trommel_value) {
    free!(value);
}
