//! The division of the keys among the lanes.
//! ```text
//! all keys, sorted   a b c | d e f | g h i | j k l      stretches, dealt out to the lanes
//! lane               0     | 1     | 0     | 1          its keys: a b c g h i
//! ```
//! Invariants: each key has one lane, and only that lane writes it. A range that a lane deletes
//! lies within the lane's stretches.

use std::ops::Bound::{Excluded, Included};
use std::ops::Range;

use super::ledger::Spot;
use crate::keys::rng::Rng;
use crate::stress::keys::{KeyIndex, Keys};
use crate::stress::writer::DeletedRange;

/// The most ranges of one deletion, since stretches may be single keys.
const RANGES_MAX: usize = 32;

/// All keys of a history, and the keys of each lane.
pub(super) struct Shares {
    pub(super) all: Keys,
    /// The owner of each key.
    pub(super) spots: Vec<Spot>,
    /// The keys of each lane.
    pub(super) lanes: Vec<Keys>,
    /// The stretches of each lane: its places, its first key, and the first key behind it.
    stretches: Vec<Vec<Stretch>>,
}

struct Stretch {
    places: Range<usize>,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
}

impl Shares {
    /// Deals out the keys in stretches of `len` keys. Requires: `len` > 0.
    pub(super) fn new(all: Keys, lanes: usize, len: usize) -> Self {
        let owner = |place: usize| place / len % lanes;
        let (mut spots, mut counts) = (Vec::new(), vec![0; lanes]);
        let mut stretches: Vec<Vec<Stretch>> = (0..lanes).map(|_| Vec::new()).collect();
        for first in (0..all.len()).step_by(len) {
            let (lane, end) = (owner(first), (first + len).min(all.len()));
            let start = counts[lane];
            counts[lane] += end - first;
            let spot =
                |place| Spot { lane: lane as u8, place: (start + place - first) as KeyIndex };
            spots.extend((first..end).map(spot));
            let key = |place: usize| all.get(place as KeyIndex).to_vec();
            let to = (end < all.len()).then(|| key(end));
            stretches[lane].push(Stretch { places: start..counts[lane], from: key(first), to });
        }
        let share = |lane| all.share((0..all.len()).filter(|&place| owner(place) == lane));
        let lanes = (0..lanes).map(share).collect();
        Shares { all, spots, lanes, stretches }
    }

    /// Draws keys, and the length of stretches such that every lane has some.
    pub(super) fn draw_from(rng: &mut Rng, lanes: usize) -> Self {
        let all = loop {
            let keys = Keys::draw_from(rng);
            if keys.len() >= lanes {
                break keys;
            }
        };
        let most = all.len() / lanes;
        let len = [1, 7, 64, most][rng.place(4)].clamp(1, most);
        Shares::new(all, lanes, len)
    }

    /// Returns the lane's part of a range: the ranges to delete, and the places in them.
    pub(super) fn within(
        &self,
        lane: usize,
        (from, to): (&[u8], &[u8]),
    ) -> (Vec<DeletedRange>, Vec<Range<usize>>) {
        let (mut ranges, mut places) = (Vec::new(), Vec::new());
        let keys = &self.lanes[lane];
        for stretch in &self.stretches[lane] {
            let lower = from.max(&stretch.from);
            let upper = stretch.to.as_deref().map_or(to, |end| end.min(to));
            if lower < upper && ranges.len() < RANGES_MAX {
                let edges = (Included(lower.to_vec()), Excluded(upper.to_vec()));
                places.push(keys.places(&edges));
                ranges.push((lower.to_vec(), upper.to_vec()));
            }
        }
        (ranges, places)
    }

    /// Whether the lane owns all keys of the store between two of its places.
    pub(super) fn is_whole(&self, lane: usize, places: &Range<usize>) -> bool {
        let inside = |stretch: &Stretch| {
            stretch.places.start < places.start && places.end < stretch.places.end
        };
        places.start < places.end && self.stretches[lane].iter().any(inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_one_lane() {
        for seed in 0..100 {
            let shares = Shares::draw_from(&mut Rng::new(seed), 3);
            for (place, spot) in shares.spots.iter().enumerate() {
                let key = shares.all.get(place as KeyIndex);
                assert_eq!(shares.lanes[usize::from(spot.lane)].get(spot.place), key);
            }
            assert!(shares.lanes.iter().all(|keys| keys.len() > 0));
            let count: usize = shares.lanes.iter().map(Keys::len).sum();
            assert_eq!(count, shares.all.len());
        }
    }

    #[test]
    fn a_lane_deletes_its_own_keys_alone() {
        let shares = Shares::new(Keys::dense(12), 2, 3);
        let key = |place: u64| place.to_be_bytes().to_vec();
        let (ranges, places) = shares.within(0, (&key(1), &key(8)));
        assert_eq!(ranges, [(key(1), key(3)), (key(6), key(8))]);
        assert_eq!(places, [1..3, 3..5]);
        let (ranges, places) = shares.within(1, (&key(9), &key(99)));
        assert_eq!(ranges, [(key(9), key(99))]);
        assert!(places.into_iter().eq(std::iter::once(3..6)));
        assert!(shares.within(0, (&key(3), &key(6))).0.is_empty());
    }
}
