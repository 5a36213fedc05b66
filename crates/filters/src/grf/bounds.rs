//! From places back to keys: what a cursor asks the base.
//! ```text
//! bucket            -> per key, the least and the greatest view it can have
//! bucket, fraction  -> the least and the greatest view of keys with that place
//! ```
//! Invariant: bounds are never too narrow; they may be too wide.

use super::base::{Base, block_count};
use super::extent::Extent;
use super::fraction::Bounds;
use crate::fingerprint::cell::Block;
use crate::fingerprint::gap::GapBlock;
use crate::fingerprint::gap::{first_view, last_view};
use crate::fingerprint::group::{Group, Kind};
use crate::fingerprint::line::Line;
use crate::fingerprint::spline::SplineBlock;

impl Base {
    /// The view of `key` in a bucket. None: it may lie in another one, and must be looked for.
    pub(crate) fn view_within(&self, (list, bucket): (usize, usize), key: &[u8]) -> Option<u64> {
        if self.is_edge(list) {
            return None;
        }
        let (index, group) = (list - 1, self.group(list - 1));
        let (directory, bits) = (&self.directory, group.prefix_bits);
        let word = directory.word(key).ok()?;
        if !directory.shares_prefix(index, (key, word), bits) {
            return None;
        }
        let view = directory.view((key, word), bits);
        let (start, end) = match group.kind {
            _ if bucket == 0 => return None,
            Kind::Spline => {
                let end = self.directory.end_view(index, group.prefix_bits);
                self.line(index, &group, bucket).views(end)
            }
            Kind::Cell | Kind::Gap | Kind::Hash => {
                (group.head(bucket), self.end_of(index, &group, bucket))
            }
        };
        (start <= view && view < end).then_some(view)
    }

    /// Adds, per key of a bucket, in order, the least and the greatest view that it can have.
    pub(crate) fn cell_bounds(&self, (list, bucket): (usize, usize), cells: &mut Vec<(u64, u64)>) {
        if self.is_edge(list) {
            return;
        }
        let (index, group) = (list - 1, self.group(list - 1));
        let bytes = group.block(bucket);
        match group.kind {
            Kind::Cell => Block::new(bytes).for_each_bounds(|low, high| cells.push((low, high))),
            Kind::Gap => {
                let start = self.extent(index, &group, bucket).start;
                let add = |low, high| cells.push((first_view(low), last_view(high)));
                GapBlock::new(bytes).for_each_bounds(start, add);
            }
            Kind::Hash => {
                let views = self.block_views(index, &group, bucket);
                cells.extend(std::iter::repeat_n(views, block_count(bytes, group.kind)));
            }
            Kind::Spline => {
                let line = self.line(index, &group, bucket);
                SplineBlock::new(bytes, line.model.layout)
                    .for_each_position(|position| cells.push(line.position_views(position)));
            }
        }
    }

    /// The least and the greatest view of keys in a block, those above all that share the prefix included.
    fn block_views(&self, index: usize, group: &Group<'_>, block: usize) -> (u64, u64) {
        let last = block + 1 == group.blocks;
        let first = if block == 0 { 0 } else { group.head(block) };
        (first, if last { u64::MAX } else { self.end_of(index, group, block) })
    }

    /// What tells the views of the keys that have a fraction of a bucket; None at the edges: a place is a view.
    pub(super) fn fraction_bounds<'a>(
        &self,
        (list, bucket): (usize, usize),
        cells: &'a [(u64, u64)],
    ) -> Option<FractionBounds<'a>> {
        if self.is_edge(list) {
            return None;
        }
        let (index, group) = (list - 1, self.group(list - 1));
        Some(match group.kind {
            Kind::Cell => {
                let limits = self.limits(index, &group, bucket);
                FractionBounds::Cells(Bounds { cells, limits })
            }
            Kind::Hash => FractionBounds::Whole(self.block_views(index, &group, bucket)),
            Kind::Gap => FractionBounds::Gaps(self.extent(index, &group, bucket), cells),
            Kind::Spline => {
                let end = self.directory.end_view(index, group.prefix_bits);
                FractionBounds::Line(self.line(index, &group, bucket), end)
            }
        })
    }
}

/// Tells the views of the keys that have a fraction of a bucket.
pub(super) enum FractionBounds<'a> {
    Cells(Bounds<'a>),
    Gaps(Extent, &'a [(u64, u64)]),
    Line(Line, u64),
    /// Nothing does.
    Whole((u64, u64)),
}

impl FractionBounds<'_> {
    /// The least and the greatest view of keys with this fraction of `bits` bits; the true ones may lie between them.
    pub(super) fn of(&self, fraction: u64, bits: usize) -> (u64, u64) {
        match self {
            FractionBounds::Cells(bounds) => bounds.of(fraction, bits),
            FractionBounds::Gaps(extent, cells) => extent.views(fraction, cells, bits),
            FractionBounds::Whole(views) => *views,
            FractionBounds::Line(line, end) => line.fraction_views(fraction, *end, bits),
        }
    }
}
