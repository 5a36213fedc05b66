//! LOUDS-Sparse: the lower levels. An edge takes a byte and two bits.
//! ```text
//! S-Labels    $ a b | r s t | x | ...  $: a key ends at this node. Stored as 0xff, first in its
//!                                      node, and never alone there
//! S-HasChild  0 1 0 | 1 1 0 | 0         the edge leads to a node; otherwise it is a leaf
//! S-LOUDS     1 0 0 | 1 0 0 | 1         the edge is the first of its node
//! slot        0 1 2   3 4 5   6
//! ```
//! Invariant: the labels of a node ascend after its mark. So a first label 0xff is a mark if and
//! only if a second edge follows.

use crate::base::filter::Trace;
use crate::bits::rank_select::{BLOCK_BITS, SAMPLE_ONES, Selected};
use crate::bits::simd;
use crate::range::surf::layout::{EDGES_MAX, Section};
use crate::range::surf::trie::{FoundEdge, SurfEffort, Trie};

/// The label of a key that ends at a node.
const MARK: u8 = 0xff;
/// The number of labels that are compared at once.
const LANES: usize = 16;
/// The maximum number of words between two samples of S-LOUDS, including partial ones.
const SAMPLE_WORDS_MAX: usize = SAMPLE_ONES * EDGES_MAX / 64 + 2;
/// With coarse samples: one in this many is used.
const COARSE: usize = 8;

impl<T: Trace, const EFFORT: u8> Trie<'_, T, EFFORT> {
    /// Returns the first slot of a sparse node, given its number among sparse nodes.
    #[inline(always)]
    pub(super) fn sparse_node(&mut self, number: usize) -> Option<usize> {
        if number >= self.layout.counts.sparse_nodes as usize {
            return None;
        }
        let samples = self.section(Section::LoudsSamples);
        let selected = Selected::new(self.bits(Section::SparseLouds), samples);
        let slot = if EFFORT >= SurfEffort::Select as u8 {
            selected.select::<1>(number, SAMPLE_WORDS_MAX)
        } else {
            selected.select::<COARSE>(number, SAMPLE_WORDS_MAX)
        };
        self.touch(Section::LoudsSamples, number / SAMPLE_ONES * 4, 4);
        self.touch(Section::SparseLouds, slot.unwrap_or(0) / 64 * 8, 8);
        slot.filter(|&slot| slot < self.sparse_len())
    }

    #[inline(always)]
    fn sparse_len(&self) -> usize {
        self.layout.counts.sparse_labels as usize
    }

    /// Returns the slot after the node that contains `slot`.
    #[inline(always)]
    pub(super) fn sparse_end(&mut self, slot: usize) -> usize {
        // Limits the search, as damaged bytes may have endless nodes.
        let most = self.sparse_len().min(slot + EDGES_MAX);
        let end = self.bits(Section::SparseLouds).next_one(slot + 1, most);
        self.touch(Section::SparseLouds, slot / 8, (end.saturating_sub(slot)) / 8 + 1);
        end
    }

    #[inline(always)]
    fn sparse_byte(&mut self, slot: usize) -> u8 {
        self.touch(Section::SparseLabels, slot, 1);
        self.section(Section::SparseLabels).get(slot).copied().unwrap_or(0)
    }

    /// Whether a key ends at a node, which ends at slot `end`.
    #[inline(always)]
    pub(super) fn sparse_mark(&mut self, node: usize, end: usize) -> bool {
        self.sparse_byte(node) == MARK && end > node + 1
    }

    #[inline(always)]
    pub(super) fn sparse_label(&mut self, slot: usize) -> Option<u8> {
        let byte = self.sparse_byte(slot);
        let is_mark = byte == MARK
            && self.bits(Section::SparseLouds).get(slot)
            && self.sparse_after(slot).is_some();
        (!is_mark).then_some(byte)
    }

    #[inline(always)]
    pub(super) fn sparse_has_child(&mut self, slot: usize) -> bool {
        self.touch(Section::SparseHasChild, slot / 64 * 8, 8);
        self.bits(Section::SparseHasChild).get(slot)
    }

    /// Returns the number of sparse edges with children before a slot.
    #[inline(always)]
    pub(super) fn sparse_children_before(&mut self, slot: usize) -> usize {
        self.touch(Section::SparseChildRanks, slot / 512 * 4, 4);
        self.touch(Section::SparseHasChild, slot / 512 * 64, slot % 512 / 8 + 1);
        self.ranked(Section::SparseHasChild, Section::SparseChildRanks).rank_in_block(slot)
    }

    /// Returns the number of the leaf at a slot.
    #[inline(always)]
    pub(super) fn sparse_leaf(&mut self, slot: usize) -> usize {
        let before = slot.saturating_sub(self.sparse_children_before(slot));
        (self.layout.counts.dense_leaves as usize).wrapping_add(before)
    }

    /// Prefetches a node, its edge with this label, and the bits that locate the node. Nodes
    /// between two samples are assumed to be of equal size.
    #[inline(always)]
    pub(super) fn load_about(&mut self, number: usize, label: u8) {
        if EFFORT < SurfEffort::Prefetch as u8 {
            return;
        }
        let samples = self.section(Section::LoudsSamples);
        let selected = Selected::new(self.bits(Section::SparseLouds), samples);
        if let Some((node, width)) = selected.estimate_select(number) {
            self.prefetch(Section::SparseLouds, node / 8);
            self.load_edge((node, node.saturating_add(width)), label);
        }
    }

    /// Prefetches a node's edge with this label, assuming evenly spread labels. It covers the
    /// edge's byte and bit, its child's rank, and the suffix, as most edges are leaves. The suffix
    /// is located approximately, by the ranks of two blocks without the bits between them.
    #[inline(always)]
    fn load_edge(&mut self, (node, end): (usize, usize), label: u8) {
        const EITHER_SIDE: usize = 16;
        let before = (end.saturating_sub(node) as u64 * u64::from(label)) >> u8::BITS;
        let slot = node.saturating_add(before as usize);
        self.prefetch(Section::SparseLabels, slot);
        self.prefetch(Section::SparseHasChild, slot / 8);
        self.prefetch(Section::SparseChildRanks, slot / BLOCK_BITS * 4);
        let len = self.layout.suffix.total() as usize;
        if len == 0 {
            return;
        }
        let ranked = self.ranked(Section::SparseHasChild, Section::SparseChildRanks);
        let before = slot.saturating_sub(ranked.estimate_rank(slot));
        let leaf = u64::from(self.layout.counts.dense_leaves) + before as u64;
        let at = (leaf * len as u64 / 8) as usize;
        self.prefetch(Section::Suffixes, at.saturating_sub(EITHER_SIDE));
        self.prefetch(Section::Suffixes, at.saturating_add(EITHER_SIDE));
    }

    #[inline(always)]
    pub(super) fn sparse_after(&mut self, slot: usize) -> Option<usize> {
        self.touch(Section::SparseLouds, slot / 8, 2);
        let next = slot + 1;
        let same_node = next < self.sparse_len() && !self.bits(Section::SparseLouds).get(next);
        same_node.then_some(next)
    }

    #[inline(always)]
    pub(super) fn sparse_before(&mut self, slot: usize) -> Option<usize> {
        self.touch(Section::SparseLouds, slot / 8, 1);
        if self.bits(Section::SparseLouds).get(slot) { None } else { slot.checked_sub(1) }
    }

    /// Returns the edge of a node with a label.
    #[inline(always)]
    pub(super) fn sparse_find(&mut self, node: usize, label: u8) -> Option<usize> {
        let end = self.sparse_end(node);
        if EFFORT >= SurfEffort::Prefetch as u8 {
            self.load_edge((node, end), label);
        }
        let from = node + usize::from(self.sparse_mark(node, end));
        self.touch(Section::SparseLabels, from, end.saturating_sub(from));
        if EFFORT >= SurfEffort::Simd as u8 {
            self.search(from, end, |lanes| simd::equal(lanes, label))
        } else {
            let labels = self.section(Section::SparseLabels).get(from..end)?;
            labels.iter().position(|&other| other == label).map(|place| from + place)
        }
    }

    /// Returns the first edge of a node whose label is at least `label`.
    #[inline(always)]
    pub(super) fn sparse_at_least(&mut self, node: usize, label: u8) -> Option<FoundEdge> {
        let end = self.sparse_end(node);
        let from = node + usize::from(self.sparse_mark(node, end));
        self.touch(Section::SparseLabels, from, end.saturating_sub(from));
        let slot = self.search(from, end, |lanes| simd::at_least(lanes, label))?;
        Some(FoundEdge { slot, label: self.sparse_byte(slot) })
    }

    /// Returns the first slot in `from..end` that `wanted` finds; it examines sixteen labels at
    /// once.
    #[inline(always)]
    fn search(
        &self,
        from: usize,
        end: usize,
        wanted: impl Fn(&[u8; LANES]) -> u32,
    ) -> Option<usize> {
        // The load may reach into the suffixes and the trailer, which is longer than a load.
        let labels = self.bytes.get(self.layout.range(Section::SparseLabels).start..)?;
        let mut at = from;
        while at < end {
            let lanes = labels.get(at..)?.first_chunk::<LANES>()?;
            let found = wanted(lanes);
            if found != 0 {
                let slot = at + found.trailing_zeros() as usize;
                return (slot < end).then_some(slot);
            }
            at += LANES;
        }
        None
    }
}
