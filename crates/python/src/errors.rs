//! Errors of the store as exceptions of Python.
//! ```text
//! trommel::Error --code--> trommel._errors.BY_CODE[code](message)
//! ```
//! Invariant: which class an error has, its stable code says.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use trommel::Error;

/// Codes of errors that are made here, too.
const CORRUPT: u16 = 2;
const CLOSED: u16 = 9;
const FORKED: u16 = 10;
const OPTION: u16 = 16;
const PANICKED: u16 = 18;

pub(crate) const EXITING_TEXT: &str = "the interpreter exits, and its stores were closed";
pub(crate) const PANICKED_TEXT: &str = "the call has panicked: no acknowledged write is lost";

static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

/// The exception of an error of the store.
pub(crate) fn of(py: Python<'_>, error: &Error) -> PyErr {
    let raised = with_code(py, error.code(), &error.to_string());
    if let Error::Io { source, .. } = error
        && let Some(number) = source.raw_os_error()
    {
        // Without it the exception says the same, but for programs that look at the number.
        let _ = raised.value(py).setattr("errno", number);
    }
    raised
}

/// The exception of a code.
fn with_code(py: Python<'_>, code: u16, message: &str) -> PyErr {
    let raised = CLASSES
        .get_or_try_init(py, || {
            let by_code = py.import("trommel._errors")?.getattr("BY_CODE")?;
            Ok::<_, PyErr>(by_code.cast_into::<PyDict>()?.unbind())
        })
        .and_then(|classes| classes.bind(py).as_any().get_item(code))
        .and_then(|class| class.call1((message,)));
    raised.map_or_else(|failure| failure, PyErr::from_value)
}

/// Bytes are not what they should be.
pub(crate) fn corrupt(py: Python<'_>, message: &str) -> PyErr {
    with_code(py, CORRUPT, message)
}

/// A handle was closed by itself.
pub(crate) fn closed(py: Python<'_>, what: &str) -> PyErr {
    with_code(py, CLOSED, &format!("{what} was closed, or has ended: make a new one"))
}

/// The interpreter is about to exit.
pub(crate) fn exiting(py: Python<'_>) -> PyErr {
    with_code(py, CLOSED, EXITING_TEXT)
}

/// The process is a child of the one that made the handle.
pub(crate) fn forked(py: Python<'_>) -> PyErr {
    let message = "this was made before the process was forked: only the process that opened the \
                   store can use it; a child opens stores of its own";
    with_code(py, FORKED, message)
}

/// An option has an invalid value.
pub(crate) fn option(py: Python<'_>, message: &str) -> PyErr {
    with_code(py, OPTION, message)
}

/// A call has panicked.
pub(crate) fn panicked(py: Python<'_>) -> PyErr {
    with_code(py, PANICKED, PANICKED_TEXT)
}

/// An argument is of another type.
pub(crate) fn wrong_type(message: impl Into<String>) -> PyErr {
    PyTypeError::new_err(message.into())
}

/// An argument makes no sense.
pub(crate) fn wrong_value(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}
