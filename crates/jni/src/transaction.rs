//! Transactions: reads at one sequence number, and writes on top, committed together or not at all.
//! ```text
//! begin --> Some(transaction) -- commit, roll back --> None: an error from then on
//!               ^ calls under way share it: a commit fails meanwhile;
//!                 after a rollback it ends with the last of them
//! ```
//! Invariant: a transaction is committed only when no other call uses it, so that all its reads are
//! known.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jni_sys::{jboolean, jbyteArray, jint, jlong};
use trommel::{Isolation, Keyspace, Savepoint, Transaction, TransactionIn};

use crate::border::Handle;
use crate::bytes::Room;
use crate::error::{Failure, Outcome};
use crate::reader::{Reader, Source};

/// A transaction that is open or has ended.
pub(crate) struct Open {
    slot: Mutex<Option<Arc<Transaction>>>,
    /// Identifies the transaction.
    number: u64,
}

/// A savepoint, and the transaction that it belongs to.
pub(crate) struct Place {
    savepoint: Savepoint,
    of: u64,
}

impl Open {
    fn begin(transaction: Transaction) -> Arc<Open> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let slot = Mutex::new(Some(Arc::new(transaction)));
        Arc::new(Open { slot, number: NEXT.fetch_add(1, Ordering::Relaxed) })
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<Transaction>>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn living(&self) -> Outcome<Arc<Transaction>> {
        self.slot().clone().ok_or_else(|| Failure::closed("transaction"))
    }

    /// Does work in a key space of the transaction.
    pub(crate) fn within<T>(
        &self,
        keyspace: &Keyspace,
        work: impl FnOnce(TransactionIn<'_>) -> trommel::Result<T>,
    ) -> Outcome<T> {
        let transaction = self.living()?;
        Ok(work(transaction.of(keyspace))?)
    }

    /// Takes the transaction out, for its commit. It stays, with an error, while another call uses
    /// it.
    fn take(&self) -> Outcome<Transaction> {
        let mut slot = self.slot();
        let transaction = slot.take().ok_or_else(|| Failure::closed("transaction"))?;
        Arc::try_unwrap(transaction).map_err(|transaction| {
            *slot = Some(transaction);
            Failure::in_use()
        })
    }
}

impl Reader {
    fn transaction(&self) -> Outcome<&Arc<Open>> {
        match &self.source {
            Source::Transaction(open, _) => Ok(open),
            _ => Err(Failure::argument("the handle is not that of a transaction")),
        }
    }
}

native! {
    "transaction" fn transaction(
        _env,
        of: Handle<Reader>,
        is_serializable: jboolean,
    ) -> Box<Reader> {
        let reader = of.get()?;
        // Beginning a transaction never fails, not even of a closed store.
        reader.check_open()?;
        let isolation =
            if is_serializable { Isolation::Serializable } else { Isolation::Snapshot };
        let open = Open::begin(reader.db.transaction_with(isolation));
        Ok(reader.beside(Source::Transaction(open, reader.keyspace()?.clone())))
    }
}

native! {
    /// Returns the same transaction in another key space.
    "transactionOf" fn transaction_of(
        _env,
        of: Handle<Reader>,
        keyspace: Handle<Reader>,
    ) -> Box<Reader> {
        let reader = of.get()?;
        let keyspace = keyspace.get()?.keyspace_of(reader.opening)?.clone();
        Ok(reader.beside(Source::Transaction(Arc::clone(reader.transaction()?), keyspace)))
    }
}

native! {
    "getForUpdate" fn get_for_update(
        env,
        of: Handle<Reader>,
        key: jbyteArray,
        key_len: jint,
    ) -> jbyteArray {
        let mut room = Room::new();
        let key = env.bytes(&mut room, key, key_len)?;
        let Source::Transaction(open, keyspace) = &of.get()?.source else {
            return Err(Failure::argument("the handle is not that of a transaction"));
        };
        let value = open.within(keyspace, |it| it.get_for_update(key))?;
        env.new_bytes_if(value.as_deref())
    }
}

native! {
    "savepoint" fn savepoint(_env, of: Handle<Reader>) -> Box<Place> {
        let open = of.get()?.transaction()?;
        Ok(Box::new(Place { savepoint: open.living()?.savepoint(), of: open.number }))
    }
}

native! {
    "rollBackTo" fn roll_back_to(_env, of: Handle<Reader>, place: Handle<Place>) -> () {
        let (open, place) = (of.get()?.transaction()?, place.get()?);
        if place.of != open.number {
            return Err(Failure::argument("savepoint: it is of another transaction"));
        }
        open.living()?.roll_back_to(&place.savepoint);
        Ok(())
    }
}

native! {
    "commit" fn commit(_env, of: Handle<Reader>, is_synced: jboolean) -> jlong {
        let transaction = of.get()?.transaction()?.take()?;
        let last = if is_synced { transaction.commit_synced()? } else { transaction.commit()? };
        Ok(last as jlong)
    }
}

native! {
    "rollBack" fn roll_back(_env, of: Handle<Reader>) -> () {
        let transaction = of.get()?.transaction()?.slot().take();
        drop(transaction);
        Ok(())
    }
}

native! {
    "freeSavepoint" fn free_savepoint(_env, of: Handle<Place>) -> () {
        drop(of.take()?);
        Ok(())
    }
}
