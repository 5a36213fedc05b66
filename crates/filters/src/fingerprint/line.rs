//! The line of a group, which maps its keys' numbers to positions in its blocks.
//! ```text
//! group      low |----------------- the line -----------------| ... tail ... | end
//! blocks         |   0   |   1   |   2   | ...  |   last      .............  |
//! ```
//! The line ends at the group's last key. The tail reaches to the next group and may be much
//! longer. Invariant: positions are monotone in keys.

use super::spline::{FINE_BITS, Model};

/// Maps views to positions in one block of a group.
#[derive(Clone, Copy)]
pub struct Line {
    /// Maps views to positions of the group.
    pub model: Model,
    /// The number of blocks in the group.
    pub blocks: usize,
    /// The index of the block.
    pub block: usize,
    /// A lower bound of the views of the group's keys.
    pub low: u64,
}

impl Line {
    /// Returns the fine position of a view. None: the view lies in the tail.
    #[inline(always)]
    pub fn fine_position(&self, view: u64) -> Option<u64> {
        self.model.fine_position(view.saturating_sub(self.low), self.blocks)
    }

    /// Returns the block of a fine position.
    #[inline(always)]
    pub fn block_of(&self, fine: u64) -> usize {
        // Both fit into 32 bits, whose division is faster.
        ((fine >> FINE_BITS) as u32 / self.model.block_positions() as u32) as usize
    }

    /// Converts a fine position to one relative to the block's start, at the block's resolution.
    #[inline(always)]
    pub fn position(&self, fine: u64) -> u64 {
        (fine >> FINE_BITS) - self.block as u64 * self.model.block_positions()
    }

    /// Returns the fine position at which the block starts.
    #[inline(always)]
    pub fn fine_start(&self) -> u64 {
        (self.block as u64 * self.model.block_positions()) << FINE_BITS
    }

    /// Returns the first and the last view from one fine position up to another, exclusive.
    pub fn views_between(&self, from: u64, to: u64) -> (u64, u64) {
        let first = self.low.saturating_add(self.model.first_number(from));
        let after = self.low.saturating_add(self.model.first_number(to));
        (first, if after == u64::MAX { after } else { after.saturating_sub(1).max(first) })
    }

    /// Returns the smallest and the largest view of keys at a position of the block.
    pub fn position_views(&self, position: u64) -> (u64, u64) {
        let from = self.fine_start() + (position << FINE_BITS);
        self.views_between(from, from + (1 << FINE_BITS))
    }
}
