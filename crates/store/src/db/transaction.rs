//! Transactions: reads of one moment and the writes made since, committed together if what was read
//! still holds.
//! ```text
//! begin      a snapshot, at number s
//! get, range the snapshot beneath the transaction's own writes; what was read is noted
//! commit     has anything that was read a write newer than s?   no -> one batch
//!                                                              yes -> Conflict, nothing written
//! ```
//! Invariant: a transaction that commits could have run alone at the moment of its commit: all that
//! it has read, ranges too, is then as it was read.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::db::Db;
use crate::db::keyspace::Keyspace;
use crate::entries::batch::Batch;
use crate::entries::entry::{Kind, Sequence};
use crate::entries::expiry::Expiry;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::keys::successor;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::value::Value;
use crate::error::{Error, Result};
use crate::plan::sync_policy::SyncPolicy;
use crate::read::batch_scan::{BatchScan, Writes};
use crate::read::get;
use crate::read::indexed_batch::IndexedBatch;
use crate::read::scan::{KeyValue, Scan};
use crate::sync::Arc;
use crate::tree::snapshots::Registered;
use crate::write::conflicts::{ReadSet, Write};

/// What a commit makes sure of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// All that was read is as it was: transactions are as if they ran one after the other.
    #[default]
    Serializable,
    /// What it writes was written by nobody else since it began. Two transactions that each read
    /// what the other writes may both commit (write skew).
    Snapshot,
}

/// Reads of one moment and writes on top of them, which are committed together or not at all.
/// Nobody waits for a transaction, and it waits for nobody: at its end it commits, or learns that
/// others were faster. Dropped without [`commit`](Transaction::commit), nothing of it is written.
///
/// ```
/// # fn main() -> trommel::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary folder");
/// # let db = trommel::Db::open(dir.path().join("store"), trommel::Options::default())?;
/// db.put("ann", "70")?;
/// db.run(|tx| {
///     let money = tx.get("ann")?.unwrap_or_default();
///     let money: u32 = String::from_utf8_lossy(&money).parse().unwrap_or(0);
///     tx.put("ann", (money - 20).to_string())?;
///     tx.put("bob", "20")
/// })?;
/// assert_eq!(db.get("ann")?.as_deref(), Some(&b"50"[..]));
/// # Ok(())
/// # }
/// ```
pub struct Transaction {
    db: Db,
    isolation: Isolation,
    /// The moment that it reads.
    registered: Registered,
    state: Mutex<State>,
}

#[derive(Clone, Default)]
struct State {
    writes: BTreeMap<KeyspaceId, Arc<IndexedBatch>>,
    reads: ReadSet,
}

/// A place to which a transaction's writes can go back.
#[derive(Debug)]
pub struct Savepoint {
    writes: BTreeMap<KeyspaceId, Arc<IndexedBatch>>,
}

impl Transaction {
    pub(super) fn new(db: &Db, isolation: Isolation) -> Self {
        let registered = db.engine.snapshots.register_to_commit();
        let reads = ReadSet { at: registered.sequence(), ..ReadSet::default() };
        let state = State { reads, ..State::default() };
        Transaction { db: db.clone(), isolation, registered, state: Mutex::new(state) }
    }

    /// The moment that it reads, by the number of the last write before it.
    pub fn sequence(&self) -> u64 {
        self.registered.sequence().0
    }

    /// It, of a key space. Its own methods are of the default one.
    pub fn of<'t>(&'t self, keyspace: &'t Keyspace) -> TransactionIn<'t> {
        TransactionIn { transaction: self, keyspace }
    }

    fn in_default(&self) -> TransactionIn<'_> {
        self.of(&self.db)
    }

    /// The value of a key: the one that the transaction has given it, else that of its moment.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.in_default().get(key)
    }

    /// As [`get`](Transaction::get); and the commit fails, too, if the key has been written since
    /// by others, even where [`Isolation::Snapshot`] does not look at what was read.
    pub fn get_for_update(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.in_default().get_for_update(key)
    }

    /// The entries of a range.
    pub fn range(&self, bounds: impl Into<KeyBounds>) -> TransactionScan<'_> {
        self.in_default().range(bounds)
    }

    /// Sets the value of a key.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.in_default().put(key, value)
    }

    /// As [`Batch::put_ttl`].
    pub fn put_ttl(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.in_default().put_ttl(key, value, ttl)
    }

    /// Removes a key.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.in_default().delete(key)
    }

    /// Removes the keys from `from` up to, and without, `to`.
    pub fn delete_range(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<()> {
        self.in_default().delete_range(from, to)
    }

    /// A place to which its writes can go back.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint { writes: self.state().writes.clone() }
    }

    /// Forgets what was written since. What was read since must still hold at the commit.
    pub fn roll_back_to(&self, savepoint: &Savepoint) {
        self.state().writes.clone_from(&savepoint.writes);
    }

    /// Writes what it has written, all of it or nothing. One that has written nothing never fails.
    /// Gives the number of its last write, by which commits are in the order of their effects; or,
    /// of one that has written nothing, that of the moment that it has read.
    ///
    /// # Errors
    /// `Conflict`: others have written something that it has read (with [`Isolation::Snapshot`]:
    /// that it writes), or a value that it has read has expired. Else as [`write`](Db::write).
    pub fn commit(self) -> Result<u64> {
        let sync = self.db.engine.table_files.options.sync == SyncPolicy::Always;
        self.commit_with(sync)
    }

    /// As [`commit`](Transaction::commit), and on disk when it returns.
    pub fn commit_synced(self) -> Result<u64> {
        self.commit_with(true)
    }

    fn commit_with(self, sync: bool) -> Result<u64> {
        let State { writes, mut reads } = std::mem::take(&mut *self.state());
        let batch = batch_of(writes);
        if batch.is_empty() {
            return Ok(self.sequence());
        }
        if self.isolation == Isolation::Snapshot {
            note_writes(&batch, &mut reads);
        }
        self.look_ahead(&mut reads)?;
        let write = Write { batch, conditions: Vec::new(), reads: Some(Box::new(reads)) };
        self.db.owner.write(write, sync).map(|last| last.0)
    }

    /// Looks at what has come until now, so that little is left to be looked at while nobody else
    /// writes.
    fn look_ahead(&self, reads: &mut ReadSet) -> Result<()> {
        let engine = &self.db.engine;
        for _ in 0..LOOKS {
            let visible = engine.snapshots.visible();
            if visible == reads.at {
                break;
            }
            reads.check(|keyspace| engine.commit.trees.of(engine, keyspace))?;
            reads.at = visible;
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks at what has come, at most, before a commit takes its place among the others.
const LOOKS: usize = 4;

fn batch_of(writes: BTreeMap<KeyspaceId, Arc<IndexedBatch>>) -> Batch {
    let mut batch = Batch::new();
    for (keyspace, writes) in writes {
        batch.go_on_in(keyspace);
        Arc::unwrap_or_clone(writes).add_to(&mut batch);
    }
    batch
}

/// What is written counts as read.
fn note_writes(batch: &Batch, reads: &mut ReadSet) {
    for (keyspace, kind, key, value) in batch.logged() {
        let read = reads.keyspaces.entry(keyspace).or_default();
        match kind {
            Kind::DeleteRange => {
                read.note_range(&KeyBounds { from: key.to_vec(), to: Some(value.to_vec()) });
            }
            _ => read.note_point(key),
        }
    }
}

/// A transaction in one key space.
#[derive(Clone, Copy)]
pub struct TransactionIn<'t> {
    transaction: &'t Transaction,
    keyspace: &'t Keyspace,
}

impl<'t> TransactionIn<'t> {
    fn id(&self) -> KeyspaceId {
        self.keyspace.engine.keyspace
    }

    fn at(&self) -> Sequence {
        self.transaction.registered.sequence()
    }

    /// As [`Transaction::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.read(key.as_ref(), self.transaction.isolation == Isolation::Serializable)
    }

    /// As [`Transaction::get_for_update`].
    pub fn get_for_update(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.read(key.as_ref(), true)
    }

    fn read(&self, key: &[u8], notes: bool) -> Result<Option<Value>> {
        {
            let mut state = self.transaction.state();
            if let Some(written) = state.writes.get(&self.id()).and_then(|it| it.write_of(key)) {
                return Ok(written);
            }
            if notes {
                state.reads.keyspaces.entry(self.id()).or_default().note_point(key);
            }
        }
        let tree = &self.keyspace.engine.tree;
        let version = tree.current.pin();
        let value = get::get_at(tree, &version, key, self.at())?;
        if notes && let Some(expiry) = value.as_ref().and_then(Value::expiry) {
            self.note_expiry(expiry);
        }
        Ok(value)
    }

    fn note_expiry(&self, expiry: Expiry) {
        let reads = &mut self.transaction.state().reads;
        reads.expiry = Some(reads.expiry.map_or(expiry, |least| least.min(expiry)));
    }

    /// As [`Transaction::range`].
    pub fn range(&self, bounds: impl Into<KeyBounds>) -> TransactionScan<'t> {
        let bounds = bounds.into();
        let writes = self.transaction.state().writes.get(&self.id()).cloned().unwrap_or_default();
        let registered = self.transaction.registered.clone();
        let scan = Scan::new(&self.keyspace.engine.tree, registered, bounds.clone());
        TransactionScan {
            part: *self,
            scan: BatchScan::new(Writes::Shared(writes), scan, bounds.clone()),
            left: bounds.clone(),
            bounds,
            is_exhausted: false,
        }
    }

    /// As [`Transaction::put`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.write(|batch| {
            batch.put(key, value);
        })
    }

    /// As [`Transaction::put_ttl`].
    pub fn put_ttl(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.write(|batch| {
            batch.put_ttl(key, value, ttl);
        })
    }

    /// As [`Transaction::delete`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write(|batch| {
            batch.delete(key);
        })
    }

    /// As [`Transaction::delete_range`].
    pub fn delete_range(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<()> {
        self.write(|batch| {
            batch.delete_range(from, to);
        })
    }

    fn write(&self, change: impl FnOnce(&mut IndexedBatch)) -> Result<()> {
        let mut state = self.transaction.state();
        change(Arc::make_mut(state.writes.entry(self.id()).or_default()));
        Ok(())
    }
}

/// The entries of a range in a transaction, from both ends. What it has gone over counts as read,
/// keys that are not there too.
pub struct TransactionScan<'t> {
    part: TransactionIn<'t>,
    scan: BatchScan<'static>,
    bounds: KeyBounds,
    /// What it has not gone over.
    left: KeyBounds,
    is_exhausted: bool,
}

impl TransactionScan<'_> {
    fn went_over(
        &mut self,
        entry: Option<Result<KeyValue>>,
        back: bool,
    ) -> Option<Result<KeyValue>> {
        match &entry {
            Some(Ok((key, value))) => {
                match back {
                    false => self.left.from = successor(key),
                    true => self.left.to = Some(key.clone()),
                }
                if self.part.transaction.isolation == Isolation::Serializable {
                    value.expiry().into_iter().for_each(|expiry| self.part.note_expiry(expiry));
                }
            }
            Some(Err(_)) => {}
            None => self.is_exhausted = true,
        }
        entry
    }
}

impl Iterator for TransactionScan<'_> {
    type Item = Result<KeyValue>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.scan.next();
        self.went_over(entry, false)
    }
}

impl DoubleEndedIterator for TransactionScan<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let entry = self.scan.next_back();
        self.went_over(entry, true)
    }
}

impl Drop for TransactionScan<'_> {
    fn drop(&mut self) {
        if self.part.transaction.isolation == Isolation::Snapshot {
            return;
        }
        let mut state = self.part.transaction.state();
        let read = state.reads.keyspaces.entry(self.part.id()).or_default();
        if self.is_exhausted {
            return read.note_range(&self.bounds);
        }
        let front = self.left.from.clone();
        read.note_range(&KeyBounds { from: self.bounds.from.clone(), to: Some(front) });
        if self.left.to != self.bounds.to {
            let from = self.left.to.clone().unwrap_or_default();
            read.note_range(&KeyBounds { from, to: self.bounds.to.clone() });
        }
    }
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let isolation = &self.isolation;
        f.debug_struct("Transaction").field("isolation", isolation).finish_non_exhaustive()
    }
}

/// Runs of a transaction before one that waits, and how long that waits at most.
const HURRIED_RUNS: u64 = 3;
const PAUSE_MAX: Duration = Duration::from_millis(20);

impl Db {
    /// Begins a transaction.
    pub fn transaction(&self) -> Transaction {
        self.transaction_with(Isolation::default())
    }

    /// Begins a transaction that makes sure of this.
    pub fn transaction_with(&self, isolation: Isolation) -> Transaction {
        Transaction::new(self, isolation)
    }

    /// Runs a transaction and commits it; again, after a while, as long as others are faster.
    ///
    /// # Errors
    /// What `work` returns, unless it is a `Conflict`; and as [`commit`](Transaction::commit).
    pub fn run<T>(&self, mut work: impl FnMut(&Transaction) -> Result<T>) -> Result<T> {
        for runs in 0u64.. {
            let transaction = self.transaction();
            let done = work(&transaction).and_then(|it| transaction.commit().map(|_| it));
            match done {
                Err(Error::Conflict { .. }) => {}
                done => return done,
            }
            if let Some(late) = runs.checked_sub(HURRIED_RUNS) {
                let pause = Duration::from_micros(50 << late.min(10)).min(PAUSE_MAX);
                crate::sync::pause(pause);
            }
        }
        unreachable!("it runs until it is done")
    }
}
