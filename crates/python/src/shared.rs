//! What all handles of an open store share, and which stores are open.
//! ```text
//! Store, Keyspace, Snapshot, iterators --> Shared --> trommel::Db
//!                         OPEN: weak  --------^         closed at exit, or when the last one goes
//! ```
//! Invariant: the list of open stores keeps none of them open.

use std::sync::{Arc, Mutex, Weak};

use pyo3::prelude::*;

use crate::calls::{self, Process, lock};
use crate::errors;

static OPEN: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// An open store.
pub(crate) struct Shared {
    pub(crate) db: trommel::Db,
    process: Process,
}

impl Shared {
    /// Of a store that was just opened.
    pub(crate) fn new(db: trommel::Db) -> Arc<Shared> {
        let shared = Arc::new(Shared { db, process: Process::current() });
        let mut open = lock(&OPEN);
        open.retain(|other| other.strong_count() > 0);
        open.push(Arc::downgrade(&shared));
        shared
    }

    /// An error in a child of the process that opened the store.
    pub(crate) fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        self.process.check(py)
    }
}

/// What keeps a store open for whoever reads it.
#[derive(Clone)]
pub(crate) enum Keeper {
    Store(Arc<Shared>),
    Follower(
        #[expect(dead_code, reason = "it is here so that the follower stays open")]
        trommel::Follower,
        Process,
    ),
}

impl Keeper {
    /// An error in a child of the process that opened the store.
    pub(crate) fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        match self {
            Keeper::Store(shared) => shared.check_process(py),
            Keeper::Follower(_, process) => process.check(py),
        }
    }

    /// Whether both are of one open store.
    pub(crate) fn is(&self, other: &Keeper) -> bool {
        match (self, other) {
            (Keeper::Store(one), Keeper::Store(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

/// An error if handles of two stores are used together.
pub(crate) fn check_same(one: &Keeper, other: &Keeper) -> PyResult<()> {
    match one.is(other) {
        true => Ok(()),
        false => Err(errors::wrong_value("the key space is another store's")),
    }
}

/// Closes all stores, so that what was acknowledged is durable, and waits until no thread is in a
/// call. For `atexit`: calls of other threads, and bulk loads, get `ClosedError`.
#[pyfunction]
pub(crate) fn end(py: Python<'_>) {
    calls::exit(py, || {
        let open = std::mem::take(&mut *lock(&OPEN));
        for shared in open.iter().filter_map(Weak::upgrade) {
            // There is nobody left to be told.
            let _ = shared.db.close();
        }
    });
}

/// For `os.register_at_fork`, in a child.
#[pyfunction]
pub(crate) fn forked() {
    calls::forked();
}
