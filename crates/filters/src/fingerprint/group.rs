//! A group of the base: consecutive blocks with one kind of fingerprint, behind a common header.
//! ```text
//! u32: prefix bits (19), whether keys have hashes, blocks - 1 (4), kind (3),
//!      bits of an offset - 1 (5)
//! spline           its model
//! all but spline   u8: bits of a head - 1
//! hash             layout of positions in blocks
//! coded            u32: offset of its classes in the arena, in units of 8 bytes; u8: spare bits;
//!                  u8: unit, plus 128 if keys are aligned (`alignment.rs`)
//! all but spline   heads of blocks 1..: the first bits of their first keys after the prefix
//! offsets of blocks 1.. from block 0 in bytes; coded: also the end of the last block
//! zeros up to a whole byte
//! block 0, block 1, ...
//! ```
//! A group begins at a multiple of 8 bytes. Invariant: a block's head is a prefix of its first key,
//! and above the last key of the previous block.

use alloc::vec::Vec;

use super::coded::classes::{CLASS_BYTES, ClassBytes};
use super::coded::{CodedBlock, DROPPED_MAX, Shared};
use super::hashes::bytes_of;
use super::spline::{LAYOUT_BYTES, Layout, MODEL_BYTES, Model};
use crate::bits::packed::{BitWriter, LEN_MAX, load, load_or_zero, top};

/// The maximum number of blocks in a group.
pub const BLOCKS_MAX: usize = 16;
/// The maximum number of bits in a head.
pub const HEAD_BITS_MAX: usize = LEN_MAX;
/// Bytes of a group before its model, or before the bits of a head.
const HEADER_BYTES: usize = 4;
/// The header's bit offsets: whether there are hashes, the number of blocks, the kind, the bits of
/// an offset.
const HASHES_AT: usize = 19;
const BLOCKS_AT: usize = 20;
const KIND_AT: usize = 24;
const OFFSET_AT: usize = 27;
/// Bytes of all kinds but splines before the fields of the kind.
const LEAD_BYTES: usize = HEADER_BYTES + 1;
/// Bytes that a search loads from the heads: up to the last head, plus a word.
const HEADS_BYTES: usize = ((BLOCKS_MAX - 2) * HEAD_BITS_MAX / 8 + 1).next_power_of_two() + 8;
/// Bytes of the classes' offset, and those with spare bits and unit.
const CLASSES_AT_BYTES: usize = size_of::<u32>();
const CODED_BYTES: usize = CLASSES_AT_BYTES + 2;
/// The flag of aligned keys, in the byte of the unit.
const ALIGNED: u8 = 1 << 7;
const _: () = assert!(DROPPED_MAX < ALIGNED as u32);
/// Groups begin at multiples of this, in bytes.
pub const GROUP_ALIGN: usize = 8;
/// The last block of a group begins below this offset.
pub const OFFSETS_END: usize = 1 << 24;

/// The kind of fingerprint in a group's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Prefixes that tell a key from its neighbours.
    Cell,
    /// Numbers with a resolution that follows the gaps between keys.
    Gap,
    /// Positions on a line.
    Spline,
    /// Positions by hash: only points are told apart.
    Hash,
    /// As `Gap`, with exponents coded by frequency.
    Coded,
}

impl Kind {
    fn tag(self) -> u32 {
        match self {
            Kind::Cell => 0,
            Kind::Gap => 1,
            Kind::Spline => 2,
            Kind::Hash => 3,
            Kind::Coded => 4,
        }
    }

    #[inline(always)]
    fn from_tag(tag: u32) -> Kind {
        match tag & 7 {
            0 => Kind::Cell,
            1 => Kind::Gap,
            2 => Kind::Spline,
            3 => Kind::Hash,
            _ => Kind::Coded,
        }
    }
}

/// The part of a group's header before the offsets.
pub enum Lead<'a> {
    /// The heads of blocks 1.., of which `bits` bits are stored.
    Heads {
        /// The fields before the heads.
        first: First,
        /// The first view of each block but the first.
        views: &'a [u64],
        /// The stored bits of each head.
        bits: usize,
    },
    /// The line through the positions of all blocks.
    Model(&'a Model),
}

/// The fields before the heads.
#[derive(Clone, Copy)]
pub enum First {
    /// Nothing.
    Nothing,
    /// The layout of hashed blocks.
    Layout(Layout),
    /// What coded blocks share. The offset of their classes in the arena is filled in later.
    Coded(Shared),
}

impl First {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            First::Nothing => {}
            First::Layout(layout) => layout.write(out),
            First::Coded(shared) => {
                let aligned = if shared.is_aligned { ALIGNED } else { 0 };
                out.extend_from_slice(&[0; CLASSES_AT_BYTES]);
                out.extend([shared.spare as u8, shared.unit as u8 | aligned]);
            }
        }
    }
}

/// Appends a group's header. `has_hashes`: whether hash bits accompany the fingerprints. `offsets`
/// includes that of block 0, which is 0, and for coded groups the end of the last block.
pub fn write_header(
    (kind, has_hashes): (Kind, bool),
    prefix_bits: usize,
    lead: &Lead<'_>,
    offsets: &[u32],
    out: &mut Vec<u8>,
) {
    let offset_bits = offsets.last().map_or(1, |last| last.max(&1).ilog2() as usize + 1);
    let blocks = offsets.len() - usize::from(kind == Kind::Coded);
    // Two keys of maximum length differ in their last bit at the latest.
    assert!(prefix_bits < 1 << HASHES_AT, "a prefix of {prefix_bits} bits");
    let counts = (blocks - 1) << BLOCKS_AT | (offset_bits - 1) << OFFSET_AT;
    let counts = counts | usize::from(has_hashes) << HASHES_AT;
    let header = (prefix_bits | counts) as u32 | kind.tag() << KIND_AT;
    out.extend_from_slice(&header.to_le_bytes());
    match lead {
        Lead::Heads { first, bits, .. } => {
            out.push(*bits as u8 - 1);
            first.write(out);
        }
        Lead::Model(model) => model.write(out),
    }
    let mut writer = BitWriter::new(out);
    if let Lead::Heads { views, bits, .. } = lead {
        views.iter().for_each(|&view| writer.push(top(view, *bits), *bits));
    }
    offsets[1..].iter().for_each(|&offset| writer.push(u64::from(offset), offset_bits));
    writer.finish();
}

/// Fills in the offset of a coded group's classes, in units of [`GROUP_ALIGN`] bytes.
pub fn set_classes_at(group: &mut [u8], units: u32) {
    group[LEAD_BYTES..][..CLASSES_AT_BYTES].copy_from_slice(&units.to_le_bytes());
}

/// The location of a coded block that is not read yet.
#[derive(Clone, Copy)]
pub struct CodedAt<'a> {
    /// The block and the bytes after it.
    pub bytes: &'a [u8],
    len: usize,
    /// Whether the length includes hashes of the block's keys.
    has_hashes: bool,
    classes: &'a [u8],
    shared: Shared,
}

impl<'a> CodedAt<'a> {
    /// Returns the same location in a copy of the bytes.
    #[inline(always)]
    pub fn of_copy<'b>(&self, bytes: &'b [u8]) -> CodedAt<'b>
    where
        'a: 'b,
    {
        CodedAt { bytes, ..*self }
    }

    /// Reads the block. `hash_bits`: the hash bits per key behind it. Requires: enough bytes
    /// follow, as [`WINDOW`](super::gap::WINDOW) says.
    #[inline(always)]
    pub fn read(&self, hash_bits: usize) -> CodedBlock<'a> {
        let mut len = self.len;
        if hash_bits > 0 && self.has_hashes {
            len = len.wrapping_sub(bytes_of(CodedBlock::count_of(self.bytes), hash_bits));
        }
        CodedBlock::new(self.bytes, len, self.shared, |class| class_at(self.classes, class))
    }
}

/// Returns a class. Damaged bytes give an arbitrary one.
#[inline(always)]
fn class_at(classes: &[u8], class: usize) -> &ClassBytes {
    static NONE: ClassBytes = [0; CLASS_BYTES];
    let bytes = classes.get(class * CLASS_BYTES..).and_then(|rest| rest.first_chunk());
    bytes.unwrap_or(&NONE)
}

/// A view of a group: its header, and the bytes that follow.
#[derive(Clone, Copy)]
pub struct Group<'a> {
    /// The group and the bytes after it.
    pub bytes: &'a [u8],
    /// The length of the common prefix of all keys, in bits.
    pub prefix_bits: usize,
    /// The number of blocks.
    pub blocks: usize,
    /// The kind of fingerprint.
    pub kind: Kind,
    /// Whether hash bits accompany the fingerprints.
    pub has_hashes: bool,
    head_bits: usize,
    offset_bits: usize,
}

impl<'a> Group<'a> {
    /// Reads a header. Requires: `bytes` begin with a group.
    #[inline(always)]
    pub fn new(bytes: &'a [u8]) -> Self {
        let header = u64::from_le_bytes(*bytes.first_chunk().expect("a group is of eight bytes"));
        let field = |at: usize, len: usize| (header >> at) as usize & ((1 << len) - 1);
        Group {
            bytes,
            prefix_bits: field(0, HASHES_AT),
            blocks: field(BLOCKS_AT, 4) + 1,
            kind: Kind::from_tag(header as u32 >> KIND_AT),
            has_hashes: field(HASHES_AT, 1) == 1,
            // Meaningless for splines.
            head_bits: (field(8 * HEADER_BYTES, 6) + 1).min(HEAD_BITS_MAX),
            offset_bits: field(OFFSET_AT, 5) + 1,
        }
    }

    /// Returns the line of a spline group.
    #[inline(always)]
    pub fn model(&self) -> Model {
        Model::read(&self.bytes[HEADER_BYTES..])
    }

    /// Returns the layout of a hashed group's blocks.
    #[inline(always)]
    pub fn layout(&self) -> Layout {
        Layout::read(&self.bytes[LEAD_BYTES..])
    }

    /// Returns the byte offset of the heads.
    #[inline(always)]
    fn heads_at(&self) -> usize {
        match self.kind {
            Kind::Spline => HEADER_BYTES + MODEL_BYTES,
            Kind::Hash => LEAD_BYTES + LAYOUT_BYTES,
            Kind::Coded => LEAD_BYTES + CODED_BYTES,
            Kind::Cell | Kind::Gap => LEAD_BYTES,
        }
    }

    /// Returns the bit offset of the block offsets.
    #[inline(always)]
    fn offsets_bit(&self) -> usize {
        let head_bits = if self.kind == Kind::Spline { 0 } else { self.head_bits };
        8 * self.heads_at() + (self.blocks - 1) * head_bits
    }

    /// Returns the number of bytes before block 0.
    #[inline(always)]
    pub fn header_bytes(&self) -> usize {
        let offsets = self.blocks - usize::from(self.kind != Kind::Coded);
        (self.offsets_bit() + offsets * self.offset_bits).div_ceil(8)
    }

    /// Returns the first view of a block. Requires: not the first block, which begins at the
    /// separator; not a spline group.
    #[inline(always)]
    pub fn head(&self, block: usize) -> u64 {
        let shift = 64 - self.head_bits;
        let bit = 8 * self.heads_at() + (block - 1) * self.head_bits;
        load_or_zero(self.bytes, bit) >> shift << shift
    }

    /// Returns the last block that begins at or before `view`. Requires: not a spline group.
    #[inline(always)]
    pub fn block_of(&self, view: u64) -> usize {
        let heads = self.bytes.get(self.heads_at()..).unwrap_or_default();
        let Some(heads) = heads.first_chunk::<HEADS_BYTES>() else {
            return (1..self.blocks).map(|block| usize::from(self.head(block) <= view)).sum();
        };
        // The loop is unrolled and branchless. Fifteen independent loads are faster than four that
        // wait for each other, and a fixed number is faster than one load per block. Loads past the
        // heads are ignored.
        const BITS_MASK: usize = 8 * (HEADS_BYTES - 8) - 1;
        let shift = 64 - self.head_bits;
        let (view, mut begun) = (view >> shift, 0usize);
        for head in 0..BLOCKS_MAX - 1 {
            let bit = (head * self.head_bits) & BITS_MASK;
            begun = begun << 1 | usize::from(load(heads, bit) >> shift <= view);
        }
        (begun >> (BLOCKS_MAX - self.blocks)).count_ones() as usize
    }

    /// Returns the offset of a block; for a coded group also that of the last one's end.
    #[inline(always)]
    pub fn block_at(&self, block: usize) -> usize {
        let mut at = self.header_bytes();
        if block > 0 {
            let bit = self.offsets_bit() + (block - 1) * self.offset_bits;
            at += top(load_or_zero(self.bytes, bit), self.offset_bits) as usize;
        }
        at
    }

    /// Locates a coded block without reading it. Requires: the group is coded and lies in `arena`.
    #[inline(always)]
    pub fn coded_at(&self, block: usize, arena: &'a [u8]) -> CodedAt<'a> {
        let [units @ .., spare, unit] =
            self.bytes[LEAD_BYTES..].first_chunk::<CODED_BYTES>().expect("a group has a header");
        let classes =
            arena.get((u32::from_le_bytes(*units) as usize).saturating_mul(GROUP_ALIGN)..);
        let (start, end) = (self.block_at(block), self.block_at(block + 1));
        let (spare, is_aligned) = (u32::from(*spare), unit & ALIGNED != 0);
        let unit = u32::from(unit & !ALIGNED);
        let shared = Shared { spare, ..Shared::of_prefix(self.prefix_bits, unit, is_aligned) };
        CodedAt {
            bytes: self.bytes.get(start..).unwrap_or_default(),
            len: end.wrapping_sub(start),
            has_hashes: self.has_hashes && block + 1 < self.blocks,
            classes: classes.unwrap_or_default(),
            shared,
        }
    }

    /// Whether the keys are starts and ends of ranges between round numbers (`alignment.rs`).
    #[inline(always)]
    pub fn is_aligned(&self) -> bool {
        const AT: usize = LEAD_BYTES + CODED_BYTES - 1;
        self.kind == Kind::Coded && self.bytes.get(AT).is_some_and(|unit| unit & ALIGNED != 0)
    }

    /// Returns the bytes from the start of a block on.
    #[inline(always)]
    pub fn block(&self, block: usize) -> &'a [u8] {
        &self.bytes[self.block_at(block)..]
    }

    /// Returns how many bits tell a block's first key from the keys of the previous block.
    #[inline(always)]
    pub fn head_bits(&self, block: usize) -> usize {
        if block == 0 { 0 } else { self.head_bits }
    }
}
