//! What flushes and merges: threads, or calls.

use std::fmt;
use std::str::FromStr;

/// What flushes and merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Background {
    /// One thread that flushes, and this many that merge, 1 to 1024; beside them one that syncs in
    /// time and removes files, and sleeps mostly.
    Threads(usize),
    /// Only calls of [`Db::step`](crate::Db::step): for tests and measurements that must be the
    /// same every time. Full memtables wait in memory until then.
    Stepped,
}

impl Background {
    /// More threads than this wait for the disk and for each other alone.
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

    /// A number of threads, or `stepped`.
    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("stepped", _) => Ok(Background::Stepped),
            (_, Ok(count)) => Ok(Background::Threads(count)),
            _ => Err("there are: a number of threads that merge, or stepped".into()),
        }
    }
}
