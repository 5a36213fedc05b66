//! An open folder of the operating system. Its files are reached through its handle, or by a path
//! whose meaning cannot change.
//!
//! Invariant: a name is checked before the system sees it, so no call leaves the folder.

use std::any::Any;
use std::fs::File;
use std::io;
use std::path::Path;

use crate::storage::disk::system::Dir;
use crate::storage::disk::{DiskAppender, DiskReader};
use crate::storage::disk_batch;
use crate::storage::disk_direct::{DirectFile, DirectReader, DirectWriter};
#[cfg(target_os = "linux")]
use crate::storage::disk_mapped::MappedAppender;
use crate::storage::io_mode::{Access, Overlap};
use crate::storage::read_queue::ReadQueue;
use crate::storage::traits::{Append, Folder, ReadAt, check_name};
use crate::sync::Arc;

/// An open folder.
pub(crate) struct DiskFolder(Dir);

impl DiskFolder {
    /// Opens a folder by its path. Links in the path are followed.
    pub(crate) fn open_path(dir: &Path) -> io::Result<DiskFolder> {
        Ok(DiskFolder(Dir::open_path(dir)?))
    }

    /// Creates a file. `AlreadyExists`: the name is taken.
    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        check_name(name)?;
        self.0.create(name)
    }

    /// Opens a file for direct I/O. None: it is impossible or not wanted.
    pub(crate) fn open_direct(
        &self,
        name: &str,
        wanted: Access,
        to_write: bool,
    ) -> io::Result<Option<DirectFile>> {
        check_name(name)?;
        if wanted.direct { self.0.open_direct(name, to_write) } else { Ok(None) }
    }
}

impl Folder for DiskFolder {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = self.0.list()?;
        names.sort_unstable();
        Ok(names)
    }

    fn grant(&self, beside: &str, wanted: Access) -> Access {
        let direct = self.open_direct(beside, wanted, false).is_ok_and(|it| it.is_some());
        Access { direct, overlap: disk_batch::granted(wanted.overlap), mapped: false }
    }

    fn create_with(&self, name: &str, access: Access) -> io::Result<Box<dyn Append>> {
        let buffered = self.create_file(name)?;
        let behind = access.overlap != Overlap::OneByOne;
        match self.open_direct(name, access, true) {
            Ok(Some(direct)) => Ok(Box::new(DirectWriter::new(direct, buffered, behind))),
            #[cfg(target_os = "linux")]
            Ok(None) if access.mapped => Ok(Box::new(MappedAppender::new(buffered))),
            Ok(None) => Ok(Box::new(DiskAppender(Arc::new(buffered)))),
            Err(error) => {
                // The name was free, so this file is the one created here.
                let _ = self.remove(name);
                Err(error)
            }
        }
    }

    fn open_with(&self, name: &str, access: Access) -> io::Result<Arc<dyn ReadAt>> {
        let direct = self.open_direct(name, access, false)?;
        let is_direct = direct.is_some();
        let file: Arc<dyn ReadAt> = match direct {
            Some((file, align)) => Arc::new(DirectReader { file, align }),
            None => Arc::new(DiskReader(self.0.open(name)?)),
        };
        Ok(disk_batch::overlapping(file, is_direct, access.overlap))
    }

    fn read_queue(&self, overlap: Overlap, depth: usize) -> Box<dyn ReadQueue> {
        disk_batch::queue(overlap, depth)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        self.0.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_name(from)?;
        check_name(to)?;
        self.0.rename(from, to)
    }

    fn link(&self, from: &str, into: &dyn Folder, to: &str) -> io::Result<()> {
        check_name(from)?;
        check_name(to)?;
        let into = into.as_any().downcast_ref::<DiskFolder>();
        let into = into.ok_or(io::ErrorKind::CrossesDevices)?;
        self.0.link(from, &into.0, to)
    }

    fn make_folder(&self, name: &str) -> io::Result<Arc<dyn Folder>> {
        check_name(name)?;
        Ok(Arc::new(DiskFolder(self.0.make_dir(name)?)))
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>> {
        check_name(name)?;
        Ok(Box::new(self.0.lock(name)?))
    }

    fn free_space(&self) -> io::Result<u64> {
        self.0.free_space()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
