//! The feed of changes.
//! ```text
//! store.changes_since(n) --next--> ChangeBatch: writes that were committed together
//! ```
//! Invariants: an iterator that has ended goes on when there is more. Each batch is told once: what
//! could not be told is told by the next call.

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use trommel::{Change, ChangeBatch, ChangeKind};

use crate::calls::{self, lock_attached};
use crate::shared::Shared;

/// Committed writes, in their order. `Store.changes_since` makes it.
#[pyclass(frozen, module = "trommel")]
pub(crate) struct Changes {
    shared: Arc<Shared>,
    feed: Mutex<Feed>,
}

struct Feed {
    changes: trommel::Changes,
    /// Read, and not told yet: to make objects of it may fail, as at a signal.
    next: Option<Arc<ChangeBatch>>,
    /// All writes up to this number were told.
    told: u64,
}

impl Feed {
    /// The next batch. None: nothing more can be told now.
    fn peek(&mut self, py: Python<'_>) -> PyResult<Option<Arc<ChangeBatch>>> {
        if self.next.is_none() {
            let changes = &mut self.changes;
            self.next = calls::store(py, || changes.next_batch())?.map(Arc::new);
        }
        if self.next.is_none() {
            self.told = self.changes.sequence();
        }
        Ok(self.next.clone())
    }

    /// Notes that a batch is told. False: another thread has told it meanwhile.
    fn tell(&mut self, batch: &Arc<ChangeBatch>) -> bool {
        let is_next = self.next.as_ref().is_some_and(|next| Arc::ptr_eq(next, batch));
        if is_next {
            (self.next, self.told) = (None, batch.sequence());
        }
        is_next
    }
}

impl Changes {
    pub(crate) fn new(shared: &Arc<Shared>, changes: trommel::Changes) -> Changes {
        let feed = Feed { told: changes.sequence(), changes, next: None };
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
        loop {
            py.check_signals()?;
            let next = lock_attached(py, &self.feed).peek(py)?;
            let Some(batch) = next else { return Ok(None) };
            // Not while it is locked: a handler of a signal may go on with the feed itself.
            let objects = to_python(py, &batch)?;
            if lock_attached(py, &self.feed).tell(&batch) {
                return Ok(Some(objects));
            }
        }
    }

    /// All writes up to this number were told. A feed since it goes on here.
    #[getter]
    fn sequence(&self, py: Python<'_>) -> PyResult<u64> {
        self.check(py)?;
        Ok(lock_attached(py, &self.feed).told)
    }
}

fn to_python<'py>(py: Python<'py>, batch: &ChangeBatch) -> PyResult<Bound<'py, PyAny>> {
    let types = py.import("trommel._types")?;
    let class = types.getattr("Change")?;
    let changes = PyList::empty(py);
    for change in &batch.changes {
        changes.append(change_of(&class, change)?)?;
    }
    types.getattr("ChangeBatch")?.call1((batch.sequence(), changes))
}

fn change_of<'py>(class: &Bound<'py, PyAny>, change: &Change) -> PyResult<Bound<'py, PyAny>> {
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
