//! Bytes from Python: any object with a buffer.
//! ```text
//! bytes                             lent: they never change
//! bytearray, memoryview, numpy ...  copied: Python may change them while a call goes on
//! 2-D arrays                        copied at once; each row is a key
//! ```
//! Invariant: what the store sees is what was there when the call was made.

use std::borrow::Cow;
use std::ops::Bound as End;
use std::time::Duration;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMemoryView, PyString, PyTuple};
use trommel::KeyBounds;

use crate::errors::{wrong_type, wrong_value};

/// A value, or other bytes.
pub(crate) struct Buffer<'a>(Cow<'a, [u8]>);

impl AsRef<[u8]> for Buffer<'_> {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl std::ops::Deref for Buffer<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Buffer<'a> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = <&'a [u8]>::extract(object) {
            return Ok(Buffer(Cow::Borrowed(bytes)));
        }
        let copy = copy_of(&object, bytes_of)?;
        Ok(Buffer(Cow::Owned(copy)))
    }
}

/// A key.
pub(crate) struct Key<'a>(Buffer<'a>);

impl AsRef<[u8]> for Key<'_> {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl std::ops::Deref for Key<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Key<'a> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = <&'a [u8]>::extract(object) {
            return Ok(Key(Buffer(Cow::Borrowed(bytes))));
        }
        let copy = copy_of(&object, key_of)?;
        Ok(Key(Buffer(Cow::Owned(copy))))
    }
}

/// A copy of what is not `bytes`. It is copied twice only where `bytes_of` has to look closely.
fn copy_of<'py>(
    object: &Bound<'py, PyAny>,
    bytes_of: fn(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>>,
) -> PyResult<Vec<u8>> {
    if !object.is_instance_of::<PyString>()
        && let Ok(plain) = PyBuffer::<u8>::get(object)
    {
        return plain.to_vec(object.py());
    }
    Ok(bytes_of(object)?.as_bytes().to_vec())
}

/// The bytes of a value, which are its own if it is `bytes`.
pub(crate) fn bytes_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    match object.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.clone()),
        Err(_) => copied(&view_of(object)?),
    }
}

/// The bytes of a key, which are its own if it is `bytes`. Items of several bytes are refused: the
/// order of these is the machine's, and numbers of arrays have another one.
pub(crate) fn key_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(bytes.clone());
    }
    let view = view_of(object)?;
    match view.getattr("itemsize")?.extract()? {
        1usize => copied(&view),
        wide => Err(wrong_type(format!(
            "a key is of single bytes, not of items of {wide} bytes; for a number take \
             int(number).to_bytes(8, \"big\"), as arrays of uint64 do"
        ))),
    }
}

/// Refuses addresses: objects and pointers.
fn copied<'py>(view: &Bound<'py, PyMemoryView>) -> PyResult<Bound<'py, PyBytes>> {
    let format: String = view.getattr("format")?.extract()?;
    // Between colons are the names of fields.
    if format.split(':').step_by(2).any(has_addresses) {
        return Err(wrong_type(format!(
            "keys and values are bytes, not addresses of objects: the format is {format:?}"
        )));
    }
    Ok(view.call_method0("tobytes")?.cast_into::<PyBytes>()?)
}

/// Whether one of the types of a format is an object or a pointer. A `Z` before the letter of a
/// real number makes it complex; alone it is a text somewhere else, as `z` is.
fn has_addresses(types: &str) -> bool {
    let complex = ["Zf", "Zd", "Zg"];
    let others = complex.iter().fold(types.to_owned(), |types, it| types.replace(it, ""));
    others.contains(['O', 'P', '&', 'X', 'z', 'Z'])
}

fn view_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyMemoryView>> {
    let refused = |hint| {
        let name = object.get_type().name().map_or_else(|_| "?".into(), |it| it.to_string());
        wrong_type(format!("keys and values are bytes or another buffer, not {name}{hint}"))
    };
    // Some texts have a buffer, as those of numpy.
    if object.is_instance_of::<PyString>() {
        return Err(refused("; encode the text, as with key.encode()"));
    }
    PyMemoryView::from(object).map_err(|_| refused(""))
}

/// Many keys, or many values: rows of an array, or objects with a buffer each.
pub(crate) enum Many<'py> {
    /// Rows of one width, one behind the other.
    Rows { bytes: Cow<'static, [u8]>, width: usize, count: usize },
    /// One object each.
    Single(Vec<Bound<'py, PyBytes>>),
}

/// What the numbers of an array become.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Numbers {
    /// Their bytes, the high one first: then they are ordered as the numbers are.
    Ordered,
    /// The array's memory.
    AsTheyAre,
}

impl<'py> Many<'py> {
    /// Of an array with two dimensions (of `uint64` with one, too), or of anything to iterate.
    pub(crate) fn of(object: &Bound<'py, PyAny>, numbers: Numbers) -> PyResult<Many<'py>> {
        if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
            return Err(wrong_type("a sequence of keys or values is needed, not a single one"));
        }
        // Lists and tuples, as most are, have no buffer, and to be told so takes an exception.
        let is_plain =
            object.is_exact_instance_of::<PyList>() || object.is_exact_instance_of::<PyTuple>();
        if !is_plain && let Ok(view) = PyMemoryView::from(object) {
            return Many::of_array(&view, numbers);
        }
        let one_of = match numbers {
            Numbers::Ordered => key_of,
            Numbers::AsTheyAre => bytes_of,
        };
        let items = object.try_iter()?.map(|item| one_of(&item?));
        Ok(Many::Single(items.collect::<PyResult<_>>()?))
    }

    fn of_array(view: &Bound<'py, PyMemoryView>, numbers: Numbers) -> PyResult<Many<'py>> {
        let shape: Vec<usize> = view.getattr("shape")?.extract()?;
        let item_bytes: usize = view.getattr("itemsize")?.extract()?;
        let format: String = view.getattr("format")?.extract()?;
        let is_number = item_bytes == 8
            && matches!(format.trim_start_matches(['@', '=', '<', '>', '!']), "Q" | "L");
        let is_bytes = item_bytes == 1 && format.ends_with(['B', 'c']);
        let (count, columns) = match shape[..] {
            [count, columns] => (count, columns),
            [count] if is_number => (count, 1),
            _ => {
                return Err(wrong_value(
                    "an array of keys or values has two dimensions: a row for each of them",
                ));
            }
        };
        if numbers == Numbers::Ordered && !is_number && !is_bytes {
            return Err(wrong_type(format!(
                "an array of keys is of uint8 or uint64, not of format {format:?}"
            )));
        }
        let mut bytes = copied(view)?.as_bytes().to_vec();
        let is_little = cfg!(target_endian = "little") && !format.starts_with(['>', '!']);
        if numbers == Numbers::Ordered && is_number && (is_little || format.starts_with('<')) {
            bytes.chunks_exact_mut(8).for_each(<[u8]>::reverse);
        }
        Ok(Many::Rows { bytes: bytes.into(), width: columns * item_bytes, count })
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Many::Rows { count, .. } => *count,
            Many::Single(all) => all.len(),
        }
    }

    /// All of them. An error if memory has no room: no memory stands behind rows without bytes, and
    /// there may be any number of them.
    pub(crate) fn slices(&self) -> PyResult<Vec<&[u8]>> {
        let mut slices = Vec::new();
        if slices.try_reserve_exact(self.len()).is_err() {
            return Err(PyMemoryError::new_err(format!("{} keys or values", self.len())));
        }
        match self {
            Many::Rows { width: 0, count, .. } => slices.resize(*count, &[][..]),
            Many::Rows { bytes, width, .. } => slices.extend(bytes.chunks_exact(*width)),
            Many::Single(all) => slices.extend(all.iter().map(|bytes| bytes.as_bytes())),
        }
        Ok(slices)
    }
}

/// A time for which a value is kept: seconds, or a `timedelta`.
pub(crate) struct Lifetime(pub(crate) Duration);

impl<'a, 'py> FromPyObject<'a, 'py> for Lifetime {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let seconds: f64 = match object.extract() {
            Ok(seconds) => seconds,
            Err(_) => {
                let of_delta = object.call_method0("total_seconds").and_then(|it| it.extract());
                of_delta.map_err(|_| wrong_type("a time is seconds, or a timedelta"))?
            }
        };
        let time = Duration::try_from_secs_f64(seconds);
        let time = time.map_err(|_| wrong_value(format!("{seconds} seconds are no time to come")));
        time.map(Lifetime)
    }
}

/// The keys of a range: of a prefix, or from one key on and before another.
pub(crate) fn bounds_of(
    start: Option<&[u8]>,
    stop: Option<&[u8]>,
    prefix: Option<&[u8]>,
) -> PyResult<KeyBounds> {
    match (start, stop, prefix) {
        (None, None, Some(prefix)) => Ok(KeyBounds::prefix(prefix)),
        (start, stop, None) => Ok(range_of(start, stop)),
        _ => Err(wrong_value("a range has a prefix, or start and stop, not both")),
    }
}

/// The keys from one on and before another.
pub(crate) fn range_of(start: Option<&[u8]>, stop: Option<&[u8]>) -> KeyBounds {
    let start = start.map_or(End::Unbounded, End::Included);
    KeyBounds::from((start, stop.map_or(End::Unbounded, End::Excluded)))
}
