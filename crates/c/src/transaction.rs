//! Transactions: reads of one moment and writes on top of them, committed together or not at all.
//! ```text
//! begin --> Some(transaction) -- commit --> None: TROMMEL_ENDED from then on
//!               ^ scans and calls under way hold it: TROMMEL_IN_USE
//! ```
//! Invariant: a transaction commits only when nobody else uses it, so that all its reads are known.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use store::{Isolation, Keyspace, Savepoint, Transaction, TransactionIn};

use crate::border::{Outcome, bytes, handle, out, out_if};
use crate::bounds::{OF_RANGE, TROMMEL_REVERSE, bounds, trommel_range};
use crate::db::{Opening, trommel_db};
use crate::error::{Failure, trommel_error};
use crate::keyspace::trommel_keyspace;
use crate::read::give;
use crate::scan::trommel_scan;
use crate::value::trommel_value;

/// Everything that a transaction has read is unchanged when it commits. Transactions act as if they
/// ran one after the other.
pub const TROMMEL_SERIALIZABLE: u32 = 0;
/// Nobody else has written, since the transaction began, what it writes.
pub const TROMMEL_SNAPSHOT_ISOLATION: u32 = 1;

/// Reads of one moment and writes on top of them. Its reads see its own writes. Freed without a
/// commit, it writes nothing.
///
/// Threads: any, at once; but during a commit nobody else may use it. No call may run during or
/// after freeing it.
pub struct trommel_transaction {
    /// None: the transaction has ended.
    transaction: Mutex<Option<Arc<Transaction>>>,
    /// The default key space.
    main: Keyspace,
    opening: Opening,
    /// The identity of the transaction.
    number: Opening,
}

/// A savepoint, to which the writes of a transaction can roll back.
///
/// Threads: any, at once; no call may run during or after freeing it.
pub struct trommel_savepoint {
    savepoint: Savepoint,
    of: Opening,
}

impl trommel_transaction {
    fn slot(&self) -> MutexGuard<'_, Option<Arc<Transaction>>> {
        self.transaction.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn living(&self) -> Outcome<Arc<Transaction>> {
        self.slot().clone().ok_or_else(Failure::ended)
    }

    /// Returns the key space of a handle. Requires: null, or a handle.
    unsafe fn keyspace(&self, keyspace: *const trommel_keyspace) -> Outcome<&Keyspace> {
        // SAFETY: required; the caller keeps it until the call ends.
        match unsafe { keyspace.as_ref() } {
            None => Ok(&self.main),
            Some(keyspace) => keyspace.of(self.opening),
        }
    }

    /// Works in the key space of a handle. Requires: null, or a handle.
    unsafe fn within<T>(
        &self,
        keyspace: *const trommel_keyspace,
        work: impl FnOnce(TransactionIn<'_>) -> store::Result<T>,
    ) -> Outcome<T> {
        let transaction = self.living()?;
        // SAFETY: required.
        let keyspace = unsafe { self.keyspace(keyspace) }?;
        Ok(work(transaction.of(keyspace))?)
    }

    /// Takes the transaction out, to end it. It stays if somebody else uses it.
    fn take(&self) -> Outcome<Transaction> {
        let mut slot = self.slot();
        let transaction = slot.take().ok_or_else(Failure::ended)?;
        Arc::try_unwrap(transaction).map_err(|transaction| {
            *slot = Some(transaction);
            Failure::in_use()
        })
    }
}

/// Begins a transaction. Free it with trommel_transaction_free, even after its commit.
///
/// Threads: any. Errors: TROMMEL_ARGUMENT: there is no such isolation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_transaction_begin(
    db: *const trommel_db,
    isolation: u32,
    error: *mut *mut trommel_error,
) -> *mut trommel_transaction {
    call!(error, {
        let db = handle("db", db)?;
        let isolation = match isolation {
            TROMMEL_SERIALIZABLE => Isolation::Serializable,
            TROMMEL_SNAPSHOT_ISOLATION => Isolation::Snapshot,
            other => return Err(Failure::argument(format!("{other} is no isolation: 0 or 1"))),
        };
        let transaction = Arc::new(db.db.transaction_with(isolation));
        Ok(Box::new(trommel_transaction {
            transaction: Mutex::new(Some(transaction)),
            main: (*db.db).clone(),
            opening: db.opening,
            number: Opening::new(),
        }))
    })
}

/// Returns the value of a key: the one that the transaction has written, or else that of its
/// moment. It is a handle to be freed, or NULL.
///
/// Threads: any. Errors: TROMMEL_ENDED; as of trommel_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_transaction_get(
    transaction: *const trommel_transaction,
    keyspace: *const trommel_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut trommel_value,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (transaction, value) = (handle("transaction", transaction)?, out("value", value)?);
        let key = bytes("key", key, key_len)?;
        give(value, transaction.within(keyspace, |of| of.get(key))?);
        Ok(())
    })
}

/// Locks a key and returns its newest value. Until the transaction ends, nobody else can write the
/// key or read it for update.
///
/// Threads: any; calls on one transaction take turns. Errors: TROMMEL_CONFLICT: the key was written
/// since, and the transaction cannot move to a later moment. TROMMEL_DEADLOCK,
/// TROMMEL_LOCK_TIMEOUT, TROMMEL_ENDED; as of trommel_get. trommel_error_key returns the key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_transaction_get_for_update(
    transaction: *const trommel_transaction,
    keyspace: *const trommel_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut trommel_value,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (transaction, value) = (handle("transaction", transaction)?, out("value", value)?);
        let key = bytes("key", key, key_len)?;
        give(value, transaction.within(keyspace, |of| of.get_for_update(key))?);
        Ok(())
    })
}

/// Sets the value of a key.
///
/// Threads: any. Errors: TROMMEL_ENDED. Lengths are checked by the commit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_transaction_put(
    transaction: *const trommel_transaction,
    keyspace: *const trommel_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (key, value) = (bytes("key", key, key_len)?, bytes("value", value, value_len)?);
        handle("transaction", transaction)?.within(keyspace, |of| of.put(key, value))
    })
}

/// Sets the value of a key for `milliseconds` after the commit.
///
/// Threads: any. Errors: as of trommel_transaction_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_transaction_put_ttl(
    transaction: *const trommel_transaction,
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
        handle("transaction", transaction)?.within(keyspace, |of| of.put_ttl(key, value, ttl))
    })
}

/// Merges an operand into the value of a key. Nothing is read, so transactions that merge into the
/// same key do not conflict.
///
/// Threads: any. Errors: as of trommel_transaction_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_transaction_merge(
    transaction: *const trommel_transaction,
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
        handle("transaction", transaction)?.within(keyspace, |of| of.merge(key, operand))
    })
}

/// Deletes a key.
///
/// Threads: any. Errors: as of trommel_transaction_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_transaction_delete(
    transaction: *const trommel_transaction,
    keyspace: *const trommel_keyspace,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let key = bytes("key", key, key_len)?;
        handle("transaction", transaction)?.within(keyspace, |of| of.delete(key))
    })
}

/// Deletes all keys at or after `from` and before `to`.
///
/// Threads: any. Errors: as of trommel_transaction_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_transaction_delete_range(
    transaction: *const trommel_transaction,
    keyspace: *const trommel_keyspace,
    from: *const c_void,
    from_len: usize,
    to: *const c_void,
    to_len: usize,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let (from, to) = (bytes("from", from, from_len)?, bytes("to", to, to_len)?);
        handle("transaction", transaction)?.within(keyspace, |of| of.delete_range(from, to))
    })
}

/// Begins a scan of what the transaction sees now. The range that it covers counts as read. Free it
/// before the commit. Until it is freed, the transaction lives and holds its locks.
///
/// Threads: any. Errors: TROMMEL_ENDED; TROMMEL_ARGUMENT: TROMMEL_KEYS_ONLY is not allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_transaction_scan(
    transaction: *const trommel_transaction,
    keyspace: *const trommel_keyspace,
    range: *const trommel_range,
    flags: u32,
    error: *mut *mut trommel_error,
) -> *mut trommel_scan {
    call!(error, {
        let transaction = handle("transaction", transaction)?;
        let bounds = bounds(range, flags, OF_RANGE | TROMMEL_REVERSE)?;
        let (keyspace, living) = (transaction.keyspace(keyspace)?, transaction.living()?);
        Ok(trommel_scan::of_transaction(living, keyspace.clone(), bounds, flags))
    })
}

/// Returns a savepoint of the transaction's writes. Free it with trommel_savepoint_free.
///
/// Threads: any. Errors: TROMMEL_ENDED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_transaction_savepoint(
    transaction: *const trommel_transaction,
    error: *mut *mut trommel_error,
) -> *mut trommel_savepoint {
    call!(error, {
        let transaction = handle("transaction", transaction)?;
        let savepoint = transaction.living()?.savepoint();
        Ok(Box::new(trommel_savepoint { savepoint, of: transaction.number }))
    })
}

/// Undoes what was written since the savepoint, and releases the locks taken since. Reads since
/// must still be unchanged at the commit. The savepoint stays valid.
///
/// Threads: any. Errors: TROMMEL_ENDED; TROMMEL_ARGUMENT: it is another transaction's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_transaction_roll_back_to(
    transaction: *const trommel_transaction,
    savepoint: *const trommel_savepoint,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let transaction = handle("transaction", transaction)?;
        let savepoint = handle("savepoint", savepoint)?;
        if savepoint.of != transaction.number {
            return Err(Failure::argument("the savepoint is of another transaction"));
        }
        transaction.living()?.roll_back_to(&savepoint.savepoint);
        Ok(())
    })
}

/// Frees a savepoint. Does nothing for NULL.
///
/// Threads: one; no other call may use the handle during or after this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_savepoint_free(savepoint: *mut trommel_savepoint) {
    free!(savepoint);
}

/// Commits the transaction, all of it or nothing, and ends it. `synced`: it is on disk when this
/// returns, whatever the options say. `sequence`: NULL, or set to the number of its last write;
/// these numbers order commits by their effects.
///
/// Threads: one at a time with all other calls on the transaction. Errors: TROMMEL_CONFLICT: others
/// have written what it has read (or, with TROMMEL_SNAPSHOT_ISOLATION, what it writes).
/// trommel_error_key returns the key, or the start of a range that was read. TROMMEL_DEADLOCK; as
/// of trommel_write. In these cases nothing was written, and the transaction has ended: begin
/// another one. TROMMEL_IN_USE: a scan of it is not freed; the transaction goes on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_transaction_commit(
    transaction: *const trommel_transaction,
    synced: bool,
    sequence: *mut u64,
    error: *mut *mut trommel_error,
) -> bool {
    call!(error, {
        let transaction = handle("transaction", transaction)?.take()?;
        let last = match synced {
            true => transaction.commit_synced(),
            false => transaction.commit(),
        };
        out_if(sequence).set(last?);
        Ok(())
    })
}

/// Ends a transaction without writing anything, and frees it. After a commit, only frees it. Does
/// nothing for NULL.
///
/// Threads: one; no other call may use the handle during or after this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trommel_transaction_free(transaction: *mut trommel_transaction) {
    free!(transaction);
}
