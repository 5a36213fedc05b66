//! The kinds of fingerprint filters, one per encoding.
//!
//! Invariant: a kind and its encoding have the same tag.

use trommel_filters::{AnyFilterBuilder, FilterKind, FilterOptions, RateLaw, TableKind};

use super::encoding::Encoding;
use super::{FingerprintFilter, FingerprintFilterBuilder};

impl Encoding {
    pub(super) fn kind(self) -> &'static dyn FilterKind {
        match self {
            Encoding::Snarf => SNARF,
            Encoding::Cell => CELL,
            Encoding::Gap => GAP,
            Encoding::Coded => CODED,
        }
    }

    /// Bits per key that store the order of evenly spread keys; each further bit halves the rate.
    /// (`tests/guards/monkey.rs` measures both.)
    const fn floor_bits(self) -> f64 {
        match self {
            Encoding::Snarf => 3.0,
            Encoding::Cell => 5.7,
            Encoding::Gap => 4.8,
            Encoding::Coded => 3.2,
        }
    }
}

/// `snarf`: positions of keys on a line through their neighbours.
pub const SNARF: &dyn FilterKind =
    &kind("snarf", Encoding::Snarf, |options| builder(Encoding::Snarf, options));

/// `cell`: prefixes that tell keys from their neighbours.
pub const CELL: &dyn FilterKind =
    &kind("cell", Encoding::Cell, |options| builder(Encoding::Cell, options));

/// `gap`: numbers with a resolution that follows the gaps beside a key.
pub const GAP: &dyn FilterKind =
    &kind("gap", Encoding::Gap, |options| builder(Encoding::Gap, options));

/// `coded`: same as `gap`, in fewer bits.
pub const CODED: &dyn FilterKind =
    &kind("coded", Encoding::Coded, |options| builder(Encoding::Coded, options));

type Builder = Box<dyn AnyFilterBuilder>;

const fn kind(
    name: &'static str,
    encoding: Encoding,
    builder: fn(&FilterOptions) -> Builder,
) -> TableKind {
    TableKind::new(name, builder, |bytes| Ok(Box::new(FingerprintFilter::read(bytes)?)))
        .with_tag(encoding.tag())
        .with_ranges()
        .with_rate_law(RateLaw::of_fingerprints(1.0).from(encoding.floor_bits()))
}

fn builder(encoding: Encoding, options: &FilterOptions) -> Builder {
    Box::new(FingerprintFilterBuilder::new(encoding, options.bits_per_key))
}
