//! Iterators over rows.
//! ```text
//! scan --piece, packed, without the interpreter's lock--> | key value | key value | ... --> next()
//! ```
//! A piece is small at first, so that short ranges pay for nothing more, and grows.
//!
//! Invariants: rows come once each, whoever of several threads asks. Rows before an error come
//! before it. While the state is locked, no handler of a signal and no finalizer runs, which might
//! come back here.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;
use trommel::Scan;

use crate::calls::{self, lock_attached};
use crate::errors;
use crate::shared::Keeper;

/// Bytes of the first piece, and of the largest one: a processor has it near until all of it is
/// given.
const PIECE_MIN: usize = 1 << 10;
const PIECE_MAX: usize = 64 << 10;
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
        while !state.has_row() && state.goes_on() {
            drop(state);
            // Whoever asks in a loop of C, as `list` does, looks for no signals itself.
            py.check_signals()?;
            state = lock_attached(py, &self.state);
            state.fill(py)?;
        }
        if !state.has_row() {
            let error = state.error.take();
            drop(state);
            return error.map_or(Ok(None), |error| Err(errors::of(py, &error)));
        }
        let (key, value) = state.take();
        match self.part {
            Part::Key => Ok(Some(PyBytes::new(py, key).into_any())),
            Part::Value => Ok(Some(PyBytes::new(py, value).into_any())),
            Part::Both => {
                let both = (PyBytes::new(py, key), PyBytes::new(py, value));
                // A new tuple may have Python look for garbage, and run what that leaves to do.
                drop(state);
                Ok(Some(both.into_pyobject(py)?.into_any()))
            }
        }
    }

    /// Ends it, and frees what it keeps.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(keeper) = &self.keeper else { return Ok(()) };
        keeper.check_process(py)?;
        let mut state = lock_attached(py, &self.state);
        let scan = state.scan.take();
        (state.piece, state.at, state.error) = (Vec::new(), 0, None);
        drop(state);
        calls::computing(py, || drop(scan))
    }
}

impl State {
    fn has_row(&self) -> bool {
        self.at < self.piece.len()
    }

    /// Whether there may be another piece.
    fn goes_on(&self) -> bool {
        self.scan.is_some() && self.error.is_none()
    }

    /// Reads the next piece, if all rows of this one were given. If it has none either, the scan
    /// has ended, there is an error, or signals should be looked for.
    fn fill(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.has_row() || self.error.is_some() {
            return Ok(());
        }
        let Some(scan) = &mut self.scan else { return Ok(()) };
        let (piece, bytes, is_reverse) = (&mut self.piece, self.piece_bytes, self.is_reverse);
        piece.clear();
        let filled = calls::part_of_scan(py, || match is_reverse {
            true => scan.next_back_packed(piece, bytes),
            false => scan.next_packed(piece, bytes),
        });
        self.at = 0;
        self.piece_bytes = (bytes * GROWTH).min(PIECE_MAX);
        match filled {
            // A piece that is not full is the last one.
            Ok(Ok(_)) if self.piece.len() < bytes => self.scan = None,
            Ok(Ok(_) | Err(trommel::Error::Cancelled)) => {}
            Ok(Err(error)) => (self.scan, self.error) = (None, Some(error)),
            Err(error) => {
                // After a panic what is in the piece need not be whole.
                self.piece.clear();
                self.scan = None;
                return Err(error);
            }
        }
        Ok(())
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
