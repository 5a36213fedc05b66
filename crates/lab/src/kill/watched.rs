//! The disk of the victim process. It reports which flush, merge or image is under way.
//! ```text
//! Db -> Watched -> Disk    a thread makes a table: a flush or a merge begins   | sent
//!                          the same thread writes to the manifest: it ends     | through the pipe
//! ```
//! Invariant: every call and result of the disk is passed on unchanged.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::sync::Arc;

use trommel::storage::{Access, Append, Disk, Folder, FolderWrapper, Storage, StorageWrapper};

use super::wire::{Activity, Message, Teller};

thread_local! {
    /// The activity of this thread.
    static UNDER_WAY: Cell<Option<Activity>> = const { Cell::new(None) };
}

/// The disk, watched.
pub(super) struct Watched(pub(super) Arc<Teller>);

struct TellingFolder {
    folder: Arc<dyn Folder>,
    teller: Arc<Teller>,
}

impl TellingFolder {
    /// Reports the activity that the creation of this file begins.
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

impl StorageWrapper for Watched {
    fn inner(&self) -> &dyn Storage {
        &Disk
    }

    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        let (folder, teller) = (Disk.open_folder(dir)?, Arc::clone(&self.0));
        Ok(Arc::new(TellingFolder { folder, teller }))
    }
}

impl FolderWrapper for TellingFolder {
    fn inner(&self) -> &dyn Folder {
        &*self.folder
    }

    fn create_with(&self, name: &str, access: Access) -> io::Result<Box<dyn Append>> {
        self.made(name)?;
        let file = self.folder.create_with(name, access)?;
        if name.starts_with("MANIFEST") {
            return Ok(Box::new(WatchedManifest { file, teller: Arc::clone(&self.teller) }));
        }
        Ok(file)
    }
}
