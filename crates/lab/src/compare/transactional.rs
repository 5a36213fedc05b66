//! The seam between transactions that are measured and the stores that run them.
//! ```text
//! Engine::open_transactional(folder, filter, settings, spaces) -> TransactionalStore
//!     attempt(work)      begin -> work: get, scan, put -> commit     Committed, or Conflict
//!     put_if_absent, put                                             one key, without one
//! ```
//! Invariant: a store runs `work` once in an attempt; who measures tries again, so that every store
//! is given as many tries and pauses.

use crate::compare::peer::PeerCounts;
use crate::error::Result;

/// A key space, by its place among the names with which a store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space(pub usize);

/// How an attempt to run a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// All that it wrote is there.
    Committed,
    /// Others have written what it read; nothing of it is there.
    Conflict,
    /// It did not want to commit; nothing of it is there.
    RolledBack,
}

/// What a transaction does; false: it is to be rolled back.
pub type TransactionWork<'a> = dyn FnMut(&dyn OpenTransaction) -> Result<bool> + 'a;

/// A transaction that has begun. It reads one moment, beneath its own writes. Its commit fails if
/// a key that it got has been written since by others.
pub trait OpenTransaction {
    /// Whether the key is there; its value is shown, not copied.
    fn get(&self, space: Space, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool>;
    /// Shows the first `limit` entries from `from` on, before `before` if there is such a bound;
    /// tells how many there were. Whether they count as read, the store's settings say.
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

/// A store with transactions. All calls may come from several threads.
pub trait TransactionalStore: Sync {
    /// Everything that was set, and the engine's version, as text.
    fn settings(&self) -> String;
    /// Sets the value of a key, whatever it has.
    fn put(&self, space: Space, key: &[u8], value: &[u8]) -> Result<()>;
    /// Sets the value of a key that has none, as the engine does that best. False: it has one, and
    /// nothing was written.
    fn put_if_absent(&self, space: Space, key: &[u8], value: &[u8]) -> Result<bool>;
    /// Runs a transaction once.
    fn attempt(&self, work: &mut TransactionWork<'_>) -> Result<Attempt>;
    /// Writes what is in memory to disk.
    fn flush(&self) -> Result<()>;
    /// Waits until nothing is left to be done in the background.
    fn settle(&self) -> Result<()>;
    /// What it has counted. None: it does not tell.
    fn counts(&self) -> Option<PeerCounts> {
        None
    }
    /// Closes the store.
    fn close(self: Box<Self>) -> Result<()>;
}
