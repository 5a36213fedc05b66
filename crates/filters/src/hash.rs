//! The one hash, and its named seeds. Persisted: changing either changes a format.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What a hash is for. One seed for each, so that filters of one key are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashUse {
    /// Filters of one table: one hash of a key serves all that are asked.
    Table,
    /// The Bloom filter of a memtable; never persisted.
    Memtable,
    /// Hashed groups of a global range filter.
    Grf,
}

impl HashUse {
    const fn seed(self) -> u64 {
        match self {
            HashUse::Table => 0x7472_6f6d_6d65_6c01,
            HashUse::Memtable => 0x7472_6f6d_6d65_6c02,
            HashUse::Grf => 0x7472_6f6d_6d65_6c03,
        }
    }
}

/// The seed of checksums.
const CHECKSUM_SEED: u64 = 0x7472_6f6d_6d65_6c03;

/// The checksum of a filter's image (XXH3, 64 bits).
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, CHECKSUM_SEED)
}

/// The hash of a key for one use (XXH3, 64 bits).
#[inline]
pub fn hash_key(key: &[u8], hash_use: HashUse) -> u64 {
    xxh3_64_with_seed(key, hash_use.seed())
}
