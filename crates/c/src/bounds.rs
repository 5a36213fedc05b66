//! Ranges of keys, as C passes them.
//!
//! Invariant: an unknown flag is an error, so that flags of later versions are not silently
//! ignored.

use std::ffi::c_void;
use std::ops::Bound;
use std::ptr::null;

use store::KeyBounds;

use crate::border::{Outcome, list, some_bytes};
use crate::error::Failure;

/// Bytes of the caller.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct trommel_bytes {
    /// The first byte. NULL only if there are none.
    pub data: *const c_void,
    /// The number of bytes.
    pub len: usize,
}

impl trommel_bytes {
    /// Returns each item as a slice. Requires: `items` points to `count` items.
    pub(crate) unsafe fn slices<'a>(
        what: &str,
        items: *const trommel_bytes,
        count: usize,
    ) -> Outcome<Vec<&'a [u8]>> {
        // SAFETY: required, of the list and of what it names.
        let slices = unsafe { list(what, items, count) }?.iter();
        // SAFETY: as above.
        slices.map(|item| unsafe { crate::border::bytes(what, item.data, item.len) }).collect()
    }
}

/// A range of keys, at or after `from` and before `to`. NULL with a length of 0: no bound on that
/// side. Flags of the call may change that. Where a call takes a range, NULL means all keys.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct trommel_range {
    /// The first key, or the common prefix of all keys.
    pub from: *const c_void,
    /// The length of `from` in bytes.
    pub from_len: usize,
    /// The end of the range, exclusive.
    pub to: *const c_void,
    /// The length of `to` in bytes.
    pub to_len: usize,
}

/// `from` is excluded from the range.
pub const TROMMEL_FROM_EXCLUDED: u32 = 1;
/// `to` is included in the range.
pub const TROMMEL_TO_INCLUDED: u32 = 2;
/// The range has all keys that begin with `from`; `to` is NULL.
pub const TROMMEL_PREFIX: u32 = 4;
/// For scans: from the last key to the first.
pub const TROMMEL_REVERSE: u32 = 8;
/// For scans: values are not read, and are empty.
pub const TROMMEL_KEYS_ONLY: u32 = 16;

/// All flags of a range.
pub(crate) const OF_RANGE: u32 = TROMMEL_FROM_EXCLUDED | TROMMEL_TO_INCLUDED | TROMMEL_PREFIX;
/// All flags of a scan of a store or a snapshot.
pub(crate) const OF_SCAN: u32 = OF_RANGE | TROMMEL_REVERSE | TROMMEL_KEYS_ONLY;

/// Returns the bounds of a range. `known`: the flags that the call accepts. Requires: null, or a
/// range.
pub(crate) unsafe fn bounds(
    range: *const trommel_range,
    flags: u32,
    known: u32,
) -> Outcome<KeyBounds> {
    if flags & !known != 0 {
        let message = format!("flags: {:#x} is none that this call takes", flags & !known);
        return Err(Failure::argument(message));
    }
    let all = trommel_range { from: null(), from_len: 0, to: null(), to_len: 0 };
    // SAFETY: required.
    let range = unsafe { range.as_ref() }.unwrap_or(&all);
    // SAFETY: required, of what the range names, too.
    let from = unsafe { some_bytes("from", range.from, range.from_len) }?;
    // SAFETY: as above.
    let to = unsafe { some_bytes("to", range.to, range.to_len) }?;
    if flags & TROMMEL_PREFIX != 0 {
        let alone = to.is_none() && flags & (TROMMEL_FROM_EXCLUDED | TROMMEL_TO_INCLUDED) == 0;
        let error = || Failure::argument("a prefix has no `to`, and no flags of bounds");
        return alone.then(|| KeyBounds::prefix(from.unwrap_or_default())).ok_or_else(error);
    }
    let from = match from {
        None => Bound::Unbounded,
        Some(from) if flags & TROMMEL_FROM_EXCLUDED != 0 => Bound::Excluded(from),
        Some(from) => Bound::Included(from),
    };
    let to = match to {
        None => Bound::Unbounded,
        Some(to) if flags & TROMMEL_TO_INCLUDED != 0 => Bound::Included(to),
        Some(to) => Bound::Excluded(to),
    };
    Ok(KeyBounds::from((from, to)))
}
