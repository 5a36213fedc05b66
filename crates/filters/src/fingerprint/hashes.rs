//! Hashes of keys: as fingerprints where order tells nothing, and as bits beside those of a block.
//! ```text
//! block's fingerprints | hash of key 0, key 1, ... (some bits each)
//! ```
//! Invariant: keys that differ in zeros at the end have one hash, as they have one cell.

use alloc::vec::Vec;

use super::spline::Layout;
use crate::base::hash::{HashUse, hash_key};
use crate::bits::packed::BitWriter;

/// The most hash bits that a key can have.
pub const POINT_BITS_MAX: usize = 16;

/// The hash of a key as a bit string: keys that differ in zeros at the end have one.
#[inline(always)]
pub fn hash_bit_string(key: &[u8]) -> u64 {
    let len = key.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    hash_key(&key[..len], HashUse::Grf)
}

/// The position of a hash in its block.
#[inline(always)]
pub fn hash_position(hash: u64, layout: &Layout) -> u64 {
    ((u128::from(hash) * u128::from(layout.positions())) >> 64) as u64
}

/// The hash of a key that is compared, of `bits` bits, which are not 0.
pub fn point_hash(key: &[u8], bits: usize) -> u64 {
    hash_bit_string(key) >> (64 - bits)
}

/// The bytes of so many keys' hashes.
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
