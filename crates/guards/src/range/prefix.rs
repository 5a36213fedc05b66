//! Prefix Bloom filter: one Bloom filter of whole keys and of their prefixes, as in RocksDB.
//! ```text
//! key "user/0017" ─┬─ whole        ──hash──> its bits
//!                  └─ "user/"      ──hash──> its bits     by the image's prefix rule
//!
//! key              are the whole key and (if it has one) its prefix present?
//! range            if all its keys have one prefix: is it present?   otherwise "maybe"
//!
//! bytes   | bits | fields | tail |
//! ```
//! A key without a prefix (too short, or without the separator) is stored only as a whole key. A
//! range that may hold such keys is "maybe".
//!
//! Theory: let there be p prefixes for n keys, and b bits per key. Then the rate e is that of a
//! Bloom filter of b n / (n + p) bits per entry. It applies to ranges, and to points whose prefix
//! is present; for other points the rate is e squared.
//!
//! Invariant: the bits of each key and of its prefix are set. No bits: no keys.

use trommel_filters::bits::key_bits::after_all_with;
use trommel_filters::hash::{HashUse, hash_key, mix};
use trommel_filters::{
    Corrupt, FilterKind, HashedKey, KeyRange, OutOfOrder, Reader, Signature, TableFilter,
    TableFilterBuilder, TableKind, Trace, TuningOption, Writer, read_tuning,
};

use crate::range::base::hashed::{best_probes, is_marked, mark, rate};
use crate::range::base::prefix_rule::PrefixRule;
use crate::range::base::tail;

/// `prefix-bloom`: a Bloom filter of whole keys and of their prefixes.
pub const PREFIX_BLOOM: &dyn FilterKind = &TableKind::new(
    "prefix-bloom",
    |options| Box::new(PrefixBloomBuilder::new(options.bits_per_key, options.tuning.get())),
    |bytes| Ok(Box::new(PrefixBloom::read(bytes)?)),
)
.with_tag(TAG)
.with_ranges()
.with_tuning_options(&[TuningOption {
    name: "prefix_rule",
    limits: "a number of first bytes, 1 to 255, or all up to the first separator: sep:/, sep:0x2f",
    help: "prefix-bloom: the prefix of a key. Ranges within one prefix are answered",
    read: |tuning, text| read_tuning(tuning, text, |own: &mut PrefixRule, rule| *own = rule),
    write: |tuning| tuning.get::<PrefixRule>().to_string(),
}]);

const VERSION: u8 = 1;
const TAG: u16 = 15;
/// The rule, its number, the probes.
const FIELDS_BYTES: usize = 3;
/// Makes the hash of a prefix differ from that of a whole key with the same bytes.
const PREFIX_SALT: u64 = 0xd6e8_feb8_6659_fd93;

fn prefix_hash(prefix: &[u8]) -> u64 {
    mix(hash_key(prefix, HashUse::Table) ^ PREFIX_SALT)
}

/// Builds a prefix Bloom filter.
#[derive(Clone, Debug)]
pub struct PrefixBloomBuilder {
    rule: PrefixRule,
    bits_per_key: f64,
    keys: Vec<u64>,
    prefixes: Vec<u64>,
}

impl PrefixBloomBuilder {
    /// An empty builder.
    ///
    /// # Panics
    /// `bits_per_key` is not a number.
    pub fn new(bits_per_key: f64, rule: PrefixRule) -> Self {
        assert!(!bits_per_key.is_nan(), "bits per key is not a number");
        PrefixBloomBuilder { rule, bits_per_key, keys: Vec::new(), prefixes: Vec::new() }
    }

    /// Returns the theoretical false positive rate at `bits_per_entry`, where both whole keys and
    /// prefixes are entries.
    pub fn expected_rate(bits_per_entry: f64) -> f64 {
        rate(bits_per_entry, best_probes(bits_per_entry))
    }
}

impl TableFilterBuilder for PrefixBloomBuilder {
    /// Adds a key. Never fails: keys out of order only take more memory while they are collected.
    fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        let hash = hash_key(key, HashUse::Table);
        // Another key with the same hash may have another prefix.
        if self.keys.last() != Some(&hash) {
            self.keys.push(hash);
        }
        let prefix = self.rule.prefix_of(key).map(prefix_hash);
        self.prefixes.extend(prefix.filter(|prefix| self.prefixes.last() != Some(prefix)));
        Ok(())
    }

    fn finish(mut self) -> Vec<u8> {
        let key_count = self.keys.len();
        let asked = (key_count as f64 * self.bits_per_key.clamp(0.0, 1000.0) / 8.0) as usize;
        let least = key_count.div_ceil(16);
        let len = asked.saturating_sub(tail::FIXED_BYTES + FIELDS_BYTES).max(least);
        self.prefixes.sort_unstable();
        self.prefixes.dedup();
        let entries = (key_count + self.prefixes.len()).max(1);
        let probes = best_probes(len as f64 * 8.0 / entries as f64);
        let mut bytes = vec![0; len];
        let hashes = self.keys.iter().chain(&self.prefixes);
        hashes.for_each(|&hash| mark(&mut bytes, hash, probes));
        let mut fields = Writer::new();
        self.rule.encode().into_iter().for_each(|byte| fields.u8(byte));
        fields.u8(probes as u8);
        let signature = Signature { tag: TAG, version: VERSION, parameter: 0 };
        tail::seal(signature, bytes, fields.as_slice())
    }
}

/// A prefix Bloom filter over checked bytes.
#[derive(Clone, Debug)]
pub struct PrefixBloom<B> {
    bytes: B,
    rule: PrefixRule,
    probes: u32,
    /// The number of bytes of bits at the start.
    len: usize,
}

impl<B: AsRef<[u8]>> PrefixBloom<B> {
    /// Checks bytes that [`PrefixBloomBuilder`] made.
    pub fn read(bytes: B) -> Result<Self, Corrupt> {
        let parts = tail::open(bytes.as_ref(), TAG, VERSION)?;
        let len = parts.payload.len();
        let mut input = Reader::new(parts.fields);
        let rule = PrefixRule::decode([input.u8()?, input.u8()?]);
        let rule = rule.ok_or_else(|| input.corrupt("a rule of prefixes that is known"))?;
        let probes = u32::from(input.u8()?);
        input.end()?;
        Ok(PrefixBloom { bytes, rule, probes, len })
    }

    /// The rule that defines a key's prefix.
    pub fn rule(&self) -> PrefixRule {
        self.rule
    }

    #[inline]
    fn may_have<T: Trace>(&self, hash: u64, trace: &mut T) -> bool {
        is_marked(&self.bytes.as_ref()[..self.len], hash, self.probes, trace)
    }

    /// False: no key begins with this prefix. Requires: it is a prefix by the rule.
    fn may_have_prefix<T: Trace>(&self, prefix: &[u8], trace: &mut T) -> bool {
        self.may_have(prefix_hash(prefix), trace)
    }
}

impl<B: AsRef<[u8]>> TableFilter for PrefixBloom<B> {
    fn kind(&self) -> &'static dyn FilterKind {
        PREFIX_BLOOM
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    fn may_contain_traced<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) -> bool {
        self.may_have(key.hash(), trace)
            && self
                .rule
                .prefix_of(key.key())
                .is_none_or(|prefix| self.may_have_prefix(prefix, trace))
    }

    fn may_overlap_traced<T: Trace>(&self, range: &KeyRange<'_>, trace: &mut T) -> bool {
        let (lower, Some(upper)) = (range.lower(), range.upper()) else { return self.len > 0 };
        if lower == upper {
            return self.may_contain_traced(&HashedKey::new(lower), trace);
        }
        let Some(prefix) = self.rule.prefix_of(lower) else { return self.len > 0 };
        if upper.starts_with(prefix) {
            return self.may_have_prefix(prefix, trace);
        }
        // A range that ends at the successor of a prefix has that prefix and one more key.
        let ends_behind = after_all_with(prefix.to_vec()).is_some_and(|after| after == upper);
        match ends_behind {
            true => {
                self.may_have_prefix(prefix, trace)
                    || self.may_contain_traced(&HashedKey::new(upper), trace)
            }
            false => self.len > 0,
        }
    }
}

#[cfg(test)]
mod tests;
