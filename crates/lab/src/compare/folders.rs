//! The folders of measured stores.
//! ```text
//! make_empty -> a store is made, filled, measured -> remove
//! ```
//! Invariant: a folder that has files already belongs to someone else and stays as it is.

use std::path::Path;

use crate::error::{LabError, Result};

/// Creates a folder, or accepts an empty one. An error if it has files.
pub(crate) fn make_empty(folder: &Path) -> Result<()> {
    let refused = |problem: String| LabError::Folder { path: folder.to_path_buf(), problem };
    if std::fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some()) {
        return Err(refused("the folder is not empty: bench makes its stores anew".into()));
    }
    std::fs::create_dir_all(folder).map_err(|error| refused(error.to_string()))
}

pub(crate) fn remove(folder: &Path) -> Result<()> {
    std::fs::remove_dir_all(folder).map_err(|error| {
        let problem = error.to_string();
        LabError::Folder { path: folder.to_path_buf(), problem }
    })
}
