//! Traits: fixed random properties of the n-th thing of a kind, whatever the seed.
//! ```text
//! (kind, number) -> 64 random bits -> a share, a size, a name
//! ```
//! Invariant: a trait follows from kind and number alone.

use crate::keys::rng::scramble;

/// Returns the 64 random bits of the n-th thing of a kind, the same for ever.
pub(super) fn trait_of(kind: u64, number: u64) -> u64 {
    scramble(scramble(kind) ^ number)
}

/// Converts 64 random bits to a number in [0, 1).
pub(super) fn unit_of(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}
