//! A disk that counts the operations of some work, and a measure of the work's memory.
//! ```text
//! store -> Counted -> Memory          reads, appends, syncs, bytes
//! work  -> used       allocations, and the most bytes at once, without those of the disk
//! ```
//! Invariant: the work runs on the thread that counts.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use allocation_counter::{measure, opt_out};

use super::{Law, Part, breaks};
use crate::shared::environment::Environment;
use crate::storage::io_mode::Access;
use crate::storage::memory::Memory;
use crate::storage::traits::{Append, Folder, FolderWrapper, ReadAt};
use crate::storage::traits::{Storage, StorageWrapper, Syncer};

/// A disk that counts. A clone is the same disk.
#[derive(Clone)]
pub(super) struct Counted {
    disk: Memory,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    reads: AtomicU64,
    read_bytes: AtomicU64,
    appends: AtomicU64,
    appended_bytes: AtomicU64,
    /// Syncs of files and of folders.
    syncs: AtomicU64,
}

impl Counts {
    fn read(&self, bytes: usize) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn appended(&self, bytes: usize) {
        self.appends.fetch_add(1, Ordering::Relaxed);
        self.appended_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn synced(&self) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
    }

    fn now(&self) -> [u64; 5] {
        let Counts { reads, read_bytes, appends, appended_bytes, syncs } = self;
        let all = [reads, read_bytes, appends, appended_bytes, syncs];
        all.map(|count| count.load(Ordering::Relaxed))
    }
}

/// The use of disk and memory by some work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    pub(super) reads: u64,
    pub(super) read_bytes: u64,
    pub(super) appends: u64,
    pub(super) appended_bytes: u64,
    pub(super) syncs: u64,
    pub(super) allocations: u64,
    /// The most memory at once.
    pub(super) peak_bytes: u64,
}

impl Used {
    fn parts(self) -> [Part; 7] {
        [
            ("reads", self.reads, 10),
            ("bytes read", self.read_bytes, 8 << 10),
            ("appends", self.appends, 10),
            ("bytes appended", self.appended_bytes, 8 << 10),
            ("syncs", self.syncs, 10),
            ("allocations", self.allocations, 100),
            ("bytes at once", self.peak_bytes, 64 << 10),
        ]
    }

    /// Returns what is too expensive with ten times as much.
    pub(super) fn breaks(self, large: Used, law: Law) -> Option<String> {
        breaks(self.parts(), large.parts(), law)
    }
}

impl Counted {
    /// Makes an empty disk.
    pub(super) fn new() -> Counted {
        Counted::of(&Memory::new())
    }

    /// Makes a counting disk of an existing one.
    pub(super) fn of(disk: &Memory) -> Counted {
        Counted { disk: disk.clone(), counts: Arc::default() }
    }

    pub(super) fn environment(&self) -> Environment {
        Environment::new().storage(Arc::new(self.clone()))
    }

    /// Returns the bytes that were read so far.
    pub(super) fn read_bytes(&self) -> u64 {
        self.counts.read_bytes.load(Ordering::Relaxed)
    }

    /// Runs some work, and returns what it has used.
    pub(super) fn used<T>(&self, work: impl FnOnce() -> T) -> (T, Used) {
        let (before, mut done) = (self.counts.now(), None);
        let memory = measure(|| done = Some(work()));
        let now = self.counts.now();
        let [reads, read_bytes, appends, appended_bytes, syncs] =
            std::array::from_fn(|nth| now[nth] - before[nth]);
        let (allocations, peak_bytes) = (memory.count_total, memory.bytes_max);
        let used =
            Used { reads, read_bytes, appends, appended_bytes, syncs, allocations, peak_bytes };
        (done.expect("it was done"), used)
    }
}

impl StorageWrapper for Counted {
    fn inner(&self) -> &dyn Storage {
        &self.disk
    }

    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        let folder = self.disk.open_folder(dir)?;
        Ok(Arc::new(CountedFolder { folder, counts: Arc::clone(&self.counts) }))
    }
}

struct CountedFolder {
    folder: Arc<dyn Folder>,
    counts: Arc<Counts>,
}

impl FolderWrapper for CountedFolder {
    fn inner(&self) -> &dyn Folder {
        &*self.folder
    }

    fn create_with(&self, name: &str, access: Access) -> io::Result<Box<dyn Append>> {
        let file = self.folder.create_with(name, access)?;
        Ok(Box::new(CountedAppend { file, counts: Arc::clone(&self.counts) }))
    }

    fn open_with(&self, name: &str, access: Access) -> io::Result<Arc<dyn ReadAt>> {
        let file = self.folder.open_with(name, access)?;
        Ok(Arc::new(CountedFile { file, counts: Arc::clone(&self.counts) }))
    }

    fn sync(&self) -> io::Result<()> {
        self.counts.synced();
        self.folder.sync()
    }
}

struct CountedFile {
    file: Arc<dyn ReadAt>,
    counts: Arc<Counts>,
}

impl ReadAt for CountedFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.counts.read(buffer.len());
        self.file.read_at(offset, buffer)
    }
}

struct CountedAppend {
    file: Box<dyn Append>,
    counts: Arc<Counts>,
}

impl Append for CountedAppend {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.counts.appended(bytes.len());
        let mut appended = Ok(());
        opt_out(|| appended = self.file.append(bytes));
        appended
    }

    fn sync(&mut self) -> io::Result<()> {
        self.counts.synced();
        self.file.sync()
    }

    fn publish(&mut self) -> io::Result<()> {
        self.file.publish()
    }

    fn syncer(&self) -> Option<Arc<dyn Syncer>> {
        let syncer = self.file.syncer()?;
        Some(Arc::new(CountedSyncer { syncer, counts: Arc::clone(&self.counts) }))
    }
}

struct CountedSyncer {
    syncer: Arc<dyn Syncer>,
    counts: Arc<Counts>,
}

impl Syncer for CountedSyncer {
    fn sync(&self) -> io::Result<()> {
        self.counts.synced();
        self.syncer.sync()
    }
}
