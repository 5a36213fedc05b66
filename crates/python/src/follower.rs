//! A store that another process writes, read along.
//! ```text
//! trommel.follow(path) --> Follower: reads the newest moment that it has come to
//! ```
//! Invariant: nothing is written.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use trommel::{Db, FollowOptions};

use crate::buffers::Lifetime;
use crate::calls::{self, Process};
use crate::keyspace::{check_place, dict_of};
use crate::options;
use crate::reader::{Reader, Source};
use crate::shared::Keeper;
use crate::snapshot::Snapshot;
use crate::store::report_of;

/// A key space of a store that is followed.
#[pyclass(frozen, extends = Reader, subclass, module = "trommel")]
pub(crate) struct FollowedKeyspace {
    keeper: Keeper,
    followed: trommel::FollowedKeyspace,
}

/// A store that another process writes, read along without a lock. `trommel.follow` makes it.
#[pyclass(frozen, extends = FollowedKeyspace, module = "trommel")]
pub(crate) struct Follower {
    follower: trommel::Follower,
    keeper: Keeper,
}

/// Reads a store along that another process writes, or that nobody has open. With an `interval` a
/// thread catches up so often; else `catch_up` does.
///
/// Raises `MissingError`, `NotAStoreError`, `VersionError`, `CorruptError`.
///
/// >>> import tempfile, trommel
/// >>> folder = tempfile.mkdtemp()
/// >>> with trommel.open(folder) as store, trommel.follow(folder) as follower:
/// ...     store.put(b"drum", b"turns")
/// ...     store.flush()
/// ...     follower.get(b"drum"), follower.catch_up(), follower.get(b"drum")
/// (None, True, b'turns')
#[pyfunction]
#[pyo3(signature = (path, /, *, interval=None, **options))]
pub(crate) fn follow<'py>(
    py: Python<'py>,
    path: PathBuf,
    interval: Option<Lifetime>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, Follower>> {
    let options = FollowOptions::new()
        .options(options::of_store(options)?)
        .interval(interval.map(|Lifetime(time)| time));
    let follower = calls::interruptible(py, move |_| Db::follow(path, options))?;
    let keeper = Keeper::Follower(follower.clone(), Process::current());
    let base = FollowedKeyspace::make(&keeper, trommel::FollowedKeyspace::clone(&follower));
    Bound::new(py, base.add_subclass(Follower { follower, keeper }))
}

impl FollowedKeyspace {
    fn make(
        keeper: &Keeper,
        followed: trommel::FollowedKeyspace,
    ) -> PyClassInitializer<FollowedKeyspace> {
        let keeper = keeper.clone();
        let reader = Reader { keeper: keeper.clone(), source: Source::Followed(followed.clone()) };
        PyClassInitializer::from(reader).add_subclass(FollowedKeyspace { keeper, followed })
    }
}

#[pymethods]
impl FollowedKeyspace {
    /// The key space as it is shown now.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Snapshot>> {
        let at = calls::store(py, || self.followed.snapshot())?;
        Bound::new(py, Snapshot::make(self.keeper.clone(), at))
    }

    /// Every number, by name: what the follower holds, and what reads have cost.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = calls::store(py, || self.followed.stats())?;
        dict_of(py, &stats)
    }
}

#[pymethods]
impl Follower {
    /// The folder, by the path that it was opened with.
    #[getter]
    fn path(&self) -> PathBuf {
        self.follower.path()
    }

    /// Moves on to what the writer has shown since. False: nothing is new.
    fn catch_up(&self, py: Python<'_>) -> PyResult<bool> {
        let follower = self.follower.clone();
        calls::interruptible(py, move |_| follower.catch_up())
    }

    /// The number of the newest write that reads see.
    #[getter]
    fn sequence(&self) -> u64 {
        self.follower.sequence()
    }

    /// How far it is behind.
    fn staleness<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.keeper.check_process(py)?;
        let stale = calls::detached(py, || self.follower.staleness())?;
        let [look, news] = [stale.since_look, stale.since_news].map(|time| time.as_secs_f64());
        let parts = (stale.sequence, look, news, stale.failure);
        py.import("trommel._types")?.getattr("Staleness")?.call1(parts)
    }

    /// The key space of a name.
    ///
    /// Raises `NoKeyspaceError` if there is none, or none yet.
    fn keyspace<'py>(
        &self,
        py: Python<'py>,
        name: String,
    ) -> PyResult<Bound<'py, FollowedKeyspace>> {
        let followed = calls::store(py, || self.follower.keyspace(name))?;
        Bound::new(py, FollowedKeyspace::make(&self.keeper, followed))
    }

    /// The names of all key spaces, the default one first.
    fn keyspaces(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        calls::detached(py, || self.follower.keyspaces())
    }

    /// Reads and checks every byte of every table and log. Damage is in the report.
    fn verify<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let follower = self.follower.clone();
        let report = calls::interruptible(py, move |cancel| {
            follower.verify_with_progress(&mut |progress| cancel.hear(progress))
        })?;
        report_of(py, report)
    }

    /// Makes a store of its own in a folder that is new or empty, of the present moment.
    fn checkpoint(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        check_place(&path)?;
        let follower = self.follower.clone();
        calls::interruptible(py, move |cancel| {
            follower.checkpoint_with_progress(path, &mut |progress| cancel.hear(progress))
        })
    }

    /// Closes the follower. What lives on raises `ClosedError`.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        calls::closing(py, || self.follower.close())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        format!("<trommel.Follower {:?}>", self.follower.path())
    }
}
