//! How an opening recovered the global filter.
//! ```text
//! image of each part + newer tables     all fit: image       some do not: mixed
//!     none does: rebuilt
//! ```
//! Invariant: a recovered filter knows every run of the tree, whatever its source.

use std::fmt;

/// How an opening recovered the global filter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterRecovery {
    /// There was nothing to recover: another guard, or no runs.
    Nothing,
    /// From the images, and from tables that are newer than these.
    Image {
        /// The number of tables that were read for this.
        replayed_tables: u64,
    },
    /// Some parts from their images, the others from all runs.
    Mixed {
        /// The number of parts.
        parts: u64,
        /// The number of parts that were rebuilt from the runs.
        rebuilt: u64,
        /// The number of tables that were read for the other parts.
        replayed_tables: u64,
        /// Why the first unused image was not used.
        why: String,
    },
    /// From all runs.
    Rebuilt {
        /// Why no image was used.
        why: String,
    },
}

impl fmt::Display for FilterRecovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterRecovery::Nothing => f.write_str("none"),
            FilterRecovery::Image { replayed_tables } => {
                f.write_str("image")?;
                fmt_replayed(*replayed_tables, f)
            }
            FilterRecovery::Mixed { parts, rebuilt, replayed_tables, why } => {
                f.write_str("image")?;
                fmt_replayed(*replayed_tables, f)?;
                write!(f, "; {rebuilt} of {parts} parts rebuilt: {why}")
            }
            FilterRecovery::Rebuilt { why } => write!(f, "rebuilt: {why}"),
        }
    }
}

fn fmt_replayed(tables: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match tables {
        0 => Ok(()),
        1 => f.write_str(" and 1 replayed table"),
        _ => write!(f, " and {tables} replayed tables"),
    }
}
