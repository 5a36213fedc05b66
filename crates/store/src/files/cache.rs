//! The block cache: blocks that were read lately, under one budget of bytes. There is no table to
//! look up: each open table has a slot for each of its blocks. S3-FIFO (docs/papers/s3-fifo.md).
//! ```text
//! a table's slots   [block 0] [empty] [block 2] [empty] [block 4]     a hit is the load of a slot
//!                        ^                 ^                 ^
//! fresh   new ->      place             place   -> out; if it was asked for, behind `kept`
//! kept                                   place  -> out; if it was asked for, behind itself
//!          ^ new, if the block left `fresh` a short while ago
//! ```
//! Invariant: slots change under the lock of the queues alone. There each full slot has one place,
//! and `used` is what full slots hold: at most the budget. So does each share count its own.

use std::collections::VecDeque;

use trommel_filters::prefetch_lines;

use crate::entries::block::{Block, BlockHeader};
use crate::storage::life::Life;
use crate::sync::{Arc, AtomicU8, AtomicU64, Mutex, Ordering, Slot, lock};

type Slots = Arc<[Slot<BlockHeader>]>;

/// What the slots of all tables share: one budget, and the order in which blocks go.
pub(crate) struct BlockCache {
    bytes_max: u64,
    queues: Mutex<Queues>,
}

/// The places of all full slots.
#[derive(Default)]
struct Queues {
    /// Blocks that nobody has asked for again, as far as is known: a tenth of all bytes.
    fresh: VecDeque<FilledSlot>,
    fresh_bytes: u64,
    kept: VecDeque<FilledSlot>,
    /// Places whose table was closed, and whose slots are empty therefore.
    dead_count: usize,
    used: u64,
    era: Era,
}

/// Times by which blocks that left `fresh` are remembered. One lasts until so many have left as a
/// quarter of the cache has places.
struct Era {
    /// 1 to 255, then 1 again.
    number: u8,
    left: usize,
}

/// One byte in so many is for blocks that nobody has asked for again.
const FRESH_SHARE: u64 = 10;
/// A block that comes back within so many eras was not fresh.
const REMEMBERED: u8 = 4;

impl Default for Era {
    fn default() -> Self {
        Era { number: 1, left: 0 }
    }
}

impl Era {
    /// A block leaves a cache of so many places.
    fn notes_one(&mut self, places: usize) {
        self.left += 1;
        if self.left * usize::from(REMEMBERED) >= places {
            *self = Era { number: self.number % u8::MAX + 1, left: 0 };
        }
    }

    /// Whether what is of another era is remembered. (So is, wrongly, what is 255 eras older.)
    fn remembers(&self, number: u8) -> bool {
        let age = (u16::from(self.number) + 255 - u16::from(number)) % 255;
        number > 0 && age < u16::from(REMEMBERED)
    }
}

/// What the queues know of one table.
struct TableSlots {
    slots: Slots,
    /// The era in which each block last left `fresh`. 0: it did not, or came back. Empty: slots are
    /// not always for the same, and nothing is remembered.
    left: Box<[AtomicU8]>,
    /// The count of its share. (Not the share, which has the cache: that would have itself.)
    of_share: Arc<AtomicU64>,
}

/// A slot that was filled.
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

/// What keeping a block costs.
fn cost(block: &Block) -> u64 {
    (block.size_bytes() + size_of::<FilledSlot>()) as u64
}

impl Queues {
    fn places(&self) -> usize {
        self.fresh.len() + self.kept.len()
    }

    /// A place for a block that came, at the end of its queue.
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

    /// The next place that may go. `spares`: no block that was asked for has to go yet.
    fn pop(&mut self, spares: bool) -> Option<FilledSlot> {
        let has_much = self.fresh_bytes * FRESH_SHARE > self.used;
        let is_fresh = has_much || !spares && !self.fresh.is_empty() || self.kept.is_empty();
        if is_fresh { self.fresh.pop_front() } else { self.kept.pop_front() }
    }

    /// Lets go of blocks until they use at most `bytes`. A block that was asked for is spared,
    /// though not for ever: readers ask for blocks meanwhile.
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

    /// Whether a block that leaves its place was fresh.
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

    /// Forgets dead places once they outnumber the living, so that it costs little per place.
    fn forget_dead(&mut self) {
        if self.dead_count > self.places() - self.dead_count {
            self.fresh.retain(|place| !place.slot().is_empty());
            self.kept.retain(|place| !place.slot().is_empty());
            self.dead_count = 0;
        }
    }
}

impl BlockCache {
    /// A cache of at most so many bytes, for the tables of one store or of many; of none: no cache.
    pub(crate) fn new(bytes_max: u64) -> Self {
        BlockCache { bytes_max, queues: Mutex::default() }
    }

    /// A share of it for the tables of one key space.
    pub(crate) fn share(self: &Arc<Self>) -> Arc<CacheShare> {
        Arc::new(CacheShare { cache: Arc::clone(self), bytes: Arc::default() })
    }

    /// The bytes that are kept now.
    pub(crate) fn size_bytes(&self) -> u64 {
        lock(&self.queues).used
    }
}

/// What the tables of one key space have of the cache: no part of the budget, but a count.
pub(crate) struct CacheShare {
    cache: Arc<BlockCache>,
    /// Changes under the lock of the queues, and so never exceeds the budget.
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
    /// The same, for the queues.
    of_queues: Arc<TableSlots>,
    life: Arc<Life>,
}

impl BlockSlots {
    /// Empty slots of this store. `remembers`: each is for one block always, and the block is
    /// remembered for a while when it leaves.
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
        let mut queues = lock(&cache.queues);
        if slot.is_empty() {
            queues.shrink_to(room);
            queues.push(FilledSlot { of: Arc::clone(&self.of_queues), number }, block);
            queues.takes(&self.share.bytes, cost(block));
            slot.replace(Some(block.clone().into_memory()));
        }
    }

    /// The memory of the slots themselves.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.slots) + size_of_val(&*self.of_queues.left)
    }
}

impl Drop for BlockSlots {
    fn drop(&mut self) {
        // In a child the lock may be held for ever; there the memory stays.
        if self.slots.is_empty() || self.life.is_forked() {
            return;
        }
        let mut queues = lock(&self.share.cache.queues);
        // Most slots are empty, and looking is cheaper than emptying.
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
