//! Keys as 128-bit numbers, in the order of the keys.
//! ```text
//! numbers   the first bytes of a key, 16 at most, as they are
//! model     the same behind an order-preserving code (order_model.rs)
//! ```
//! Invariant: a greater key never has a lesser number. The keys that begin with a prefix have
//! numbers within the prefix's interval.

use crate::bound::order_model::OrderModel;
use crate::keys::key_list::SortedKeys;
use crate::keys::keyset::split_at_random;
use crate::keys::rng::Rng;

/// How keys become numbers.
pub(crate) enum Places {
    /// This many leading bytes; shorter keys are padded with zeros.
    Bytes(usize),
    Model(OrderModel),
}

/// The most keys from which a model is built.
const SAMPLE_MAX: usize = 100_000;

impl Places {
    /// Chooses the numbers for these keys. `order`: the order of the model; None: no model.
    pub(crate) fn of(keys: &SortedKeys, order: Option<usize>, rng: &mut Rng) -> Self {
        match order {
            None => Places::Bytes(keys.longest().min(size_of::<u128>())),
            Some(order) => {
                let sample = split_at_random(keys, keys.len().min(SAMPLE_MAX), rng).1;
                Places::Model(OrderModel::of(&sample, order))
            }
        }
    }

    /// Returns how many contexts the model distinguishes. None: there is no model.
    pub(crate) fn contexts(&self) -> Option<u64> {
        match self {
            Places::Bytes(_) => None,
            Places::Model(model) => Some(model.contexts() as u64),
        }
    }

    pub(crate) fn of_key(&self, key: &[u8]) -> u128 {
        self.of_prefix(key).0
    }

    /// Returns the first and the last number of keys that begin with `prefix`.
    pub(crate) fn of_prefix(&self, prefix: &[u8]) -> (u128, u128) {
        match self {
            Places::Bytes(bytes) => {
                let with = |rest: u8| {
                    let byte = |at: usize| prefix.get(at).copied().unwrap_or(rest);
                    (0..*bytes).fold(0, |number, at| number << 8 | u128::from(byte(at)))
                };
                (with(0), with(u8::MAX))
            }
            Places::Model(model) => model.interval(prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::dist::{Dist, FileFormat};
    use crate::keys::keyset::KeySet;

    #[test]
    fn numbers_keep_the_order_of_keys_and_prefixes_have_theirs() {
        for (dist, order) in [
            (Dist::Uniform, None),
            (Dist::Hosts, None),
            (Dist::Hosts, Some(0)),
            (Dist::Hosts, Some(2)),
            (Dist::Uuid7, Some(1)),
            (Dist::UserTime, Some(2)),
        ] {
            let keys = KeySet::new(&dist, FileFormat::Lines, Some(5000), 1).expect("keys");
            let stored = keys.stored();
            let places = Places::of(stored, order, &mut Rng::new(1));
            let numbers: Vec<u128> = stored.iter().map(|key| places.of_key(key)).collect();
            assert!(numbers.is_sorted(), "{dist}, {order:?}");
            let mut distinct = numbers.clone();
            distinct.dedup();
            assert!(order.is_none() || distinct.len() > 4500, "{dist}: {}", distinct.len());
            for (key, number) in stored.iter().zip(&numbers).step_by(7) {
                for bytes in 0..=key.len() {
                    let (first, last) = places.of_prefix(&key[..bytes]);
                    assert!(first <= *number && *number <= last, "{dist}, {order:?}, {bytes}");
                }
            }
        }
    }

    #[test]
    fn eight_bytes_are_their_own_number() {
        let keys = SortedKeys::from_integers(vec![5, 1 << 50]);
        let places = Places::of(&keys, None, &mut Rng::new(1));
        assert_eq!(places.of_key(keys.get(1)), 1 << 50);
        assert_eq!(places.of_prefix(&[0; 7]), (0, 255));
    }
}
