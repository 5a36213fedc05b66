//! A value that is handed out without being copied.
//!
//! Invariant: its bytes stay where they are, and as they are, while the handle lives.

use std::ffi::c_void;
use std::ptr::null;
use std::sync::Arc;

use store::Value;

/// The bytes of a value, where they lie in the store's memory: nothing is copied. It keeps a block
/// of a table, or a memtable, in memory: free it soon. It may outlive its store.
///
/// Threads: any, at once; but freeing it is the last use.
pub struct trommel_value(Value);

impl trommel_value {
    pub(crate) fn boxed(value: Value) -> Box<trommel_value> {
        Box::new(trommel_value(value))
    }

    /// Of bytes that are no store's.
    pub(crate) fn of_bytes(bytes: Vec<u8>) -> Box<trommel_value> {
        trommel_value::boxed(Value::from(Arc::<[u8]>::from(bytes)))
    }
}

/// Its bytes, which live as long as the value. Not NULL if there are none. NULL of NULL.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_value_data(value: *const trommel_value) -> *const c_void {
    plain!(null(), value.as_ref().map_or(null(), |value| value.0.as_ptr().cast()))
}

/// How many bytes it has. 0 of NULL.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_value_len(value: *const trommel_value) -> usize {
    plain!(0, value.as_ref().map_or(0, |value| value.0.len()))
}

/// From when on its key has this value no more, in milliseconds since the start of 1970. 0: it does
/// not expire.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_value_expiry(value: *const trommel_value) -> u64 {
    plain!(0, {
        let expiry = value.as_ref().and_then(|value| value.0.expiry());
        expiry.map_or(0, |expiry| expiry.milliseconds())
    })
}

/// Frees a value. NULL is none.
///
/// Threads: one, which uses it last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_value_free(value: *mut trommel_value) {
    free!(value);
}
