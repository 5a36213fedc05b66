//! A memory budget for writes that several stores share.
//! ```text
//! active memtables    more than half of it -> the largest is to be sealed and flushed
//! sealed memtables    the other half, until they are flushed
//! both                more than all of it  -> writers are slowed down
//! ```
//! Without it, each store fills its own write buffer, and a hundred stores fill a hundred.
//!
//! Invariants: a store counts with what its memtables hold, and with nothing once it has left. A
//! write looks at other stores only when it moves the use up by a step, and then only at those
//! whose memtables have entries. Each of these has at least a kibibyte, so that the look is worth
//! it.

use std::collections::BTreeMap;

use crate::cost::step;
use crate::shared::worker_pool::{WorkKind, Workers};
use crate::sync::{Arc, AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, lock};

/// The number of steps of the memory at which the largest memtable is looked for.
const STEPS: usize = 256;

/// The budget, and the stores that share it. (A key space counts as a store.)
pub(crate) struct WriteMemory {
    bytes_max: usize,
    /// Bytes of all stores.
    active: AtomicUsize,
    sealed: AtomicUsize,
    /// The part of both sums that belongs to stuck stores.
    stuck: AtomicUsize,
    /// The stores whose active memtables have entries.
    writing: Mutex<BTreeMap<u64, Arc<StoreMemory>>>,
    joined: AtomicU64,
}

/// The share of one store.
pub(crate) struct StoreMemory {
    all: Arc<WriteMemory>,
    id: u64,
    workers: Arc<Workers>,
    active: AtomicUsize,
    sealed: AtomicUsize,
    /// Whether its active memtable must be sealed.
    seal_is_requested: AtomicBool,
    /// Whether its flushes fail, or nobody runs them. Then other stores are not slowed down for it.
    is_stuck: AtomicBool,
    /// The bytes that are counted as stuck.
    stuck: AtomicUsize,
}

impl WriteMemory {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let [active, sealed, stuck] = [0; 3].map(AtomicUsize::new);
        let (writing, joined) = (Mutex::default(), AtomicU64::new(0));
        WriteMemory { bytes_max, active, sealed, stuck, writing, joined }
    }

    /// Adds a store that shares the budget. `is_stepped`: no thread flushes it.
    pub(crate) fn join(
        self: &Arc<Self>,
        workers: Arc<Workers>,
        is_stepped: bool,
    ) -> Arc<StoreMemory> {
        let [active, sealed, stuck] = [0; 3].map(AtomicUsize::new);
        Arc::new(StoreMemory {
            all: Arc::clone(self),
            id: self.joined.fetch_add(1, Ordering::Relaxed),
            workers,
            active,
            sealed,
            seal_is_requested: AtomicBool::new(false),
            is_stuck: AtomicBool::new(is_stepped),
            stuck,
        })
    }

    /// Returns the bytes of all memtables.
    pub(crate) fn used_bytes(&self) -> usize {
        self.active.load(Ordering::Relaxed) + self.sealed.load(Ordering::Relaxed)
    }

    /// Returns the number of steps above half of the budget. A search looks at many stores, so not
    /// every write must search while stores cannot flush.
    fn steps_over_half(&self, active: usize) -> usize {
        let (half, step) = (self.bytes_max / 2, self.bytes_max / STEPS + 1);
        if active <= half { 0 } else { (active - half).div_ceil(step) }
    }

    /// Requests sealing of the largest active memtables until the others hold at most half of the
    /// budget.
    fn request_seals(&self) {
        let writing = lock(&self.writing);
        // Writers continue meanwhile, so each store is looked at once.
        let left = writing.values().inspect(|_| step()).filter(|store| !store.seal_is_requested());
        let mut left: Vec<(usize, &StoreMemory)> =
            left.map(|store| (store.active(), &**store)).collect();
        let mut bytes: usize = left.iter().map(|(active, _)| active).sum();
        left.sort_unstable_by_key(|(active, _)| *active);
        while bytes > self.bytes_max / 2
            && let Some((active, largest)) = left.pop()
        {
            bytes -= active;
            largest.seal_is_requested.store(true, Ordering::Relaxed);
            largest.workers.call(&[WorkKind::Flush]);
        }
    }
}

impl StoreMemory {
    fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// Whether the active memtable must be sealed although it is not full.
    pub(crate) fn seal_is_requested(&self) -> bool {
        self.seal_is_requested.load(Ordering::Relaxed)
    }

    /// Sets whether flushes fail.
    pub(crate) fn note_stuck(&self, is_stuck: bool) {
        self.is_stuck.store(is_stuck, Ordering::SeqCst);
        self.count_stuck();
    }

    fn used_bytes(&self) -> usize {
        self.active.load(Ordering::SeqCst) + self.sealed.load(Ordering::SeqCst)
    }

    /// Updates the bytes that are counted as stuck. Called after each change of either.
    #[inline]
    fn count_stuck(&self) {
        let bytes = || if self.is_stuck.load(Ordering::SeqCst) { self.used_bytes() } else { 0 };
        loop {
            let now = bytes();
            let before = self.stuck.swap(now, Ordering::SeqCst);
            self.all.stuck.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
            // Otherwise another thread has changed it meanwhile, and its count may have come first.
            if bytes() == now {
                return;
            }
        }
    }

    /// Sets the bytes of the active memtable. Requires: the caller is the store's writer.
    pub(crate) fn note_active(self: &Arc<Self>, bytes: usize) {
        let before = self.active.swap(bytes, Ordering::SeqCst);
        self.note_changed(before, bytes);
        if bytes <= before {
            self.all.active.fetch_sub(before - bytes, Ordering::Relaxed);
            return;
        }
        let grown = bytes - before;
        let all = self.all.active.fetch_add(grown, Ordering::Relaxed);
        if self.all.steps_over_half(all + grown) > self.all.steps_over_half(all) {
            self.all.request_seals();
        }
    }

    /// Adapts the list of writing stores to a change of the active memtable's bytes.
    fn note_changed(self: &Arc<Self>, before: usize, bytes: usize) {
        if before == 0 && bytes > 0 {
            lock(&self.all.writing).insert(self.id, Arc::clone(self));
        } else if before > 0 && bytes == 0 {
            let gone = lock(&self.all.writing).remove(&self.id);
            drop(gone);
        }
        if self.is_stuck.load(Ordering::Relaxed) {
            self.count_stuck();
        }
    }

    /// Notes that a memtable of this many bytes is about to be sealed, and may be flushed then.
    /// Requires: the caller is the store's writer.
    pub(crate) fn note_sealed(self: &Arc<Self>, bytes: usize) {
        self.add_sealed(bytes);
        self.seal_is_requested.store(false, Ordering::Relaxed);
        self.note_active(0);
    }

    /// Adds bytes of sealed memtables.
    pub(crate) fn add_sealed(&self, bytes: usize) {
        self.sealed.fetch_add(bytes, Ordering::SeqCst);
        self.all.sealed.fetch_add(bytes, Ordering::Relaxed);
        self.count_stuck();
    }

    /// Notes that a sealed memtable of this many bytes was flushed.
    pub(crate) fn note_flushed(&self, bytes: usize) {
        // It may have been sealed before the store shared the budget.
        let bytes = bytes.min(self.sealed.load(Ordering::Relaxed));
        self.sealed.fetch_sub(bytes, Ordering::SeqCst);
        self.all.sealed.fetch_sub(bytes, Ordering::Relaxed);
        self.count_stuck();
    }

    /// Returns the use by this store and by those that are not stuck; 1 is the whole budget.
    pub(crate) fn fullness(&self) -> f64 {
        let (mut used, max) = (self.all.used_bytes(), self.all.bytes_max);
        if used > max {
            let all = self.all.stuck.load(Ordering::Relaxed);
            let others = all.saturating_sub(self.stuck.load(Ordering::Relaxed));
            used = used.saturating_sub(others);
        }
        used as f64 / max as f64
    }

    /// Removes the share of a closed store. Requires: it has no writer and no thread any more.
    pub(crate) fn leave(self: &Arc<Self>) {
        self.note_active(0);
        self.note_flushed(self.sealed.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::steps_of;
    use crate::shared::worker_pool::{PoolSize, WorkerPool};
    use crate::storage::life::Life;

    fn stores(bytes_max: usize, count: usize) -> (Arc<WriteMemory>, Vec<Arc<StoreMemory>>) {
        let pool = WorkerPool::new(PoolSize::of_one_store(1));
        let memory = Arc::new(WriteMemory::new(bytes_max));
        let place = || Arc::new(pool.place(Arc::new(Life::new("store".as_ref()))));
        let stores = (0..count).map(|_| memory.join(place(), false)).collect();
        (memory, stores)
    }

    fn requested(stores: &[Arc<StoreMemory>]) -> Vec<bool> {
        stores.iter().map(|store| store.seal_is_requested()).collect()
    }

    #[test]
    fn the_largest_memtable_is_to_be_sealed() {
        let (memory, stores) = stores(1_000, 3);
        stores[0].note_active(100);
        stores[1].note_active(300);
        stores[2].note_active(100);
        assert_eq!(requested(&stores), [false; 3], "half of it may be active");
        stores[0].note_active(101);
        assert_eq!(requested(&stores), [false, true, false], "not the one that writes");
        stores[0].note_active(290);
        assert_eq!(requested(&stores), [false, true, false], "what was requested counts as gone");
        stores[1].note_sealed(300);
        assert_eq!((requested(&stores), memory.used_bytes()), (vec![false; 3], 690));
        assert_eq!(stores[2].fullness(), 0.69);
        stores[1].note_flushed(300);
        assert_eq!(memory.used_bytes(), 390);
    }

    #[test]
    fn several_are_to_be_sealed_if_one_is_not_enough() {
        let (_, stores) = stores(1_000, 4);
        stores[..3].iter().for_each(|store| store.note_active(160));
        stores[3].note_active(1_000);
        assert_eq!(requested(&stores), [false, false, false, true]);
        stores[0].note_active(400);
        assert_eq!(requested(&stores), [true, false, false, true]);
    }

    #[test] // With a thousand stores that could not flush, each put once took 10 us more.
    fn a_store_that_cannot_flush_is_called_once_a_step() {
        let (memory, stores) = stores(256_000, 2);
        stores[0].note_active(200_000);
        assert_eq!(requested(&stores), [true, false]);
        let steps = |store: &Arc<StoreMemory>, bytes| {
            store.seal_is_requested.store(false, Ordering::Relaxed);
            store.note_active(bytes);
            store.seal_is_requested()
        };
        let over = memory.steps_over_half(200_000);
        let next = 128_000 + over * 1_001;
        assert!(!steps(&stores[0], next), "within the step");
        assert!(steps(&stores[0], next + 1), "the next one");
        assert!(!steps(&stores[0], next + 1), "nothing was written");
        assert!(!steps(&stores[0], next), "it became less");
        assert!(steps(&stores[0], 256_000), "many steps at once");
    }

    #[test]
    fn a_store_that_leaves_takes_nothing_with_it() {
        let (memory, stores) = stores(1_000, 2);
        stores[0].note_active(200);
        stores[0].note_sealed(200);
        stores[0].note_active(10);
        stores[1].note_active(20);
        stores[0].leave();
        let writing: Vec<u64> = lock(&memory.writing).keys().copied().collect();
        assert_eq!((memory.used_bytes(), writing), (20, vec![stores[1].id]));
    }

    #[test] // Once, a write beyond the budget looked at all stores.
    fn a_write_looks_at_no_other_store() {
        for count in [10, 1000] {
            let (memory, stores) = stores(1 << 20, count);
            let (writer, others) = stores.split_first().expect("there are some");
            others.iter().for_each(|store| store.note_stuck(store.id % 2 == 1));
            writer.note_active(3 << 20);
            let over = memory.steps_over_half(3 << 20);
            let within = (1 << 19) + over * ((1 << 20) / STEPS + 1);
            let ((), looks) = steps_of(|| writer.note_active(within));
            assert_eq!(looks, 0, "of {count}");
            let (fullness, looks) = steps_of(|| writer.fullness());
            assert!(fullness > 3.0 && looks == 0, "{looks} of {count}");
            let ((), looks) = steps_of(|| writer.note_active(within + 1));
            assert_eq!(looks, 1, "the others have nothing, of {count}");
        }
    }

    #[test] // Once, the other stores were slowed to a few hundred writes a second.
    fn others_are_not_slowed_down_for_a_store_that_is_stuck() {
        let (_, stores) = stores(1_000, 2);
        stores[0].note_active(3_000);
        stores[1].note_active(100);
        assert_eq!(stores[1].fullness(), 3.1);
        stores[0].note_stuck(true);
        assert_eq!((stores[0].fullness(), stores[1].fullness()), (3.1, 0.1));
        stores[0].note_stuck(false);
        assert_eq!(stores[1].fullness(), 3.1);
        stores[0].note_stuck(true);
        stores[0].note_sealed(2_900);
        assert_eq!((stores[0].fullness(), stores[1].fullness()), (3.0, 0.1));
        stores[0].note_flushed(2_900);
        assert_eq!((stores[0].fullness(), stores[1].fullness()), (0.1, 0.1));
    }
}
