//! A filter alone: sorted keys in, "surely not" or "maybe" out.
//! ```text
//! "TRMLPYF1"   length of the kind's name: 1   its name   checksum: 4   the filter's bytes
//! ```
//! The checksum is the CRC32C of all other bytes, with the low byte first.
//!
//! Invariant: false means that no such key was added.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};
use trommel_filters::{AlignedBytes, AnyFilter, FilterKind, FilterOptions, KeyRange};
use trommel_guards::kinds::TABLE_FILTERS;

use crate::buffers::{Key, Many, Numbers, bytes_of};
use crate::calls;
use crate::errors::{self, wrong_value};
use crate::reader::{check_pairs, switches};

const MAGIC: &[u8; 8] = b"TRMLPYF1";
const CHECKSUM_BYTES: usize = 4;
/// Keys that are added, and questions that are answered, between two looks for signals.
const PIECE: usize = 1 << 14;

/// A filter alone, for keys and ranges: it says "surely not", or "maybe".
#[pyclass(frozen, module = "trommel")]
pub(crate) struct RangeFilter {
    filter: Box<dyn AnyFilter>,
    /// As it was built.
    bytes: Vec<u8>,
}

/// The kind of a name.
fn kind_of(name: &str) -> PyResult<&'static dyn FilterKind> {
    let known = TABLE_FILTERS.into_iter().filter(|kind| kind.sub_filters().is_none());
    let names = || known.clone().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
    let found = known.clone().find(|kind| kind.name() == name);
    found.ok_or_else(|| wrong_value(format!("there is no filter {name:?}; there are: {}", names())))
}

impl RangeFilter {
    fn read(py: Python<'_>, kind: &'static dyn FilterKind, bytes: Vec<u8>) -> PyResult<Self> {
        let read = kind.read(AlignedBytes::from_slice(&bytes));
        let filter = read.map_err(|corrupt| errors::corrupt(py, &corrupt.to_string()))?;
        Ok(RangeFilter { filter, bytes })
    }

    /// Asks many questions.
    fn ask<'py, Q: Sync>(
        &self,
        py: Python<'py>,
        questions: &[Q],
        ask: impl Fn(&dyn AnyFilter, &Q) -> bool + Sync,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        let mut answers: Vec<bool> = Vec::with_capacity(questions.len());
        for piece in questions.chunks(PIECE) {
            let answer = || piece.iter().map(|it| ask(&*self.filter, it)).collect::<Vec<_>>();
            answers.extend(calls::computing(py, answer)?);
            py.check_signals()?;
        }
        switches(py, answers)
    }
}

/// Whether a range from a key on and before another may have a key.
fn may_overlap(filter: &dyn AnyFilter, start: &[u8], stop: Option<&[u8]>) -> bool {
    if stop.is_some_and(|stop| stop <= start) {
        return false;
    }
    // The last key before one that ends with a zero is that without the zero. Else the filter is
    // asked for one key more than there is in the range.
    let last = stop.map(|stop| stop.strip_suffix(&[0]).unwrap_or(stop));
    KeyRange::new(start, last).is_none_or(|range| filter.may_overlap(&range))
}

#[pymethods]
impl RangeFilter {
    /// A filter of keys that ascend: an array, or a sequence. `filter_kinds()` names the kinds.
    ///
    /// >>> import trommel
    /// >>> built = trommel.RangeFilter.build([b"bern", b"chur", b"zug"], 16)
    /// >>> built.may_contain(b"chur"), built.may_contain_range(b"d", b"y")
    /// (True, False)
    ///
    /// Raises `ValueError` if keys do not ascend, or there is no such kind.
    #[staticmethod]
    #[pyo3(signature = (sorted_keys, bits_per_key=14.0, *, kind="cell"))]
    fn build(
        py: Python<'_>,
        sorted_keys: &Bound<'_, PyAny>,
        bits_per_key: f64,
        kind: &str,
    ) -> PyResult<RangeFilter> {
        if !(1.0..=64.0).contains(&bits_per_key) {
            return Err(wrong_value(format!("{bits_per_key} bits per key: 1 to 64 make sense")));
        }
        let kind = kind_of(kind)?;
        let mut builder = FilterOptions::new(kind, bits_per_key).builder();
        let keys = Many::of(sorted_keys, Numbers::Ordered)?;
        for piece in keys.slices()?.chunks(PIECE) {
            let add = || piece.iter().try_for_each(|key| builder.add(key));
            calls::computing(py, add)?.map_err(|error| wrong_value(error.to_string()))?;
            py.check_signals()?;
        }
        let bytes = calls::computing(py, || builder.finish())?;
        RangeFilter::read(py, kind, bytes)
    }

    /// The filter of these bytes.
    ///
    /// Raises `CorruptError` if `to_bytes` has not made them.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<RangeFilter> {
        let data = bytes_of(data)?;
        let damaged =
            |what: &str| errors::corrupt(py, &format!("these bytes are no filter: {what}"));
        let rest = data.as_bytes().strip_prefix(MAGIC);
        let rest = rest.ok_or_else(|| damaged("they do not begin as one"))?;
        let (&[len], rest) = rest.split_first_chunk().ok_or_else(|| damaged("they end early"))?;
        let parts = rest.split_at_checked(len.into());
        let (name, rest) = parts.ok_or_else(|| damaged("they end early"))?;
        let (sum, bytes) =
            rest.split_first_chunk::<CHECKSUM_BYTES>().ok_or_else(|| damaged("they end early"))?;
        if checksum(name, bytes) != *sum {
            return Err(damaged("the checksum differs"));
        }
        let name = std::str::from_utf8(name).map_err(|_| damaged("the kind has no name"))?;
        RangeFilter::read(py, kind_of(name)?, bytes.to_vec())
    }

    /// Its bytes, with a checksum.
    ///
    /// >>> import trommel
    /// >>> built = trommel.RangeFilter.build([b"bern", b"chur", b"zug"])
    /// >>> trommel.RangeFilter.from_bytes(built.to_bytes()).may_contain(b"bern")
    /// True
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let name = self.filter.kind().name().as_bytes();
        let len = [u8::try_from(name.len()).map_err(|_| wrong_value("the name is too long"))?];
        let sum = checksum(name, &self.bytes);
        let all = [&MAGIC[..], &len, name, &sum, &self.bytes].concat();
        Ok(PyBytes::new(py, &all))
    }

    /// The name of its kind.
    #[getter]
    fn kind(&self) -> &'static str {
        self.filter.kind().name()
    }

    /// Whether it answers for ranges; else it says "maybe" to each of more than one key.
    #[getter]
    fn knows_ranges(&self) -> bool {
        self.filter.kind().knows_ranges()
    }

    /// Its size in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.filter.size_bytes()
    }

    /// False: no such key was added. True: it may have been.
    fn may_contain(&self, key: Key<'_>) -> bool {
        self.filter.may_contain(&key)
    }

    /// False: no key from `start` on and before `stop` was added. True: there may be one, or `stop`
    /// itself is one.
    #[pyo3(signature = (start=None, stop=None))]
    fn may_contain_range(&self, start: Option<Key<'_>>, stop: Option<Key<'_>>) -> bool {
        may_overlap(&*self.filter, start.as_deref().unwrap_or_default(), stop.as_deref())
    }

    /// For each key, what `may_contain` says: a `memoryview` of switches.
    fn may_contain_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        let keys = Many::of(keys, Numbers::Ordered)?;
        self.ask(py, &keys.slices()?, |filter, key| filter.may_contain(key))
    }

    /// For each range, what `may_contain_range` says.
    fn may_contain_range_many<'py>(
        &self,
        py: Python<'py>,
        starts: &Bound<'py, PyAny>,
        stops: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        let ends = [Many::of(starts, Numbers::Ordered)?, Many::of(stops, Numbers::Ordered)?];
        let [starts, stops] = &ends;
        check_pairs(starts, stops)?;
        let pairs: Vec<_> = starts.slices()?.into_iter().zip(stops.slices()?).collect();
        self.ask(py, &pairs, |filter, (start, stop)| may_overlap(filter, start, Some(stop)))
    }

    fn __repr__(&self) -> String {
        format!("<trommel.RangeFilter {}: {} bytes>", self.filter.kind().name(), self.bytes.len())
    }
}

/// Of all but itself: bytes that begin otherwise are refused before.
fn checksum(name: &[u8], bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let len = [name.len() as u8];
    let begin = crc32c::crc32c_append(crc32c::crc32c(MAGIC), &len);
    crc32c::crc32c_append(crc32c::crc32c_append(begin, name), bytes).to_le_bytes()
}

/// The names of all kinds of filters.
#[pyfunction]
pub(crate) fn filter_kinds() -> Vec<&'static str> {
    let known = TABLE_FILTERS.into_iter().filter(|kind| kind.sub_filters().is_none());
    known.map(|kind| kind.name()).collect()
}
