//! A simulated disk behind a door: a thread that comes with an operation is asked first, and may be
//! held, counted, refused or panicked at.
#![allow(dead_code, reason = "each test that has this door uses a part of it")]

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use trommel::storage::{Access, Append, Folder, Memory, ReadAt, Storage, Syncer};

/// So long a test waits for what must come; it decides only how soon a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

type Hook = dyn Fn(&'static str, &Path) -> io::Result<()> + Send + Sync;

/// A disk whose operations, with their file, are told before they are done. (Names that stay as
/// they are cannot be held.)
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) disk: Memory,
    hook: Arc<Hook>,
}

impl Door {
    pub(crate) fn new(
        disk: &Memory,
        hook: impl Fn(&'static str, &Path) + Send + Sync + 'static,
    ) -> Self {
        Door::refusing(disk, move |operation, path| {
            hook(operation, path);
            Ok(())
        })
    }

    /// An operation that gets an error is not done.
    pub(crate) fn refusing(
        disk: &Memory,
        hook: impl Fn(&'static str, &Path) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Door { disk: disk.clone(), hook: Arc::new(hook) }
    }

    fn wrap<T>(&self, path: &Path, file: T) -> File<T> {
        File { file, path: path.to_path_buf(), hook: Arc::clone(&self.hook) }
    }
}

struct File<T> {
    file: T,
    path: PathBuf,
    hook: Arc<Hook>,
}

impl Append for File<Box<dyn Append>> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        (self.hook)("append", &self.path)?;
        self.file.append(bytes)
    }
    fn sync(&mut self) -> io::Result<()> {
        (self.hook)("sync", &self.path)?;
        self.file.sync()
    }
    fn syncer(&self) -> Option<Arc<dyn Syncer>> {
        let (file, path) = (self.file.syncer()?, self.path.clone());
        Some(Arc::new(File { file, path, hook: Arc::clone(&self.hook) }))
    }
}

impl Syncer for File<Arc<dyn Syncer>> {
    fn sync(&self) -> io::Result<()> {
        (self.hook)("sync beside", &self.path)?;
        self.file.sync()
    }
}

impl ReadAt for File<Arc<dyn ReadAt>> {
    fn size(&self) -> io::Result<u64> {
        (self.hook)("size", &self.path)?;
        self.file.size()
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        (self.hook)("read", &self.path)?;
        self.file.read_at(offset, buffer)
    }
}

impl Storage for Door {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        (self.hook)("create_dir", dir)?;
        self.disk.create_dir(dir)
    }
    fn dir_exists(&self, dir: &Path) -> bool {
        self.disk.dir_exists(dir)
    }
    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        (self.hook)("open_folder", dir)?;
        Ok(Arc::new(self.wrap(dir, self.disk.open_folder(dir)?)))
    }
}

impl File<Arc<dyn Folder>> {
    fn pass<T>(&self, operation: &'static str, name: &str, file: T) -> io::Result<File<T>> {
        let path = self.path.join(name);
        (self.hook)(operation, &path)?;
        Ok(File { file, path, hook: Arc::clone(&self.hook) })
    }
}

impl Folder for File<Arc<dyn Folder>> {
    fn list(&self) -> io::Result<Vec<String>> {
        self.pass("list", "", ())?;
        self.file.list()
    }
    fn create_with(&self, name: &str, _access: Access) -> io::Result<Box<dyn Append>> {
        let File { path, hook, .. } = self.pass("create", name, ())?;
        Ok(Box::new(File { file: self.file.create(name)?, path, hook }))
    }
    fn open_with(&self, name: &str, _access: Access) -> io::Result<Arc<dyn ReadAt>> {
        let File { path, hook, .. } = self.pass("open", name, ())?;
        Ok(Arc::new(File { file: self.file.open(name)?, path, hook }))
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.pass("remove", name, ())?;
        self.file.remove(name)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.pass("rename", to, ())?;
        self.file.rename(from, to)
    }
    fn link(&self, from: &str, into: &dyn Folder, to: &str) -> io::Result<()> {
        self.pass("link", to, ())?;
        self.file.link(from, into, to)
    }
    fn make_folder(&self, name: &str) -> io::Result<Arc<dyn Folder>> {
        let File { path, hook, .. } = self.pass("make_folder", name, ())?;
        Ok(Arc::new(File { file: self.file.make_folder(name)?, path, hook }))
    }
    fn sync(&self) -> io::Result<()> {
        self.pass("sync_dir", "", ())?;
        self.file.sync()
    }
    fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>> {
        self.pass("lock", name, ())?;
        self.file.lock(name)
    }
    fn free_space(&self) -> io::Result<u64> {
        self.pass("free_space", "", ())?;
        self.file.free_space()
    }
    fn as_any(&self) -> &dyn Any {
        self.file.as_any()
    }
}

/// Holds one kind of operation, on files that are named so, while it is closed.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<(Option<(&'static str, &'static str)>, usize)>,
    changed: Condvar,
}

impl Gate {
    pub(crate) fn disk(self: &Arc<Self>, disk: &Memory) -> Door {
        let gate = Arc::clone(self);
        Door::new(disk, move |operation, path| gate.pass(operation, path))
    }

    fn pass(&self, operation: &str, path: &Path) {
        let path = path.to_string_lossy();
        let is_held = |held: Option<(&str, &str)>| {
            held.is_some_and(|(what, name)| what == operation && path.contains(name))
        };
        let mut state = self.state.lock().expect("no panic");
        state.1 += usize::from(is_held(state.0));
        self.changed.notify_all();
        while is_held(state.0) {
            state = self.changed.wait(state).expect("no panic");
        }
    }

    pub(crate) fn close(&self, operation: &'static str, name: &'static str) {
        *self.state.lock().expect("no panic") = (Some((operation, name)), 0);
    }

    pub(crate) fn open(&self) {
        self.state.lock().expect("no panic").0 = None;
        self.changed.notify_all();
    }

    /// Returns when a thread is held.
    pub(crate) fn wait(&self) {
        let state = self.state.lock().expect("no panic");
        let waited = self.changed.wait_timeout_while(state, PATIENCE, |(_, held)| *held == 0);
        assert!(waited.expect("no panic").0.1 > 0, "nobody has come to the gate");
    }
}

/// Opens the gate when a test fails too, so that no thread waits for ever.
pub(crate) struct Opens<'g>(pub(crate) &'g Gate);

impl Drop for Opens<'_> {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// Waits for what must come.
pub(crate) fn until(what: &str, is_there: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_there() {
        assert!(start.elapsed() < PATIENCE, "it did not come: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
