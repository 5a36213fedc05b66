//! The hash function and the seed of each use. Both are part of the file formats.

use alloc::vec::Vec;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What a hash is for. Each use has its own seed, so filters of the same key err independently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashUse {
    /// Table filters: one hash of a key serves all tables.
    Table,
    /// The Bloom filter of a memtable; never persisted.
    Memtable,
    /// Hashed groups of a global range filter.
    Grf,
    /// Filters that map the hash of each key to its current run.
    Chucky,
}

impl HashUse {
    const fn seed(self) -> u64 {
        match self {
            HashUse::Table => 0x7472_6f6d_6d65_6c01,
            HashUse::Memtable => 0x7472_6f6d_6d65_6c02,
            HashUse::Grf => 0x7472_6f6d_6d65_6c03,
            HashUse::Chucky => 0x7472_6f6d_6d65_6c04,
        }
    }
}

/// The seed of checksums.
const CHECKSUM_SEED: u64 = 0x7472_6f6d_6d65_6c03;

/// Returns the checksum of a filter's image (XXH3, 64 bits).
pub fn checksum(bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, CHECKSUM_SEED)
}

/// Returns the hash of a key for one use (XXH3, 64 bits).
///
/// Most keys have eight bytes. For this constant length the hash takes a dozen instructions, which
/// are inlined. Keys of other lengths call a function: inlining it would compile all of XXH3 at
/// each use.
#[inline]
pub fn hash_key(key: &[u8], hash_use: HashUse) -> u64 {
    match key.first_chunk::<8>() {
        Some(word) if key.len() == word.len() => xxh3_64_with_seed(word, hash_use.seed()),
        _ => hash_any(key, hash_use),
    }
}

/// Same as [`hash_key`], without inlining.
#[inline(never)]
fn hash_any(key: &[u8], hash_use: HashUse) -> u64 {
    xxh3_64_with_seed(key, hash_use.seed())
}

/// An odd multiplier with irregular bits.
const FOLD: u64 = 0x9e6c_63d0_876a_68c5;

/// Derives another hash of the same key: both halves of a product, XORed. Each bit of the result
/// depends on every bit of `hash`.
#[inline(always)]
pub fn remix(hash: u64, seed: u64) -> u64 {
    let product = u128::from(hash ^ seed) * u128::from(FOLD);
    (product >> 64) as u64 ^ product as u64
}

/// Mixes `word` one to one: each bit of the result depends on every bit (the finalizer of
/// SplitMix64).
#[inline(always)]
pub fn mix(word: u64) -> u64 {
    let mixed = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Maps a hash to 0..`count` by its high bits. Returns 0 if `count` is 0.
#[inline(always)]
pub fn scaled(hash: u64, count: usize) -> usize {
    ((u128::from(hash) * count as u128) >> 64) as usize
}

/// Returns the n-th number of a fixed pseudorandom sequence.
#[inline]
pub fn scattered(nth: u64) -> u64 {
    remix(nth.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15), 0x2545_f491_4f6c_dd1d)
}

/// [`grouped`] sorts by this many high bits of a hash.
const GROUP_BITS: u32 = 9;

/// Sorts items by the high bits of their hashes. The sort is stable. Placing items by hash in this
/// order has good cache locality.
#[inline]
pub fn grouped<T: Copy + Default>(items: &[T], hash: impl Fn(T) -> u64) -> Vec<T> {
    let group = |item: T| (hash(item) >> (u64::BITS - GROUP_BITS)) as usize;
    let mut ends = [0usize; 1 << GROUP_BITS];
    items.iter().for_each(|&item| ends[group(item)] += 1);
    let mut sum = 0;
    for end in &mut ends {
        sum += core::mem::replace(end, sum);
    }
    let mut sorted = vec![T::default(); items.len()];
    for &item in items {
        let end = &mut ends[group(item)];
        sorted[*end] = item;
        *end += 1;
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bytes_have_the_hash_of_any_length() {
        let uses = [HashUse::Table, HashUse::Memtable, HashUse::Grf];
        let words = (0..1000).map(scattered).chain([0, 1, u64::MAX]);
        for (word, hash_use) in words.flat_map(|word| uses.map(|hash_use| (word, hash_use))) {
            let key = word.to_le_bytes();
            assert_eq!(hash_key(&key, hash_use), hash_any(&key, hash_use), "{word:x}");
        }
    }

    #[test]
    fn groups_ascend_and_keep_the_order_of_one_hash() {
        let items: Vec<(u64, usize)> =
            (0..10_000).map(|nth| (scattered(nth % 3000), nth as usize)).collect();
        let hash = |(seed, _): (u64, usize)| remix(seed, 7);
        let mut grouped = grouped(&items, hash);
        assert!(grouped.is_sorted_by_key(|&item| hash(item) >> (u64::BITS - GROUP_BITS)));
        for of_one in (0..3000).map(scattered) {
            let nths = grouped.iter().filter(|item| item.0 == of_one).map(|item| item.1);
            assert!(nths.is_sorted());
        }
        grouped.sort_unstable_by_key(|item| item.1);
        assert_eq!(grouped, items);
    }
}
