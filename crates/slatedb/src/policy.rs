//! The policy: which filter each SST gets, and its name in the database.
//!
//! Invariant: two policies with one name read each other's filters.

use std::sync::Arc;

use slatedb::{Filter, FilterBuilder, FilterPolicy};
use trommel_filters::{FilterKind, FilterOptions, FilterTuning};
use trommel_guards::{PrefixLevels, kinds};

use crate::filter::{CHECKSUM_BYTES, SstFilter, SstFilterBuilder};

/// Of the names: another one wherever filters of before could be misread.
const VERSION: u32 = 2;

/// A filter of Trommel for each SST.
///
/// | filter | for |
/// |---|---|
/// | [`cell`](Self::cell) | keys that are spread: hashes, UUIDs, numbers at random. The quickest |
/// | [`gap`](Self::gap) | the same, half as many false positives in short ranges, a slower probe |
/// | [`coded`](Self::coded) | the smallest rate for its bits |
/// | [`prefixes`](Self::prefixes) | keys of parts, `user/time`: ranges in a present part, too |
///
/// In each of the first three text stands for itself in as few bits as a model of it needs, which
/// the SST's own keys make: keys that share long parts need no option.
///
/// [`trommel_guards::advise_for`] measures all of them, and more, with keys and ranges of yours.
/// Its [`options`](trommel_guards::Advice::options) make the policy: [`new`](Self::new).
#[derive(Clone, Debug)]
pub struct TrommelFilterPolicy {
    name: String,
    options: FilterOptions,
}

impl TrommelFilterPolicy {
    /// Fingerprints in cells of equal width: `bits_per_key` from 8 to 24, 14 where in doubt.
    pub fn cell(bits_per_key: f64) -> TrommelFilterPolicy {
        TrommelFilterPolicy::new(FilterOptions::new(kinds::CELL, bits_per_key))
    }

    /// Gaps between keys.
    pub fn gap(bits_per_key: f64) -> TrommelFilterPolicy {
        TrommelFilterPolicy::new(FilterOptions::new(kinds::GAP, bits_per_key))
    }

    /// Gaps in codes whose lengths follow from how often they come.
    pub fn coded(bits_per_key: f64) -> TrommelFilterPolicy {
        TrommelFilterPolicy::new(FilterOptions::new(kinds::CODED, bits_per_key))
    }

    /// Ribbon filters of parts of keys. For `user01234567time01234567` the levels are `12+21`: the
    /// user, and the time by thousands. Ranges are answered that meet at most 64 parts.
    ///
    /// ```
    /// # use trommel_slatedb::TrommelFilterPolicy;
    /// let policy = TrommelFilterPolicy::prefixes(14.0, "12+21".parse()?);
    /// let with_separators = TrommelFilterPolicy::prefixes(14.0, "sep:/+all".parse()?);
    /// # Ok::<(), String>(())
    /// ```
    pub fn prefixes(bits_per_key: f64, levels: PrefixLevels) -> TrommelFilterPolicy {
        let options = FilterOptions::new(kinds::PREFIX_RIBBON, bits_per_key);
        TrommelFilterPolicy::new(options.tuned(FilterTuning::new().with(levels)))
    }

    /// Any filter of one table, see [`trommel_guards::kinds::TABLE_FILTERS`].
    pub fn new(options: FilterOptions) -> TrommelFilterPolicy {
        TrommelFilterPolicy { name: name(options.kind), options }
    }
}

/// Bits, tuning and the model of text are not in it: the bytes of a filter say them.
fn name(kind: &dyn FilterKind) -> String {
    format!("trommel:{}:v{VERSION}", kind.name())
}

impl FilterPolicy for TrommelFilterPolicy {
    fn name(&self) -> &str {
        &self.name
    }

    fn builder(&self) -> Box<dyn FilterBuilder> {
        Box::new(SstFilterBuilder::new(self.options.clone()))
    }

    fn decode(&self, data: &[u8]) -> Arc<dyn Filter> {
        Arc::new(SstFilter::read(self.options.kind, data))
    }

    fn estimate_size(&self, num_keys: usize) -> usize {
        self.options.estimate_bytes(num_keys) + CHECKSUM_BYTES
    }

    fn supports_range_queries(&self) -> bool {
        self.options.kind.knows_ranges()
    }

    fn supports_prefix_queries(&self) -> bool {
        self.options.kind.knows_ranges()
    }
}
