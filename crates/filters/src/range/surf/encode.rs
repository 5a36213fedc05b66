//! Encodes the levels of a trie as bytes.
//! ```text
//! levels   0 .. cutoff     LOUDS-Dense: two 256-bit bitmaps and one bit per node
//!          cutoff ..       LOUDS-Sparse: a byte and two bits per edge
//! ```
//! Invariant: nodes, edges and leaves are written breadth-first. Each level is freed once it is
//! written.

use alloc::vec::Vec;

use crate::base::real::floor;
use crate::bits::rank_select::{BLOCK_BITS, write_ranks, write_samples};
use crate::range::surf::layout::{Counts, FANOUT, Layout, SECTIONS, Section};
use crate::range::surf::levels::Level;
use crate::range::surf::suffix::{SUFFIX_BITS_MAX, SuffixBits, SurfKind};

/// Parameters of the encoding.
pub(super) struct Shape {
    pub(super) kind: SurfKind,
    pub(super) keys: u64,
    /// The lengths of the suffixes in the levels.
    pub(super) kept: SuffixBits,
    /// The bits per key to which suffixes are shortened. None: they keep their lengths.
    pub(super) fitted: Option<f64>,
    pub(super) size_ratio: u32,
}

/// Bits of a dense node: its bitmaps and their ranks.
const DENSE_NODE_BITS: u64 = 2 * (FANOUT as u64 + FANOUT as u64 / 64 * 32) + 1;
/// Bits of a sparse edge.
const SPARSE_EDGE_BITS: u64 = 10;

/// Returns the number of dense levels: the most that are `size_ratio` times smaller than the sparse
/// levels below.
fn dense_levels(levels: &[Level], size_ratio: u32) -> usize {
    let mut sparse: u64 = levels.iter().map(|level| level.edges.len() as u64).sum();
    let (mut dense, mut cutoff) = (0u64, 0);
    for (place, level) in levels.iter().enumerate() {
        dense += level.nodes * DENSE_NODE_BITS;
        sparse -= level.edges.len() as u64;
        if u128::from(dense) * u128::from(size_ratio) <= u128::from(sparse * SPARSE_EDGE_BITS) {
            cutoff = place + 1;
        }
    }
    cutoff
}

fn count(levels: &[Level], keys: u64, dense_levels: usize) -> Counts {
    let (dense, sparse) = levels.split_at(dense_levels);
    let number = |count: u64| u32::try_from(count).expect("a builder counts edges in 32 bits");
    let edges = |levels: &[Level]| levels.iter().map(|level| level.edges.len() as u64).sum::<u64>();
    let nodes = |levels: &[Level]| levels.iter().map(|level| level.nodes).sum::<u64>();
    let first_sparse = sparse.first().map_or(0, |level| level.nodes);
    // Each edge of a dense level leads to a leaf or a node; every node but the root has such an
    // edge.
    let below_dense = (nodes(dense) + first_sparse).saturating_sub(1);
    Counts {
        keys,
        height: number(levels.len() as u64),
        dense_levels: number(dense_levels as u64),
        dense_nodes: number(nodes(dense)),
        dense_leaves: number(edges(dense).saturating_sub(below_dense)),
        sparse_first: number(first_sparse),
        sparse_nodes: number(nodes(sparse)),
        sparse_labels: number(edges(sparse)),
    }
}

/// Returns the longest suffixes that fit. (Rounding to the nearest length could let a large table
/// exceed its share. Small tables, to which Monkey gives the most bits, would then get none.)
fn fitted_suffix(shape: &Shape, counts: &Counts) -> SuffixBits {
    let Some(bits_per_key) = shape.fitted else {
        return shape.kept;
    };
    let trie_bits = counts.image_bytes(SuffixBits::default()) as f64 * 8.0;
    let left = bits_per_key - trie_bits / counts.keys.max(1) as f64;
    let most = f64::from(shape.kept.total().min(SUFFIX_BITS_MAX));
    SuffixBits::of_kind(shape.kind, floor(left).clamp(0.0, most) as u32)
}

/// Returns the image of a trie.
pub(super) fn encode(shape: &Shape, levels: Vec<Level>) -> Vec<u8> {
    let dense_levels = dense_levels(&levels, shape.size_ratio);
    encode_at(shape, levels, dense_levels)
}

/// Returns the image of a trie with `dense_levels` dense levels.
pub(super) fn encode_at(shape: &Shape, levels: Vec<Level>, dense_levels: usize) -> Vec<u8> {
    let counts = count(&levels, shape.keys, dense_levels);
    let suffix = match counts.height {
        0 => SuffixBits::default(),
        _ => fitted_suffix(shape, &counts),
    };
    let layout = Layout::new(shape.kind, counts, suffix);
    let trailer = layout.encode();
    let mut image = Vec::with_capacity(layout.trailer_at() + trailer.len());
    image.resize(layout.trailer_at(), 0);
    let mut sections = cut(&mut image, &layout);
    let mut suffixes = SuffixWriter { kept: shape.kept, to: suffix, at: 0 };
    let (mut node, mut edge) = (0, 0);
    for (place, level) in levels.into_iter().enumerate() {
        if place < dense_levels {
            node = write_dense(&level, node, &mut sections);
        } else {
            edge = write_sparse(&level, edge, &mut sections);
        }
        suffixes.write(&level, sections[Section::Suffixes as usize]);
    }
    write_tables(&mut sections);
    image.extend_from_slice(&trailer);
    image
}

/// Splits an image without its trailer into sections.
fn cut<'a>(mut image: &'a mut [u8], layout: &Layout) -> [&'a mut [u8]; SECTIONS] {
    let ends = layout.section_lens();
    ends.map(|len| image.split_off_mut(..len).expect("sections are as long as the image"))
}

#[inline(always)]
fn set(bits: &mut [u8], at: usize) {
    bits[at / 8] |= 1 << (at % 8);
}

/// Writes the nodes of a level from number `node` on. Returns the next number.
fn write_dense(level: &Level, node: usize, sections: &mut [&mut [u8]; SECTIONS]) -> usize {
    let mut next = node;
    for edge in level.edges.iter() {
        next += usize::from(edge.is_new_node());
        let node = next - 1;
        if edge.is_mark() {
            set(sections[Section::DensePrefix as usize], node);
            continue;
        }
        let at = node * FANOUT + usize::from(edge.label());
        set(sections[Section::DenseLabels as usize], at);
        if edge.has_child() {
            set(sections[Section::DenseHasChild as usize], at);
        }
    }
    next
}

/// Writes the edges of a level from number `first` on. Returns the next number.
fn write_sparse(level: &Level, first: usize, sections: &mut [&mut [u8]; SECTIONS]) -> usize {
    let mut at = first;
    let mut words = (0u8, 0u8);
    for edge in level.edges.iter() {
        sections[Section::SparseLabels as usize][at] = edge.label();
        words.0 |= u8::from(edge.has_child()) << (at % 8);
        words.1 |= u8::from(edge.is_new_node()) << (at % 8);
        if at % 8 == 7 {
            write_bits(sections, at / 8, words);
            words = (0, 0);
        }
        at += 1;
    }
    if !at.is_multiple_of(8) {
        write_bits(sections, at / 8, words);
    }
    at
}

/// Adds eight bits of S-HasChild and S-LOUDS. (Two levels may share a byte.)
#[inline(always)]
fn write_bits(sections: &mut [&mut [u8]; SECTIONS], at: usize, (has_child, louds): (u8, u8)) {
    sections[Section::SparseHasChild as usize][at] |= has_child;
    sections[Section::SparseLouds as usize][at] |= louds;
}

/// Writes the ranks and samples of the bits written.
fn write_tables(sections: &mut [&mut [u8]; SECTIONS]) {
    let tables = [
        (Section::SparseHasChild, Section::SparseChildRanks, BLOCK_BITS),
        (Section::DenseLabels, Section::DenseLabelRanks, 64),
        (Section::DenseHasChild, Section::DenseChildRanks, 64),
        (Section::DensePrefix, Section::DensePrefixRanks, 64),
    ];
    for (bits, ranks, block_bits) in tables {
        let (front, back) = sections.split_at_mut(ranks as usize);
        write_ranks(front[bits as usize], block_bits, back[0]);
    }
    let (front, back) = sections.split_at_mut(Section::LoudsSamples as usize);
    write_samples(front[Section::SparseLouds as usize], back[0]);
}

/// Writes consecutive suffixes, least significant bit first.
struct SuffixWriter {
    kept: SuffixBits,
    to: SuffixBits,
    at: usize,
}

impl SuffixWriter {
    /// Writes the suffixes of a level.
    fn write(&mut self, level: &Level, out: &mut [u8]) {
        let len = self.to.total() as usize;
        if len == 0 {
            return;
        }
        let mut words = level.suffixes.iter();
        let two_words = self.kept.total() > u32::BITS;
        while let Some(low) = words.next() {
            let high = if two_words { words.next().unwrap_or(0) } else { 0 };
            let stored = u64::from(high) << u32::BITS | u64::from(low);
            self.put(self.kept.cut(stored, self.to), len, out);
        }
    }

    #[inline(always)]
    fn put(&mut self, suffix: u64, len: usize, out: &mut [u8]) {
        let shifted = u128::from(suffix) << (self.at % 8);
        let from = self.at / 8;
        let bytes = (self.at % 8 + len).div_ceil(8);
        for (byte, more) in out[from..from + bytes].iter_mut().zip(shifted.to_le_bytes()) {
            *byte |= more;
        }
        self.at += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range::surf::levels::Edge;

    /// A level of `nodes` nodes with `edges` edges each.
    fn level(nodes: usize, edges: usize) -> Level {
        let mut level = Level::default();
        for (_, edge) in (0..nodes).flat_map(|node| (0..edges).map(move |edge| (node, edge))) {
            level.push(Edge::new(edge as u8, true, edge == 0));
        }
        level
    }

    #[test]
    fn the_cutoff_is_the_last_level_that_the_ratio_allows() {
        let levels = [level(1, 200), level(200, 200), level(40_000, 2)];
        let all = dense_levels(&levels, 0);
        assert_eq!(all, 3);
        assert_eq!(dense_levels(&levels, u32::MAX), 0);
        // 769 bits above, 1,200,000 below; then 154,569 and 800,000.
        assert_eq!(dense_levels(&levels, 1560), 1);
        assert_eq!(dense_levels(&levels, 1561), 0);
        assert_eq!(dense_levels(&levels, 5), 2);
        assert_eq!(dense_levels(&levels, 6), 1);
    }
}
