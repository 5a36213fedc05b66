//! One sub-filter: a small Bloom filter with hash functions of its own.
//! ```text
//! hash, number of the sub-filter, number of the probe ──mixed──> multiply-shift ──> one bit of it
//! ```
//! A sub-filter of a bit and a half per key has one probe. A lookup reads one cache line, which
//! refutes half of the absent keys.
//!
//! Invariant: the bits of every key that was added are set. No bytes: no key was added.

use trommel_filters::hash::{mix, scaled};
use trommel_filters::{HashedKey, SubFilter, Trace, Untraced};

const WORD_BYTES: usize = 8;
const WORD_BITS: usize = 64;
pub(super) const PROBES_MAX: u8 = 16;
/// The step of the numbers that are mixed with a hash: odd, its bits are spread (2^64 by the golden
/// ratio).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// As many bytes as give each key its bits: whole words.
pub(super) fn sub_filter_bytes_for(keys: usize, bits_per_key: f64) -> usize {
    let words = (keys as f64 * bits_per_key / WORD_BITS as f64).ceil();
    words as usize * WORD_BYTES
}

/// The rate of a sub-filter of so many bits per key over many keys.
pub(super) fn rate(bits_per_key: f64, probes: u8) -> f64 {
    let probes = f64::from(probes);
    (1.0 - (-probes / bits_per_key).exp()).powf(probes)
}

/// The number of probes with the least rate.
pub(super) fn best_probes(bits_per_key: f64) -> u8 {
    let better = |a: &u8, b: &u8| rate(bits_per_key, *a).total_cmp(&rate(bits_per_key, *b));
    (1..=PROBES_MAX).min_by(better).expect("there is a least number of probes")
}

/// A bit of a sub-filter of `bits` bits. Each sub-filter and each probe of it has a hash function
/// of its own.
#[inline]
fn place(hash: u64, number: u8, probe: u8, bits: usize) -> usize {
    let nth = u64::from(number) * u64::from(PROBES_MAX) + u64::from(probe) + 1;
    scaled(mix(hash.wrapping_add(nth.wrapping_mul(STEP))), bits)
}

/// The bytes of a sub-filter with the bits of all hashes set. Requires: bytes if there are hashes.
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

/// A sub-filter that was read alone. [`ElasticDirectory::part`](super::ElasticDirectory) makes it.
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
