//! The interface between transactions that are measured and the stores that run them.
//! ```text
//! Engine::open_transactional(folder, filter, settings, spaces) -> TransactionalStore
//!     attempt(work)      begin -> work: get, scan, put -> commit     Committed, or Conflict
//!     put_if_absent, put                                             one key, without one
//! ```
//! Invariant: a store runs `work` once per attempt. The benchmark itself retries, so every store
//! gets the same number of tries and pauses.

use crate::compare::peer::PeerCounts;
use crate::error::Result;

/// A key space, by its place among the names with which the store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space(pub usize);

/// The outcome of one attempt to run a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// All its writes are visible.
    Committed,
    /// Other transactions wrote what it read; none of its writes are visible.
    Conflict,
    /// Its work chose not to commit; none of its writes are visible.
    RolledBack,
}

/// The work of a transaction. It returns false to roll back.
pub type TransactionWork<'a> = dyn FnMut(&dyn OpenTransaction) -> Result<bool> + 'a;

/// An open transaction. It reads from a snapshot beneath its own writes. Its commit fails if others
/// have since written a key that it got.
pub trait OpenTransaction {
    /// Looks up a key. Returns whether it is there, and lends its value to `seen`.
    fn get(&self, space: Space, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool>;
    /// Lends the first `limit` entries within the bounds `[from, before)`; without `before`, up to
    /// the last key. Returns their number. The store's settings decide whether they count as read.
    fn scan(
        &self,
        space: Space,
        bounds: (&[u8], Option<&[u8]>),
        limit: usize,
        seen: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize>;
    /// Sets the value of a key.
    fn put(&self, space: Space, key: &[u8], value: &[u8]) -> Result<()>;
}

/// A store with transactions. Several threads may call it at once.
pub trait TransactionalStore: Sync {
    /// All settings and the engine's version, as text.
    fn settings(&self) -> String;
    /// Sets the value of a key unconditionally.
    fn put(&self, space: Space, key: &[u8], value: &[u8]) -> Result<()>;
    /// Sets the value of a key that has none, in the engine's best way. False: the key has a value,
    /// and nothing was written.
    fn put_if_absent(&self, space: Space, key: &[u8], value: &[u8]) -> Result<bool>;
    /// Runs a transaction once.
    fn attempt(&self, work: &mut TransactionWork<'_>) -> Result<Attempt>;
    /// Flushes the memtables.
    fn flush(&self) -> Result<()>;
    /// Waits until no background work is left.
    fn settle(&self) -> Result<()>;
    /// Returns what the store has counted. None: it does not count.
    fn counts(&self) -> Option<PeerCounts> {
        None
    }
    /// Closes the store.
    fn close(self: Box<Self>) -> Result<()>;
}
