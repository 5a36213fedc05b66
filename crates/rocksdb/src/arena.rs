//! Keys stored one after the other, which many threads write at once, each to its own place.
//! ```text
//! | length + 1 | bytes | length + 1 | bytes | 0 ...      words of 64 bits
//!                                             not written yet
//! ```
//! Invariant: a reader that sees a key's length sees the key's bytes.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::keys::KEY_BYTES_MAX;

const WORD_BYTES: usize = size_of::<u64>();

/// The words that hold keys.
pub(crate) struct Arena(Box<[AtomicU64]>);

/// A copy of a key that was read.
pub(crate) struct ReadKey {
    bytes: [u8; KEY_BYTES_MAX],
    len: usize,
}

impl Arena {
    /// Creates an arena of this many words, without keys.
    pub(crate) fn new(words: usize) -> Arena {
        Arena(zeros(words))
    }

    /// Returns the number of words that a key of this length takes.
    pub(crate) fn words_of(key_bytes: usize) -> usize {
        1 + key_bytes.div_ceil(WORD_BYTES)
    }

    /// Returns the number of bytes in this many words.
    pub(crate) fn bytes_of(words: usize) -> usize {
        words * WORD_BYTES
    }

    /// The number of words.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Writes a key. Requires: the key is cut, and its words belong to this writer.
    #[inline]
    pub(crate) fn write(&self, at: usize, key: &[u8]) {
        let place = &self.0[at..at + Arena::words_of(key.len())];
        let (whole, rest) = key.as_chunks::<WORD_BYTES>();
        for (place, word) in place[1..].iter().zip(whole) {
            place.store(u64::from_le_bytes(*word), Ordering::Relaxed);
        }
        if !rest.is_empty() {
            let mut word = [0; WORD_BYTES];
            word[..rest.len()].copy_from_slice(rest);
            place[place.len() - 1].store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
        place[0].store(key.len() as u64 + 1, Ordering::Release);
    }

    /// Reads the key at a word, and returns the word behind it. None: the key is not written yet.
    /// Requires: a key begins at the word.
    #[inline]
    pub(crate) fn read(&self, at: usize, key: &mut ReadKey) -> Option<usize> {
        key.len = (self.0[at].load(Ordering::Acquire) as usize).checked_sub(1)?;
        let next = at + Arena::words_of(key.len);
        for (bytes, word) in key.bytes.chunks_exact_mut(WORD_BYTES).zip(&self.0[at + 1..next]) {
            bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        Some(next)
    }

    /// Memory in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

impl ReadKey {
    /// Creates it without a key.
    pub(crate) fn new() -> ReadKey {
        ReadKey { bytes: [0; KEY_BYTES_MAX], len: 0 }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Allocates this many words, all zero.
pub(crate) fn zeros(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}
