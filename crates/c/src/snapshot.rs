//! Snapshots: the store at one moment, with the same reads as a store.
//!
//! Invariant: a follower's snapshot accepts no key space of a store, and a store's snapshot none of
//! another store.

use std::ffi::c_void;

use store::Snapshot;

use crate::border::{Outcome, bytes, handle, out, places};
use crate::bounds::{OF_RANGE, OF_SCAN, TROMMEL_KEYS_ONLY, bounds, trommel_bytes, trommel_range};
use crate::db::{Opening, trommel_db};
use crate::error::trommel_error;
use crate::keyspace::trommel_keyspace;
use crate::read::{give, give_into, give_many, give_many_into, trommel_count};
use crate::scan::trommel_scan;
use crate::value::trommel_value;

/// A snapshot of all key spaces of a store, or of one key space of a followed store. NULL as a key
/// space means the default one; for a follower's snapshot, its own.
///
/// Merges keep what a snapshot sees, so free it soon.
///
/// Threads: any, at once; no call may run during or after freeing it.
pub struct trommel_snapshot {
    snapshot: Snapshot,
    opening: Opening,
}

impl trommel_snapshot {
    pub(crate) fn boxed(snapshot: Snapshot, opening: Opening) -> Box<trommel_snapshot> {
        Box::new(trommel_snapshot { snapshot, opening })
    }

    /// Reads in a key space at the snapshot's moment. Requires: null, or a handle.
    unsafe fn read<T>(
        &self,
        keyspace: *const trommel_keyspace,
        read: impl FnOnce(&Snapshot) -> T,
    ) -> Outcome<T> {
        // SAFETY: required.
        match unsafe { keyspace.as_ref() } {
            None => Ok(read(&self.snapshot)),
            Some(keyspace) => Ok(read(&self.snapshot.of(keyspace.of(self.opening)?))),
        }
    }
}

/// Takes a snapshot of the store as it is now. Free it with trommel_snapshot_free.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_snapshot_take(
    db: *const trommel_db,
    error: *mut *mut trommel_error,
) -> *mut trommel_snapshot {
    call!(error, {
        let db = handle("db", db)?;
        Ok(trommel_snapshot::boxed(db.db.snapshot(), db.opening))
    })
}

/// Returns the number of the last write that it sees; 0 for NULL.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_snapshot_sequence(snapshot: *const trommel_snapshot) -> u64 {
    plain!(0, snapshot.as_ref().map_or(0, |snapshot| snapshot.snapshot.sequence()))
}

/// Frees a snapshot. Does nothing for NULL.
///
/// Threads: one; no other call may use the handle during or after this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_snapshot_free(snapshot: *mut trommel_snapshot) {
    free!(snapshot);
}

/// Like trommel_get, at the snapshot's moment.
///
/// Threads: any. Errors: as of trommel_get; for a follower's snapshot, TROMMEL_GONE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_snapshot_get(
    snapshot: *const trommel_snapshot,
    keyspace: *const trommel_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut trommel_value,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (snapshot, value) = (handle("snapshot", snapshot)?, out("value", value)?);
        let key = bytes("key", key, key_len)?;
        give(value, snapshot.read(keyspace, |of| of.get(key))??);
        Ok(())
    })
}

/// Like trommel_get_into, at the snapshot's moment.
///
/// Threads: any. Errors: as of trommel_snapshot_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_snapshot_get_into(
    snapshot: *const trommel_snapshot,
    keyspace: *const trommel_keyspace,
    key: *const c_void,
    key_len: usize,
    buffer: *mut c_void,
    capacity: usize,
    len: *mut usize,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (snapshot, len) = (handle("snapshot", snapshot)?, out("len", len)?);
        let buffer = places("buffer", buffer.cast(), capacity)?;
        let key = bytes("key", key, key_len)?;
        give_into(buffer, len, snapshot.read(keyspace, |of| of.get(key))??.as_ref());
        Ok(())
    })
}

/// Like trommel_multi_get, at the snapshot's moment.
///
/// Threads: any. Errors: as of trommel_multi_get and trommel_snapshot_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_snapshot_multi_get(
    snapshot: *const trommel_snapshot,
    keyspace: *const trommel_keyspace,
    keys: *const trommel_bytes,
    count: usize,
    values: *mut *mut trommel_value,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let snapshot = handle("snapshot", snapshot)?;
        let keys = trommel_bytes::slices("keys", keys, count)?;
        let values = places("values", values, count)?;
        give_many(values, snapshot.read(keyspace, |of| of.multi_get(&keys))?)
    })
}

/// Like trommel_multi_get_into, at the snapshot's moment.
///
/// Threads: any. Errors: as of trommel_multi_get_into and trommel_snapshot_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_snapshot_multi_get_into(
    snapshot: *const trommel_snapshot,
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
        let (snapshot, len) = (handle("snapshot", snapshot)?, out("len", len)?);
        let keys = trommel_bytes::slices("keys", keys, count)?;
        let buffer = places("buffer", buffer.cast(), capacity)?;
        let lens = places("lens", lens, count)?;
        let values = snapshot.read(keyspace, |of| of.multi_get(&keys))?;
        give_many_into(buffer, lens, len, values)
    })
}

/// Like trommel_may_contain_range. Also true if a key was written there since.
///
/// Threads: any. Errors: as of trommel_may_contain_range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_snapshot_may_contain_range(
    snapshot: *const trommel_snapshot,
    keyspace: *const trommel_keyspace,
    range: *const trommel_range,
    flags: u32,
    may: *mut bool,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (snapshot, may) = (handle("snapshot", snapshot)?, out("may", may)?);
        let bounds = bounds(range, flags, OF_RANGE)?;
        may.set(snapshot.read(keyspace, |of| of.may_contain_range(bounds))??);
        Ok(())
    })
}

/// Like trommel_approximate_count. Entries flushed since count, too, except in `least`.
///
/// Threads: any. Errors: as of trommel_approximate_count.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_snapshot_approximate_count(
    snapshot: *const trommel_snapshot,
    keyspace: *const trommel_keyspace,
    range: *const trommel_range,
    flags: u32,
    count: *mut trommel_count,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (snapshot, count) = (handle("snapshot", snapshot)?, out("count", count)?);
        let bounds = bounds(range, flags, OF_RANGE)?;
        count.set(snapshot.read(keyspace, |of| of.approximate_count(bounds))??.into());
        Ok(())
    })
}

/// Like trommel_scan_begin, at the snapshot's moment. The scan may outlive the snapshot.
///
/// Threads: any. Errors: as of trommel_scan_begin.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_snapshot_scan(
    snapshot: *const trommel_snapshot,
    keyspace: *const trommel_keyspace,
    range: *const trommel_range,
    flags: u32,
    error: *mut *mut trommel_error,
) -> *mut trommel_scan {
    call!(error, {
        let snapshot = handle("snapshot", snapshot)?;
        let bounds = bounds(range, flags, OF_SCAN)?;
        let scan = snapshot.read(keyspace, |of| of.range(bounds))?;
        let scan = if flags & TROMMEL_KEYS_ONLY != 0 { scan.keys_only() } else { scan };
        Ok(trommel_scan::of_store(scan, flags))
    })
}
