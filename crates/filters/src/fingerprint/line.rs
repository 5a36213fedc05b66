//! The line of a group: how the numbers of its keys become positions in its blocks.
//! ```text
//! group      low |----------------- the line -----------------| ... tail ... | end
//! blocks         |   0   |   1   |   2   | ...  |   last      .............  |
//! ```
//! The line ends at the group's last key; the tail reaches to the next group, and may be far
//! longer. Invariant: positions are monotone in keys.

use super::spline::{FINE_BITS, Model};

/// How views become positions in one block of a group.
#[derive(Clone, Copy)]
pub(crate) struct Line {
    pub(crate) model: Model,
    pub(crate) blocks: usize,
    pub(crate) block: usize,
    /// No key of the group has a smaller view.
    pub(crate) low: u64,
}

impl Line {
    /// None: in the tail.
    #[inline(always)]
    pub(crate) fn fine_position(&self, view: u64) -> Option<u64> {
        self.model.fine_position(view.saturating_sub(self.low), self.blocks)
    }

    /// The block of a position.
    #[inline(always)]
    pub(crate) fn block_of(&self, fine: u64) -> usize {
        // Both are small: a division of 32 bits.
        ((fine >> FINE_BITS) as u32 / self.model.block_positions() as u32) as usize
    }

    /// The position as the block keeps it, counted from the block's first one.
    #[inline(always)]
    pub(crate) fn position(&self, fine: u64) -> u64 {
        (fine >> FINE_BITS) - self.block as u64 * self.model.block_positions()
    }

    /// The first position of the block, with the bits that blocks do not keep.
    #[inline(always)]
    pub(crate) fn fine_start(&self) -> u64 {
        (self.block as u64 * self.model.block_positions()) << FINE_BITS
    }

    /// The views from one fine position to another, which is not included.
    pub(crate) fn views_between(&self, from: u64, to: u64) -> (u64, u64) {
        let first = self.low.saturating_add(self.model.first_number(from));
        let after = self.low.saturating_add(self.model.first_number(to));
        (first, if after == u64::MAX { after } else { after.saturating_sub(1).max(first) })
    }

    /// The least and the greatest view of keys at a position of the block.
    pub(crate) fn position_views(&self, position: u64) -> (u64, u64) {
        let from = self.fine_start() + (position << FINE_BITS);
        self.views_between(from, from + (1 << FINE_BITS))
    }
}
