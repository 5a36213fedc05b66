//! Keys: comparison by words, common prefixes, successors.
//! ```text
//! key_head        "drum"            -> 0x6472756d_00000000
//! common_prefix   "drum", "drone"   -> 2
//! successor       "drum"            -> "drum\0"
//! first_not       keys before "drum" -> index of the first other key
//! ```
//! Invariant: a lesser head means a lesser key. Equal heads decide nothing.

use std::ops::Range;

/// Returns the first eight bytes of a key as a big-endian number. Shorter keys are padded with
/// zeros.
#[inline]
pub(crate) fn key_head(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(head) => u64::from_be_bytes(*head),
        None => {
            let mut head = [0; 8];
            head[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(head)
        }
    }
}

/// Returns the length of the common prefix of `a` and `b`.
#[inline]
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let len = a.len().min(b.len());
    let mut at = 0;
    while at + 8 <= len {
        let word =
            |bytes: &[u8]| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let difference = word(a) ^ word(b);
        if difference != 0 {
            return at + difference.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while at < len && a[at] == b[at] {
        at += 1;
    }
    at
}

/// Bisects: returns the first place that is not before the target. Requires: places that are before
/// it precede the others.
#[inline]
pub(crate) fn first_not(places: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let Range { start: mut low, end: mut high } = places;
    while low < high {
        let middle = low.midpoint(high);
        if is_before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// Returns the least key after `key`.
pub(crate) fn successor(key: &[u8]) -> Vec<u8> {
    let mut after = Vec::with_capacity(key.len() + 1);
    after.extend_from_slice(key);
    after.push(0);
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn heads_never_contradict_keys(
            a in proptest::collection::vec(0u8..2, 0..12),
            b in proptest::collection::vec(0u8..2, 0..12),
        ) {
            let heads = key_head(&a).cmp(&key_head(&b));
            proptest::prop_assert!(heads.is_eq() || heads == a.cmp(&b));
        }

        #[test]
        fn a_common_prefix_is_as_long_as_can_be(
            a in proptest::collection::vec(0u8..2, 0..40),
            b in proptest::collection::vec(0u8..2, 0..40),
            same in 0usize..40,
        ) {
            let b = [&a[..same.min(a.len())], &b].concat();
            let expected = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
            proptest::prop_assert_eq!(common_prefix(&a, &b), expected);
        }
    }
}
