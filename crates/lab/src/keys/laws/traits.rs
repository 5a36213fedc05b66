//! Traits: what belongs to the n-th thing of a kind, whatever the seed.
//! ```text
//! (kind, number) -> 64 random bits -> a share, a size, a name
//! ```
//! Invariant: a trait follows from kind and number alone.

use crate::keys::rng::scramble;

/// What belongs to the n-th thing of a kind, for ever: 64 random bits.
pub(super) fn trait_of(kind: u64, number: u64) -> u64 {
    scramble(scramble(kind) ^ number)
}

/// A number in [0, 1) out of 64 random bits.
pub(super) fn unit_of(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}
