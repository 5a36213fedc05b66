//! Change feeds: all committed writes, in their order.
//!
//! Invariant: a change is told once, and the last one of each batch says so.

use std::ffi::{c_char, c_void};
use std::ptr::null;
use std::vec::IntoIter;

use store::{Change, ChangeKind, Changes};

use crate::border::{Outcome, handle, handle_mut, out};
use crate::db::trommel_db;
use crate::error::{Failure, trommel_error};

/// There is nothing more to tell now.
pub const TROMMEL_CHANGE_NONE: u32 = 0;
/// The key has this value.
pub const TROMMEL_CHANGE_PUT: u32 = 1;
/// The key has no value.
pub const TROMMEL_CHANGE_DELETE: u32 = 2;
/// No key from this one on and before `value` has a value.
pub const TROMMEL_CHANGE_DELETE_RANGE: u32 = 3;
/// The key has this value until `expiry`.
pub const TROMMEL_CHANGE_PUT_WITH_EXPIRY: u32 = 4;
/// The operand `value` is merged into the key's value.
pub const TROMMEL_CHANGE_MERGE: u32 = 5;

/// A write. What it points to lies in the feed until its next call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct trommel_change {
    /// Its number: each write has a greater one than those before it.
    pub sequence: u64,
    /// When the value expires, in milliseconds since the start of 1970; 0: it does not.
    pub expiry: u64,
    /// The key.
    pub key: *const c_void,
    /// How many bytes it has.
    pub key_len: usize,
    /// The value, or what else belongs to the kind.
    pub value: *const c_void,
    /// How many bytes it has.
    pub value_len: usize,
    /// The name of its key space, which no zero ends. NULL: it was dropped before.
    pub keyspace_name: *const c_char,
    /// How many bytes that has.
    pub keyspace_name_len: usize,
    /// The number of its key space; 0 is the default one.
    pub keyspace: u32,
    /// What has become of the key: one of the constants above.
    pub kind: u32,
    /// Whether it is the last one of a batch: a feed can go on behind it.
    pub ends_batch: bool,
}

/// Committed writes, in their order.
///
/// Threads: one at a time, whichever.
pub struct trommel_changes {
    changes: Changes,
    /// Of the batch that is told.
    rest: IntoIter<Change>,
    told: Option<Change>,
}

impl trommel_changes {
    /// Goes one change on. None: there is nothing more now.
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

/// All committed writes after the one of this number, of all key spaces, as far as they are
/// durable: trommel_snapshot_sequence gives a number to begin with. The option "kept_log_bytes" has
/// the store keep its logs for it. Free it with trommel_changes_free.
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

/// Gives the next change. `kind` is TROMMEL_CHANGE_NONE if there is nothing more to tell now: ask
/// again later.
///
/// Threads: one at a time. Errors: TROMMEL_GONE, TROMMEL_CORRUPT, TROMMEL_IO, TROMMEL_CLOSED.
/// Nothing is passed over; the next call tries again.
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

/// As C sees it.
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

/// Frees a feed. NULL is none.
///
/// Threads: one, which uses it last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_changes_free(changes: *mut trommel_changes) {
    free!(changes);
}
