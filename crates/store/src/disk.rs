//! The real disk: files of the operating system.
//! ```text
//! append   write at the end       sync       fdatasync
//! read_at  pread                  sync_dir   fsync of the folder
//! lock     flock, until dropped
//! ```
//! Invariant: this file and `disk_*.rs` alone name `std::fs`. Nothing is buffered here: what an
//! append was given is in the kernel when it returns.

use crate::sync::Arc;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::access::{Access, Overlap};
use crate::read_queue::ReadQueue;
use crate::storage::{Append, RawFile, ReadAt, Storage};
use crate::{disk_direct, disk_many};

/// Files of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Storage for Disk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
    }

    fn dir_exists(&self, dir: &Path) -> bool {
        dir.is_dir()
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn Append>> {
        Ok(Box::new(Growing(File::create(path)?)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>> {
        Ok(Arc::new(Opened(File::open(path)?)))
    }

    fn grant(&self, beside: &Path, wanted: Access) -> Access {
        let direct = wanted.direct && matches!(disk_direct::open_reader(beside), Ok(Some(_)));
        Access { direct, overlap: disk_many::granted(wanted.overlap) }
    }

    fn create_with(&self, path: &Path, access: Access) -> io::Result<Box<dyn Append>> {
        if access.direct
            && let Some(writer) = disk_direct::create(path, access.overlap != Overlap::OneByOne)?
        {
            return Ok(Box::new(writer));
        }
        self.create(path)
    }

    fn open_with(&self, path: &Path, access: Access) -> io::Result<Arc<dyn ReadAt>> {
        let direct = if access.direct { disk_direct::open_reader(path)? } else { None };
        let is_direct = direct.is_some();
        let file: Arc<dyn ReadAt> = match direct {
            Some(reader) => Arc::new(reader),
            None => self.open(path)?,
        };
        Ok(disk_many::overlapping(file, is_direct, access.overlap))
    }

    fn read_queue(&self, overlap: Overlap, depth: usize) -> Box<dyn ReadQueue> {
        disk_many::queue(overlap, depth)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let file = OpenOptions::new().create(true).write(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(file)),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn free_space(&self, dir: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(dir)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

struct Growing(File);

impl Append for Growing {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
}

struct Opened(File);

impl ReadAt for Opened {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }

    fn raw(&self) -> Option<RawFile<'_>> {
        Some(RawFile { fd: self.0.as_fd(), align: 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;

    /// What a store asks of any storage; the simulated disk is held to the same.
    fn behaves_like_a_disk(storage: &dyn Storage, root: &Path) {
        let dir = root.join("a").join("b");
        let missing = storage.create(&dir.join("x")).err().expect("no folder yet");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert_eq!(storage.list(&dir).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(!storage.dir_exists(&dir));
        storage.create_dir(&dir).unwrap();
        storage.create_dir(&dir).unwrap();
        assert!(storage.dir_exists(&dir) && storage.dir_exists(&root.join("a")));

        let mut file = storage.create(&dir.join("x")).unwrap();
        file.append(b"tro").unwrap();
        file.append(b"mmel").unwrap();
        file.sync().unwrap();
        let opened = storage.open(&dir.join("x")).unwrap();
        assert_eq!(opened.size().unwrap(), 7);
        let (mut head, mut tail) = ([0; 3], [0; 2]);
        opened.read_many(&mut [(0, &mut head[..]), (5, &mut tail[..])]).unwrap();
        assert_eq!((&head, &tail), (b"tro", b"el"));
        let past_the_end = opened.read_at(6, &mut tail).unwrap_err();
        assert_eq!(past_the_end.kind(), io::ErrorKind::UnexpectedEof);

        storage.link(&dir.join("x"), &dir.join("y")).unwrap();
        let taken = storage.link(&dir.join("x"), &dir.join("y")).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        storage.rename(&dir.join("y"), &dir.join("z")).unwrap();
        storage.remove(&dir.join("x")).unwrap();
        assert_eq!(storage.remove(&dir.join("x")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(storage.open(&dir.join("x")).err().unwrap().kind(), io::ErrorKind::NotFound);
        opened.read_at(0, &mut head).unwrap();
        storage.sync_dir(&dir).unwrap();
        assert_eq!(storage.list(&dir).unwrap(), ["z"]);
        assert_eq!(storage.list(&root.join("a")).unwrap(), ["b"]);
        assert_eq!(storage.open(&dir.join("z")).unwrap().size().unwrap(), 7);
        drop(storage.create(&dir.join("z")).unwrap());
        assert_eq!(storage.open(&dir.join("z")).unwrap().size().unwrap(), 0);

        let held = storage.lock(&dir.join("LOCK")).unwrap();
        let refused = storage.lock(&dir.join("LOCK")).err().expect("locked");
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(held);
        drop(storage.lock(&dir.join("LOCK")).unwrap());
        assert_eq!(storage.list(&dir).unwrap(), ["LOCK", "z"]);
        assert!(storage.free_space(&dir).unwrap() > 0);
    }

    #[test]
    fn the_disk_behaves_like_a_disk() {
        let folder = tempfile::tempdir().unwrap();
        behaves_like_a_disk(&Disk, folder.path());
    }

    const DIRECT: Access = Access { direct: true, overlap: Overlap::Ring };

    /// A disk whose files are all direct, as far as they can be.
    struct Direct;

    impl Storage for Direct {
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
            Disk.create_with(path, DIRECT)
        }
        fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>> {
            Disk.open_with(path, DIRECT)
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

    #[test]
    fn the_disk_behaves_like_a_disk_with_direct_files() {
        for root in [std::env::temp_dir(), Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()] {
            let folder = tempfile::tempdir_in(root).unwrap();
            behaves_like_a_disk(&Direct, folder.path());
        }
    }

    #[test]
    fn the_simulated_disk_behaves_like_a_disk() {
        behaves_like_a_disk(&Memory::new(), Path::new("/root"));
        behaves_like_a_disk(&Memory::new(), Path::new("relative"));
    }
}
