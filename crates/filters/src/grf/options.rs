//! The options of a global range filter, and the division of its budget.
//! ```text
//! bits per key of the whole tree --> bits of a base key | bits of an overlay entry's fraction
//! ```
//! Invariant: both shares together stay within the budget when the last level is full.

use crate::fingerprint::Fingerprints;
use crate::grf::base::place::FRACTION_BITS;
use crate::grf::overlay::entry_budget::bits_beside_fraction;

/// How a key above the last level says in which run it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunCodes {
    /// By its flush number, or a span around it: merges write nothing.
    #[default]
    Shape,
    /// By the span of its run, Huffman-coded as in the GRF paper's GRF_H, for comparison. Every
    /// merge has to find each of its keys and to write its output's span there
    /// ([`Part::recoder`](crate::Part::recoder)). (In the last level nothing is written: the base's
    /// keys have one run.)
    Huffman,
}

/// The knobs of a global range filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrfOptions {
    /// Filter memory in bits per key of the whole tree, everything included. The measure is taken
    /// when the last level is full and the next merge into it is due. More: fewer needless reads.
    pub bits_per_key: f64,
    /// How many times larger a level is than the one above. It tells how much of the tree lies
    /// above the last level, unless the builder knows better
    /// ([`PartBuilder::with_overlay_shares`](crate::PartBuilder::with_overlay_shares)).
    pub size_ratio: u32,
    /// What is kept beside the fingerprint of a key above the last level.
    pub run_codes: RunCodes,
    /// How keys of the base become fingerprints.
    pub fingerprints: Fingerprints,
    /// The hash bits among the bits of a base key, at most 16. Only single keys are compared with
    /// them. They rescue queries for keys that are close to stored ones, where all that keeps order
    /// says "maybe"; ranges pay for them. 0: none.
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

/// Whether an overlay with such a share of all keys has so many that they count more than the
/// base's.
pub(crate) fn are_many(overlay_share: f64) -> bool {
    overlay_share >= 0.25
}

/// How the budget of a part is spent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Split {
    /// Bits for each key of the base.
    pub(crate) base_bits: f64,
    /// Bits of the fractions of packed entries in the overlay.
    pub(crate) packed_bits: f64,
}

impl GrfOptions {
    /// Bits that an entry's fraction has more than a key of the base takes. With these, another bit
    /// for the base lowers the false positive rate by as much as another bit for the overlay. The
    /// reason: an entry stands for a fraction of a block of 64 keys, and base keys spend 3 to 4
    /// bits on order alone.
    const FRACTION_BEYOND_BASE: f64 = 3.9;
    /// The same where the overlay has more than a quarter of all keys.
    const FRACTION_BEYOND_BASE_OF_MANY: f64 = 2.9;
    /// Less would tell nothing, however little an overlay of nearly all keys leaves.
    pub(crate) const BASE_BITS_LEAST: f64 = 1.0;
    /// The most bits for each key that any filling of the tree may take: a tenth beyond the budget,
    /// but for a little that is left to chance.
    pub(crate) fn filling_bits(&self) -> f64 {
        1.1 * self.bits_per_key - 0.1
    }

    /// The division of the budget. `overlay_share` is the overlay's share of all keys just before
    /// the base is rebuilt, `full_share` its share when the last level is full.
    pub(crate) fn split(&self, overlay_share: f64, full_share: f64) -> Split {
        let beside = bits_beside_fraction;
        let beyond = |share: f64| match are_many(share) {
            true => Self::FRACTION_BEYOND_BASE_OF_MANY,
            false => Self::FRACTION_BEYOND_BASE,
        };
        // An entry grows with a key of the base.
        let base_bits = |bits: f64, share: f64| bits - share * (beyond(share) + beside(share));
        let when_full = base_bits(self.bits_per_key, full_share);
        let at_most = base_bits(self.filling_bits(), overlay_share);
        let base_bits = when_full.min(at_most).max(Self::BASE_BITS_LEAST);
        let mut packed_bits = base_bits + beyond(overlay_share);
        if are_many(overlay_share) {
            // The base has what it shall have when the last level is full: the rest is theirs.
            let rest = self.filling_bits() - (1.0 - overlay_share) * base_bits;
            packed_bits = packed_bits.max(rest / overlay_share - beside(overlay_share));
        }
        let packed_bits = packed_bits.clamp(6.0, FRACTION_BITS as f64);
        Split { base_bits, packed_bits }
    }
}
