//! A key space that is written and read.
//! ```text
//! Reader: get, items, ... <-- Keyspace: put, delete, batches, single keys, bulk loads <-- Store
//! ```
//! Invariant: what Python is called for is called outside of all locks, but an iterator that is
//! ingested: other writes wait for it.

use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyIterator};
use trommel::stats::{MetricValue, Stats};
use trommel::{Batch, Error, Swap, Update};

use crate::arrow::TableRows;
use crate::batch::WriteBatch;
use crate::buffers::{Buffer, Key, Lifetime, Many, Numbers, bytes_of, key_of};
use crate::calls::{self, LOOK_ROWS, lock};
use crate::errors::{self, wrong_type, wrong_value};
use crate::reader::{Reader, Source, check_pairs, to_bytes};
use crate::shared::{Keeper, Shared};

/// Bytes that `put_many` writes at once: so long a signal waits.
const PIECE_BYTES: usize = 256 << 10;

/// A key space: keys, guard and options of its own in a store. `Store.keyspace` makes it.
#[pyclass(frozen, extends = Reader, subclass, module = "trommel")]
pub(crate) struct Keyspace {
    pub(crate) shared: Arc<Shared>,
    pub(crate) keyspace: trommel::Keyspace,
}

impl Keyspace {
    pub(crate) fn make(
        shared: Arc<Shared>,
        keyspace: trommel::Keyspace,
    ) -> PyClassInitializer<Keyspace> {
        let keeper = Keeper::Store(Arc::clone(&shared));
        let source = Source::Keyspace(keyspace.clone());
        let reader = PyClassInitializer::from(Reader { keeper, source });
        reader.add_subclass(Keyspace { shared, keyspace })
    }

    /// Writes a batch for this key space.
    fn write(&self, py: Python<'_>, batch: Batch) -> PyResult<()> {
        calls::write(py, || self.shared.db.write(batch))
    }

    fn batch(&self) -> Batch {
        let mut batch = Batch::new();
        batch.to(&self.keyspace);
        batch
    }

    /// Loads rows in bulk.
    fn load(
        &self,
        py: Python<'_>,
        mut rows: impl Iterator<Item = Result<Row, Failure>> + Send,
    ) -> PyResult<u64> {
        // They are lent: what of Python they hold goes with the interpreter's lock.
        let loaded = calls::detached(py, || self.keyspace.try_ingest(rows.by_ref()))?;
        loaded.map_err(|failure| match failure {
            Failure::OfStore(error) => errors::of(py, &error),
            Failure::OfPython(error) => error,
        })
    }

    /// Writes pairs in batches; between them it looks for signals.
    fn put_pairs<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        py: Python<'_>,
        pairs: impl Iterator<Item = PyResult<(K, V)>>,
        ttl: Option<Lifetime>,
    ) -> PyResult<u64> {
        let (mut batch, mut written) = (self.batch(), 0);
        for pair in pairs {
            let (key, value) = pair?;
            match &ttl {
                Some(Lifetime(time)) => batch.put_ttl(key, value, *time),
                None => batch.put(key, value),
            };
            if batch.size_bytes() >= PIECE_BYTES {
                written += batch.len() as u64;
                self.write(py, std::mem::replace(&mut batch, self.batch()))?;
                py.check_signals()?;
            }
        }
        written += batch.len() as u64;
        if !batch.is_empty() {
            self.write(py, batch)?;
        }
        Ok(written)
    }
}

#[pymethods]
impl Keyspace {
    /// Its name.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        self.shared.check_process(py)?;
        calls::detached(py, || self.keyspace.name())
    }

    /// Sets the value of a key. With `ttl` (seconds, or a `timedelta`) the key has no value after
    /// that time.
    ///
    /// >>> import tempfile, trommel
    /// >>> with trommel.open(tempfile.mkdtemp()) as store:
    /// ...     store.put(b"drum", b"turns", ttl=3600)
    /// ...     store.get(b"drum")
    /// b'turns'
    #[pyo3(signature = (key, value, *, ttl=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Key<'_>,
        value: Buffer<'_>,
        ttl: Option<Lifetime>,
    ) -> PyResult<()> {
        calls::write(py, || match ttl {
            Some(Lifetime(time)) => self.keyspace.put_ttl(key, value, time),
            None => self.keyspace.put(key, value),
        })
    }

    fn __setitem__(&self, py: Python<'_>, key: Key<'_>, value: Buffer<'_>) -> PyResult<()> {
        calls::write(py, || self.keyspace.put(key, value))
    }

    /// Removes a key. No error if it is not there.
    fn delete(&self, py: Python<'_>, key: Key<'_>) -> PyResult<()> {
        calls::write(py, || self.keyspace.delete(key))
    }

    fn __delitem__(&self, py: Python<'_>, key: Key<'_>) -> PyResult<()> {
        let delete = |old: Option<&[u8]>| old.map_or(Update::Keep, |_| Update::Delete);
        match calls::write(py, || self.keyspace.update(&*key, delete))? {
            Some(_) => Ok(()),
            None => Err(PyKeyError::new_err(key.to_vec())),
        }
    }

    /// Removes a key, and gives the value that it had; None if it had none.
    fn take<'py>(&self, py: Python<'py>, key: Key<'_>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let delete = |old: Option<&[u8]>| old.map_or(Update::Keep, |_| Update::Delete);
        Ok(to_bytes(py, calls::write(py, || self.keyspace.update(&*key, delete))?))
    }

    /// Removes all keys from `start` on and before `stop`, in one write.
    ///
    /// Raises `InvertedRangeError` if `start` is behind `stop`.
    fn delete_range(&self, py: Python<'_>, start: Key<'_>, stop: Key<'_>) -> PyResult<()> {
        calls::write(py, || self.keyspace.delete_range(start, stop))
    }

    /// Merges an operand into the value of a key, as the key space's merge operator says.
    ///
    /// >>> import tempfile, trommel
    /// >>> with trommel.open(tempfile.mkdtemp(), merge_operator="concat:, ") as store:
    /// ...     store.put(b"fruit", b"apple")
    /// ...     store.merge(b"fruit", b"pear")
    /// ...     store.get(b"fruit")
    /// b'apple, pear'
    ///
    /// Raises `NoMergeOperatorError` if it is open without one.
    fn merge(&self, py: Python<'_>, key: Key<'_>, operand: Buffer<'_>) -> PyResult<()> {
        calls::write(py, || self.keyspace.merge(key, operand))
    }

    /// A batch for this key space.
    ///
    /// >>> import tempfile, trommel
    /// >>> with trommel.open(tempfile.mkdtemp()) as store:
    /// ...     with store.write_batch() as batch:
    /// ...         batch.put(b"a", b"1")
    /// ...         batch.delete(b"b")
    /// ...     store.get(b"a")
    /// b'1'
    fn write_batch(&self) -> WriteBatch {
        WriteBatch::new(&self.shared, &self.keyspace)
    }

    /// Sets the values of many keys, of a dict or of pairs, and gives how many they were. They are
    /// written in batches: after an error or an interrupt the first of them are there.
    #[pyo3(signature = (items, *, ttl=None))]
    fn put_many(
        &self,
        py: Python<'_>,
        items: &Bound<'_, PyAny>,
        ttl: Option<Lifetime>,
    ) -> PyResult<u64> {
        let items = match items.cast::<PyDict>() {
            Ok(dict) => dict.items().try_iter()?,
            Err(_) => items.try_iter()?,
        };
        self.put_pairs(py, items.map(|pair| both(&pair?)), ttl)
    }

    /// As `put_many`, of keys and values apart: arrays with a row for each, or sequences. Numbers
    /// of a `uint64` array of keys become eight bytes, the high one first. Values are the rows as
    /// they are.
    #[pyo3(signature = (keys, values, *, ttl=None))]
    fn put_many_packed(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
        ttl: Option<Lifetime>,
    ) -> PyResult<u64> {
        let keys = Many::of(keys, Numbers::Ordered)?;
        let values = Many::of(values, Numbers::AsTheyAre)?;
        check_pairs(&keys, &values)?;
        let pairs = keys.slices()?.into_iter().zip(values.slices()?);
        self.put_pairs(py, pairs.map(Ok), ttl)
    }

    /// Writes pairs whose keys ascend as one sorted run, past log and memory. It is all or nothing,
    /// and durable when this returns. Gives how many there were. Other writes wait meanwhile, so
    /// the iterator must not write to this store.
    ///
    /// Raises `UnsortedError` if keys do not ascend. Nothing is written then, nor if the iterator
    /// fails.
    fn ingest(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<u64> {
        let iterator = items.try_iter()?.unbind();
        let rows = Pulled { iterator, piece: Vec::new().into_iter(), is_done: false };
        self.load(py, rows)
    }

    /// Loads a table of Arrow whose keys ascend, as `ingest` does: anything with
    /// `__arrow_c_stream__` or `__arrow_c_array__`. Its columns are binary or text; of `uint64`
    /// keys are eight bytes, the high one first. Gives how many rows there were.
    ///
    /// Raises `UnsortedError` if keys do not ascend, `ValueError` if a column is missing, or if the
    /// table or a column has nulls. Nothing is written then.
    #[pyo3(name = "from_arrow", signature = (table, *, key="key", value="value"))]
    fn load_arrow(
        &self,
        py: Python<'_>,
        table: &Bound<'_, PyAny>,
        key: &str,
        value: &str,
    ) -> PyResult<u64> {
        let mut rows = TableRows::of(table, key.to_owned(), value.to_owned())?;
        let rows =
            std::iter::from_fn(move || rows.next_row().map_err(Failure::OfPython).transpose());
        self.load(py, rows)
    }

    /// Sets the value of a key that has none. Gives the value that it has: then nothing was
    /// written.
    fn put_if_absent<'py>(
        &self,
        py: Python<'py>,
        key: Key<'_>,
        value: Buffer<'_>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(to_bytes(py, calls::write(py, || self.keyspace.put_if_absent(key, value))?))
    }

    /// Sets or deletes (`new` is None) the value of a key if it has the one expected (None: no
    /// value). Gives whether it did so, and the value that was there.
    ///
    /// >>> import tempfile, trommel
    /// >>> with trommel.open(tempfile.mkdtemp()) as store:
    /// ...     store.compare_and_swap(b"a", None, b"1")
    /// ...     store.compare_and_swap(b"a", b"2", b"3")
    /// (True, None)
    /// (False, b'1')
    fn compare_and_swap<'py>(
        &self,
        py: Python<'py>,
        key: Key<'_>,
        expected: Option<Buffer<'_>>,
        new: Option<Buffer<'_>>,
    ) -> PyResult<(bool, Option<Bound<'py, PyBytes>>)> {
        let (old, new) = (expected.as_deref(), new.as_deref());
        match calls::write(py, || self.keyspace.compare_and_swap(key, old, new))? {
            Swap::Done => Ok((true, old.map(|old| PyBytes::new(py, old)))),
            Swap::Found(value) => Ok((false, to_bytes(py, value))),
        }
    }

    /// Adds to a counter: a signed number of 8 bytes, the low one first; no value counts as 0.
    /// Gives the number before.
    ///
    /// Raises `NoCounterError` if the value has another length.
    #[pyo3(signature = (key, add=1))]
    fn fetch_add(&self, py: Python<'_>, key: Key<'_>, add: i64) -> PyResult<i64> {
        calls::write(py, || self.keyspace.fetch_add(key, add))
    }

    /// Reads a key, and writes what `change` makes of its value (None: there is none), if nobody
    /// else has written it between; else once more. `change` gives the new value, None to delete
    /// it, or `trommel.KEEP`. Gives the value before.
    ///
    /// >>> import tempfile, trommel
    /// >>> with trommel.open(tempfile.mkdtemp()) as store:
    /// ...     store.update(b"words", lambda old: (old or b"") + b"a")
    /// ...     store.update(b"words", lambda old: trommel.KEEP)
    /// b'a'
    fn update<'py>(
        &self,
        py: Python<'py>,
        key: Key<'_>,
        change: Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let keep = py.import("trommel._types")?.getattr("KEEP")?.unbind();
        let (change, failure) = (change.unbind(), Mutex::new(None));
        let ask = |old: Option<&[u8]>| {
            let asked = Python::attach(|py| -> PyResult<Update> {
                py.check_signals()?;
                let old = old.map(|old| PyBytes::new(py, old));
                let new = calls::called_back(|| change.bind(py).call1((old,)))?;
                if new.is(&keep) {
                    return Ok(Update::Keep);
                }
                match new.is_none() {
                    true => Ok(Update::Delete),
                    false => Ok(Update::Put(bytes_of(&new)?.as_bytes().to_vec())),
                }
            });
            asked.unwrap_or_else(|error| {
                *lock(&failure) = Some(error);
                Update::Keep
            })
        };
        let old = calls::write(py, || self.keyspace.update(key, ask))?;
        match lock(&failure).take() {
            Some(error) => Err(error),
            None => Ok(to_bytes(py, old)),
        }
    }

    /// Every number of the store, by name. One that there is several times is a dict by its label.
    /// `failure` says what stops flushes or merges; None: nothing does.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = calls::store(py, || self.keyspace.stats())?;
        dict_of(py, &stats)
    }

    /// Writes everything in memory to a run on disk.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let keyspace = self.keyspace.clone();
        calls::interruptible(py, move |_| keyspace.flush())
    }

    /// Merges everything into one run. An interrupt leaves the runs as they were, unless some
    /// partitions are merged already: the others then follow in the background.
    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        let keyspace = self.keyspace.clone();
        calls::interruptible(py, move |cancel| {
            keyspace.compact_with_progress(&mut |progress| cancel.hear(progress))
        })
    }

    /// The key space as a `MutableMapping`.
    fn mapping<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("trommel._mapping")?.getattr("MappingView")?.call1((slf,))
    }
}

/// The key and the value of a pair.
fn both<'py>(pair: &Bound<'py, PyAny>) -> PyResult<(Owned<'py>, Owned<'py>)> {
    let pair: [Bound<'py, PyAny>; 2] =
        pair.extract().map_err(|_| wrong_type("pairs of a key and a value are needed"))?;
    let [key, value] = pair;
    Ok((Owned(key_of(&key)?), Owned(bytes_of(&value)?)))
}

/// Bytes that are held.
struct Owned<'py>(Bound<'py, PyBytes>);

impl AsRef<[u8]> for Owned<'_> {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Why a bulk load has ended.
enum Failure {
    OfStore(Error),
    OfPython(PyErr),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::OfStore(error)
    }
}

type Row = (Vec<u8>, Vec<u8>);

/// Rows from an iterator of Python, many at once.
struct Pulled {
    iterator: Py<PyIterator>,
    piece: std::vec::IntoIter<Row>,
    is_done: bool,
}

impl Pulled {
    fn pull(&mut self) -> PyResult<()> {
        Python::attach(|py| {
            calls::check_signals(py)?;
            let mut piece = Vec::with_capacity(LOOK_ROWS);
            let mut rows = self.iterator.bind(py).clone();
            while piece.len() < LOOK_ROWS {
                let Some(pair) = calls::called_back(|| rows.next()) else {
                    self.is_done = true;
                    break;
                };
                // The iterator itself lets signals be handled.
                calls::check_exit(py)?;
                let (key, value) = both(&pair?)?;
                piece.push((key.as_ref().to_vec(), value.as_ref().to_vec()));
            }
            self.piece = piece.into_iter();
            Ok(())
        })
    }
}

impl Iterator for Pulled {
    type Item = Result<Row, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.piece.len() == 0
            && !self.is_done
            && let Err(error) = self.pull()
        {
            self.is_done = true;
            return Some(Err(Failure::OfPython(error)));
        }
        self.piece.next().map(Ok)
    }
}

/// Every number by its name. One that there is several times is a dict by its label.
pub(crate) fn dict_of<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for metric in stats.metrics() {
        let value = match metric.value {
            MetricValue::Whole(value) => value.into_pyobject(py)?.into_any(),
            MetricValue::Real(value) => value.into_pyobject(py)?.into_any(),
        };
        let Some((_, label)) = metric.label else {
            all.set_item(metric.name, value)?;
            continue;
        };
        let of_label = match all.get_item(metric.name)? {
            Some(there) => there.cast_into::<PyDict>()?,
            None => PyDict::new(py),
        };
        of_label.set_item(label, value)?;
        all.set_item(metric.name, of_label)?;
    }
    all.set_item("failure", stats.failure.clone())?;
    Ok(all)
}

/// A place for a copy or a restored store.
pub(crate) fn check_place(path: &std::path::Path) -> PyResult<()> {
    match path.as_os_str().is_empty() {
        true => Err(wrong_value("a folder is needed")),
        false => Ok(()),
    }
}
