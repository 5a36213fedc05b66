//! A disk that fails at its n-th operation: in memory, or the real one.
//! ```text
//! Bed::Simulated   Memory, which fails by itself, and knows what was synced
//! Bed::Real        Faulty -> Disk, in a temporary folder
//! ```
//! Invariant: an operation that is made to fail does nothing, or of an append a part.

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use trommel::storage::{Access, Append, Disk, Folder, Memory, ReadAt, Storage};
use trommel::testing::Fault;

/// What counts operations, and fails them.
#[derive(Default)]
struct Counter {
    operations: u64,
    /// From this operation on, how, and whether later ones fail too.
    armed: Option<(u64, Fault, bool)>,
}

/// The real disk, with faults.
#[derive(Clone, Default)]
pub(crate) struct Faulty(Arc<Mutex<Counter>>);

impl Faulty {
    fn step(&self, needs_space: bool) -> io::Result<()> {
        let mut counter = self.0.lock().expect("no panic");
        let number = counter.operations;
        counter.operations += 1;
        let Some((_, kind, lasts)) = counter.armed.filter(|(at, ..)| number >= *at) else {
            return Ok(());
        };
        if !lasts {
            counter.armed = None;
        } else if kind == Fault::NoSpace && !needs_space {
            return Ok(());
        }
        Err(match kind {
            Fault::Io => io::Error::other("an input/output error of the test"),
            Fault::NoSpace => io::ErrorKind::StorageFull.into(),
        })
    }
}

struct FaultyFile(Faulty, Box<dyn Append>);

impl Append for FaultyFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.step(true).or_else(|error| {
            self.1.append(&bytes[..bytes.len() / 2])?;
            Err(error)
        })?;
        self.1.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.step(true)?;
        self.1.sync()
    }
}

struct FaultyReader(Faulty, Arc<dyn ReadAt>);

impl ReadAt for FaultyReader {
    fn size(&self) -> io::Result<u64> {
        self.0.step(false)?;
        self.1.size()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.step(false)?;
        self.1.read_at(offset, buffer)
    }
}

struct FaultyFolder(Faulty, Arc<dyn Folder>);

impl Storage for Faulty {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.step(true)?;
        Disk.create_dir(dir)
    }

    fn dir_exists(&self, dir: &Path) -> bool {
        Disk.dir_exists(dir)
    }

    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        self.step(false)?;
        Ok(Arc::new(FaultyFolder(self.clone(), Disk.open_folder(dir)?)))
    }
}

impl Folder for FaultyFolder {
    fn list(&self) -> io::Result<Vec<String>> {
        self.0.step(false)?;
        self.1.list()
    }

    fn create_with(&self, name: &str, _access: Access) -> io::Result<Box<dyn Append>> {
        self.0.step(true)?;
        Ok(Box::new(FaultyFile(self.0.clone(), self.1.create(name)?)))
    }

    fn open_with(&self, name: &str, _access: Access) -> io::Result<Arc<dyn ReadAt>> {
        self.0.step(false)?;
        Ok(Arc::new(FaultyReader(self.0.clone(), self.1.open(name)?)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.step(false)?;
        self.1.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.step(true)?;
        self.1.rename(from, to)
    }

    fn link(&self, from: &str, into: &dyn Folder, to: &str) -> io::Result<()> {
        self.0.step(true)?;
        self.1.link(from, into, to)
    }

    fn make_folder(&self, name: &str) -> io::Result<Arc<dyn Folder>> {
        self.0.step(true)?;
        Ok(Arc::new(FaultyFolder(self.0.clone(), self.1.make_folder(name)?)))
    }

    fn sync(&self) -> io::Result<()> {
        self.0.step(true)?;
        self.1.sync()
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>> {
        self.0.step(false)?;
        self.1.lock(name)
    }

    fn free_space(&self) -> io::Result<u64> {
        self.0.step(false)?;
        self.1.free_space()
    }

    fn as_any(&self) -> &dyn Any {
        self.1.as_any()
    }
}

/// Where a store is, and how it is made to fail.
pub(crate) enum Bed {
    Simulated(Memory),
    Real(Faulty, tempfile::TempDir),
}

impl Bed {
    pub(crate) fn simulated() -> Self {
        Bed::Simulated(Memory::new())
    }

    pub(crate) fn real() -> Self {
        Bed::Real(Faulty::default(), tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn storage(&self) -> Arc<dyn Storage> {
        match self {
            Bed::Simulated(disk) => Arc::new(disk.clone()),
            Bed::Real(disk, _) => Arc::new(disk.clone()),
        }
    }

    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        match self {
            Bed::Simulated(_) => PathBuf::from(name),
            Bed::Real(_, folder) => folder.path().join(name),
        }
    }

    /// After `n` more operations one fails, or all from there on.
    pub(crate) fn arm(&self, n: u64, kind: Fault, lasts: bool) {
        match self {
            Bed::Simulated(disk) if lasts => disk.fail_from(n, kind),
            Bed::Simulated(disk) => disk.fail_at(n, kind),
            Bed::Real(disk, _) => {
                let mut counter = disk.0.lock().expect("no panic");
                counter.armed = Some((counter.operations + n, kind, lasts));
            }
        }
    }

    pub(crate) fn mend(&self) {
        match self {
            Bed::Simulated(disk) => disk.mend(),
            Bed::Real(disk, _) => disk.0.lock().expect("no panic").armed = None,
        }
    }

    pub(crate) fn operations(&self) -> u64 {
        match self {
            Bed::Simulated(disk) => disk.operations(),
            Bed::Real(disk, _) => disk.0.lock().expect("no panic").operations,
        }
    }
}
