//! Memory for writes that several stores share.
//! ```text
//! active memtables    more than half of it -> the largest is asked for: it is sealed, and flushed
//! sealed ones         the other half, until they are flushed
//! both                more than all of it  -> writers are slowed down
//! ```
//! Without it, each store fills its own write buffer, and a hundred stores fill a hundred.
//!
//! Invariant: what a store is counted with is what its memtables hold; nothing, once it has left.

use crate::shared::worker_pool::{WorkKind, Workers};
use crate::sync::{Arc, AtomicBool, AtomicUsize, Mutex, Ordering, lock};

/// Steps of the memory at which the largest memtable is looked for.
const STEPS: usize = 256;

/// The memory, and the stores that share it.
pub(crate) struct WriteMemory {
    bytes_max: usize,
    /// Of all stores.
    active: AtomicUsize,
    sealed: AtomicUsize,
    stores: Mutex<Vec<Arc<StoreMemory>>>,
}

/// What one store has of it.
pub(crate) struct StoreMemory {
    all: Arc<WriteMemory>,
    workers: Arc<Workers>,
    active: AtomicUsize,
    sealed: AtomicUsize,
    /// Its active memtable is to be sealed.
    is_asked: AtomicBool,
    /// Its flushes fail, or nobody makes them: the others are not slowed down for what it has.
    is_stuck: AtomicBool,
}

impl WriteMemory {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let (active, sealed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        WriteMemory { bytes_max, active, sealed, stores: Mutex::default() }
    }

    /// A store shares it from now on. `is_stepped`: no thread flushes it.
    pub(crate) fn join(
        self: &Arc<Self>,
        workers: Arc<Workers>,
        is_stepped: bool,
    ) -> Arc<StoreMemory> {
        let store = Arc::new(StoreMemory {
            all: Arc::clone(self),
            workers,
            active: AtomicUsize::new(0),
            sealed: AtomicUsize::new(0),
            is_asked: AtomicBool::new(false),
            is_stuck: AtomicBool::new(is_stepped),
        });
        lock(&self.stores).push(Arc::clone(&store));
        store
    }

    /// What all memtables hold.
    pub(crate) fn used_bytes(&self) -> usize {
        self.active.load(Ordering::Relaxed) + self.sealed.load(Ordering::Relaxed)
    }

    /// Grows at half of the memory, and at each further step: who asks looks at all stores, so not
    /// every write asks while stores cannot flush.
    fn steps_over_half(&self, active: usize) -> usize {
        let (half, step) = (self.bytes_max / 2, self.bytes_max / STEPS + 1);
        active.saturating_sub(half).div_ceil(step)
    }

    /// Asks for the largest active memtables until the others hold at most half.
    fn ask_for_largest(&self) {
        let stores = lock(&self.stores);
        // Their writers go on meanwhile: each is looked at once.
        let left = stores.iter().filter(|store| !store.asked());
        let mut left: Vec<(usize, &StoreMemory)> =
            left.map(|store| (store.active(), &**store)).collect();
        let mut bytes: usize = left.iter().map(|(active, _)| active).sum();
        left.sort_unstable_by_key(|(active, _)| *active);
        while bytes > self.bytes_max / 2
            && let Some((active, largest)) = left.pop()
        {
            bytes -= active;
            largest.is_asked.swap(true, Ordering::AcqRel);
            largest.workers.call(&[WorkKind::Flush]);
        }
    }
}

impl StoreMemory {
    fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// Whether the active memtable is to be sealed, though it is not full.
    pub(crate) fn asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }

    /// As `asked`, once the writer has let go of its lock: a thread that found it locked before had
    /// asked before, so this sees it.
    pub(crate) fn asked_meanwhile(&self) -> bool {
        self.is_asked.fetch_or(false, Ordering::AcqRel)
    }

    /// Whether flushes fail.
    pub(crate) fn note_stuck(&self, is_stuck: bool) {
        self.is_stuck.store(is_stuck, Ordering::Relaxed);
    }

    fn used_bytes(&self) -> usize {
        self.active() + self.sealed.load(Ordering::Relaxed)
    }

    /// The active memtable holds so much now. Requires: the caller is the store's writer.
    pub(crate) fn note_active(&self, bytes: usize) {
        let before = self.active.swap(bytes, Ordering::Relaxed);
        if bytes <= before {
            self.all.active.fetch_sub(before - bytes, Ordering::Relaxed);
            return;
        }
        let grown = bytes - before;
        let all = self.all.active.fetch_add(grown, Ordering::Relaxed);
        if self.all.steps_over_half(all + grown) > self.all.steps_over_half(all) {
            self.all.ask_for_largest();
        }
    }

    /// A memtable of so much is sealed next, and may be flushed then. Requires: as above.
    pub(crate) fn note_sealed(&self, bytes: usize) {
        self.add_sealed(bytes);
        self.is_asked.store(false, Ordering::Relaxed);
        self.note_active(0);
    }

    /// So much is in sealed memtables, beside what is known.
    pub(crate) fn add_sealed(&self, bytes: usize) {
        self.sealed.fetch_add(bytes, Ordering::Relaxed);
        self.all.sealed.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A sealed memtable of so much was flushed.
    pub(crate) fn note_flushed(&self, bytes: usize) {
        // It may have been sealed before the store shared the memory.
        let bytes = bytes.min(self.sealed.load(Ordering::Relaxed));
        self.sealed.fetch_sub(bytes, Ordering::Relaxed);
        self.all.sealed.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// How much of the memory is used by this store and those whose flushes go on: 1 all of it.
    pub(crate) fn fullness(&self) -> f64 {
        let (mut used, max) = (self.all.used_bytes(), self.all.bytes_max);
        if used > max {
            let stores = lock(&self.all.stores);
            let counts = |store: &&Arc<StoreMemory>| {
                std::ptr::eq(&***store, self) || !store.is_stuck.load(Ordering::Relaxed)
            };
            used = stores.iter().filter(counts).map(|store| store.used_bytes()).sum();
        }
        used as f64 / max as f64
    }

    /// The store is closed. Requires: it has no writer, and no thread, any more.
    pub(crate) fn leave(&self) {
        self.note_active(0);
        self.note_flushed(self.sealed.load(Ordering::Relaxed));
        lock(&self.all.stores).retain(|store| !std::ptr::eq(&**store, self));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::worker_pool::{PoolSize, WorkerPool};
    use crate::storage::life::Life;

    fn stores(bytes_max: usize, count: usize) -> (Arc<WriteMemory>, Vec<Arc<StoreMemory>>) {
        let pool = WorkerPool::new(PoolSize::of_one_store(1));
        let memory = Arc::new(WriteMemory::new(bytes_max));
        let place = || Arc::new(pool.place(Arc::new(Life::new("store".as_ref()))));
        let stores = (0..count).map(|_| memory.join(place(), false)).collect();
        (memory, stores)
    }

    fn asked(stores: &[Arc<StoreMemory>]) -> Vec<bool> {
        stores.iter().map(|store| store.asked()).collect()
    }

    #[test]
    fn the_largest_memtable_is_asked_for() {
        let (memory, stores) = stores(1_000, 3);
        stores[0].note_active(100);
        stores[1].note_active(300);
        stores[2].note_active(100);
        assert_eq!(asked(&stores), [false; 3], "half of it may be active");
        stores[0].note_active(101);
        assert_eq!(asked(&stores), [false, true, false], "not the one that writes");
        stores[0].note_active(290);
        assert_eq!(asked(&stores), [false, true, false], "what was asked for counts as gone");
        stores[1].note_sealed(300);
        assert_eq!((asked(&stores), memory.used_bytes()), (vec![false; 3], 690));
        assert_eq!(stores[2].fullness(), 0.69);
        stores[1].note_flushed(300);
        assert_eq!(memory.used_bytes(), 390);
    }

    #[test]
    fn several_are_asked_for_if_one_is_not_enough() {
        let (_, stores) = stores(1_000, 4);
        stores[..3].iter().for_each(|store| store.note_active(160));
        stores[3].note_active(1_000);
        assert_eq!(asked(&stores), [false, false, false, true]);
        stores[0].note_active(400);
        assert_eq!(asked(&stores), [true, false, false, true]);
    }

    #[test] // With a thousand stores that could not flush, each put took 10 us more.
    fn a_store_that_cannot_flush_is_asked_once_a_step() {
        let (memory, stores) = stores(256_000, 2);
        stores[0].note_active(200_000);
        assert_eq!(asked(&stores), [true, false]);
        let steps = |store: &StoreMemory, bytes| {
            store.is_asked.store(false, Ordering::Relaxed);
            store.note_active(bytes);
            store.asked()
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
        assert_eq!((memory.used_bytes(), lock(&memory.stores).len()), (20, 1));
    }

    #[test] // They were slowed to a few hundred writes a second.
    fn others_are_not_slowed_down_for_a_store_that_is_stuck() {
        let (_, stores) = stores(1_000, 2);
        stores[0].note_active(3_000);
        stores[1].note_active(100);
        assert_eq!(stores[1].fullness(), 3.1);
        stores[0].note_stuck(true);
        assert_eq!((stores[0].fullness(), stores[1].fullness()), (3.1, 0.1));
        stores[0].note_stuck(false);
        assert_eq!(stores[1].fullness(), 3.1);
    }
}
