//! ElasticBF: several small Bloom filters of the same keys, each of which can be read alone.
//! ```text
//! bytes   | unit 0 | unit 1 | ... | unit n-1 | directory | kind u16 | version u8 | n u8 |
//!
//! key ──> unit 0 ──maybe──> unit 1 ──maybe──> ... ──maybe──> maybe       in memory: as many as pay
//!            └──────no─────────┴──────no───────────────────> no
//! ```
//! All units of a table are built once, with independent hash functions. How many of them are in
//! memory is decided later for each table, by how often it is asked (`ElasticPolicy`). Together,
//! units have the rate of one filter of all their bits (the paper's separability). The filter thus
//! gains or loses bits a unit at a time, without being rebuilt.
//!
//! Invariant: the bits of every key are set in every unit, so any units may be left out. No keys:
//! units of no bytes, which say no.

mod directory;
mod kind;
mod policy;
mod unit;

pub use directory::ElasticDirectory;
pub use kind::{ELASTIC, ElasticOptions, ElasticUnits};
pub use policy::ElasticPolicy;

use trommel_filters::hash::{HashUse, checksum, hash_key};
use trommel_filters::{
    Corrupt, FilterKind, HashedKey, OutOfOrder, SubFilterDirectory, TableFilter,
    TableFilterBuilder, Trace,
};

use directory::UNITS_MAX;
use unit::{best_probes, build_unit, unit_bytes_for};

/// The default number of units: at most the last of these, and at least the first while each unit
/// can have a bit and a half.
const UNITS_USUAL: std::ops::RangeInclusive<u8> = 4..=8;

/// The best number of units for a filter of so many bits per key. In a unit of a bit and a half,
/// one probe per key sets half of the bits: no Bloom filter makes more of a bit.
fn usual_units(bits_per_key: f64) -> u8 {
    let halving = (bits_per_key * std::f64::consts::LN_2).round() as u8;
    if halving < *UNITS_USUAL.start() {
        return halving.max(1);
    }
    let better = |a: &u8, b: &u8| rate_of(bits_per_key, *a).total_cmp(&rate_of(bits_per_key, *b));
    UNITS_USUAL.min_by(better).expect("there is a usual number of units")
}

/// The rate of so many units that share these bits.
fn rate_of(bits_per_key: f64, units: u8) -> f64 {
    let each = bits_per_key / f64::from(units);
    unit::rate(each, best_probes(each)).powi(i32::from(units))
}

/// Collects the hashes of a table's keys, then makes all units.
#[derive(Clone, Debug)]
pub struct ElasticBuilder {
    hashes: Vec<u64>,
    unit_bits_per_key: f64,
    units: u8,
}

impl ElasticBuilder {
    /// No key yet. `bits_per_key` is what all units take together; None: as many units as is usual,
    /// at most 8. Requires: a number of bits; from one to 32 units.
    pub fn new(bits_per_key: f64, units: Option<u8>) -> Self {
        assert!(!bits_per_key.is_nan(), "bits per key is not a number");
        let bits_per_key = bits_per_key.clamp(0.5, 64.0 * f64::from(UNITS_MAX));
        let units = units.unwrap_or_else(|| usual_units(bits_per_key));
        assert!((1..=UNITS_MAX).contains(&units), "{units} units");
        let unit_bits_per_key = bits_per_key / f64::from(units);
        ElasticBuilder { hashes: Vec::new(), unit_bits_per_key, units }
    }

    /// The false positive rate that theory promises for so many of these units, over many keys.
    pub fn expected_rate(&self, units: u8) -> f64 {
        let probes = best_probes(self.unit_bits_per_key);
        unit::rate(self.unit_bits_per_key, probes).powi(i32::from(units))
    }
}

impl TableFilterBuilder for ElasticBuilder {
    /// Never fails: the order of keys does not matter here.
    #[inline]
    fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        let hash = hash_key(key, HashUse::Table);
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
        Ok(())
    }

    fn finish(self) -> Vec<u8> {
        let keys = self.hashes.len();
        let sub_filter_bytes = unit_bytes_for(keys, self.unit_bits_per_key);
        let bits_had = sub_filter_bytes as f64 * 8.0 / keys.max(1) as f64;
        let probes = best_probes(bits_had);
        let mut bytes = Vec::with_capacity(sub_filter_bytes * usize::from(self.units));
        let mut checksums = Vec::with_capacity(usize::from(self.units));
        for number in 0..self.units {
            let unit = build_unit(&self.hashes, number, sub_filter_bytes, probes);
            checksums.push(checksum(&unit));
            bytes.extend_from_slice(&unit);
        }
        let directory = ElasticDirectory {
            checksums: checksums.into(),
            sub_filter_bytes: sub_filter_bytes as u64,
            keys: keys as u64,
            probes,
        };
        directory.encode_into(bytes)
    }
}

/// All units of a filter over checked bytes, every one of them asked.
#[derive(Clone, Debug)]
pub struct Elastic<B> {
    bytes: B,
    directory: ElasticDirectory,
}

impl<B: AsRef<[u8]>> Elastic<B> {
    /// Checks bytes that [`ElasticBuilder::finish`] made: the directory and the lengths, not the
    /// checksums of units.
    pub fn read(bytes: B) -> Result<Self, Corrupt> {
        let image = bytes.as_ref();
        let directory = ElasticDirectory::read(image, image.len() as u64)?;
        Ok(Elastic { bytes, directory })
    }

    /// Where its units are.
    pub fn directory(&self) -> &ElasticDirectory {
        &self.directory
    }
}

impl<B: AsRef<[u8]>> TableFilter for Elastic<B> {
    fn kind(&self) -> &'static dyn FilterKind {
        ELASTIC
    }

    fn size_bytes(&self) -> usize {
        self.bytes.as_ref().len()
    }

    #[inline]
    fn may_contain_traced<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) -> bool {
        // The lengths were checked: units lie one after the other from the first byte on.
        let sub_filter_bytes = self.directory.sub_filter_bytes as usize;
        let probes = self.directory.probes;
        (0..self.directory.count()).all(|number| {
            let start = usize::from(number) * sub_filter_bytes;
            let unit = &self.bytes.as_ref()[start..start + sub_filter_bytes];
            unit::may_contain(unit, number, probes, key.hash(), trace)
        })
    }
}

#[cfg(test)]
mod tests;
