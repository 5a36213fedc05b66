//! When a write becomes durable.
//! ```text
//! always                 put --> log --> disk --> returns
//! 1 (seconds), never     put --> log --> returns
//! ```
//! Invariant: a text means one policy, and a policy's text is read as that policy.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// When a write becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncPolicy {
    /// Before the call returns, so the write survives any crash. Writers that wait together share
    /// one sync.
    Always,
    /// A sync begins before an acknowledged write reaches this age, whatever its writer and the
    /// threads wait for. A crash loses at most the latest writes, never one in the middle. In
    /// stepped mode, only another write syncs one of this age.
    Interval(Duration),
    /// When its memtable is full. A crash loses at most the latest writes, never one in the middle.
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

    /// Parses `always`, `never`, or a number of seconds like 0.5.
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
