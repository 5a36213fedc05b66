//! The real disk with injected failures: partial or complete appends that fail, failed syncs, and a
//! full disk.
//! ```text
//! arm(Append) -> a later append writes a part, or all, and fails
//! arm(Sync)   -> a later sync fails
//! arm(Full)   -> everything that needs room fails for a while
//! ```
//! Invariant: an operation without an armed failure goes to the disk unchanged.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use trommel::storage::{
    Access, Append, Disk, Folder, FolderWrapper, Storage, StorageWrapper, Syncer,
};

use crate::keys::rng::Rng;

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Append,
    Sync,
    Full,
}

/// The failures to inject.
pub(super) struct Faults {
    armed: Mutex<Option<Failure>>,
    /// Operations that still fail because the disk is full.
    full: AtomicU32,
    rng: Mutex<Rng>,
}

impl Faults {
    pub(super) fn new(seed: u64) -> Arc<Faults> {
        let (armed, rng) = (Mutex::new(None), Mutex::new(Rng::new(seed)));
        Arc::new(Faults { armed, full: AtomicU32::new(0), rng })
    }

    pub(super) fn arm(&self, failure: Failure) {
        if failure == Failure::Full {
            self.full.store(12, Ordering::Relaxed);
        } else {
            *self.armed.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
        }
    }

    /// Whether this operation fails; disarms the failure.
    fn takes(&self, failure: Failure) -> bool {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        armed.take_if(|armed| *armed == failure).is_some()
    }

    fn needs_room(&self) -> io::Result<()> {
        let less = |left: u32| left.checked_sub(1);
        match self.full.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            Ok(_) => Err(io::ErrorKind::StorageFull.into()),
            Err(_) => Ok(()),
        }
    }

    fn below(&self, bound: u64) -> u64 {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).below(bound)
    }
}

fn failed() -> io::Error {
    io::Error::other("a failure of the test")
}

/// The disk with failures.
pub(super) struct FaultyDisk(pub(super) Arc<Faults>);

struct FaultyFolder {
    folder: Arc<dyn Folder>,
    faults: Arc<Faults>,
}

struct FaultyFile<F> {
    file: F,
    faults: Arc<Faults>,
}

impl StorageWrapper for FaultyDisk {
    fn inner(&self) -> &dyn Storage {
        &Disk
    }

    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        let (folder, faults) = (Disk.open_folder(dir)?, Arc::clone(&self.0));
        Ok(Arc::new(FaultyFolder { folder, faults }))
    }
}

impl FolderWrapper for FaultyFolder {
    fn inner(&self) -> &dyn Folder {
        &*self.folder
    }

    fn create_with(&self, name: &str, access: Access) -> io::Result<Box<dyn Append>> {
        self.faults.needs_room()?;
        let (file, faults) = (self.folder.create_with(name, access)?, Arc::clone(&self.faults));
        Ok(Box::new(FaultyFile { file, faults }))
    }

    fn sync(&self) -> io::Result<()> {
        if self.faults.takes(Failure::Sync) { Err(failed()) } else { self.folder.sync() }
    }
}

impl Append for FaultyFile<Box<dyn Append>> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let full = self.faults.needs_room();
        if full.is_ok() && !self.faults.takes(Failure::Append) {
            return self.file.append(bytes);
        }
        // The append may be complete: then only its writer knows that it was refused.
        let part = match self.faults.below(2) {
            0 => bytes.len(),
            _ => self.faults.below(bytes.len() as u64 + 1) as usize,
        };
        self.file.append(&bytes[..part])?;
        full.and_then(|()| Err(failed()))
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.faults.takes(Failure::Sync) { Err(failed()) } else { self.file.sync() }
    }

    fn syncer(&self) -> Option<Arc<dyn Syncer>> {
        let (file, faults) = (self.file.syncer()?, Arc::clone(&self.faults));
        Some(Arc::new(FaultyFile { file, faults }))
    }
}

impl Syncer for FaultyFile<Arc<dyn Syncer>> {
    fn sync(&self) -> io::Result<()> {
        if self.faults.takes(Failure::Sync) { Err(failed()) } else { self.file.sync() }
    }
}
