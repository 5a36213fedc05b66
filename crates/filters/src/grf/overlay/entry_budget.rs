//! What an entry of the overlay may take, so that no filling of the tree exceeds the budget by a
//! tenth.
//! ```text
//! budget of a filling | base, as it is | all entries that are expected    / their number
//!     = bits of one entry: code, tables (more where groups are small); fraction: what is left
//! ```
//! Fractions are cut where keys crowd, or share their list with few: elsewhere they are shorter
//! than what is left anyway. Invariant: forgetting is always safe, so whatever is left is an
//! answer.

use crate::base::real::log2;
use crate::grf::base::Base;
use crate::grf::base::place::FRACTION_BITS;
use crate::grf::options::GrfOptions;
use crate::grf::overlay::chunk::YOUNG_SHARE;
use crate::grf::overlay::packed_layout::list_bits;

/// Keys of a group of the base, where nothing keeps groups small.
const GROUP_KEYS: f64 = 850.0;

/// The share of the expected keys that have come when a filter is fullest, if they are as many as
/// the base's: fewer entries take more each.
const MIDWAY: f64 = 0.5;

/// Bits that no entry takes: with so many nothing needs to be counted.
const PLENTY: f64 = 40.0;

/// What is known of a chunk's lists.
#[derive(Clone, Copy)]
pub(crate) struct Lists {
    pub(crate) count: usize,
    /// The entries that are to come before the base is built anew.
    pub(crate) expected: usize,
    /// The bits that packed entries' fractions keep where entries are few.
    pub(crate) packed_bits: f64,
    /// What is added to bits before they are rounded down, 0 to 1, so that chunks together have
    /// those that they shall have.
    pub(crate) dither: f64,
}

/// What an entry may take.
#[derive(Clone, Copy)]
pub(crate) struct EntryBudget {
    /// How many times more entries the overlay is expected to get.
    pub(crate) growth: f64,
    /// Bits for each key that is inserted, all included: when all have come, and [`MIDWAY`].
    pub(crate) bits: [f64; 2],
    /// Bits of its code.
    pub(crate) code: f64,
}

/// What an entry takes beside its code and its fraction, in bits: its list's share, in both tiers,
/// and that of what a chunk has once. `longest` is the length of the chunk's longest list; `young`
/// the share of young entries.
fn share_of_list(entries: f64, longest: f64, young: f64) -> f64 {
    const SHARE_OF_CHUNK: f64 = 60.0;
    let tier = |share: f64| SHARE_OF_CHUNK + list_bits(share * entries, share * longest);
    (tier(1.0 - young) + tier(young)) / entries.max(1.0)
}

/// Bits of a code, where the overlay has such a share of all keys.
fn code_bits(overlay_share: f64) -> f64 {
    // Nine runs of a level; above a level of one run that has less than half of all keys, too.
    let runs: f64 = if overlay_share > 0.6 { 17.0 } else { 9.0 };
    log2(runs)
}

/// What an entry takes beside its fraction, in bits, where the overlay has such a share of all
/// keys.
pub(crate) fn bits_beside_fraction(overlay_share: f64) -> f64 {
    let entries = usual_list(overlay_share / (1.0 - overlay_share).max(0.01));
    code_bits(overlay_share) + share_of_list(entries, entries, YOUNG_SHARE)
}

/// The entries of a usual group's list, where each key has so many newer ones.
fn usual_list(newer: f64) -> f64 {
    GROUP_KEYS * newer
}

/// The bits that the list of a group of `keys` keys takes beyond the plan, where each key has
/// `share` newer ones. Text has small groups, and a list of few entries has tables all the same.
pub(crate) fn small_list_bits(keys: f64, share: f64) -> f64 {
    let (entries, usual) = (keys * share, usual_list(share));
    let share_of = |entries: f64| share_of_list(entries, entries, YOUNG_SHARE);
    entries * (share_of(entries) - share_of(usual))
}

impl EntryBudget {
    /// The bits that are left for fractions in a chunk whose entries stand for so many keys each.
    /// `longest` gives the present length of the longest list.
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
        // Of fewer entries there is room for as many young ones.
        let fraction = |bits: f64, share: f64| {
            let list = share_of_list(share * entries, share * longest, YOUNG_SHARE / share);
            bits * keys_per_entry - self.code - list
        };
        fraction(when_full, 1.0).min(fraction(midway, MIDWAY)).max(LEAST)
    }
}

impl GrfOptions {
    /// What an entry of the overlay above this base may take, if so many keys were inserted: what a
    /// filling of the tree leaves. Unexpected keys wait for merges that do not keep up, and take
    /// what they need: in a large tree they are few.
    pub(crate) fn entry_budget(&self, base: &Base, inserted: u64) -> EntryBudget {
        let expected = base.overlay_keys.max(1) as f64;
        let growth = (expected / inserted.max(1) as f64).max(1.0);
        let keys = base.entries as f64 + expected;
        // A base that takes more than it was given, as cells of text do, is no reason to tell
        // entries apart worse.
        let base_bits = (8.0 * base.bytes() as f64).min(self.bits_per_key * base.entries as f64);
        let is_expected = inserted <= base.overlay_keys;
        let bits = |share: f64| {
            let left = self.filling_bits() * (base.entries as f64 + share * expected) - base_bits;
            if is_expected { left / (share * expected) } else { PLENTY }
        };
        EntryBudget { growth, bits: [1.0, MIDWAY].map(bits), code: code_bits(expected / keys) }
    }
}
