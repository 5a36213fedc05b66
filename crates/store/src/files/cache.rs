//! The block cache: recently read blocks, under one budget of bytes. Each open table has a slot for
//! each of its blocks, so a lookup needs no hash table. Eviction follows S3-FIFO
//! (docs/papers/s3-fifo.md).
//! ```text
//! a table's slots   [block 0] [empty] [block 2] [empty] [block 4]     a hit is the load of a slot
//!                        ^                 ^                 ^
//! fresh   new ->      place             place   -> out; if touched, to the end of `kept`
//! kept                                   place  -> out; if touched, to its own end
//!          ^ new, if the block left `fresh` a short while ago
//! ```
//! Invariant: slots change only under the lock of the queues. There each full slot has one place.
//! `used` is the size of all full slots, and at most the budget. Each share counts its own part of
//! it.

use std::collections::VecDeque;

use trommel_filters::prefetch_lines;

use crate::entries::block::{Block, BlockHeader};
use crate::storage::life::Life;
use crate::sync::{Arc, AtomicU8, AtomicU64, Mutex, Ordering, Slot, lock};

type Slots = Arc<[Slot<BlockHeader>]>;

/// What the slots of all tables share: one budget, and the order of eviction.
pub(crate) struct BlockCache {
    bytes_max: u64,
    queues: Mutex<Queues>,
}

/// The places of all full slots.
#[derive(Default)]
struct Queues {
    /// Blocks that were not touched again, as far as is known. Their target is a tenth of all
    /// bytes.
    fresh: VecDeque<FilledSlot>,
    fresh_bytes: u64,
    kept: VecDeque<FilledSlot>,
    /// Places of closed tables, whose slots are empty.
    dead_count: usize,
    used: u64,
    era: Era,
}

/// The clock by which blocks that left `fresh` are remembered. An era lasts until as many have left
/// as a quarter of all places.
struct Era {
    /// Runs from 1 to 255, then restarts at 1.
    number: u8,
    left: usize,
}

/// Share of the bytes that is for fresh blocks: one part in this many.
const FRESH_SHARE: u64 = 10;
/// A block that returns within this many eras goes to `kept`.
const REMEMBERED: u8 = 4;

impl Default for Era {
    fn default() -> Self {
        Era { number: 1, left: 0 }
    }
}

impl Era {
    /// Notes that a block leaves a cache with this many places.
    fn notes_one(&mut self, places: usize) {
        self.left += 1;
        if self.left * usize::from(REMEMBERED) >= places {
            *self = Era { number: self.number % u8::MAX + 1, left: 0 };
        }
    }

    /// Whether a block that left in this era is remembered. (A block that left 255 eras earlier is
    /// mistaken for it.)
    fn remembers(&self, number: u8) -> bool {
        let age = (u16::from(self.number) + 255 - u16::from(number)) % 255;
        number > 0 && age < u16::from(REMEMBERED)
    }
}

/// What the queues know of one table.
struct TableSlots {
    slots: Slots,
    /// The era in which each block last left `fresh`. 0: never, or it has returned. Empty if slots
    /// may change their blocks; then nothing is remembered.
    left: Box<[AtomicU8]>,
    /// The share's byte count. (Not the share: that refers to the cache, which would form a cycle.)
    of_share: Arc<AtomicU64>,
}

/// A full slot.
struct FilledSlot {
    of: Arc<TableSlots>,
    number: usize,
}

impl FilledSlot {
    fn slot(&self) -> &Slot<BlockHeader> {
        &self.of.slots[self.number]
    }

    fn left(&self) -> Option<&AtomicU8> {
        self.of.left.get(self.number)
    }
}

/// The bytes that a cached block is charged.
fn cost(block: &Block) -> u64 {
    (block.size_bytes() + size_of::<FilledSlot>()) as u64
}

impl Queues {
    fn places(&self) -> usize {
        self.fresh.len() + self.kept.len()
    }

    /// Appends a place for a new block to its queue.
    fn push(&mut self, place: FilledSlot, block: &Block) {
        let left = place.left().map_or(0, |left| left.swap(0, Ordering::Relaxed));
        if self.era.remembers(left) {
            self.kept.push_back(place);
        } else {
            block.note_fresh(true);
            self.fresh_bytes += cost(block);
            self.fresh.push_back(place);
        }
    }

    /// Returns the next place to evict. `spares`: touched blocks can still be spared.
    fn pop(&mut self, spares: bool) -> Option<FilledSlot> {
        let has_much = self.fresh_bytes * FRESH_SHARE > self.used;
        let is_fresh = has_much || !spares && !self.fresh.is_empty() || self.kept.is_empty();
        if is_fresh { self.fresh.pop_front() } else { self.kept.pop_front() }
    }

    /// Evicts blocks until they use at most `bytes`. Touched blocks are spared, but no more of them
    /// than there are places, since readers touch blocks meanwhile.
    fn shrink_to(&mut self, bytes: u64) {
        let mut spared_left = self.places();
        while self.used > bytes
            && let Some(place) = self.pop(spared_left > 0)
        {
            let Some(block) = place.slot().hold().map(Block::from) else {
                self.dead_count -= 1;
                continue;
            };
            let was_fresh = self.leaves_fresh(&block);
            let was_asked_for = if was_fresh { block.forget_touches() } else { block.take_touch() };
            if spared_left > 0 && was_asked_for {
                spared_left -= 1;
                self.kept.push_back(place);
                continue;
            }
            place.slot().replace(None);
            self.gives_back(&place.of.of_share, cost(&block));
            if let Some(left) = place.left().filter(|_| was_fresh) {
                left.store(self.era.number, Ordering::Relaxed);
                self.era.notes_one(self.places());
            }
        }
    }

    /// Ends a block's freshness. Returns whether it was fresh.
    fn leaves_fresh(&mut self, block: &Block) -> bool {
        let was_fresh = block.note_fresh(false);
        if was_fresh {
            self.fresh_bytes -= cost(block);
        }
        was_fresh
    }

    fn takes(&mut self, of_share: &AtomicU64, bytes: u64) {
        self.used += bytes;
        of_share.fetch_add(bytes, Ordering::Relaxed);
    }

    fn gives_back(&mut self, of_share: &AtomicU64, bytes: u64) {
        self.used -= bytes;
        of_share.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Removes dead places once they outnumber the living, so the cost per place is constant.
    fn forget_dead(&mut self) {
        if self.dead_count > self.places() - self.dead_count {
            self.fresh.retain(|place| !place.slot().is_empty());
            self.kept.retain(|place| !place.slot().is_empty());
            self.dead_count = 0;
        }
    }
}

impl BlockCache {
    /// Creates a cache of at most `bytes_max` bytes, for the tables of one store or many. 0: no
    /// cache.
    pub(crate) fn new(bytes_max: u64) -> Self {
        BlockCache { bytes_max, queues: Mutex::default() }
    }

    /// Creates a share for the tables of one key space.
    pub(crate) fn share(self: &Arc<Self>) -> Arc<CacheShare> {
        Arc::new(CacheShare { cache: Arc::clone(self), bytes: Arc::default() })
    }

    /// The bytes of the cached blocks.
    pub(crate) fn size_bytes(&self) -> u64 {
        lock(&self.queues).used
    }
}

/// What the tables of one key space use of the cache. It is only a count, not a part of the budget.
pub(crate) struct CacheShare {
    cache: Arc<BlockCache>,
    /// Changes under the lock of the queues, so it never exceeds the budget.
    bytes: Arc<AtomicU64>,
}

impl CacheShare {
    /// The bytes of the cached blocks of its tables.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The budget of the whole cache.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.cache.bytes_max
    }

    /// Creates a share of the same cache for another key space.
    pub(crate) fn another(&self) -> Arc<CacheShare> {
        self.cache.share()
    }
}

/// The slots of one table. Dropping them frees their blocks.
pub(crate) struct BlockSlots {
    share: Arc<CacheShare>,
    /// One for each block; none without a budget.
    slots: Slots,
    /// The same slots, for the queues.
    of_queues: Arc<TableSlots>,
    life: Arc<Life>,
}

impl BlockSlots {
    /// Creates empty slots. `remembers`: each slot is for one fixed block, and the cache remembers
    /// for a while that the block was evicted.
    pub(crate) fn new(
        share: Arc<CacheShare>,
        life: Arc<Life>,
        count: usize,
        remembers: bool,
    ) -> Self {
        let count = if share.cache.bytes_max > 0 { count } else { 0 };
        let slots: Slots = (0..count).map(|_| Slot::empty()).collect();
        let remembered = if remembers { count } else { 0 };
        let left = (0..remembered).map(|_| AtomicU8::new(0)).collect();
        let of_share = Arc::clone(&share.bytes);
        let of_queues = Arc::new(TableSlots { slots: Arc::clone(&slots), left, of_share });
        BlockSlots { share, slots, of_queues, life }
    }

    /// Returns a block, and touches it. `None`: it is not cached.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<Block> {
        let block = Block::from(self.slots.get(number)?.hold()?);
        block.touch();
        Some(block)
    }

    /// As `get`, if `is_it` accepts the block. Others are not touched.
    pub(crate) fn get_if(&self, number: usize, is_it: impl Fn(&Block) -> bool) -> Option<Block> {
        let block = Block::from(self.slots.get(number)?.hold()?);
        if !is_it(&block) {
            return None;
        }
        block.touch();
        Some(block)
    }

    /// Whether this slot exists and is empty.
    pub(crate) fn is_empty(&self, number: usize) -> bool {
        self.slots.get(number).is_some_and(Slot::is_empty)
    }

    /// Prefetches a slot.
    #[inline]
    pub(crate) fn prefetch_slot(&self, number: usize) {
        prefetch_lines(&self.slots, number, 1);
    }

    /// Prefetches the start of a cached block: its header, and the heads of its entries.
    #[inline]
    pub(crate) fn prefetch_block(&self, number: usize) {
        const LINES: usize = 12;
        if let Some(slot) = self.slots.get(number) {
            slot.prefetch(LINES);
        }
    }

    /// Caches a block, unless it is cached already or exceeds the whole budget. It begins
    /// untouched, so blocks that are read once are evicted before those that are read again.
    pub(crate) fn insert(&self, number: usize, block: &Block) {
        let Some(slot) = self.slots.get(number) else { return };
        let cache = &self.share.cache;
        let Some(room) = cache.bytes_max.checked_sub(cost(block)) else { return };
        let mut queues = lock(&cache.queues);
        if slot.is_empty() {
            queues.shrink_to(room);
            queues.push(FilledSlot { of: Arc::clone(&self.of_queues), number }, block);
            queues.takes(&self.share.bytes, cost(block));
            slot.replace(Some(block.clone().into_memory()));
        }
    }

    /// The memory of the slots themselves, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.slots) + size_of_val(&*self.of_queues.left)
    }
}

impl Drop for BlockSlots {
    fn drop(&mut self) {
        // In a forked child the lock may be held forever, so the memory is leaked.
        if self.slots.is_empty() || self.life.is_forked() {
            return;
        }
        let mut queues = lock(&self.share.cache.queues);
        // Most slots are empty, and a look is cheaper than a swap.
        let full = self.slots.iter().filter(|slot| !slot.is_empty());
        for block in full.filter_map(|slot| slot.replace(None)).map(Block::from) {
            queues.leaves_fresh(&block);
            queues.gives_back(&self.share.bytes, cost(&block));
            queues.dead_count += 1;
        }
        queues.forget_dead();
    }
}

#[cfg(test)]
mod tests;
