//! Point lookup: one walk along the key's bytes.
//! ```text
//! t r y i n g      t ─> r ─> y: a leaf. Do the key's suffix bits match those stored there?
//!   no such edge: no      the bytes end at a node with a mark: yes
//!   the bytes end at a node without a mark: no
//! ```
//! Invariant: the walk descends one level per byte, first dense levels, then sparse ones.

use crate::base::filter::{HashedKey, Trace};
use crate::range::surf::layout::{EDGES_MAX, FANOUT};
use crate::range::surf::trie::Trie;

/// The end of a walk along a key's bytes.
pub(super) enum End {
    /// No key has this prefix.
    Nowhere,
    /// At the mark of a node where the bytes end: the key is stored.
    Mark { is_dense: bool, slot: usize },
    /// At a leaf, after `used` bytes of the key.
    Leaf { is_dense: bool, slot: usize, used: usize },
}

/// The end of a walk through the dense levels.
enum Dense {
    Here(End),
    /// At a sparse node, by its number among sparse nodes.
    Below {
        number: usize,
    },
}

impl<T: Trace, const EFFORT: u8> Trie<'_, T, EFFORT> {
    #[inline(always)]
    pub(super) fn may_contain(&mut self, key: &HashedKey<'_>) -> bool {
        let counts = &self.layout.counts;
        if counts.height == 0 {
            return counts.keys > 1 || (counts.keys == 1 && key.key().is_empty());
        }
        match self.walk(key.key()) {
            End::Nowhere => false,
            End::Mark { .. } => true,
            End::Leaf { is_dense, slot, used } => self.has_suffix(is_dense, slot, used, key),
        }
    }

    /// Walks along a key. Requires: the trie has levels.
    #[inline(always)]
    pub(super) fn walk(&mut self, key: &[u8]) -> End {
        match self.walk_dense(key) {
            Dense::Here(end) => end,
            Dense::Below { number } => self.walk_sparse(number, key),
        }
    }

    #[inline(always)]
    fn walk_dense(&mut self, key: &[u8]) -> Dense {
        let counts = &self.layout.counts;
        let dense_nodes = counts.dense_nodes as usize;
        let mut number = 0;
        for depth in 0..counts.dense_levels as usize {
            if number >= dense_nodes {
                break;
            }
            let Some(&label) = key.get(depth) else {
                let slot = number * EDGES_MAX;
                return Dense::Here(match self.dense_mark(number) {
                    true => End::Mark { is_dense: true, slot },
                    false => End::Nowhere,
                });
            };
            let slot = number * EDGES_MAX + 1 + usize::from(label);
            if !self.dense_has_child(slot) {
                return Dense::Here(match self.dense_has_label(number, label) {
                    true => End::Leaf { is_dense: true, slot, used: depth + 1 },
                    false => End::Nowhere,
                });
            }
            number = self.dense_children_before(slot) + 1;
        }
        Dense::Below { number: number.saturating_sub(dense_nodes) }
    }

    #[inline(always)]
    fn walk_sparse(&mut self, first: usize, key: &[u8]) -> End {
        let counts = &self.layout.counts;
        let mut number = first;
        for depth in counts.dense_levels as usize..self.height() {
            let label = key.get(depth);
            if let Some(&label) = label {
                self.load_about(number, label);
            }
            let Some(node) = self.sparse_node(number) else {
                return End::Nowhere;
            };
            let Some(&label) = label else {
                let end = self.sparse_end(node);
                return match self.sparse_mark(node, end) {
                    true => End::Mark { is_dense: false, slot: node },
                    false => End::Nowhere,
                };
            };
            let Some(slot) = self.sparse_find(node, label) else {
                return End::Nowhere;
            };
            if !self.sparse_has_child(slot) {
                return End::Leaf { is_dense: false, slot, used: depth + 1 };
            }
            number = counts.sparse_first as usize + self.sparse_children_before(slot);
        }
        End::Nowhere
    }

    /// Returns the number of the leaf, or the mark, at a slot.
    #[inline(always)]
    pub(super) fn leaf_at(&mut self, is_dense: bool, slot: usize) -> usize {
        if is_dense { self.dense_leaves_before(slot) } else { self.sparse_leaf(slot) }
    }

    /// Whether a leaf's suffix matches a key, `used` bytes of which lead to the leaf.
    #[inline(always)]
    fn has_suffix(
        &mut self,
        is_dense: bool,
        slot: usize,
        used: usize,
        key: &HashedKey<'_>,
    ) -> bool {
        let suffix = self.layout.suffix;
        if suffix.total() == 0 {
            return true;
        }
        let leaf = self.leaf_at(is_dense, slot);
        self.suffix_of(leaf) == suffix.of(&key.key()[used..], key.hash())
    }
}

const _: () = assert!(FANOUT == 1 << u8::BITS);
