//! All that can be read: of a key space now, of a snapshot, of a store that is followed.
//! ```text
//! Reader <-- Keyspace <-- Store
//!   ^ ^----- Snapshot
//!   '------- FollowedKeyspace <-- Follower
//! ```
//! Invariant: what is read in several steps is read at one moment.

use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMemoryView, PyTuple};
use trommel::{KeyBounds, Scan, Value};
use trommel_filters::CountBounds;

use crate::arrow::ArrowRows;
use crate::buffers::{Key, Many, Numbers, bounds_of, range_of};
use crate::calls;
use crate::errors::{self, wrong_value};
use crate::rows::{Part, Rows};
use crate::shared::Keeper;

/// Keys that are looked up at once: a processor still has their values near when these become
/// objects of Python.
const KEYS_TOGETHER: usize = 128;
/// Ranges that are asked for between two looks for signals.
const PIECE: usize = 1024;
/// Rows that are counted between two looks for signals.
const COUNTED: usize = 4096;

/// Where is read.
pub(crate) enum Source {
    Keyspace(trommel::Keyspace),
    Snapshot(trommel::Snapshot),
    Followed(trommel::FollowedKeyspace),
}

impl Source {
    fn get(&self, key: &[u8]) -> trommel::Result<Option<Value>> {
        match self {
            Source::Keyspace(keyspace) => keyspace.get(key),
            Source::Snapshot(snapshot) => snapshot.get(key),
            Source::Followed(followed) => followed.get(key),
        }
    }

    /// None: it would have to wait for the disk, or it cannot be told.
    fn get_if_cached(&self, key: &[u8]) -> Option<trommel::Result<Option<Value>>> {
        match self {
            Source::Keyspace(keyspace) => keyspace.get_if_cached(key),
            Source::Snapshot(snapshot) => snapshot.get_if_cached(key),
            Source::Followed(_) => None,
        }
    }

    fn contains_key(&self, key: &[u8]) -> trommel::Result<bool> {
        match self {
            Source::Keyspace(keyspace) => keyspace.contains_key(key),
            Source::Snapshot(snapshot) => snapshot.contains_key(key),
            Source::Followed(followed) => followed.contains_key(key),
        }
    }

    fn scan(&self, bounds: KeyBounds) -> trommel::Result<Scan> {
        match self {
            Source::Keyspace(keyspace) => Ok(keyspace.range(bounds)),
            Source::Snapshot(snapshot) => Ok(snapshot.range(bounds)),
            Source::Followed(followed) => followed.range(bounds),
        }
    }

    fn may_contain_range(&self, bounds: KeyBounds) -> trommel::Result<bool> {
        match self {
            Source::Keyspace(keyspace) => keyspace.may_contain_range(bounds),
            Source::Snapshot(snapshot) => snapshot.may_contain_range(bounds),
            Source::Followed(followed) => followed.may_contain_range(bounds),
        }
    }

    fn multi_may_contain(&self, ranges: Vec<KeyBounds>) -> trommel::Result<Vec<bool>> {
        match self {
            Source::Keyspace(keyspace) => keyspace.multi_may_contain(ranges),
            Source::Snapshot(snapshot) => snapshot.multi_may_contain(ranges),
            Source::Followed(followed) => followed.snapshot()?.multi_may_contain(ranges),
        }
    }

    fn count(&self, bounds: KeyBounds) -> trommel::Result<CountBounds> {
        match self {
            Source::Keyspace(keyspace) => keyspace.approximate_count(bounds),
            Source::Snapshot(snapshot) => snapshot.approximate_count(bounds),
            Source::Followed(followed) => followed.snapshot()?.approximate_count(bounds),
        }
    }
}

/// What can be read: a key space, a snapshot, a store that is followed.
#[pyclass(frozen, subclass, module = "trommel")]
pub(crate) struct Reader {
    pub(crate) keeper: Keeper,
    pub(crate) source: Source,
}

impl Reader {
    fn fetch<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        // What is in memory takes less time than to give the interpreter's lock away for it.
        match self.fetch_cached(py, key, |value| to_bytes(py, value))? {
            Some(told) => Ok(told),
            None => Ok(to_bytes(py, calls::store(py, || self.source.get(key))?)),
        }
    }

    /// None: the disk would have to be read. `make` is given the value where it was found: it takes
    /// longer to be handed on than a pointer to Python's bytes.
    #[inline]
    fn fetch_cached<T>(
        &self,
        py: Python<'_>,
        key: &[u8],
        make: impl FnOnce(Option<Value>) -> T,
    ) -> PyResult<Option<T>> {
        let told = calls::attached(py, || Some(self.source.get_if_cached(key)?.map(make)))?;
        told.transpose().map_err(|error| errors::of(py, &error))
    }

    /// Looks keys up, all at one moment, and gives `take` the values of some after the other.
    fn fetch_many(
        &self,
        py: Python<'_>,
        keys: &[&[u8]],
        mut take: impl FnMut(Vec<Option<Value>>) -> PyResult<()>,
    ) -> PyResult<()> {
        self.keeper.check_process(py)?;
        let moment = match &self.source {
            Source::Snapshot(_) => None,
            _ if keys.len() <= KEYS_TOGETHER => None,
            Source::Keyspace(keyspace) => match &self.keeper {
                Keeper::Store(shared) => Some(shared.db.snapshot().of(keyspace)),
                Keeper::Follower(..) => None,
            },
            Source::Followed(followed) => Some(calls::store(py, || followed.snapshot())?),
        };
        let multi_get = |keys: &[&[u8]]| match (&moment, &self.source) {
            (Some(snapshot), _) | (None, Source::Snapshot(snapshot)) => snapshot.multi_get(keys),
            (None, Source::Keyspace(keyspace)) => keyspace.multi_get(keys),
            (None, Source::Followed(followed)) => followed.multi_get(keys),
        };
        for piece in keys.chunks(KEYS_TOGETHER) {
            let values = || multi_get(piece).into_iter().collect::<trommel::Result<Vec<_>>>();
            take(calls::store(py, values)?)?;
            py.check_signals()?;
        }
        Ok(())
    }

    /// A scan that has not begun to read.
    pub(crate) fn begin_scan(&self, py: Python<'_>, bounds: KeyBounds) -> PyResult<Scan> {
        match &self.source {
            // It waits for nothing: a number is taken, and nothing is read before the first row.
            Source::Keyspace(keyspace) => {
                self.keeper.check_process(py)?;
                Ok(keyspace.range(bounds))
            }
            source => calls::store(py, || source.scan(bounds)),
        }
    }

    /// The range: from the first key on and before the second one, or what begins with the third.
    fn rows(
        &self,
        py: Python<'_>,
        [start, stop, prefix]: [Option<Key<'_>>; 3],
        part: Part,
        reverse: bool,
    ) -> PyResult<Py<Rows>> {
        let bounds = || bounds_of(start.as_deref(), stop.as_deref(), prefix.as_deref());
        // Most short ranges are empty, and the filter knows it: then there is nothing to set up.
        let is_told = !matches!(self.source, Source::Followed(_));
        let is_bounded = stop.is_some() || prefix.is_some();
        if is_told && is_bounded && !self.may_have_rows(py, bounds()?)? {
            return Rows::without_any(py);
        }
        let scan = self.begin_scan(py, bounds()?)?;
        Rows::new(py, self.keeper.clone(), scan, part, reverse)
    }

    /// False: the range has no rows. Memory tells it, in less time than it takes to give the
    /// interpreter's lock away, but not where another process writes.
    fn may_have_rows(&self, py: Python<'_>, bounds: KeyBounds) -> PyResult<bool> {
        let ask = || self.source.may_contain_range(bounds);
        match &self.source {
            Source::Followed(_) => calls::store(py, ask),
            Source::Keyspace(_) | Source::Snapshot(_) => {
                calls::attached(py, ask)?.map_err(|error| errors::of(py, &error))
            }
        }
    }

    fn answers<'py>(
        &self,
        py: Python<'py>,
        ranges: Vec<KeyBounds>,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        let mut answers = Vec::with_capacity(ranges.len());
        let mut ranges = ranges.into_iter().peekable();
        while ranges.peek().is_some() {
            let piece: Vec<KeyBounds> = ranges.by_ref().take(PIECE).collect();
            answers.extend(calls::store(py, || self.source.multi_may_contain(piece))?);
            py.check_signals()?;
        }
        switches(py, answers)
    }
}

/// Switches as a `memoryview`, which arrays are made of without a copy.
pub(crate) fn switches<'py>(
    py: Python<'py>,
    answers: impl IntoIterator<Item = bool>,
) -> PyResult<Bound<'py, PyMemoryView>> {
    let bytes: Vec<u8> = answers.into_iter().map(u8::from).collect();
    view(py, &bytes, "?")
}

/// Bytes as a `memoryview` of a format.
pub(crate) fn view<'py>(
    py: Python<'py>,
    bytes: &[u8],
    format: &str,
) -> PyResult<Bound<'py, PyMemoryView>> {
    let view = PyMemoryView::from(PyBytes::new(py, bytes).as_any())?;
    Ok(view.call_method1("cast", (format,))?.cast_into::<PyMemoryView>()?)
}

/// Of a value that is there.
#[inline]
pub(crate) fn to_bytes<'py>(py: Python<'py>, value: Option<Value>) -> Option<Bound<'py, PyBytes>> {
    value.map(|value| PyBytes::new(py, &value))
}

#[pymethods]
impl Reader {
    /// The value of a key; `default` if it has none.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Key<'_>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.fetch(py, &key)?;
        Ok(found.map_or(default, |value| Some(value.into_any())))
    }

    /// The value of a key, None if it has none; `otherwise` if the disk would have to be read for
    /// it. So an event loop answers at once what needs no thread.
    ///
    /// >>> import tempfile, trommel
    /// >>> with trommel.open(tempfile.mkdtemp()) as store:
    /// ...     store.put(b"a", b"1")
    /// ...     store.get_if_cached(b"a", otherwise="ask a thread")
    /// b'1'
    fn get_if_cached<'py>(
        &self,
        py: Python<'py>,
        key: Key<'_>,
        otherwise: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let told = self.fetch_cached(py, &key, |value| to_bytes(py, value))?;
        Ok(told.map_or(otherwise, |value| value.map(Bound::into_any)))
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Key<'_>) -> PyResult<Bound<'py, PyBytes>> {
        let found = self.fetch(py, &key)?;
        found.ok_or_else(|| PyKeyError::new_err(key.to_vec()))
    }

    fn __contains__(&self, py: Python<'_>, key: Key<'_>) -> PyResult<bool> {
        match self.fetch_cached(py, &key, |value| value.is_some())? {
            Some(told) => Ok(told),
            None => calls::store(py, || self.source.contains_key(&key)),
        }
    }

    /// The values of many keys at one moment, in the order of the keys; None for those without one.
    /// An array with two dimensions is a key for each row.
    ///
    /// >>> import tempfile, trommel
    /// >>> with trommel.open(tempfile.mkdtemp()) as store:
    /// ...     store.put_many({b"a": b"1", b"b": b"2"})
    /// ...     store.get_many([b"b", b"x", b"a"])
    /// 2
    /// [b'2', None, b'1']
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let keys = Many::of(keys, Numbers::Ordered)?;
        let keys = keys.slices()?;
        let mut found = Vec::with_capacity(keys.len());
        self.fetch_many(py, &keys, |values| {
            found.extend(values.into_iter().map(|value| to_bytes(py, value)));
            Ok(())
        })?;
        PyList::new(py, found)
    }

    /// As `get_many`, with all values in one piece: for arrays.
    ///
    /// >>> import tempfile, trommel
    /// >>> with trommel.open(tempfile.mkdtemp()) as store:
    /// ...     store.put_many({b"a": b"1", b"b": b"22"})
    /// ...     packed = store.get_many_packed([b"b", b"x", b"a"])
    /// 2
    /// >>> packed.data, list(packed.offsets), list(packed.found)
    /// (b'221', [0, 2, 2, 3], [True, False, True])
    fn get_many_packed<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let keys = Many::of(keys, Numbers::Ordered)?;
        let keys = keys.slices()?;
        let (mut data, mut offsets) = (Vec::new(), 0u64.to_ne_bytes().to_vec());
        let mut found = Vec::with_capacity(keys.len());
        let mut pack = |values: Vec<Option<Value>>| {
            data.reserve(values.iter().flatten().map(|value| value.len()).sum());
            for value in values {
                found.push(u8::from(value.is_some()));
                data.extend_from_slice(value.as_deref().unwrap_or_default());
                offsets.extend_from_slice(&(data.len() as u64).to_ne_bytes());
            }
        };
        self.fetch_many(py, &keys, |values| calls::computing(py, || pack(values)))?;
        let parts = (PyBytes::new(py, &data), view(py, &offsets, "Q")?, view(py, &found, "?")?);
        py.import("trommel._types")?.getattr("PackedValues")?.call1(parts)
    }

    /// The keys of a range and their values, as of now, whatever is written meanwhile: from `start`
    /// on and before `stop`, or those that begin with `prefix`. `reverse`: the last one first.
    /// Threads may share the iterator.
    ///
    /// >>> import tempfile, trommel
    /// >>> with trommel.open(tempfile.mkdtemp()) as store:
    /// ...     store.put_many({b"a": b"1", b"b": b"2", b"c": b"3"})
    /// ...     list(store.items(b"b")), list(store.items(prefix=b"a"))
    /// 3
    /// ([(b'b', b'2'), (b'c', b'3')], [(b'a', b'1')])
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false))]
    fn items(
        &self,
        py: Python<'_>,
        start: Option<Key<'_>>,
        stop: Option<Key<'_>>,
        prefix: Option<Key<'_>>,
        reverse: bool,
    ) -> PyResult<Py<Rows>> {
        self.rows(py, [start, stop, prefix], Part::Both, reverse)
    }

    /// The keys of a range, as `items`. No value is read.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false))]
    fn keys(
        &self,
        py: Python<'_>,
        start: Option<Key<'_>>,
        stop: Option<Key<'_>>,
        prefix: Option<Key<'_>>,
        reverse: bool,
    ) -> PyResult<Py<Rows>> {
        self.rows(py, [start, stop, prefix], Part::Key, reverse)
    }

    /// The values of a range, as `items`.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false))]
    fn values(
        &self,
        py: Python<'_>,
        start: Option<Key<'_>>,
        stop: Option<Key<'_>>,
        prefix: Option<Key<'_>>,
        reverse: bool,
    ) -> PyResult<Py<Rows>> {
        self.rows(py, [start, stop, prefix], Part::Value, reverse)
    }

    /// The rows of a range for readers of Arrow, such as pyarrow, polars and duckdb: an object with
    /// `__arrow_c_stream__`, whose batches have the binary columns "key" and "value". Each stream
    /// shows the moment at which it began.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, batch_rows=65536))]
    fn to_arrow(
        slf: Py<Self>,
        start: Option<Key<'_>>,
        stop: Option<Key<'_>>,
        prefix: Option<Key<'_>>,
        batch_rows: usize,
    ) -> PyResult<ArrowRows> {
        ArrowRows::new(
            slf,
            bounds_of(start.as_deref(), stop.as_deref(), prefix.as_deref())?,
            batch_rows,
        )
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Py<Rows>> {
        self.rows(py, [None, None, None], Part::Key, false)
    }

    fn __len__(&self) -> PyResult<usize> {
        Err(PyTypeError::new_err(
            "how many keys there are is known only by counting: count() does, and \
             approximate_count() tells at once about how many",
        ))
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// How many keys a range has. Goes over all of them, but reads no values.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None))]
    fn count(
        &self,
        py: Python<'_>,
        start: Option<Key<'_>>,
        stop: Option<Key<'_>>,
        prefix: Option<Key<'_>>,
    ) -> PyResult<u64> {
        let bounds = bounds_of(start.as_deref(), stop.as_deref(), prefix.as_deref())?;
        let mut scan = self.begin_scan(py, bounds)?.keys_only();
        let mut all = 0u64;
        let mut count_on = || {
            for _ in 0..COUNTED {
                let Some(row) = scan.next_lent() else { return Ok(true) };
                row.map(|_| all += 1)?;
            }
            Ok(false)
        };
        while !calls::scan(py, &mut count_on)? {
            py.check_signals()?;
        }
        Ok(all)
    }

    /// About how many keys a range has, at once: a lower bound, an estimate, an upper bound. What
    /// was replaced or deleted counts until it is merged.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None))]
    fn approximate_count<'py>(
        &self,
        py: Python<'py>,
        start: Option<Key<'_>>,
        stop: Option<Key<'_>>,
        prefix: Option<Key<'_>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bounds = bounds_of(start.as_deref(), stop.as_deref(), prefix.as_deref())?;
        let count = calls::write(py, || self.source.count(bounds))?;
        let parts = (count.least, count.estimate, count.most);
        py.import("trommel._types")?.getattr("Count")?.call1(parts)
    }

    /// False: no key lies in the range (a proof). True: there may be one. Reads no block of a
    /// table.
    ///
    /// >>> import tempfile, trommel
    /// >>> with trommel.open(tempfile.mkdtemp()) as store:
    /// ...     store.put(b"b", b"1")
    /// ...     store.may_contain_range(b"c", b"d")
    /// False
    #[pyo3(signature = (start=None, stop=None, *, prefix=None))]
    fn may_contain_range(
        &self,
        py: Python<'_>,
        start: Option<Key<'_>>,
        stop: Option<Key<'_>>,
        prefix: Option<Key<'_>>,
    ) -> PyResult<bool> {
        self.may_have_rows(py, bounds_of(start.as_deref(), stop.as_deref(), prefix.as_deref())?)
    }

    /// For each key, whether it may be there. False is a proof. Gives a `memoryview` of switches,
    /// which `numpy.asarray` takes without a copy.
    fn may_contain_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        let keys = Many::of(keys, Numbers::Ordered)?;
        let ranges = keys.slices()?.into_iter().map(|key| KeyBounds::from(key..=key)).collect();
        self.answers(py, ranges)
    }

    /// For each range, from a start on and before a stop, what `may_contain_range` says.
    fn may_contain_range_many<'py>(
        &self,
        py: Python<'py>,
        starts: &Bound<'py, PyAny>,
        stops: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        let ends = [Many::of(starts, Numbers::Ordered)?, Many::of(stops, Numbers::Ordered)?];
        let [starts, stops] = &ends;
        check_pairs(starts, stops)?;
        let pairs = starts.slices()?.into_iter().zip(stops.slices()?);
        let ranges = pairs.map(|(start, stop)| range_of(Some(start), Some(stop))).collect();
        self.answers(py, ranges)
    }

    /// The least key and its value; None if there is no key.
    fn first<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let mut scan = self.begin_scan(py, KeyBounds::all())?;
        let row = calls::scan(py, || scan.next().transpose())?;
        pair(py, row)
    }

    /// The greatest key and its value; None if there is no key.
    fn last<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let mut scan = self.begin_scan(py, KeyBounds::all())?;
        let row = calls::scan(py, || scan.next_back().transpose())?;
        pair(py, row)
    }
}

fn pair<'py>(
    py: Python<'py>,
    row: Option<trommel::KeyValue>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let both = |(key, value): trommel::KeyValue| {
        PyTuple::new(py, [PyBytes::new(py, &key), PyBytes::new(py, &value)])
    };
    row.map(both).transpose()
}

/// An error if there are more of the ones than of the others.
pub(crate) fn check_pairs(one: &Many<'_>, other: &Many<'_>) -> PyResult<()> {
    let [one, other] = [one.len(), other.len()];
    match one == other {
        true => Ok(()),
        false => Err(wrong_value(format!("{one} and {other}: as many are needed of both"))),
    }
}
