//! Change feeds: all committed writes, in commit order.
//!
//! Invariant: each change is returned once, and the last one of each batch is marked.

use std::ffi::{c_char, c_void};
use std::ptr::null;
use std::vec::IntoIter;

use store::{Change, ChangeKind, Changes};

use crate::border::{Outcome, handle, handle_mut, out};
use crate::db::trommel_db;
use crate::error::{Failure, trommel_error};

/// There are no more changes now.
pub const TROMMEL_CHANGE_NONE: u32 = 0;
/// The key was set to this value.
pub const TROMMEL_CHANGE_PUT: u32 = 1;
/// The key was deleted.
pub const TROMMEL_CHANGE_DELETE: u32 = 2;
/// All keys at or after this key and before `value` were deleted.
pub const TROMMEL_CHANGE_DELETE_RANGE: u32 = 3;
/// The key was set to this value until `expiry`.
pub const TROMMEL_CHANGE_PUT_WITH_EXPIRY: u32 = 4;
/// The operand `value` was merged into the key's value.
pub const TROMMEL_CHANGE_MERGE: u32 = 5;

/// A committed write. Its pointers are valid until the next call on the feed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct trommel_change {
    /// Its sequence number: greater than those of all earlier writes.
    pub sequence: u64,
    /// When the value expires, in milliseconds since the start of 1970; 0: never.
    pub expiry: u64,
    /// The key.
    pub key: *const c_void,
    /// The length of the key in bytes.
    pub key_len: usize,
    /// The value, the operand, or the end of the range, depending on `kind`.
    pub value: *const c_void,
    /// The length of the value in bytes.
    pub value_len: usize,
    /// The name of its key space, not terminated by a zero. NULL: the key space was dropped before.
    pub keyspace_name: *const c_char,
    /// The length of the name in bytes.
    pub keyspace_name_len: usize,
    /// The number of its key space; 0 is the default one.
    pub keyspace: u32,
    /// The kind of change: one of the constants above.
    pub kind: u32,
    /// Whether it is the last change of a batch. A new feed can begin after it.
    pub ends_batch: bool,
}

/// A feed of committed writes, in commit order.
///
/// Threads: one at a time, not always the same one.
pub struct trommel_changes {
    changes: Changes,
    /// The rest of the current batch.
    rest: IntoIter<Change>,
    told: Option<Change>,
}

impl trommel_changes {
    /// Advances by one change. None: there are no more now.
    fn step(&mut self) -> Outcome<Option<&Change>> {
        self.told = self.rest.next();
        if self.told.is_none()
            && let Some(batch) = self.changes.next_batch()?
        {
            self.rest = batch.changes.into_iter();
            self.told = self.rest.next();
        }
        Ok(self.told.as_ref())
    }
}

/// Returns a feed of all durable writes after this sequence number, in all key spaces.
/// trommel_snapshot_sequence returns a number to begin with. With the option "kept_log_bytes" the
/// store keeps its logs for feeds. Free it with trommel_changes_free.
///
/// Threads: any. Errors: TROMMEL_GONE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_changes_since(
    db: *const trommel_db,
    sequence: u64,
    error: *mut *mut trommel_error,
) -> *mut trommel_changes {
    call!(error, {
        let changes = handle("db", db)?.db.changes_since(sequence)?;
        Ok(Box::new(trommel_changes { changes, rest: Vec::new().into_iter(), told: None }))
    })
}

/// Returns the next change. `kind` is TROMMEL_CHANGE_NONE if there are no more changes now: ask
/// again later.
///
/// Threads: one at a time. Errors: TROMMEL_GONE, TROMMEL_CORRUPT, TROMMEL_IO, TROMMEL_CLOSED. No
/// change is skipped; the next call tries again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_changes_next(
    changes: *mut trommel_changes,
    change: *mut trommel_change,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (changes, place) = (handle_mut("changes", changes)?, out("change", change)?);
        changes.step()?;
        let ends_batch = changes.rest.as_slice().is_empty();
        place.set(match &changes.told {
            Some(change) => told(change, ends_batch)?,
            None => NOTHING,
        });
        Ok(())
    })
}

const NOTHING: trommel_change = trommel_change {
    sequence: 0,
    expiry: 0,
    key: null(),
    key_len: 0,
    value: null(),
    value_len: 0,
    keyspace_name: null(),
    keyspace_name_len: 0,
    keyspace: 0,
    kind: TROMMEL_CHANGE_NONE,
    ends_batch: false,
};

/// Returns the change in its C form.
fn told(change: &Change, ends_batch: bool) -> Outcome<trommel_change> {
    let (kind, value, expiry) = match &change.kind {
        ChangeKind::Put(value) => (TROMMEL_CHANGE_PUT, &value[..], 0),
        ChangeKind::PutWithExpiry { value, expiry } => {
            (TROMMEL_CHANGE_PUT_WITH_EXPIRY, &value[..], expiry.milliseconds())
        }
        ChangeKind::Merge(operand) => (TROMMEL_CHANGE_MERGE, &operand[..], 0),
        ChangeKind::Delete => (TROMMEL_CHANGE_DELETE, &[][..], 0),
        ChangeKind::DeleteRange { to } => (TROMMEL_CHANGE_DELETE_RANGE, &to[..], 0),
        other => {
            let message = format!("a change of a kind that this library does not tell: {other:?}");
            return Err(Failure::argument(message));
        }
    };
    let name = change.keyspace_name.as_deref();
    Ok(trommel_change {
        sequence: change.sequence,
        expiry,
        key: change.key.as_ptr().cast(),
        key_len: change.key.len(),
        value: value.as_ptr().cast(),
        value_len: value.len(),
        keyspace_name: name.map_or(null(), |name| name.as_ptr().cast()),
        keyspace_name_len: name.map_or(0, str::len),
        keyspace: change.keyspace,
        kind,
        ends_batch,
    })
}

/// Frees a feed. Does nothing for NULL.
///
/// Threads: one; no other call may use the handle during or after this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_changes_free(changes: *mut trommel_changes) {
    free!(changes);
}
