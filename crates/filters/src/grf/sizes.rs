//! Sizes and positions that base, overlay and part share.
//! ```text
//! cache line     64 bytes, which a prefetch loads
//! Arc            two reference counts before the value
//! allocation     a size word before it, rounded up to the allocator's granularity
//! tier           old or young entries of a chunk
//! slot           a range of packed entries
//! ```
//! Invariant: nothing here depends on the base or the overlay.

use core::ops::Range;

pub(crate) const LINE_BYTES: usize = 64;

/// The number of tiers in a chunk of the overlay, and their indexes.
pub(crate) const TIERS: usize = 2;
pub(crate) const OLD: usize = 0;
pub(crate) const YOUNG: usize = 1;

/// The two reference counts of an `Arc`.
pub(crate) const ARC_BYTES: usize = 2 * size_of::<usize>();

/// The range of packed entries that belong to a bucket.
#[derive(Clone, Copy, Default)]
pub(crate) struct Slot {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The index of their list in its chunk.
    pub(crate) list: u32,
    /// The bit position of their quotients.
    pub(crate) quotients: u32,
}

/// A bucket's slot in each tier of its chunk.
pub(crate) type Slots = [Slot; TIERS];

impl Slot {
    #[inline(always)]
    pub(crate) fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Returns the index of the first entry and the bit position of its quotients.
    #[inline(always)]
    pub(crate) fn first(&self) -> (usize, usize) {
        (self.start as usize, self.quotients as usize)
    }
}

/// The memory that an allocation of `bytes` takes, including the allocator's overhead.
pub(crate) fn allocated_bytes(bytes: usize) -> u64 {
    const SIZE_WORD: usize = 8;
    const GRAIN: usize = 16;
    const LEAST: usize = 32;
    let taken = (bytes + SIZE_WORD).next_multiple_of(GRAIN).max(LEAST);
    if bytes == 0 { 0 } else { taken as u64 }
}
