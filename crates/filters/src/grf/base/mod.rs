//! The base of a part: the keys of its last level, as static fingerprints.
//! ```text
//! directory -> group -> block
//! place of a key = (list, bucket, fraction)
//!     list       0: below the first key; g + 1: group g; last: above the last key
//!     bucket     block of the group
//!     fraction   where in the block (fraction.rs, extent.rs, line.rs)
//! ```
//! Invariant: places taken as the ends of a range are monotone in keys, and the place of a single
//! key lies between them. So whatever is asked with the places of the two ends of a range finds
//! every key between them.

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

use crate::base::filter::{Trace, ask_for_lines};
use crate::base::shape::FlushNumber;
use crate::bits::simd::prefetch_lines;
use crate::fingerprint::asked::Asked;
use crate::fingerprint::cell::{Block, Tail};
use crate::fingerprint::coded::CodedBlock;
use crate::fingerprint::directory::{Among, Directory};
use crate::fingerprint::gap::number;
use crate::fingerprint::gap::{Fall, GapBlock};
use crate::fingerprint::group::{CodedAt, GROUP_ALIGN, Group, Kind};
use crate::fingerprint::hashes::{hash_bit_string, hash_position};
use crate::fingerprint::line::Line;
use crate::fingerprint::questions::Questions;
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

/// Lines on which a group's header may be.
const HEADER_LINES: usize = 2;
/// Lines that a block and its key's fingerprint are likely to be on, if one of them is guessed; and
/// how many are before that.
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
    /// Bits of the fractions of packed entries in the overlay, in eighths.
    pub(crate) packed_steps: u8,
    /// Keys that the overlay is expected to get before the base is built anew.
    pub(crate) overlay_keys: u64,
    /// Hash bits of the keys of groups that have some.
    pub(crate) point_bits: usize,
    /// The bytes of all keys if they are of one length, and hashes tell some apart; else 0.
    pub(crate) one_length: usize,
    /// What it was built to be asked for.
    pub(crate) asked: Asked,
    /// Some of the questions by which its bits are divided.
    pub(crate) questions: Questions,
    /// What makes codes of keys: then these are meant wherever keys are named here.
    pub(crate) text: Option<Box<TextModel>>,
}

/// The bucket of a key, and what is needed to find its place there.
pub(crate) struct Site<'a> {
    pub(crate) list: usize,
    pub(crate) bucket: usize,
    /// The key's coordinate within its list: its first 64 bits after the group's prefix, or its
    /// place at the edges.
    pub(crate) view: u64,
    within: Within<'a>,
}

/// What the directory says of a key.
#[derive(Clone, Copy, Default)]
pub(crate) struct Found {
    pub(crate) list: usize,
    /// Eight bytes of the key after what all keys of the base share; 0 at the edges.
    pub(crate) word: u64,
}

/// How a key relates to the fingerprints of its bucket.
enum Within<'a> {
    /// There are none: it lies below the first key or above the last one.
    Edge,
    /// It is above all keys of the group, which share a prefix that it lacks.
    AfterPrefix { bytes: &'a [u8], kind: Kind },
    /// Among cells.
    Cells { bytes: &'a [u8], tail: Tail<'a>, limits: Limits },
    /// Among numbers as fine as their gaps.
    Gaps { bytes: &'a [u8], extent: Extent },
    /// As these, coded.
    Coded { block: CodedAt<'a>, extent: Extent },
    /// Among hashes.
    Hashes { bytes: &'a [u8], layout: Layout, hash: u64 },
    /// Among positions on a line.
    Positions(Positions<'a>),
}

impl<'a> Site<'a> {
    /// Asks for the memory of the bucket's fingerprints, without waiting for it.
    #[inline(always)]
    pub(crate) fn load_block(&self) {
        match &self.within {
            Within::Edge | Within::AfterPrefix { .. } => {}
            Within::Positions(positions) => positions.load(),
            Within::Coded { block, .. } => prefetch_lines(block.bytes, 0, 2),
            Within::Cells { bytes, .. }
            | Within::Gaps { bytes, .. }
            | Within::Hashes { bytes, .. } => {
                // A block of fingerprints is about a line, and seldom begins with one.
                prefetch_lines(bytes, 0, 2);
            }
        }
    }

    /// The order of buckets.
    pub(crate) fn bucket_key(&self) -> (usize, usize) {
        (self.list, self.bucket)
    }
}

/// What a place is asked for: hashed groups know the order of blocks alone, so the ends of a range
/// take in whole blocks.
#[derive(Clone, Copy)]
pub(crate) enum Role<'a> {
    /// One key.
    Point,
    /// The lower end of a range.
    Low,
    /// The upper end of a range that begins at this place.
    High(&'a Spot),
}

/// The fraction, of `bits` bits, of a key in a hashed group.
#[inline(always)]
fn hash_fraction(hash: u64, bits: usize) -> u64 {
    // Not the high bits: the base's positions tell of these already.
    hash << 32 >> (64 - bits)
}

/// The place of a key.
#[derive(Clone, Copy)]
pub(crate) struct Spot {
    pub(crate) list: usize,
    pub(crate) bucket: usize,
    pub(crate) fraction: u64,
    /// The bucket's cells whose keys are all below the key.
    before: usize,
    /// Those and, if it lies in one, its own.
    through: usize,
    /// All cells of the bucket.
    count: usize,
    /// Where a gap block's search ended: keys up to the next cell end there too.
    fall: Option<Fall>,
    /// Where the overlay's packed entries of the bucket are; for lookups in the overlay.
    pub(crate) slots: Slots,
}

impl Spot {
    /// The place of a key in its bucket of `count` keys; the first of `ranks` below it, the second
    /// through it.
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

    /// Where in its list it is.
    #[inline(always)]
    pub(crate) fn place(&self) -> u32 {
        place(self.bucket, self.fraction)
    }

    /// The bucket's cells whose keys are all below the key, and those up to its own.
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
    /// The heap bytes that it takes, what the allocator adds included.
    pub(crate) fn bytes(&self) -> u64 {
        let parts = [ARC_BYTES + size_of::<Base>(), self.arena.len()];
        let tables = self.directory.allocations().into_iter().chain(self.starts.allocations());
        let text = self.text.iter().flat_map(|text| text.allocations());
        let tables = tables.chain(self.questions.allocations());
        parts.into_iter().chain(tables).chain(text).map(allocated_bytes).sum()
    }

    /// Parts of a bit that fractions are told in.
    pub(crate) const PACKED_STEPS: f64 = 8.0;

    /// Bits of the fractions of packed entries in the overlay.
    pub(crate) fn packed_bits(&self) -> f64 {
        f64::from(self.packed_steps) / Self::PACKED_STEPS
    }

    /// What stands for a key in the base: the key, or its code if there is a model of text.
    #[inline(always)]
    pub(crate) fn name<'k>(&self, key: &'k [u8], code: &'k mut KeyCode) -> &'k [u8] {
        match &self.text {
            None => key,
            Some(text) => text.encode(key, code),
        }
    }

    /// The lists of the overlay: below, one for each group, above.
    pub(crate) fn list_count(&self) -> usize {
        self.directory.len() + 2
    }

    /// The buckets of a list.
    pub(crate) fn bucket_count(&self, list: usize) -> usize {
        if self.is_edge(list) { BUCKETS } else { self.group(list - 1).blocks }
    }

    /// Whether the list has keys below the first one or above the last one.
    pub(crate) fn is_edge(&self, list: usize) -> bool {
        list == 0 || list > self.directory.len()
    }

    #[inline(always)]
    pub(crate) fn group(&self, group: usize) -> Group<'_> {
        Group::new(&self.arena[self.directory.offset(group) * GROUP_ALIGN..])
    }

    /// What lies around the cells of a block.
    #[inline(always)]
    pub(crate) fn limits(&self, index: usize, group: &Group<'_>, block: usize) -> Limits {
        Limits { head_bits: group.head_bits(block), end: self.end_of(index, group, block) }
    }

    /// No key of the block has a greater view.
    #[inline(always)]
    pub(crate) fn end_of(&self, index: usize, group: &Group<'_>, block: usize) -> u64 {
        if block + 1 == group.blocks {
            self.directory.end_view(index, group.prefix_bits)
        } else {
            group.head(block + 1)
        }
    }

    /// The numbers among which the keys of a block of gaps or coded cells are.
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

    /// How views become positions in a block of a spline group.
    #[inline(always)]
    pub(crate) fn line(&self, index: usize, group: &Group<'_>, block: usize) -> Line {
        let low = self.directory.separator_view(index, group.prefix_bits);
        Line { model: group.model(), blocks: group.blocks, block, low }
    }

    /// The list of `key`.
    #[inline(always)]
    pub(crate) fn list_of<T: Trace>(&self, key: &[u8], trace: &mut T) -> Found {
        let (among, word) = match self.directory.word(key) {
            Ok(word) => (self.directory.find(key, word, trace), word),
            Err(beyond) => (beyond, 0),
        };
        Found { list: self.list_at(among), word }
    }

    #[inline(always)]
    pub(crate) fn list_at(&self, among: Among) -> usize {
        match among {
            Among::Group(index) => index + 1,
            Among::Below => 0,
            Among::Above => self.directory.len() + 1,
        }
    }

    /// The bucket of `key`.
    #[inline(always)]
    pub(crate) fn locate<'a, T: Trace>(&'a self, key: &'a [u8], trace: &mut T) -> Site<'a> {
        self.locate_in(self.list_of(key, trace), key, trace)
    }

    /// The bucket of `key`, whose list is known.
    #[inline(always)]
    pub(crate) fn locate_in<'a, T: Trace>(
        &'a self,
        Found { list, word }: Found,
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
            // A key of the group that lacks its prefix is above all keys that have it.
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

    /// Asks for the memory of a list's group and where the block of the key that was found there is
    /// likely to be. Gives how far the key lies across the list (`PlaceEstimate`).
    #[inline(always)]
    pub(crate) fn load_about<T: Trace>(&self, Found { list, word }: Found, trace: &mut T) -> usize {
        if self.is_edge(list) {
            return 0;
        }
        let guess = self.directory.estimate_place(list - 1, word);
        ask_for_lines(&self.arena, guess.group_at, HEADER_LINES, trace);
        let before = LINES_BEFORE * LINE_BYTES;
        ask_for_lines(&self.arena, guess.at.wrapping_sub(before), LINES_ABOUT, trace);
        guess.across
    }

    fn locate_at_edge<'a>(&self, list: usize, key: &[u8]) -> Site<'a> {
        let view = if list == 0 {
            (1 << PLACE_BITS) - 1 - edge_place(self.directory.distance_below(key))
        } else {
            edge_place(self.directory.distance_above(key))
        };
        // An edge has no blocks: the place itself says the bucket.
        let bucket = (view >> FRACTION_BITS) as usize;
        Site { list, bucket, view, within: Within::Edge }
    }

    /// The place of a key whose bucket is known.
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

    /// Whether the base may hold a key from that of `low` to that of `high`; no `high`: to the end.
    /// False: it holds none.
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

    /// The keys of a bucket.
    pub(crate) fn key_count(&self, (list, bucket): (usize, usize)) -> usize {
        if self.is_edge(list) {
            return 0;
        }
        let group = self.group(list - 1);
        block_count(group.block(bucket), group.kind)
    }

    /// The last bucket in key order.
    pub(crate) fn last_bucket(&self) -> (usize, usize) {
        let list = self.list_count() - 1;
        (list, self.bucket_count(list) - 1)
    }

    /// The next bucket in key order.
    pub(crate) fn bucket_after(&self, (list, bucket): (usize, usize)) -> Option<(usize, usize)> {
        if bucket + 1 < self.bucket_count(list) {
            return Some((list, bucket + 1));
        }
        (list + 1 < self.list_count()).then_some((list + 1, 0))
    }

    /// The bucket before in key order.
    pub(crate) fn bucket_before(&self, (list, bucket): (usize, usize)) -> Option<(usize, usize)> {
        match (list, bucket) {
            (0, 0) => None,
            (_, 0) => Some((list - 1, self.bucket_count(list - 1) - 1)),
            _ => Some((list, bucket - 1)),
        }
    }
}

/// The place of a key in a block of `count` keys which finds where numbers fall.
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

/// A distance as a floating-point number of [`PLACE_BITS`] bits: near the edge exact, farther away
/// relative.
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
