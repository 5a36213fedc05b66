//! Maps places back to bounds on keys, for cursors.
//! ```text
//! bucket            -> per key, its smallest and largest possible view
//! bucket, fraction  -> the smallest and largest view of keys with that place
//! ```
//! Invariant: bounds are never too narrow; they may be too wide.

use alloc::vec::Vec;

use crate::fingerprint::cell::Block;
use crate::fingerprint::gap::GapBlock;
use crate::fingerprint::gap::{first_view, last_view};
use crate::fingerprint::group::{Group, Kind};
use crate::fingerprint::line::Line;
use crate::fingerprint::spline::SplineBlock;
use crate::grf::base::extent::Extent;
use crate::grf::base::fraction::{Bounds, Limits};
use crate::grf::base::place::{FRACTION_BITS, place};
use crate::grf::base::{Base, block_count};

impl Base {
    /// Returns the view of `key` in a bucket. None: it may lie in another bucket.
    pub(crate) fn view_within(&self, (list, bucket): (usize, usize), key: &[u8]) -> Option<u64> {
        if self.is_edge(list) {
            return None;
        }
        let (index, group) = (list - 1, self.group(list - 1));
        let (directory, bits) = (&self.directory, group.prefix_bits);
        let word = directory.word(key).ok()?;
        if bucket == 0 || !directory.shares_prefix(index, (key, word), bits) {
            return None;
        }
        let view = directory.view((key, word), bits);
        let (start, end) = self.ends(index, &group, bucket);
        (start <= view && view < end).then_some(view)
    }

    /// Returns the first view of a block, and a view from which on keys may lie elsewhere.
    /// Requires: not the group's first block.
    fn ends(&self, index: usize, group: &Group<'_>, block: usize) -> (u64, u64) {
        match group.kind {
            Kind::Spline => {
                let end = self.directory.end_view(index, group.prefix_bits);
                self.line(index, group, block).views(end)
            }
            Kind::Cell | Kind::Gap | Kind::Coded | Kind::Hash => {
                (group.head(block), self.end_of(index, group, block))
            }
        }
    }

    /// Returns a word such that keys with smaller words have smaller views in the list, or lie in
    /// earlier lists. None: unknown.
    pub(crate) fn word_at_view(&self, list: usize, view: u64) -> Option<u64> {
        if self.is_edge(list) {
            return None;
        }
        let index = list - 1;
        let prefix_bits = self.directory.shared_bits(self.group(index).prefix_bits);
        let separator = self.directory.separators[index];
        Some(match prefix_bits {
            0 => view,
            1..64 => separator >> (64 - prefix_bits) << (64 - prefix_bits) | view >> prefix_bits,
            _ => separator,
        })
    }

    /// Returns the word at which a bucket begins; for the bucket after the last one, the next list.
    /// Keys with smaller words lie before it, keys with larger words in it or after it. None:
    /// unknown.
    pub(crate) fn word_at_bucket(&self, (list, bucket): (usize, usize)) -> Option<u64> {
        if self.is_edge(list) {
            return None;
        }
        let (index, group) = (list - 1, self.group(list - 1));
        match bucket {
            0 => self.directory.separators.get(index).copied(),
            _ if bucket == group.blocks => self.directory.separators.get(list).copied(),
            _ => self.word_at_view(list, self.ends(index, &group, bucket).0),
        }
    }

    /// Returns the smallest and the largest view of keys in a block, including keys above all that
    /// share the prefix.
    fn block_views(&self, index: usize, group: &Group<'_>, block: usize) -> (u64, u64) {
        let last = block + 1 == group.blocks;
        let first = if block == 0 { 0 } else { group.head(block) };
        (first, if last { u64::MAX } else { self.end_of(index, group, block) })
    }
}

/// Bounds on the views of a bucket's keys, and of keys with a given fraction.
#[derive(Default)]
pub(crate) struct BucketViews {
    scale: Scale,
    /// The smallest and the largest view of each base key, except for keys on a line.
    cells: Vec<(u64, u64)>,
}

/// How fractions map to views.
#[derive(Default)]
enum Scale {
    /// At an edge, where the place is the view. Has the bucket.
    Edge(usize),
    Cells(Limits),
    Gaps(Extent),
    /// On a line, with the group's end.
    Line(Line, u64),
    /// Unknown: all views of the block.
    Whole((u64, u64)),
    /// No bucket was read yet.
    #[default]
    None,
}

impl BucketViews {
    /// Moves to another bucket, reusing the memory.
    pub(crate) fn read(&mut self, base: &Base, (list, bucket): (usize, usize)) {
        self.cells.clear();
        if base.is_edge(list) {
            self.scale = Scale::Edge(bucket);
            return;
        }
        let (index, group) = (list - 1, base.group(list - 1));
        let (bytes, cells) = (group.block(bucket), &mut self.cells);
        self.scale = match group.kind {
            Kind::Cell => {
                Block::new(bytes).for_each_bounds(|low, high| cells.push((low, high)));
                Scale::Cells(base.limits(index, &group, bucket))
            }
            Kind::Gap => {
                let extent = base.extent(index, &group, bucket);
                let add = |low, high| cells.push((first_view(low), last_view(high)));
                GapBlock::new(bytes).for_each_bounds(extent.start, add);
                Scale::Gaps(extent)
            }
            Kind::Coded => {
                let extent = base.extent(index, &group, bucket);
                let add = |low, high| cells.push((first_view(low), last_view(high)));
                let block = group.coded_at(bucket, &base.arena).read(base.point_bits);
                block.for_each_bounds(extent.start, add);
                Scale::Gaps(extent)
            }
            Kind::Hash => {
                let views = base.block_views(index, &group, bucket);
                cells.extend(core::iter::repeat_n(views, block_count(bytes, group.kind)));
                Scale::Whole(views)
            }
            Kind::Spline => {
                let line = base.line(index, &group, bucket);
                Scale::Line(line, base.directory.end_view(index, group.prefix_bits))
            }
        };
    }

    /// Returns the smallest and the largest possible view of a base key. Requires: the last `read`
    /// was for this base and bucket, which has the key.
    pub(crate) fn of_key(
        &self,
        base: &Base,
        (list, bucket): (usize, usize),
        rank: usize,
    ) -> (u64, u64) {
        match &self.scale {
            Scale::Line(line, _) => {
                let group = base.group(list - 1);
                let block = SplineBlock::new(group.block(bucket), line.model.layout);
                line.position_views(block.position_of(rank))
            }
            // A damaged block may yield fewer keys than its count says.
            _ => self.cells.get(rank).copied().unwrap_or((0, u64::MAX)),
        }
    }

    /// Returns bounds on the views of keys with this fraction of `bits` bits; they may be too wide.
    pub(crate) fn of_fraction(&self, fraction: u64, bits: usize) -> (u64, u64) {
        let cells = &self.cells[..];
        match &self.scale {
            Scale::Cells(limits) => Bounds { cells, limits: *limits }.of(fraction, bits),
            Scale::Gaps(extent) => extent.views(fraction, cells, bits),
            Scale::Line(line, end) => line.fraction_views(fraction, *end, bits),
            Scale::Whole(views) => *views,
            Scale::Edge(bucket) => {
                let low = u64::from(place(*bucket, fraction << (FRACTION_BITS - bits)));
                (low, low | ((1 << (FRACTION_BITS - bits)) - 1))
            }
            Scale::None => (0, u64::MAX),
        }
    }
}
