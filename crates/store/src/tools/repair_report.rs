//! The report of a repair: what it did, what is lost, and what cannot be known.
//! ```text
//! lost      something that is left tells what is missing: a checksum, a manifest, a later log
//! doubts    what would tell is missing or damaged itself, so more may be lost
//! ```
//! Invariant: all was saved if both are empty.

use std::fmt;

use crate::files::log_check::LogCounts;

/// Something that could not be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The file that held it.
    pub file: String,
    /// Where in that file.
    pub offset: u64,
    /// What is wrong there.
    pub what: String,
    /// How many entries, at most. None: unknown.
    pub entries: Option<u64>,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: byte {}: {}", self.file, self.offset, self.what)
    }
}

/// Something that a repair cannot know: more may be missing, and nothing that is left tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Doubt {
    /// The file that would have told, or that may have held something.
    pub file: String,
    /// Where in that file. None: the doubt is about the whole file.
    pub offset: Option<u64>,
    /// What is not known, and why.
    pub what: String,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "{}: byte {offset}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

/// The result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// False: the store is sound, and nothing was touched.
    pub changed: bool,
    /// The manifest could not be trusted, so the tree was rebuilt from the tables.
    pub manifest_rebuilt: bool,
    /// Tables of the repaired tree.
    pub tables: u64,
    /// Entries in them.
    pub entries: u64,
    /// Logs that stay, and their entries that are in no table yet.
    pub logs: LogCounts,
    /// Tables that were rewritten without their damaged blocks.
    pub rewritten: u64,
    /// Writes that were saved from logs into a table.
    pub saved_from_logs: u64,
    /// What could not be saved, as far as anything that is left tells of it.
    pub lost: Vec<Loss>,
    /// What cannot be known: more may be lost. All was saved if this and `lost` are empty.
    pub doubts: Vec<Doubt>,
    /// Anything else that is worth knowing.
    pub notes: Vec<String>,
    /// Files that are in the folder `lost` now.
    pub set_aside: Vec<String>,
}
