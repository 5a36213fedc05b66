//! Branchless binary search.
//! ```text
//! below below below | not not      steps of 8, 4, 2, 1: each is taken or not, without a branch
//! ```
//! A mispredicted branch costs some ten comparisons, and half of the branches of a binary search
//! are mispredicted. So this search always makes the same number of steps, which wastes few in
//! short ranges.
//!
//! Invariant: it returns what a linear search would.

use core::hint::select_unpredictable;
use core::ops::Range;

/// Returns the first place of `from..end` that is not `below`. Makes at least `STEPS` comparisons,
/// which suffice for 2^STEPS - 1 places. Requires: places that are `below` come first. `below` may
/// also be called for place 0 and the place before `from`, whose answers are ignored.
#[inline(always)]
pub fn first_not<const STEPS: u32>(
    from: usize,
    end: usize,
    mut below: impl FnMut(usize) -> bool,
) -> usize {
    let (mut at, mut len) = (from, end - from);
    while len >> STEPS > 0 {
        let half = len / 2;
        at = select_unpredictable(below(at + half - 1), at + half, at);
        len -= half;
    }
    let end = at + len;
    for step in (0..STEPS).rev() {
        let next = at + (1 << step);
        // Beyond the end it compares the last one and ignores the answer.
        let is_below = below(next.min(end).saturating_sub(1));
        at = select_unpredictable((next <= end) & is_below, next, at);
    }
    at
}

/// Same as [`first_not`], with a branch per step: for searches whose memory accesses dominate.
#[inline(always)]
pub fn partition_point(places: Range<usize>, mut low: impl FnMut(usize) -> bool) -> usize {
    let (mut from, mut end) = (places.start, places.end);
    while from < end {
        let middle = (from + end) / 2;
        (from, end) = if low(middle) { (middle + 1, end) } else { (from, middle) };
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_the_first_that_is_not_below() {
        for from in [0, 1, 7] {
            for len in (0..70).chain([127, 128, 129, 1000]) {
                for first in from..=from + len {
                    let below = |place: usize| {
                        assert!(place + 1 >= from && place < (from + len).max(1), "{place}");
                        place < first
                    };
                    assert_eq!(first_not::<1>(from, from + len, below), first);
                    assert_eq!(first_not::<2>(from, from + len, below), first);
                    assert_eq!(first_not::<4>(from, from + len, below), first);
                    assert_eq!(partition_point(from..from + len, |place| place < first), first);
                }
            }
        }
    }
}
