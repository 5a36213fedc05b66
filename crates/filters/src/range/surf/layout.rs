//! The layout of a SuRF's bytes.
//! ```text
//! bytes  | S-HasChild | S-LOUDS | D-Labels | D-HasChild | D-IsPrefixKey |   words of eight bytes
//!        | ranks of S-HasChild, D-Labels, D-HasChild, D-IsPrefixKey | samples of S-LOUDS |
//!                                                                           u32 each
//!        | S-Labels | suffixes | trailer |                                  bytes, bits, 48 bytes
//! ```
//! S-HasChild comes first, in whole cache lines, so a rank reads one line of it if the bytes are
//! aligned.
//!
//! Invariant: a `Layout` matches the length of its bytes, and its counts are consistent.

use alloc::vec::Vec;
use core::ops::Range;

use crate::base::hash::checksum;
use crate::base::wire::{Corrupt, Reader, Signature, Writer};
use crate::bits::rank_select::{BLOCK_BITS, ranks_len, samples_len};
use crate::range::surf::suffix::{SuffixBits, SurfKind};

/// The number of labels that a node can have.
pub(super) const FANOUT: usize = 256;
/// The maximum number of edges of a node: all labels, and the mark of a key that ends there.
pub(super) const EDGES_MAX: usize = FANOUT + 1;

const VERSION: u8 = 1;
/// u64 keys; u32 height, dense levels, dense nodes, dense leaves, nodes of the first sparse level,
/// sparse nodes, sparse labels; u8 hash bits, u8 real bits, u16 zero; u32 checksum; u16 kind, u8
/// version, u8 zero.
pub(super) const TRAILER_BYTES: usize = 8 + 7 * 4 + 4 + 4 + 4;
const CHECKSUM_AT: usize = TRAILER_BYTES - 8;
const KIND_AT: usize = TRAILER_BYTES - 4;
const _: () = assert!(TRAILER_BYTES == 48);

/// The sections of the bytes, in order.
#[derive(Clone, Copy)]
pub(super) enum Section {
    SparseHasChild,
    SparseLouds,
    DenseLabels,
    DenseHasChild,
    DensePrefix,
    SparseChildRanks,
    DenseLabelRanks,
    DenseChildRanks,
    DensePrefixRanks,
    LoudsSamples,
    SparseLabels,
    Suffixes,
}

pub(super) const SECTIONS: usize = Section::Suffixes as usize + 1;

/// The sizes of a trie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// The number of keys, which is the number of leaves.
    pub(super) keys: u64,
    /// The number of levels. Zero: there is no key, or only the empty one, or nothing is known of
    /// the keys.
    pub(super) height: u32,
    /// The number of upper levels that are LOUDS-Dense.
    pub(super) dense_levels: u32,
    pub(super) dense_nodes: u32,
    pub(super) dense_leaves: u32,
    /// The number of nodes in the first LOUDS-Sparse level.
    pub(super) sparse_first: u32,
    pub(super) sparse_nodes: u32,
    /// The number of edges of sparse nodes: labels and marks.
    pub(super) sparse_labels: u32,
}

impl Counts {
    /// Returns the size of each section in bytes.
    fn section_bytes(&self, suffix: SuffixBits) -> [u64; SECTIONS] {
        let words = |bits: u64| bits.div_ceil(64) * 8;
        let ranks = |bits: u64, block: usize| match bits {
            0 => 0,
            bits => 4 * ranks_len(bits as usize, block) as u64,
        };
        let labels = u64::from(self.sparse_labels);
        let nodes = u64::from(self.dense_nodes);
        let bitmaps = nodes * FANOUT as u64;
        [
            labels.div_ceil(BLOCK_BITS as u64) * BLOCK_BITS as u64 / 8,
            words(labels),
            words(bitmaps),
            words(bitmaps),
            words(nodes),
            ranks(labels, BLOCK_BITS),
            ranks(bitmaps, 64),
            ranks(bitmaps, 64),
            ranks(nodes, 64),
            4 * samples_len(self.sparse_nodes as usize) as u64,
            labels,
            (self.leaves() * u64::from(suffix.total())).div_ceil(8),
        ]
    }

    /// Returns the size of the whole image in bytes.
    pub(super) fn image_bytes(&self, suffix: SuffixBits) -> u64 {
        self.section_bytes(suffix).iter().sum::<u64>() + TRAILER_BYTES as u64
    }

    /// The number of suffixes.
    fn leaves(&self) -> u64 {
        if self.height == 0 { 0 } else { self.keys }
    }

    /// Checks whether the counts are consistent. None: they are.
    fn problem(&self) -> Option<&'static str> {
        if self.height == 0 {
            let nothing = Counts { keys: self.keys, ..Counts::default() };
            return (*self != nothing).then_some("a trie without levels, without nodes");
        }
        let sparse_levels = self.height.checked_sub(self.dense_levels);
        let Some(sparse_levels) = sparse_levels else {
            return Some("no more dense levels than levels");
        };
        let nodes_fit = |levels: u32, nodes: u32| nodes >= levels && (nodes == 0) == (levels == 0);
        if !nodes_fit(self.dense_levels, self.dense_nodes)
            || !nodes_fit(sparse_levels, self.sparse_nodes)
        {
            return Some("a node for each level at least");
        }
        let first_fits = match (self.dense_levels, sparse_levels) {
            (0, _) => self.sparse_first == 1,
            (_, 0) => self.sparse_first == 0,
            _ => (1..=self.sparse_nodes).contains(&self.sparse_first),
        };
        if !first_fits || self.sparse_nodes > self.sparse_labels {
            return Some("as many nodes as edges lead to");
        }
        let inner = u64::from(self.sparse_nodes) - u64::from(self.sparse_first);
        let leaves = u64::from(self.dense_leaves) + u64::from(self.sparse_labels);
        let dense_edges = u64::from(self.dense_nodes) * EDGES_MAX as u64;
        if u64::from(self.dense_leaves) > dense_edges
            || self.keys.checked_add(inner) != Some(leaves)
        {
            return Some("as many keys as leaves");
        }
        None
    }
}

/// The counts of a trie, the lengths of its suffixes, and the ranges of its sections.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) kind: SurfKind,
    pub(super) counts: Counts,
    pub(super) suffix: SuffixBits,
    /// The start of each section, and the end of the last one.
    at: [usize; SECTIONS + 1],
}

impl Layout {
    /// Requires: the image fits into memory.
    pub(super) fn new(kind: SurfKind, counts: Counts, suffix: SuffixBits) -> Self {
        let mut at = [0; SECTIONS + 1];
        for (place, len) in counts.section_bytes(suffix).into_iter().enumerate() {
            at[place + 1] = at[place] + usize::try_from(len).expect("it fits into memory");
        }
        Layout { kind, counts, suffix, at }
    }

    /// Returns the range of a section.
    #[inline(always)]
    pub(super) fn range(&self, section: Section) -> Range<usize> {
        self.at[section as usize]..self.at[section as usize + 1]
    }

    /// Returns the length of each section.
    pub(super) fn section_lens(&self) -> [usize; SECTIONS] {
        core::array::from_fn(|place| self.at[place + 1] - self.at[place])
    }

    /// Returns the start of the trailer.
    pub(super) fn trailer_at(&self) -> usize {
        self.at[SECTIONS]
    }

    /// Returns the trailer's bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let counts = &self.counts;
        let mut out = Writer::new();
        out.u64(counts.keys);
        out.u32(counts.height);
        out.u32(counts.dense_levels);
        out.u32(counts.dense_nodes);
        out.u32(counts.dense_leaves);
        out.u32(counts.sparse_first);
        out.u32(counts.sparse_nodes);
        out.u32(counts.sparse_labels);
        out.u8(self.suffix.hash as u8);
        out.u8(self.suffix.real as u8);
        out.u16(0);
        let end = Signature { tag: self.kind.tag(), version: VERSION, parameter: 0 }.encode();
        out.u32(trailer_checksum(out.as_slice(), &end));
        out.bytes(&end);
        out.finish()
    }

    /// Reads and checks the trailer of an image.
    pub(super) fn decode(image: &[u8]) -> Result<Layout, Corrupt> {
        let at = image.len().checked_sub(TRAILER_BYTES);
        let at = at.ok_or(Corrupt { at: 0, what: "the trailer of a SuRF" })?;
        let wrong = |offset: usize, what| Corrupt { at: at + offset, what };
        let trailer = &image[at..];
        let kind = decode_kind(&trailer[KIND_AT..]).map_err(|what| wrong(KIND_AT, what))?;
        let mut input = Reader::new(&trailer[CHECKSUM_AT..]);
        if input.u32()? != trailer_checksum(&trailer[..CHECKSUM_AT], &trailer[KIND_AT..]) {
            return Err(wrong(0, "a trailer that has its checksum"));
        }
        let mut input = Reader::new(trailer);
        let counts = Counts {
            keys: input.u64()?,
            height: input.u32()?,
            dense_levels: input.u32()?,
            dense_nodes: input.u32()?,
            dense_leaves: input.u32()?,
            sparse_first: input.u32()?,
            sparse_nodes: input.u32()?,
            sparse_labels: input.u32()?,
        };
        let suffix = SuffixBits { hash: u32::from(input.u8()?), real: u32::from(input.u8()?) };
        if input.u16()? != 0 || !suffix.fit(kind) {
            return Err(wrong(0, "suffixes as the kind of SuRF has them"));
        }
        if let Some(what) = counts.problem() {
            return Err(wrong(0, what));
        }
        if counts.image_bytes(suffix) != image.len() as u64 {
            return Err(wrong(0, "a SuRF as long as it has to be"));
        }
        Ok(Layout::new(kind, counts, suffix))
    }
}

#[cfg(test)]
impl Layout {
    /// Returns the trailer of any counts, even inconsistent ones.
    pub(super) fn trailer_of(kind: SurfKind, counts: Counts, suffix: SuffixBits) -> Vec<u8> {
        Layout { kind, counts, suffix, at: [0; SECTIONS + 1] }.encode()
    }
}

#[cfg(test)]
impl Counts {
    /// Returns the size of the image if the counts are consistent and it is small.
    pub(super) fn image_len_if_small(&self, suffix: SuffixBits) -> Option<usize> {
        let len = self.problem().is_none().then(|| self.image_bytes(suffix))?;
        usize::try_from(len).ok().filter(|&len| len < 100_000)
    }
}

/// The checksum of a trailer's bytes before it and behind it.
fn trailer_checksum(before: &[u8], behind: &[u8]) -> u32 {
    checksum(&[before, behind].concat()) as u32
}

/// Decodes the last four bytes. Error: the kind is not a SuRF, or the version is unknown.
fn decode_kind(bytes: &[u8]) -> Result<SurfKind, &'static str> {
    let &[low, high, version, zero] = bytes else {
        return Err("the end of a trailer");
    };
    let kind = SurfKind::from_tag(u16::from_le_bytes([low, high]));
    let kind = kind.ok_or("the tag of a SuRF")?;
    match (version, zero) {
        (VERSION, 0) => Ok(kind),
        _ => Err("a version of SuRF that is known"),
    }
}
