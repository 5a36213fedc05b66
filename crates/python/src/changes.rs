//! The feed of changes.
//! ```text
//! store.changes_since(n) --next--> ChangeBatch: writes that were committed together
//! ```
//! Invariant: an iterator that has ended goes on when there is more.

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use trommel::{Change, ChangeKind};

use crate::calls::{self, lock_attached};
use crate::shared::Shared;

/// Committed writes, in their order. `Store.changes_since` makes it.
#[pyclass(frozen, module = "trommel")]
pub(crate) struct Changes {
    shared: Arc<Shared>,
    feed: Mutex<trommel::Changes>,
}

impl Changes {
    pub(crate) fn new(shared: &Arc<Shared>, feed: trommel::Changes) -> Changes {
        Changes { shared: Arc::clone(shared), feed: Mutex::new(feed) }
    }

    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.check_process(py)
    }
}

#[pymethods]
impl Changes {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.check(py)?;
        py.check_signals()?;
        let next = {
            let mut locked = lock_attached(py, &self.feed);
            let feed = &mut *locked;
            calls::store(py, || feed.next_batch())?
        };
        let Some(batch) = next else { return Ok(None) };
        let types = py.import("trommel._types")?;
        let class = types.getattr("Change")?;
        let changes = PyList::empty(py);
        for change in &batch.changes {
            changes.append(to_python(&class, change)?)?;
        }
        types.getattr("ChangeBatch")?.call1((batch.sequence(), changes)).map(Some)
    }

    /// All writes up to this number were told. A feed since it goes on here.
    #[getter]
    fn sequence(&self, py: Python<'_>) -> PyResult<u64> {
        self.check(py)?;
        Ok(lock_attached(py, &self.feed).sequence())
    }
}

fn to_python<'py>(class: &Bound<'py, PyAny>, change: &Change) -> PyResult<Bound<'py, PyAny>> {
    let (kind, value, expiry) = match &change.kind {
        ChangeKind::Put(value) => ("put", Some(value), None),
        ChangeKind::PutWithExpiry { value, expiry } => {
            ("put", Some(value), Some(expiry.milliseconds() as f64 / 1e3))
        }
        ChangeKind::Merge(operand) => ("merge", Some(operand), None),
        ChangeKind::Delete => ("delete", None, None),
        ChangeKind::DeleteRange { to } => ("delete_range", Some(to), None),
        // A kind that this version does not know of is told as what it is.
        _ => ("unknown", None, None),
    };
    let py = class.py();
    let bytes = value.map(|value| PyBytes::new(py, value));
    let key = PyBytes::new(py, &change.key);
    let name = change.keyspace_name.as_deref();
    class.call1((change.sequence, change.keyspace, name, kind, key, bytes, expiry))
}
