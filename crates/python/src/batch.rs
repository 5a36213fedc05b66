//! Writes that land together.
//! ```text
//! with store.write_batch() as batch:   put, delete, ... --> at the end of the block: written
//!                                                           after an exception: forgotten
//! ```
//! Invariant: a batch is written once: what was written is not in it any more.

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use trommel::Batch;

use crate::buffers::{Buffer, Key, Lifetime};
use crate::calls::{self, lock_attached};
use crate::keyspace::Keyspace;
use crate::shared::{Keeper, Shared, check_same};

/// Writes that become visible together, and survive a crash together or not at all. At the end of a
/// `with` block they are written; after an exception they are forgotten.
///
/// >>> import tempfile, trommel
/// >>> with trommel.open(tempfile.mkdtemp()) as store:
/// ...     seen = store.keyspace("seen")
/// ...     with store.write_batch() as batch:
/// ...         batch.put(b"drum", b"turns")
/// ...         batch.put(b"drum", b"1", keyspace=seen)
/// ...         len(batch)
/// ...     store.get(b"drum"), seen.get(b"drum"), len(batch)
/// 2
/// (b'turns', b'1', 0)
#[pyclass(frozen, module = "trommel")]
pub(crate) struct WriteBatch {
    shared: Arc<Shared>,
    /// Where writes go that name no key space.
    home: trommel::Keyspace,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    batch: Batch,
    /// The next write goes where the batch begins, or where the last one went: home.
    is_home: bool,
}

impl WriteBatch {
    pub(crate) fn new(shared: &Arc<Shared>, home: &trommel::Keyspace) -> WriteBatch {
        let state = Mutex::default();
        WriteBatch { shared: Arc::clone(shared), home: home.clone(), state }
    }

    fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.check_process(py)
    }

    /// Adds a write into a key space, or into the batch's own.
    fn add(
        &self,
        py: Python<'_>,
        keyspace: Option<&Bound<'_, Keyspace>>,
        add: impl FnOnce(&mut Batch),
    ) -> PyResult<()> {
        self.check_process(py)?;
        let mut state = lock_attached(py, &self.state);
        let State { batch, is_home } = &mut *state;
        match keyspace {
            Some(keyspace) => {
                let own = Keeper::Store(Arc::clone(&self.shared));
                check_same(&own, &keyspace.as_super().get().keeper)?;
                batch.to(&keyspace.get().keyspace);
                *is_home = false;
            }
            None if *is_home => {}
            None => {
                batch.to(&self.home);
                *is_home = true;
            }
        }
        add(batch);
        Ok(())
    }
}

#[pymethods]
impl WriteBatch {
    /// Sets the value of a key, for a while if `ttl` says so; in another key space if one is named.
    #[pyo3(signature = (key, value, *, ttl=None, keyspace=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        value: Buffer<'_>,
        ttl: Option<Lifetime>,
        keyspace: Option<&Bound<'_, Keyspace>>,
    ) -> PyResult<()> {
        self.add(py, keyspace, |batch| match ttl {
            Some(Lifetime(time)) => _ = batch.put_ttl(key, value, time),
            None => _ = batch.put(key, value),
        })
    }

    /// Merges an operand into the value of a key.
    #[pyo3(signature = (key, operand, *, keyspace=None))]
    fn merge(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        operand: Buffer<'_>,
        keyspace: Option<&Bound<'_, Keyspace>>,
    ) -> PyResult<()> {
        self.add(py, keyspace, |batch| _ = batch.merge(key, operand))
    }

    /// Removes a key.
    #[pyo3(signature = (key, *, keyspace=None))]
    fn delete(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        keyspace: Option<&Bound<'_, Keyspace>>,
    ) -> PyResult<()> {
        self.add(py, keyspace, |batch| _ = batch.delete(key))
    }

    /// Removes all keys from `start` on and before `stop`.
    #[pyo3(signature = (start, stop, *, keyspace=None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Key<'_>,
        stop: Key<'_>,
        keyspace: Option<&Bound<'_, Keyspace>>,
    ) -> PyResult<()> {
        self.add(py, keyspace, |batch| _ = batch.delete_range(start, stop))
    }

    /// The batch is written only if the key then has this value, or none (None); else writing it
    /// raises `ConflictError`.
    ///
    /// >>> import tempfile, trommel
    /// >>> store = trommel.open(tempfile.mkdtemp())
    /// >>> batch = store.write_batch()
    /// >>> batch.only_if(b"owner", None)
    /// >>> batch.put(b"owner", b"ann")
    /// >>> batch.write()
    /// >>> batch.only_if(b"owner", None)
    /// >>> batch.put(b"owner", b"bob")
    /// >>> batch.write()
    /// Traceback (most recent call last):
    ///     ...
    /// trommel.ConflictError: ...
    #[pyo3(signature = (key, value, *, keyspace=None))]
    fn only_if(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        value: Option<Buffer<'_>>,
        keyspace: Option<&Bound<'_, Keyspace>>,
    ) -> PyResult<()> {
        self.add(py, keyspace, |batch| _ = batch.only_if(key, value.as_deref()))
    }

    /// Writes it, and leaves it empty. `sync`: it is on disk when this returns.
    #[pyo3(signature = (*, sync=false))]
    fn write(&self, py: Python<'_>, sync: bool) -> PyResult<()> {
        self.check_process(py)?;
        let batch = std::mem::take(&mut *lock_attached(py, &self.state)).batch;
        let db = &self.shared.db;
        calls::write(py, || if sync { db.write_synced(batch) } else { db.write(batch) })
    }

    /// Forgets its writes.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.check_process(py)?;
        let mut state = lock_attached(py, &self.state);
        state.batch.clear();
        state.is_home = false;
        Ok(())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.check_process(py)?;
        Ok(lock_attached(py, &self.state).batch.len())
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
        if kind.is_none() { self.write(py, false) } else { self.clear(py) }
    }
}
