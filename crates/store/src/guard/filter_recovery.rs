//! Where a global filter came from when the store was opened.
//! ```text
//! image of each part + newer tables     all fit: image       some do not: mixed
//!     none does: rebuilt
//! ```
//! Invariant: whatever it came from, it knows every run of the tree.

use std::fmt;

/// Where a global filter came from when the store was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterRecovery {
    /// There was none to recover: another guard, or no runs.
    Nothing,
    /// From its image, and from tables that are newer than that.
    Image {
        /// How many tables were read for it.
        replayed_tables: u64,
    },
    /// Some parts from their images, others from all runs.
    Mixed {
        /// How many parts there are.
        parts: u64,
        /// How many of them were read from the runs.
        rebuilt: u64,
        /// How many tables were read for the others.
        replayed_tables: u64,
        /// What was wrong with the first image that was not used.
        why: String,
    },
    /// From all runs.
    Rebuilt {
        /// What was wrong with the image.
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
