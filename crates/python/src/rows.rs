//! Iterators over rows.
//! ```text
//! scan --piece, packed, without the interpreter's lock--> | key value | key value | ... --> next()
//! ```
//! A piece is small at first, so that short ranges pay for nothing more, and grows.
//!
//! Invariants: rows come once each, whoever of several threads asks. Rows before an error come
//! before it.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyTuple};
use trommel::Scan;

use crate::calls::{self, lock_attached};
use crate::errors;
use crate::shared::Keeper;

/// Bytes of the first piece, and of the largest one.
const PIECE_MIN: usize = 1 << 10;
const PIECE_MAX: usize = 256 << 10;
/// Each piece is larger than the one before by this factor.
const GROWTH: usize = 4;
/// Bytes of a length.
const LENGTH_BYTES: usize = 4;

/// What of a row is given.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Part {
    Key,
    Value,
    Both,
}

/// Rows of a range: an iterator, which several threads may share.
#[pyclass(frozen, module = "trommel")]
pub(crate) struct Rows {
    /// None: there is nothing to be kept open for.
    keeper: Option<Keeper>,
    part: Part,
    state: Mutex<State>,
}

struct State {
    /// None: it has ended.
    scan: Option<Scan>,
    is_reverse: bool,
    /// Rows one behind the other: the lengths of key and value, key, value.
    piece: Vec<u8>,
    /// Where the next row begins.
    at: usize,
    piece_bytes: usize,
    /// What comes behind the piece.
    error: Option<trommel::Error>,
}

impl Rows {
    pub(crate) fn new(
        py: Python<'_>,
        keeper: Keeper,
        scan: Scan,
        part: Part,
        is_reverse: bool,
    ) -> PyResult<Py<Rows>> {
        let scan = if part == Part::Key { scan.keys_only() } else { scan };
        Py::new(py, Rows::of(Some(keeper), Some(scan), part, is_reverse))
    }

    /// Of a range that has no keys: one and the same object, which costs next to nothing.
    pub(crate) fn without_any(py: Python<'_>) -> PyResult<Py<Rows>> {
        static EMPTY: PyOnceLock<Py<Rows>> = PyOnceLock::new();
        let make = || Py::new(py, Rows::of(None, None, Part::Both, false));
        Ok(EMPTY.get_or_try_init(py, make)?.clone_ref(py))
    }

    fn of(keeper: Option<Keeper>, scan: Option<Scan>, part: Part, is_reverse: bool) -> Rows {
        let (piece, at, piece_bytes, error) = (Vec::new(), 0, PIECE_MIN, None);
        let state = State { scan, is_reverse, piece, at, piece_bytes, error };
        Rows { keeper, part, state: Mutex::new(state) }
    }
}

#[pymethods]
impl Rows {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(keeper) = &self.keeper else { return Ok(None) };
        keeper.check_process(py)?;
        let mut state = lock_attached(py, &self.state);
        let state = &mut *state;
        if state.at == state.piece.len() && !state.fill(py)? {
            return Ok(None);
        }
        let (key, value) = state.take();
        Ok(Some(match self.part {
            Part::Key => PyBytes::new(py, key).into_any(),
            Part::Value => PyBytes::new(py, value).into_any(),
            Part::Both => {
                let both = [PyBytes::new(py, key), PyBytes::new(py, value)];
                PyTuple::new(py, both)?.into_any()
            }
        }))
    }

    /// Ends it, and frees what it keeps.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(keeper) = &self.keeper else { return Ok(()) };
        keeper.check_process(py)?;
        let mut state = lock_attached(py, &self.state);
        let scan = state.scan.take();
        (state.piece, state.at, state.error) = (Vec::new(), 0, None);
        drop(state);
        calls::detached(py, || drop(scan))
    }
}

impl State {
    /// The next piece. False: there are no more rows.
    fn fill(&mut self, py: Python<'_>) -> PyResult<bool> {
        if let Some(error) = self.error.take() {
            return Err(errors::of(py, &error));
        }
        let Some(scan) = &mut self.scan else { return Ok(false) };
        // Whoever asks in a loop of C, as `list` does, looks for no signals itself.
        py.check_signals()?;
        let (piece, bytes, is_reverse) = (&mut self.piece, self.piece_bytes, self.is_reverse);
        piece.clear();
        let filled = calls::detached(py, || fill(scan, piece, bytes, is_reverse));
        self.at = 0;
        self.piece_bytes = (bytes * GROWTH).min(PIECE_MAX);
        match filled {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => self.scan = None,
            Ok(Err(error)) => (self.scan, self.error) = (None, Some(error)),
            Err(panicked) => {
                // What is in the piece need not be whole.
                self.piece.clear();
                self.scan = None;
                return Err(panicked);
            }
        }
        match self.piece.is_empty() {
            false => Ok(true),
            true => self.error.take().map_or(Ok(false), |error| Err(errors::of(py, &error))),
        }
    }

    /// Requires: the piece has another row.
    fn take(&mut self) -> (&[u8], &[u8]) {
        let (key_len, value_len) = (self.length(self.at), self.length(self.at + LENGTH_BYTES));
        let key_at = self.at + 2 * LENGTH_BYTES;
        let value_at = key_at + key_len;
        self.at = value_at + value_len;
        (&self.piece[key_at..value_at], &self.piece[value_at..self.at])
    }

    fn length(&self, at: usize) -> usize {
        let bytes = self.piece[at..at + LENGTH_BYTES].try_into().expect("as long as a length");
        u32::from_le_bytes(bytes) as usize
    }
}

/// Fills a piece. False: the scan has ended.
fn fill(
    scan: &mut Scan,
    piece: &mut Vec<u8>,
    bytes: usize,
    is_reverse: bool,
) -> trommel::Result<bool> {
    while piece.len() < bytes {
        let next = if is_reverse { scan.next_back_lent() } else { scan.next_lent() };
        let Some(row) = next else { return Ok(false) };
        let (key, value) = row?;
        push_row(piece, key, &value);
    }
    Ok(true)
}

/// Appends a row. Requires: a key and a value that a store accepts, which has bounds for them.
pub(crate) fn push_row(piece: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    for len in [key.len(), value.len()] {
        let len = u32::try_from(len).expect("keys and values are shorter");
        piece.extend_from_slice(&len.to_le_bytes());
    }
    piece.extend_from_slice(key);
    piece.extend_from_slice(value);
}
