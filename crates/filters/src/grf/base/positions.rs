//! Looks up a key among positions on a line.
//! ```text
//! group's header --line--> position --> block, fraction          without the block
//!                                  \--> block --> ranks
//! ```
//! Invariant: positions are those of the group's `Line`, ranks those of `SplineBlock`.

use crate::base::filter::Trace;
use crate::bits::simd::prefetch_lines;
use crate::fingerprint::group::{Group, Kind};
use crate::fingerprint::line::Line;
use crate::fingerprint::spline::SplineBlock;
use crate::grf::base::place::FRACTION_BITS;
use crate::grf::base::{Base, FoundList, Spot};

/// The number of cache lines that most blocks of positions span.
const BLOCK_LINES: usize = 2;

/// A key's position on its group's line, and the block it lies in.
#[derive(Clone, Copy)]
pub(crate) struct Positions<'a> {
    list: usize,
    view: u64,
    bytes: &'a [u8],
    line: Line,
    /// None: the key lies beyond the last position.
    fine: Option<u64>,
}

impl Positions<'_> {
    /// The bucket as a tuple, which sorts in key order.
    #[inline(always)]
    pub(crate) fn bucket_key(&self) -> (usize, usize) {
        (self.list, self.line.block)
    }

    /// Prefetches the block.
    #[inline(always)]
    pub(crate) fn load(&self) {
        prefetch_lines(self.bytes, 0, BLOCK_LINES);
    }
}

impl Base {
    /// Returns the position of `key` on its group's line. None: the group has no line, or the key
    /// lacks its prefix.
    #[inline(always)]
    pub(crate) fn positions(
        &self,
        FoundList { list, word }: FoundList,
        key: &[u8],
    ) -> Option<Positions<'_>> {
        if self.is_edge(list) {
            return None;
        }
        let (index, group) = (list - 1, self.group(list - 1));
        let shares = self.directory.shares_prefix(index, (key, word), group.prefix_bits);
        (group.kind == Kind::Spline && shares).then(|| {
            let view = self.directory.view((key, word), group.prefix_bits);
            self.positions_in(index, &group, view)
        })
    }

    /// Returns the position of a key with this view. Requires: the group has a line.
    #[inline(always)]
    pub(crate) fn positions_in<'a>(
        &self,
        index: usize,
        group: &Group<'a>,
        view: u64,
    ) -> Positions<'a> {
        let mut line = self.line(index, group, 0);
        let fine = line.fine_position(view);
        line.block = fine.map_or(group.blocks - 1, |fine| line.block_of(fine));
        Positions { list: index + 1, view, bytes: group.block(line.block), line, fine }
    }

    /// Returns the place of a key, given its position.
    #[inline(always)]
    pub(crate) fn place_on_line<T: Trace>(&self, at: &Positions<'_>, trace: &mut T) -> Spot {
        let block = SplineBlock::new(at.bytes, at.line.model.layout);
        let count = block.count();
        let (fraction, ranks) = match at.fine {
            Some(fine) => {
                let ranks = block.find(at.line.position(fine), trace);
                (at.line.fraction(fine, FRACTION_BITS), ranks)
            }
            None => (self.fraction_of_tail(at), (count, count)),
        };
        Spot::new(at.bucket_key(), fraction, ranks, count)
    }

    /// Returns the fraction of a key beyond the last position.
    #[cold]
    fn fraction_of_tail(&self, at: &Positions<'_>) -> u64 {
        let index = at.list - 1;
        let end = self.directory.end_view(index, self.group(index).prefix_bits);
        at.line.tail_fraction(at.view, end, FRACTION_BITS)
    }
}
