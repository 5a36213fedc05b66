//! The base of a part: the keys of its last level, as static cells.
//! ```text
//! directory   -> group
//! group (8-byte aligned):  u32: prefix bits (20), blocks - 1 (4), bytes of a head - 1 (3), wide (1), 0 (4)
//!                          heads of blocks 1..: the first bits of their first keys after the prefix
//!                          offsets of blocks 1.. from block 0: two bytes; if wide: three
//!                          block 0, block 1, ...
//! place of a key = (list, bucket, fraction)     list 0: below the first key; list g + 1: group g; last: above
//!                                               bucket: block of the group; fraction: where in the block (fraction.rs)
//! ```
//! Invariant: the place is monotone in the key. Whatever is asked with places of the two ends of a range finds
//! every key between them.

use super::directory::{Among, Directory};
use super::fraction::{Bounds, Limits, fraction};
use crate::bits::packed::word;
use crate::filter::Trace;
use crate::fingerprint::cell::{Block, Tail};
use crate::shape::FlushNumber;

/// Blocks that a group can have.
pub(super) const BLOCKS_MAX: usize = 16;
/// Bytes of a group's header before the heads.
pub(super) const HEADER_BYTES: usize = 4;
/// The header's flag: offsets have [`WIDE_BYTES`] bytes.
pub(super) const WIDE: u32 = 1 << 27;
/// Bytes of an offset.
pub(super) const NARROW_BYTES: usize = 2;
/// Bytes of an offset in a group of long blocks.
pub(super) const WIDE_BYTES: usize = 3;
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

/// The bucket of a key, and what is needed to find its place there.
pub(crate) struct Site<'a> {
    pub(crate) list: usize,
    pub(crate) bucket: usize,
    /// The key's coordinate within its list: its first 64 bits after the group's prefix, or its fraction at the edges.
    pub(crate) view: u64,
    within: Within,
    block_at: usize,
    limits: Limits,
    tail: Tail<'a>,
}

/// How a key relates to the cells of its bucket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// There are none: it lies below the first key or above the last one.
    Edge,
    /// It has the prefix that they share.
    Block,
    /// It is above all that have it.
    AfterPrefix,
}

impl Site<'_> {
    /// The order of buckets.
    pub(crate) fn bucket_key(&self) -> (usize, usize) {
        (self.list, self.bucket)
    }
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
}

impl Spot {
    fn bucket_key(&self) -> (usize, usize) {
        (self.list, self.bucket)
    }

    /// Whether the base may hold the key. False: it does not.
    #[inline]
    pub(crate) fn may_be_base(&self) -> bool {
        self.before < self.through
    }
}

/// A group's header and what follows it.
#[derive(Clone, Copy)]
struct Group<'a> {
    bytes: &'a [u8],
    prefix_bits: usize,
    blocks: usize,
    head_bytes: usize,
    offset_bytes: usize,
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
            offset_bytes: if header & WIDE == 0 { NARROW_BYTES } else { WIDE_BYTES },
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

    /// Where a block begins.
    #[inline]
    fn block_at(&self, block: usize) -> usize {
        if block == 0 {
            return self.header_bytes();
        }
        let at =
            HEADER_BYTES + (self.blocks - 1) * self.head_bytes + (block - 1) * self.offset_bytes;
        self.header_bytes() + (word(self.bytes, at) >> (64 - 8 * self.offset_bytes)) as usize
    }

    /// The bits that tell a block's first key from the keys of the block before.
    #[inline]
    fn head_bits(&self, block: usize) -> usize {
        if block == 0 { 0 } else { 8 * self.head_bytes }
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
    fn limits(&self, group_index: usize, group: &Group<'_>, block: usize) -> Limits {
        let end = if block + 1 == group.blocks {
            self.directory.end_view(group_index, group.prefix_bits)
        } else {
            group.head(block + 1)
        };
        Limits { head_bits: group.head_bits(block), end }
    }

    /// The bucket of `key`.
    #[inline]
    pub(crate) fn locate<'a, T: Trace>(&self, key: &'a [u8], trace: &mut T) -> Site<'a> {
        let index = match self.directory.find(key, trace) {
            Among::Group(index) => index,
            Among::Below => {
                let distance = edge_fraction(self.directory.distance_below(key));
                return edge_site(key, 0, (1 << EDGE_BITS) - 1 - distance);
            }
            Among::Above => {
                let distance = edge_fraction(self.directory.distance_above(key));
                return edge_site(key, self.directory.len() + 1, distance);
            }
        };
        let group = self.group(index);
        trace.touch(group.bytes.as_ptr() as usize, group.header_bytes());
        let inside = self.directory.shares_prefix(index, key, group.prefix_bits);
        let within = if inside { Within::Block } else { Within::AfterPrefix };
        let tail = Tail::new(key, group.prefix_bits);
        // A key of the group that has not its prefix is above all keys that have it.
        let view = if inside { tail.view() } else { u64::MAX };
        let bucket = group.block_of(view);
        let limits = self.limits(index, &group, bucket);
        let block_at = self.directory.offset(index) * GROUP_ALIGN + group.block_at(bucket);
        Site { list: index + 1, bucket, view, within, block_at, limits, tail }
    }

    /// The place of a key whose bucket is known.
    #[inline]
    pub(crate) fn place<T: Trace>(&self, site: &Site<'_>, trace: &mut T) -> Spot {
        let (list, bucket) = site.bucket_key();
        let fixed = |fraction, cells| Spot {
            list,
            bucket,
            fraction,
            before: cells,
            through: cells,
            count: cells,
        };
        let block = match site.within {
            Within::Edge => return fixed(site.view, 0),
            Within::Block => self.block(site.block_at),
            Within::AfterPrefix => {
                let count = self.block(site.block_at).count();
                return fixed((1 << self.fraction_bits) - 1, count);
            }
        };
        let (found, count) = (block.find(&site.tail, trace), block.count());
        let fraction = fraction(&found, &site.tail, count, &site.limits, self.fraction_bits);
        let through = found.before + usize::from(found.is_in());
        Spot { list, bucket, fraction, before: found.before, through, count }
    }

    #[inline]
    fn block(&self, at: usize) -> Block<'_> {
        Block::new(&self.arena[at..])
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
        // Every block between the two has a cell.
        let between = self.bucket_after(low.bucket_key());
        between.is_some_and(|bucket| {
            !self.is_edge(bucket.0) && high.is_none_or(|high| bucket < high.bucket_key())
        })
    }

    /// The view of `key` in a bucket. None: it may lie in another one, and must be looked for.
    pub(crate) fn view_within(&self, (list, bucket): (usize, usize), key: &[u8]) -> Option<u64> {
        if self.is_edge(list) {
            return None;
        }
        let group = self.group(list - 1);
        if !self.directory.shares_prefix(list - 1, key, group.prefix_bits) {
            return None;
        }
        let view = Tail::new(key, group.prefix_bits).view();
        let begun = bucket > 0 && group.head(bucket) <= view;
        (begun && view < self.limits(list - 1, &group, bucket).end).then_some(view)
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

    /// Adds, per cell of a bucket, in order, the least and the greatest view of its keys.
    pub(crate) fn cell_bounds(&self, (list, bucket): (usize, usize), cells: &mut Vec<(u64, u64)>) {
        if !self.is_edge(list) {
            let at = self.directory.offset(list - 1) * GROUP_ALIGN
                + self.group(list - 1).block_at(bucket);
            self.block(at).for_each_bounds(|low, high| cells.push((low, high)));
        }
    }

    /// What tells the views of the keys that have a fraction of a bucket; None at the edges: a fraction is a view.
    pub(super) fn fraction_bounds<'a>(
        &self,
        (list, bucket): (usize, usize),
        cells: &'a [(u64, u64)],
    ) -> Option<Bounds<'a>> {
        if self.is_edge(list) {
            return None;
        }
        let limits = self.limits(list - 1, &self.group(list - 1), bucket);
        Some(Bounds { cells, limits, bits: self.fraction_bits })
    }
}

fn edge_site(key: &[u8], list: usize, fraction: u64) -> Site<'_> {
    let (limits, tail) = (Limits { head_bits: 0, end: 0 }, Tail::new(key, 0));
    Site { list, bucket: 0, view: fraction, within: Within::Edge, block_at: 0, limits, tail }
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
}
