//! The bits that an overlay entry may take, so that no filling of the tree exceeds the budget by
//! more than a tenth.
//! ```text
//! budget of a filling | base, as it is | all expected entries    / their number
//!     = bits of one entry: code, tables (more where groups are small); fraction: the rest
//! ```
//! This limit matters for fractions where keys crowd or share their list with few; elsewhere they
//! are shorter anyway.
//!
//! Invariant: truncating a fraction is always safe, so any limit yields correct answers.

use crate::base::real::log2;
use crate::grf::base::Base;
use crate::grf::base::place::FRACTION_BITS;
use crate::grf::options::GrfOptions;
use crate::grf::overlay::chunk::YOUNG_SHARE;
use crate::grf::overlay::packed_layout::list_bits;

/// Keys per group of the base, unless something keeps groups small.
const GROUP_KEYS: f64 = 850.0;

/// If the overlay gets as many keys as the base, the filter is fullest when this share has come:
/// fewer entries take more bits each.
const MIDWAY: f64 = 0.5;

/// More bits than any entry takes: no limit is needed.
const PLENTY: f64 = 40.0;

/// What is known of a chunk's lists.
#[derive(Clone, Copy)]
pub(crate) struct Lists {
    pub(crate) count: usize,
    /// The entries expected before the base is rebuilt.
    pub(crate) expected: usize,
    /// The fraction bits of packed entries where entries are few.
    pub(crate) packed_bits: f64,
    /// Added to fraction bits before rounding down, 0 to 1, so that the average over all chunks is
    /// right.
    pub(crate) dither: f64,
}

/// The limits of an entry.
#[derive(Clone, Copy)]
pub(crate) struct EntryBudget {
    /// The number of entries that the overlay is expected to get, relative to the present.
    pub(crate) growth: f64,
    /// Bits per inserted key, metadata included: when all have come, and when [`MIDWAY`] of them
    /// have.
    pub(crate) bits: [f64; 2],
    /// Bits of an entry's code.
    pub(crate) code: f64,
}

/// Bits per entry besides code and fraction: the tables of its list, in both tiers, and of the
/// chunk. `longest`: the length of the chunk's longest list; `young`: the share of young entries.
fn share_of_list(entries: f64, longest: f64, young: f64) -> f64 {
    const SHARE_OF_CHUNK: f64 = 60.0;
    let tier = |share: f64| SHARE_OF_CHUNK + list_bits(share * entries, share * longest);
    (tier(1.0 - young) + tier(young)) / entries.max(1.0)
}

/// Bits per code, for the overlay's share of all keys.
fn code_bits(overlay_share: f64) -> f64 {
    // Nine runs of one level; two such levels above a run with less than half of all keys.
    let runs: f64 = if overlay_share > 0.6 { 17.0 } else { 9.0 };
    log2(runs)
}

/// Bits per entry besides its fraction, for the overlay's share of all keys.
pub(crate) fn bits_beside_fraction(overlay_share: f64) -> f64 {
    let entries = usual_list(overlay_share / (1.0 - overlay_share).max(0.01));
    code_bits(overlay_share) + share_of_list(entries, entries, YOUNG_SHARE)
}

/// The number of entries in the list of a typical group, at `newer` newer keys per key.
fn usual_list(newer: f64) -> f64 {
    GROUP_KEYS * newer
}

/// The bits beyond plan of the list of a group of `keys` keys, at `share` newer keys per key.
/// Groups of text are small, and even a short list has tables.
pub(crate) fn small_list_bits(keys: f64, share: f64) -> f64 {
    let (entries, usual) = (keys * share, usual_list(share));
    let share_of = |entries: f64| share_of_list(entries, entries, YOUNG_SHARE);
    entries * (share_of(entries) - share_of(usual))
}

impl EntryBudget {
    /// Returns the fraction bits left in a chunk. `keys_per_entry`: the keys that an entry stands
    /// for on average; `longest`: returns the current length of the longest list.
    #[inline(always)]
    pub(crate) fn fraction_bits(
        &self,
        lists: Lists,
        keys_per_entry: f64,
        longest: impl FnOnce() -> u32,
    ) -> f64 {
        let [when_full, midway] = self.bits;
        if lists.expected == 0 || when_full >= PLENTY {
            return FRACTION_BITS as f64;
        }
        const LEAST: f64 = 4.0;
        let entries = lists.expected as f64 / keys_per_entry / lists.count as f64;
        let longest = f64::from(longest()) * self.growth;
        // The number of young entries does not shrink with the number of all entries.
        let fraction = |bits: f64, share: f64| {
            let list = share_of_list(share * entries, share * longest, YOUNG_SHARE / share);
            bits * keys_per_entry - self.code - list
        };
        fraction(when_full, 1.0).min(fraction(midway, MIDWAY)).max(LEAST)
    }
}

impl GrfOptions {
    /// Returns the limits of an entry over this base, at `inserted` keys: what a filling of the
    /// tree leaves. Keys beyond those expected wait for late merges and are not limited; in a large
    /// tree they are few.
    pub(crate) fn entry_budget(&self, base: &Base, inserted: u64) -> EntryBudget {
        let expected = base.overlay_keys.max(1) as f64;
        let growth = (expected / inserted.max(1) as f64).max(1.0);
        let keys = base.entries as f64 + expected;
        // A base above its share, such as cells of text, must not make entries less precise.
        let base_bits = (8.0 * base.bytes() as f64).min(self.bits_per_key * base.entries as f64);
        let is_expected = inserted <= base.overlay_keys;
        let bits = |share: f64| {
            let left = self.filling_bits() * (base.entries as f64 + share * expected) - base_bits;
            if is_expected { left / (share * expected) } else { PLENTY }
        };
        EntryBudget { growth, bits: [1.0, MIDWAY].map(bits), code: code_bits(expected / keys) }
    }
}
