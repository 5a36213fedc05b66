//! A sub-filter: a small Bloom filter with its own hash functions.
//! ```text
//! hash, number of the sub-filter, number of the probe ──mix──> multiply-shift ──> one of its bits
//! ```
//! A sub-filter of a bit and a half per key has one probe. A lookup reads one cache line, which
//! refutes half of the absent keys.
//!
//! Invariant: the bits of every added key are set. No bytes: no key was added.

use trommel_filters::hash::{mix, scaled};
use trommel_filters::{HashedKey, SubFilter, Trace, Untraced};

const WORD_BYTES: usize = 8;
const WORD_BITS: usize = 64;
pub(super) const PROBES_MAX: u8 = 16;
/// The increment between numbers that are mixed with a hash: odd, with evenly spread bits (2^64
/// divided by the golden ratio).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the size of a sub-filter in bytes: whole words.
pub(super) fn sub_filter_bytes_for(keys: usize, bits_per_key: f64) -> usize {
    let words = (keys as f64 * bits_per_key / WORD_BITS as f64).ceil();
    words as usize * WORD_BYTES
}

/// Returns the false positive rate of a sub-filter over many keys.
pub(super) fn rate(bits_per_key: f64, probes: u8) -> f64 {
    let probes = f64::from(probes);
    (1.0 - (-probes / bits_per_key).exp()).powf(probes)
}

/// Returns the optimal number of probes.
pub(super) fn best_probes(bits_per_key: f64) -> u8 {
    let better = |a: &u8, b: &u8| rate(bits_per_key, *a).total_cmp(&rate(bits_per_key, *b));
    (1..=PROBES_MAX).min_by(better).expect("there is a least number of probes")
}

/// Returns the bit position of a probe. Each sub-filter and each of its probes has its own hash
/// function.
#[inline]
fn place(hash: u64, number: u8, probe: u8, bits: usize) -> usize {
    let nth = u64::from(number) * u64::from(PROBES_MAX) + u64::from(probe) + 1;
    scaled(mix(hash.wrapping_add(nth.wrapping_mul(STEP))), bits)
}

/// Builds a sub-filter of these hashes. Requires: `bytes` is not 0 if there are hashes.
pub(super) fn build_sub_filter(hashes: &[u64], number: u8, bytes: usize, probes: u8) -> Vec<u8> {
    let mut sub_filter = vec![0u8; bytes];
    for &hash in hashes {
        for probe in 0..probes {
            let bit = place(hash, number, probe, bytes * 8);
            sub_filter[bit / 8] |= 1 << (bit % 8);
        }
    }
    sub_filter
}

/// False: no key with this hash was added to the sub-filter.
#[inline]
pub(super) fn may_contain<T: Trace>(
    sub_filter: &[u8],
    number: u8,
    probes: u8,
    hash: u64,
    trace: &mut T,
) -> bool {
    !sub_filter.is_empty()
        && (0..probes).all(|probe| {
            let bit = place(hash, number, probe, sub_filter.len() * 8);
            let byte = &sub_filter[bit / 8..bit / 8 + 1];
            trace.touch_bytes(byte);
            byte[0] >> (bit % 8) & 1 == 1
        })
}

/// A sub-filter that was loaded alone, made by [`ElasticDirectory::part`](super::ElasticDirectory).
#[derive(Clone, Debug)]
pub(super) struct ElasticSubFilter {
    pub(super) bytes: Vec<u8>,
    pub(super) number: u8,
    pub(super) probes: u8,
}

impl SubFilter for ElasticSubFilter {
    fn number(&self) -> u8 {
        self.number
    }

    fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    fn may_contain(&self, key: &HashedKey<'_>) -> bool {
        may_contain(&self.bytes, self.number, self.probes, key.hash(), &mut Untraced)
    }

    fn may_contain_traced(&self, key: &HashedKey<'_>, mut trace: &mut dyn Trace) -> bool {
        may_contain(&self.bytes, self.number, self.probes, key.hash(), &mut trace)
    }
}
