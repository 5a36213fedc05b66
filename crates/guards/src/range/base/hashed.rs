//! Marks hashes in a bit string, as a Bloom filter does.
//! ```text
//! hash ──> a, b ──> a, a + b, a + 2b, ... (64 bits) ──multiply-shift──> k bit positions
//! ```
//! Invariant: a marked hash is found marked. An empty bit string marks nothing.

use trommel_filters::Trace;
use trommel_filters::hash::{mix, scaled};

/// The maximum number of probes per hash.
pub(crate) const PROBES_MAX: u32 = 32;

/// The bit positions of a hash among `bits` bits.
#[inline(always)]
fn places(hash: u64, probes: u32, bits: usize) -> impl Iterator<Item = usize> {
    let step = mix(hash) | 1;
    (0..u64::from(probes)).map(move |nth| scaled(hash.wrapping_add(nth.wrapping_mul(step)), bits))
}

/// Marks a hash. Requires: the bit string is not empty.
pub(crate) fn mark(bytes: &mut [u8], hash: u64, probes: u32) {
    let bits = bytes.len() * 8;
    for place in places(hash, probes, bits) {
        bytes[place / 8] |= 1 << (place % 8);
    }
}

/// False: the hash was not marked.
#[inline]
pub(crate) fn is_marked<T: Trace>(bytes: &[u8], hash: u64, probes: u32, trace: &mut T) -> bool {
    let bits = bytes.len() * 8;
    !bytes.is_empty()
        && places(hash, probes, bits).all(|place| {
            trace.touch_bytes(&bytes[place / 8..place / 8 + 1]);
            bytes[place / 8] >> (place % 8) & 1 == 1
        })
}

/// Returns the optimal number of probes for `bits_per_hash`.
pub(crate) fn best_probes(bits_per_hash: f64) -> u32 {
    let ideal = (bits_per_hash * std::f64::consts::LN_2).clamp(1.0, f64::from(PROBES_MAX));
    let (fewer, more) = (ideal.floor() as u32, ideal.ceil() as u32);
    if rate(bits_per_hash, fewer) <= rate(bits_per_hash, more) { fewer } else { more }
}

/// Returns the theoretical false positive rate: the probability that all bits of an absent hash are
/// set.
pub(crate) fn rate(bits_per_hash: f64, probes: u32) -> f64 {
    (1.0 - (-f64::from(probes) / bits_per_hash).exp()).powi(probes as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trommel_filters::{LineCounter, Untraced};

    #[test]
    fn the_rate_is_what_theory_promises() {
        const HASHES: u64 = 20_000;
        const ABSENT: u64 = 200_000;
        for bits_per_hash in [1.0, 2.5, 5.0, 8.0, 12.0] {
            let probes = best_probes(bits_per_hash);
            let mut bytes = vec![0; (HASHES as f64 * bits_per_hash / 8.0) as usize];
            (0..HASHES).for_each(|n| mark(&mut bytes, mix(n), probes));
            let maybe = |n: u64| is_marked(&bytes, mix(n), probes, &mut Untraced);
            assert!((0..HASHES).all(maybe));
            let found = (HASHES..HASHES + ABSENT).filter(|&n| maybe(n)).count();
            let (measured, expected) = (found as f64 / ABSENT as f64, rate(bits_per_hash, probes));
            let noise = 5.0 * (expected / ABSENT as f64).sqrt();
            let bounds = expected * 0.9 - noise..expected * 1.1 + noise;
            assert!(bounds.contains(&measured), "{bits_per_hash}: {measured}, not {expected}");
        }
    }

    #[test]
    fn ten_bits_take_seven_places() {
        assert_eq!([0.1, 1.44, 10.0, 14.0, 1e9].map(best_probes), [1, 1, 7, 10, PROBES_MAX]);
        assert!((rate(10.0, 7) - 0.0082).abs() < 0.0001);
    }

    #[test]
    fn no_bits_no_marks() {
        assert!((0..100).all(|hash| !is_marked(&[], hash, 3, &mut Untraced)));
    }

    #[test]
    fn a_probe_is_seen() {
        let mut bytes = vec![0; 1 << 16];
        mark(&mut bytes, mix(1), 8);
        let mut counter = LineCounter::default();
        assert!(is_marked(&bytes, mix(1), 8, &mut counter));
        assert!((5..=8).contains(&counter.take()));
    }
}
