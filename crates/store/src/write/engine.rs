//! What changes an open store: its writers, and its background work.
//! ```text
//! writers     commit (one leader at a time)  -> memtable, log
//! background  flush, merge                   -> installer of the tree
//! ```
//! Invariant: readers have the tree alone, and never this.

use std::ops::Deref;

use crate::files::store_folder::FolderLock;
use crate::plan::run_limits::RunLimits;
use crate::sync::{Arc, Condvar, Mutex};
use crate::tree::open_tree::OpenTree;
use crate::tree::rate_limiter::RateLimiter;
use crate::write::commit::Commit;
use crate::write::work::Work;

/// An open store that can be written to. What it shares with readers is reached as if it were its
/// own.
pub(crate) struct Engine {
    pub(crate) tree: Arc<OpenTree>,
    pub(crate) commit: Commit,
    pub(crate) work: Mutex<Work>,
    /// Signalled when work appears, ends or fails.
    pub(crate) work_changed: Condvar,
    /// Keeps merges to their rate.
    pub(crate) rate_limiter: RateLimiter,
    /// Where writers are slowed down and stopped.
    pub(crate) run_limits: RunLimits,
    /// Held while the store is open.
    pub(crate) lock: Mutex<Option<FolderLock>>,
}

impl Engine {
    /// Requires: `lock` is that of the folder that the tree is in.
    pub(crate) fn new(tree: OpenTree, commit: Commit, lock: FolderLock) -> Self {
        let options = &tree.table_files.options;
        Engine {
            commit,
            work: Mutex::default(),
            work_changed: Condvar::new(),
            rate_limiter: RateLimiter::new(options.merge_bytes_per_second),
            run_limits: RunLimits::of(options),
            lock: Mutex::new(Some(lock)),
            tree: Arc::new(tree),
        }
    }
}

impl Deref for Engine {
    type Target = OpenTree;

    fn deref(&self) -> &OpenTree {
        &self.tree
    }
}
