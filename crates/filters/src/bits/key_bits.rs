//! A byte string as a bit string, followed by zeros without end.
//! ```text
//! "ab"    01100001 01100010 00000000 00000000 ...
//! bit     0        8        16       24
//! ```
//! Invariant: if a <= b bytewise, a's bit string is not above b's. Two different keys have the same
//! bit string only if one is the other with zero bytes appended.

use alloc::vec::Vec;
use core::cmp::Ordering;

/// Returns 64 bits of `key` from byte `at` on, the first one as the most significant.
#[inline(always)]
pub fn word_at(key: &[u8], at: usize) -> u64 {
    if let Some(word) = key.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        return u64::from_be_bytes(*word);
    }
    if at >= key.len() {
        return 0;
    }
    match key.last_chunk::<8>() {
        // Loads the last eight bytes and shifts out those before `at`.
        Some(last) => u64::from_be_bytes(*last) << (8 * (8 - (key.len() - at))),
        None => padded_word(&key[at..]),
    }
}

fn padded_word(short: &[u8]) -> u64 {
    short
        .iter()
        .enumerate()
        .fold(0, |word, (place, &byte)| word | u64::from(byte) << (56 - 8 * place))
}

/// Returns 64 bits of `key` from bit `at` on, the first one as the most significant.
#[inline(always)]
pub fn bits_at(key: &[u8], at: usize) -> u64 {
    let (byte, shift) = (at / 8, at % 8);
    let next = key.get(byte + 8).copied().unwrap_or(0);
    word_at(key, byte) << shift | u64::from(next) >> (8 - shift)
}

/// Returns the smallest string above all strings with this prefix. None: no string is above them.
pub fn after_all_with(mut prefix: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = prefix.last_mut() {
        if let Some(next) = last.checked_add(1) {
            *last = next;
            return Some(prefix);
        }
        prefix.pop();
    }
    None
}

/// Returns the length of the common prefix in bits. None: both are the same bit string.
#[inline(always)]
pub fn common_bits(a: &[u8], b: &[u8]) -> Option<usize> {
    let longer = a.len().max(b.len());
    let mut at = 0;
    while at < longer {
        let difference = word_at(a, at) ^ word_at(b, at);
        if difference != 0 {
            return Some(at * 8 + difference.leading_zeros() as usize);
        }
        at += 8;
    }
    None
}

/// Compares the two bit strings.
#[inline(always)]
pub fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let longer = a.len().max(b.len());
    let mut at = 0;
    while at < longer {
        let order = word_at(a, at).cmp(&word_at(b, at));
        if order != Ordering::Equal {
            return order;
        }
        at += 8;
    }
    Ordering::Equal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bit(key: &[u8], at: usize) -> u64 {
        key.get(at / 8).map_or(0, |byte| u64::from(byte >> (7 - at % 8) & 1))
    }

    #[test]
    fn bits_are_those_of_the_bytes() {
        let key: Vec<u8> = (0..23u8).map(|i| i.wrapping_mul(151).wrapping_add(77)).collect();
        for len in 0..key.len() {
            for at in 0..200 {
                let expected = (0..64).fold(0, |word, i| word << 1 | bit(&key[..len], at + i));
                assert_eq!(bits_at(&key[..len], at), expected, "{len} {at}");
            }
        }
    }

    #[test]
    fn what_is_above_a_prefix_is_the_next_one_of_its_length_or_shorter() {
        assert_eq!(after_all_with(b"ab".to_vec()), Some(b"ac".to_vec()));
        assert_eq!(after_all_with(b"ab\xff\xff".to_vec()), Some(b"ac".to_vec()));
        assert_eq!(after_all_with(vec![0]), Some(vec![1]));
        assert_eq!(after_all_with(vec![0xff; 3]), None);
        assert_eq!(after_all_with(vec![]), None);
    }

    #[test]
    fn zeros_at_the_end_make_no_difference() {
        assert_eq!(common_bits(b"ab", b"ab\0\0\0\0\0\0\0\0\0"), None);
        assert_eq!(compare(b"", &[0; 20]), Ordering::Equal);
        assert_eq!(common_bits(b"", b"\0\0\0\x01"), Some(31));
        assert_eq!(common_bits(b"abcdefgh", b"abcdefgh\x80"), Some(64));
        assert_eq!(compare(b"abcdefgh", b"abcdefgh\x80"), Ordering::Less);
        assert_eq!(compare(b"b", b"abcdefghijkl"), Ordering::Greater);
    }
}
