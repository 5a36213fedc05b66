//! A Bloom filter of keys, with four bits in one word each, which many threads update and read at
//! once.
//!
//! Invariant: an added hash is not denied.

use std::sync::atomic::{AtomicU64, Ordering};

use trommel_filters::hash::scaled;

use crate::arena::zeros;

/// Hashes that are added together.
pub(crate) const TOGETHER: usize = 16;

/// Bits that are to be set in a word.
pub(crate) struct Place<'w> {
    word: &'w AtomicU64,
    missing: u64,
}

impl<'w> Place<'w> {
    /// Loads the word, so that it is cached when the bits are set.
    #[inline]
    pub(crate) fn of(word: &'w AtomicU64, bits: u64) -> Place<'w> {
        Place { word, missing: bits & !word.load(Ordering::Relaxed) }
    }

    /// Sets the bits.
    #[inline]
    pub(crate) fn set(&self) {
        if self.missing != 0 {
            self.word.fetch_or(self.missing, Ordering::Relaxed);
        }
    }
}

/// A Bloom filter that keeps all bits of a key in one word.
pub(crate) struct Hashes(Box<[AtomicU64]>);

impl Hashes {
    /// Creates a filter of this many bits, all zero.
    pub(crate) fn new(bits: usize) -> Hashes {
        Hashes(zeros(bits.div_ceil(64)))
    }

    /// Restores a filter from its words.
    pub(crate) fn of_words(words: Vec<u64>) -> Hashes {
        Hashes(words.into_iter().map(AtomicU64::new).collect())
    }

    /// All words.
    pub(crate) fn words(&self) -> impl ExactSizeIterator<Item = u64> {
        self.0.iter().map(|word| word.load(Ordering::Relaxed))
    }

    /// Adds hashes in groups: their words lie far apart, so that the cache misses of a group
    /// overlap.
    pub(crate) fn add_all(&self, mut hashes: impl Iterator<Item = u64>) {
        loop {
            let places: [_; TOGETHER] =
                std::array::from_fn(|_| hashes.next().map(|hash| self.place(hash)));
            places.iter().flatten().for_each(Place::set);
            if places.last().is_none_or(Option::is_none) {
                return;
            }
        }
    }

    /// The place to which a hash is added. Requires: there are bits.
    #[inline]
    pub(crate) fn place(&self, hash: u64) -> Place<'_> {
        Place::of(&self.0[scaled(hash, self.0.len())], mask_of(hash))
    }

    /// False proves that the hash was not added. Requires: there are bits.
    pub(crate) fn may_have(&self, hash: u64) -> bool {
        let mask = mask_of(hash);
        self.0[scaled(hash, self.0.len())].load(Ordering::Relaxed) & mask == mask
    }

    /// Memory in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

/// Four bits, chosen by the low end of the hash. The high end has chosen the word.
fn mask_of(hash: u64) -> u64 {
    1 << (hash & 63) | 1 << ((hash >> 6) & 63) | 1 << ((hash >> 12) & 63) | 1 << ((hash >> 18) & 63)
}
