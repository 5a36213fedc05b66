//! The base of a part: the keys of its last level, as static cells.
//! ```text
//! directory   -> group
//! group (8-byte aligned):  u32: prefix bits (20), blocks - 1 (4), bytes of a head - 1 (3), wide (1), slack of block 0 (4)
//!                          heads of blocks 1..: the first bits of their first keys after the prefix
//!                          of blocks 1..: slack (4), offset from block 0 (12; if wide: 20)
//!                          block 0, block 1, ...
//! slack of a block         how many bits its keys' views need less than the space up to the next block's head:
//!                          fractions are not spent on the empty space between clusters
//! place of a key = (list, bucket, fraction)     list 0: below the first key; list g + 1: group g; last: above
//!                                               bucket: block of the group; fraction: where in the block
//! ```
//! Invariant: the place is monotone in the key. Whatever is asked with places of the two ends of a range finds
//! every key between them.

use super::directory::{Among, Directory};
use crate::bits::packed::word;
use crate::filter::Trace;
use crate::fingerprint::cell::{Block, Tail};
use crate::shape::FlushNumber;

/// Blocks that a group can have.
pub(super) const BLOCKS_MAX: usize = 16;
/// Bytes of a group's header before the heads.
pub(super) const HEADER_BYTES: usize = 4;
/// The header's flag: offsets have [`WIDE_BITS`] bits.
pub(super) const WIDE: u32 = 1 << 27;
/// Bits of an offset.
pub(super) const NARROW_BITS: usize = 12;
/// Bits of an offset in a group of long blocks.
pub(super) const WIDE_BITS: usize = 20;
/// The greatest slack that is told.
pub(super) const SLACK_MAX: u32 = 15;
/// Where block 0's slack is in the header.
pub(super) const SLACK_SHIFT: u32 = 28;
/// Groups start at multiples of this.
pub(super) const GROUP_ALIGN: usize = 8;
/// Fraction bits of entries below the first key and above the last one.
pub(super) const EDGE_BITS: usize = 32;

/// The keys of the last level.
#[derive(Default)]
pub(crate) struct Base {
    pub(super) arena: Box<[u8]>,
    pub(super) directory: Directory,
    pub(super) end: FlushNumber,
    pub(super) entries: u64,
    pub(super) fraction_bits: usize,
}

/// Where a key falls, and what is known about it there.
pub(crate) struct Spot<'a> {
    pub(crate) list: usize,
    pub(crate) bucket: usize,
    pub(crate) fraction: u64,
    /// The key's coordinate within its list: its first 64 bits after the group's prefix, or its fraction at the edges.
    pub(crate) view: u64,
    inside: bool,
    block_at: usize,
    tail: Tail<'a>,
}

impl Spot<'_> {
    /// The order of buckets.
    pub(crate) fn bucket_key(&self) -> (usize, usize) {
        (self.list, self.bucket)
    }
}

/// What turns a key's view into a fraction of its bucket.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) head: u64,
    pub(crate) shift: u32,
}

impl Frame {
    #[inline]
    fn new(head: u64, end: u64, slack: u32, fraction_bits: usize) -> Frame {
        let width_bits = space_bits(head, end).saturating_sub(slack);
        Frame { head, shift: width_bits.saturating_sub(fraction_bits as u32) }
    }

    #[inline]
    fn fraction(self, view: u64, fraction_bits: usize) -> u64 {
        (view.saturating_sub(self.head) >> self.shift).min((1 << fraction_bits) - 1)
    }
}

/// Bits that tell the views from `head` to `end` apart.
#[inline]
pub(super) fn space_bits(head: u64, end: u64) -> u32 {
    64 - end.saturating_sub(head).leading_zeros()
}

/// A group's header and what follows it.
#[derive(Clone, Copy)]
struct Group<'a> {
    bytes: &'a [u8],
    prefix_bits: usize,
    blocks: usize,
    head_bytes: usize,
    offset_bytes: usize,
    first_slack: u32,
}

impl<'a> Group<'a> {
    #[inline]
    fn new(bytes: &'a [u8]) -> Self {
        let header = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        Group {
            bytes,
            prefix_bits: header as usize & 0xf_ffff,
            blocks: (header >> 20 & 15) as usize + 1,
            head_bytes: (header >> 24 & 7) as usize + 1,
            offset_bytes: if header & WIDE == 0 { 2 } else { 3 },
            first_slack: header >> SLACK_SHIFT,
        }
    }

    /// Bytes of the header, heads and offsets.
    #[inline]
    fn header_bytes(&self) -> usize {
        HEADER_BYTES + (self.blocks - 1) * (self.head_bytes + self.offset_bytes)
    }

    /// The view at which a block begins. Requires: not the first one, which begins at the separator.
    #[inline]
    fn head(&self, block: usize) -> u64 {
        let shift = 64 - 8 * self.head_bytes;
        word(self.bytes, HEADER_BYTES + (block - 1) * self.head_bytes) >> shift << shift
    }

    /// The last block that begins at or before `view`.
    #[inline]
    fn block_of(&self, view: u64) -> usize {
        // Without turns: fifteen loads in a row are faster than four that wait for each other.
        (1..self.blocks).map(|block| usize::from(self.head(block) <= view)).sum()
    }

    /// Where a block begins, and its slack.
    #[inline]
    fn block_at(&self, block: usize) -> (usize, u32) {
        if block == 0 {
            return (self.header_bytes(), self.first_slack);
        }
        let at =
            HEADER_BYTES + (self.blocks - 1) * self.head_bytes + (block - 1) * self.offset_bytes;
        let number = word(self.bytes, at) >> (64 - 8 * self.offset_bytes);
        let offset_bits = 8 * self.offset_bytes - 4;
        let offset = number & ((1 << offset_bits) - 1);
        (self.header_bytes() + offset as usize, (number >> offset_bits) as u32)
    }
}

impl Base {
    /// The lists of the overlay: below, one for each group, above.
    pub(crate) fn list_count(&self) -> usize {
        self.directory.len() + 2
    }

    /// The buckets of a list.
    pub(crate) fn bucket_count(&self, list: usize) -> usize {
        if self.is_edge(list) { 1 } else { self.group(list - 1).blocks }
    }

    /// Whether the list has keys below the first one or above the last one.
    pub(crate) fn is_edge(&self, list: usize) -> bool {
        list == 0 || list > self.directory.len()
    }

    #[inline]
    fn group(&self, group: usize) -> Group<'_> {
        Group::new(&self.arena[self.directory.offset(group) * GROUP_ALIGN..])
    }

    #[inline]
    fn frame_of(&self, group_index: usize, group: &Group<'_>, block: usize, slack: u32) -> Frame {
        let prefix_bits = group.prefix_bits;
        let head = if block == 0 {
            self.directory.separator_view(group_index, prefix_bits)
        } else {
            group.head(block)
        };
        let end = if block + 1 == group.blocks {
            self.directory.end_view(group_index, prefix_bits)
        } else {
            group.head(block + 1)
        };
        Frame::new(head, end, slack, self.fraction_bits)
    }

    /// Where `key` falls.
    #[inline]
    pub(crate) fn locate<'a, T: Trace>(&self, key: &'a [u8], trace: &mut T) -> Spot<'a> {
        let index = match self.directory.find(key, trace) {
            Among::Group(index) => index,
            Among::Below => {
                let distance = edge_fraction(self.directory.distance_below(key));
                return edge_spot(key, 0, (1 << EDGE_BITS) - 1 - distance);
            }
            Among::Above => {
                let distance = edge_fraction(self.directory.distance_above(key));
                return edge_spot(key, self.directory.len() + 1, distance);
            }
        };
        let group = self.group(index);
        trace.touch(group.bytes.as_ptr() as usize, group.header_bytes());
        let inside = self.directory.shares_prefix(index, key, group.prefix_bits);
        let tail = Tail::new(key, group.prefix_bits);
        // A key of the group that has not its prefix is above all keys that have it.
        let view = if inside { tail.view() } else { u64::MAX };
        let block = group.block_of(view);
        let (block_at, slack) = group.block_at(block);
        let frame = self.frame_of(index, &group, block, slack);
        let fraction = frame.fraction(view, self.fraction_bits);
        let block_at = self.directory.offset(index) * GROUP_ALIGN + block_at;
        Spot { list: index + 1, bucket: block, fraction, view, inside, block_at, tail }
    }

    #[inline]
    fn block(&self, at: usize) -> Block<'_> {
        Block::new(&self.arena[at..])
    }

    /// Whether the base may hold the key of `spot`. False: it does not.
    #[inline]
    pub(crate) fn may_contain<T: Trace>(&self, spot: &Spot<'_>, trace: &mut T) -> bool {
        spot.inside && self.block(spot.block_at).may_contain(&spot.tail, trace)
    }

    /// Whether the base may hold a key from that of `low` to that of `high`; no `high`: to the end.
    /// False: it holds none.
    pub(crate) fn may_overlap<T: Trace>(
        &self,
        low: &Spot<'_>,
        high: Option<&Spot<'_>>,
        trace: &mut T,
    ) -> bool {
        let above = self.directory.len() + 1;
        let high = high.filter(|high| high.list < above);
        if low.list == above || high.is_some_and(|high| high.list == 0) {
            return false;
        }
        if let Some(high) = high
            && high.bucket_key() == low.bucket_key()
        {
            return match (low.inside, high.inside) {
                (false, _) => false,
                (true, false) => self.block(low.block_at).may_reach(&low.tail, trace),
                (true, true) => self.block(low.block_at).may_overlap(&low.tail, &high.tail, trace),
            };
        }
        let from = self.bucket_after(low.bucket_key());
        match high {
            Some(high) if from == Some(high.bucket_key()) => {
                let starts = !high.inside || self.block(high.block_at).may_start(&high.tail, trace);
                starts || self.may_reach(low, trace)
            }
            _ => from.is_some_and(|(list, _)| list < above) || self.may_reach(low, trace),
        }
    }

    /// Whether the block of `low` may hold a key from that of `low` on.
    fn may_reach<T: Trace>(&self, low: &Spot<'_>, trace: &mut T) -> bool {
        low.inside && self.block(low.block_at).may_reach(&low.tail, trace)
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

    /// Per cell of a bucket, in order, the least and the greatest view of its keys.
    pub(crate) fn for_each_bounds(
        &self,
        (list, bucket): (usize, usize),
        visit: impl FnMut(u64, u64),
    ) {
        if !self.is_edge(list) {
            let at = self.directory.offset(list - 1) * GROUP_ALIGN
                + self.group(list - 1).block_at(bucket).0;
            self.block(at).for_each_bounds(visit);
        }
    }

    /// The least and the greatest view of keys with this fraction of a bucket.
    pub(crate) fn fraction_bounds(
        &self,
        (list, bucket): (usize, usize),
        fraction: u64,
    ) -> (u64, u64) {
        if self.is_edge(list) {
            return (fraction, fraction);
        }
        let group = self.group(list - 1);
        let (_, slack) = group.block_at(bucket);
        let Frame { head, shift } = self.frame_of(list - 1, &group, bucket, slack);
        let last = fraction == (1 << self.fraction_bits) - 1;
        let low = head.saturating_add(fraction << shift);
        let high = if last { u64::MAX } else { low.saturating_add((1 << shift) - 1) };
        (if fraction == 0 { 0 } else { low }, high)
    }
}

fn edge_spot(key: &[u8], list: usize, fraction: u64) -> Spot<'_> {
    let tail = Tail::new(key, 0);
    Spot { list, bucket: 0, fraction, view: fraction, inside: false, block_at: 0, tail }
}

/// A distance as a floating-point number of [`EDGE_BITS`] bits: near the edge exact, farther away relative.
fn edge_fraction(distance: u64) -> u64 {
    const MANTISSA: u32 = EDGE_BITS as u32 - 6;
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
    fn edge_fractions_are_monotone() {
        let around =
            |bit: u32| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1, (1 << bit) | 1 << bit >> 1];
        let mut distances: Vec<u64> = (0..64).flat_map(around).chain([u64::MAX]).collect();
        distances.sort_unstable();
        let fractions: Vec<u64> =
            distances.iter().map(|&distance| edge_fraction(distance)).collect();
        assert!(fractions.is_sorted());
        assert!(fractions.iter().all(|&fraction| fraction < 1 << EDGE_BITS));
    }

    #[test]
    fn frames_are_monotone_and_use_their_bits() {
        for (head, end) in
            [(0, 0), (5, 5), (0, u64::MAX), (1 << 63, u64::MAX), (100, 100 + (1 << 20))]
        {
            let frame = Frame::new(head, end, 0, 12);
            assert_eq!(frame.fraction(head, 12), 0);
            assert_eq!(frame.fraction(0, 12), 0);
            let last = frame.fraction(end, 12);
            assert!(end - head < 1 << 11 || last >= 1 << 11, "{head} {end}: {last}");
            assert_eq!((end - head) >> frame.shift, last);
            let tight = Frame::new(head, end, 9, 12);
            let views = (0..=40).map(|step| head + (end - head) / 40 * step);
            let fractions: Vec<u64> = views.map(|view| tight.fraction(view, 12)).collect();
            assert!(fractions.is_sorted() && fractions.iter().all(|&fraction| fraction < 1 << 12));
        }
    }
}
