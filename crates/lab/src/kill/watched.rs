//! The disk of the victim process: reports which flush, merge or image is under way.
//! ```text
//! Db -> Watched -> Disk    a thread makes a table: a flush or a merge begins   | sent
//!                          the same thread writes to the manifest: it ends     | through the pipe
//! ```
//! Invariant: every call and result of the disk is passed on unchanged.

use std::any::Any;
use std::cell::Cell;
use std::io;
use std::path::Path;
use std::sync::Arc;

use trommel::{Access, Append, Disk, Folder, Overlap, ReadAt, ReadQueue, Storage};

use super::wire::{Activity, Message, Teller};

thread_local! {
    /// What this thread is at.
    static UNDER_WAY: Cell<Option<Activity>> = const { Cell::new(None) };
}

/// The disk, watched.
pub(super) struct Watched(pub(super) Arc<Teller>);

struct TellingFolder {
    folder: Arc<dyn Folder>,
    teller: Arc<Teller>,
}

impl TellingFolder {
    /// Tells what making this file says.
    fn made(&self, name: &str) -> io::Result<()> {
        let is_merging = || {
            let thread = std::thread::current();
            thread.name().is_some_and(|name| name.starts_with("trommel-merge"))
        };
        let activity = match name.rsplit('.').next() {
            Some("table") if is_merging() => Activity::Merge,
            Some("table") => Activity::Flush,
            Some("filter") => Activity::Image,
            _ => return Ok(()),
        };
        if UNDER_WAY.get().is_some() {
            return Ok(());
        }
        UNDER_WAY.set(Some(activity));
        self.teller.tell(Message::Begin { activity, number: 0 })
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

    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        let (folder, teller) = (Disk.open_folder(dir)?, Arc::clone(&self.0));
        Ok(Arc::new(TellingFolder { folder, teller }))
    }
}

impl Folder for TellingFolder {
    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Append>> {
        self.made(name)?;
        let file = self.folder.create(name)?;
        if name.starts_with("MANIFEST") {
            return Ok(Box::new(WatchedManifest { file, teller: Arc::clone(&self.teller) }));
        }
        Ok(file)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn ReadAt>> {
        self.folder.open(name)
    }

    fn grant(&self, beside: &str, wanted: Access) -> Access {
        self.folder.grant(beside, wanted)
    }

    fn create_with(&self, name: &str, access: Access) -> io::Result<Box<dyn Append>> {
        self.made(name)?;
        self.folder.create_with(name, access)
    }

    fn open_with(&self, name: &str, access: Access) -> io::Result<Arc<dyn ReadAt>> {
        self.folder.open_with(name, access)
    }

    fn read_queue(&self, overlap: Overlap, depth: usize) -> Box<dyn ReadQueue> {
        self.folder.read_queue(overlap, depth)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.folder.rename(from, to)
    }

    fn link(&self, from: &str, into: &dyn Folder, to: &str) -> io::Result<()> {
        self.folder.link(from, into, to)
    }

    fn make_folder(&self, name: &str) -> io::Result<Arc<dyn Folder>> {
        self.folder.make_folder(name)
    }

    fn sync(&self) -> io::Result<()> {
        self.folder.sync()
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>> {
        self.folder.lock(name)
    }

    fn free_space(&self) -> io::Result<u64> {
        self.folder.free_space()
    }

    fn as_any(&self) -> &dyn Any {
        self.folder.as_any()
    }
}
