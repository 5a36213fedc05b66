//! Keys behind each other, which many threads write at once, each to a place of its own.
//! ```text
//! | length + 1 | bytes | length + 1 | bytes | 0 ...      words of 64 bits
//!                                             not written yet
//! ```
//! Invariant: who sees a key's length sees its bytes.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::keys::KEY_BYTES_MAX;

const WORD_BYTES: usize = size_of::<u64>();

/// Words for keys.
pub(crate) struct Arena(Box<[AtomicU64]>);

/// A key that was read.
pub(crate) struct ReadKey {
    bytes: [u8; KEY_BYTES_MAX],
    len: usize,
}

impl Arena {
    /// Of so many words, nothing written.
    pub(crate) fn new(words: usize) -> Arena {
        Arena(zeros(words))
    }

    /// Words that a key of so many bytes takes.
    pub(crate) fn words_of(key_bytes: usize) -> usize {
        1 + key_bytes.div_ceil(WORD_BYTES)
    }

    /// The bytes that so many words have.
    pub(crate) fn bytes_of(words: usize) -> usize {
        words * WORD_BYTES
    }

    /// How many words there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Writes a key. Requires: it is cut, and its words are this writer's.
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

    /// Reads the key at a place, and gives the next place. None: it is not written yet. Requires: a
    /// key begins there.
    #[inline]
    pub(crate) fn read(&self, at: usize, key: &mut ReadKey) -> Option<usize> {
        key.len = (self.0[at].load(Ordering::Acquire) as usize).checked_sub(1)?;
        let next = at + Arena::words_of(key.len);
        for (bytes, word) in key.bytes.chunks_exact_mut(WORD_BYTES).zip(&self.0[at + 1..next]) {
            bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        Some(next)
    }

    /// The bytes that it takes.
    pub(crate) fn size_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

impl ReadKey {
    /// None yet.
    pub(crate) fn new() -> ReadKey {
        ReadKey { bytes: [0; KEY_BYTES_MAX], len: 0 }
    }

    /// The key.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// So many words of zero.
pub(crate) fn zeros(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}
