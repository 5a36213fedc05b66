//! What runs flushes and merges: background threads, or explicit calls.

use std::fmt;
use std::str::FromStr;

/// What runs flushes and merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Background {
    /// Background threads: one flushes, this many (1 to 1024) merge, and one more syncs on time and
    /// removes files. The last one sleeps most of the time.
    Threads(usize),
    /// No threads: only calls of [`Db::step`](crate::Db::step) flush and merge, so that tests and
    /// measurements are repeatable. Until then, full memtables wait in memory.
    Stepped,
}

impl Background {
    /// More threads than this would only wait for the disk and for each other.
    pub(crate) fn is_sensible(self) -> bool {
        match self {
            Background::Threads(count) => (1..=1024).contains(&count),
            Background::Stepped => true,
        }
    }
}

impl fmt::Display for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Background::Threads(count) => write!(f, "{count}"),
            Background::Stepped => f.write_str("stepped"),
        }
    }
}

impl FromStr for Background {
    type Err = String;

    /// Parses a number of merging threads, or `stepped`.
    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("stepped", _) => Ok(Background::Stepped),
            (_, Ok(count)) => Ok(Background::Threads(count)),
            _ => Err("there are: a number of threads that merge, or stepped".into()),
        }
    }
}
