//! The report of a repair: what it did, what is lost, and what cannot be known.
//! ```text
//! lost      a checksum, a manifest or a later log shows that something is missing
//! doubts    whatever could show it is missing or damaged itself, so more may be lost
//! ```
//! Invariant: all was saved if both are empty.

use std::collections::BTreeSet;
use std::fmt;

use crate::files::log_check::LogCounts;

/// Something that could not be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The file that held it.
    pub file: String,
    /// Its offset in that file.
    pub offset: u64,
    /// What is wrong there.
    pub what: String,
    /// The most entries that are lost. None: unknown.
    pub entries: Option<u64>,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: byte {}: {}", self.file, self.offset, self.what)
    }
}

/// Something that a repair cannot know: more may be lost without a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Doubt {
    /// The file that could have told, or that may have held something.
    pub file: String,
    /// The offset in that file. None: the doubt is about the whole file.
    pub offset: Option<u64>,
    /// What is unknown, and why.
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
    /// True: the manifest could not be trusted, so the trees were rebuilt from tables.
    pub manifest_rebuilt: bool,
    /// The number of tables in the repaired store.
    pub tables: u64,
    /// Entries in these tables.
    pub entries: u64,
    /// The remaining logs, and their entries that are in no table yet.
    pub logs: LogCounts,
    /// The number of tables that were rewritten without their damaged blocks.
    pub rewritten: u64,
    /// The number of writes that were saved from logs into tables.
    pub saved_from_logs: u64,
    /// What could not be saved, as far as anything left shows it.
    pub lost: Vec<Loss>,
    /// What cannot be known: more may be lost. All was saved if this and `lost` are empty.
    pub doubts: Vec<Doubt>,
    /// Anything else that is worth knowing.
    pub notes: Vec<String>,
    /// The files that are now in the subfolder `lost`.
    pub set_aside: Vec<String>,
    /// The value files that lost values are to be in.
    pub(crate) lost_in_values: BTreeSet<u64>,
}
