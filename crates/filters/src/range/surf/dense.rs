//! LOUDS-Dense: the upper levels. Each node takes two bitmaps over the 256 labels, and one bit.
//! ```text
//! D-Labels        node n: bits 256·n .. 256·(n+1)     its labels
//! D-HasChild      the same positions                  labels that lead to a node
//! D-IsPrefixKey   bit n                               the node's prefix is itself a key
//! slot            257·n + 0: that key's mark          257·n + 1 + label: an edge
//! ```
//! Invariant: a mark comes before all labels of its node, as its key sorts before longer ones.

use crate::base::filter::Trace;
use crate::range::surf::layout::{EDGES_MAX, FANOUT, Section};
use crate::range::surf::trie::{FoundEdge, SurfEffort, Trie};

/// Returns the node of a slot, and the bit of the first label at or after it.
#[inline(always)]
fn place(slot: usize) -> (usize, usize) {
    let (node, offset) = (slot / EDGES_MAX, slot % EDGES_MAX);
    (node, node * FANOUT + offset.saturating_sub(1))
}

/// Returns the slot of a bit of D-Labels.
#[inline(always)]
fn slot_of(bit: usize) -> usize {
    bit / FANOUT * EDGES_MAX + bit % FANOUT + 1
}

impl<T: Trace, const EFFORT: u8> Trie<'_, T, EFFORT> {
    #[inline(always)]
    fn dense_bit(&mut self, section: Section, bit: usize) -> bool {
        self.touch(section, bit / 64 * 8, 8);
        self.bits(section).get(bit)
    }

    #[inline(always)]
    fn dense_rank(&mut self, (bits, ranks): (Section, Section), at: usize) -> usize {
        self.touch(bits, at / 64 * 8, 8);
        self.touch(ranks, at / 64 * 4, 4);
        if EFFORT >= SurfEffort::Rank as u8 {
            self.ranked(bits, ranks).rank_in_word(at)
        } else {
            self.ranked(bits, ranks).rank_from_eighth_word(at)
        }
    }

    /// Whether the prefix of a node is a key.
    #[inline(always)]
    pub(super) fn dense_mark(&mut self, node: usize) -> bool {
        self.dense_bit(Section::DensePrefix, node)
    }

    /// Whether a node has a label.
    #[inline(always)]
    pub(super) fn dense_has_label(&mut self, node: usize, label: u8) -> bool {
        self.dense_bit(Section::DenseLabels, node * FANOUT + usize::from(label))
    }

    #[inline(always)]
    pub(super) fn dense_has_child(&mut self, slot: usize) -> bool {
        let is_label = !slot.is_multiple_of(EDGES_MAX);
        is_label && self.dense_bit(Section::DenseHasChild, place(slot).1)
    }

    /// Returns the number of edges with children before a slot.
    #[inline(always)]
    pub(super) fn dense_children_before(&mut self, slot: usize) -> usize {
        self.dense_rank((Section::DenseHasChild, Section::DenseChildRanks), place(slot).1)
    }

    /// Returns the number of edges before a slot, marks included.
    #[inline(always)]
    pub(super) fn dense_edges_before(&mut self, slot: usize) -> usize {
        let (node, bit) = place(slot);
        let after_mark = node + usize::from(!slot.is_multiple_of(EDGES_MAX));
        let marks = (Section::DensePrefix, Section::DensePrefixRanks);
        let labels = (Section::DenseLabels, Section::DenseLabelRanks);
        self.dense_rank(marks, after_mark).wrapping_add(self.dense_rank(labels, bit))
    }

    /// Returns the number of leaves before a slot, marks included.
    #[inline(always)]
    pub(super) fn dense_leaves_before(&mut self, slot: usize) -> usize {
        let edges = self.dense_edges_before(slot);
        edges.saturating_sub(self.dense_children_before(slot))
    }

    /// Returns the slot of a node's first label from bit `from` on.
    #[inline(always)]
    fn dense_label_from(&mut self, node: usize, from: usize) -> Option<usize> {
        let end = (node + 1) * FANOUT;
        let bit = self.bits(Section::DenseLabels).next_one(from, end);
        self.touch(Section::DenseLabels, from / 64 * 8, (bit - from) / 8 + 1);
        (bit < end).then(|| slot_of(bit))
    }

    #[inline(always)]
    pub(super) fn dense_first(&mut self, node: usize) -> Option<usize> {
        let number = node / EDGES_MAX;
        if self.dense_mark(number) {
            return Some(node);
        }
        self.dense_label_from(number, number * FANOUT)
    }

    #[inline(always)]
    pub(super) fn dense_after(&mut self, slot: usize) -> Option<usize> {
        // The mark shifts slots by one, so the slot's number within its node is the next label's
        // bit.
        let number = slot / EDGES_MAX;
        self.dense_label_from(number, number * FANOUT + slot % EDGES_MAX)
    }

    /// Returns the last edge before a slot, in the node whose slots precede it.
    #[inline(always)]
    pub(super) fn dense_before(&mut self, slot: usize) -> Option<usize> {
        let number = slot.checked_sub(1)? / EDGES_MAX;
        let end = number * FANOUT + (slot - 1 - number * EDGES_MAX);
        let bit = self.bits(Section::DenseLabels).last_one(number * FANOUT, end);
        self.touch(Section::DenseLabels, number * FANOUT / 8, FANOUT / 8);
        match bit {
            Some(bit) => Some(slot_of(bit)),
            None => self.dense_mark(number).then_some(number * EDGES_MAX),
        }
    }

    #[inline(always)]
    pub(super) fn dense_at_least(&mut self, node: usize, label: u8) -> Option<FoundEdge> {
        let number = node / EDGES_MAX;
        let from = number * FANOUT + usize::from(label);
        let slot = self.dense_label_from(number, from)?;
        Some(FoundEdge { slot, label: (slot - node - 1) as u8 })
    }
}
