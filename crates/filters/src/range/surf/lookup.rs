//! May a key be there? One walk along its bytes.
//! ```text
//! t r y i n g      t ─> r ─> y: a leaf. Are the key's suffix bits those that are kept there?
//!   no such edge: no      a key's mark where the bytes end: yes
//!   a node where the bytes end, without a mark: no
//! ```
//! Invariant: the walk goes one level down for each byte, dense levels first, then sparse ones.

use crate::base::filter::{HashedKey, Trace};
use crate::range::surf::layout::{EDGES_MAX, FANOUT};
use crate::range::surf::trie::Trie;

/// Where a walk through the dense levels ends.
enum Dense {
    /// With an answer.
    Answer(bool),
    /// At a leaf, with so many bytes of the key used.
    Leaf { leaf: usize, used: usize },
    /// At a sparse node, by its number among these.
    Below { number: usize },
}

impl<T: Trace, const EFFORT: u8> Trie<'_, T, EFFORT> {
    #[inline(always)]
    pub(super) fn may_contain(&mut self, key: &HashedKey<'_>) -> bool {
        let counts = &self.layout.counts;
        if counts.height == 0 {
            return counts.keys > 1 || (counts.keys == 1 && key.key().is_empty());
        }
        match self.walk_dense(key.key()) {
            Dense::Answer(answer) => answer,
            Dense::Leaf { leaf, used } => self.has_suffix(leaf, used, key),
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
                return Dense::Answer(self.dense_mark(number));
            };
            let slot = number * EDGES_MAX + 1 + usize::from(label);
            if !self.dense_has_child(slot) {
                if !self.dense_has_label(number, label) {
                    return Dense::Answer(false);
                }
                let leaf = match self.layout.suffix.total() {
                    0 => 0,
                    _ => self.dense_leaves_before(slot),
                };
                return Dense::Leaf { leaf, used: depth + 1 };
            }
            number = self.dense_children_before(slot) + 1;
        }
        Dense::Below { number: number.saturating_sub(dense_nodes) }
    }

    #[inline(always)]
    fn walk_sparse(&mut self, first: usize, key: &HashedKey<'_>) -> bool {
        let counts = &self.layout.counts;
        let mut number = first;
        for depth in counts.dense_levels as usize..self.height() {
            let label = key.key().get(depth);
            if let Some(&label) = label {
                self.load_about(number, label);
            }
            let Some(node) = self.sparse_node(number) else {
                return false;
            };
            let Some(&label) = label else {
                let end = self.sparse_end(node);
                return self.sparse_mark(node, end);
            };
            let Some(slot) = self.sparse_find(node, label) else {
                return false;
            };
            if !self.sparse_has_child(slot) {
                let leaf = match self.layout.suffix.total() {
                    0 => 0,
                    _ => self.sparse_leaf(slot),
                };
                return self.has_suffix(leaf, depth + 1, key);
            }
            number = counts.sparse_first as usize + self.sparse_children_before(slot);
        }
        false
    }

    /// Whether a leaf's suffix is that of a key, of which `used` bytes lead to the leaf.
    #[inline(always)]
    fn has_suffix(&mut self, leaf: usize, used: usize, key: &HashedKey<'_>) -> bool {
        let suffix = self.layout.suffix;
        suffix.total() == 0 || self.suffix_of(leaf) == suffix.of(&key.key()[used..], key.hash())
    }
}

const _: () = assert!(FANOUT == 1 << u8::BITS);
