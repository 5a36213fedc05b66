//! An order-preserving code of text: each byte narrows the interval to its share, which is its
//! frequency after the previous bytes (arithmetic coding).
//! ```text
//! after "th"   [end][ a ][        e        ][ i ] ...     the share of a byte; none is empty
//!                        [.][ n ][ r ]...                 and so on, within it
//! ```
//! A context that was seen too rarely is replaced by a shorter one.
//! Invariant: a context depends on the previous bytes alone, so intervals of different bytes are
//! disjoint and in order.

use std::collections::HashMap;

use crate::keys::key_list::SortedKeys;

/// The shares of bytes in each context.
pub(crate) struct OrderModel {
    order: usize,
    /// For each context: where each symbol's share begins, and the end of the last one.
    shares: HashMap<u32, Vec<u32>>,
}

/// The end of a key, and all bytes.
const SYMBOLS: usize = 257;
/// All shares of a context sum up to 2 to the power of this.
const SHARE_BITS: u32 = 16;
/// A context counts if it was seen this often.
const SEEN_MIN: u32 = 50;
/// A narrower interval is not divided: further bytes make no difference.
const WIDTH_MIN: u128 = 1 << 20;

impl OrderModel {
    /// Builds the model of some keys. Requires: `order` is at most 2.
    pub(crate) fn of(keys: &SortedKeys, order: usize) -> Self {
        let mut counts: HashMap<u32, [u32; SYMBOLS]> = HashMap::new();
        for key in keys.iter() {
            for at in 0..=key.len() {
                for length in 0..=order {
                    let seen = counts.entry(context(key, at, length)).or_insert([0; SYMBOLS]);
                    seen[symbol(key.get(at))] += 1;
                }
            }
        }
        let is_known = |context: u32, seen: &[u32; SYMBOLS]| {
            context == NO_CONTEXT || seen.iter().sum::<u32>() >= SEEN_MIN
        };
        let known = counts.into_iter().filter(|(context, seen)| is_known(*context, seen));
        OrderModel {
            order,
            shares: known.map(|(context, seen)| (context, shares(&seen))).collect(),
        }
    }

    pub(crate) fn contexts(&self) -> usize {
        self.shares.len()
    }

    /// Returns the first and the last number of keys that begin with `prefix`. A key's own number
    /// is the first one: the end of a key comes before any byte.
    pub(crate) fn interval(&self, prefix: &[u8]) -> (u128, u128) {
        let (mut first, mut width) = (0, u128::MAX);
        for (at, byte) in prefix.iter().enumerate() {
            if width < WIDTH_MIN {
                break;
            }
            let (shares, symbol) = (self.shares_at(prefix, at), symbol(Some(byte)));
            let (begin, end) = (shares[symbol], shares[symbol + 1]);
            first += share_of(width, begin);
            width = share_of(width, end - begin);
        }
        (first, first + (width - 1))
    }

    fn shares_at(&self, key: &[u8], at: usize) -> &[u32] {
        let longest_known =
            (0..=self.order).rev().find_map(|length| self.shares.get(&context(key, at, length)));
        longest_known.expect("a model of a key or more has shares without a context")
    }
}

/// The empty context.
const NO_CONTEXT: u32 = 0;

/// Returns the context as a number: the `length` bytes before `at`, or all there are. The number
/// encodes `length` and how many bytes there are, too. Requires: `length` is at most 2.
fn context(key: &[u8], at: usize, length: usize) -> u32 {
    let before = &key[at.saturating_sub(length)..at];
    let bytes = before.iter().fold(0, |bytes, byte| bytes << 8 | u32::from(*byte));
    bytes | (before.len() as u32) << 16 | (length as u32) << 24
}

fn symbol(byte: Option<&u8>) -> usize {
    byte.map_or(0, |byte| 1 + usize::from(*byte))
}

/// Returns where each symbol's share begins. Each has one unit, and the rest in proportion to its
/// count. The most frequent symbol takes what rounding leaves.
fn shares(seen: &[u32; SYMBOLS]) -> Vec<u32> {
    let (all, given) =
        (seen.iter().map(|count| u64::from(*count)).sum::<u64>().max(1), 1 << SHARE_BITS);
    let free = given - SYMBOLS as u64;
    let mut shares = seen.map(|count| 1 + (free * u64::from(count) / all) as u32);
    let left = given as u32 - shares.iter().sum::<u32>();
    let most = (0..SYMBOLS).rev().max_by_key(|symbol| shares[*symbol]).unwrap_or(0);
    shares[most] += left;
    let mut sum = 0;
    let mut begins = vec![0];
    begins.extend(shares.iter().map(|share| {
        sum += share;
        sum
    }));
    begins
}

/// Returns `width * share / 2^SHARE_BITS`, rounded down. The product may exceed 128 bits.
fn share_of(width: u128, share: u32) -> u128 {
    let low = ((width & ((1 << SHARE_BITS) - 1)) * u128::from(share)) >> SHARE_BITS;
    (width >> SHARE_BITS) * u128::from(share) + low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(texts: &[&str]) -> SortedKeys {
        SortedKeys::from_list(&texts.iter().map(|text| text.as_bytes()).collect())
    }

    #[test]
    fn a_byte_has_one_share_and_more_by_its_count() {
        let mut seen = [0; SYMBOLS];
        (seen[symbol(Some(&b'a'))], seen[symbol(Some(&b'b'))]) = (1, 2);
        let begins = shares(&seen);
        let share = |at: usize| begins[at + 1] - begins[at];
        let free = (1 << 16) - 257;
        assert_eq!((begins.len(), begins[0], begins[257]), (258, 0, 1 << 16));
        assert_eq!((share(0), share(symbol(Some(&b'a')))), (1, 1 + free / 3));
        assert_eq!(share(symbol(Some(&b'b'))), 1 + free - free / 3, "what is left is its");
    }

    #[test]
    fn intervals_of_bytes_are_disjoint_in_order_and_lie_within_those_of_prefixes() {
        let model = OrderModel::of(&keys(&["", "ab", "abc", "b"]), 2);
        assert_eq!(model.contexts(), 1, "no other context was seen fifty times");
        let (mut below, all) = (None, model.interval(b""));
        assert_eq!(all, (0, u128::MAX - 1));
        for byte in 0..=u8::MAX {
            let (first, last) = model.interval(&[b'a', byte]);
            let within = model.interval(b"a");
            assert!(within.0 < first && last <= within.1, "behind the key \"a\" itself");
            assert!(below.is_none_or(|below| below < first) && first < last);
            below = Some(last);
        }
        assert!(model.interval(b"ab").0 < model.interval(b"abc").0);
    }

    #[test]
    fn contexts_are_told_apart_by_their_bytes_and_the_begin() {
        let of = |key: &str, at, length| context(key.as_bytes(), at, length);
        assert_eq!(of("xab", 3, 2), of("yab", 3, 2));
        assert_ne!(of("xab", 3, 2), of("xab", 3, 1));
        assert_ne!(of("ab", 1, 2), of("xa", 2, 1), "at the begin there is no byte before");
        assert_eq!(of("ab", 1, 0), NO_CONTEXT);
    }

    #[test]
    fn a_share_of_all_is_all() {
        for width in [u128::MAX, 1 << 20, (1 << 100) + 12345] {
            assert_eq!(share_of(width, 1 << SHARE_BITS), width);
            assert_eq!(share_of(width, 1), width >> SHARE_BITS);
        }
        assert_eq!(share_of(1 << 20, 3), 48);
    }
}
