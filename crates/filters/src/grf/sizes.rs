//! Sizes that the base, the overlay and the whole part share.
//! ```text
//! cache line     64 bytes, which a prefetch loads
//! Arc            two counts before the value
//! allocation     a size word before it, rounded up to the allocator's grain
//! tier           old or young entries of a chunk
//! slot           a range of packed entries
//! ```
//! Invariant: nothing here knows the base or the overlay.

use core::ops::Range;

pub(crate) const LINE_BYTES: usize = 64;

/// The tiers of a chunk of the overlay, and which is which.
pub(crate) const TIERS: usize = 2;
pub(crate) const OLD: usize = 0;
pub(crate) const YOUNG: usize = 1;

/// The two counts before what an `Arc` holds.
pub(crate) const ARC_BYTES: usize = 2 * size_of::<usize>();

/// The packed entries of a place's slot.
#[derive(Clone, Copy, Default)]
pub(crate) struct Slot {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Their list in its chunk.
    pub(crate) list: u32,
    /// The bit at which their quotients begin.
    pub(crate) quotients: u32,
}

/// A place's slot in each tier of its chunk.
pub(crate) type Slots = [Slot; TIERS];

impl Slot {
    #[inline(always)]
    pub(crate) fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The first entry, and the first bit of the quotients.
    #[inline(always)]
    pub(crate) fn first(&self) -> (usize, usize) {
        (self.start as usize, self.quotients as usize)
    }
}

/// What an allocation of `bytes` takes: a size word before it, rounded to the allocator's grain.
pub(crate) fn allocated_bytes(bytes: usize) -> u64 {
    const SIZE_WORD: usize = 8;
    const GRAIN: usize = 16;
    const LEAST: usize = 32;
    let taken = (bytes + SIZE_WORD).next_multiple_of(GRAIN).max(LEAST);
    if bytes == 0 { 0 } else { taken as u64 }
}
