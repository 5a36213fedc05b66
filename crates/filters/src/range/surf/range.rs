//! Range lookup: one walk along the lower bound's bytes, then down the first edges beyond it.
//! ```text
//! lower  t o p  o ──> p: an edge with a child? a leaf? only larger edges?
//! upper  t r y  edges to the right are in the range unless they are above the upper bound
//! ```
//! Invariant: of all leaves that may be at or after the lower bound, the first one decides. The
//! answer is "no" only if its key is surely above the upper bound.

use core::cmp::Ordering;

use crate::base::filter::Trace;
use crate::range::surf::trie::{FULL, Trie};

/// The upper bound, and the length of its common prefix with the lower bound in bytes.
struct Upper<'a> {
    bytes: &'a [u8],
    shared: usize,
}

impl<T: Trace> Trie<'_, T, FULL> {
    /// Whether a key of the range may be stored. Requires: `lower` < `upper`.
    #[inline(always)]
    pub(super) fn may_overlap(&mut self, lower: &[u8], upper: Option<&[u8]>) -> bool {
        let counts = &self.layout.counts;
        if counts.height == 0 {
            return counts.keys > 1 || (counts.keys == 1 && lower.is_empty());
        }
        let upper = upper.map(|bytes| {
            let pairs = lower.iter().zip(bytes);
            Upper { bytes, shared: pairs.take_while(|(low, high)| low == high).count() }
        });
        let shared = upper.as_ref().map_or(0, |upper| upper.shared);
        // The deepest edge to the right of the walk that may lie in the range.
        let mut right = None;
        let mut node = self.root();
        for depth in 0..self.height() {
            let Some(start) = node else { break };
            let Some(&byte) = lower.get(depth) else {
                let first = self.first(depth, start);
                return first.is_some_and(|slot| self.in_reach(depth, slot, &upper));
            };
            let Some(found) = self.at_least(depth, start, byte) else { break };
            if found.label > byte {
                return self.in_reach(depth, found.slot, &upper);
            }
            if depth >= shared {
                right = self.after(depth, found.slot).map(|slot| (depth, slot)).or(right);
            }
            if !self.has_child(depth, found.slot) {
                match self.order(depth, found.slot, &lower[depth + 1..]) {
                    Ordering::Less => break,
                    Ordering::Equal => return true,
                    Ordering::Greater => {
                        return upper
                            .is_none_or(|upper| !self.is_beyond(depth, found.slot, &upper));
                    }
                }
            }
            node = self.child(depth, found.slot);
        }
        right.is_some_and(|(depth, slot)| self.in_reach(depth, slot, &upper))
    }

    /// Compares the key of a leaf with a key that has the leaf's prefix and then `rest`, as far as
    /// is known.
    #[inline(always)]
    pub(super) fn order(&mut self, depth: usize, slot: usize, rest: &[u8]) -> Ordering {
        if self.layout.suffix.real == 0 {
            return Ordering::Equal;
        }
        self.layout.suffix.order(self.suffix(depth, slot), rest)
    }

    /// Whether a leaf, whose prefix begins the lower bound, is surely above the upper bound.
    #[inline(always)]
    fn is_beyond(&mut self, depth: usize, slot: usize, upper: &Upper<'_>) -> bool {
        upper.shared > depth && self.order(depth, slot, &upper.bytes[depth + 1..]).is_gt()
    }

    /// Whether the first key below an edge may be at most the upper bound. Requires: the edge is
    /// above the lower bound, with which it shares `depth` bytes.
    #[inline(always)]
    fn in_reach(&mut self, depth: usize, slot: usize, upper: &Option<Upper<'_>>) -> bool {
        let Some(upper) = upper else { return true };
        match depth.cmp(&upper.shared) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => self.least_in_reach(depth, slot, upper.bytes),
        }
    }

    /// Same as `in_reach`, for an edge whose prefix begins `upper`.
    #[inline(always)]
    fn least_in_reach(&mut self, depth: usize, slot: usize, upper: &[u8]) -> bool {
        let mut slot = slot;
        for depth in depth..self.height() {
            let Some(label) = self.label(depth, slot) else {
                return true; // the key is the prefix itself
            };
            match upper.get(depth).map(|byte| label.cmp(byte)) {
                None | Some(Ordering::Greater) => return false,
                Some(Ordering::Less) => return true,
                Some(Ordering::Equal) => {}
            }
            if !self.has_child(depth, slot) {
                return !self.order(depth, slot, &upper[depth + 1..]).is_gt();
            }
            let node = self.child(depth, slot);
            let Some(first) = node.and_then(|node| self.first(depth + 1, node)) else {
                return true;
            };
            slot = first;
        }
        true
    }
}
