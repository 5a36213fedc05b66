//! The value of a key.
//! ```text
//! key -> a seed -> random bytes, half a value long, then the same again
//! ```
//! Invariant: a value follows from its key and length alone, so answers are checked without a copy.

use crate::keys::rng::scramble;

/// Fills in the value of a key. The first half is random, and the second half repeats it. So a
/// block compresses to about half, like much real data.
pub(crate) fn fill_value(value: &mut Vec<u8>, key: &[u8], value_bytes: usize) {
    value.clear();
    let seed =
        key.iter().fold(0u64, |seed, byte| seed.wrapping_mul(0x100_0000_01b3) ^ u64::from(*byte));
    let mut word = scramble(seed ^ key.len() as u64);
    let half = value_bytes.div_ceil(2);
    while value.len() < half {
        value.extend_from_slice(&word.to_le_bytes());
        word = scramble(word);
    }
    value.truncate(half);
    value.extend_from_within(..value_bytes - half);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_belong_to_their_keys() {
        let (mut value, mut other) = (Vec::new(), Vec::new());
        for len in [0, 1, 7, 100, 101] {
            fill_value(&mut value, b"key", len);
            assert_eq!(value.len(), len);
            fill_value(&mut other, b"kez", len);
            assert!(len == 0 || value != other);
        }
    }
}
