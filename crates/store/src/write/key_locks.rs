//! Locks of single keys: what one has locked, nobody else writes until it ends.
//! ```text
//! get_for_update   free -> held        held by another -> waits, the first one first
//! a write          the leader of its group refuses it if another holds a key of it. Then its own
//!                  thread waits for that lock, takes it, and tries again
//! a waits for b, b waits for a         the second one is told: Deadlock
//! longer than `lock_timeout`           LockTimeout       given up: Cancelled
//! ```
//! One mutex guards the table. It is held for steps in memory only, and nothing else is locked
//! meanwhile. Every write goes through the writer's lock, which is held for longer.
//!
//! Invariants: a lock has one holder, and a holder waits for one lock at most. So the waits are
//! chains, and only a new wait can close a ring: when a lock is handed over, its new holder waits
//! for nothing. Who waits is in the table before the store can be closed or the key space dropped,
//! or learns of it before it waits.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use crate::entries::entry::Kind;
use crate::entries::keyspace_id::KeyspaceId;
use crate::error::{Error, Result};
use crate::plan::background::Background;
use crate::storage::life::Life;
use crate::sync::{
    Arc, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, lock, wait_at_most,
};
use crate::tree::open_tree::OpenTree;
use crate::write::conflicts::Write;
use crate::write::giving_up;

/// Who may hold locks: a transaction, or a write that has met one. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HolderId(u64);

type Key = Arc<[u8]>;

/// The locks of a store's keys.
pub(crate) struct KeyLocks {
    /// How many there are, so that nobody looks at the table in vain.
    count: AtomicUsize,
    next_holder: AtomicU64,
    table: Mutex<Table>,
    life: Arc<Life>,
}

#[derive(Default)]
struct Table {
    locks: BTreeMap<KeyspaceId, BTreeMap<Key, KeyLock>>,
    /// What each holder has, in the order in which it was taken.
    held: BTreeMap<HolderId, Vec<Held>>,
    /// How many were taken until now, by all.
    taken: Mark,
    /// Who waits, and for whom.
    waits: BTreeMap<HolderId, HolderId>,
}

/// A moment among the locks that were taken: it tells those before it from those since. How many a
/// holder has does not, since it may have given some up meanwhile and taken others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark(u64);

/// A lock that somebody has.
struct Held {
    at: Mark,
    keyspace: KeyspaceId,
    key: Key,
}

struct KeyLock {
    holder: HolderId,
    /// The first one is next.
    waiting: VecDeque<Arc<Waiter>>,
}

struct Waiter {
    holder: HolderId,
    /// Signalled when it has waited long enough: it has the lock, or there is nothing to have.
    turn: Condvar,
}

/// How long somebody waits for locks.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// The store's time at which it ends. None: nobody else would end the wait.
    until: Option<Duration>,
}

impl Patience {
    /// That of the options, from now on. In stepped mode there is none.
    pub(crate) fn of(tree: &OpenTree) -> Self {
        let waits = tree.table_files.options.background != Background::Stepped;
        let until = || tree.env.clock.now().saturating_add(tree.table_files.options.lock_timeout);
        Patience { until: waits.then(until) }
    }

    /// None: it is over.
    pub(crate) fn left(self, tree: &OpenTree) -> Option<Duration> {
        let left = self.until?.checked_sub(tree.env.clock.now())?;
        (!left.is_zero()).then_some(left)
    }
}

/// The place of somebody who waits. Dropped, also by a panic, it is free, unless the wait has
/// ended.
struct InLine<'w> {
    locks: &'w KeyLocks,
    waiter: &'w Arc<Waiter>,
    keyspace: KeyspaceId,
    key: &'w [u8],
    leaves: bool,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        // In a child the table may be locked for ever.
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

    /// One that holds nothing.
    pub(crate) fn new_holder(&self) -> HolderId {
        HolderId(self.next_holder.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether nobody else holds a key that a write writes.
    ///
    /// # Errors
    /// `LockTimeout` names the first one.
    #[inline]
    pub(crate) fn check(&self, write: &Write) -> Result<()> {
        // Who takes a lock waits for the group that is being written: see `Commit`.
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

    /// Ends waits for keys of a key space that was dropped; without one, all waits: the store is
    /// being closed. Requires: its tree, or the store, says so already.
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

    /// Takes a lock. False: it has it already.
    fn take(
        &self,
        holder: HolderId,
        tree: &OpenTree,
        key: &[u8],
        patience: Patience,
    ) -> Result<bool> {
        // In a child the table may be locked for ever.
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
        // It counts at once, so that `stats` shows it while it lasts.
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
        // After it, so that a panic unlocks the table before the place is given up.
        let mut table = table;
        let (mut longest, mut waited) = (None, Duration::ZERO);
        while table.waits.contains_key(&holder) {
            let left = patience.left(tree);
            // Where the clock stands still, waits have an end all the same.
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
                // This may be a child by now, where the table may be locked for ever.
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

    /// Somebody waits no more, or has the lock by now and does not want it.
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

    /// Frees the locks that a holder has taken since. How many.
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

    /// Gives a lock to the first one who waits for it, or lets it go.
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

    /// Requires: it is free.
    fn give(&mut self, keyspace: KeyspaceId, key: Key, holder: HolderId) {
        let lock = KeyLock { holder, waiting: VecDeque::new() };
        self.locks.entry(keyspace).or_default().insert(Arc::clone(&key), lock);
        self.note(holder, keyspace, key);
    }

    /// A holder has a lock from now on.
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

    /// Whether one waits for another, or for one who does, and so on.
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

/// Takes locks for a holder. Dropped: what it has taken is free.
pub(crate) struct Locker {
    locks: Arc<KeyLocks>,
    holder: HolderId,
    /// What the holder had before stays.
    before: Mark,
}

impl Locker {
    /// For a new holder.
    pub(crate) fn new(locks: &Arc<KeyLocks>) -> Self {
        let holder = locks.new_holder();
        Locker { locks: Arc::clone(locks), holder, before: Mark::default() }
    }

    /// For a holder that may have some. Requires: this process has opened the store.
    pub(crate) fn beside(locks: &Arc<KeyLocks>, holder: HolderId) -> Self {
        let before = lock(&locks.table).taken;
        Locker { locks: Arc::clone(locks), holder, before }
    }

    pub(crate) fn holder(&self) -> HolderId {
        self.holder
    }

    /// Takes the lock of a key, and waits for it if it has to. False: it has it already. Requires:
    /// the holder takes no other one meanwhile; the caller holds no lock of the store.
    ///
    /// # Errors
    /// `Deadlock`: who has it waits for this one. `LockTimeout`: it took too long, or must not wait
    /// at all. `Closed`, `KeyspaceDropped`, `Forked`: the key is there no more.
    pub(crate) fn take(&self, tree: &OpenTree, key: &[u8], patience: Patience) -> Result<bool> {
        self.locks.take(self.holder, tree, key, patience)
    }

    /// Now, among the locks that are taken.
    pub(crate) fn mark(&self) -> Mark {
        // In a child the table may be locked for ever.
        if self.locks.life.is_forked() { Mark::default() } else { lock(&self.locks.table).taken }
    }

    /// Lets go of one.
    pub(crate) fn free_one(&self, keyspace: KeyspaceId, key: &[u8]) {
        if !self.locks.life.is_forked() {
            self.locks.free_one(self.holder, keyspace, key);
        }
    }

    /// Lets go of what it has taken since. How many.
    pub(crate) fn free_since(&self, mark: Mark) -> usize {
        // In a child the table may be locked for ever.
        if self.locks.life.is_forked() { 0 } else { self.locks.free_since(self.holder, mark) }
    }

    /// Lets go of all that it has taken. How many.
    pub(crate) fn free_all(&self) -> usize {
        self.free_since(self.before)
    }
}

impl Drop for Locker {
    fn drop(&mut self) {
        self.free_all();
    }
}
