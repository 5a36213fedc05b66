//! When a write is safe on disk.
//! ```text
//! always                 put --> log --> disk --> returns
//! 1 (seconds), never     put --> log --> returns
//! ```
//! Invariant: a text is one policy, and a policy's text is read as itself.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// When a write is safe on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncPolicy {
    /// Before it returns: it survives any crash. Writers that wait together share one sync.
    Always,
    /// A sync begins before an acknowledged write is this old, whatever its writer and the threads
    /// wait for. A crash loses at most the last writes, never one in the middle. In stepped mode
    /// only another write syncs one that is this old.
    Interval(Duration),
    /// When its memtable becomes full. A crash loses at most the last writes, never one in the
    /// middle.
    Never,
}

impl fmt::Display for SyncPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SyncPolicy::Always => f.write_str("always"),
            SyncPolicy::Interval(interval) => write!(f, "{}", interval.as_secs_f64()),
            SyncPolicy::Never => f.write_str("never"),
        }
    }
}

impl FromStr for SyncPolicy {
    type Err = String;

    /// `always`, `never`, or seconds like 0.5.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "always" => Ok(SyncPolicy::Always),
            "never" => Ok(SyncPolicy::Never),
            seconds => {
                let interval = seconds.parse().ok().map(Duration::try_from_secs_f64);
                interval
                    .and_then(|interval| interval.ok().map(SyncPolicy::Interval))
                    .ok_or_else(|| "there are: always, never, or seconds like 0.5".into())
            }
        }
    }
}
