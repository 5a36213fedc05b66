//! A group of the base: neighbouring blocks of one kind of fingerprints, behind one header.
//! ```text
//! u32: prefix bits (19), whether keys have hashes, blocks - 1 (4), kind (3),
//!      bits of an offset - 1 (5)
//! spline           its model
//! all but spline   u8: bits of a head - 1
//! hash             how positions are laid out in blocks
//! coded            u32: where in the arena its classes are, in units of 8 bytes; u8: spare bits;
//!                  u8: unit, 128 more if keys are aligned (`alignment.rs`)
//! all but spline   heads of blocks 1..: the first bits of their first keys after the prefix
//! offsets of blocks 1.. from block 0 in bytes; coded: also where the last block ends
//! zeros up to a whole byte
//! block 0, block 1, ...
//! ```
//! A group begins at a multiple of 8 bytes. Invariant: a block's head is a prefix of its first key
//! that is above the last key of the block before.

use alloc::vec::Vec;

use super::coded::classes::{CLASS_BYTES, ClassBytes};
use super::coded::{CodedBlock, DROPPED_MAX, Shared};
use super::hashes::bytes_of;
use super::spline::{LAYOUT_BYTES, Layout, MODEL_BYTES, Model};
use crate::bits::packed::{BitWriter, LEN_MAX, load, load_or_zero, top};

/// Blocks that a group can have.
pub const BLOCKS_MAX: usize = 16;
/// Bits that a head can have.
pub const HEAD_BITS_MAX: usize = LEN_MAX;
/// Bytes of a group before the model, or before the bits of a head.
const HEADER_BYTES: usize = 4;
/// Where the header has whether there are hashes, the number of blocks, the kind, the bits of an
/// offset.
const HASHES_AT: usize = 19;
const BLOCKS_AT: usize = 20;
const KIND_AT: usize = 24;
const OFFSET_AT: usize = 27;
/// Bytes of all kinds but splines before what a kind has of its own.
const LEAD_BYTES: usize = HEADER_BYTES + 1;
/// Bytes that are read of the heads, each with what follows it.
const HEADS_BYTES: usize = ((BLOCKS_MAX - 2) * HEAD_BITS_MAX / 8 + 1).next_power_of_two() + 8;
/// Bytes that say where classes are, and those with the spare bits.
const CLASSES_AT_BYTES: usize = size_of::<u32>();
const CODED_BYTES: usize = CLASSES_AT_BYTES + 2;
/// Beside the unit: keys are aligned.
const ALIGNED: u8 = 1 << 7;
const _: () = assert!(DROPPED_MAX < ALIGNED as u32);
/// Groups start at multiples of this.
pub const GROUP_ALIGN: usize = 8;
/// The last block of a group begins before this.
pub const OFFSETS_END: usize = 1 << 24;

/// What the blocks of a group keep of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Prefixes that tell a key from its neighbours.
    Cell,
    /// Numbers as fine as the gaps around them.
    Gap,
    /// Positions on a line.
    Spline,
    /// Positions by hash: points alone are told apart.
    Hash,
    /// Numbers as fine as the gaps around them, whose exponents take as few bits as they can.
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

/// What stands before the offsets.
pub enum Lead<'a> {
    /// The views at which blocks 1.. begin, of which `bits` bits are kept.
    Heads {
        /// What stands before them.
        first: First,
        /// One for each block but the first.
        views: &'a [u64],
        /// So many of each are kept.
        bits: usize,
    },
    /// The line on which all blocks lie.
    Model(&'a Model),
}

/// What stands before the heads.
#[derive(Clone, Copy)]
pub enum First {
    /// Nothing.
    Nothing,
    /// How hashed blocks are laid out.
    Layout(Layout),
    /// Where in the arena the classes of coded blocks are, which is told later; and what the blocks
    /// share.
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

/// Appends a group's header. `has_hashes`: beside each fingerprint. `offsets` has that of block 0
/// too, which is 0, and for coded groups where the last block ends.
pub fn write_header(
    (kind, has_hashes): (Kind, bool),
    prefix_bits: usize,
    lead: &Lead<'_>,
    offsets: &[u32],
    out: &mut Vec<u8>,
) {
    let offset_bits = offsets.last().map_or(1, |last| last.max(&1).ilog2() as usize + 1);
    let blocks = offsets.len() - usize::from(kind == Kind::Coded);
    // Two keys of the longest differ in their last bit at the latest.
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

/// Tells a coded group, which `group` is, where its classes are.
pub fn set_classes_at(group: &mut [u8], units: u32) {
    group[LEAD_BYTES..][..CLASSES_AT_BYTES].copy_from_slice(&units.to_le_bytes());
}

/// A coded block that is not read yet.
#[derive(Clone, Copy)]
pub struct CodedAt<'a> {
    /// The block and what follows it.
    pub bytes: &'a [u8],
    len: usize,
    /// Whether the length includes hashes of the block's keys.
    has_hashes: bool,
    classes: &'a [u8],
    shared: Shared,
}

impl<'a> CodedAt<'a> {
    /// The same, in a copy of its bytes.
    #[inline(always)]
    pub fn of_copy<'b>(&self, bytes: &'b [u8]) -> CodedAt<'b>
    where
        'a: 'b,
    {
        CodedAt { bytes, ..*self }
    }

    /// The block. `hash_bits`: of each key, behind it. Requires: bytes follow it as
    /// [`WINDOW`](super::gap::WINDOW) says.
    #[inline(always)]
    pub fn read(&self, hash_bits: usize) -> CodedBlock<'a> {
        let mut len = self.len;
        if hash_bits > 0 && self.has_hashes {
            len = len.wrapping_sub(bytes_of(CodedBlock::count_of(self.bytes), hash_bits));
        }
        CodedBlock::new(self.bytes, len, self.shared, |class| class_at(self.classes, class))
    }
}

/// A class; of damaged bytes, any.
#[inline(always)]
fn class_at(classes: &[u8], class: usize) -> &ClassBytes {
    static NONE: ClassBytes = [0; CLASS_BYTES];
    let bytes = classes.get(class * CLASS_BYTES..).and_then(|rest| rest.first_chunk());
    bytes.unwrap_or(&NONE)
}

/// A group's header and what follows it.
#[derive(Clone, Copy)]
pub struct Group<'a> {
    /// The group and what follows it.
    pub bytes: &'a [u8],
    /// Bits that all keys of the group share.
    pub prefix_bits: usize,
    /// How many blocks it has.
    pub blocks: usize,
    /// What its fingerprints are.
    pub kind: Kind,
    /// Whether hashes of its keys are beside them.
    pub has_hashes: bool,
    head_bits: usize,
    offset_bits: usize,
}

impl<'a> Group<'a> {
    /// Reads a header. Requires: a group begins here.
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
            // Of splines, any.
            head_bits: (field(8 * HEADER_BYTES, 6) + 1).min(HEAD_BITS_MAX),
            offset_bits: field(OFFSET_AT, 5) + 1,
        }
    }

    /// The line of a spline group.
    #[inline(always)]
    pub fn model(&self) -> Model {
        Model::read(&self.bytes[HEADER_BYTES..])
    }

    /// How the blocks of a hashed group are laid out.
    #[inline(always)]
    pub fn layout(&self) -> Layout {
        Layout::read(&self.bytes[LEAD_BYTES..])
    }

    /// Where heads begin.
    #[inline(always)]
    fn heads_at(&self) -> usize {
        match self.kind {
            Kind::Spline => HEADER_BYTES + MODEL_BYTES,
            Kind::Hash => LEAD_BYTES + LAYOUT_BYTES,
            Kind::Coded => LEAD_BYTES + CODED_BYTES,
            Kind::Cell | Kind::Gap => LEAD_BYTES,
        }
    }

    /// The bit at which offsets begin.
    #[inline(always)]
    fn offsets_bit(&self) -> usize {
        let head_bits = if self.kind == Kind::Spline { 0 } else { self.head_bits };
        8 * self.heads_at() + (self.blocks - 1) * head_bits
    }

    /// Bytes before block 0.
    #[inline(always)]
    pub fn header_bytes(&self) -> usize {
        let offsets = self.blocks - usize::from(self.kind != Kind::Coded);
        (self.offsets_bit() + offsets * self.offset_bits).div_ceil(8)
    }

    /// The view at which a block begins. Requires: not the first one, which begins at the
    /// separator; not a spline.
    #[inline(always)]
    pub fn head(&self, block: usize) -> u64 {
        let shift = 64 - self.head_bits;
        let bit = 8 * self.heads_at() + (block - 1) * self.head_bits;
        load_or_zero(self.bytes, bit) >> shift << shift
    }

    /// The last block that begins at or before `view`. Requires: not a spline.
    #[inline(always)]
    pub fn block_of(&self, view: u64) -> usize {
        let heads = self.bytes.get(self.heads_at()..).unwrap_or_default();
        let Some(heads) = heads.first_chunk::<HEADS_BYTES>() else {
            return (1..self.blocks).map(|block| usize::from(self.head(block) <= view)).sum();
        };
        // The loop is unrolled and branchless. Fifteen independent loads are faster than four that
        // wait for each other, and a fixed number is faster than one load per block. What follows
        // the heads is read in vain.
        const BITS_MASK: usize = 8 * (HEADS_BYTES - 8) - 1;
        let shift = 64 - self.head_bits;
        let (view, mut begun) = (view >> shift, 0usize);
        for head in 0..BLOCKS_MAX - 1 {
            let bit = (head * self.head_bits) & BITS_MASK;
            begun = begun << 1 | usize::from(load(heads, bit) >> shift <= view);
        }
        (begun >> (BLOCKS_MAX - self.blocks)).count_ones() as usize
    }

    /// Where a block begins; of a coded group also where the last one ends.
    #[inline(always)]
    pub fn block_at(&self, block: usize) -> usize {
        let mut at = self.header_bytes();
        if block > 0 {
            let bit = self.offsets_bit() + (block - 1) * self.offset_bits;
            at += top(load_or_zero(self.bytes, bit), self.offset_bits) as usize;
        }
        at
    }

    /// Where a coded block is, without reading it. Requires: the group is coded; `arena` is what
    /// all groups are in.
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

    /// Whether its keys are both ends of ranges that begin at round numbers (`alignment.rs`).
    #[inline(always)]
    pub fn is_aligned(&self) -> bool {
        const AT: usize = LEAD_BYTES + CODED_BYTES - 1;
        self.kind == Kind::Coded && self.bytes.get(AT).is_some_and(|unit| unit & ALIGNED != 0)
    }

    /// The bytes from a block on.
    #[inline(always)]
    pub fn block(&self, block: usize) -> &'a [u8] {
        &self.bytes[self.block_at(block)..]
    }

    /// The bits that tell a block's first key from the keys of the block before.
    #[inline(always)]
    pub fn head_bits(&self, block: usize) -> usize {
        if block == 0 { 0 } else { self.head_bits }
    }
}
