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

impl<const EFFORT: u8> Trie<'_, EFFORT> {
    #[inline(always)]
    pub(super) fn may_contain<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) -> bool {
        let counts = &self.layout.counts;
        if counts.height == 0 {
            return counts.keys > 1 || (counts.keys == 1 && key.key().is_empty());
        }
        match self.walk_dense(key.key(), trace) {
            Dense::Answer(answer) => answer,
            Dense::Leaf { leaf, used } => self.has_suffix(leaf, used, key, trace),
            Dense::Below { number } => self.walk_sparse(number, key, trace),
        }
    }

    #[inline(always)]
    fn walk_dense<T: Trace>(&self, key: &[u8], trace: &mut T) -> Dense {
        let counts = &self.layout.counts;
        let dense_nodes = counts.dense_nodes as usize;
        let mut number = 0;
        for depth in 0..counts.dense_levels as usize {
            if number >= dense_nodes {
                break;
            }
            let Some(&label) = key.get(depth) else {
                return Dense::Answer(self.dense_mark(number, trace));
            };
            let slot = number * EDGES_MAX + 1 + usize::from(label);
            if !self.dense_has_child(slot, trace) {
                if !self.dense_has_label(number, label, trace) {
                    return Dense::Answer(false);
                }
                let leaf = match self.layout.suffix.total() {
                    0 => 0,
                    _ => self.dense_leaves_before(slot, trace),
                };
                return Dense::Leaf { leaf, used: depth + 1 };
            }
            number = self.dense_children_before(slot, trace) + 1;
        }
        Dense::Below { number: number.saturating_sub(dense_nodes) }
    }

    #[inline(always)]
    fn walk_sparse<T: Trace>(&self, first: usize, key: &HashedKey<'_>, trace: &mut T) -> bool {
        let counts = &self.layout.counts;
        let mut number = first;
        for depth in counts.dense_levels as usize..self.height() {
            let label = key.key().get(depth);
            label.into_iter().for_each(|&label| self.load_about(number, label, trace));
            let Some(node) = self.sparse_node(number, trace) else {
                return false;
            };
            let Some(&label) = label else {
                let end = self.sparse_end(node, trace);
                return self.sparse_mark(node, end, trace);
            };
            let Some(slot) = self.sparse_find(node, label, trace) else {
                return false;
            };
            if !self.sparse_has_child(slot, trace) {
                let leaf = match self.layout.suffix.total() {
                    0 => 0,
                    _ => self.sparse_leaf(slot, trace),
                };
                return self.has_suffix(leaf, depth + 1, key, trace);
            }
            number = counts.sparse_first as usize + self.sparse_children_before(slot, trace);
        }
        false
    }

    /// Whether a leaf's suffix is that of a key, of which `used` bytes lead to the leaf.
    #[inline(always)]
    fn has_suffix<T: Trace>(
        &self,
        leaf: usize,
        used: usize,
        key: &HashedKey<'_>,
        trace: &mut T,
    ) -> bool {
        let suffix = self.layout.suffix;
        suffix.total() == 0
            || self.suffix_of(leaf, trace) == suffix.of(&key.key()[used..], key.hash())
    }
}

const _: () = assert!(FANOUT == 1 << u8::BITS);
