//! The block cache: blocks that were read lately, under one budget of bytes. There is no table to
//! look up: each open table has a slot for each of its blocks.
//! ```text
//! a table's slots   [block 0] [empty] [block 2] [empty] [block 4]     a hit is the load of a slot
//!                        ^                 ^                 ^
//! ring, one for all   place   place      place     ...     place  <-- new blocks come to the back
//!                       ^ the hand: out with it; to the back, if it was touched meanwhile
//! ```
//! Invariant: slots change under the ring's lock alone. There each full slot has one place in the
//! ring, and `used` is what full slots hold: at most the budget. So does each share count its own.

use std::collections::VecDeque;

use trommel_filters::prefetch_lines;

use crate::entries::block::{Block, BlockHeader};
use crate::storage::life::Life;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, Slot, lock};

type Slots = Arc<[Slot<BlockHeader>]>;

/// What the slots of all tables share: one budget, one hand that goes round.
pub(crate) struct BlockCache {
    bytes_max: u64,
    ring: Mutex<ClockRing>,
}

#[derive(Default)]
struct ClockRing {
    places: VecDeque<FilledSlot>,
    /// Places whose table was closed, and whose slots are empty therefore.
    dead_count: usize,
    used: u64,
}

/// A slot that was filled.
struct FilledSlot {
    slots: Slots,
    number: usize,
    /// The count of its share. (Not the share, which has the cache: that would have itself.)
    of_share: Arc<AtomicU64>,
}

impl FilledSlot {
    fn slot(&self) -> &Slot<BlockHeader> {
        &self.slots[self.number]
    }
}

/// What keeping a block costs.
fn cost(block: &Block) -> u64 {
    (block.size_bytes() + size_of::<FilledSlot>()) as u64
}

impl ClockRing {
    /// Lets go of blocks until they use at most `bytes`. A block that was touched since the hand
    /// came by is spared, though not for ever: readers touch blocks while the hand goes round.
    fn shrink_to(&mut self, bytes: u64) {
        let mut spared_left = self.places.len();
        while self.used > bytes
            && let Some(place) = self.places.pop_front()
        {
            let Some(block) = place.slot().hold().map(Block::from) else {
                self.dead_count -= 1;
                continue;
            };
            if spared_left > 0 && block.take_touch() {
                spared_left -= 1;
                self.places.push_back(place);
            } else {
                place.slot().replace(None);
                self.gives_back(&place.of_share, cost(&block));
            }
        }
    }

    fn takes(&mut self, of_share: &AtomicU64, bytes: u64) {
        self.used += bytes;
        of_share.fetch_add(bytes, Ordering::Relaxed);
    }

    fn gives_back(&mut self, of_share: &AtomicU64, bytes: u64) {
        self.used -= bytes;
        of_share.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Forgets dead places once they outnumber the living, so that it costs little per place.
    fn forget_dead(&mut self) {
        if self.dead_count > self.places.len() - self.dead_count {
            self.places.retain(|place| !place.slot().is_empty());
            self.dead_count = 0;
        }
    }
}

impl BlockCache {
    /// A cache of at most so many bytes, for the tables of one store or of many; of none: no cache.
    pub(crate) fn new(bytes_max: u64) -> Self {
        BlockCache { bytes_max, ring: Mutex::default() }
    }

    /// A share of it for the tables of one key space.
    pub(crate) fn share(self: &Arc<Self>) -> Arc<CacheShare> {
        Arc::new(CacheShare { cache: Arc::clone(self), bytes: Arc::default() })
    }

    /// The bytes that are kept now.
    pub(crate) fn size_bytes(&self) -> u64 {
        lock(&self.ring).used
    }
}

/// What the tables of one key space have of the cache: no part of the budget, but a count.
pub(crate) struct CacheShare {
    cache: Arc<BlockCache>,
    /// Changes under the ring's lock, and so never exceeds the budget.
    bytes: Arc<AtomicU64>,
}

impl CacheShare {
    /// The bytes that are kept now for its tables.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The budget of the whole cache.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.cache.bytes_max
    }

    /// As this one, for the tables of another key space.
    pub(crate) fn another(&self) -> Arc<CacheShare> {
        self.cache.share()
    }
}

/// The slots of one table. What is in them goes when they go.
pub(crate) struct BlockSlots {
    share: Arc<CacheShare>,
    /// As many as there are blocks; without a budget, none.
    slots: Slots,
    life: Arc<Life>,
}

impl BlockSlots {
    /// Empty slots for so many blocks of a table of this store.
    pub(crate) fn new(share: Arc<CacheShare>, life: Arc<Life>, block_count: usize) -> Self {
        let slot_count = if share.cache.bytes_max > 0 { block_count } else { 0 };
        let slots = (0..slot_count).map(|_| Slot::empty()).collect();
        BlockSlots { share, slots, life }
    }

    /// The block of this number. None: it is not here.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<Block> {
        let block = Block::from(self.slots.get(number)?.hold()?);
        block.touch();
        Some(block)
    }

    /// As `get`, if it is the block that is looked for. Others are not touched.
    pub(crate) fn get_if(&self, number: usize, is_it: impl Fn(&Block) -> bool) -> Option<Block> {
        let block = Block::from(self.slots.get(number)?.hold()?);
        if !is_it(&block) {
            return None;
        }
        block.touch();
        Some(block)
    }

    /// Whether there is a slot of this number, and no block in it now.
    pub(crate) fn is_empty(&self, number: usize) -> bool {
        self.slots.get(number).is_some_and(Slot::is_empty)
    }

    /// Asks for the memory of a slot, without waiting for it.
    #[inline]
    pub(crate) fn ask_for_slot(&self, number: usize) {
        prefetch_lines(&self.slots, number, 1);
    }

    /// Prefetches the memory where the block of this number begins, if it is here: its header, and
    /// the heads of its entries. Waits for nothing.
    #[inline]
    pub(crate) fn ask_for_block(&self, number: usize) {
        const LINES: usize = 5;
        if let Some(slot) = self.slots.get(number) {
            slot.ask_for(LINES);
        }
    }

    /// Keeps a block, unless it is here already or greater than the whole budget. It begins
    /// untouched, so that blocks which are read but once go before those that are read again.
    pub(crate) fn insert(&self, number: usize, block: &Block) {
        let Some(slot) = self.slots.get(number) else { return };
        let cache = &self.share.cache;
        let Some(room) = cache.bytes_max.checked_sub(cost(block)) else { return };
        let mut ring = lock(&cache.ring);
        if slot.is_empty() {
            ring.shrink_to(room);
            let (slots, of_share) = (Arc::clone(&self.slots), Arc::clone(&self.share.bytes));
            ring.places.push_back(FilledSlot { slots, number, of_share });
            ring.takes(&self.share.bytes, cost(block));
            slot.replace(Some(block.clone().into_memory()));
        }
    }

    /// The memory of the slots themselves.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }
}

impl Drop for BlockSlots {
    fn drop(&mut self) {
        // In a child the lock may be held for ever; there the memory stays.
        if self.slots.is_empty() || self.life.is_forked() {
            return;
        }
        let mut ring = lock(&self.share.cache.ring);
        // Most slots are empty, and looking is cheaper than emptying.
        let full = self.slots.iter().filter(|slot| !slot.is_empty());
        for block in full.filter_map(|slot| slot.replace(None)).map(Block::from) {
            ring.gives_back(&self.share.bytes, cost(&block));
            ring.dead_count += 1;
        }
        ring.forget_dead();
    }
}

#[cfg(test)]
mod tests;
