//! Large values that are made and checked as fast as memory is copied.
//! ```text
//! pool     random bytes; compressible: in each 512 bytes the second half repeats the first
//! value    number of its key u64 | version u64 | a stretch of the pool, which these two tell
//! ```
//! Invariant: a value follows from its key's number, its version and the seed alone.

use crate::keys::rng::{Rng, scramble};

const HEAD_BYTES: usize = 2 * size_of::<u64>();
/// The number of places in the pool at which values may begin.
const PLACES: usize = 4 << 20;
/// The unit of compressible bytes, whose second half repeats the first.
const PIECE_BYTES: usize = 512;

/// Makes values of one length.
pub(crate) struct LargeValues {
    pool: Vec<u8>,
    rest_bytes: usize,
    seed: u64,
}

impl LargeValues {
    /// The length of the head, which every value needs.
    pub(crate) const BYTES_MIN: usize = HEAD_BYTES;

    /// Requires: `value_bytes` is at least [`Self::BYTES_MIN`].
    pub(crate) fn new(value_bytes: usize, is_compressible: bool, seed: u64) -> Self {
        let rest_bytes = value_bytes.checked_sub(HEAD_BYTES).expect("it is long enough");
        let mut pool = Vec::with_capacity(PLACES + rest_bytes + PIECE_BYTES);
        let mut rng = Rng::new(scramble(seed));
        while pool.len() < PLACES + rest_bytes {
            let from = pool.len();
            let fresh = if is_compressible { PIECE_BYTES / 2 } else { PIECE_BYTES };
            while pool.len() < from + fresh {
                pool.extend_from_slice(&rng.next_u64().to_le_bytes());
            }
            if is_compressible {
                pool.extend_from_within(from..);
            }
        }
        LargeValues { pool, rest_bytes, seed }
    }

    fn head(number: u64, version: u64) -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        head[..size_of::<u64>()].copy_from_slice(&number.to_le_bytes());
        head[size_of::<u64>()..].copy_from_slice(&version.to_le_bytes());
        head
    }

    fn rest(&self, number: u64, version: u64) -> &[u8] {
        let from = scramble(scramble(self.seed ^ number).wrapping_add(version)) as usize % PLACES;
        &self.pool[from..from + self.rest_bytes]
    }

    /// Replaces `value` by a version of a key's value.
    pub(crate) fn fill(&self, value: &mut Vec<u8>, number: u64, version: u64) {
        value.clear();
        value.extend_from_slice(&Self::head(number, version));
        value.extend_from_slice(self.rest(number, version));
    }

    /// Whether `value` is that version of that key's value, comparing all bytes.
    pub(crate) fn is(&self, value: &[u8], number: u64, version: u64) -> bool {
        self.seems(value, number, version) && value[HEAD_BYTES..] == *self.rest(number, version)
    }

    /// Whether its length and head are right, which takes next to no time.
    pub(crate) fn seems(&self, value: &[u8], number: u64, version: u64) -> bool {
        let len = HEAD_BYTES + self.rest_bytes;
        value.len() == len && value[..HEAD_BYTES] == Self::head(number, version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_told_from_others_and_from_damaged_ones() {
        let mut value = Vec::new();
        for len in [HEAD_BYTES, HEAD_BYTES + 1, 5000] {
            let values = LargeValues::new(len, false, 3);
            values.fill(&mut value, 7, 2);
            assert_eq!(value.len(), len);
            assert!(values.is(&value, 7, 2) && values.seems(&value, 7, 2));
            assert!(!values.seems(&value, 7, 1) && !values.seems(&value, 8, 2));
            assert!(!values.is(&value[..len - 1], 7, 2), "a shorter one");
            *value.last_mut().expect("it has a head") ^= 1;
            assert!(!values.is(&value, 7, 2), "{len} bytes, the last one damaged");
        }
    }

    #[test]
    fn half_of_a_compressible_value_repeats_what_came_before() {
        let repeats = |is_compressible| {
            let values = LargeValues::new(64 << 10, is_compressible, 3);
            let mut value = Vec::new();
            values.fill(&mut value, 1, 1);
            let rest = &value[HEAD_BYTES..];
            let repeated = |at: &usize| rest[at - PIECE_BYTES / 2] == rest[*at];
            let count = (PIECE_BYTES / 2..rest.len()).filter(repeated).count();
            count as f64 / rest.len() as f64
        };
        assert!((0.45..0.55).contains(&repeats(true)), "{}", repeats(true));
        assert!(repeats(false) < 0.02, "{}", repeats(false));
    }
}
