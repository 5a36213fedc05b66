//! Builds a part from the sorted keys of a last level, as a stream.
//! ```text
//! keys --> groups (text/named.rs) --> base, within the bits that the overlay leaves
//! ```
//! Invariant: base and overlay together take the budget.

use crate::base::shape::FlushNumber;
use crate::fingerprint::Fingerprints;
use crate::fingerprint::builder::{Beside, CUTS_OF_LINE_BLOCK, Groups, GroupsPlan, HASH_ABOVE};
use crate::fingerprint::demand::Demand;
use crate::fingerprint::empty_queries::{EmptyQueries, EmptyQuery};
use crate::fingerprint::gap::WINDOW;
use crate::fingerprint::hashes::POINT_BITS_MAX;
use crate::fingerprint::keys::Pushed;
use crate::fingerprint::query_mix::QueryMix;
use crate::grf::base::Base;
use crate::grf::base::place::FRACTION_BITS;
use crate::grf::options::{GrfOptions, are_many};
use crate::grf::overlay::entry_budget::small_list_bits;
use crate::grf::part::Part;
use crate::text::code::KeyCode;
use crate::text::model::TextModel;
use crate::text::named::NamedGroupsBuilder;
use crate::text::sample::KeySample;

/// A part keeps one query per this many keys, which takes little of its memory.
const KEYS_PER_QUERY: u64 = 4096;

impl Part {
    /// Returns a part without keys.
    pub fn empty(options: &GrfOptions) -> Part {
        PartBuilder::new(options).finish(FlushNumber(0))
    }
}

/// Builds a part from the sorted keys of a last level.
pub struct PartBuilder {
    options: GrfOptions,
    groups: NamedGroupsBuilder,
    packed_bits: f64,
    /// Keys that the overlay is expected to get per key of the base.
    overlay_ratio: f64,
    query_mix: QueryMix,
    empty_queries: EmptyQueries,
    length: Length,
}

/// The lengths of the pushed keys, in bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    Unknown,
    One(usize),
    Many,
}

impl Length {
    #[inline(always)]
    fn add(&mut self, bytes: usize) {
        if *self != Length::One(bytes) {
            *self = if *self == Length::Unknown { Length::One(bytes) } else { Length::Many };
        }
    }

    /// The common length, if it is short enough to query ranges key by key.
    fn one(self) -> Option<usize> {
        match self {
            Length::One(bytes) => (1..=Base::ONE_LENGTH_MAX).contains(&bytes).then_some(bytes),
            Length::Unknown | Length::Many => None,
        }
    }
}

impl PartBuilder {
    /// An empty builder. It expects that the overlay gets 1 / `size_ratio` of all keys before the
    /// part is rebuilt, as above a full last level.
    pub fn new(options: &GrfOptions) -> Self {
        let share = 1.0 / f64::from(options.size_ratio.max(2));
        Self::with_overlay_shares(options, share, share)
    }

    /// Same as [`PartBuilder::new`], for an overlay with the given share of all keys (0 to 1)
    /// before the part is rebuilt. An overlay entry takes more memory than a base key, so the base
    /// leaves room for many entries. The filter takes at most 1.1 times its budget at any filling
    /// of the tree.
    ///
    /// `full_share` is the overlay's share when the last level is full, which is when the budget
    /// applies. It is larger if the last level has several runs, as the base has only the oldest.
    pub fn with_overlay_shares(options: &GrfOptions, overlay_share: f64, full_share: f64) -> Self {
        let split = options.split(overlay_share, full_share);
        let plan = GroupsPlan {
            fingerprints: options.fingerprints,
            bits_per_key: split.base_bits,
            point_bits: point_bits(options),
            hash_above: HASH_ABOVE,
            key_bits: None,
            is_text: false,
            expected_keys: 0,
            beside: beside(full_share),
            cuts_of_line_block: cuts_of_line_block(options, overlay_share),
            has_newer: true,
        };
        PartBuilder {
            options: *options,
            groups: NamedGroupsBuilder::new(plan),
            packed_bits: split.packed_bits,
            overlay_ratio: newer(overlay_share),
            query_mix: QueryMix::default(),
            empty_queries: EmptyQueries::default(),
            length: Length::Unknown,
        }
    }

    /// Sets the expected query mix, by which bits are divided between order and hashes. Requires:
    /// no sample was given, and no key was pushed.
    #[must_use]
    pub fn query_mix(self, query_mix: QueryMix) -> Self {
        PartBuilder { query_mix, ..self }
    }

    /// Learns a model of text from a sample of about `keys` keys, if it pays. The part then stores
    /// codes in place of keys. (`Fingerprints::Spline`, the GRF paper's, has none.) A sample unlike
    /// the keys costs accuracy, never correctness. Memory for `keys` keys is reserved at once.
    /// Requires: no key was pushed.
    #[must_use]
    pub fn with_sample(mut self, sample: &KeySample, keys: u64) -> Self {
        let query_mix = self.query_mix;
        let judged = self.groups.judge(sample, keys, query_mix);
        let own = self.options.point_bits == 0;
        self = self.with_plan(|plan| {
            plan.point_bits = if own { judged.point_bits } else { plan.point_bits };
            plan.is_text = judged.hashes;
            plan.expected_keys = keys;
            if judged.is_known && !judged.hashes {
                plan.hash_above = query_mix.hash_above(plan.point_bits);
            }
        });
        match judged.model {
            Some(model) => self.with_text(model, keys),
            None => self,
        }
    }

    /// Divides bits by where these queries fall among the sampled keys. Groups get hash bits if
    /// points come closer to keys than order can resolve. Whatever the queries, each group keeps at
    /// least an even share less one bit per key. The part keeps some of the queries
    /// ([`Part::empty_queries`]).
    ///
    /// `Fingerprints::Spline`, the GRF paper's, divides evenly. The sample is of about `keys` keys.
    /// Requires: the sample was given, and no key was pushed.
    #[must_use]
    pub fn with_empty_queries(
        mut self,
        queries: &EmptyQueries,
        sample: &KeySample,
        keys: u64,
    ) -> Self {
        if queries.is_empty() || self.options.fingerprints == Fingerprints::Spline {
            return self;
        }
        self.empty_queries = queries.clone();
        let bits = queries.bits_each() / KEYS_PER_QUERY as f64;
        self = self.with_plan(|plan| {
            plan.bits_per_key = (plan.bits_per_key - bits).max(GrfOptions::BASE_BITS_LEAST);
        });
        let (mut named, mut firsts) = (EmptyQueries::default(), sample.firsts());
        let mut code = KeyCode::new();
        let mut name = |key: &[u8]| self.groups.name(key, &mut code).to_vec();
        firsts.iter_mut().for_each(|first| *first = name(first));
        firsts.sort_unstable();
        for query in queries.iter() {
            let is_kept = named.push_in_order(EmptyQuery { key: &name(query.key), ..query });
            assert!(is_kept, "codes ascend as keys do");
        }
        self.groups.set_demand(Demand::new(named, &firsts, keys));
        self
    }

    /// Changes the plan of the groups. Requires: no key was pushed.
    fn with_plan(self, change: impl FnOnce(&mut GroupsPlan)) -> Self {
        PartBuilder { groups: self.groups.with_plan(change), ..self }
    }

    /// Stores codes of `model` in place of about `keys` keys, whether that pays or not. The model's
    /// memory comes out of the budget. Requires: no key was pushed.
    #[must_use]
    pub fn with_text(self, model: TextModel, keys: u64) -> Self {
        PartBuilder { groups: self.groups.with_text(model, keys), ..self }
    }

    /// Adds the next key.
    ///
    /// # Panics
    /// `key` is not above all previous keys, or has more than 64 KiB.
    #[inline]
    pub fn push(&mut self, key: &[u8]) {
        self.length.add(key.len());
        match self.groups.push(key) {
            Pushed::Kept | Pushed::Zeros => {}
            Pushed::Repeated | Pushed::Below => out_of_order(self.groups.last(), key),
        }
    }

    /// Same as [`PartBuilder::push`] for each of `words`. Faster for dozens of keys.
    pub fn push_words(&mut self, words: &[[u8; 8]]) {
        if let Some(word) = words.first() {
            self.length.add(word.len());
        }
        if let Some(word) = self.groups.push_words(words) {
            out_of_order(self.groups.last(), word);
        }
    }

    /// Returns the part of the pushed keys, with an empty overlay. The flush numbers of these keys
    /// are in [0, `base_end`).
    pub fn finish(self, base_end: FlushNumber) -> Part {
        let query_mix = self.query_mix;
        let (groups, text) = self.groups.finish();
        let Groups { mut arena, directory, starts, entries, point_bits, fallen, bits_left } =
            groups;
        let hashed_keys = point_bits > 0 && text.is_none();
        let one_length = self.length.one().filter(|_| hashed_keys).unwrap_or(0);
        let kept = kept_queries(entries);
        let overlay_keys = entries as f64 * self.overlay_ratio;
        assert!(base_end.0 > 0 || entries == 0, "keys of no flush");
        if entries > 0 {
            arena.reserve_exact(WINDOW);
            arena.extend_from_slice(&[0; WINDOW]);
        }
        let base = Base {
            arena: arena.into_boxed_slice(),
            directory,
            starts,
            end: base_end,
            entries,
            packed_steps: packed_steps(self.packed_bits, bits_left / overlay_keys),
            overlay_keys: overlay_keys as u64,
            point_bits,
            one_length,
            query_mix,
            empty_queries: self.empty_queries.thinned(fallen, kept),
            text,
        };
        Part::of_base(self.options, base)
    }

    /// The peak heap size of the build so far, in bytes.
    pub fn peak_bytes(&self) -> usize {
        self.groups.peak_bytes()
    }
}

/// The number of queries that a part of `keys` keys keeps.
pub(super) fn kept_queries(keys: u64) -> usize {
    (keys / KEYS_PER_QUERY) as usize
}

/// The lists of small groups take extra memory. If newer keys are more than a quarter, the reserve
/// for entries covers it.
fn beside(full_share: f64) -> Beside {
    if are_many(full_share) {
        Beside::NOTHING
    } else {
        Beside { share: newer(full_share), bits: small_list_bits }
    }
}

/// The bits of an entry's fraction, in eighths; more if exact cells of the base leave some bits
/// unused.
fn packed_steps(bits: f64, left: f64) -> u8 {
    let more = if left.is_finite() { left } else { 0.0 };
    ((bits + more).min(FRACTION_BITS as f64) * Base::PACKED_STEPS) as u8
}

/// With many newer keys, and where lines must serve crowded keys, places need short blocks.
fn cuts_of_line_block(options: &GrfOptions, overlay_share: f64) -> usize {
    let is_short = are_many(overlay_share) || options.fingerprints == Fingerprints::Spline;
    if is_short { 1 } else { CUTS_OF_LINE_BLOCK }
}

/// Converts the overlay's share of all keys to its keys per base key.
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
