//! A store, and how it is opened.
//! ```text
//! trommel.open(path, **options) --> Store: all of its default key space, and what is of the whole
//! ```
//! Invariant: a call that may take long can be interrupted.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use trommel::backup::Backups;
use trommel::{Db, Error, Isolation, Snapshot as StoreSnapshot};

use crate::backups::Generation;
use crate::calls;
use crate::changes::Changes;
use crate::errors::{self, wrong_value};
use crate::events;
use crate::keyspace::{Keyspace, check_place};
use crate::options;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::transaction::{Transaction, new_transaction};

/// Runs of a transaction before one that waits, and how long that waits at most.
const HURRIED_RUNS: u32 = 3;
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// An open store. It is its own key space "default", and closes at the end of a `with` block, or
/// with its last handle.
#[pyclass(frozen, extends = Keyspace, module = "trommel")]
pub(crate) struct Store {
    shared: Arc<Shared>,
}

/// Opens a store. After an interrupt it is closed again, as soon as it is open.
#[pyfunction]
#[pyo3(signature = (path, /, *, events=None, **options))]
pub(crate) fn open<'py>(
    py: Python<'py>,
    path: PathBuf,
    events: Option<&Bound<'py, events::EventQueue>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, Store>> {
    let options = options::of_store(options)?;
    let environment = events.map_or_else(Default::default, |queue| queue.get().environment());
    let db = calls::interruptible(py, move |_| Db::open_with(path, options, environment))?;
    let keyspace = trommel::Keyspace::clone(&db);
    let shared = Shared::new(db);
    let base = Keyspace::make(Arc::clone(&shared), keyspace);
    Bound::new(py, base.add_subclass(Store { shared }))
}

impl Store {
    fn db(&self) -> &Db {
        &self.shared.db
    }

    fn moment(&self) -> StoreSnapshot {
        self.db().snapshot()
    }
}

#[pymethods]
impl Store {
    /// The folder, by the path that it was opened with.
    #[getter]
    fn path(&self) -> PathBuf {
        self.db().path()
    }

    /// Closes the store, for all its handles: waits for calls under way, and makes all writes
    /// durable. What lives on (key spaces, snapshots, iterators) raises `ClosedError` from then on.
    /// Closing it again does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        calls::closing(py, || self.db().close())
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
        format!("<trommel.Store {:?}>", self.db().path())
    }

    /// Makes all writes so far durable.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db().clone();
        calls::interruptible(py, move |_| db.sync())
    }

    /// Writes everything in memory to a run on disk, of each key space.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db().clone();
        calls::interruptible(py, move |_| db.flush())
    }

    /// Returns when no flush or merge is due.
    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db().clone();
        calls::interruptible(py, move |_| db.settle())
    }

    /// Merges everything of each key space into one run. An interrupt leaves the runs as they were,
    /// unless some partitions are merged already: the others then follow in the background.
    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db().clone();
        calls::interruptible(py, move |cancel| {
            db.compact_with_progress(&mut |progress| cancel.hear(progress))
        })
    }

    /// Reads and checks every byte of every table and log. Damage is in the report.
    fn verify<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let db = self.db().clone();
        let report = calls::interruptible(py, move |cancel| {
            db.verify_with_progress(&mut |progress| cancel.hear(progress))
        })?;
        report_of(py, report)
    }

    /// Makes a second store in a folder that is new or empty, with all writes that are visible now.
    ///
    /// Raises `NotEmptyError` if the folder has files.
    fn checkpoint(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        check_place(&path)?;
        let db = self.db().clone();
        calls::interruptible(py, move |cancel| {
            db.checkpoint_with_progress(path, &mut |progress| cancel.hear(progress))
        })
    }

    /// Stores all writes that are visible now as a new generation in a folder of backups. Only
    /// files are stored that no generation has.
    fn backup<'py>(&self, py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, Generation>> {
        check_place(&path)?;
        let db = self.db().clone();
        let made = calls::interruptible(py, move |cancel| {
            let backups = Backups::in_folder(path)?;
            backups.back_up_with_progress(&db, &mut |progress| cancel.hear(progress))
        })?;
        Bound::new(py, Generation::of(&made))
    }

    /// Stores the changes since the newest generation in its folder: behind which write, up to
    /// which one, how many bytes. The store has to keep its logs so long (`kept_log_bytes`).
    ///
    /// Raises `GoneError` if it has not: then make a generation.
    fn ship(&self, py: Python<'_>, path: PathBuf) -> PyResult<(u64, u64, u64)> {
        check_place(&path)?;
        let db = self.db().clone();
        let shipped = calls::interruptible(py, move |_| Backups::in_folder(path)?.ship(&db))?;
        Ok((shipped.from, shipped.to, shipped.bytes))
    }

    /// The store as it is now, to be read while writes go on.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Snapshot>> {
        // It gives no error of its own; a store that is closed has one.
        let told = calls::attached(py, || self.db().get_if_cached(b""))?;
        told.transpose().map_err(|error| errors::of(py, &error))?;
        Bound::new(py, Snapshot::of_store(&self.shared, self.moment()))
    }

    /// The key space of a name, which is made if it is not there, unless `create` is False. Options
    /// that are set are kept.
    ///
    /// Raises `NoKeyspaceError` if there is none and none is to be made; `OptionError`.
    #[pyo3(signature = (name, /, *, create=true, **options))]
    fn keyspace<'py>(
        &self,
        py: Python<'py>,
        name: String,
        create: bool,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, Keyspace>> {
        let db = self.db();
        if !create && options.is_some_and(|options| !options.is_empty()) {
            return Err(wrong_value("options are for a key space that may be made: create=True"));
        }
        let options = options::of_keyspace(options)?;
        let keyspace = calls::store(py, || match create {
            true => db.keyspace(name, options),
            false => db.open_keyspace(name),
        })?;
        Bound::new(py, Keyspace::make(Arc::clone(&self.shared), keyspace))
    }

    /// The names of all key spaces, the default one first.
    fn keyspaces(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        calls::store(py, || self.db().keyspaces())
    }

    /// Drops a key space with all that is in it; after an interrupt, perhaps a while later.
    ///
    /// Raises `NoKeyspaceError` if there is none of that name.
    fn drop_keyspace(&self, py: Python<'_>, name: String) -> PyResult<()> {
        let db = self.db().clone();
        calls::interruptible(py, move |_| db.drop_keyspace(name))
    }

    /// Gives a key space another name. Its handles stay good.
    ///
    /// Raises `NoKeyspaceError`, `KeyspaceExistsError`.
    fn rename_keyspace(&self, py: Python<'_>, name: String, to: String) -> PyResult<()> {
        calls::store(py, || self.db().rename_keyspace(name, to))
    }

    /// Begins a transaction: reads of one moment and writes on top of them, which are committed
    /// together. `isolation`: "serializable" (all that was read is as it was), or "snapshot" (what
    /// it writes was written by nobody else).
    ///
    /// >>> import tempfile, trommel
    /// >>> with trommel.open(tempfile.mkdtemp()) as store:
    /// ...     with store.transaction() as tx:
    /// ...         tx.put(b"n", b"%d" % (int(tx.get(b"n", b"0")) + 1))
    /// ...     store.get(b"n")
    /// b'1'
    #[pyo3(signature = (*, isolation="serializable"))]
    fn transaction<'py>(
        &self,
        py: Python<'py>,
        isolation: &str,
    ) -> PyResult<Bound<'py, Transaction>> {
        let isolation = match isolation {
            "serializable" => Isolation::Serializable,
            "snapshot" => Isolation::Snapshot,
            _ => {
                return Err(wrong_value(format!(
                    "isolation is 'serializable' or 'snapshot', not {isolation:?}"
                )));
            }
        };
        new_transaction(py, &self.shared, isolation)
    }

    /// Calls `work` with a transaction and commits it; again, after a while, as long as others are
    /// faster. Gives what `work` gives. An exception of `work` ends it, and nothing is written.
    fn run<'py>(&self, py: Python<'py>, work: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let retried = py.import("trommel._errors")?.getattr("RETRIED")?;
        for runs in 0u32.. {
            let transaction = new_transaction(py, &self.shared, Isolation::Serializable)?;
            let worked = work.call1((&transaction,));
            let done =
                worked.and_then(|given| transaction.get().commit_if_open(py).map(|()| given));
            match done {
                Err(error) if error.matches(py, &retried)? => {}
                done => {
                    transaction.get().roll_back(py)?;
                    return done;
                }
            }
            transaction.get().roll_back(py)?;
            py.check_signals()?;
            if let Some(late) = runs.checked_sub(HURRIED_RUNS) {
                let pause = Duration::from_micros(50 << late.min(10)).min(PAUSE_MAX);
                calls::detached(py, || std::thread::sleep(pause))?;
            }
        }
        Err(errors::of(py, &Error::Cancelled))
    }

    /// All committed writes after the one of this number, in their order, as far as they are
    /// durable. The iterator ends when there is nothing more, and goes on when there is. To begin,
    /// take the number of a snapshot.
    ///
    /// Raises `GoneError` if logs that had some of them are gone: see the option `kept_log_bytes`.
    fn changes_since<'py>(&self, py: Python<'py>, sequence: u64) -> PyResult<Bound<'py, Changes>> {
        let changes = calls::store(py, || self.db().changes_since(sequence))?;
        Bound::new(py, Changes::new(&self.shared, changes))
    }
}

/// What a check has found.
pub(crate) fn report_of<'py>(
    py: Python<'py>,
    report: trommel::tools::VerifyReport,
) -> PyResult<Bound<'py, PyAny>> {
    let parts = (report.tables, report.entries, report.bytes, report.damage);
    py.import("trommel._types")?.getattr("VerifyReport")?.call1(parts)
}
