//! A trie under construction: the edges of each level's nodes, in key order.
//! ```text
//! level 0   f(new node, child) s t(child)
//! level 1   $(new node, mark) a(child) | o(new node) r(child)
//! edge      label, and flags: first of its node, leads to a node, marks a key that ends
//!           here
//! suffixes  of edges that end in a key, one or two words each
//! ```
//! Keys come sorted, so the order within a level is breadth-first. Chunks are never moved, so
//! growing needs no copies.
//!
//! Invariant: a level's edges are in key order.

use alloc::vec::Vec;

/// An edge of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Edge(u16);

impl Edge {
    const HAS_CHILD: u16 = 1 << 8;
    const NEW_NODE: u16 = 1 << 9;
    const MARK: u16 = 1 << 10;

    /// The label of a key that ends at a node. It comes first there, and never alone.
    const MARK_LABEL: u8 = 0xff;

    #[inline(always)]
    pub(super) fn new(label: u8, has_child: bool, new_node: bool) -> Self {
        let child = if has_child { Self::HAS_CHILD } else { 0 };
        let node = if new_node { Self::NEW_NODE } else { 0 };
        Edge(u16::from(label) | child | node)
    }

    /// The mark of a key that ends at a new node.
    pub(super) fn mark() -> Self {
        Edge(u16::from(Self::MARK_LABEL) | Self::NEW_NODE | Self::MARK)
    }

    #[inline(always)]
    pub(super) fn label(self) -> u8 {
        self.0 as u8
    }

    #[inline(always)]
    pub(super) fn has_child(self) -> bool {
        self.0 & Self::HAS_CHILD != 0
    }

    #[inline(always)]
    pub(super) fn is_new_node(self) -> bool {
        self.0 & Self::NEW_NODE != 0
    }

    pub(super) fn is_mark(self) -> bool {
        self.0 & Self::MARK != 0
    }
}

/// A list that grows in chunks.
pub(super) struct Chunks<T> {
    chunks: Vec<Vec<T>>,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Chunks { chunks: Vec::new() }
    }
}

impl<T: Copy> Chunks<T> {
    const CHUNK_LEN: usize = 4096;

    #[inline(always)]
    pub(super) fn push(&mut self, value: T) {
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < Self::CHUNK_LEN => chunk.push(value),
            _ => self.begin_chunk(value),
        }
    }

    #[cold]
    fn begin_chunk(&mut self, value: T) {
        // The first chunk grows as needed: tries of long keys have many levels with few edges.
        let capacity = if self.chunks.is_empty() { 0 } else { Self::CHUNK_LEN };
        let mut chunk = Vec::with_capacity(capacity);
        chunk.push(value);
        self.chunks.push(chunk);
    }

    pub(super) fn len(&self) -> usize {
        let full = self.chunks.len().saturating_sub(1) * Self::CHUNK_LEN;
        full + self.chunks.last().map_or(0, Vec::len)
    }

    #[inline(always)]
    pub(super) fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.chunks.iter().flatten().copied()
    }

    fn heap_bytes(&self) -> usize {
        let items: usize = self.chunks.iter().map(Vec::capacity).sum();
        items * size_of::<T>() + self.chunks.capacity() * size_of::<Vec<T>>()
    }
}

/// A level of the trie.
#[derive(Default)]
pub(super) struct Level {
    pub(super) edges: Chunks<Edge>,
    pub(super) suffixes: Chunks<u32>,
    pub(super) nodes: u64,
}

impl Level {
    #[inline(always)]
    pub(super) fn push(&mut self, edge: Edge) {
        self.edges.push(edge);
        self.nodes += u64::from(edge.is_new_node());
    }

    /// The heap memory of the edges and of the suffixes, in bytes.
    pub(super) fn heap_bytes(&self) -> (usize, usize) {
        (self.edges.heap_bytes(), self.suffixes.heap_bytes())
    }
}
