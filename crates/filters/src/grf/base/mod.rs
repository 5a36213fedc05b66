//! The base of a part: the keys of its last level as static fingerprints.
//! ```text
//! directory -> group -> block
//! place of a key = (list, bucket, fraction)
//!     list       0: below the first key; g + 1: group g; last: above the last key
//!     bucket     block of the group
//!     fraction   position within the block (fraction.rs, extent.rs, line.rs)
//! ```
//! A list belongs to one group, or to an edge: the keys below the first or above the last.
//!
//! Invariant: the places of a range's two ends are monotone in keys, and the place of any key in
//! the range lies between them. So a search between them finds every key of the range.

mod between;
pub(super) mod bounds;
mod extent;
mod fraction;
mod line;
mod neighbours;
pub(super) mod place;
mod point_bits;
mod positions;
mod short_ranges;

use alloc::boxed::Box;

use crate::base::filter::{Trace, prefetch_lines_traced};
use crate::base::shape::FlushNumber;
use crate::bits::simd::prefetch_lines;
use crate::fingerprint::cell::{Block, Tail};
use crate::fingerprint::coded::CodedBlock;
use crate::fingerprint::directory::{Among, Directory};
use crate::fingerprint::empty_queries::EmptyQueries;
use crate::fingerprint::gap::number;
use crate::fingerprint::gap::{Fall, GapBlock};
use crate::fingerprint::group::{CodedAt, GROUP_ALIGN, Group, Kind};
use crate::fingerprint::hashes::{hash_bit_string, hash_position};
use crate::fingerprint::line::Line;
use crate::fingerprint::query_mix::QueryMix;
use crate::fingerprint::spline::{Layout, SplineBlock, block_count as spline_count};
use crate::fingerprint::starts::GroupStarts;
use crate::grf::base::between::Spacing;
use crate::grf::base::extent::Extent;
use crate::grf::base::fraction::{Limits, fraction};
use crate::grf::base::place::{BUCKETS, FRACTION_BITS, PLACE_BITS, place};
use crate::grf::base::positions::Positions;
use crate::grf::sizes::{ARC_BYTES, LINE_BYTES, Slots, allocated_bytes};
use crate::text::code::KeyCode;
use crate::text::model::TextModel;

/// The number of cache lines that a group's header may span.
const HEADER_LINES: usize = 2;
/// The number of cache lines to prefetch around an estimated position, to cover a block and its
/// fingerprint of the key. So many of them come before the estimate.
const LINES_ABOUT: usize = 4;
const LINES_BEFORE: usize = 2;

/// The keys of the last level.
#[derive(Default)]
pub(crate) struct Base {
    pub(crate) arena: Box<[u8]>,
    pub(crate) directory: Directory,
    pub(crate) starts: GroupStarts,
    pub(crate) end: FlushNumber,
    pub(crate) entries: u64,
    /// Bits per fraction of a packed entry in the overlay, in eighths.
    pub(crate) packed_steps: u8,
    /// Keys that the overlay is expected to get before the base is rebuilt.
    pub(crate) overlay_keys: u64,
    /// Hash bits per key in groups that have hashes.
    pub(crate) point_bits: usize,
    /// The length of all keys in bytes, if it is the same and hashes tell some keys apart; else 0.
    pub(crate) one_length: usize,
    /// The query mix it was built for.
    pub(crate) query_mix: QueryMix,
    /// Some of the queries by which its bits were divided.
    pub(crate) empty_queries: EmptyQueries,
    /// The model of text, if any. Then "key" means a key's code throughout the base.
    pub(crate) text: Option<Box<TextModel>>,
}

/// The bucket of a key, and what finding its place there needs.
pub(crate) struct Site<'a> {
    pub(crate) list: usize,
    pub(crate) bucket: usize,
    /// The key's coordinate within its list: its first 64 bits after the group's prefix; at the
    /// edges its place.
    pub(crate) view: u64,
    within: Within<'a>,
}

/// The result of looking up a key in the directory.
#[derive(Clone, Copy, Default)]
pub(crate) struct FoundList {
    pub(crate) list: usize,
    /// Eight bytes of the key after the base's common prefix; 0 at the edges.
    pub(crate) word: u64,
}

/// How to find a key among the fingerprints of its bucket.
enum Within<'a> {
    /// The bucket has none: the key lies below the first key or above the last one.
    Edge,
    /// The key lacks the group's prefix and is above all of its keys.
    AfterPrefix { bytes: &'a [u8], kind: Kind },
    /// Among cells.
    Cells { bytes: &'a [u8], tail: Tail<'a>, limits: Limits },
    /// Among the numbers of gap fingerprints.
    Gaps { bytes: &'a [u8], extent: Extent },
    /// Among coded cells.
    Coded { block: CodedAt<'a>, extent: Extent },
    /// Among hashes.
    Hashes { bytes: &'a [u8], layout: Layout, hash: u64 },
    /// Among positions on a line.
    Positions(Positions<'a>),
}

impl<'a> Site<'a> {
    /// Prefetches the bucket's fingerprints.
    #[inline(always)]
    pub(crate) fn load_block(&self) {
        match &self.within {
            Within::Edge | Within::AfterPrefix { .. } => {}
            Within::Positions(positions) => positions.load(),
            Within::Coded { block, .. } => prefetch_lines(block.bytes, 0, 2),
            Within::Cells { bytes, .. }
            | Within::Gaps { bytes, .. }
            | Within::Hashes { bytes, .. } => {
                // A block takes about one cache line and seldom begins with one.
                prefetch_lines(bytes, 0, 2);
            }
        }
    }

    /// The bucket as a tuple, which sorts in key order.
    pub(crate) fn bucket_key(&self) -> (usize, usize) {
        (self.list, self.bucket)
    }
}

/// The purpose of a place. Hashed groups know only the order of blocks, so the ends of a range must
/// cover whole blocks there.
#[derive(Clone, Copy)]
pub(crate) enum Role<'a> {
    /// A point query.
    Point,
    /// The lower end of a range.
    Low,
    /// The upper end of a range with this lower end.
    High(&'a Spot),
}

/// Returns the fraction of a key in a hashed group, with `bits` bits.
#[inline(always)]
fn hash_fraction(hash: u64, bits: usize) -> u64 {
    // Uses other bits than the base, whose positions use the high ones.
    hash << 32 >> (64 - bits)
}

/// The place of a key, and its rank in the base.
#[derive(Clone, Copy)]
pub(crate) struct Spot {
    pub(crate) list: usize,
    pub(crate) bucket: usize,
    pub(crate) fraction: u64,
    /// The bucket's keys in cells below the key.
    before: usize,
    /// Those, plus the keys in its own cell if it lies in one.
    through: usize,
    /// The number of keys in the bucket.
    count: usize,
    /// The result of the search in a gap block: keys up to the next cell have the same result.
    fall: Option<Fall>,
    /// The slots of the bucket's packed entries, for lookups in the overlay.
    pub(crate) slots: Slots,
}

impl Spot {
    /// The place of a key in its bucket of `count` keys. `ranks`: the keys below it, and those up
    /// to the end of its cell.
    #[inline(always)]
    pub(crate) fn new(
        (list, bucket): (usize, usize),
        fraction: u64,
        (before, through): (usize, usize),
        count: usize,
    ) -> Self {
        Spot { list, bucket, fraction, before, through, count, fall: None, slots: Slots::default() }
    }

    #[inline(always)]
    pub(crate) fn bucket_key(&self) -> (usize, usize) {
        (self.list, self.bucket)
    }

    /// Returns the place within the list.
    #[inline(always)]
    pub(crate) fn place(&self) -> u32 {
        place(self.bucket, self.fraction)
    }

    /// Returns the number of the bucket's keys in cells below the key, and of those up to the end
    /// of its own.
    pub(crate) fn ranks(&self) -> (usize, usize) {
        (self.before, self.through)
    }

    /// Whether the key is in a cell of the base.
    #[inline(always)]
    pub(crate) fn may_be_base(&self) -> bool {
        self.before < self.through
    }
}

impl Base {
    /// The heap memory of the base in bytes, including the allocator's overhead.
    pub(crate) fn bytes(&self) -> u64 {
        let parts = [ARC_BYTES + size_of::<Base>(), self.arena.len()];
        let tables = self.directory.allocations().into_iter().chain(self.starts.allocations());
        let text = self.text.iter().flat_map(|text| text.allocations());
        let tables = tables.chain(self.empty_queries.allocations());
        parts.into_iter().chain(tables).chain(text).map(allocated_bytes).sum()
    }

    /// Fraction bits are counted in steps of one eighth.
    pub(crate) const PACKED_STEPS: f64 = 8.0;

    /// Bits per fraction of a packed entry in the overlay.
    pub(crate) fn packed_bits(&self) -> f64 {
        f64::from(self.packed_steps) / Self::PACKED_STEPS
    }

    /// Returns the name of a key in the base: the key, or its code if there is a model of text.
    #[inline(always)]
    pub(crate) fn name<'k>(&self, key: &'k [u8], code: &'k mut KeyCode) -> &'k [u8] {
        match &self.text {
            None => key,
            Some(text) => text.encode(key, code),
        }
    }

    /// The number of lists: one below, one per group, one above.
    pub(crate) fn list_count(&self) -> usize {
        self.directory.len() + 2
    }

    /// The number of buckets in a list.
    pub(crate) fn bucket_count(&self, list: usize) -> usize {
        if self.is_edge(list) { BUCKETS } else { self.group(list - 1).blocks }
    }

    /// Whether the list is an edge: keys below the first one or above the last one.
    pub(crate) fn is_edge(&self, list: usize) -> bool {
        list == 0 || list > self.directory.len()
    }

    #[inline(always)]
    pub(crate) fn group(&self, group: usize) -> Group<'_> {
        Group::new(&self.arena[self.directory.offset(group) * GROUP_ALIGN..])
    }

    /// Returns the limits of a block's cells.
    #[inline(always)]
    pub(crate) fn limits(&self, index: usize, group: &Group<'_>, block: usize) -> Limits {
        Limits { head_bits: group.head_bits(block), end: self.end_of(index, group, block) }
    }

    /// Returns an upper bound of the views in the block.
    #[inline(always)]
    pub(crate) fn end_of(&self, index: usize, group: &Group<'_>, block: usize) -> u64 {
        if block + 1 == group.blocks {
            self.directory.end_view(index, group.prefix_bits)
        } else {
            group.head(block + 1)
        }
    }

    /// Returns the range of numbers of a block of gap or coded cells.
    #[inline(always)]
    pub(crate) fn extent(&self, index: usize, group: &Group<'_>, block: usize) -> Extent {
        let start = if block == 0 {
            self.directory.separator_view(index, group.prefix_bits)
        } else {
            group.head(block)
        };
        let spacing = match (group.is_aligned(), &self.text) {
            (true, _) => Spacing::Aligned,
            (false, Some(_)) => Spacing::FourthRoot,
            (false, None) => Spacing::SquareRoot,
        };
        Extent { start: number(start), end: number(self.end_of(index, group, block)), spacing }
    }

    /// Returns the line of a block in a spline group.
    #[inline(always)]
    pub(crate) fn line(&self, index: usize, group: &Group<'_>, block: usize) -> Line {
        let low = self.directory.separator_view(index, group.prefix_bits);
        Line { model: group.model(), blocks: group.blocks, block, low }
    }

    /// Returns the list of `key`.
    #[inline(always)]
    pub(crate) fn list_of<T: Trace>(&self, key: &[u8], trace: &mut T) -> FoundList {
        let (among, word) = match self.directory.word(key) {
            Ok(word) => (self.directory.find(key, word, trace), word),
            Err(beyond) => (beyond, 0),
        };
        FoundList { list: self.list_at(among), word }
    }

    #[inline(always)]
    pub(crate) fn list_at(&self, among: Among) -> usize {
        match among {
            Among::Group(index) => index + 1,
            Among::Below => 0,
            Among::Above => self.directory.len() + 1,
        }
    }

    /// Returns the bucket of `key`.
    #[inline(always)]
    pub(crate) fn locate<'a, T: Trace>(&'a self, key: &'a [u8], trace: &mut T) -> Site<'a> {
        self.locate_in(self.list_of(key, trace), key, trace)
    }

    /// Returns the bucket of `key`, given its list.
    #[inline(always)]
    pub(crate) fn locate_in<'a, T: Trace>(
        &'a self,
        FoundList { list, word }: FoundList,
        key: &'a [u8],
        trace: &mut T,
    ) -> Site<'a> {
        if self.is_edge(list) {
            return self.locate_at_edge(list, key);
        }
        let index = list - 1;
        let group = self.group(index);
        trace.touch(group.bytes.as_ptr() as usize, group.header_bytes());
        let kind = group.kind;
        if !self.directory.shares_prefix(index, (key, word), group.prefix_bits) {
            // A key of the group that lacks its prefix is above all keys with the prefix.
            let bucket = group.blocks - 1;
            let within = Within::AfterPrefix { bytes: group.block(bucket), kind };
            return Site { list, bucket, view: u64::MAX, within };
        }
        let view = self.directory.view((key, word), group.prefix_bits);
        if kind == Kind::Spline {
            let positions = self.positions_in(index, &group, view);
            let bucket = positions.bucket_key().1;
            return Site { list, bucket, view, within: Within::Positions(positions) };
        }
        let bucket = group.block_of(view);
        let bytes = group.block(bucket);
        let within = match kind {
            Kind::Cell => {
                let tail = Tail::new(key, group.prefix_bits);
                Within::Cells { bytes, tail, limits: self.limits(index, &group, bucket) }
            }
            Kind::Hash => {
                let hash = hash_bit_string(key);
                Within::Hashes { bytes, layout: group.layout(), hash }
            }
            Kind::Coded => {
                let block = group.coded_at(bucket, &self.arena);
                Within::Coded { block, extent: self.extent(index, &group, bucket) }
            }
            _ => Within::Gaps { bytes, extent: self.extent(index, &group, bucket) },
        };
        Site { list, bucket, view, within }
    }

    /// Prefetches a list's group and the estimated position of the key's block. Returns how far the
    /// key lies across the list (see `PlaceEstimate`).
    #[inline(always)]
    pub(crate) fn load_about<T: Trace>(
        &self,
        FoundList { list, word }: FoundList,
        trace: &mut T,
    ) -> usize {
        if self.is_edge(list) {
            return 0;
        }
        let guess = self.directory.estimate_place(list - 1, word);
        prefetch_lines_traced(&self.arena, guess.group_at, HEADER_LINES, trace);
        let before = LINES_BEFORE * LINE_BYTES;
        prefetch_lines_traced(&self.arena, guess.at.wrapping_sub(before), LINES_ABOUT, trace);
        guess.across
    }

    fn locate_at_edge<'a>(&self, list: usize, key: &[u8]) -> Site<'a> {
        let view = if list == 0 {
            (1 << PLACE_BITS) - 1 - edge_place(self.directory.distance_below(key))
        } else {
            edge_place(self.directory.distance_above(key))
        };
        // An edge has no blocks: the bucket is the top of the place.
        let bucket = (view >> FRACTION_BITS) as usize;
        Site { list, bucket, view, within: Within::Edge }
    }

    /// Returns the place of a key, given its bucket.
    #[inline(always)]
    pub(crate) fn place<T: Trace>(&self, site: &Site<'_>, role: Role<'_>, trace: &mut T) -> Spot {
        let bits = FRACTION_BITS;
        let spot = |fraction, ranks, count| Spot::new(site.bucket_key(), fraction, ranks, count);
        match &site.within {
            Within::Edge => spot(site.view & ((1 << FRACTION_BITS) - 1), (0, 0), 0),
            Within::AfterPrefix { bytes, kind } => {
                let count = block_count(bytes, *kind);
                spot((1 << bits) - 1, (count, count), count)
            }
            Within::Cells { bytes, tail, limits } => {
                let block = Block::new(bytes);
                let (found, count) = (block.find(tail, trace), block.count());
                let through = found.before + usize::from(found.is_in());
                let fraction = fraction(&found, tail, count, limits, bits);
                spot(fraction, (found.before, through), count)
            }
            Within::Gaps { bytes, extent } => {
                let block = GapBlock::new(bytes);
                let find = |number| block.find(number, extent.start, trace);
                place_by_gaps(site, role, extent, block.count(), find)
            }
            Within::Coded { block, extent } => {
                let block = block.read(self.point_bits);
                let find = |number| block.find(number, extent.start, trace);
                place_by_gaps(site, role, extent, block.count(), find)
            }
            Within::Hashes { bytes, layout, hash } => {
                let block = SplineBlock::new(bytes, *layout);
                let last = (1 << bits) - 1;
                match role {
                    Role::Point => {
                        let ranks = block.find(hash_position(*hash, layout), trace);
                        spot(hash_fraction(*hash, bits), ranks, block.count())
                    }
                    Role::Low => spot(0, (0, block.count()), block.count()),
                    Role::High(_) => spot(last, (0, block.count()), block.count()),
                }
            }
            Within::Positions(positions) => self.place_on_line(positions, trace),
        }
    }

    /// Whether the base may hold a key from `low` to `high`, or from `low` on. False: it holds
    /// none.
    pub(crate) fn may_overlap(&self, low: &Spot, high: Option<&Spot>) -> bool {
        if let Some(high) = high
            && high.bucket_key() == low.bucket_key()
        {
            return low.before < high.through;
        }
        if low.before < low.count || high.is_some_and(|high| high.through > 0) {
            return true;
        }
        let mut between = self.bucket_after(low.bucket_key());
        while let Some(bucket) = between
            && high.is_none_or(|high| bucket < high.bucket_key())
        {
            if self.key_count(bucket) > 0 {
                return true;
            }
            between = self.bucket_after(bucket);
        }
        false
    }

    /// The number of keys in a bucket.
    pub(crate) fn key_count(&self, (list, bucket): (usize, usize)) -> usize {
        if self.is_edge(list) {
            return 0;
        }
        let group = self.group(list - 1);
        block_count(group.block(bucket), group.kind)
    }

    /// Returns the last bucket in key order.
    pub(crate) fn last_bucket(&self) -> (usize, usize) {
        let list = self.list_count() - 1;
        (list, self.bucket_count(list) - 1)
    }

    /// Returns the next bucket in key order.
    pub(crate) fn bucket_after(&self, (list, bucket): (usize, usize)) -> Option<(usize, usize)> {
        if bucket + 1 < self.bucket_count(list) {
            return Some((list, bucket + 1));
        }
        (list + 1 < self.list_count()).then_some((list + 1, 0))
    }

    /// Returns the previous bucket in key order.
    pub(crate) fn bucket_before(&self, (list, bucket): (usize, usize)) -> Option<(usize, usize)> {
        match (list, bucket) {
            (0, 0) => None,
            (_, 0) => Some((list - 1, self.bucket_count(list - 1) - 1)),
            _ => Some((list, bucket - 1)),
        }
    }
}

/// Returns the place of a key in a block of `count` keys; `find` locates a number in the block.
#[inline(always)]
fn place_by_gaps(
    site: &Site<'_>,
    role: Role<'_>,
    extent: &Extent,
    count: usize,
    find: impl FnOnce(u64) -> Fall,
) -> Spot {
    let number = number(site.view);
    let known = match role {
        Role::High(low) if low.bucket_key() == site.bucket_key() => low.fall,
        _ => None,
    };
    let fall = match known {
        Some(fall) if fall.reaches(number) => fall,
        _ => find(number),
    };
    let fraction = extent.fraction(&fall, number, count, FRACTION_BITS);
    let spot = Spot::new(site.bucket_key(), fraction, fall.ranks(), count);
    Spot { fall: Some(fall), ..spot }
}

pub(crate) fn block_count(bytes: &[u8], kind: Kind) -> usize {
    match kind {
        Kind::Cell => Block::new(bytes).count(),
        Kind::Gap => GapBlock::new(bytes).count(),
        Kind::Coded => CodedBlock::count_of(bytes),
        Kind::Spline | Kind::Hash => spline_count(bytes),
    }
}

/// Encodes a distance as a floating-point number of [`PLACE_BITS`] bits: exact near the edge, with
/// a relative error farther away.
fn edge_place(distance: u64) -> u64 {
    const MANTISSA: u32 = PLACE_BITS as u32 - 6;
    match distance.checked_ilog2() {
        Some(magnitude) if magnitude >= MANTISSA => {
            let shift = magnitude - MANTISSA;
            u64::from(shift + 1) << MANTISSA | (distance >> shift) & ((1 << MANTISSA) - 1)
        }
        _ => distance,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_at_the_edges_are_monotone() {
        let around =
            |bit: u32| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1, (1 << bit) | 1 << bit >> 1];
        let mut distances: Vec<u64> = (0..64).flat_map(around).chain([u64::MAX]).collect();
        distances.sort_unstable();
        let places: Vec<u64> = distances.iter().map(|&distance| edge_place(distance)).collect();
        assert!(places.is_sorted());
        assert!(places.iter().all(|&place| place < 1 << PLACE_BITS));
    }
}
