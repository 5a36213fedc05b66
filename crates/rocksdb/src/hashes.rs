//! Hashes of keys, four bits of one word each, which many threads add and read at once.
//!
//! Invariant: a hash that was added is not denied.

use std::sync::atomic::{AtomicU64, Ordering};

use trommel_filters::hash::scaled;

use crate::arena::zeros;

/// Hashes that are added together.
pub(crate) const TOGETHER: usize = 16;

/// Bits of a word that are to be set.
pub(crate) struct Place<'w> {
    word: &'w AtomicU64,
    missing: u64,
}

impl<'w> Place<'w> {
    /// Reads the word, so that it is near when the bits are set.
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

    /// Adds hashes some at a time: their words lie far apart, and are waited for together.
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

    /// Where a hash is added. Requires: there are bits.
    #[inline]
    pub(crate) fn place(&self, hash: u64) -> Place<'_> {
        Place::of(&self.0[scaled(hash, self.0.len())], mask_of(hash))
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
