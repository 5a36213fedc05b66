//! A quick hash for maps whose keys are numbers, and what such a map weighs.
//! ```text
//! number ──> remix ──> 64 bits
//! ```
//! Keys are numbers of buckets and of combinations, which no caller chooses freely. Invariant:
//! equal numbers, equal hashes.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::base::hash::remix;

/// For `HashMap<u32, _, QuickHash>`.
pub(super) type QuickHash = BuildHasherDefault<QuickHasher>;

/// One number's hash.
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

/// What a map's table takes: an entry and a byte of control for each place, and an eighth of the
/// places are free.
pub(super) fn map_bytes<V>(map: &HashMap<u32, V, QuickHash>) -> usize {
    let places = if map.capacity() == 0 { 0 } else { (map.capacity() * 8).div_ceil(7) };
    places * (size_of::<(u32, V)>() + 1)
}
