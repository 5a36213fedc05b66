//! A buffer of sorted keys with the lengths of their common prefixes.
//! ```text
//! keys     drum  drums  tin
//! commons  ?     36     1    common prefix with the previous key, in bits
//!                            (for the first: with the last key dropped from the buffer)
//! ```
//! Keys of eight bytes, the common case, are stored as words; their ends are stored only once a key
//! of another length comes. Dropped keys stay until they are half of all.
//!
//! Invariant: the keys' bit strings ascend strictly. A key that only appends zero bits to the
//! previous one is not kept.

use alloc::vec::Vec;

use crate::bits::key_bits::{bits_at, common_bits};
use core::cmp::Ordering;

/// The maximum length of a key, in bytes.
pub const KEY_BYTES_MAX: usize = 1 << 16;
/// Bytes per word.
pub const WORD_BYTES: usize = 8;

/// The result of pushing a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The key was added.
    Kept,
    /// The key is above the last one, but only appends zero bits to it: not kept.
    Zeros,
    /// The key equals the last one: not kept.
    Repeated,
    /// The key is below the last one: not kept.
    Below,
}

/// A buffer of sorted keys to encode.
#[derive(Default)]
pub struct KeyBuffer {
    bytes: Vec<u8>,
    /// The end of each key; empty if all keys are words.
    ends: Vec<u32>,
    /// The length of the common prefix with the previous key, in bits.
    commons: Vec<u32>,
    /// The start of the last key, and its value if all keys are words.
    last: usize,
    last_word: u64,
    /// Dropped keys that are still in the buffer: fewer than half.
    dropped: usize,
}

impl KeyBuffer {
    /// Adds the next key if it is bytewise above the previous one. Requires: at most
    /// [`KEY_BYTES_MAX`] bytes, and at most 2^31 bytes in all.
    #[inline(always)]
    pub fn push(&mut self, key: &[u8]) -> Pushed {
        match key.first_chunk() {
            Some(word) if key.len() == WORD_BYTES && self.ends.is_empty() => self.push_word(word),
            _ => self.push_any(key),
        }
    }

    /// Adds a word. Requires: all keys are words.
    #[inline(always)]
    fn push_word(&mut self, bytes: &[u8; WORD_BYTES]) -> Pushed {
        let word = u64::from_be_bytes(*bytes);
        let mut common = 0;
        if !self.commons.is_empty() {
            let last = self.last_word;
            if last >= word {
                return if last == word { Pushed::Repeated } else { Pushed::Below };
            }
            common = (last ^ word).leading_zeros();
        }
        (self.last, self.last_word) = (self.bytes.len(), word);
        self.bytes.extend_from_slice(bytes);
        self.commons.push(common);
        Pushed::Kept
    }

    /// Adds all of `words` and returns true. Adds none and returns false if the buffer is empty,
    /// has keys that are no words, or the words do not ascend.
    #[inline(always)]
    pub fn push_words(&mut self, words: &[[u8; WORD_BYTES]]) -> bool {
        if self.commons.is_empty() || !self.ends.is_empty() {
            return false;
        }
        let (known, mut last, mut ascend) = (self.commons.len(), self.last_word, true);
        self.commons.extend(words.iter().map(|word| {
            let word = u64::from_be_bytes(*word);
            ascend &= last < word;
            (core::mem::replace(&mut last, word) ^ word).leading_zeros()
        }));
        if !ascend {
            self.commons.truncate(known);
            return false;
        }
        self.bytes.extend_from_slice(words.as_flattened());
        (self.last, self.last_word) = (self.bytes.len() - WORD_BYTES, last);
        true
    }

    /// Adds a key of any length.
    #[inline(never)]
    fn push_any(&mut self, key: &[u8]) -> Pushed {
        assert!(key.len() <= KEY_BYTES_MAX, "a key of {} bytes", key.len());
        let mut common = 0;
        if let Some(last) = self.last() {
            match last.cmp(key) {
                Ordering::Less => {}
                Ordering::Equal => return Pushed::Repeated,
                Ordering::Greater => return Pushed::Below,
            }
            match common_bits(last, key) {
                Some(bits) => common = bits,
                None => return Pushed::Zeros,
            }
        }
        if self.ends.is_empty() {
            self.ends.extend((1..=self.commons.len()).map(|keys| (keys * WORD_BYTES) as u32));
        }
        self.last = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len() as u32);
        self.commons.push(common as u32);
        Pushed::Kept
    }

    /// Returns the start of a key, or the end of all keys.
    #[inline(always)]
    fn start(&self, place: usize) -> usize {
        let place = self.dropped + place;
        if self.ends.is_empty() {
            return place * WORD_BYTES;
        }
        place.checked_sub(1).map_or(0, |before| self.ends[before] as usize)
    }

    /// The number of keys.
    #[inline]
    pub fn len(&self) -> usize {
        self.commons.len() - self.dropped
    }

    /// The length of all keys in bits, if they are words.
    pub fn key_bits(&self) -> Option<usize> {
        self.ends.is_empty().then_some(8 * WORD_BYTES)
    }

    /// The length of all keys in bits, if it is the same. Takes linear time unless all keys are
    /// words. Requires: the buffer is not empty.
    pub fn length_bits(&self) -> Option<usize> {
        self.key_bits().or_else(|| {
            let bytes = self.get(0).len();
            let ends = self.ends.get(self.dropped..).unwrap_or_default();
            let len = |ends: &[u32]| (ends[1] - ends[0]) as usize;
            ends.windows(2).all(|ends| len(ends) == bytes).then_some(8 * bytes)
        })
    }

    /// Whether the buffer is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The total length of all keys, in bytes.
    #[inline]
    pub fn size_bytes(&self) -> usize {
        self.bytes.len() - self.start(0)
    }

    /// The heap memory in use, in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + 4 * (self.ends.capacity() + self.commons.capacity())
    }

    /// Returns the key at index `place`.
    #[inline(always)]
    pub fn get(&self, place: usize) -> &[u8] {
        &self.bytes[self.start(place)..self.start(place + 1)]
    }

    /// Returns the last key. None: the buffer is empty.
    #[inline]
    pub fn last(&self) -> Option<&[u8]> {
        (!self.commons.is_empty()).then(|| &self.bytes[self.last..])
    }

    /// For each key, the length of the common prefix with the previous key, in bits.
    #[inline(always)]
    pub fn commons(&self) -> &[u32] {
        &self.commons[self.dropped..]
    }

    /// Replaces `out` by 64 bits of each of the first `count` keys, from bit `at` on.
    #[inline(always)]
    pub fn take_views(&self, count: usize, at: usize, out: &mut Vec<u64>) {
        out.clear();
        if self.ends.is_empty() && at < 64 {
            let (words, _) = self.bytes[self.start(0)..self.start(count)].as_chunks();
            out.extend(words.iter().map(|word| u64::from_be_bytes(*word) << at));
        } else {
            out.extend((0..count).map(|place| self.view(place, at)));
        }
    }

    /// Returns 64 bits of a key from bit `at` on.
    #[inline(always)]
    pub fn view(&self, place: usize, at: usize) -> u64 {
        let (start, end) = (self.start(place), self.start(place + 1));
        let (byte, shift) = (at / 8, at % 8);
        // The load may include bytes of the next key, which are masked out.
        match self.bytes.get(start + byte..).and_then(|rest| rest.first_chunk::<9>()) {
            Some([word @ .., next]) if start + byte < end => {
                let bits = u64::from_be_bytes(*word) << shift | u64::from(*next) >> (8 - shift);
                let known = 8 * (end - start) - at;
                if known < 64 { bits & !(u64::MAX >> known) } else { bits }
            }
            _ => bits_at(&self.bytes[start..end], at),
        }
    }

    /// Drops the first `count` keys.
    pub fn drop_front(&mut self, count: usize) {
        self.dropped += count;
        if 2 * self.dropped >= self.commons.len() {
            self.drop_now();
        }
    }

    /// Moves the remaining keys to the front.
    fn drop_now(&mut self) {
        let start = self.start(0);
        let count = core::mem::take(&mut self.dropped);
        self.bytes.drain(..start);
        self.commons.drain(..count);
        self.last = self.last.saturating_sub(start);
        if !self.ends.is_empty() {
            self.drop_ends(count, start as u32);
        }
    }

    /// Drops the ends of the first `count` keys, which have `bytes` bytes. Drops all other ends,
    /// too, if the remaining keys are words.
    fn drop_ends(&mut self, count: usize, bytes: u32) {
        self.ends.drain(..count);
        self.ends.iter_mut().for_each(|end| *end -= bytes);
        let mut places = (1..).zip(&self.ends);
        if places.all(|(keys, &end)| end as usize == keys * WORD_BYTES) {
            self.ends.clear();
            self.last_word = self.last().map_or(0, |last| bits_at(last, 0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_know_what_they_share() {
        let mut keys = KeyBuffer::default();
        let kept: [&[u8]; 3] = [b"drum", b"drums", b"tin"];
        kept.iter().for_each(|key| assert_eq!(keys.push(key), Pushed::Kept));
        assert_eq!(keys.push(b"tin\0"), Pushed::Zeros, "the same bit string");
        assert_eq!(keys.push(b"tin"), Pushed::Repeated);
        assert_eq!(keys.push(b"tim"), Pushed::Below);
        assert_eq!(keys.commons(), [0, 33, 3]);
        keys.drop_front(1);
        assert_eq!((keys.len(), keys.get(0), keys.last()), (2, &b"drums"[..], Some(&b"tin"[..])));
        assert_eq!(keys.commons(), [33, 3]);
    }

    #[test]
    fn words_are_bits_of_their_own_key() {
        let mut keys = KeyBuffer::default();
        let mut sorted: Vec<Vec<u8>> = (0..300u32)
            .map(|i| {
                let noise = u128::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
                let mut key = noise.to_be_bytes().to_vec();
                key[0] = 0x5a;
                key.truncate(1 + i as usize % 16);
                key
            })
            .collect();
        sorted.sort();
        sorted.dedup();
        sorted
            .iter()
            .for_each(|key| assert!(keys.push(key) == Pushed::Kept || key.ends_with(&[0])));
        for at in 0..140 {
            let mut words = vec![7];
            keys.take_views(keys.len(), at, &mut words);
            let expected: Vec<u64> = (0..keys.len()).map(|i| bits_at(keys.get(i), at)).collect();
            assert_eq!(words, expected, "from bit {at}");
        }
    }

    #[test]
    fn order_is_that_of_bytes_whatever_the_length() {
        let numbers = [7u64, 8].map(u64::to_be_bytes);
        let pairs: [(&[u8], &[u8]); 3] =
            [(b"a", b"b"), (&numbers[0], &numbers[1]), (b"drum", b"drums")];
        for (lesser, greater) in pairs {
            let mut keys = KeyBuffer::default();
            assert_eq!(keys.push(greater), Pushed::Kept);
            assert_eq!(keys.push(greater), Pushed::Repeated);
            assert_eq!(keys.push(lesser), Pushed::Below);
            assert_eq!((keys.len(), keys.last()), (1, Some(greater)));
        }
    }

    #[test]
    fn words_and_other_keys_take_turns() {
        let mut keys = KeyBuffer::default();
        let (mut kept, mut next): (Vec<Vec<u8>>, _) = (Vec::new(), 1u64);
        for turn in 0..400 {
            next += 1 + turn * turn % 977;
            let mut key = next.to_be_bytes().to_vec();
            match turn / 20 % 3 {
                1 if turn % 2 == 0 => key.push(1 + turn as u8 % 3),
                2 if turn % 7 == 0 => key.extend([9; 20]),
                _ => {}
            }
            assert_eq!(keys.push(&key), Pushed::Kept);
            kept.push(key);
            if turn % 17 == 16 {
                keys.drop_front(15);
                kept.drain(..15);
            }
            assert_eq!((keys.len(), keys.last()), (kept.len(), kept.last().map(Vec::as_slice)));
            assert_eq!(keys.size_bytes(), kept.iter().map(Vec::len).sum::<usize>());
            let has_one_length = kept.iter().all(|key| key.len() == kept[0].len());
            assert_eq!(keys.length_bits(), has_one_length.then(|| 8 * kept[0].len()));
            let mut views = Vec::new();
            for at in [0, 3, 59, 64, 70] {
                keys.take_views(kept.len(), at, &mut views);
                let expected: Vec<u64> = kept.iter().map(|key| bits_at(key, at)).collect();
                assert_eq!(views, expected, "turn {turn}, bit {at}");
            }
            for (place, pair) in (1..).zip(kept.windows(2)) {
                assert_eq!(keys.get(place), pair[1]);
                let common = common_bits(&pair[0], &pair[1]).expect("they differ");
                assert_eq!(keys.commons()[place] as usize, common);
            }
        }
    }

    #[test]
    fn keys_of_one_length_that_are_no_words() {
        let mut keys = KeyBuffer::default();
        (0..30u32).for_each(|key| _ = keys.push(&key.to_be_bytes()));
        assert_eq!((keys.length_bits(), keys.key_bits()), (Some(32), None));
        keys.drop_front(20);
        assert_eq!(keys.length_bits(), Some(32));
        keys.push(&[9; 5]);
        assert_eq!(keys.length_bits(), None);
        keys.drop_front(10);
        assert_eq!(keys.length_bits(), Some(40));
    }
}
