//! The errors of measurements.

use std::path::PathBuf;

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, LabError>;

/// What went wrong, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The store that is measured failed.
    #[error(transparent)]
    Store(#[from] trommel::Error),
    /// A file of keys is unusable. Give another one.
    #[error("{path}: {problem}", path = path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A store of another engine failed.
    #[error("{0}")]
    Peer(String),
    /// A folder for the measured stores cannot be made or used.
    #[error("{path}: {problem}", path = path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The plan asks for something that cannot be measured. Change the plan.
    #[error("{0}")]
    Plan(String),
    /// A process that writes until it is killed found an error, or its listener is gone.
    #[error("{0}")]
    Victim(String),
}
