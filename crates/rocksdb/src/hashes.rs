//! Hashes of keys, four bits of one word each, which many threads add and read at once.
//!
//! Invariant: a hash that was added is not denied.

use std::sync::atomic::{AtomicU64, Ordering};

use trommel_filters::hash::scaled;

use crate::recent::zeros;

/// A Bloom filter whose bits of a key lie in one word.
pub(crate) struct Hashes(Box<[AtomicU64]>);

impl Hashes {
    /// With so many bits, all of them clear.
    pub(crate) fn new(bits: usize) -> Hashes {
        Hashes(zeros(bits.div_ceil(64)))
    }

    /// Of words that were written.
    pub(crate) fn of_words(words: Vec<u64>) -> Hashes {
        Hashes(words.into_iter().map(AtomicU64::new).collect())
    }

    /// All words.
    pub(crate) fn words(&self) -> impl ExactSizeIterator<Item = u64> {
        self.0.iter().map(|word| word.load(Ordering::Relaxed))
    }

    /// Requires: there are bits.
    pub(crate) fn add(&self, hash: u64) {
        self.0[scaled(hash, self.0.len())].fetch_or(mask_of(hash), Ordering::Relaxed);
    }

    /// False: it was not added. Requires: there are bits.
    pub(crate) fn may_have(&self, hash: u64) -> bool {
        let mask = mask_of(hash);
        self.0[scaled(hash, self.0.len())].load(Ordering::Relaxed) & mask == mask
    }

    /// The bytes that it takes.
    pub(crate) fn size_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

/// Four bits by the low end of the hash: the high end has chosen the word.
fn mask_of(hash: u64) -> u64 {
    1 << (hash & 63) | 1 << ((hash >> 6) & 63) | 1 << ((hash >> 12) & 63) | 1 << ((hash >> 18) & 63)
}
