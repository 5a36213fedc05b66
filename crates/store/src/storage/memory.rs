//! A simulated disk. It knows what was synced, and crashes, fails and corrupts data on request.
//! ```text
//! file     [ synced bytes | unsynced bytes ]      a crash keeps the first, and some of the second
//! folder   [ synced names | changes of names ]    a crash keeps the first, and some of the second
//! ```
//! Invariants: the same calls and the same seed give the same disk. A folder's own name is durable
//! once its parent was synced. A folder whose name is lost takes its content along. A rename is
//! atomic. What a failed sync should have made durable never becomes durable, not even by a later
//! sync that succeeds.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::EXHAUSTED;
use crate::storage::traits::{Append, Folder, ReadAt, Storage, Syncer};
use crate::sync::{Arc, Mutex, MutexGuard, lock as lock_mutex};

mod crash;
mod folder;

use crash::{Fate, Random, after_crash};
use folder::MemoryFolder;

/// A disk in memory. A clone gives access to the same disk.
#[derive(Clone, Default)]
pub struct Memory {
    state: Arc<Mutex<MemoryState>>,
}

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The disk reports an error.
    Io,
    /// The disk reports that it is full.
    NoSpace,
}

impl Fault {
    fn error(self) -> io::Error {
        match self {
            Fault::Io => io::Error::other("simulated input/output error"),
            Fault::NoSpace => io::ErrorKind::StorageFull.into(),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    /// The number of zeros at its end that were allocated ahead.
    ahead: usize,
    /// The number of bytes that were cut off, not durably.
    cut: usize,
    synced_len: usize,
    /// Whether a sync has failed. The system then gave up the bytes that were not durable.
    sync_failed: bool,
}

type File = Arc<Mutex<Content>>;

/// Names that change together, each with its file after the change.
type NameChange = Vec<(PathBuf, Option<File>)>;

#[derive(Default)]
struct MemoryState {
    dirs: BTreeSet<PathBuf>,
    /// Folders whose names survive a crash, if their parents do.
    dirs_synced: BTreeSet<PathBuf>,
    names: BTreeMap<PathBuf, File>,
    names_synced: BTreeMap<PathBuf, File>,
    /// The changes of names since their folders were synced, in order.
    changes: Vec<NameChange>,
    locks: BTreeSet<PathBuf>,
    operations: u64,
    handles: Handles,
    fault: Option<Armed>,
    no_space: bool,
    /// Whether files that may be mapped are allocated ahead.
    maps_files: bool,
}

/// Counts of open file handles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Handles {
    /// The number of open handles.
    pub open: usize,
    /// The most handles that were open at once.
    pub most: usize,
    /// The most handles that may be open. None: there is no limit.
    pub max: Option<usize>,
}

/// A fault that waits for its operation, by the count of `operations`.
#[derive(Clone, Copy)]
struct Armed {
    at: u64,
    kind: Fault,
    /// Whether all later operations fail, too.
    lasts: bool,
}

impl Memory {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the disk after a power cut. Synced data survives, and `seed` decides about the rest.
    /// Unsynced bytes of a file survive up to some point, or with zeros in place of some sectors.
    /// The file may end in zeros or, behind its synced bytes, in garbage. Each change of names has
    /// happened or not. Locks and faults are gone.
    pub fn crash(&self, seed: u64) -> Memory {
        self.after(Fate::Drawn(Random(seed)))
    }

    /// Returns the disk after a power cut that lost everything unsynced.
    pub fn crash_hard(&self) -> Memory {
        self.after(Fate::Lost)
    }

    /// Returns the disk as the next process finds it after this one is killed. All written bytes
    /// survive, and unsynced ones are still unsynced. Locks and faults are gone.
    pub fn kill(&self) -> Memory {
        self.after(Fate::Kept)
    }

    /// Makes one operation fail, after `n` more have succeeded.
    pub fn fail_at(&self, n: u64, kind: Fault) {
        self.arm(n, kind, false);
    }

    /// Makes all operations fail after `n` more have succeeded, until [`mend`](Memory::mend). With
    /// `Io`, all of them fail: the disk then stays as a power cut would leave it. With `NoSpace`,
    /// only those that need space fail.
    pub fn fail_from(&self, n: u64, kind: Fault) {
        self.arm(n, kind, true);
    }

    /// Sets whether the disk is full, so that every write fails.
    pub fn no_space(&self, full: bool) {
        self.state().no_space = full;
    }

    /// Ends all faults, including those still to come.
    pub fn mend(&self) {
        let mut state = self.state();
        (state.fault, state.no_space) = (None, false);
    }

    /// Whether an operation may fail: a fault is active, or waits for its operation.
    pub fn may_fail(&self) -> bool {
        let state = self.state();
        state.fault.is_some() || state.no_space
    }

    fn arm(&self, n: u64, kind: Fault, lasts: bool) {
        let mut state = self.state();
        state.fault = Some(Armed { at: state.operations + n, kind, lasts });
    }

    /// Sets whether files that may be written through memory are allocated ahead, as on a real
    /// disk: they end in zeros until they are closed.
    pub fn map_files(&self, maps: bool) {
        self.state().maps_files = maps;
    }

    /// Returns the number of operations, failed ones included.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Returns the counts of open file handles.
    pub fn handles(&self) -> Handles {
        self.state().handles
    }

    /// Allows at most `max` files to be open at once, as in a process with such a limit. The count
    /// of `most` starts again.
    pub fn limit_handles(&self, max: Option<usize>) {
        let mut state = self.state();
        let open = state.handles.open;
        state.handles = Handles { open, most: open, max };
    }

    /// Returns the bytes of a file. None: it does not exist.
    pub fn file(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let file = self.state().names.get(path.as_ref()).cloned()?;
        let bytes = lock_mutex(&file).bytes.clone();
        Some(bytes)
    }

    /// Puts a file in place, durably, with its folder.
    pub fn put_file(&self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) {
        let (path, bytes) = (path.as_ref().to_path_buf(), bytes.into());
        let content = Content { synced_len: bytes.len(), bytes, ..Content::default() };
        let file = Arc::new(Mutex::new(content));
        let mut state = self.state();
        if let Some(dir) = path.parent() {
            state.add_dirs(dir);
            state.dirs_synced.extend(dir.ancestors().map(Path::to_path_buf));
        }
        state.names.insert(path.clone(), Arc::clone(&file));
        state.names_synced.insert(path, file);
    }

    /// Removes a file. The change is durable after its folder's sync.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        let name = path.file_name().ok_or_else(not_found)?.to_string_lossy();
        self.open_folder(path.parent().ok_or_else(not_found)?)?.remove(&name)
    }

    /// Flips one bit of a file. Requires: the file has that byte.
    pub fn flip_bit(&self, path: impl AsRef<Path>, byte: u64, bit: u32) {
        self.damage(path.as_ref(), |content| content.bytes[byte as usize] ^= 1 << (bit % 8));
    }

    /// Truncates a file. Requires: the file exists.
    pub fn truncate(&self, path: impl AsRef<Path>, len: u64) {
        self.damage(path.as_ref(), |content| content.bytes.truncate(len as usize));
    }

    fn damage(&self, path: &Path, damage: impl FnOnce(&mut Content)) {
        let file = self.state().names.get(path).cloned();
        let file = file.unwrap_or_else(|| panic!("{}: no such file to damage", path.display()));
        let mut content = lock_mutex(&file);
        damage(&mut content);
        content.ahead = 0;
        content.synced_len = content.synced_len.min(content.bytes.len());
    }

    /// Counts one more handle. Fails at the limit.
    fn counted(&self, state: &mut MemoryState) -> io::Result<MemoryHandle> {
        let handles = &mut state.handles;
        if handles.max.is_some_and(|max| handles.open >= max) {
            return Err(io::Error::from_raw_os_error(EXHAUSTED[0]));
        }
        handles.open += 1;
        handles.most = handles.most.max(handles.open);
        Ok(MemoryHandle(self.clone()))
    }

    fn state(&self) -> MutexGuard<'_, MemoryState> {
        lock_mutex(&self.state)
    }

    fn after(&self, fate: Fate) -> Memory {
        Memory { state: Arc::new(Mutex::new(after_crash(&self.state(), fate))) }
    }
}

fn apply_change(names: &mut BTreeMap<PathBuf, File>, change: &NameChange) {
    for (path, file) in change {
        match file {
            Some(file) => names.insert(path.clone(), Arc::clone(file)),
            None => names.remove(path),
        };
    }
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl MemoryState {
    /// Counts an operation, and fails if it is supposed to.
    fn step(&mut self, needs_space: bool) -> io::Result<()> {
        let number = self.operations;
        self.operations += 1;
        let armed = self.fault.filter(|armed| number >= armed.at);
        if armed.is_some_and(|armed| !armed.lasts) {
            self.fault = None;
        }
        let fails = |armed: &Armed| !armed.lasts || armed.kind == Fault::Io || needs_space;
        let kind = armed.filter(fails).map(|armed| armed.kind);
        let full = (self.no_space && needs_space).then_some(Fault::NoSpace);
        kind.or(full).map_or(Ok(()), |kind| Err(kind.error()))
    }

    fn has_dir(&self, dir: &Path) -> bool {
        is_root(dir) || self.dirs.contains(dir)
    }

    fn add_dirs(&mut self, dir: &Path) {
        self.dirs.extend(dir.ancestors().map(Path::to_path_buf));
    }

    fn require_dir(&self, dir: &Path) -> io::Result<()> {
        if self.names.contains_key(dir) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        if self.has_dir(dir) { Ok(()) } else { Err(not_found()) }
    }

    /// Whether a file or a folder has this name.
    fn is_taken(&self, path: &Path) -> bool {
        self.names.contains_key(path) || self.has_dir(path)
    }

    fn find(&self, path: &Path) -> io::Result<File> {
        if self.dirs.contains(path) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        self.names.get(path).cloned().ok_or_else(not_found)
    }

    fn change_names(&mut self, change: NameChange) {
        apply_change(&mut self.names, &change);
        self.changes.push(change);
    }
}

/// Whether this folder always exists.
fn is_root(dir: &Path) -> bool {
    dir == Path::new("") || dir == Path::new("/")
}

impl Storage for Memory {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.step(true)?;
        state.add_dirs(dir);
        Ok(())
    }

    fn dir_exists(&self, dir: &Path) -> bool {
        self.state().has_dir(dir)
    }

    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        let dir = if dir == Path::new(".") { Path::new("") } else { dir };
        let mut state = self.state();
        state.step(false)?;
        state.require_dir(dir)?;
        Ok(Arc::new(MemoryFolder { disk: self.clone(), dir: dir.to_path_buf() }))
    }
}

/// A handle of an open file.
struct MemoryHandle(Memory);

impl Drop for MemoryHandle {
    fn drop(&mut self) {
        self.0.state().handles.open -= 1;
    }
}

/// An appender. Handles for syncing share its count.
struct MemoryAppender {
    file: File,
    counted: Arc<MemoryHandle>,
    /// Whether the file is allocated ahead.
    is_mapped: bool,
}

impl Drop for MemoryAppender {
    fn drop(&mut self) {
        if self.is_mapped {
            let mut content = lock_mutex(&self.file);
            content.cut = content.ahead;
            content.cut();
        }
    }
}

/// The unit in which files are allocated ahead.
const AHEAD_BYTES: usize = 4096;

impl Content {
    fn append(&mut self, bytes: &[u8], is_mapped: bool) {
        self.cut();
        self.bytes.extend_from_slice(bytes);
        if is_mapped {
            let len = self.bytes.len();
            self.bytes.resize(len.next_multiple_of(AHEAD_BYTES), 0);
            self.ahead = self.bytes.len() - len;
        }
    }

    /// Cuts off what was allocated ahead.
    fn cut(&mut self) {
        let len = self.bytes.len() - std::mem::take(&mut self.ahead);
        self.bytes.truncate(len);
    }
}

impl Append for MemoryAppender {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.counted.0.state();
        let result = state.step(true);
        let written = match &result {
            Ok(()) => bytes.len(),
            Err(_) => Random(state.operations).below(bytes.len() + 1),
        };
        lock_mutex(&self.file).append(&bytes[..written], self.is_mapped);
        result
    }

    fn sync(&mut self) -> io::Result<()> {
        Syncer::sync(self)
    }

    fn syncer(&self) -> Option<Arc<dyn Syncer>> {
        let (file, counted) = (Arc::clone(&self.file), Arc::clone(&self.counted));
        Some(Arc::new(MemoryAppender { file, counted, is_mapped: false }))
    }
}

impl Syncer for MemoryAppender {
    fn sync(&self) -> io::Result<()> {
        let result = self.counted.0.state().step(true);
        let mut content = lock_mutex(&self.file);
        content.sync_failed |= result.is_err();
        if !content.sync_failed {
            content.synced_len = content.bytes.len() - content.ahead;
        }
        result
    }
}

struct MemoryReader {
    file: File,
    counted: MemoryHandle,
}

impl ReadAt for MemoryReader {
    fn size(&self) -> io::Result<u64> {
        self.counted.0.state().step(false)?;
        Ok(lock_mutex(&self.file).bytes.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.counted.0.state().step(false)?;
        let content = lock_mutex(&self.file);
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let end = start.checked_add(buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        let bytes = content.bytes.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    fn has_name(&self) -> bool {
        self.counted.0.state().names.values().any(|file| Arc::ptr_eq(file, &self.file))
    }
}

#[cfg(test)]
mod tests;
