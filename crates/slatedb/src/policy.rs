//! The policy: which filter each SST gets, and the name of that filter in the database.
//!
//! Invariant: two policies with the same name can read each other's filters.

use std::sync::Arc;

use slatedb::{Filter, FilterBuilder, FilterPolicy};
use trommel_filters::{FilterKind, FilterOptions, FilterTuning};
use trommel_guards::{PrefixLevels, kinds};

use crate::filter::{CHECKSUM_BYTES, SstFilter, SstFilterBuilder};

/// Part of every name. It changes whenever filters written before could be misread.
const VERSION: u32 = 2;

/// A Trommel filter for each SST.
///
/// | filter | for |
/// |---|---|
/// | [`cell`](Self::cell) | spread keys, with the fastest probes: hashes, UUIDs, random numbers |
/// | [`gap`](Self::gap) | the same; half the false positives in short ranges, slower probes |
/// | [`coded`](Self::coded) | the lowest false positive rate for its bits |
/// | [`prefixes`](Self::prefixes) | keys of parts, `user/time`: also ranges within a present part |
///
/// The first three encode text by a model that is made from the SST's own keys. It takes few bits,
/// so keys with long shared parts need no option.
///
/// [`trommel_guards::advise_for`] measures all of them, and more, with your own keys and ranges.
/// Its [`options`](trommel_guards::Advice::options) make the policy: pass them to
/// [`new`](Self::new).
#[derive(Clone, Debug)]
pub struct TrommelFilterPolicy {
    name: String,
    options: FilterOptions,
}

impl TrommelFilterPolicy {
    /// Fingerprints in cells of equal width. `bits_per_key`: 8 to 24; 14 if in doubt.
    pub fn cell(bits_per_key: f64) -> TrommelFilterPolicy {
        TrommelFilterPolicy::new(FilterOptions::new(kinds::CELL, bits_per_key))
    }

    /// Encoded gaps between keys.
    pub fn gap(bits_per_key: f64) -> TrommelFilterPolicy {
        TrommelFilterPolicy::new(FilterOptions::new(kinds::GAP, bits_per_key))
    }

    /// Encoded gaps, whose code lengths follow from how frequent each gap is.
    pub fn coded(bits_per_key: f64) -> TrommelFilterPolicy {
        TrommelFilterPolicy::new(FilterOptions::new(kinds::CODED, bits_per_key))
    }

    /// Ribbon filters of prefixes that end with a part of the key. For `user01234567time01234567`
    /// the levels are `12+21`: the user, and the time by thousands. A range that meets more than 64
    /// parts is never denied.
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

    /// Any filter of a single table, see [`trommel_guards::kinds::TABLE_FILTERS`].
    pub fn new(options: FilterOptions) -> TrommelFilterPolicy {
        TrommelFilterPolicy { name: name(options.kind), options }
    }
}

/// The name leaves out bits, tuning and the model of text, which the bytes of a filter contain.
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
