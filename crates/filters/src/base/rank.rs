//! Ranks and counts as intervals.
//! ```text
//! rank of a key       between `least` and `most` keys lie below it
//! count of a range    rank at the upper end - rank at the lower end
//! ```
//! Invariant: the true value lies between `least` and `most`.

use core::ops::AddAssign;

/// Bounds on a key's rank: the number of keys below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankBounds {
    /// At least this many keys are below it.
    pub least: u64,
    /// At most this many keys are below or equal to it.
    pub most: u64,
}

impl RankBounds {
    /// An exact rank.
    pub fn exact(rank: u64) -> Self {
        RankBounds { least: rank, most: rank }
    }

    /// The middle of the bounds.
    pub fn middle(&self) -> u64 {
        self.least + self.unsure() / 2
    }

    /// The number of keys that may lie on either side.
    pub(crate) fn unsure(&self) -> u64 {
        self.most - self.least
    }
}

/// Bounds on the number of entries in a range, and an estimate. Old values, tombstones and expired
/// entries count, too: for keys, only `most` is a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountBounds {
    /// The range has at least this many entries, but perhaps fewer keys.
    pub least: u64,
    /// An estimate of the entries, between the two bounds.
    pub estimate: u64,
    /// The range has at most this many entries, and so at most this many keys.
    pub most: u64,
}

impl CountBounds {
    /// An exact count.
    pub fn exact(count: u64) -> Self {
        CountBounds { least: count, estimate: count, most: count }
    }

    /// Bounds the number of keys from one key to another, both included, given their ranks.
    /// Requires: ranks ascend with keys.
    pub fn between(low: RankBounds, high: RankBounds) -> Self {
        let least = high.least.saturating_sub(low.most);
        let most = high.most.saturating_sub(low.least);
        let estimate = if low == high {
            // Both ends lie in the same cell: half of its keys.
            low.unsure().div_ceil(2)
        } else {
            // A single key in the cell of an end is most likely the end itself, which the range
            // includes.
            (high.least + high.unsure().div_ceil(2)).saturating_sub(low.middle())
        };
        CountBounds { least, estimate: estimate.clamp(least, most), most }
    }
}

impl AddAssign for CountBounds {
    fn add_assign(&mut self, other: CountBounds) {
        self.least += other.least;
        self.estimate += other.estimate;
        self.most += other.most;
    }
}
