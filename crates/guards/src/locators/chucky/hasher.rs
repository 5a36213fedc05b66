//! A fast hash for maps with numbers as keys, and the size of such maps.
//! ```text
//! number ──> remix ──> 64 bits
//! ```
//! The keys are bucket numbers and combinations, which no caller can choose freely. Invariant:
//! equal numbers have equal hashes.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use trommel_filters::hash::remix;

/// For `HashMap<u32, _, QuickHash>`.
pub(super) type QuickHash = BuildHasherDefault<QuickHasher>;

/// The hash of one number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QuickHasher(u64);

impl Hasher for QuickHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(u32::from(byte)));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        const SEED: u64 = 0x6a09_e667_f3bc_c908;
        self.0 = remix(self.0 ^ u64::from(number), SEED);
    }
}

/// Estimates the size of a map's table: an entry and a control byte per place, with one free place
/// in eight.
pub(super) fn map_bytes<V>(map: &HashMap<u32, V, QuickHash>) -> usize {
    let places = if map.capacity() == 0 { 0 } else { (map.capacity() * 8).div_ceil(7) };
    places * (size_of::<(u32, V)>() + 1)
}
