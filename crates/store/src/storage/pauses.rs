//! Points between two steps of a thread, where a test may stop it.
//!
//! Invariant: in release builds these points do nothing.

use crate::sync::Arc;

/// A point between two steps whose order relative to other threads matters (see the ordering rules
/// in `docs/architecture.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PausePoint {
    /// A get has pinned its version, and has not read its sequence number yet.
    GetPinned,
    /// A snapshot or scan has registered its sequence number, and has not pinned a version yet.
    SnapshotRegistered,
    /// A group of batches is in the memtable, and is not visible yet.
    WritesInserted,
    /// A flush has written its table and prepared the guard, and has not installed them yet.
    FlushPrepared,
    /// A merge has copied the registered sequence numbers, and has not read an entry yet.
    MergeStarted,
    /// A merge has written its tables and prepared the guard, and has not installed them yet.
    MergePrepared,
    /// An image of the filter is on disk, and no edit names it yet.
    ImageWritten,
    /// A log is on disk that replaces a failed one, or one that was read back, and no edit names it
    /// yet.
    LogMade,
}

type PauseHook = dyn Fn(PausePoint) + Send + Sync;

/// Calls a test's function at each [`PausePoint`]. In release builds it does nothing.
#[derive(Clone, Default)]
pub struct Pauses {
    hook: Option<Arc<PauseHook>>,
}

impl Pauses {
    /// Calls `hook` on the thread that reaches a point. The thread continues when `hook` returns.
    pub fn new(hook: impl Fn(PausePoint) + Send + Sync + 'static) -> Self {
        Pauses { hook: Some(Arc::new(hook)) }
    }

    #[inline(always)]
    pub(crate) fn at(&self, point: PausePoint) {
        if cfg!(debug_assertions)
            && let Some(hook) = &self.hook
        {
            hook(point);
        }
    }
}
