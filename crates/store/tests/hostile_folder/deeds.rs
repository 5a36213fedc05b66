//! What somebody does to a file that is in use: it stays the same file, and its bytes are others.
//! ```text
//! Meddled -> Disk      at the n-th look at a file (open, length, holes, bytes): first the deed
//! ```
//! Invariant: a deed is done once, where it is said, so that the same numbers do the same.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use trommel::storage::{Access, Disk, Folder, FolderWrapper, ReadAt, Storage, StorageWrapper};

const TERABYTE: u64 = 1 << 40;

/// What is done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    GrowByRubbish,
    GrowByItself,
    GrowByAHole,
    CutAByte,
    CutAHalf,
    Empty,
    Zeros,
    Flips,
}

pub(crate) const DEEDS: [Deed; 8] = [
    Deed::GrowByRubbish,
    Deed::GrowByItself,
    Deed::GrowByAHole,
    Deed::CutAByte,
    Deed::CutAHalf,
    Deed::Empty,
    Deed::Zeros,
    Deed::Flips,
];

impl Deed {
    /// Whether all bytes stay where they were.
    pub(crate) fn keeps_bytes(self) -> bool {
        matches!(self, Deed::GrowByRubbish | Deed::GrowByItself | Deed::GrowByAHole)
    }

    /// Whether it changes bytes all over the file.
    pub(crate) fn spoils_all(self) -> bool {
        matches!(self, Deed::Empty | Deed::Zeros | Deed::Flips)
    }

    pub(crate) fn apply(self, path: &Path) {
        let bytes = fs::read(path).expect("reads");
        let (file, len) = (in_place(path), bytes.len() as u64);
        match self {
            Deed::GrowByRubbish => file.write_all_at(&[0xa5; 3000], len),
            Deed::GrowByItself => file.write_all_at(&bytes, len),
            Deed::GrowByAHole => file.set_len(TERABYTE),
            Deed::CutAByte => file.set_len(len.saturating_sub(1)),
            Deed::CutAHalf => file.set_len(len / 2),
            Deed::Empty => file.set_len(0),
            Deed::Zeros => file.write_all_at(&vec![0; bytes.len()], 0),
            Deed::Flips => {
                let flip = |(at, byte): (usize, u8)| if at % 61 == 7 { !byte } else { byte };
                let flipped: Vec<u8> = bytes.into_iter().enumerate().map(flip).collect();
                file.write_all_at(&flipped, 0)
            }
        }
        .expect("a file system with sparse files");
    }
}

fn in_place(path: &Path) -> File {
    File::options().write(true).open(path).expect("opens")
}

/// Puts other bytes into the same file.
pub(crate) fn rewrite(path: &Path, bytes: &[u8]) {
    let file = in_place(path);
    file.write_all_at(bytes, 0).expect("writes");
    file.set_len(bytes.len() as u64).expect("cuts");
}

/// When what is done, and to which file.
struct Meddling {
    path: PathBuf,
    deed: Deed,
    at: u64,
    looks: u64,
}

/// The real disk, on which somebody meddles with a file while it is looked at.
#[derive(Clone)]
pub(crate) struct Meddled(Arc<Mutex<Meddling>>);

impl Meddled {
    pub(crate) fn new(path: &Path, deed: Deed, at: u64) -> Meddled {
        Meddled(Arc::new(Mutex::new(Meddling { path: path.to_path_buf(), deed, at, looks: 0 })))
    }

    /// Whether it was done: there were so many looks.
    pub(crate) fn is_done(&self) -> bool {
        let plan = self.0.lock().expect("no panic");
        plan.looks > plan.at
    }

    fn look(&self) {
        let mut plan = self.0.lock().expect("no panic");
        // A store may have put another file in its place, or have taken it away.
        if plan.looks == plan.at && plan.path.exists() {
            plan.deed.apply(&plan.path);
        }
        plan.looks += 1;
    }

    fn is_of(&self, name: &str) -> bool {
        self.0.lock().expect("no panic").path.ends_with(name)
    }
}

impl StorageWrapper for Meddled {
    fn inner(&self) -> &dyn Storage {
        &Disk
    }

    fn open_folder(&self, dir: &Path) -> io::Result<Arc<dyn Folder>> {
        Ok(Arc::new(MeddledFolder(self.clone(), Disk.open_folder(dir)?)))
    }
}

struct MeddledFolder(Meddled, Arc<dyn Folder>);

impl FolderWrapper for MeddledFolder {
    fn inner(&self) -> &dyn Folder {
        &*self.1
    }

    fn open_with(&self, name: &str, access: Access) -> io::Result<Arc<dyn ReadAt>> {
        if !self.0.is_of(name) {
            return self.1.open_with(name, access);
        }
        self.0.look();
        Ok(Arc::new(MeddledReader(self.0.clone(), self.1.open_with(name, access)?)))
    }
}

struct MeddledReader(Meddled, Arc<dyn ReadAt>);

impl ReadAt for MeddledReader {
    fn size(&self) -> io::Result<u64> {
        self.0.look();
        self.1.size()
    }

    fn data_after(&self, from: u64) -> io::Result<Option<Range<u64>>> {
        self.0.look();
        self.1.data_after(from)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.look();
        self.1.read_at(offset, buffer)
    }
}
