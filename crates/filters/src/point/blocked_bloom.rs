//! Blocked Bloom filter: all bits of a key lie in one cache line.
//! ```text
//! hash (64 bits) ─┬─ high part: multiply-shift ──────────> line
//!                 └─ times an odd constant, cut in nines ─> k places of 512 in that line
//!
//! bytes   | line 0 | line 1 | ... | line n-1 | trailer |
//!           64       64             64         8
//! ```
//! The lines come first, so that a probe of aligned bytes (`AlignedBytes`) touches one cache line.
//! Some lines get more keys than others. At ten bits per key, this costs a third more false
//! positives than a Bloom filter without blocks. In return a probe costs one cache miss instead of
//! several.
//!
//! Invariant: the bits of every added key are set. No lines: no key was added.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::base::filter::{
    HashedKey, OutOfOrder, TableFilter, TableFilterBuilder, Trace, Untraced,
};
use crate::base::hash::{HashUse, hash_key, scaled};
use crate::base::kind::{FilterKind, TableKind};
use crate::base::monkey::RateLaw;
use crate::base::real::{ceil, exp, ln, powi, sqrt};
use crate::base::wire::{Corrupt, Reader, Writer};

/// `blocked-bloom`: a Bloom filter with all bits of a key in one cache line.
///
/// The rate law holds between six and sixteen bits per key. (Uneven lines cost more, the more bits
/// there are.)
pub const BLOCKED_BLOOM: &dyn FilterKind = &TableKind::new(
    "blocked-bloom",
    |options| Box::new(BlockedBloomBuilder::new(options.bits_per_key)),
    |bytes| Ok(Box::new(BlockedBloom::read(bytes)?)),
)
.with_tag(TAG)
.with_rate_law(RateLaw::of_slope(0.45));
const TAG: u16 = 1;

const LINE_BYTES: usize = 64;
const LINE_BITS: usize = LINE_BYTES * 8;
/// Hash bits that select one bit position in a line.
const PLACE_BITS: u32 = LINE_BITS.ilog2();
/// Bit positions that one 64-bit word yields.
const PLACES_PER_WORD: u32 = u64::BITS / PLACE_BITS;
/// Odd multipliers: each derives one more word of bit positions from the hash.
const SPREAD: [u64; 3] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0xd6e8_feb8_6659_fd93];
const PROBES_MAX: u32 = 16;
/// Probes before the first branch.
const HEAD_PROBES: u32 = 3;
const _: () = assert!(PLACES_PER_WORD * SPREAD.len() as u32 >= PROBES_MAX);

const BITS_PER_KEY_MIN: f64 = 0.5;
const BITS_PER_KEY_MAX: f64 = 64.0;

/// Trailer: u32 lines, u16 kind, u8 version, u8 probes.
const TRAILER_BYTES: usize = 4 + 2 + 1 + 1;
const _: () = assert!(TRAILER_BYTES < LINE_BYTES);
const VERSION: u8 = 1;

/// The bit positions of `hash` in its line.
#[inline]
fn places(hash: u64, probes: u32) -> impl Iterator<Item = usize> {
    let words = SPREAD.iter().map(move |spread| hash.wrapping_mul(*spread));
    words
        .flat_map(|word| (0..PLACES_PER_WORD).map(move |nth| place(word << (nth * PLACE_BITS))))
        .take(probes as usize)
}

/// The first bit position of a word, from its highest bits.
#[inline]
fn place(word: u64) -> usize {
    (word >> (u64::BITS - PLACE_BITS)) as usize
}

#[inline]
fn set_bits(line: &mut [u8; LINE_BYTES], hash: u64, probes: u32) {
    for place in places(hash, probes) {
        line[place / 8] |= 1 << (place % 8);
    }
}

/// False: at least one bit of `hash` in its line is not set.
///
/// Branches only once, after `HEAD_PROBES` probes, which refute most absent keys. A branch per
/// probe is nearly twice as slow, since which probe refutes is unpredictable.
#[inline]
fn all_bits_set(line: &[u8; LINE_BYTES], hash: u64, probes: u32) -> bool {
    let word = hash.wrapping_mul(SPREAD[0]);
    if probes < HEAD_PROBES {
        return all_set(line, word, probes);
    }
    let first_word = probes.min(PLACES_PER_WORD);
    all_set(line, word, HEAD_PROBES)
        && all_set(line, word << (HEAD_PROBES * PLACE_BITS), first_word - HEAD_PROBES)
        && (probes == first_word || later_bits_set(line, hash, probes - first_word))
}

/// Same as `all_bits_set`, for the positions of the second and third word.
fn later_bits_set(line: &[u8; LINE_BYTES], hash: u64, probes: u32) -> bool {
    let second_word = probes.min(PLACES_PER_WORD);
    all_set(line, hash.wrapping_mul(SPREAD[1]), second_word)
        && all_set(line, hash.wrapping_mul(SPREAD[2]), probes - second_word)
}

/// Whether the bits at the first `count` positions of a word are set in the line. (Inlined, so that
/// a constant count needs no loop.)
#[inline(always)]
fn all_set(line: &[u8; LINE_BYTES], mut word: u64, count: u32) -> bool {
    let (words, _) = line.as_chunks::<8>();
    let mut set = 1;
    for _ in 0..count {
        set &= u64::from_le_bytes(words[place(word) / 64]) >> (place(word) % 64);
        word <<= PLACE_BITS;
    }
    set & 1 == 1
}

/// Collects the hashes of a table's keys and builds the filter's bytes.
#[derive(Clone, Debug)]
pub struct BlockedBloomBuilder {
    hashes: Vec<u64>,
    bits_per_key: f64,
}

impl BlockedBloomBuilder {
    /// An empty builder. `bits_per_key` is clamped to 0.5 to 64 and may be a fraction. More: more
    /// memory, fewer false positives.
    ///
    /// # Panics
    /// [`finish`](TableFilterBuilder::finish) panics if it is not a number.
    pub fn new(bits_per_key: f64) -> Self {
        BlockedBloomBuilder { hashes: Vec::new(), bits_per_key }
    }

    /// Adds a key by its hash for [`HashUse::Table`].
    #[inline]
    pub fn add_hash(&mut self, hash: u64) {
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    /// The number of keys that count.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether no key was added.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Returns the theoretical false positive rate at `bits_per_key`.
    pub fn expected_rate(bits_per_key: f64) -> f64 {
        best_probes(clamped(bits_per_key)).1
    }
}

impl TableFilterBuilder for BlockedBloomBuilder {
    /// Adds a key. Never fails: the order of keys does not matter.
    #[inline]
    fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        self.add_hash(hash_key(key, HashUse::Table));
        Ok(())
    }

    fn finish(self) -> Vec<u8> {
        let lines = lines_for(self.len(), self.bits_per_key);
        let bits_had = (lines * LINE_BITS) as f64 / self.len().max(1) as f64;
        let (probes, _) = best_probes(clamped(bits_had));
        let mut bytes = vec![0; lines * LINE_BYTES + TRAILER_BYTES];
        let (lines_mut, trailer) = bytes.as_chunks_mut::<LINE_BYTES>();
        for &hash in &self.hashes {
            set_bits(&mut lines_mut[scaled(hash, lines)], hash, probes);
        }
        trailer.copy_from_slice(&encode_trailer(lines, probes));
        bytes
    }
}

fn clamped(bits_per_key: f64) -> f64 {
    assert!(!bits_per_key.is_nan(), "bits per key is not a number");
    bits_per_key.clamp(BITS_PER_KEY_MIN, BITS_PER_KEY_MAX)
}

/// The smallest number of lines that gives each key its bits.
fn lines_for(keys: usize, bits_per_key: f64) -> usize {
    let bits = keys as f64 * clamped(bits_per_key);
    let lines = ceil(bits / LINE_BITS as f64);
    lines.min(f64::from(u32::MAX)) as usize
}

/// Returns the optimal number of probes and the expected rate with it.
fn best_probes(bits_per_key: f64) -> (u32, f64) {
    let loads = line_loads(LINE_BITS as f64 / bits_per_key);
    let rated = (1..=PROBES_MAX).map(|probes| (probes, rate_of(&loads, probes)));
    rated.min_by(|a, b| a.1.total_cmp(&b.1)).expect("there is a least number of probes")
}

/// The probabilities that a line has 0, 1, 2, … keys (Poisson), as far as they matter.
fn line_loads(mean: f64) -> Vec<f64> {
    let keys_max = (mean + 12.0 * sqrt(mean) + 30.0) as usize;
    let mut log_share = -mean; // logarithms: exp(-mean) alone may be zero
    let next_key = |keys: usize| {
        let share = exp(log_share);
        log_share += ln(mean) - ln((keys + 1) as f64);
        share
    };
    (0..=keys_max).map(next_key).collect()
}

/// The probability that all probes of an absent key find set bits, over lines with these loads.
fn rate_of(loads: &[f64], probes: u32) -> f64 {
    let still_clear = powi(1.0 - 1.0 / LINE_BITS as f64, probes);
    let rate_at = |keys: usize| powi(1.0 - powi(still_clear, keys as u32), probes);
    loads.iter().enumerate().map(|(keys, share)| share * rate_at(keys)).sum()
}

/// Encodes the number of probes, less one, with its complement in the high half. So no flipped bit
/// yields another number of probes.
fn probes_byte(probes: u32) -> u8 {
    assert!((1..=PROBES_MAX).contains(&probes), "{probes} probes");
    let low = (probes - 1) as u8;
    low | (!low << 4)
}

fn encode_trailer(lines: usize, probes: u32) -> Vec<u8> {
    let mut out = Writer::new();
    out.u32(u32::try_from(lines).expect("lines_for caps them"));
    out.u16(TAG);
    out.u8(VERSION);
    out.u8(probes_byte(probes));
    out.finish()
}

/// Checks a trailer, which begins at `at`, and returns its number of probes.
fn decode_trailer(trailer: &[u8], at: usize) -> Result<u32, Corrupt> {
    let wrong = |offset: usize, what| Err(Corrupt { at: at + offset, what });
    let mut input = Reader::new(trailer);
    if input.u32()? as usize != at / LINE_BYTES {
        return wrong(0, "a blocked Bloom filter with as many lines as it has");
    }
    if input.u16()? != TAG {
        return wrong(4, "the tag of the blocked Bloom filter");
    }
    if input.u8()? != VERSION {
        return wrong(6, "a version of the blocked Bloom filter that is known");
    }
    let byte = input.u8()?;
    let probes = u32::from(byte & 0x0f) + 1;
    if byte != probes_byte(probes) {
        return wrong(7, "a number of probes and its complement");
    }
    input.end()?;
    Ok(probes)
}

/// A blocked Bloom filter over checked bytes. Over [`AlignedBytes`](crate::AlignedBytes) a probe
/// touches a single cache line.
#[derive(Clone, Debug)]
pub struct BlockedBloom<B> {
    bytes: B,
    probes: u32,
}

impl<B: AsRef<[u8]>> BlockedBloom<B> {
    /// Checks bytes that [`BlockedBloomBuilder`] made. It does not check the lines, since any bits
    /// form a filter: the owner of the bytes keeps a checksum.
    ///
    /// # Errors
    /// The trailer is damaged or belongs to another kind, or the length is wrong.
    pub fn read(bytes: B) -> Result<Self, Corrupt> {
        let image = bytes.as_ref();
        let (_, trailer) = image.as_chunks::<LINE_BYTES>();
        let at = image.len() - trailer.len();
        if trailer.len() != TRAILER_BYTES {
            return Err(Corrupt { at, what: "whole lines and a trailer" });
        }
        let probes = decode_trailer(trailer, at)?;
        Ok(BlockedBloom { bytes, probes })
    }

    /// False: no key with this hash for [`HashUse::Table`] was added. True: one may have been.
    #[inline]
    pub fn may_contain_hash(&self, hash: u64) -> bool {
        self.probe(hash, &mut Untraced)
    }

    #[inline]
    fn probe<T: Trace>(&self, hash: u64, trace: &mut T) -> bool {
        let (lines, _) = self.bytes.as_ref().as_chunks::<LINE_BYTES>();
        let Some(line) = lines.get(scaled(hash, lines.len())) else {
            return false; // no lines, no keys
        };
        trace.touch_bytes(line);
        all_bits_set(line, hash, self.probes)
    }

    /// The number of bits that a probe checks.
    pub fn probes(&self) -> u32 {
        self.probes
    }
}

impl<B: AsRef<[u8]>> TableFilter for BlockedBloom<B> {
    fn kind(&self) -> &'static dyn FilterKind {
        BLOCKED_BLOOM
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
    use crate::base::filter::LineCounter;
    use crate::bits::AlignedBytes;

    fn bytes_of(keys: impl Iterator<Item = u64>, bits_per_key: f64) -> Vec<u8> {
        let mut builder = BlockedBloomBuilder::new(bits_per_key);
        keys.for_each(|key| builder.add(&key.to_be_bytes()).expect("any order will do"));
        builder.finish()
    }

    fn measured_rate(bits_per_key: f64) -> f64 {
        const KEYS: u64 = 50_000;
        const QUERIES: u64 = 200_000;
        let filter = BlockedBloom::read(bytes_of(0..KEYS, bits_per_key)).expect("whole");
        assert!((0..KEYS).all(|key| filter.may_contain(&key.to_be_bytes())));
        let absent = KEYS..KEYS + QUERIES;
        let hits = absent.filter(|key| filter.may_contain(&key.to_be_bytes())).count();
        hits as f64 / QUERIES as f64
    }

    #[test]
    fn the_rate_is_what_theory_promises() {
        for bits_per_key in [0.5, 1.0, 2.5, 5.0, 8.0, 10.0, 12.0, 14.5] {
            let expected = BlockedBloomBuilder::expected_rate(bits_per_key);
            let measured = measured_rate(bits_per_key);
            let noise = 5.0 * (expected / 200_000.0).sqrt();
            let bounds = expected * 0.94 - noise..expected * 1.06 + noise;
            assert!(bounds.contains(&measured), "{bits_per_key}: {measured}, expected {expected}");
        }
    }

    #[test]
    fn more_bits_promise_fewer_false_positives() {
        let rates: Vec<f64> = (1..=128)
            .map(|half| BlockedBloomBuilder::expected_rate(f64::from(half) / 2.0))
            .collect();
        assert!(rates.windows(2).all(|pair| pair[1] < pair[0]), "{rates:?}");
        assert!((0.008..0.0105).contains(&rates[19]), "10 bits: {}", rates[19]);
        let beyond = [(0.0, 0.5), (-3.0, 0.5), (1e9, 64.0), (f64::INFINITY, 64.0)];
        for (asked, clamped) in beyond {
            let rate = BlockedBloomBuilder::expected_rate;
            assert_eq!(rate(asked), rate(clamped));
        }
    }

    #[test]
    fn many_probes_take_independent_places() {
        let filter = BlockedBloom::read(bytes_of(0..2000, 40.0)).expect("whole");
        assert!(filter.probes() > 2 * PLACES_PER_WORD, "{}", filter.probes());
        assert!((0..2000u64).all(|key| filter.may_contain(&key.to_be_bytes())));
        let distinct = |hash: u64| {
            let mut found: Vec<usize> = places(hash, PROBES_MAX).collect();
            found.sort_unstable();
            found.dedup();
            found.len()
        };
        let sum: usize =
            (0..1000u64).map(|n| distinct(hash_key(&n.to_le_bytes(), HashUse::Memtable))).sum();
        // 16 of 512 positions, drawn with repetition: 512 · (1 − (511/512)^16) = 15.77 are
        // distinct.
        assert!((15_700..15_840).contains(&sum), "{sum}");
    }

    #[test]
    fn each_place_is_looked_at() {
        for (n, probes) in (0..200u64).flat_map(|n| (1..=PROBES_MAX).map(move |probes| (n, probes)))
        {
            let hash = hash_key(&n.to_le_bytes(), HashUse::Table);
            let mut line = [0; LINE_BYTES];
            set_bits(&mut line, hash, probes);
            assert!(all_bits_set(&line, hash, probes), "{hash:x}, {probes} probes");
            for place in places(hash, probes) {
                let mut lacking = [0xff; LINE_BYTES];
                lacking[place / 8] &= !(1 << (place % 8));
                assert!(!all_bits_set(&lacking, hash, probes), "{hash:x}, place {place}");
            }
        }
    }

    #[test]
    fn memory_is_what_was_asked_for() {
        for (keys, bits_per_key) in [(1, 0.5), (1000, 10.0), (5000, 9.3), (100_000, 0.7)] {
            let size = bytes_of(0..keys, bits_per_key).len() - TRAILER_BYTES;
            let asked = keys as f64 * bits_per_key / 8.0;
            assert!((asked..asked + 64.0).contains(&(size as f64)), "{size} for {asked}");
        }
    }

    #[test]
    fn no_keys_no_lines_no_candidates() {
        let filter = BlockedBloom::read(bytes_of(0..0, 10.0)).expect("whole");
        assert_eq!(filter.size_bytes(), TRAILER_BYTES);
        assert!((0..1000u64).all(|key| !filter.may_contain(&key.to_be_bytes())));
        assert!(!filter.may_contain_hash(u64::MAX) && !filter.may_contain_hash(0));
    }

    #[test]
    fn equal_neighbours_count_once() {
        let mut builder = BlockedBloomBuilder::new(10.0);
        assert!(builder.is_empty());
        for key in [&b"a"[..], b"a", b"b", b"b", b"b", b"a"] {
            builder.add(key).expect("any order will do");
        }
        assert_eq!(builder.len(), 3);
    }

    #[test]
    fn a_probe_touches_one_cache_line() {
        let filter = BlockedBloom::read(AlignedBytes::from_slice(&bytes_of(0..10_000, 12.0)));
        let filter = filter.expect("whole");
        let mut counter = LineCounter::default();
        for key in 0..20_000u64 {
            let key = key.to_be_bytes();
            let traced = filter.may_contain_traced(&HashedKey::new(&key), &mut counter);
            assert_eq!((traced, counter.take()), (filter.may_contain(&key), 1));
        }
    }

    #[test]
    fn every_flipped_bit_of_the_trailer_is_an_error() {
        let bytes = bytes_of(0..500, 10.0);
        for bit in 0..TRAILER_BYTES * 8 {
            let mut damaged = bytes.clone();
            let at = damaged.len() - TRAILER_BYTES + bit / 8;
            damaged[at] ^= 1 << (bit % 8);
            let error = BlockedBloom::read(damaged).expect_err("a flipped bit");
            assert!(
                (bytes.len() - TRAILER_BYTES..=at).contains(&error.at),
                "{error}, flipped {at}"
            );
        }
    }
}
