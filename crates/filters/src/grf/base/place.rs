//! The place of an entry in a chunk of the overlay.
//! ```text
//! place    bucket of the list (4 bits) | fraction (22 bits)
//! spot     list of the chunk (4 bits) | place
//! ```
//! Invariant: within a list, the places of range ends are monotone in keys.

use crate::fingerprint::directory::ACROSS_BITS;
use crate::fingerprint::group::BLOCKS_MAX;

/// The maximum number of lists in a chunk.
pub(crate) const LISTS_MAX: usize = 16;
/// The maximum number of buckets in a list.
pub(crate) const BUCKETS: usize = BLOCKS_MAX;
pub(crate) const BUCKET_BITS: usize = BUCKETS.ilog2() as usize;
/// Bits of a fraction as computed; packed entries store the leading ones.
pub(crate) const FRACTION_BITS: usize = 22;
pub(crate) const PLACE_BITS: usize = BUCKET_BITS + FRACTION_BITS;

/// Combines a bucket and a fraction into a place.
#[inline(always)]
pub(crate) fn place(bucket: usize, fraction: u64) -> u32 {
    debug_assert!(bucket < BUCKETS && fraction >> FRACTION_BITS == 0);
    (bucket << FRACTION_BITS) as u32 | fraction as u32
}

/// Estimates a key's index among `len` items of a chunk. `across`: the key's relative position in
/// its `list`. Items are assumed to be evenly spread over all lists.
#[inline(always)]
pub(crate) fn place_about(len: usize, list: usize, across: usize) -> usize {
    let across = ((list << ACROSS_BITS) + across) as u64;
    (len as u64 * across / (LISTS_MAX << ACROSS_BITS) as u64) as usize
}

/// Returns the first and the last place of a bucket.
#[inline(always)]
pub(crate) fn bucket_places(bucket: usize) -> (u32, u32) {
    (place(bucket, 0), place(bucket, (1 << FRACTION_BITS) - 1))
}
