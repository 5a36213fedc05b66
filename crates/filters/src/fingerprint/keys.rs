//! Sorted keys in one buffer, and the bits that neighbours share.
//! ```text
//! keys      drum   drums  tin
//! commons   ?      36     1       common bits with the key before (the first: with the one before the buffer)
//! ```
//! Invariant: the keys' bit strings ascend strictly; a key that adds only zero bits to the one before is not kept.

use crate::bits::key_bits::{bits_at, common_bits};
use std::cmp::Ordering;

/// The longest key that is taken.
pub(crate) const KEY_BYTES_MAX: usize = 1 << 16;

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// It is the last one now.
    Kept,
    /// It is above the last one, but only adds zero bits to it: not kept.
    Zeros,
    /// It is the last one again: not kept.
    Repeated,
    /// It is below the last one: not kept.
    Below,
}

/// Sorted keys, waiting to be encoded.
#[derive(Default)]
pub(crate) struct KeyBuffer {
    bytes: Vec<u8>,
    /// Where each key ends, and the bits that it shares with the key before.
    ends: Vec<u32>,
    commons: Vec<u32>,
    /// Where the last key begins.
    last: usize,
}

impl KeyBuffer {
    /// Adds the next key, if it is bytewise above the key before. Requires: of a length that a store takes; and at most
    /// 2^31 bytes in all.
    #[inline(always)]
    pub(crate) fn push(&mut self, key: &[u8]) -> Pushed {
        assert!(key.len() <= KEY_BYTES_MAX, "a key of {} bytes", key.len());
        let mut common = 0;
        if !self.ends.is_empty() {
            match shared_bits(&self.bytes[self.last..], key) {
                Ok(bits) => common = bits,
                Err(pushed) => return pushed,
            }
        }
        self.last = self.bytes.len();
        match key.first_chunk::<8>() {
            // The usual length: a move, not a call.
            Some(word) if key.len() == 8 => self.bytes.extend_from_slice(word),
            _ => self.bytes.extend_from_slice(key),
        }
        self.ends.push(self.bytes.len() as u32);
        self.commons.push(common as u32);
        Pushed::Kept
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of all keys.
    pub(crate) fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Heap bytes in use.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + 4 * (self.ends.capacity() + self.commons.capacity())
    }

    /// The key at a place.
    #[inline(always)]
    pub(crate) fn get(&self, place: usize) -> &[u8] {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.bytes[start as usize..self.ends[place] as usize]
    }

    /// The last key.
    pub(crate) fn last(&self) -> Option<&[u8]> {
        (!self.ends.is_empty()).then(|| &self.bytes[self.last..])
    }

    /// Per key, the bits it shares with the key before it.
    #[inline(always)]
    pub(crate) fn commons(&self) -> &[u32] {
        &self.commons
    }

    /// Gives `visit` of each of the first `count` keys 64 bits from bit `at` on.
    #[inline(always)]
    pub(crate) fn for_each_word(&self, count: usize, at: usize, mut visit: impl FnMut(u64)) {
        let (byte, shift) = (at / 8, at % 8);
        let mut start = 0;
        for &end in &self.ends[..count] {
            let end = end as usize;
            // Bytes of the next key are read as well, and cut off.
            let bits = match self.bytes.get(start + byte..).and_then(|rest| rest.first_chunk::<9>())
            {
                Some([word @ .., next]) if start + byte < end => {
                    let bits = u64::from_be_bytes(*word) << shift | u64::from(*next) >> (8 - shift);
                    let known = 8 * (end - start) - at;
                    if known < 64 { bits & !(u64::MAX >> known) } else { bits }
                }
                _ => bits_at(&self.bytes[start..end], at),
            };
            visit(bits);
            start = end;
        }
    }

    /// Forgets the first `count` keys.
    pub(crate) fn drop_front(&mut self, count: usize) {
        let start = if count == 0 { 0 } else { self.ends[count - 1] };
        self.bytes.drain(..start as usize);
        self.ends.drain(..count);
        self.commons.drain(..count);
        self.ends.iter_mut().for_each(|end| *end -= start);
        self.last = self.last.saturating_sub(start as usize);
    }
}

/// The bits that a key shares with the one before; or why it is not kept.
#[inline(always)]
fn shared_bits(last: &[u8], key: &[u8]) -> Result<usize, Pushed> {
    if let (Ok(last), Ok(key)) = (<[u8; 8]>::try_from(last), <[u8; 8]>::try_from(key)) {
        let (last, key) = (u64::from_be_bytes(last), u64::from_be_bytes(key));
        return match last.cmp(&key) {
            Ordering::Less => Ok((last ^ key).leading_zeros() as usize),
            Ordering::Equal => Err(Pushed::Repeated),
            Ordering::Greater => Err(Pushed::Below),
        };
    }
    match last.cmp(key) {
        Ordering::Less => common_bits(last, key).ok_or(Pushed::Zeros),
        Ordering::Equal => Err(Pushed::Repeated),
        Ordering::Greater => Err(Pushed::Below),
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
            let mut words = Vec::new();
            keys.for_each_word(keys.len(), at, |word| words.push(word));
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
}
