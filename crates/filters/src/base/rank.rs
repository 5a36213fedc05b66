//! Ranks and counts that are known up to bounds.
//! ```text
//! rank of a key       between `least` and `most` keys lie below it
//! count of a range    rank at the upper end - rank at the lower end
//! ```
//! Invariant: the truth lies between `least` and `most`.

use core::ops::AddAssign;

/// Between how many keys and how many lie below a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankBounds {
    /// So many keys are surely below it.
    pub least: u64,
    /// All others are at or above it: no more keys than these are below it, or equal to it.
    pub most: u64,
}

impl RankBounds {
    /// A rank that is known.
    pub fn exact(rank: u64) -> Self {
        RankBounds { least: rank, most: rank }
    }

    /// The rank in the middle.
    pub fn middle(&self) -> u64 {
        self.least + self.unsure() / 2
    }

    /// The keys of which is not known on which side they are.
    pub(crate) fn unsure(&self) -> u64 {
        self.most - self.least
    }
}

/// How many entries a range has: surely `least`, surely no more than `most`, and about `estimate`.
/// Old values, deletions and what has expired are entries, too: only `most` says something of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountBounds {
    /// There are no fewer entries. (Of keys there may be fewer.)
    pub least: u64,
    /// About so many: between the two others.
    pub estimate: u64,
    /// There are no more entries, and so no more keys.
    pub most: u64,
}

impl CountBounds {
    /// A count that is known.
    pub fn exact(count: u64) -> Self {
        CountBounds { least: count, estimate: count, most: count }
    }

    /// The keys from one key up to another, both included, by their ranks. Requires: ranks ascend
    /// in keys.
    pub fn between(low: RankBounds, high: RankBounds) -> Self {
        let least = high.least.saturating_sub(low.most);
        let most = high.most.saturating_sub(low.least);
        let estimate = if low == high {
            // Both ends in one place: half of what is there.
            low.unsure().div_ceil(2)
        } else {
            // One key in the cell of an end is most likely that end itself, which the range
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
