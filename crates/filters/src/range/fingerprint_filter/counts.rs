//! Counts from ranks.
//! ```text
//! rank     starts[group] + cells of the blocks before + cells before the place ... through it
//! count    rank at the upper end - rank at the lower end
//! ```
//! Invariant: the truth lies between `least` and `most`.

use super::place::{Place, View};
use crate::base::rank::{CountBounds, RankBounds};
use crate::bits::row::Row;

impl View<'_> {
    /// The keys between two places; without one: from the start, or to the end. None: more keys
    /// than starts can count.
    pub(super) fn count(&self, low: Option<&Place>, high: Option<&Place>) -> Option<CountBounds> {
        if self.entries() > u64::from(u32::MAX) {
            return None;
        }
        let low = low.map_or(RankBounds::exact(0), |low| self.rank_bounds(low));
        let end = RankBounds::exact(self.entries());
        Some(CountBounds::between(low, high.map_or(end, |high| self.rank_bounds(high))))
    }

    /// Between how many keys and how many lie below the key of a place, which is one of a range's
    /// ends.
    fn rank_bounds(&self, place: &Place) -> RankBounds {
        let index = match place.list.checked_sub(1) {
            None => return RankBounds::default(),
            Some(_) if place.list == self.above() => return RankBounds::exact(self.entries()),
            Some(index) => index,
        };
        let group = self.group(index);
        let (mut earlier, mut cells) = (0, 0);
        for block in 0..group.blocks {
            let count = self.block_count(&group, block) as u64;
            earlier += if block < place.block { count } else { 0 };
            cells += count;
        }
        let start = self.start(index);
        // Keys that are another one's bits and zeros have no cell: they lie behind a cell, of which
        // is not known.
        let zeros = self.start(index + 1).saturating_sub(start).saturating_sub(cells);
        let (before, through) = (earlier + place.before as u64, earlier + place.through as u64);
        let least = start + before + if before == cells { zeros } else { 0 };
        let most = start + through + if through > 0 { zeros } else { 0 };
        RankBounds { least, most: most.max(least) }
    }

    /// The keys before a group, or all.
    fn start(&self, index: usize) -> u64 {
        if index < self.starts().len() {
            u64::from(self.starts().at(index))
        } else {
            self.entries()
        }
    }
}
