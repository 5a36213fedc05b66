//! Cold reads: drops files from the operating system's page cache.
//! ```text
//! file -> synced -> "not needed any more" -> the next read of it is one of the disk
//! ```
//! Invariant: the contents of files do not change.

use std::io::ErrorKind;
use std::path::Path;

use crate::error::{LabError, Result};

/// Asks the system to drop the files of a folder and its subfolders from the page cache. Files that
/// vanish meanwhile are skipped. macOS offers no such request and keeps them.
pub(crate) fn forget_files(folder: &Path) -> Result<()> {
    let failed = |path: &Path, error: std::io::Error| {
        let problem = error.to_string();
        LabError::Folder { path: path.to_path_buf(), problem }
    };
    for entry in std::fs::read_dir(folder).map_err(|error| failed(folder, error))? {
        let path = entry.map_err(|error| failed(folder, error))?.path();
        if path.is_dir() {
            forget_files(&path)?;
            continue;
        }
        match forget_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            done => done.map_err(|error| failed(&path, error))?,
        }
    }
    Ok(())
}

fn forget_file(path: &Path) -> std::io::Result<()> {
    let file = std::fs::File::open(path)?;
    file.sync_all()?;
    advise(&file)
}

#[cfg(not(target_vendor = "apple"))]
fn advise(file: &std::fs::File) -> std::io::Result<()> {
    use rustix::fs::{Advice, fadvise};
    Ok(fadvise(file, 0, None, Advice::DontNeed)?)
}

#[cfg(target_vendor = "apple")]
fn advise(_: &std::fs::File) -> std::io::Result<()> {
    Ok(())
}
