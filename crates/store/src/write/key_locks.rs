//! Locks of single keys: while a holder has a key's lock, nobody else can write the key.
//! ```text
//! get_for_update   free -> held        held by another -> waits, in order of arrival
//! a write          the leader of its group refuses it if another holder has one of its keys. Then
//!                  its own thread waits for that lock, takes it, and tries again
//! a waits for b, b waits for a         the second wait fails: Deadlock
//! longer than `lock_timeout`           LockTimeout       given up: Cancelled
//! ```
//! One mutex guards the table. It is held only for short steps in memory, and no other lock is
//! taken meanwhile. It is no bottleneck: every write also takes the writer's lock, which is held
//! for longer.
//!
//! Invariants: a lock has one holder, and a holder waits for at most one lock. So waits form
//! chains, and only a new wait can close a cycle: when a lock is handed over, its new holder waits
//! for nothing. A waiter is either in the table before the store is closed or the key space
//! dropped, or learns of this before it waits.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use crate::entries::entry::Kind;
use crate::entries::keyspace_id::KeyspaceId;
use crate::error::{Error, Result};
use crate::plan::background::Background;
use crate::storage::life::Life;
use crate::sync::{
    Arc, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, giving_up, lock,
    wait_at_most,
};
use crate::tree::open_tree::OpenTree;
use crate::write::conflicts::Write;

/// A holder of locks: a transaction, or a write that has met a locked key. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HolderId(u64);

type Key = Arc<[u8]>;

/// The locks of a store's keys.
pub(crate) struct KeyLocks {
    /// The number of locks. While it is 0, nobody needs to look at the table.
    count: AtomicUsize,
    next_holder: AtomicU64,
    table: Mutex<Table>,
    life: Arc<Life>,
}

#[derive(Default)]
struct Table {
    locks: BTreeMap<KeyspaceId, BTreeMap<Key, KeyLock>>,
    /// The locks of each holder, in the order in which they were taken.
    held: BTreeMap<HolderId, Vec<Held>>,
    /// Counts the locks taken so far, by all holders.
    taken: Mark,
    /// Each waiting holder, and the holder for which it waits.
    waits: BTreeMap<HolderId, HolderId>,
}

/// A point in the sequence of all locks taken: it separates earlier locks from later ones. A
/// holder's number of locks would not do, since it may have freed some and taken others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark(u64);

/// A lock that a holder has.
struct Held {
    at: Mark,
    keyspace: KeyspaceId,
    key: Key,
}

struct KeyLock {
    holder: HolderId,
    /// Waiters, in order of arrival.
    waiting: VecDeque<Arc<Waiter>>,
}

struct Waiter {
    holder: HolderId,
    /// Signalled when the wait is over: it has the lock, or can no longer get it.
    turn: Condvar,
}

/// How long a caller waits for locks.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// When the wait ends, by the store's clock. None: it must not wait, since no one else would
    /// end the wait.
    until: Option<Duration>,
}

impl Patience {
    /// Returns the patience that the options ask for, from now on. In stepped mode there is none.
    pub(crate) fn of(tree: &OpenTree) -> Self {
        let waits = tree.table_files.options.background != Background::Stepped;
        let until = || tree.env.clock.now().saturating_add(tree.table_files.options.lock_timeout);
        Patience { until: waits.then(until) }
    }

    /// Returns the remaining time. None: it is over.
    pub(crate) fn left(self, tree: &OpenTree) -> Option<Duration> {
        let left = self.until?.checked_sub(tree.env.clock.now())?;
        (!left.is_zero()).then_some(left)
    }
}

/// A waiter's place in a queue. Dropping this, even by a panic, gives the place up, unless the wait
/// has ended.
struct InLine<'w> {
    locks: &'w KeyLocks,
    waiter: &'w Arc<Waiter>,
    keyspace: KeyspaceId,
    key: &'w [u8],
    leaves: bool,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        // In a forked child, the table may be locked forever.
        if self.leaves && !self.locks.life.is_forked() {
            self.locks.leave(self.waiter, self.keyspace, self.key);
        }
    }
}

impl KeyLocks {
    pub(crate) fn new(life: Arc<Life>) -> Self {
        let (count, next_holder) = (AtomicUsize::new(0), AtomicU64::new(0));
        KeyLocks { count, next_holder, table: Mutex::default(), life }
    }

    /// Returns a holder that has no locks.
    pub(crate) fn new_holder(&self) -> HolderId {
        HolderId(self.next_holder.fetch_add(1, Ordering::Relaxed))
    }

    /// Checks that nobody else has locked a key that the write changes.
    ///
    /// # Errors
    /// `LockTimeout` names the first locked key.
    #[inline]
    pub(crate) fn check(&self, write: &Write) -> Result<()> {
        // Whoever takes a lock waits for the group that is being written: see `Commit`.
        if self.count.load(Ordering::Relaxed) == 0 { Ok(()) } else { self.look_for(write) }
    }

    fn look_for(&self, write: &Write) -> Result<()> {
        let table = lock(&self.table);
        let is_others = |lock: &KeyLock| Some(lock.holder) != write.holder;
        for (keyspace, kind, key, value) in write.batch.logged() {
            let Some(locks) = table.locks.get(&keyspace) else { continue };
            let found = match kind {
                Kind::DeleteRange => {
                    let range = (Bound::Included(key), Bound::Excluded(value));
                    locks.range::<[u8], _>(range).find(|(_, lock)| is_others(lock))
                }
                _ => locks.get_key_value(key).filter(|(_, lock)| is_others(lock)),
            };
            if let Some((key, _)) = found {
                return Err(timeout(keyspace, key));
            }
        }
        Ok(())
    }

    /// Ends all waits for keys of a dropped key space. None: ends all waits, since the store is
    /// being closed. Requires: the tree, or the store, is already marked as such.
    pub(crate) fn end_waits(&self, dropped: Option<KeyspaceId>) {
        let table = &mut *lock(&self.table);
        let hits = |keyspace: &KeyspaceId| dropped.is_none_or(|dropped| dropped == *keyspace);
        for (_, locks) in table.locks.iter_mut().filter(|(keyspace, _)| hits(keyspace)) {
            for waiter in locks.values_mut().flat_map(|lock| lock.waiting.drain(..)) {
                table.waits.remove(&waiter.holder);
                waiter.turn.notify_one();
            }
        }
    }

    /// Takes a lock. Returns false if the holder has it already.
    fn take(
        &self,
        holder: HolderId,
        tree: &OpenTree,
        key: &[u8],
        patience: Patience,
    ) -> Result<bool> {
        // In a forked child, the table may be locked forever.
        tree.check_open()?;
        let mut table = lock(&self.table);
        tree.check_open()?;
        let keyspace = tree.keyspace;
        let Some(lock) = table.find(keyspace, key) else {
            table.give(keyspace, Arc::from(key), holder);
            self.count.fetch_add(1, Ordering::Relaxed);
            return Ok(true);
        };
        let other = lock.holder;
        if other == holder {
            return Ok(false);
        }
        if table.waits_for(other, holder) {
            return Err(Error::Deadlock { keyspace: keyspace.0, key: key.to_vec() });
        }
        if patience.left(tree).is_none() {
            return Err(timeout(keyspace, key));
        }
        let start = tree.env.clock.now();
        let waiter = Arc::new(Waiter { holder, turn: Condvar::new() });
        let lock = table.find(keyspace, key).expect("it was found");
        lock.waiting.push_back(Arc::clone(&waiter));
        table.waits.insert(holder, other);
        // Counted right away, so that `stats` shows the wait while it lasts.
        tree.counters.lock_waits.add(Duration::ZERO);
        let taken = self.wait_for(table, &waiter, (tree, key), patience);
        tree.counters.lock_waits.add_time(tree.since(start));
        taken
    }

    /// Waits for a lock. Requires: the waiter is in the table.
    fn wait_for<'t>(
        &'t self,
        table: MutexGuard<'t, Table>,
        waiter: &Arc<Waiter>,
        (tree, key): (&OpenTree, &[u8]),
        patience: Patience,
    ) -> Result<bool> {
        let (keyspace, holder) = (tree.keyspace, waiter.holder);
        let mut in_line = InLine { locks: self, waiter, keyspace, key, leaves: true };
        // Declared after `in_line`, so that a panic unlocks the table before the place is given up.
        let mut table = table;
        let (mut longest, mut waited) = (None, Duration::ZERO);
        while table.waits.contains_key(&holder) {
            let left = patience.left(tree);
            // Ends the wait even if the store's clock stands still.
            let left = left.filter(|left| waited < *longest.get_or_insert(*left));
            let Some(left) = left else {
                drop(table);
                return Err(timeout(keyspace, key));
            };
            let step = giving_up::step(left);
            let (woken, is_over) = wait_at_most(&waiter.turn, &self.table, table, step);
            table = woken;
            if !is_over {
                continue;
            }
            waited += step;
            if giving_up::is_possible() {
                drop(table);
                if giving_up::is_given_up() {
                    return Err(Error::Cancelled);
                }
                // This may be a forked child by now, in which the table may be locked forever.
                tree.check_open()?;
                table = lock(&self.table);
            }
        }
        in_line.leaves = false;
        if table.find(keyspace, key).is_some_and(|lock| lock.holder == holder) {
            return Ok(true);
        }
        tree.check_open()?;
        Err(timeout(keyspace, key))
    }

    /// Ends a wait. If the waiter has already got the lock, frees it.
    fn leave(&self, waiter: &Arc<Waiter>, keyspace: KeyspaceId, key: &[u8]) {
        let mut table = lock(&self.table);
        if table.waits.remove(&waiter.holder).is_some() {
            let lock = table.find(keyspace, key).expect("somebody has waited for it");
            lock.waiting.retain(|other| !Arc::ptr_eq(other, waiter));
            return;
        }
        drop(table);
        self.free_one(waiter.holder, keyspace, key);
    }

    /// Frees the locks that a holder has taken since `mark`. Returns their number.
    fn free_since(&self, holder: HolderId, mark: Mark) -> usize {
        let table = &mut *lock(&self.table);
        let Some(held) = table.held.get_mut(&holder) else { return 0 };
        let freed = held.split_off(held.partition_point(|held| held.at < mark));
        if held.is_empty() {
            table.held.remove(&holder);
        }
        freed.iter().for_each(|held| self.hand_over(table, held.keyspace, &held.key));
        freed.len()
    }

    fn free_one(&self, holder: HolderId, keyspace: KeyspaceId, key: &[u8]) {
        let table = &mut *lock(&self.table);
        let Some(held) = table.held.get_mut(&holder) else { return };
        let is_it = |held: &Held| held.keyspace == keyspace && *held.key == *key;
        let Some(place) = held.iter().rposition(is_it) else { return };
        held.remove(place);
        if held.is_empty() {
            table.held.remove(&holder);
        }
        self.hand_over(table, keyspace, key);
    }

    /// Hands a lock over to the first waiter, or removes it.
    fn hand_over(&self, table: &mut Table, keyspace: KeyspaceId, key: &[u8]) {
        let lock = table.find(keyspace, key).expect("it was held");
        let Some(next) = lock.waiting.pop_front() else {
            table.remove(keyspace, key);
            self.count.fetch_sub(1, Ordering::Relaxed);
            return;
        };
        lock.holder = next.holder;
        let left: Vec<HolderId> = lock.waiting.iter().map(|waiter| waiter.holder).collect();
        table.waits.extend(left.into_iter().map(|waiter| (waiter, next.holder)));
        table.waits.remove(&next.holder);
        table.note(next.holder, keyspace, Arc::from(key));
        next.turn.notify_one();
    }
}

impl Table {
    fn find(&mut self, keyspace: KeyspaceId, key: &[u8]) -> Option<&mut KeyLock> {
        self.locks.get_mut(&keyspace)?.get_mut(key)
    }

    /// Gives a lock to a holder. Requires: the lock is free.
    fn give(&mut self, keyspace: KeyspaceId, key: Key, holder: HolderId) {
        let lock = KeyLock { holder, waiting: VecDeque::new() };
        self.locks.entry(keyspace).or_default().insert(Arc::clone(&key), lock);
        self.note(holder, keyspace, key);
    }

    /// Records that a holder has a lock.
    fn note(&mut self, holder: HolderId, keyspace: KeyspaceId, key: Key) {
        let at = self.taken;
        self.taken = Mark(at.0 + 1);
        self.held.entry(holder).or_default().push(Held { at, keyspace, key });
    }

    fn remove(&mut self, keyspace: KeyspaceId, key: &[u8]) {
        let Some(locks) = self.locks.get_mut(&keyspace) else { return };
        locks.remove(key);
        if locks.is_empty() {
            self.locks.remove(&keyspace);
        }
    }

    /// Whether `waiting` waits for `other`, directly or through other holders.
    fn waits_for(&self, mut waiting: HolderId, other: HolderId) -> bool {
        while let Some(next) = self.waits.get(&waiting) {
            if *next == other {
                return true;
            }
            waiting = *next;
        }
        false
    }
}

fn timeout(keyspace: KeyspaceId, key: &[u8]) -> Error {
    Error::LockTimeout { keyspace: keyspace.0, key: key.to_vec() }
}

/// Takes locks for a holder. Dropping this frees the locks that it has taken.
pub(crate) struct Locker {
    locks: Arc<KeyLocks>,
    holder: HolderId,
    /// Locks that the holder took before this point are kept.
    before: Mark,
}

impl Locker {
    /// Returns a locker for a new holder.
    pub(crate) fn new(locks: &Arc<KeyLocks>) -> Self {
        let holder = locks.new_holder();
        Locker { locks: Arc::clone(locks), holder, before: Mark::default() }
    }

    /// Returns a locker for an existing holder, which may have locks. Requires: this process has
    /// opened the store.
    pub(crate) fn beside(locks: &Arc<KeyLocks>, holder: HolderId) -> Self {
        let before = lock(&locks.table).taken;
        Locker { locks: Arc::clone(locks), holder, before }
    }

    pub(crate) fn holder(&self) -> HolderId {
        self.holder
    }

    /// Takes the lock of a key, and waits for it if necessary. Returns false if the holder has it
    /// already. Requires: the holder takes no other lock meanwhile, and the caller holds no lock of
    /// the store.
    ///
    /// # Errors
    /// `Deadlock`: the lock's holder waits for this one. `LockTimeout`: the wait took too long, or
    /// is not allowed. `Closed`, `KeyspaceDropped`, `Forked`: the key can no longer be locked.
    pub(crate) fn take(&self, tree: &OpenTree, key: &[u8], patience: Patience) -> Result<bool> {
        self.locks.take(self.holder, tree, key, patience)
    }

    /// Returns the present point in the sequence of locks taken.
    pub(crate) fn mark(&self) -> Mark {
        // In a forked child, the table may be locked forever.
        if self.locks.life.is_forked() { Mark::default() } else { lock(&self.locks.table).taken }
    }

    /// Frees one lock.
    pub(crate) fn free_one(&self, keyspace: KeyspaceId, key: &[u8]) {
        if !self.locks.life.is_forked() {
            self.locks.free_one(self.holder, keyspace, key);
        }
    }

    /// Frees the locks taken since `mark`. Returns their number.
    pub(crate) fn free_since(&self, mark: Mark) -> usize {
        // In a forked child, the table may be locked forever.
        if self.locks.life.is_forked() { 0 } else { self.locks.free_since(self.holder, mark) }
    }

    /// Frees all locks that this locker has taken. Returns their number.
    pub(crate) fn free_all(&self) -> usize {
        self.free_since(self.before)
    }
}

impl Drop for Locker {
    fn drop(&mut self) {
        self.free_all();
    }
}
