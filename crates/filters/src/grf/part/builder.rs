//! Builds a part from the sorted keys of a last level, streaming.
//! ```text
//! keys --> groups (fingerprint/builder.rs) --> base, with the bits that the overlay leaves it
//! ```
//! Invariant: what the base takes and what the overlay will take is the budget.

use crate::base::shape::FlushNumber;
use crate::fingerprint::Fingerprints;
use crate::fingerprint::builder::{Beside, CUTS_OF_LINE_BLOCK, Groups, GroupsBuilder, GroupsPlan};
use crate::fingerprint::gap::WINDOW;
use crate::fingerprint::hashes::POINT_BITS_MAX;
use crate::fingerprint::keys::Pushed;
use crate::grf::base::Base;
use crate::grf::options::{GrfOptions, are_many};
use crate::grf::overlay::entry_budget::small_list_bits;
use crate::grf::part::Part;

impl Part {
    /// A part without keys.
    pub fn empty(options: &GrfOptions) -> Part {
        PartBuilder::new(options).finish(FlushNumber(0))
    }
}

/// Builds a part from the sorted keys of a last level.
pub struct PartBuilder {
    options: GrfOptions,
    groups: GroupsBuilder,
    packed_bits: u8,
    /// Keys that the overlay is expected to get for each one of the base.
    overlay_ratio: f64,
}

impl PartBuilder {
    /// Starts without keys. Until the part is built anew, the overlay is expected to get 1 /
    /// `size_ratio` of all keys, as above a full last level.
    pub fn new(options: &GrfOptions) -> Self {
        let share = 1.0 / f64::from(options.size_ratio.max(2));
        Self::with_overlay_shares(options, share, share)
    }

    /// As [`PartBuilder::new`], where the overlay is expected to get such a share of all keys (0 to
    /// 1). Its entries take more than keys of the base do: the base leaves room for them where they
    /// are many. The filter takes at most 1.25 times its budget at any filling of the tree, if the
    /// overlay has at most half of the keys.
    ///
    /// When the last level is full, the overlay has `full_share` of all keys. It is more than above
    /// one last run if the last level has several runs, of which the base is only the oldest. The
    /// budget is for that moment.
    pub fn with_overlay_shares(options: &GrfOptions, overlay_share: f64, full_share: f64) -> Self {
        let split = options.split(overlay_share, full_share);
        let plan = GroupsPlan {
            fingerprints: options.fingerprints,
            bits_per_key: split.base_bits,
            point_bits: point_bits(options),
            beside: beside(full_share),
            cuts_of_line_block: cuts_of_line_block(options, overlay_share),
        };
        PartBuilder {
            options: *options,
            groups: GroupsBuilder::new(plan),
            packed_bits: split.packed_bits,
            overlay_ratio: newer(overlay_share),
        }
    }

    /// Adds the next key. Requires: above all keys before, and of at most 64 KiB.
    #[inline]
    pub fn push(&mut self, key: &[u8]) {
        match self.groups.push(key) {
            Pushed::Kept | Pushed::Zeros => {}
            Pushed::Repeated | Pushed::Below => out_of_order(self.groups.last(), key),
        }
    }

    /// As [`PartBuilder::push`] of each of these keys of eight bytes: in less time, where they are
    /// dozens.
    pub fn push_words(&mut self, words: &[[u8; 8]]) {
        if let Some(word) = self.groups.push_words(words) {
            out_of_order(self.groups.last(), word);
        }
    }

    /// The part of the keys pushed, with an empty overlay. The flush numbers of the keys lie in [0,
    /// `base_end`).
    pub fn finish(self, base_end: FlushNumber) -> Part {
        let Groups { mut arena, directory, starts, entries } = self.groups.finish();
        assert!(base_end.0 > 0 || entries == 0, "keys of no flush");
        if entries > 0 {
            arena.extend_from_slice(&[0; WINDOW]);
        }
        let base = Base {
            arena: arena.into_boxed_slice(),
            directory,
            starts,
            end: base_end,
            entries,
            packed_bits: self.packed_bits,
            overlay_keys: (entries as f64 * self.overlay_ratio) as u64,
            point_bits: point_bits(&self.options),
        };
        Part::of_base(self.options, base)
    }

    /// The most heap bytes that building has taken so far.
    pub fn peak_bytes(&self) -> usize {
        self.groups.peak_bytes()
    }
}

/// What lists of small groups take. Where a quarter of all keys is newer, more is foreseen for
/// entries than they take.
fn beside(full_share: f64) -> Beside {
    if are_many(full_share) {
        Beside::NOTHING
    } else {
        Beside { share: newer(full_share), bits: small_list_bits }
    }
}

/// Where newer keys are many, and where lines must do for keys that crowd, places need short
/// blocks.
fn cuts_of_line_block(options: &GrfOptions, overlay_share: f64) -> usize {
    let is_short = are_many(overlay_share) || options.fingerprints == Fingerprints::Spline;
    if is_short { 1 } else { CUTS_OF_LINE_BLOCK }
}

/// The keys of the overlay for each one of the base, if it has such a share of all.
fn newer(share: f64) -> f64 {
    share / (1.0 - share).max(0.1)
}

fn point_bits(options: &GrfOptions) -> usize {
    usize::from(options.point_bits).min(POINT_BITS_MAX)
}

#[cold]
fn out_of_order(last: Option<&[u8]>, key: &[u8]) {
    panic!("keys out of order: {last:?}, {key:?}");
}
