//! Counts keys in a range from ranks.
//! ```text
//! rank     starts[group] + cells of earlier blocks + cells before the place ... through it
//! count    rank at the upper end - rank at the lower end
//! ```
//! Invariant: the true count lies between `least` and `most`.

use trommel_filters::bits::row::Row;
use trommel_filters::fingerprint::starts::rank_bounds;
use trommel_filters::{CountBounds, RankBounds};

use super::place::{CellPosition, View};

impl View<'_> {
    /// Bounds the number of keys between two places. Without one: from the start, or to the end.
    /// None: there are more keys than starts can count.
    pub(super) fn count(
        &self,
        low: Option<&CellPosition>,
        high: Option<&CellPosition>,
    ) -> Option<CountBounds> {
        if self.entries() > u64::from(u32::MAX) {
            return None;
        }
        let low = low.map_or(RankBounds::exact(0), |low| self.rank_bounds(low));
        let end = RankBounds::exact(self.entries());
        Some(CountBounds::between(low, high.map_or(end, |high| self.rank_bounds(high))))
    }

    /// Bounds the rank of a place, which is an end of a range.
    fn rank_bounds(&self, place: &CellPosition) -> RankBounds {
        let index = match place.list.checked_sub(1) {
            None => return RankBounds::default(),
            Some(_) if place.list == self.above() => return RankBounds::exact(self.entries()),
            Some(index) => index,
        };
        let group = self.group(index);
        let cells = (0..group.blocks).map(|block| self.block_count(&group, block));
        let keys = self.start(index)..self.start(index + 1);
        rank_bounds(keys, cells, place.block, (place.before, place.through))
    }

    /// Returns the number of keys before a group, or of all keys.
    fn start(&self, index: usize) -> u64 {
        if index < self.starts().len() {
            u64::from(self.starts().at(index))
        } else {
            self.entries()
        }
    }
}
