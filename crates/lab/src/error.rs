//! What can go wrong while measuring.

use std::path::PathBuf;

/// The result of everything that measures.
pub type Result<T> = std::result::Result<T, LabError>;

/// What went wrong, told apart by what the caller can do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The store that is measured failed.
    #[error(transparent)]
    Store(#[from] trommel::Error),
    /// A file of keys cannot be used. Give another one.
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
    /// What was asked for cannot be measured. Ask for something else.
    #[error("{0}")]
    Plan(String),
    /// A process that writes until it is killed has found an error, or its listener is gone.
    #[error("{0}")]
    Victim(String),
}
