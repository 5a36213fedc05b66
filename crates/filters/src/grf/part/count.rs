//! Counts a part's entries in a range from ranks, without visiting them.
//! ```text
//! base     starts[group] + keys of earlier blocks + rank in the block
//! overlay  entries of whole chunks        + rank of the place in its bucket
//!          keys of one cell, and entries of one place: between two ranks
//! count    rank at the upper end - rank at the lower end
//! ```
//! Invariant: the true count lies between `least` and `most`. The estimate takes half of the
//! entries that share a place with an end of the range.

use crate::base::filter::Untraced;
use crate::base::query::KeyRange;
use crate::base::rank::{CountBounds, RankBounds};
use crate::fingerprint::group::Kind;
use crate::fingerprint::starts::rank_bounds;
use crate::grf::base::{Base, Role, Spot};
use crate::grf::overlay::Overlay;
use crate::grf::part::Part;
use crate::text::code::KeyCode;

impl Base {
    /// Bounds the rank among base keys of a place, which is an end of a range.
    fn rank_bounds(&self, spot: &Spot) -> RankBounds {
        let (list, bucket) = spot.bucket_key();
        let group = match list.checked_sub(1) {
            None => return RankBounds::default(),
            Some(_) if self.is_edge(list) => return RankBounds::exact(self.entries),
            Some(group) => group,
        };
        let start = self.starts.before(group).unwrap_or(self.entries);
        let end = self.starts.before(group + 1).unwrap_or(self.entries);
        let cells = (0..self.bucket_count(list)).map(|block| self.key_count((list, block)));
        rank_bounds(start..end, cells, bucket, spot.ranks())
    }

    /// The number of keys in consecutive lists. Requires: none of them is an edge.
    pub(crate) fn keys_of_lists(&self, lists: core::ops::Range<usize>) -> u64 {
        let before = |list: usize| self.starts.before(list - 1).unwrap_or(self.entries);
        before(lists.end).saturating_sub(before(lists.start))
    }

    /// Whether a list's places do not reflect key order within a bucket.
    pub(crate) fn is_hashed(&self, list: usize) -> bool {
        !self.is_edge(list) && self.group(list - 1).kind == Kind::Hash
    }

    /// Counts the keys between two places. None: from the start, or to the end.
    fn count(&self, low: Option<&Spot>, high: Option<&Spot>) -> CountBounds {
        let low = low.map_or(RankBounds::exact(0), |low| self.rank_bounds(low));
        let end = RankBounds::exact(self.entries);
        CountBounds::between(low, high.map_or(end, |high| self.rank_bounds(high)))
    }
}

impl Overlay {
    /// Counts the entries between two places. None: from the start, or to the end.
    fn count(&self, base: &Base, low: Option<&Spot>, high: Option<&Spot>) -> CountBounds {
        let (first, before_low, through_low) = low.map_or((0, 0, 0), |low| self.ranks(base, low));
        let (last, before_high, through_high) = match high {
            Some(high) => self.ranks(base, high),
            None => {
                let last = self.chunk_count() - 1;
                let all = self.chunk_entries(last).kept;
                (last, all, all)
            }
        };
        let (mut between, mut merged, mut kept) = (0, 0, 0);
        for index in first..=last {
            let entries = self.chunk_entries(index);
            between += if index < last { entries.kept } else { 0 };
            (kept, merged) = (kept + entries.kept, merged + entries.merged);
        }
        let low = RankBounds { least: before_low, most: through_low };
        let high = RankBounds { least: between + before_high, most: between + through_high };
        let mut count = CountBounds::between(low, high);
        // Keys merged into a common entry may be in the range: most likely in proportion.
        let share = u128::from(count.estimate) * u128::from(merged) / u128::from(kept.max(1));
        count.estimate = count.estimate.saturating_add(share as u64);
        count.most += merged;
        count
    }
}

impl Part {
    /// Bounds the number of base keys below `key`. The bounds differ by the number of keys in the
    /// key's cell. They also differ by keys of its group that only append zeros to others.
    pub fn rank_bounds(&self, key: &[u8]) -> RankBounds {
        let mut code = KeyCode::new();
        let key = self.base.name(key, &mut code);
        self.base.rank_bounds(&self.spot(key, Role::Low, &mut Untraced))
    }

    /// Bounds the number of entries in a range, of base and overlay. A base key is one entry, and
    /// every flush of a key, or of its tombstone, adds one. So a base key that was flushed twice
    /// since counts as three.
    ///
    /// In the base, `least` and `most` differ at most by the keys that share the cells of the
    /// range's two ends (see [`Part::rank_bounds`]). Usually that is at most one at each end,
    /// unless keys end in zeros. In groups of hashes they differ by the blocks of the ends.
    ///
    /// In the overlay, they differ by entries that share a place with an end. They also differ by
    /// keys that share an entry with another key of their flush, in all chunks of the range. Takes
    /// time proportional to these chunks, about one per fifteen thousand keys.
    pub fn approximate_count(&self, range: &KeyRange<'_>) -> CountBounds {
        // No key is below the empty one.
        let bounded = Some(range.lower()).filter(|lower| !lower.is_empty());
        let (mut low_code, mut high_code) = (KeyCode::new(), KeyCode::new());
        let bounded = bounded.map(|lower| self.base.name(lower, &mut low_code));
        let upper = range.upper().map(|upper| self.base.name(upper, &mut high_code));
        let low = bounded.map(|key| self.spot(key, Role::Low, &mut Untraced));
        let high = upper.map(|key| {
            let role = low.as_ref().map_or(Role::Low, Role::High);
            self.spot(key, role, &mut Untraced)
        });
        let mut count = self.base.count(low.as_ref(), high.as_ref());
        count += self.overlay.count(&self.base, low.as_ref(), high.as_ref());
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_in_cells_count_by_half() {
        let rank = |least, most| RankBounds { least, most };
        let count = |low, high| {
            let count = CountBounds::between(low, high);
            (count.least, count.estimate, count.most)
        };
        assert_eq!(count(rank(3, 3), rank(9, 9)), (6, 6, 6));
        assert_eq!(count(rank(3, 4), rank(9, 10)), (5, 7, 7), "both ends are keys");
        assert_eq!(count(rank(10, 20), rank(50, 60)), (30, 40, 50));
        assert_eq!(count(rank(3, 3), rank(3, 3)), (0, 0, 0));
        assert_eq!(count(rank(3, 4), rank(3, 4)), (0, 1, 1));
        assert_eq!(count(rank(3, 13), rank(3, 13)), (0, 5, 10));
    }
}
