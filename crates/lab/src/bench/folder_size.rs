//! The current size and the peak size of a folder.
//! ```text
//! look, wait, look, wait ...      the more files there are, the longer a look and the next wait
//! ```
//! Invariant: looking takes a small share of the time, so that it does not slow down what is
//! measured.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The least time between two looks.
const WAIT: Duration = Duration::from_millis(20);
/// Looking takes at most one part in this many of the time.
const SHARE: u32 = 50;

/// Tracks the size of a folder.
pub(crate) struct FolderSize {
    folder: PathBuf,
    peak: u64,
    last: u64,
}

impl FolderSize {
    pub(crate) fn new(folder: &Path) -> Self {
        FolderSize { folder: folder.to_path_buf(), peak: 0, last: 0 }
    }

    /// Looks, then waits long enough to keep looking cheap.
    pub(crate) fn look_and_wait(&mut self) {
        let start = Instant::now();
        self.look();
        std::thread::sleep(WAIT.max(start.elapsed() * SHARE));
    }

    /// Reads the size of the folder.
    pub(crate) fn look(&mut self) {
        self.last = bytes(&self.folder);
        self.peak = self.peak.max(self.last);
    }

    /// Returns the peak size so far, in bytes.
    pub(crate) fn peak(&self) -> u64 {
        self.peak
    }

    /// Returns the size at the last look, in bytes.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }
}

/// Returns the bytes of a folder and its subfolders. Files that vanish meanwhile do not count.
pub(crate) fn bytes(folder: &Path) -> u64 {
    let Ok(files) = std::fs::read_dir(folder) else { return 0 };
    let size = |file: std::fs::DirEntry| {
        let about = file.metadata().ok()?;
        Some(if about.is_dir() { bytes(&file.path()) } else { about.len() })
    };
    files.filter_map(|file| size(file.ok()?)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_stays_when_files_go() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut size = FolderSize::new(folder.path());
        size.look();
        assert_eq!((size.peak(), size.last()), (0, 0));
        let file = |name: &str| folder.path().join(name);
        std::fs::write(file("one"), [0; 100]).expect("writes");
        std::fs::write(file("two"), [0; 50]).expect("writes");
        size.look();
        assert_eq!((size.peak(), size.last()), (150, 150));
        std::fs::remove_file(file("one")).expect("removes");
        size.look();
        assert_eq!((size.peak(), size.last()), (150, 50));
        std::fs::create_dir(file("inner")).expect("made");
        std::fs::write(file("inner/three"), [0; 7]).expect("writes");
        assert_eq!(bytes(folder.path()), 57, "with the folders in it, and nothing for themselves");
        let mut nowhere = FolderSize::new(Path::new("nowhere"));
        nowhere.look();
        assert_eq!(nowhere.peak(), 0);
    }
}
