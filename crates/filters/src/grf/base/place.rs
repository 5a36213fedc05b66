//! Where in a chunk of the overlay an entry belongs.
//! ```text
//! place    bucket of the list (4 bits) | fraction (22 bits)
//! spot     list of the chunk (4 bits) | place
//! ```
//! Invariant: within a list, places of the ends of ranges are monotone in keys.

use crate::fingerprint::directory::ACROSS_BITS;
use crate::fingerprint::group::BLOCKS_MAX;

/// Lists of a chunk, at most.
pub(crate) const LISTS_MAX: usize = 16;
/// Buckets of a list, at most.
pub(crate) const BUCKETS: usize = BLOCKS_MAX;
pub(crate) const BUCKET_BITS: usize = BUCKETS.ilog2() as usize;
/// Bits of a fraction as it is computed; packed entries keep the first of them.
pub(crate) const FRACTION_BITS: usize = 22;
pub(crate) const PLACE_BITS: usize = BUCKET_BITS + FRACTION_BITS;

/// The place of a fraction of a bucket.
#[inline(always)]
pub(crate) fn place(bucket: usize, fraction: u64) -> u32 {
    debug_assert!(bucket < BUCKETS && fraction >> FRACTION_BITS == 0);
    (bucket << FRACTION_BITS) as u32 | fraction as u32
}

/// An estimate of a key's place among `len` items that a chunk has for its lists, in order. The key
/// lies `across` its `list`; items are taken as evenly spread over all lists.
#[inline(always)]
pub(crate) fn place_about(len: usize, list: usize, across: usize) -> usize {
    let across = ((list << ACROSS_BITS) + across) as u64;
    (len as u64 * across / (LISTS_MAX << ACROSS_BITS) as u64) as usize
}

/// The first and the last place of a bucket.
#[inline(always)]
pub(crate) fn bucket_places(bucket: usize) -> (u32, u32) {
    (place(bucket, 0), place(bucket, (1 << FRACTION_BITS) - 1))
}
