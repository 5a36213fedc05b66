//! Bloom filter: the bits of a key may lie anywhere.
//! ```text
//! hash ──> times an odd constant ──> again ──> ...
//! each product's high bits, by multiply-shift ──> bit position
//!
//! bytes   | word 0 | word 1 | ... | word n-1 | trailer |
//!           8        8              8          12
//! ```
//! Positions come from powers of one multiplier, as in a random number generator. Double hashing
//! derives all of them from two numbers: in small filters so few pairs exist that keys share all
//! positions.
//!
//! Invariant: the bits of every added key are set. No words: no key was added.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::base::filter::{
    HashedKey, OutOfOrder, TableFilter, TableFilterBuilder, Trace, payload_bits,
};
use crate::base::hash::{HashUse, hash_key, scaled};
use crate::base::kind::{FilterKind, TableKind};
use crate::base::monkey::RateLaw;
use crate::base::real::{ceil, exp, powi};
use crate::base::wire::{Corrupt, Reader, Signature};

/// `bloom`: a Bloom filter.
pub const BLOOM: &dyn FilterKind = &TableKind::new(
    "bloom",
    |options| Box::new(BloomBuilder::new(options.bits_per_key)),
    |bytes| Ok(Box::new(Bloom::read(bytes)?)),
)
.with_tag(TAG)
.with_rate_law(RateLaw::BLOOM);
const TAG: u16 = 2;

/// A multiplier whose powers are well distributed in up to eight dimensions.
const STEP: u64 = 0xaf25_1af3_b0f0_25b5;
const PROBES_MAX: u32 = 30;
const BITS_PER_KEY_MIN: f64 = 0.1;
const BITS_PER_KEY_MAX: f64 = 64.0;
const WORD_BYTES: usize = 8;
/// Probes between branches.
const AT_ONCE: u32 = 3;

/// Fields: u32 words.
const FIELDS_BYTES: usize = 4;
const TRAILER_BYTES: usize = FIELDS_BYTES + Signature::BYTES;
const VERSION: u8 = 1;

/// The bit positions of a key among `bits`. The first one comes from `hash`, each next one from the
/// product.
#[inline]
fn places(hash: u64, bits: usize, probes: u32) -> impl Iterator<Item = usize> {
    let steps = core::iter::successors(Some(hash), |hash| Some(hash.wrapping_mul(STEP)));
    steps.take(probes as usize).map(move |hash| scaled(hash, bits))
}

/// Returns the optimal number of probes and the theoretical false positive rate with it.
fn best_probes(bits_per_key: f64) -> (u32, f64) {
    let rate = |probes: u32| {
        let clear = exp(-f64::from(probes) / bits_per_key);
        powi(1.0 - clear, probes)
    };
    let rated = (1..=PROBES_MAX).map(|probes| (probes, rate(probes)));
    rated.min_by(|a, b| a.1.total_cmp(&b.1)).expect("there is a least number of probes")
}

fn clamped(bits_per_key: f64) -> f64 {
    bits_per_key.clamp(BITS_PER_KEY_MIN, BITS_PER_KEY_MAX)
}

/// Collects the hashes of a table's keys and builds the filter's bytes.
#[derive(Clone, Debug)]
pub struct BloomBuilder {
    hashes: Vec<u64>,
    bits_per_key: f64,
}

impl BloomBuilder {
    /// An empty builder. `bits_per_key` is clamped to 0.1 to 64 and may be a fraction. More: more
    /// memory, fewer false positives.
    ///
    /// # Panics
    /// [`finish`](TableFilterBuilder::finish) panics if it is not a number.
    pub fn new(bits_per_key: f64) -> Self {
        BloomBuilder { hashes: Vec::new(), bits_per_key: clamped(bits_per_key) }
    }

    /// Adds a key by its hash for [`HashUse::Table`].
    #[inline]
    pub fn add_hash(&mut self, hash: u64) {
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    /// Returns the theoretical false positive rate at `bits_per_key`.
    pub fn expected_rate(bits_per_key: f64) -> f64 {
        best_probes(clamped(bits_per_key)).1
    }
}

impl TableFilterBuilder for BloomBuilder {
    /// Adds a key. Never fails: the order of keys does not matter.
    #[inline]
    fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        self.add_hash(hash_key(key, HashUse::Table));
        Ok(())
    }

    fn finish(self) -> Vec<u8> {
        let keys = self.hashes.len();
        let words = payload_bits(keys, self.bits_per_key, TRAILER_BYTES) / 64.0;
        let words = ceil(words).min(f64::from(u32::MAX)) as u32;
        let bits = words as usize * 64;
        let (probes, _) = best_probes(clamped(bits as f64 / keys.max(1) as f64));
        let mut bytes = vec![0; words as usize * WORD_BYTES];
        bytes.reserve_exact(TRAILER_BYTES);
        for &hash in &self.hashes {
            places(hash, bits, probes).for_each(|place| bytes[place / 8] |= 1 << (place % 8));
        }
        let signature = Signature { tag: TAG, version: VERSION, parameter: probes as u8 };
        signature.sign(&words.to_le_bytes(), &mut bytes);
        bytes
    }
}

/// A Bloom filter over checked bytes.
#[derive(Clone, Debug)]
pub struct Bloom<B> {
    bytes: B,
    bits: usize,
    probes: u32,
}

impl<B: AsRef<[u8]>> Bloom<B> {
    /// Checks bytes that [`BloomBuilder`] made. It does not check the words, since any bits form a
    /// filter: the owner of the bytes keeps a checksum.
    ///
    /// # Errors
    /// The trailer is damaged or belongs to another kind, or the length is wrong.
    pub fn read(bytes: B) -> Result<Self, Corrupt> {
        let image = bytes.as_ref();
        let kind = (TAG, VERSION);
        let (fields, probes) = Signature::fields(image, kind, FIELDS_BYTES)?;
        let at = image.len() - TRAILER_BYTES;
        let words = Reader::new(fields).u32()? as usize;
        if words.checked_mul(WORD_BYTES) != Some(at) {
            return Err(Corrupt { at, what: "a Bloom filter with as many words as it has" });
        }
        let probes = u32::from(probes);
        if !(1..=PROBES_MAX).contains(&probes) {
            return Err(Corrupt { at, what: "a number of probes that a Bloom filter may have" });
        }
        Ok(Bloom { bytes, bits: at * 8, probes })
    }

    /// False: no key with this hash for [`HashUse::Table`] was added. True: one may have been.
    #[inline]
    pub fn may_contain_hash(&self, hash: u64) -> bool {
        self.probe(hash, &mut crate::base::filter::Untraced)
    }

    /// The number of bits that a probe checks.
    pub fn probes(&self) -> u32 {
        self.probes
    }

    /// Branches only after several probes: which of them refutes is unpredictable, and independent
    /// reads overlap.
    #[inline]
    fn probe<T: Trace>(&self, mut hash: u64, trace: &mut T) -> bool {
        if self.bits == 0 {
            return false; // no words, no keys
        }
        let bytes = self.bytes.as_ref();
        let mut left = self.probes;
        while left > 0 {
            let mut set = 1;
            for _ in 0..left.min(AT_ONCE) {
                let place = scaled(hash, self.bits);
                let byte = &bytes[place / 8];
                trace.touch(core::ptr::from_ref(byte) as usize, 1);
                set &= byte >> (place % 8);
                hash = hash.wrapping_mul(STEP);
            }
            if set == 0 {
                return false;
            }
            left -= left.min(AT_ONCE);
        }
        true
    }
}

impl<B: AsRef<[u8]>> TableFilter for Bloom<B> {
    fn kind(&self) -> &'static dyn FilterKind {
        BLOOM
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    #[inline]
    fn may_contain_traced<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) -> bool {
        self.probe(key.hash(), trace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::hash::scattered;

    fn filter_of(keys: u64, bits_per_key: f64) -> Bloom<Vec<u8>> {
        let mut builder = BloomBuilder::new(bits_per_key);
        (0..keys).for_each(|key| builder.add_hash(scattered(key)));
        Bloom::read(builder.finish()).expect("whole")
    }

    // 0.6185^bits is the optimum if the number of probes need not be whole.
    #[test]
    fn the_rate_is_what_theory_promises() {
        const KEYS: u64 = 50_000;
        for (bits_per_key, queries) in
            [(4.0, 1u64 << 18), (7.3, 1 << 18), (10.0, 1 << 20), (15.0, 1 << 21), (20.0, 1 << 23)]
        {
            let filter = filter_of(KEYS, bits_per_key);
            let absent = KEYS..KEYS + queries;
            let found = absent.filter(|&key| filter.may_contain_hash(scattered(key))).count();
            let measured = found as f64 / queries as f64;
            let theory = 0.6185f64.powf(bits_per_key);
            let noise = 5.0 * (theory / queries as f64).sqrt();
            let bounds = theory * 0.9 - noise..theory * 1.1 + noise;
            assert!(bounds.contains(&measured), "{bits_per_key}: {measured}, theory {theory}");
            let expected = BloomBuilder::expected_rate(bits_per_key);
            assert!((expected / theory - 1.0).abs() < 0.03, "{expected}, theory {theory}");
        }
    }

    /// Double hashing would raise the rate of such filters by a factor of 1.3.
    #[test]
    fn small_filters_are_as_good() {
        const FILTERS: u64 = 100;
        const KEYS: u64 = 100;
        const QUERIES: u64 = 1 << 16;
        let mut found = 0;
        for filter in 0..FILTERS {
            let mut builder = BloomBuilder::new(20.0);
            let base = filter << 32;
            (base..base + KEYS).for_each(|key| builder.add_hash(scattered(key)));
            let built = Bloom::read(builder.finish()).expect("whole");
            let absent = base + KEYS..base + KEYS + QUERIES;
            found += absent.filter(|&key| built.may_contain_hash(scattered(key))).count();
        }
        // The trailer takes a noticeable share of so small a filter.
        let expected =
            BloomBuilder::expected_rate(20.0 - 96.0 / 100.0) * (FILTERS * QUERIES) as f64;
        let bounds = expected * 0.85..expected * 1.15;
        assert!(bounds.contains(&(found as f64)), "{found}, expected {expected}");
    }

    #[test]
    fn memory_is_what_was_asked_for() {
        for (keys, bits_per_key) in [(1000, 10.0), (5000, 9.3), (100_000, 0.7)] {
            let size = filter_of(keys, bits_per_key).size_bytes() as f64;
            let asked = keys as f64 * bits_per_key / 8.0;
            assert!((asked - 1.0..asked + 8.0).contains(&size), "{size} for {asked}");
        }
    }
}
