//! Transactions: they read a snapshot and collect writes, which are committed together if what was
//! read is still valid.
//! ```text
//! begin      take a snapshot, at sequence number s
//! get, range read the snapshot beneath the transaction's own writes; record what was read
//! commit     was anything that was read written after s?        no -> one batch
//!                                                              yes -> Conflict, nothing written
//! get_for_update   lock the key; if it was written after s, move s to now, provided that
//!            all that was read is unchanged:                   else -> Conflict
//! ```
//! Invariant: a transaction that commits could have run alone at the moment of its commit. All that
//! it has read, ranges included, is unchanged at that moment.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::db::Db;
use crate::db::keyspace::Keyspace;
use crate::entries::batch::Batch;
use crate::entries::entry::Kind;
use crate::entries::expiry::Expiry;
use crate::entries::key_bounds::KeyBounds;
use crate::entries::keyspace_id::KeyspaceId;
use crate::entries::value::Value;
use crate::error::{Error, Result};
use crate::plan::sync_policy::SyncPolicy;
use crate::read::batch_scan::{BatchScan, Writes};
use crate::read::get;
use crate::read::indexed_batch::IndexedBatch;
use crate::read::scan::{KeyValue, Scan};
use crate::read::scan_direction::Direction;
use crate::sync::{Arc, lock};
use crate::tree::snapshots::Registered;
use crate::write::conflicts::{Condition, ReadSet, Write};
use crate::write::key_locks::{Locker, Mark, Patience};

/// What a commit guarantees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// Everything that the transaction read is unchanged at its commit. Transactions behave as if
    /// they ran one after the other.
    #[default]
    Serializable,
    /// No one else has written what the transaction writes since it began. Two transactions that
    /// each read what the other writes may both commit (write skew).
    Snapshot,
}

/// A transaction: reads of one snapshot, and writes on top of it that are committed together or not
/// at all. Concurrency control is optimistic: the commit detects conflicts with other writers.
/// Nobody waits for a transaction, except for keys that it has read [for
/// update](Transaction::get_for_update), which stay locked until it ends. Dropping it without
/// [`commit`](Transaction::commit) discards its writes.
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
    /// The locks of keys that were read for update.
    locks: Locker,
    /// Held while a thread reads for update: one at a time, so that the transaction waits for at
    /// most one lock.
    updates: crate::sync::Mutex<()>,
    db: Db,
    isolation: Isolation,
    state: Mutex<State>,
}

type OwnWrites = BTreeMap<KeyspaceId, Arc<IndexedBatch>>;

struct State {
    /// The snapshot that it reads.
    registered: Registered,
    writes: OwnWrites,
    reads: ReadSet,
    /// Something was read that is not in the read set, so the snapshot must not move.
    keeps_moment: bool,
    /// Open scans, which have not yet recorded what they covered.
    scans: usize,
}

/// A state of a transaction's writes to which they can be rolled back.
#[derive(Debug)]
pub struct Savepoint {
    writes: OwnWrites,
    locks: Mark,
}

impl Transaction {
    pub(super) fn new(db: &Db, isolation: Isolation) -> Self {
        let registered = db.engine.snapshots.register_to_commit();
        let reads = ReadSet { at: registered.sequence(), ..ReadSet::default() };
        let (writes, keeps_moment, scans) = (OwnWrites::new(), false, 0);
        let state = Mutex::new(State { registered, writes, reads, keeps_moment, scans });
        let (locks, updates) = (Locker::new(&db.engine.commit.locks), crate::sync::Mutex::new(()));
        Transaction { locks, updates, db: db.clone(), isolation, state }
    }

    /// Returns the sequence number of the transaction's snapshot: that of the last write that it
    /// sees. [`get_for_update`](Transaction::get_for_update) may move it forward.
    pub fn sequence(&self) -> u64 {
        self.state().registered.sequence().0
    }

    /// Returns the transaction's view of a key space. The methods of `Transaction` itself use the
    /// default key space.
    ///
    /// # Panics
    /// If the key space belongs to another store.
    pub fn of<'t>(&'t self, keyspace: &'t Keyspace) -> TransactionIn<'t> {
        let (own, other) = (&self.db.engine.snapshots, &keyspace.engine.snapshots);
        assert!(Arc::ptr_eq(own, other), "a transaction of one store, a key space of another");
        TransactionIn { transaction: self, keyspace }
    }

    fn in_default(&self) -> TransactionIn<'_> {
        self.of(&self.db)
    }

    /// Returns the value of a key: the transaction's own write, or else the value in its snapshot.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.in_default().get(key)
    }

    /// Locks a key and reads its newest value. Until the transaction ends, nobody else can write
    /// the key or read it for update: others wait in order of arrival. Of two transactions that
    /// read a key this way before writing it, one waits, and neither has to be retried.
    ///
    /// [`roll_back_to`](Transaction::roll_back_to) frees the locks that were taken since the
    /// savepoint. Only a bulk load ([`ingest`](Keyspace::ingest)) ignores locks; then the commit
    /// fails. The commit also fails, at either isolation level, if the key was written after it was
    /// read.
    ///
    /// If the value is newer than the transaction's snapshot, the snapshot moves forward to now.
    /// This requires that everything read so far is unchanged. The snapshot cannot move while a
    /// scan is open. With [`Isolation::Snapshot`] it also cannot move after a scan, or after reads
    /// that were not for update.
    ///
    /// ```
    /// # fn main() -> trommel::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a temporary folder");
    /// # let db = trommel::Db::open(dir.path().join("store"), trommel::Options::default())?;
    /// let add = || db.run(|tx| {
    ///     let count = tx.get_for_update("visits")?.map_or(0, |count| count[0]);
    ///     tx.put("visits", [count + 1])
    /// });
    /// std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(|| add().unwrap()))));
    /// assert_eq!(db.get("visits")?.as_deref(), Some(&[4][..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Conflict`: the key was written after the snapshot, which cannot move. `Deadlock`: the
    /// holder of the lock waits for this transaction. `LockTimeout`: the holder kept the lock for
    /// too long; in stepped mode, any held lock gives this error. A thread whose own transaction
    /// has locked a key, and which accesses the key outside of it, waits for itself until that
    /// timeout. After an error, the key is locked only if it was locked before.
    pub fn get_for_update(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.in_default().get_for_update(key)
    }

    /// Returns a scan of the entries of a range.
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

    /// Merges an operand into the value of a key, as [`Keyspace::merge`]. This reads nothing: the
    /// operand applies to the newest value at commit. So transactions that merge into a key without
    /// reading it do not conflict, at either isolation level.
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.in_default().merge(key, operand)
    }

    /// Deletes a key.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.in_default().delete(key)
    }

    /// Deletes the keys from `from` (inclusive) to `to` (exclusive).
    pub fn delete_range(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<()> {
        self.in_default().delete_range(from, to)
    }

    /// Returns a savepoint: the writes can later be rolled back to their current state.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint { writes: self.state().writes.clone(), locks: self.locks.mark() }
    }

    /// Discards the writes made since the savepoint, and frees the locks taken since. Reads made
    /// since must still be valid at the commit. After rolling back to an earlier savepoint, rolling
    /// back to a later one restores its writes, but not the locks that were freed.
    pub fn roll_back_to(&self, savepoint: &Savepoint) {
        self.state().writes.clone_from(&savepoint.writes);
        self.locks.free_since(savepoint.locks);
    }

    /// Commits the writes: all of them or none. A transaction without writes never fails. Returns
    /// the sequence number of its last write; these numbers order commits by their effects. Without
    /// writes it returns the sequence number of the snapshot.
    ///
    /// # Errors
    /// `Conflict`: others have written something that the transaction has read, or a value that it
    /// has read has expired. With [`Isolation::Snapshot`] its own writes count instead of its
    /// reads. `Deadlock`: the holder of a lock on a key that it writes waits for it. Otherwise as
    /// [`write`](Db::write).
    pub fn commit(self) -> Result<u64> {
        let sync = self.db.engine.table_files.options.sync == SyncPolicy::Always;
        self.commit_with(sync)
    }

    /// As [`commit`](Transaction::commit), but the writes are durable when this returns.
    pub fn commit_synced(self) -> Result<u64> {
        self.commit_with(true)
    }

    fn commit_with(self, sync: bool) -> Result<u64> {
        let (writes, mut reads) = {
            let mut state = self.state();
            (std::mem::take(&mut state.writes), std::mem::take(&mut state.reads))
        };
        let batch = batch_of(writes);
        if batch.is_empty() {
            return Ok(self.sequence());
        }
        if self.isolation == Isolation::Snapshot {
            note_writes(&batch, &mut reads);
        }
        self.look_ahead(&mut reads)?;
        let (reads, holder) = (Some(Box::new(reads)), Some(self.locks.holder()));
        let mut write = Write { reads, holder, ..Write::of(batch) };
        self.db.owner.write(&mut write, sync).map(|last| last.0)
    }

    /// Validates the read set against the commits so far. So little is left to validate while other
    /// writers wait.
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

    /// Moves the snapshot to now, if the read set is complete and unchanged. Otherwise returns
    /// `error`, or the conflict that was found.
    fn move_to_now(&self, error: Error) -> Result<()> {
        let engine = &self.db.engine;
        let now = engine.snapshots.register_to_commit();
        let mut state = self.state();
        if state.keeps_moment || state.scans > 0 {
            return Err(error);
        }
        let mut reads = state.reads.clone();
        if self.isolation == Isolation::Snapshot {
            note_writes(&batch_of(state.writes.clone()), &mut reads);
        }
        reads.check(|keyspace| engine.commit.trees.of(engine, keyspace))?;
        (state.reads.at, state.registered) = (now.sequence(), now);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Validations ahead of a commit, at most.
const LOOKS: usize = 4;

fn batch_of(writes: OwnWrites) -> Batch {
    let mut batch = Batch::new();
    for (keyspace, writes) in writes {
        batch.go_on_in(keyspace);
        Arc::unwrap_or_clone(writes).add_to(&mut batch);
    }
    batch
}

/// Adds the writes to the read set. Merge operands are left out: they apply to whatever value there
/// is.
fn note_writes(batch: &Batch, reads: &mut ReadSet) {
    for (keyspace, kind, key, value) in batch.logged() {
        let read = reads.keyspaces.entry(keyspace).or_default();
        match kind {
            Kind::DeleteRange => {
                read.note_range(&KeyBounds { from: key.to_vec(), to: Some(value.to_vec()) });
            }
            Kind::Merge => {}
            Kind::Put
            | Kind::Delete
            | Kind::PutWithExpiry
            | Kind::PutApart
            | Kind::PutApartWithExpiry => read.note_point(key),
        }
    }
}

/// A transaction's view of one key space.
#[derive(Clone, Copy)]
pub struct TransactionIn<'t> {
    transaction: &'t Transaction,
    keyspace: &'t Keyspace,
}

impl<'t> TransactionIn<'t> {
    fn id(&self) -> KeyspaceId {
        self.keyspace.engine.keyspace
    }

    /// As [`Transaction::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.read(key.as_ref(), self.transaction.isolation == Isolation::Serializable)
    }

    /// As [`Transaction::get_for_update`].
    pub fn get_for_update(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let (key, tree) = (key.as_ref(), &self.keyspace.engine.tree);
        let (locks, patience) = (&self.transaction.locks, Patience::of(tree));
        tree.check_open()?;
        let _updates = lock(&self.transaction.updates);
        let is_new = locks.take(tree, key, patience)?;
        // After that, the group's writes are visible, and later groups see the lock.
        self.transaction.db.engine.commit.wait_for_group();
        let found = self.read_newest(key);
        if found.is_err() && is_new {
            locks.free_one(self.id(), key);
        }
        found
    }

    /// Reads the newest value of a key. Requires: the key is locked.
    fn read_newest(&self, key: &[u8]) -> Result<Option<Value>> {
        let (tree, keyspace) = (&self.keyspace.engine.tree, self.id());
        let (at, is_written) = {
            let state = self.transaction.state();
            let writes = state.writes.get(&keyspace);
            // An operand does not hide the value beneath it.
            let hides = |it: &IndexedBatch| it.write_of(key).is_some_and(|it| !it.needs_beneath());
            let is_written = writes.is_some_and(|it| hides(it));
            (state.registered.sequence(), is_written)
        };
        let condition = Condition { keyspace, key: key.to_vec(), at, expiry: None };
        if !is_written && !condition.holds(tree)? {
            self.transaction.move_to_now(condition.conflict())?;
        }
        self.read(key, true)
    }

    fn read(&self, key: &[u8], notes: bool) -> Result<Option<Value>> {
        let tree = &self.keyspace.engine.tree;
        let merged =
            |existing: Option<&[u8]>, operands: &[&[u8]]| tree.merged(key, existing, operands);
        let (written, at) = {
            let mut state = self.transaction.state();
            let written = state.writes.get(&self.id()).and_then(|it| it.write_of(key)).cloned();
            if let Some(written) = written.as_ref().filter(|written| !written.needs_beneath()) {
                return written.value(None, merged);
            }
            match notes {
                true => state.reads.keyspaces.entry(self.id()).or_default().note_point(key),
                false => state.keeps_moment |= !state.reads.has_point(self.id(), key),
            }
            (written, state.registered.sequence())
        };
        let version = tree.current.pin();
        let value = get::get_at(tree, &version, key, at)?;
        if notes && let Some(expiry) = value.as_ref().and_then(Value::expiry) {
            self.note_expiry(expiry);
        }
        match written {
            Some(written) => written.value(value, merged),
            None => Ok(value),
        }
    }

    fn note_expiry(&self, expiry: Expiry) {
        let reads = &mut self.transaction.state().reads;
        reads.expiry = Some(reads.expiry.map_or(expiry, |least| least.min(expiry)));
    }

    /// As [`Transaction::range`].
    pub fn range(&self, bounds: impl Into<KeyBounds>) -> TransactionScan<'t> {
        let bounds = bounds.into();
        let (writes, registered) = {
            let mut state = self.transaction.state();
            state.keeps_moment |= self.transaction.isolation == Isolation::Snapshot;
            state.scans += 1;
            let writes = state.writes.get(&self.id()).cloned().unwrap_or_default();
            (writes, state.registered.clone())
        };
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

    /// As [`Transaction::merge`].
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.write(|batch| {
            batch.merge(key, operand);
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

/// A scan of a range within a transaction, from both ends. The keys and gaps that it has covered
/// count as read.
pub struct TransactionScan<'t> {
    part: TransactionIn<'t>,
    scan: BatchScan<'static>,
    bounds: KeyBounds,
    /// The part that the scan has not covered.
    left: KeyBounds,
    is_exhausted: bool,
}

impl TransactionScan<'_> {
    /// As `next`, but lends the key until the next call. It allocates nothing as long as the
    /// transaction has no writes in the key space.
    pub fn next_lent(&mut self) -> Option<Result<(&[u8], Value)>> {
        self.step_lent(Direction::Forward)
    }

    /// As `next_back`, but lends the key, as [`next_lent`](TransactionScan::next_lent) does.
    pub fn next_back_lent(&mut self) -> Option<Result<(&[u8], Value)>> {
        self.step_lent(Direction::Backward)
    }

    fn step_lent(&mut self, direction: Direction) -> Option<Result<(&[u8], Value)>> {
        let entry = self.scan.step_lent(direction);
        match &entry {
            Some(Ok((key, value))) => {
                match direction {
                    Direction::Forward => self.left.pass_front(key),
                    Direction::Backward => self.left.pass_back(key),
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
        Some(self.next_lent()?.map(|(key, value)| (key.to_vec(), value)))
    }
}

impl DoubleEndedIterator for TransactionScan<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(self.next_back_lent()?.map(|(key, value)| (key.to_vec(), value)))
    }
}

impl Drop for TransactionScan<'_> {
    fn drop(&mut self) {
        let mut state = self.part.transaction.state();
        state.scans -= 1;
        if self.part.transaction.isolation == Isolation::Snapshot {
            return;
        }
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

/// Retries without a pause, and the longest pause before a later one.
const HURRIED_RUNS: u64 = 3;
const PAUSE_MAX: Duration = Duration::from_millis(20);

impl Db {
    /// Begins a transaction.
    pub fn transaction(&self) -> Transaction {
        self.transaction_with(Isolation::default())
    }

    /// Begins a transaction with this isolation level.
    pub fn transaction_with(&self, isolation: Isolation) -> Transaction {
        Transaction::new(self, isolation)
    }

    /// Runs `work` in a transaction and commits it. Retries, later with pauses, after conflicts and
    /// deadlocks.
    ///
    /// # Errors
    /// Any error of `work` except `Conflict` and `Deadlock`; otherwise as
    /// [`commit`](Transaction::commit).
    pub fn run<T>(&self, mut work: impl FnMut(&Transaction) -> Result<T>) -> Result<T> {
        for runs in 0u64.. {
            let transaction = self.transaction();
            let done = work(&transaction).and_then(|it| transaction.commit().map(|_| it));
            match done {
                Err(Error::Conflict { .. } | Error::Deadlock { .. }) => {}
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
