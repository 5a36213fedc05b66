//! Transactions.
//! ```text
//! with store.transaction() as tx:   get, put, ... --> at the end of the block: committed
//!                                                     after an exception: nothing is written
//! rows of a range   in pieces, each a scan of its own, which notes what it has gone over
//! ```
//! Invariant: what was committed or rolled back is used no more.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::ops::Bound as End;
use trommel::{Isolation, KeyBounds, KeyValue, TransactionIn as StoreTransactionIn};

use crate::buffers::{Buffer, Key, Lifetime, bounds_of};
use crate::calls::{self, lock, lock_attached};
use crate::errors::{self, wrong_value};
use crate::keyspace::Keyspace;
use crate::reader::to_bytes;
use crate::shared::{Keeper, Shared, check_same};

/// Rows of the first piece, and of the largest one. What was read ahead counts as read, so pieces
/// are small.
const PIECE_MIN: usize = 16;
const PIECE_MAX: usize = 512;
/// Each piece is larger than the one before by this factor.
const GROWTH: usize = 4;

/// A transaction that goes on, or has ended.
struct Open {
    shared: Arc<Shared>,
    /// Held for a moment, in which nothing of Python is called.
    transaction: Mutex<Option<Arc<trommel::Transaction>>>,
}

impl Open {
    fn use_it(&self, py: Python<'_>) -> PyResult<Arc<trommel::Transaction>> {
        self.check_process(py)?;
        let open = lock(&self.transaction).clone();
        open.ok_or_else(|| errors::closed(py, "the transaction"))
    }

    /// An error in a child: its locks may be held there for ever.
    fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.check_process(py)
    }

    /// Ends it. None: it has ended before.
    fn end(&self, py: Python<'_>) -> PyResult<Option<trommel::Transaction>> {
        self.check_process(py)?;
        let mut open = lock(&self.transaction);
        let Some(transaction) = open.take() else { return Ok(None) };
        match Arc::try_unwrap(transaction) {
            Ok(transaction) => Ok(Some(transaction)),
            Err(shared) => {
                *open = Some(shared);
                Err(wrong_value("another thread is in a call of the transaction: join it first"))
            }
        }
    }
}

/// A transaction in one key space.
#[pyclass(frozen, subclass, module = "trommel")]
pub(crate) struct TransactionIn {
    open: Arc<Open>,
    keyspace: trommel::Keyspace,
}

/// Reads of one moment and writes on top of them, committed together or not at all. At the end of a
/// `with` block it commits; after an exception nothing of it is written.
#[pyclass(frozen, extends = TransactionIn, module = "trommel")]
pub(crate) struct Transaction {
    open: Arc<Open>,
}

/// A place to which a transaction's writes can go back.
#[pyclass(frozen, module = "trommel")]
pub(crate) struct Savepoint {
    open: Arc<Open>,
    savepoint: trommel::Savepoint,
}

/// Begins a transaction.
pub(crate) fn new_transaction<'py>(
    py: Python<'py>,
    shared: &Arc<Shared>,
    isolation: Isolation,
) -> PyResult<Bound<'py, Transaction>> {
    shared.check_process(py)?;
    let begun = calls::detached(py, || shared.db.transaction_with(isolation))?;
    let open = Arc::new(Open {
        shared: Arc::clone(shared),
        transaction: Mutex::new(Some(Arc::new(begun))),
    });
    let keyspace = trommel::Keyspace::clone(&shared.db);
    let inside = TransactionIn { open: Arc::clone(&open), keyspace };
    let whole = PyClassInitializer::from(inside).add_subclass(Transaction { open });
    Bound::new(py, whole)
}

thread_local! {
    /// The transactions in whose calls this thread is, by address: handlers of signals nest.
    static IN_CALLS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

impl TransactionIn {
    fn address(&self) -> usize {
        Arc::as_ptr(&self.open).addr()
    }

    /// An error if this thread is in a call of the transaction.
    fn check_calls(&self) -> PyResult<()> {
        match IN_CALLS.with_borrow(|calls| calls.contains(&self.address())) {
            true => Err(wrong_value("this thread is in a call of the transaction, which waits")),
            false => Ok(()),
        }
    }

    /// Calls it, without the interpreter's lock. A signal handler that is run while the call waits
    /// must not make another one: it would wait for the first.
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(StoreTransactionIn<'_>) -> trommel::Result<T> + Send,
    ) -> PyResult<T> {
        let transaction = self.open.use_it(py)?;
        self.check_calls()?;
        IN_CALLS.with_borrow_mut(|calls| calls.push(self.address()));
        // It goes before the interpreter's lock is back: the next call may end the transaction.
        let done = calls::write(py, move || {
            let done = call(transaction.of(&self.keyspace));
            drop(transaction);
            done
        });
        IN_CALLS.with_borrow_mut(Vec::pop);
        done
    }
}

#[pymethods]
impl TransactionIn {
    /// The value of a key, as the transaction sees it; `default` if it has none.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Key<'_>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = to_bytes(py, self.call(py, |it| it.get(key))?);
        Ok(found.map_or(default, |value| Some(value.into_any())))
    }

    /// Locks a key until the transaction ends, and reads its newest value.
    ///
    /// Raises `ConflictError`, `DeadlockError`, `LockTimeoutError`.
    fn get_for_update<'py>(
        &self,
        py: Python<'py>,
        key: Key<'_>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(to_bytes(py, self.call(py, |it| it.get_for_update(key))?))
    }

    fn __contains__(&self, py: Python<'_>, key: Key<'_>) -> PyResult<bool> {
        Ok(self.call(py, |it| it.get(key))?.is_some())
    }

    /// Sets the value of a key.
    #[pyo3(signature = (key, value, *, ttl=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        value: Buffer<'_>,
        ttl: Option<Lifetime>,
    ) -> PyResult<()> {
        self.call(py, |it| match ttl {
            Some(Lifetime(time)) => it.put_ttl(key, value, time),
            None => it.put(key, value),
        })
    }

    /// Merges an operand into the value of a key.
    fn merge(&self, py: Python<'_>, key: Key<'_>, operand: Buffer<'_>) -> PyResult<()> {
        self.call(py, |it| it.merge(key, operand))
    }

    /// Removes a key.
    fn delete(&self, py: Python<'_>, key: Key<'_>) -> PyResult<()> {
        self.call(py, |it| it.delete(key))
    }

    /// Removes all keys from `start` on and before `stop`.
    fn delete_range(&self, py: Python<'_>, start: Key<'_>, stop: Key<'_>) -> PyResult<()> {
        self.call(py, |it| it.delete_range(start, stop))
    }

    /// The keys of a range and their values, as the transaction sees them. They are read in small
    /// pieces, and what was read counts as read. Later pieces show what was written meanwhile.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false))]
    fn items(
        slf: Py<Self>,
        start: Option<Key<'_>>,
        stop: Option<Key<'_>>,
        prefix: Option<Key<'_>>,
        reverse: bool,
    ) -> PyResult<TransactionRows> {
        let left = bounds_of(start.as_deref(), stop.as_deref(), prefix.as_deref())?;
        let (ahead, rows) = (Vec::new().into_iter(), PIECE_MIN);
        let state = Mutex::new(Ahead { left: Some(left), ahead, rows });
        Ok(TransactionRows { inside: slf, is_reverse: reverse, state })
    }
}

impl Transaction {
    /// Commits it, unless that was done.
    pub(crate) fn commit_if_open(&self, py: Python<'_>) -> PyResult<()> {
        match self.open.end(py)? {
            Some(transaction) => calls::write(py, || transaction.commit()).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Ends it, unless that was done, and writes nothing.
    pub(crate) fn roll_back(&self, py: Python<'_>) -> PyResult<()> {
        let transaction = self.open.end(py)?;
        calls::computing(py, || drop(transaction))
    }
}

#[pymethods]
impl Transaction {
    /// The transaction, of another key space of its store.
    fn of<'py>(
        &self,
        py: Python<'py>,
        keyspace: &Bound<'py, Keyspace>,
    ) -> PyResult<Bound<'py, TransactionIn>> {
        let own = Keeper::Store(Arc::clone(&self.open.shared));
        check_same(&own, &keyspace.as_super().get().keeper)?;
        let keyspace = keyspace.get().keyspace.clone();
        Bound::new(py, TransactionIn { open: Arc::clone(&self.open), keyspace })
    }

    /// The moment that it reads: the number of the last write before it.
    #[getter]
    fn sequence(&self, py: Python<'_>) -> PyResult<u64> {
        let transaction = self.open.use_it(py)?;
        calls::detached(py, move || transaction.sequence())
    }

    /// A place to which its writes can go back.
    fn savepoint(&self, py: Python<'_>) -> PyResult<Savepoint> {
        let transaction = self.open.use_it(py)?;
        let savepoint = calls::detached(py, move || transaction.savepoint())?;
        Ok(Savepoint { open: Arc::clone(&self.open), savepoint })
    }

    /// Forgets what was written since, and frees the keys that were locked since.
    fn roll_back_to(&self, py: Python<'_>, savepoint: &Bound<'_, Savepoint>) -> PyResult<()> {
        if !Arc::ptr_eq(&self.open, &savepoint.get().open) {
            return Err(wrong_value("the savepoint is another transaction's"));
        }
        let transaction = self.open.use_it(py)?;
        let savepoint = &savepoint.get().savepoint;
        calls::detached(py, move || transaction.roll_back_to(savepoint))
    }

    /// Writes what it has written, and gives the number of its last write. `sync`: it is on disk
    /// then.
    ///
    /// Raises `ConflictError` if others have written what it has read; `ClosedError` if it has
    /// ended.
    #[pyo3(signature = (*, sync=false))]
    fn commit(&self, py: Python<'_>, sync: bool) -> PyResult<u64> {
        let ended = self.open.end(py)?;
        let transaction = ended.ok_or_else(|| errors::closed(py, "the transaction"))?;
        calls::write(py, || match sync {
            true => transaction.commit_synced(),
            false => transaction.commit(),
        })
    }

    /// Ends it, and writes nothing.
    #[pyo3(name = "roll_back")]
    fn roll_back_it(&self, py: Python<'_>) -> PyResult<()> {
        self.roll_back(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if kind.is_none() { self.commit_if_open(py) } else { self.roll_back(py) }
    }
}

/// Rows of a range, as a transaction sees them.
#[pyclass(frozen, module = "trommel")]
pub(crate) struct TransactionRows {
    inside: Py<TransactionIn>,
    is_reverse: bool,
    state: Mutex<Ahead>,
}

/// Rows that were read ahead.
struct Ahead {
    /// What was not read; None: nothing is left.
    left: Option<KeyBounds>,
    ahead: std::vec::IntoIter<KeyValue>,
    rows: usize,
}

#[pymethods]
impl TransactionRows {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let inside = self.inside.get();
        inside.open.check_process(py)?;
        if self.state.try_lock().is_err() {
            // Perhaps by this thread, which was interrupted while it read.
            inside.check_calls()?;
        }
        let mut state = lock_attached(py, &self.state);
        if state.ahead.len() == 0 {
            drop(state);
            // Not while it is locked: a handler may go on with the rows itself.
            py.check_signals()?;
            state = lock_attached(py, &self.state);
            state.read(py, inside, self.is_reverse)?;
        }
        let row = state.ahead.next();
        // A new tuple may have Python look for garbage, and run what that leaves to do.
        drop(state);
        let both = |(key, value): KeyValue| {
            PyTuple::new(py, [PyBytes::new(py, &key), PyBytes::new(py, &value)])
        };
        row.map(both).transpose()
    }
}

impl Ahead {
    /// Reads the next piece, if all rows of this one were given.
    fn read(&mut self, py: Python<'_>, inside: &TransactionIn, is_reverse: bool) -> PyResult<()> {
        if self.ahead.len() > 0 {
            return Ok(());
        }
        let Some(bounds) = &self.left else { return Ok(()) };
        let (count, read) = (self.rows, bounds.clone());
        let piece = inside.call(py, move |it| {
            let scan = it.range(read);
            match is_reverse {
                true => scan.rev().take(count).collect::<trommel::Result<Vec<_>>>(),
                false => scan.take(count).collect(),
            }
        })?;
        // A piece that is not full is the last one.
        let last = if piece.len() == count { piece.last() } else { None };
        self.left = last.map(|(last, _)| behind(bounds, last, is_reverse));
        (self.ahead, self.rows) = (piece.into_iter(), (count * GROWTH).min(PIECE_MAX));
        Ok(())
    }
}

/// What is left of a range behind a row, in the direction of the scan.
fn behind(bounds: &KeyBounds, last: &[u8], is_reverse: bool) -> KeyBounds {
    match is_reverse {
        true => KeyBounds::from((End::Included(bounds.start()), End::Excluded(last))),
        false => {
            let stop = bounds.end().map_or(End::Unbounded, End::Excluded);
            KeyBounds::from((End::Excluded(last), stop))
        }
    }
}
