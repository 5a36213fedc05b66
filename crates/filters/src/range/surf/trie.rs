//! Navigates the trie in its bytes, in both encodings: nodes, edges, and where edges lead.
//! ```text
//! level l   dense: slot = 257 · node + (0: mark, 1 + label: edge)
//!           sparse: slot = index of the edge
//! node      its first slot
//! child     the node that an edge leads to, breadth-first:
//!           number = (edges with children before it) + 1
//! boundary  of a level: the slot at which the nodes from a number on begin
//! ```
//! Invariant: sections may hold any bytes. Answers are then wrong, but every position is checked
//! before it is read, and each step goes one level down.

use crate::base::filter::{Trace, prefetch_traced};
use crate::bits::rank_select::{Bits, Ranked};
use crate::range::surf::layout::{EDGES_MAX, Layout, Section};

/// All optimizations: the default.
pub(super) const FULL: u8 = SurfEffort::Prefetch as u8;

/// The optimizations of a search; each step includes the previous ones. (SuRF, Figure 7; for
/// measurements.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum SurfEffort {
    /// Ranks per block of 512 bits, a sample of every 512th one, labels compared one by one.
    Plain,
    /// In LOUDS-Dense, ranks per word.
    Rank,
    /// A sample of every 64th one.
    Select,
    /// Compares sixteen labels at once.
    Simd,
    /// Prefetches what is certainly read next.
    Prefetch,
}

impl SurfEffort {
    /// All steps, ascending.
    pub const ALL: [SurfEffort; 5] = [
        SurfEffort::Plain,
        SurfEffort::Rank,
        SurfEffort::Select,
        SurfEffort::Simd,
        SurfEffort::Prefetch,
    ];
}

/// An edge of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoundEdge {
    pub(super) slot: usize,
    pub(super) label: u8,
}

/// A view of an image's trie.
#[derive(Clone, Copy)]
pub(super) struct Trie<'a, T, const EFFORT: u8> {
    pub(super) bytes: &'a [u8],
    pub(super) layout: &'a Layout,
    /// Observes which memory is read.
    pub(super) trace: T,
}

impl<'a, T: Trace, const EFFORT: u8> Trie<'a, T, EFFORT> {
    /// Requires: `layout` was read from `bytes`.
    #[inline(always)]
    pub(super) fn new(bytes: &'a [u8], layout: &'a Layout, trace: T) -> Self {
        Trie { bytes, layout, trace }
    }

    #[inline(always)]
    pub(super) fn section(&self, section: Section) -> &'a [u8] {
        &self.bytes[self.layout.range(section)]
    }

    #[inline(always)]
    pub(super) fn bits(&self, section: Section) -> Bits<'a> {
        Bits::new(self.section(section))
    }

    #[inline(always)]
    pub(super) fn ranked(&self, bits: Section, ranks: Section) -> Ranked<'a> {
        Ranked::new(self.section(bits), self.section(ranks))
    }

    #[inline(always)]
    pub(super) fn height(&self) -> usize {
        self.layout.counts.height as usize
    }

    #[inline(always)]
    pub(super) fn is_dense(&self, level: usize) -> bool {
        level < self.layout.counts.dense_levels as usize
    }

    /// Reports a read of `len` bytes of a section to the trace.
    #[inline(always)]
    pub(super) fn touch(&mut self, section: Section, at: usize, len: usize) {
        // With damaged bytes, the position may be anywhere.
        let start = self.bytes.as_ptr() as usize + self.layout.range(section).start;
        self.trace.touch(start.wrapping_add(at), len);
    }

    /// Prefetches a byte of a section.
    #[inline(always)]
    pub(super) fn prefetch(&mut self, section: Section, at: usize) {
        prefetch_traced(self.section(section), at, &mut self.trace);
    }

    /// Returns the root. None: there is none.
    #[inline(always)]
    pub(super) fn root(&mut self) -> Option<usize> {
        self.node(0, 0)
    }

    /// Returns the first slot of a node on a level, given its number in the whole trie. None: the
    /// level has no such node.
    #[inline(always)]
    pub(super) fn node(&mut self, level: usize, number: usize) -> Option<usize> {
        let counts = &self.layout.counts;
        if level >= self.height() {
            return None;
        }
        match number.checked_sub(counts.dense_nodes as usize) {
            Some(number) if !self.is_dense(level) => self.sparse_node(number),
            None if self.is_dense(level) => Some(number * EDGES_MAX),
            _ => None,
        }
    }

    /// Same as `node`, or the end of the level if the number is that of the next level's first
    /// node.
    #[inline(always)]
    pub(super) fn boundary(&mut self, level: usize, number: usize) -> usize {
        let counts = &self.layout.counts;
        let dense_nodes = counts.dense_nodes as usize;
        if self.is_dense(level) {
            return number.min(dense_nodes) * EDGES_MAX;
        }
        let node = self.sparse_node(number.saturating_sub(dense_nodes));
        node.unwrap_or(counts.sparse_labels as usize)
    }

    /// Returns the number of edges with children before a slot, in its encoding.
    #[inline(always)]
    pub(super) fn children_before(&mut self, level: usize, slot: usize) -> usize {
        if self.is_dense(level) {
            self.dense_children_before(slot)
        } else {
            self.sparse_children_before(slot)
        }
    }

    /// Returns the number of the node that an edge leads to, given the number of edges with
    /// children before it. For a leaf, that of the next edge with a child.
    #[inline(always)]
    pub(super) fn number_below(&self, level: usize, children: usize) -> usize {
        let counts = &self.layout.counts;
        if self.is_dense(level) {
            children.wrapping_add(1)
        } else {
            let first = (counts.dense_nodes as usize).wrapping_add(counts.sparse_first as usize);
            first.wrapping_add(children)
        }
    }

    /// Returns the node that an edge leads to. Requires: it has a child.
    #[inline(always)]
    pub(super) fn child(&mut self, level: usize, slot: usize) -> Option<usize> {
        let children = self.children_before(level, slot);
        self.node(level + 1, self.number_below(level, children))
    }

    /// Whether an edge leads to a node. False: it is a leaf.
    #[inline(always)]
    pub(super) fn has_child(&mut self, level: usize, slot: usize) -> bool {
        if self.is_dense(level) { self.dense_has_child(slot) } else { self.sparse_has_child(slot) }
    }

    /// Returns the number of leaves before a slot, in its encoding. `children`: the edges with
    /// children before it.
    #[inline(always)]
    pub(super) fn leaves_before(&mut self, level: usize, slot: usize, children: usize) -> usize {
        let edges = if self.is_dense(level) { self.dense_edges_before(slot) } else { slot };
        edges.saturating_sub(children)
    }

    /// Returns the first slot of a node: its mark, or its smallest label.
    #[inline(always)]
    pub(super) fn first(&mut self, level: usize, node: usize) -> Option<usize> {
        if self.is_dense(level) { self.dense_first(node) } else { Some(node) }
    }

    /// Returns the last slot of a node.
    #[inline(always)]
    pub(super) fn last(&mut self, level: usize, node: usize) -> Option<usize> {
        if self.is_dense(level) {
            self.dense_before(node + EDGES_MAX)
        } else {
            Some(self.sparse_end(node).saturating_sub(1))
        }
    }

    /// Returns the next edge of the same node.
    #[inline(always)]
    pub(super) fn after(&mut self, level: usize, slot: usize) -> Option<usize> {
        if self.is_dense(level) { self.dense_after(slot) } else { self.sparse_after(slot) }
    }

    /// Returns the previous edge of the same node.
    #[inline(always)]
    pub(super) fn before(&mut self, level: usize, slot: usize) -> Option<usize> {
        if self.is_dense(level) {
            if slot.is_multiple_of(EDGES_MAX) { None } else { self.dense_before(slot) }
        } else {
            self.sparse_before(slot)
        }
    }

    /// Returns the slot after the node that contains `slot`.
    #[inline(always)]
    pub(super) fn end_of(&mut self, level: usize, slot: usize) -> usize {
        if self.is_dense(level) {
            (slot / EDGES_MAX + 1) * EDGES_MAX
        } else {
            self.sparse_end(slot)
        }
    }

    /// Returns the first edge of a node whose label is at least `label`.
    #[inline(always)]
    pub(super) fn at_least(&mut self, level: usize, node: usize, label: u8) -> Option<FoundEdge> {
        if self.is_dense(level) {
            self.dense_at_least(node, label)
        } else {
            self.sparse_at_least(node, label)
        }
    }

    /// Returns the label of an edge. None: it marks a key that ends at its node.
    #[inline(always)]
    pub(super) fn label(&mut self, level: usize, slot: usize) -> Option<u8> {
        if self.is_dense(level) {
            (slot % EDGES_MAX).checked_sub(1).map(|label| label as u8)
        } else {
            self.sparse_label(slot)
        }
    }

    /// Returns the suffix of the leaf at a slot.
    #[inline(always)]
    pub(super) fn suffix(&mut self, level: usize, slot: usize) -> u64 {
        if self.layout.suffix.total() == 0 {
            return 0;
        }
        let leaf = self.leaf_at(self.is_dense(level), slot);
        self.suffix_of(leaf)
    }

    /// Returns the suffix of a leaf, given its number.
    #[inline(always)]
    pub(super) fn suffix_of(&mut self, leaf: usize) -> u64 {
        let len = self.layout.suffix.total() as usize;
        // On 32-bit machines the number of bits may exceed a word.
        let bit = leaf as u64 * len as u64;
        let (byte, bit) = ((bit / 8) as usize, (bit % 8) as usize);
        // The load may reach into the trailer, which is longer than a load.
        let from = self.layout.range(Section::Suffixes).start.wrapping_add(byte);
        self.touch(Section::Suffixes, byte, (bit + len).div_ceil(8));
        let chunk = self.bytes.get(from..).and_then(|bytes| bytes.first_chunk::<16>());
        let word = chunk.map_or(0, |chunk| u128::from_le_bytes(*chunk)) >> bit;
        word as u64 & (u64::MAX >> (64 - len))
    }
}
