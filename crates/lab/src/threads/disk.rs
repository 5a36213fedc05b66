//! The real disk, watched and slowed. It measures how long bytes of logs wait for a sync, and can
//! delay the first append of tables.
//! ```text
//! 000007.wal   append .. append .. sync begins        the age of the oldest unsynced append
//! 000008.table zzzzzz append .. append                each begins after a while
//! ```
//! Invariants: every call and result of the disk is passed on unchanged. A sync counts from its
//! begin: its duration is not the store's doing.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use trommel::storage::{
    Access, Append, Disk, Folder, FolderWrapper, Storage, StorageWrapper, Syncer,
};

/// The folder of the watched store.
pub(super) const STORE: &str = "store";

/// The real disk, watched.
#[derive(Clone, Default)]
pub(super) struct WatchedDisk {
    watch: Arc<Watch>,
}

#[derive(Default)]
struct Watch {
    /// For each log with unsynced bytes, since when it has had them.
    unsynced: Mutex<HashMap<String, Instant>>,
    /// The delay of each table's first append, in milliseconds.
    delay: AtomicU64,
}

impl WatchedDisk {
    /// Delays each new table by this time.
    pub(super) fn slow_down(&self, delay: Duration) {
        self.watch.delay.store(delay.as_millis() as u64, Ordering::Relaxed);
    }

    /// Returns how long the oldest unsynced bytes of a log have waited for a sync to begin.
    pub(super) fn unsynced_for(&self) -> Duration {
        let oldest = self.watch.unsynced().values().min().copied();
        oldest.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Forgets unsynced logs: no store is open, so no more syncs will come.
    pub(super) fn forget(&self) {
        self.watch.unsynced().clear();
    }
}

struct TimedFolder {
    folder: Arc<dyn Folder>,
    watch: Arc<Watch>,
}

impl TimedFolder {
    fn watched(&self, name: &str, file: Box<dyn Append>) -> Box<dyn Append> {
        let watch = Arc::clone(&self.watch);
        match name.rsplit('.').next() {
            Some("wal") => Box::new(Log { file, name: name.into(), watch }),
            Some("table") => Box::new(SlowTable { file, watch, has_begun: false }),
            _ => file,
        }
    }
}

impl Watch {
    fn unsynced(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Log {
    file: Box<dyn Append>,
    name: String,
    watch: Arc<Watch>,
}

impl Append for Log {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let appended = self.file.append(bytes);
        // Noted only now: a sync that runs concurrently need not cover this append.
        self.watch.unsynced().entry(self.name.clone()).or_insert_with(Instant::now);
        appended
    }

    fn sync(&mut self) -> io::Result<()> {
        self.watch.unsynced().remove(&self.name);
        self.file.sync()
    }

    fn syncer(&self) -> Option<Arc<dyn Syncer>> {
        let (name, watch) = (self.name.clone(), Arc::clone(&self.watch));
        Some(Arc::new(LogSyncer { syncer: self.file.syncer()?, name, watch }))
    }
}

/// Syncs a log from another thread than the one that appends.
struct LogSyncer {
    syncer: Arc<dyn Syncer>,
    name: String,
    watch: Arc<Watch>,
}

impl Syncer for LogSyncer {
    fn sync(&self) -> io::Result<()> {
        self.watch.unsynced().remove(&self.name);
        self.syncer.sync()
    }
}

struct SlowTable {
    file: Box<dyn Append>,
    watch: Arc<Watch>,
    has_begun: bool,
}

impl Append for SlowTable {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let start = Instant::now();
        let delay = || Duration::from_millis(self.watch.delay.load(Ordering::Relaxed));
        // The delay may be switched off at any time.
        while !self.has_begun && start.elapsed() < delay() {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.has_begun = true;
        self.file.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }
}

impl StorageWrapper for WatchedDisk {
    fn inner(&self) -> &dyn Storage {
        &Disk
    }

    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        let (folder, watch) = (Disk.open_folder(dir)?, Arc::clone(&self.watch));
        // There is no promise about syncs of checkpoints' logs.
        if !dir.ends_with(STORE) {
            return Ok(folder);
        }
        Ok(Arc::new(TimedFolder { folder, watch }))
    }
}

impl FolderWrapper for TimedFolder {
    fn inner(&self) -> &dyn Folder {
        &*self.folder
    }

    fn create_with(&self, name: &str, access: Access) -> io::Result<Box<dyn Append>> {
        Ok(self.watched(name, self.folder.create_with(name, access)?))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        // A removed log needs no sync: its entries are in tables.
        self.watch.unsynced().remove(name);
        self.folder.remove(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_unsynced_log_is_known() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let disk = WatchedDisk::default();
        let (storage, dir): (&dyn Storage, _) = (&disk, root.path().join(STORE));
        storage.create_dir(&dir).expect("made");
        let folder = storage.open_folder(&dir).expect("opened");
        let mut log = folder.create("000001.wal").expect("made");
        assert_eq!(disk.unsynced_for(), Duration::ZERO);
        log.append(b"a").expect("written");
        std::thread::sleep(Duration::from_millis(2));
        assert!(disk.unsynced_for() >= Duration::from_millis(2));
        log.sync().expect("synced");
        assert_eq!(disk.unsynced_for(), Duration::ZERO);
        log.append(b"b").expect("written");
        folder.remove("000001.wal").expect("removed");
        assert_eq!(disk.unsynced_for(), Duration::ZERO);
    }
}
