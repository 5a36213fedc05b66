//! Compares keys of point queries with the hash bits next to the base's fingerprints.
//! ```text
//! group  header | block 0, hashes of its keys | block 1, hashes | ... | last block
//!        | padding | hashes
//! ```
//! Queries close to stored keys fall into their cells, whatever the kind of fingerprint. A few hash
//! bits tell most of them apart (the idea of SuRF-Mixed). Ranges cannot use hashes, and get wider
//! cells in exchange. A block's hashes end where the next block begins; the last block's end where
//! the next group begins.
//!
//! Invariant: keys that differ only in trailing zeros have the same hash, as they have the same
//! cell.

use crate::bits::packed::read;
use crate::fingerprint::gap::WINDOW;
use crate::fingerprint::group::GROUP_ALIGN;
use crate::fingerprint::hashes::{bytes_of, point_hash};
use crate::grf::base::{Base, Spot, block_count};

impl Base {
    /// Whether the base may hold `key` itself, whose place is `spot`. False: it does not.
    #[inline(always)]
    pub(crate) fn may_hold(&self, key: &[u8], spot: &Spot) -> bool {
        spot.may_be_base() && (self.point_bits == 0 || self.may_have_hash(key, spot))
    }

    /// Whether a key in the cell of `spot` may have the hash of `key`.
    fn may_have_hash(&self, key: &[u8], spot: &Spot) -> bool {
        let (index, bits) = (spot.list - 1, self.point_bits);
        let group = self.group(index);
        if !group.has_hashes {
            return true;
        }
        let count = block_count(group.block(spot.bucket), group.kind);
        let start = 8 * (self.block_end(index, spot.bucket) - bytes_of(count, bits));
        let (before, through) = spot.ranks();
        let hash = point_hash(key, bits);
        (before..through).any(|rank| read(&self.arena, start + rank * bits, bits) == hash)
    }

    /// Returns the end of a block's bytes, hashes included.
    fn block_end(&self, index: usize, block: usize) -> usize {
        let group = self.group(index);
        if block + 1 < group.blocks {
            return self.directory.offset(index) * GROUP_ALIGN + group.block_at(block + 1);
        }
        if index + 1 < self.directory.len() {
            return self.directory.offset(index + 1) * GROUP_ALIGN;
        }
        self.arena.len() - WINDOW
    }
}
