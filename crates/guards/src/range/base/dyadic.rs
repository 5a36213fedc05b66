//! Searches a binary tree of prefixes for a range of numbers.
//! ```text
//! level 3          [0......7]              [8.....15]        top: all nodes that meet the range
//! level 2     [0..3]      [4..7]       [8..11]     [12..15]  below: children that meet the range
//! level 1  [0,1] [2,3] [4,5] [6,7]  [8,9] [10,11]   ...      of nodes that may hold a key
//! level 0   0  1  2  3  4  5  6  7   8  9  10  11   ...      bottom: a node that may hold a key
//! ```
//! A node of level l is a number without its last l bits. Nodes that the range covers in part are
//! probed, too: an absent parent saves probing all its children.
//!
//! Invariant: the answer is "no" only if every path from the top to a number of the range has an
//! absent node. After `visits` nodes the answer is "maybe".

/// The first and last level of a descent, and its limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descent {
    /// The level of the first nodes, below 64.
    pub(crate) top: u32,
    /// The level at which a present node decides; at most `top`.
    pub(crate) bottom: u32,
    /// The maximum number of nodes to visit before the answer is "maybe".
    pub(crate) visits: u32,
}

impl Descent {
    /// Whether a number from `low` to `high` may exist. `may_hold(level, node)`: false if no number
    /// is below the node.
    #[inline]
    pub(crate) fn may_overlap(
        mut self,
        low: u64,
        high: u64,
        may_hold: &mut impl FnMut(u32, u64) -> bool,
    ) -> bool {
        let (first, last) = (low >> self.top, high >> self.top);
        if last - first >= u64::from(self.visits) {
            return true;
        }
        (first..=last).any(|node| self.visit(self.top, node, (low, high), may_hold))
    }

    fn visit(
        &mut self,
        level: u32,
        node: u64,
        range: (u64, u64),
        may_hold: &mut impl FnMut(u32, u64) -> bool,
    ) -> bool {
        if self.visits == 0 {
            return true;
        }
        self.visits -= 1;
        if !may_hold(level, node) {
            return false;
        }
        if level == self.bottom {
            return true;
        }
        let below = level - 1;
        let (first, last) = (range.0 >> below, range.1 >> below);
        let children = [node << 1, node << 1 | 1].into_iter();
        let mut met = children.filter(|child| (first..=last).contains(child));
        met.any(|child| self.visit(below, child, range, may_hold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// All ranges of eight bits, against a set of numbers whose prefixes are known exactly.
    #[test]
    fn what_is_there_is_found_and_nothing_else() {
        let numbers = BTreeSet::from([0u64, 3, 4, 77, 78, 130, 255]);
        for (top, bottom) in [(0, 0), (3, 0), (7, 0), (5, 2)] {
            let descent = Descent { top, bottom, visits: 1000 };
            let mut may_hold =
                |level: u32, node: u64| numbers.iter().any(|number| number >> level == node);
            for low in 0..256 {
                for high in low..256 {
                    let found = descent.may_overlap(low, high, &mut may_hold);
                    let (low, high) = (low >> bottom, high >> bottom);
                    let truth = numbers.iter().any(|n| (low..=high).contains(&(n >> bottom)));
                    assert_eq!(found, truth, "{low}..={high} from {top} to {bottom}");
                }
            }
        }
    }

    #[test]
    fn a_wide_range_ends_soon() {
        let mut asked = 0;
        let mut nowhere = |_: u32, _: u64| {
            asked += 1;
            false
        };
        let descent = Descent { top: 10, bottom: 0, visits: 50 };
        assert!(descent.may_overlap(0, u64::MAX, &mut nowhere));
        assert!(!descent.may_overlap(u64::MAX - 49 * 1024, u64::MAX, &mut nowhere));
        assert_eq!(asked, 50);
        let all_but_the_leaves = |level: u32, _: u64| level > 0;
        let descent = Descent { top: 63, bottom: 0, visits: 50 };
        assert!(descent.may_overlap(0, u64::MAX, &mut { all_but_the_leaves }));
        assert!(!descent.may_overlap(7, 7, &mut |level, _| level > 14));
        assert!(descent.may_overlap(7, 7, &mut |level, _| level > 13), "50 nodes, all there");
    }
}
