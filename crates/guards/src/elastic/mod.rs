//! ElasticBF: several small Bloom filters over the same keys, each of which can be loaded alone.
//! ```text
//! bytes   | sub-filter 0 | ... | sub-filter n-1 | directory | kind u16 | version u8 | n u8 |
//!
//! key ──> sub-filter 0 ──maybe──> sub-filter 1 ──maybe──> ... ──maybe──> maybe
//!              └──────────no───────────┴─────────no───────────────────────> no
//! ```
//! All sub-filters (*filter units* in the paper) of a table are built once, with independent hash
//! functions. How many of them are in memory is decided later for each table, by its access
//! frequency (`ElasticPolicy`). Together, sub-filters have the false positive rate of one filter
//! with all their bits (the paper's separability). So the filter gains or loses bits one sub-filter
//! at a time, without being rebuilt.
//!
//! Invariant: the bits of every key are set in every sub-filter, so any sub-filters may be left
//! out. Without keys, sub-filters have no bytes and say "no".

mod directory;
mod kind;
mod policy;
mod sub_filter;

pub use directory::ElasticDirectory;
pub use kind::{ELASTIC, ElasticOptions, ElasticUnits};
pub use policy::ElasticPolicy;

use trommel_filters::hash::{HashUse, checksum, hash_key};
use trommel_filters::{
    Corrupt, FilterKind, HashedKey, OutOfOrder, SubFilterDirectory, TableFilter,
    TableFilterBuilder, Trace,
};

use directory::SUB_FILTERS_MAX;
use sub_filter::{best_probes, build_sub_filter, sub_filter_bytes_for};

/// The default number of sub-filters is at most the end of this range. It is at least the start,
/// while each sub-filter can have a bit and a half per key.
const SUB_FILTERS_USUAL: std::ops::RangeInclusive<u8> = 4..=8;

/// The default number of sub-filters for `bits_per_key`. In a sub-filter of a bit and a half per
/// key, one probe per key sets half of the bits. This is the optimum for Bloom filters.
fn usual_sub_filters(bits_per_key: f64) -> u8 {
    let halving = (bits_per_key * std::f64::consts::LN_2).round() as u8;
    if halving < *SUB_FILTERS_USUAL.start() {
        return halving.max(1);
    }
    let better = |a: &u8, b: &u8| rate_of(bits_per_key, *a).total_cmp(&rate_of(bits_per_key, *b));
    SUB_FILTERS_USUAL.min_by(better).expect("there is a usual number of sub-filters")
}

/// Returns the false positive rate of `sub_filters` sub-filters that share these bits.
fn rate_of(bits_per_key: f64, sub_filters: u8) -> f64 {
    let each = bits_per_key / f64::from(sub_filters);
    sub_filter::rate(each, best_probes(each)).powi(i32::from(sub_filters))
}

/// Collects the hashes of a table's keys and builds all sub-filters.
#[derive(Clone, Debug)]
pub struct ElasticBuilder {
    hashes: Vec<u64>,
    sub_filter_bits_per_key: f64,
    sub_filters: u8,
}

impl ElasticBuilder {
    /// An empty builder. `bits_per_key` is the size of all sub-filters together. `sub_filters`: 1
    /// to 32; None: the default, at most 8.
    ///
    /// # Panics
    /// `bits_per_key` is not a number, or `sub_filters` is out of range.
    pub fn new(bits_per_key: f64, sub_filters: Option<u8>) -> Self {
        assert!(!bits_per_key.is_nan(), "bits per key is not a number");
        let bits_per_key = bits_per_key.clamp(0.5, 64.0 * f64::from(SUB_FILTERS_MAX));
        let sub_filters = sub_filters.unwrap_or_else(|| usual_sub_filters(bits_per_key));
        assert!((1..=SUB_FILTERS_MAX).contains(&sub_filters), "{sub_filters} sub-filters");
        let sub_filter_bits_per_key = bits_per_key / f64::from(sub_filters);
        ElasticBuilder { hashes: Vec::new(), sub_filter_bits_per_key, sub_filters }
    }

    /// Returns the theoretical false positive rate of `sub_filters` of these sub-filters, over many
    /// keys.
    pub fn expected_rate(&self, sub_filters: u8) -> f64 {
        let probes = best_probes(self.sub_filter_bits_per_key);
        sub_filter::rate(self.sub_filter_bits_per_key, probes).powi(i32::from(sub_filters))
    }
}

impl TableFilterBuilder for ElasticBuilder {
    /// Adds a key. Never fails: the order of keys does not matter.
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
        let sub_filter_bytes = sub_filter_bytes_for(keys, self.sub_filter_bits_per_key);
        let bits_had = sub_filter_bytes as f64 * 8.0 / keys.max(1) as f64;
        let probes = best_probes(bits_had);
        let mut bytes = Vec::with_capacity(sub_filter_bytes * usize::from(self.sub_filters));
        let mut checksums = Vec::with_capacity(usize::from(self.sub_filters));
        for number in 0..self.sub_filters {
            let sub_filter = build_sub_filter(&self.hashes, number, sub_filter_bytes, probes);
            checksums.push(checksum(&sub_filter));
            bytes.extend_from_slice(&sub_filter);
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

/// An ElasticBF over checked bytes, with all sub-filters in use.
#[derive(Clone, Debug)]
pub struct Elastic<B> {
    bytes: B,
    directory: ElasticDirectory,
}

impl<B: AsRef<[u8]>> Elastic<B> {
    /// Checks bytes that [`ElasticBuilder`] made: the directory and the lengths, not the checksums
    /// of sub-filters.
    ///
    /// # Errors
    /// The directory is damaged or belongs to another kind, or the length is wrong.
    pub fn read(bytes: B) -> Result<Self, Corrupt> {
        let image = bytes.as_ref();
        let directory = ElasticDirectory::read(image, image.len() as u64)?;
        Ok(Elastic { bytes, directory })
    }

    /// The directory of its sub-filters.
    pub fn directory(&self) -> &ElasticDirectory {
        &self.directory
    }
}

impl<B: AsRef<[u8]>> TableFilter for Elastic<B> {
    fn kind(&self) -> &'static dyn FilterKind {
        ELASTIC
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    #[inline]
    fn may_contain_traced<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) -> bool {
        // The lengths were checked: sub-filters lie one after the other from the first byte on.
        let sub_filter_bytes = self.directory.sub_filter_bytes as usize;
        let probes = self.directory.probes;
        (0..self.directory.count()).all(|number| {
            let start = usize::from(number) * sub_filter_bytes;
            let sub_filter = &self.bytes.as_ref()[start..start + sub_filter_bytes];
            sub_filter::may_contain(sub_filter, number, probes, key.hash(), trace)
        })
    }
}

#[cfg(test)]
mod tests;
