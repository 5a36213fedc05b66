//! A group of the base: neighbouring blocks of one kind of fingerprints, behind one header.
//! ```text
//! u32: prefix bits (20), blocks - 1 (4), bytes of a head - 1 (3), wide (1), kind (3), 0 (1)
//! spline           its model
//! hash             how positions are laid out in blocks
//! coded            u32: where in the arena its classes are, in units of 8 bytes
//! all but spline   heads of blocks 1..: the first bits of their first keys after the prefix
//! offsets of blocks 1.. from block 0: two bytes; if wide: three
//! coded            as many bytes: where the last block ends
//! block 0, block 1, ...
//! ```
//! A group begins at a multiple of 8 bytes. Invariant: a block's head is a prefix of its first key
//! that is above the last key of the block before.

use super::coded::CodedBlock;
use super::coded::classes::{CLASS_BYTES, ClassBytes, EXPONENTS};
use super::hashes::bytes_of;
use super::spline::{LAYOUT_BYTES, Layout, MODEL_BYTES, Model};
use crate::bits::packed::{word, word_or_zero};

/// Blocks that a group can have.
pub const BLOCKS_MAX: usize = 16;
/// No head begins beyond this, of as many as there can be.
const HEADS_MASK: usize = 127;
const _: () = assert!((BLOCKS_MAX - 2) * size_of::<u64>() <= HEADS_MASK);
/// Bytes that are read of the heads, each with what follows it.
const HEADS_BYTES: usize = HEADS_MASK + 1 + size_of::<u64>();
/// Bytes before the model or the heads.
const HEADER_BYTES: usize = 4;
/// Bytes that say where classes are.
const CLASSES_AT_BYTES: usize = size_of::<u32>();
const WIDE: u32 = 1 << 27;
const NARROW_BYTES: usize = 2;
const WIDE_BYTES: usize = 3;
/// Groups start at multiples of this.
pub const GROUP_ALIGN: usize = 8;
/// The last block of a group begins before this.
pub const OFFSETS_END: usize = 1 << (8 * WIDE_BYTES);

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
    /// The views at which blocks 1.. begin, of which `bytes` bytes are kept.
    Heads {
        /// What stands before them.
        first: First,
        /// One for each block but the first.
        views: &'a [u64],
        /// So many of each are kept.
        bytes: usize,
    },
    /// The line on which all blocks lie.
    Model(&'a Model),
}

/// What stands before the heads.
#[derive(Clone, Copy, Default)]
pub enum First {
    /// Nothing.
    #[default]
    Nothing,
    /// How hashed blocks are laid out.
    Layout(Layout),
    /// Where in the arena the classes of coded blocks are, in units of [`GROUP_ALIGN`] bytes.
    ClassesAt(u32),
}

impl First {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            First::Nothing => {}
            First::Layout(layout) => layout.write(out),
            First::ClassesAt(units) => out.extend_from_slice(&units.to_le_bytes()),
        }
    }
}

/// Appends a group's header. `offsets` has that of block 0 too, which is 0, and for coded groups
/// where the last block ends.
pub fn write_header(
    kind: Kind,
    prefix_bits: usize,
    lead: &Lead<'_>,
    offsets: &[u32],
    out: &mut Vec<u8>,
) {
    let wide = offsets.last().is_some_and(|&last| last >= 1 << (8 * NARROW_BYTES));
    let head_bytes = match lead {
        Lead::Heads { bytes, .. } => *bytes,
        Lead::Model(_) => 1,
    };
    let blocks = offsets.len() - usize::from(kind == Kind::Coded);
    let counts = (blocks - 1) << 20 | (head_bytes - 1) << 24;
    let flag = if wide { WIDE } else { 0 };
    let header = (prefix_bits | counts) as u32 | flag | kind.tag() << 28;
    out.extend_from_slice(&header.to_le_bytes());
    match lead {
        Lead::Heads { first, views, bytes } => {
            first.write(out);
            views.iter().for_each(|view| out.extend_from_slice(&view.to_be_bytes()[..*bytes]));
        }
        Lead::Model(model) => model.write(out),
    }
    let bytes = if wide { WIDE_BYTES } else { NARROW_BYTES };
    for offset in &offsets[1..] {
        out.extend_from_slice(&offset.to_be_bytes()[4 - bytes..]);
    }
}

/// Tells a coded group, which `group` is, where its classes are.
pub fn set_classes_at(group: &mut [u8], units: u32) {
    group[HEADER_BYTES..][..CLASSES_AT_BYTES].copy_from_slice(&units.to_le_bytes());
}

/// What the symbols of a coded group are turned by: so that a gap has one symbol, whatever the
/// group's prefix.
#[inline(always)]
pub fn turn_of(prefix_bits: usize) -> u32 {
    prefix_bits as u32 % EXPONENTS
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
    turn: u32,
}

impl<'a> CodedAt<'a> {
    /// The block. `hash_bits`: of each key, behind it. Requires: bytes follow it as
    /// [`WINDOW`](super::gap::WINDOW) says.
    #[inline(always)]
    pub fn read(&self, hash_bits: usize) -> CodedBlock<'a> {
        let mut len = self.len;
        if hash_bits > 0 && self.has_hashes {
            len = len.wrapping_sub(bytes_of(CodedBlock::count_of(self.bytes), hash_bits));
        }
        CodedBlock::new(self.bytes, len, self.turn, |class| class_at(self.classes, class))
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
    head_bytes: usize,
    offset_bytes: usize,
}

impl<'a> Group<'a> {
    /// Reads a header. Requires: a group begins here.
    #[inline(always)]
    pub fn new(bytes: &'a [u8]) -> Self {
        let header = u32::from_le_bytes(*bytes.first_chunk().expect("a group has a header"));
        Group {
            bytes,
            prefix_bits: header as usize & 0xf_ffff,
            blocks: (header >> 20 & 15) as usize + 1,
            kind: Kind::from_tag(header >> 28),
            head_bytes: (header >> 24 & 7) as usize + 1,
            offset_bytes: if header & WIDE == 0 { NARROW_BYTES } else { WIDE_BYTES },
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
        Layout::read(&self.bytes[HEADER_BYTES..])
    }

    #[inline(always)]
    fn heads_at(&self) -> usize {
        HEADER_BYTES
            + match self.kind {
                Kind::Hash => LAYOUT_BYTES,
                Kind::Coded => CLASSES_AT_BYTES,
                Kind::Cell | Kind::Gap | Kind::Spline => 0,
            }
    }

    #[inline(always)]
    fn offsets_at(&self) -> usize {
        match self.kind {
            Kind::Spline => HEADER_BYTES + MODEL_BYTES,
            Kind::Cell | Kind::Gap | Kind::Hash | Kind::Coded => {
                self.heads_at() + (self.blocks - 1) * self.head_bytes
            }
        }
    }

    /// Bytes before block 0.
    #[inline(always)]
    pub fn header_bytes(&self) -> usize {
        let offsets = self.blocks - usize::from(self.kind != Kind::Coded);
        self.offsets_at() + offsets * self.offset_bytes
    }

    /// The view at which a block begins. Requires: not the first one, which begins at the
    /// separator; not a spline.
    #[inline(always)]
    pub fn head(&self, block: usize) -> u64 {
        let shift = 64 - 8 * self.head_bytes;
        let at = self.heads_at() + (block - 1) * self.head_bytes;
        word_or_zero(self.bytes, at) >> shift << shift
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
        let shift = 64 - 8 * self.head_bytes;
        let (view, mut begun) = (view >> shift, 0usize);
        for head in 0..BLOCKS_MAX - 1 {
            let at = (head * self.head_bytes) & HEADS_MASK;
            begun = begun << 1 | usize::from(word(heads, at) >> shift <= view);
        }
        (begun >> (BLOCKS_MAX - self.blocks)).count_ones() as usize
    }

    /// Where a block begins; of a coded group also where the last one ends.
    #[inline(always)]
    pub fn block_at(&self, block: usize) -> usize {
        let mut at = self.header_bytes();
        if block > 0 {
            let offset = word(self.bytes, self.offsets_at() + (block - 1) * self.offset_bytes);
            at += (offset >> (64 - 8 * self.offset_bytes)) as usize;
        }
        at
    }

    /// Where a coded block is, without reading it. Requires: the group is coded; `arena` is what
    /// all groups are in.
    #[inline(always)]
    pub fn coded_at(&self, block: usize, arena: &'a [u8]) -> CodedAt<'a> {
        let units = self.bytes[HEADER_BYTES..].first_chunk().expect("a group has a header");
        let classes = arena.get(u32::from_le_bytes(*units) as usize * GROUP_ALIGN..);
        let (start, end) = (self.block_at(block), self.block_at(block + 1));
        CodedAt {
            bytes: self.bytes.get(start..).unwrap_or_default(),
            len: end.wrapping_sub(start),
            has_hashes: block + 1 < self.blocks,
            classes: classes.unwrap_or_default(),
            turn: turn_of(self.prefix_bits),
        }
    }

    /// The bytes from a block on.
    #[inline(always)]
    pub fn block(&self, block: usize) -> &'a [u8] {
        &self.bytes[self.block_at(block)..]
    }

    /// The bits that tell a block's first key from the keys of the block before.
    #[inline(always)]
    pub fn head_bits(&self, block: usize) -> usize {
        if block == 0 { 0 } else { 8 * self.head_bytes }
    }
}
