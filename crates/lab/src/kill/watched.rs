//! The disk of a process that is to be killed: tells which flush, merge or image is under way.
//! ```text
//! Db -> Watched -> Disk       a thread makes a table: a flush or a merge begins       | told through the pipe
//!                             the same thread has written to the manifest: it ends    |
//! ```
//! Invariant: what the disk does and says is passed on as it is.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::sync::Arc;

use trommel::{Access, Append, Disk, Overlap, ReadAt, ReadQueue, Storage};

use super::wire::{Activity, Message, Teller};

thread_local! {
    /// What this thread is at.
    static UNDER_WAY: Cell<Option<Activity>> = const { Cell::new(None) };
}

/// The disk, watched.
pub(super) struct Watched(pub(super) Arc<Teller>);

impl Watched {
    /// Tells what making this file says.
    fn made(&self, path: &Path) -> io::Result<()> {
        let is_merging = || {
            let thread = std::thread::current();
            thread.name().is_some_and(|name| name.starts_with("trommel-merge"))
        };
        let activity = match path.extension().and_then(|ending| ending.to_str()) {
            Some("table") if is_merging() => Activity::Merge,
            Some("table") => Activity::Flush,
            Some("filter") => Activity::Image,
            _ => return Ok(()),
        };
        if UNDER_WAY.get().is_some() {
            return Ok(());
        }
        UNDER_WAY.set(Some(activity));
        self.0.tell(Message::Begin { activity, number: 0 })
    }
}

struct WatchedManifest {
    file: Box<dyn Append>,
    teller: Arc<Teller>,
}

impl Append for WatchedManifest {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()?;
        match UNDER_WAY.take() {
            Some(activity) => self.teller.tell(Message::End { activity, number: 0 }),
            None => Ok(()),
        }
    }
}

impl Storage for Watched {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        Disk.create_dir(dir)
    }

    fn dir_exists(&self, dir: &Path) -> bool {
        Disk.dir_exists(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        Disk.list(dir)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn Append>> {
        self.made(path)?;
        let file = Disk.create(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("MANIFEST") {
            return Ok(Box::new(WatchedManifest { file, teller: Arc::clone(&self.0) }));
        }
        Ok(file)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>> {
        Disk.open(path)
    }

    fn grant(&self, beside: &Path, wanted: Access) -> Access {
        Disk.grant(beside, wanted)
    }

    fn create_with(&self, path: &Path, access: Access) -> io::Result<Box<dyn Append>> {
        self.made(path)?;
        Disk.create_with(path, access)
    }

    fn open_with(&self, path: &Path, access: Access) -> io::Result<Arc<dyn ReadAt>> {
        Disk.open_with(path, access)
    }

    fn read_queue(&self, overlap: Overlap, depth: usize) -> Box<dyn ReadQueue> {
        Disk.read_queue(overlap, depth)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.link(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        Disk.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        Disk.lock(path)
    }

    fn free_space(&self, dir: &Path) -> io::Result<u64> {
        Disk.free_space(dir)
    }
}
