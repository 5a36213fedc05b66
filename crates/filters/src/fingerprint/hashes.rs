//! Hashes of keys: alone as fingerprints where order tells nothing, or in addition to a block's
//! fingerprints.
//! ```text
//! block's fingerprints | hash of key 0, key 1, ... (some bits each)
//! ```
//! Invariant: keys that differ only in trailing zero bytes have the same hash, as they have the
//! same cell.

use alloc::vec::Vec;

use super::spline::Layout;
use crate::base::hash::{HashUse, hash_key};
use crate::bits::packed::BitWriter;

/// The maximum number of hash bits per key.
pub const POINT_BITS_MAX: usize = 16;

/// Returns the hash of a key's bit string: without trailing zero bytes.
#[inline(always)]
pub fn hash_bit_string(key: &[u8]) -> u64 {
    let len = key.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    hash_key(&key[..len], HashUse::Grf)
}

/// Maps a hash to a position in its block.
#[inline(always)]
pub fn hash_position(hash: u64, layout: &Layout) -> u64 {
    ((u128::from(hash) * u128::from(layout.positions())) >> 64) as u64
}

/// Returns the `bits` hash bits of a key that are stored with its fingerprint. Requires: `bits` is
/// not 0.
pub fn point_hash(key: &[u8], bits: usize) -> u64 {
    hash_bit_string(key) >> (64 - bits)
}

/// The bytes that the hashes of `keys` keys take.
pub fn bytes_of(keys: usize, bits: usize) -> usize {
    (keys * bits).div_ceil(8)
}

/// Appends the hashes of a block's keys.
pub fn write_point_bits<'k>(keys: impl Iterator<Item = &'k [u8]>, bits: usize, out: &mut Vec<u8>) {
    if bits > 0 {
        let mut writer = BitWriter::new(out);
        keys.for_each(|key| writer.push(point_hash(key, bits), bits));
        writer.finish();
    }
}
