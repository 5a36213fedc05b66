//! The options of a global range filter, and how its budget is divided.
//! ```text
//! bits per key of the whole tree --> bits of a base key | bits of an overlay entry's fraction
//! ```
//! Invariant: base and overlay together keep to the budget when the last level is full.

use crate::fingerprint::Fingerprints;
use crate::grf::base::place::FRACTION_BITS;
use crate::grf::overlay::entry_budget::bits_beside_fraction;

/// How the filter records the run of a key above the last level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunCodes {
    /// By its flush number, or a span around it. Merges write nothing into the filter.
    #[default]
    Shape,
    /// By the span of its run, Huffman-coded as in the GRF paper's GRF_H, for comparison. Every
    /// merge must find each of its keys and record its output's span there
    /// ([`Part::recoder`](crate::Part::recoder)). (Keys of the last level need no code: they all
    /// have the same run.)
    Huffman,
}

/// The options of a global range filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrfOptions {
    /// Filter memory in bits per key of the whole tree, metadata included. It is measured when the
    /// last level is full and the next merge into it is due. More: fewer needless reads.
    pub bits_per_key: f64,
    /// How many times larger each level is than the one above. It implies how much of the tree lies
    /// above the last level, unless the builder gets better numbers
    /// ([`PartBuilder::with_overlay_shares`](crate::PartBuilder::with_overlay_shares)).
    pub size_ratio: u32,
    /// How the run of a key above the last level is recorded.
    pub run_codes: RunCodes,
    /// The kind of fingerprints for keys of the base.
    pub fingerprints: Fingerprints,
    /// Bits of a base key that are a hash, at most 16. They are compared in point queries only.
    /// They help with keys close to stored ones, to which every order-preserving fingerprint says
    /// "maybe"; range queries pay for them. 0: none.
    pub point_bits: u8,
}

impl Default for GrfOptions {
    fn default() -> Self {
        GrfOptions {
            bits_per_key: 12.0,
            size_ratio: 10,
            run_codes: RunCodes::Shape,
            fingerprints: Fingerprints::Auto,
            point_bits: 0,
        }
    }
}

/// Whether an overlay with this share of all keys weighs more than the base.
pub(crate) fn are_many(overlay_share: f64) -> bool {
    overlay_share >= 0.25
}

/// How a part's budget is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Split {
    /// Bits per key of the base.
    pub(crate) base_bits: f64,
    /// Bits per fraction of a packed entry in the overlay.
    pub(crate) packed_bits: f64,
}

impl GrfOptions {
    /// How many bits more an entry's fraction has than a base key. At this number a further bit
    /// lowers the false positive rate equally in base and overlay. An entry stands for a fraction
    /// of a block of 64 keys, and base keys spend 3 to 4 bits on order alone.
    const FRACTION_BEYOND_BASE: f64 = 3.9;
    /// The same if the overlay has more than a quarter of all keys.
    const FRACTION_BEYOND_BASE_OF_MANY: f64 = 2.9;
    /// The minimum bits per base key, if an overlay of nearly all keys leaves even less: fewer
    /// would be useless.
    pub(crate) const BASE_BITS_LEAST: f64 = 1.0;
    /// The maximum bits per key at any filling of the tree: a tenth above the budget, with a small
    /// margin.
    pub(crate) fn filling_bits(&self) -> f64 {
        1.1 * self.bits_per_key - 0.1
    }

    /// Divides the budget. `overlay_share` is the overlay's share of all keys just before the base
    /// is rebuilt; `full_share` is its share when the last level is full.
    pub(crate) fn split(&self, overlay_share: f64, full_share: f64) -> Split {
        let beside = bits_beside_fraction;
        let beyond = |share: f64| match are_many(share) {
            true => Self::FRACTION_BEYOND_BASE_OF_MANY,
            false => Self::FRACTION_BEYOND_BASE,
        };
        // An entry takes the bits of a base key, plus these.
        let base_bits = |bits: f64, share: f64| bits - share * (beyond(share) + beside(share));
        let when_full = base_bits(self.bits_per_key, full_share);
        let at_most = base_bits(self.filling_bits(), overlay_share);
        let base_bits = when_full.min(at_most).max(Self::BASE_BITS_LEAST);
        let mut packed_bits = base_bits + beyond(overlay_share);
        if are_many(overlay_share) {
            // The base has its share for a full last level; the rest goes to the entries.
            let rest = self.filling_bits() - (1.0 - overlay_share) * base_bits;
            packed_bits = packed_bits.max(rest / overlay_share - beside(overlay_share));
        }
        let packed_bits = packed_bits.clamp(6.0, FRACTION_BITS as f64);
        Split { base_bits, packed_bits }
    }
}
