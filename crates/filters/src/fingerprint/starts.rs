//! The number of keys before each group, and before a place inside it.
//! ```text
//! low      0   900   1810 ...   4294967200   850 ...    the low 32 bits of each number
//! wraps    [the group of 850, ...]                      where the high halves increase
//! ```
//! Invariant: the numbers ascend, so a group's high half is the number of wraps up to it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use crate::base::rank::RankBounds;

/// The number of keys before each group: the low halves, and where the high halves increase.
#[derive(Default)]
pub struct GroupStarts {
    /// The low half for each group.
    pub low: Box<[u32]>,
    /// For each multiple of 2^32, the first group with at least that many keys before it.
    pub wraps: Box<[u32]>,
}

/// Builds [`GroupStarts`].
#[derive(Default)]
pub struct GroupStartsBuilder {
    low: Vec<u32>,
    wraps: Vec<u32>,
    keys: u64,
}

impl GroupStartsBuilder {
    /// Adds a group of `keys` keys. Requires: `keys` is below 2^32.
    pub fn push(&mut self, keys: u64) {
        assert!(keys >> u32::BITS == 0, "a group of {keys} keys");
        if self.keys >> u32::BITS > self.wraps.len() as u64 {
            self.wraps.push(self.low.len() as u32);
        }
        self.low.push(self.keys as u32);
        self.keys += keys;
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        4 * (self.low.capacity() + self.wraps.capacity())
    }

    pub(crate) fn finish(self) -> GroupStarts {
        GroupStarts { low: self.low.into_boxed_slice(), wraps: self.wraps.into_boxed_slice() }
    }
}

impl GroupStarts {
    /// Returns the number of keys before a group. None: there is no such group.
    pub fn before(&self, group: usize) -> Option<u64> {
        let low = self.low.get(group)?;
        let high = self.wraps.partition_point(|&first| first as usize <= group);
        Some((high as u64) << u32::BITS | u64::from(*low))
    }

    /// Returns the size of each allocation, in bytes.
    pub fn allocations(&self) -> [usize; 2] {
        [4 * self.low.len(), 4 * self.wraps.len()]
    }
}

/// Bounds the rank of a place in the group that holds the ranks `keys`. The place is in `block`,
/// with `before` of that block's cells below it, and `through` including its own. `cells` has the
/// number of cells of each block in the group.
pub fn rank_bounds(
    keys: Range<u64>,
    cells: impl Iterator<Item = usize>,
    block: usize,
    (before, through): (usize, usize),
) -> RankBounds {
    let (mut earlier, mut all) = (0, 0);
    for (nth, cells) in cells.enumerate() {
        earlier += if nth < block { cells as u64 } else { 0 };
        all += cells as u64;
    }
    // Keys that only append zeros to the previous key have no cell of their own. They lie behind
    // some cell, but it is not known which.
    let zeros = keys.end.saturating_sub(keys.start).saturating_sub(all);
    let (before, through) = (earlier + before as u64, earlier + through as u64);
    let least = keys.start + before + if before == all { zeros } else { 0 };
    let most = keys.start + through + if through > 0 { zeros } else { 0 };
    RankBounds { least, most: most.max(least) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_beyond_32_bits_are_kept() {
        let mut builder = GroupStartsBuilder::default();
        let keys = |group: u64| group % 7 * 400_000_000;
        let (mut sum, mut expected) = (0, Vec::new());
        for group in 0..100 {
            expected.push(sum);
            builder.push(keys(group));
            sum += keys(group);
        }
        assert!(sum >> 36 > 0);
        let starts = builder.finish();
        let read: Vec<u64> = (0..100).filter_map(|group| starts.before(group)).collect();
        assert_eq!(read, expected);
        assert_eq!(starts.before(100), None);
    }
}
