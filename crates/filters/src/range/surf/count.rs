//! Counts the keys in a range as the difference of two ranks, level by level.
//! ```text
//! level 0  f   s | t          leaves between the two boundaries: 0
//! level 1  | a o   | r        1
//! level 2    r . | s p y i |  4   boundary: where the keys at or after the lower bound begin, or
//!                                those up to the upper bound end
//! ```
//! On the next level, a boundary continues at the children of what lies to its right.
//!
//! Invariant: leaves between the boundaries are counted once. For the leaf that a bound's own bytes
//! lead to, it is known whether it was surely counted.

use core::cmp::Ordering;

use crate::base::filter::Untraced;
use crate::base::rank::CountBounds;
use crate::range::surf::trie::{FULL, Trie};

/// One end of a range during the descent.
struct Side<'a> {
    trie: Trie<'a, Untraced, FULL>,
    key: &'a [u8],
    /// The upper end: a key equal to it lies left of the boundary.
    is_upper: bool,
    /// The node of this level that the key's bytes lead to. None: they left the trie.
    node: Option<usize>,
    /// Whether the bytes lead further down, by the edge at the boundary.
    goes_on: bool,
    /// The boundary, and the number of edges with children before it.
    slot: usize,
    children: usize,
    /// Whether a leaf was counted that may lie outside the range.
    unsure: bool,
}

impl<'a> Side<'a> {
    #[inline(always)]
    fn new(mut trie: Trie<'a, Untraced, FULL>, key: &'a [u8], is_upper: bool) -> Self {
        let node = trie.root();
        Side { trie, key, is_upper, node, goes_on: false, slot: 0, children: 0, unsure: false }
    }

    /// The upper end of an unbounded range.
    #[inline(always)]
    fn end(mut trie: Trie<'a, Untraced, FULL>) -> Self {
        let slot = trie.end_of(0, 0);
        Side { node: None, slot, ..Side::new(trie, &[], true) }
    }

    /// Finds the boundary on a level.
    #[inline(always)]
    fn enter(&mut self, level: usize) {
        self.goes_on = false;
        if let Some(node) = self.node.take() {
            self.enter_node(level, node);
        }
        self.children = self.trie.children_before(level, self.slot);
    }

    #[inline(always)]
    fn enter_node(&mut self, level: usize, node: usize) {
        let Some(&byte) = self.key.get(level) else {
            let first = self.trie.first(level, node).unwrap_or(node);
            let has_mark = self.trie.label(level, first).is_none();
            self.slot = node + usize::from(has_mark && self.is_upper);
            return;
        };
        let Some(found) = self.trie.at_least(level, node, byte) else {
            self.slot = self.trie.end_of(level, node);
            return;
        };
        self.slot = found.slot;
        if found.label > byte {
            return;
        }
        self.goes_on = self.trie.has_child(level, found.slot);
        if !self.goes_on {
            self.pass_leaf(level, &self.key[level + 1..]);
        }
    }

    /// Resolves a leaf whose prefix begins the key, given the `rest` of the key.
    #[inline(always)]
    fn pass_leaf(&mut self, level: usize, rest: &[u8]) {
        let order = self.trie.order(level, self.slot, rest);
        let is_left = match order {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => {
                // A key that continues the whole lower end is not below it.
                self.unsure = self.is_upper || !rest.is_empty();
                self.is_upper
            }
        };
        self.slot += usize::from(is_left);
    }

    /// Descends to the next level.
    #[inline(always)]
    fn leave(&mut self, level: usize) {
        if level + 1 < self.trie.height() {
            let number = self.trie.number_below(level, self.children);
            self.slot = self.trie.boundary(level + 1, number);
            self.node = self.goes_on.then_some(self.slot);
        }
    }

    /// The number of leaves before the boundary.
    #[inline(always)]
    fn leaves(&mut self, level: usize) -> i64 {
        self.trie.leaves_before(level, self.slot, self.children) as i64
    }
}

impl Trie<'_, Untraced, FULL> {
    /// Bounds the number of keys from `lower` to `upper`, both included.
    #[inline(always)]
    pub(super) fn count(&self, lower: &[u8], upper: Option<&[u8]>) -> CountBounds {
        if self.height() == 0 {
            let alone = self.layout.counts.keys == 1 && lower.is_empty();
            return CountBounds::exact(u64::from(alone));
        }
        let mut low = Side::new(*self, lower, false);
        let mut high = match upper {
            Some(upper) => Side::new(*self, upper, true),
            None => Side::end(*self),
        };
        let mut between = 0i64;
        for level in 0..self.height() {
            low.enter(level);
            high.enter(level);
            if low.slot != high.slot {
                between += high.leaves(level) - low.leaves(level);
            } else if !low.goes_on && !high.goes_on {
                break; // and so they stay on all further levels
            }
            low.leave(level);
            high.leave(level);
        }
        let most = between.clamp(0, i64::MAX) as u64;
        let least = most.saturating_sub(u64::from(low.unsure) + u64::from(high.unsure));
        CountBounds { least, estimate: least + (most - least).div_ceil(2), most }
    }
}
