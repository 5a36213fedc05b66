//! A store as it was at one moment.
//! ```text
//! Snapshot --of(keyspace)--> Snapshot of the same moment
//! ```
//! Invariant: it is of one store, and stays what it is.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::keyspace::Keyspace;
use crate::reader::{Reader, Source};
use crate::shared::{Keeper, Shared, check_same};

/// A key space at one moment.
///
/// >>> import tempfile, trommel
/// >>> store = trommel.open(tempfile.mkdtemp())
/// >>> store.put(b"drum", b"turns")
/// >>> before = store.snapshot()
/// >>> store.delete(b"drum")
/// >>> before.get(b"drum"), store.get(b"drum")
/// (b'turns', None)
/// >>> list(before.keys()), list(before.of(store.keyspace("other")).keys())
/// ([b'drum'], [])
#[pyclass(frozen, extends = Reader, module = "trommel")]
pub(crate) struct Snapshot;

impl Snapshot {
    pub(crate) fn make(keeper: Keeper, at: trommel::Snapshot) -> PyClassInitializer<Snapshot> {
        let reader = Reader { keeper, source: Source::Snapshot(at) };
        PyClassInitializer::from(reader).add_subclass(Snapshot)
    }

    pub(crate) fn of_store(
        shared: &Arc<Shared>,
        at: trommel::Snapshot,
    ) -> PyClassInitializer<Snapshot> {
        Snapshot::make(Keeper::Store(Arc::clone(shared)), at)
    }
}

/// Requires: the reader of a snapshot, as `make` makes it.
fn moment(reader: &Reader) -> &trommel::Snapshot {
    match &reader.source {
        Source::Snapshot(snapshot) => snapshot,
        Source::Keyspace(_) | Source::Followed(_) => unreachable!("a snapshot reads a snapshot"),
    }
}

#[pymethods]
impl Snapshot {
    /// The number of the last write that it sees.
    #[getter]
    fn sequence(slf: &Bound<'_, Self>) -> u64 {
        moment(slf.as_super().get()).sequence()
    }

    /// The same moment of another key space of the same store.
    fn of<'py>(
        slf: &Bound<'py, Self>,
        keyspace: &Bound<'py, Keyspace>,
    ) -> PyResult<Bound<'py, Snapshot>> {
        let reader = slf.as_super().get();
        check_same(&reader.keeper, &keyspace.as_super().get().keeper)?;
        reader.keeper.check_process(slf.py())?;
        let other = moment(reader).of(&keyspace.get().keyspace);
        Bound::new(slf.py(), Snapshot::make(reader.keeper.clone(), other))
    }
}
