//! What changes an open store: its writers, and its background work.
//! ```text
//! writers     commit (one leader at a time)  -> memtable, log
//! background  flush, merge                   -> installer of the tree
//! ```
//! Invariant: readers have the tree alone, and never this.

use std::ops::Deref;

use crate::plan::run_limits::RunLimits;
use crate::sync::{Arc, Condvar, Mutex};
use crate::tree::open_tree::OpenTree;
use crate::tree::rate_limiter::Pacer;
use crate::write::commit::Commit;
use crate::write::workers::Work;

/// An open store that can be written to. What it shares with readers is reached as if it were its own.
pub(crate) struct Engine {
    pub(crate) tree: Arc<OpenTree>,
    pub(crate) commit: Commit,
    pub(crate) work: Mutex<Work>,
    /// Signalled when work appears, ends or fails.
    pub(crate) work_changed: Condvar,
    /// Keeps merges to their rate.
    pub(crate) pacer: Pacer,
    /// Where writers are slowed down and stopped.
    pub(crate) run_limits: RunLimits,
    /// Held while the store is open.
    pub(crate) lock: Mutex<Option<Box<dyn Send + Sync>>>,
}

impl Deref for Engine {
    type Target = OpenTree;

    fn deref(&self) -> &OpenTree {
        &self.tree
    }
}
