//! What happens in a Trommel store, for programs that log with [`tracing`].
//! ```text
//! flush, merge, stalled writer, failure --> Tracing --> the subscriber, target "trommel"
//! ```
//!
//! ```
//! use std::sync::Arc;
//! use trommel::Environment;
//! use trommel::{Db, Options};
//!
//! # fn main() -> trommel::Result<()> {
//! # let folder = tempfile::tempdir().expect("a temporary folder");
//! let environment = Environment::new().listener(Arc::new(trommel_tracing::Tracing));
//! let db = Db::open_with(folder.path(), Options::new(), environment)?;
//! db.close()
//! # }
//! ```

use tracing::{debug, error, info, warn};
use trommel::events::{Event, Listener};

/// Hands each event to the subscriber of `tracing`, with the target `trommel`: flushes and merges
/// at the level debug, stopped writers as warnings, failures as errors, the rest as information.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tracing;

impl Listener for Tracing {
    fn event(&self, event: &Event<'_>) {
        match *event {
            Event::Opened { path, runs, time } => {
                info!(target: "trommel", path = %path.display(), runs, ?time, "opened");
            }
            Event::Flushed { bytes, time } => debug!(target: "trommel", bytes, ?time, "flushed"),
            Event::Merged { runs, bytes, time } => {
                debug!(target: "trommel", runs, bytes, ?time, "merged");
            }
            Event::WriterSlowed { time } => info!(target: "trommel", ?time, "writer slowed down"),
            Event::WritersStopped => warn!(target: "trommel", "writers are stopped"),
            Event::WritersGoOn { time } => warn!(target: "trommel", ?time, "writers go on"),
            Event::Failed { work, error } => {
                error!(target: "trommel", work, %error, "failed, and will be tried again");
            }
            Event::Closed { path } => {
                info!(target: "trommel", path = %path.display(), "closed");
            }
            // Events that this version does not know.
            _ => debug!(target: "trommel", ?event, "event"),
        }
    }
}

/// The README's example compiles and runs as it stands.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
