//! Sizes that the base, the overlay and the whole part share.
//! ```text
//! cache line     64 bytes, which a prefetch loads
//! Arc            two counts before the value
//! allocation     a size word before it, rounded up to the allocator's grain
//! slot           a range of packed entries
//! ```
//! Invariant: nothing here knows the base or the overlay.

use std::ops::Range;

pub(crate) const LINE_BYTES: usize = 64;

/// The two counts before what an `Arc` holds.
pub(crate) const ARC_BYTES: usize = 2 * size_of::<usize>();

/// The packed entries in a place's slot.
pub(crate) type Slot = (u32, u32);

#[inline(always)]
pub(crate) fn range((start, end): Slot) -> Range<usize> {
    start as usize..end as usize
}

/// What an allocation of `bytes` takes: a size word before it, rounded to the allocator's grain.
pub(crate) fn allocated_bytes(bytes: usize) -> u64 {
    const SIZE_WORD: usize = 8;
    const GRAIN: usize = 16;
    const LEAST: usize = 32;
    let taken = (bytes + SIZE_WORD).next_multiple_of(GRAIN).max(LEAST);
    if bytes == 0 { 0 } else { taken as u64 }
}
