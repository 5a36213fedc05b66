//! Backups in a folder.
//! ```text
//! store.backup(folder)   store.ship(folder)   generations(folder)   restore(folder, to)
//! ```
//! Invariant: a folder is locked for the time of a call, and no longer.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use trommel::Error;
use trommel::backup::{Backups, Unlogged, Until};

use crate::calls;
use crate::errors::wrong_value;
use crate::keyspace::check_place;
use crate::options;

/// A store at one moment, as it is kept.
#[pyclass(frozen, module = "trommel")]
pub(crate) struct Generation {
    /// Which one it is: later ones have greater numbers.
    #[pyo3(get)]
    number: u64,
    /// The number of the last write that it has.
    #[pyo3(get)]
    sequence: u64,
    /// Seconds since the start of 1970.
    #[pyo3(get)]
    time: f64,
    /// How many files of the store it has.
    #[pyo3(get)]
    files: usize,
    /// Bytes of them.
    #[pyo3(get)]
    bytes: u64,
}

impl Generation {
    pub(crate) fn of(made: &trommel::backup::Generation) -> Generation {
        Generation {
            number: made.number,
            sequence: made.sequence,
            time: made.milliseconds as f64 / 1e3,
            files: made.files.len(),
            bytes: made.bytes(),
        }
    }
}

#[pymethods]
impl Generation {
    fn __repr__(&self) -> String {
        let Generation { number, sequence, files, bytes, .. } = self;
        format!("<trommel.Generation {number}: write {sequence}, {files} files, {bytes} bytes>")
    }
}

/// The generations of a folder, the oldest first.
#[pyfunction]
pub(crate) fn generations(py: Python<'_>, path: PathBuf) -> PyResult<Vec<Generation>> {
    check_place(&path)?;
    let all = calls::interruptible(py, move |_| Backups::in_folder(path)?.generations())?;
    Ok(all.iter().map(Generation::of).collect())
}

/// Reads all of a generation, the newest one if none is named. What is damaged: empty if nothing.
#[pyfunction]
#[pyo3(signature = (path, /, *, generation=None))]
pub(crate) fn verify_backup(
    py: Python<'_>,
    path: PathBuf,
    generation: Option<u64>,
) -> PyResult<Vec<String>> {
    check_place(&path)?;
    let report = calls::interruptible(py, move |_| {
        let backups = Backups::in_folder(&path)?;
        let number = number_of(&backups, generation, path)?;
        backups.verify(number)
    })?;
    let told = report.damage.iter().map(|it| format!("{}: {}", it.path.display(), it.what));
    Ok(told.collect())
}

/// The generation that is named, or the newest one.
fn number_of(backups: &Backups, named: Option<u64>, path: PathBuf) -> trommel::Result<u64> {
    if let Some(number) = named {
        return Ok(number);
    }
    let newest = backups.generations()?.last().map(|newest| newest.number);
    let what = "there is no generation yet".into();
    newest.ok_or(Error::FileMissing { path, what })
}

/// Makes a store in a new or empty folder: of a generation, the newest one if none is named; or of
/// a moment (the number of a write, or a time since 1970) of which changes were shipped. Gives the
/// number of the last write of such a moment.
///
/// Raises `FileMissingError` if there is no such generation, or changes up to then were not
/// shipped; `NotEmptyError`, `CorruptError`.
///
/// >>> import tempfile, trommel
/// >>> backups, folder, to = (tempfile.mkdtemp() for _ in range(3))
/// >>> with trommel.open(folder) as store:
/// ...     for value in (b"first", b"second"):
/// ...         store.put(b"drum", value)
/// ...         _ = store.backup(backups)
/// >>> [generation.number for generation in trommel.generations(backups)]
/// [1, 2]
/// >>> trommel.verify_backup(backups)
/// []
/// >>> trommel.restore(backups, to, generation=1)
/// >>> trommel.open(to).get(b"drum")
/// b'first'
#[pyfunction]
#[pyo3(signature = (path, to, /, *, generation=None, sequence=None, time=None, **options))]
pub(crate) fn restore(
    py: Python<'_>,
    path: PathBuf,
    to: PathBuf,
    generation: Option<u64>,
    sequence: Option<u64>,
    time: Option<f64>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Option<u64>> {
    check_place(&path)?;
    check_place(&to)?;
    let until = match (generation, sequence, time) {
        (_, None, None) => None,
        (None, Some(sequence), None) => Some(Until::Sequence(sequence)),
        (None, None, Some(time)) => {
            let time = Duration::try_from_secs_f64(time);
            Some(Until::Time(time.map_err(|_| wrong_value("no time since 1970"))?))
        }
        _ => return Err(wrong_value("a generation, a sequence or a time is named, not several")),
    };
    if until.is_none() && options.is_some_and(|options| !options.is_empty()) {
        return Err(wrong_value("options are for a store to which changes are applied"));
    }
    let options = options::of_store(options)?;
    calls::interruptible(py, move |cancel| {
        let backups = Backups::in_folder(&path)?;
        let hear = &mut |progress| cancel.hear(progress);
        match until {
            Some(until) => {
                let unlogged = Unlogged::Refuse;
                backups.restore_until_with_progress(until, (to, options), unlogged, hear).map(Some)
            }
            None => {
                let number = number_of(&backups, generation, path)?;
                backups.restore_with_progress(number, to, hear).map(|()| None)
            }
        }
    })
}

/// Removes all generations but the newest ones: the numbers of those that went. After an interrupt
/// they go all the same, and the folder stays locked so long.
#[pyfunction]
#[pyo3(signature = (path, /, *, keep))]
pub(crate) fn prune(py: Python<'_>, path: PathBuf, keep: usize) -> PyResult<Vec<u64>> {
    check_place(&path)?;
    let pruned = calls::interruptible(py, move |_| Backups::in_folder(path)?.prune(keep))?;
    Ok(pruned.generations)
}
