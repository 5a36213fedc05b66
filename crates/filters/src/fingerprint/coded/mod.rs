//! Coded cells: a key is kept as finely as its nearer neighbour asks for, and exponents take as few
//! bits as their frequency allows.
//! ```text
//! block   keys - 1 (6) | class (3) | one more spare bit (1) | exponent of the first cell (6)
//!         aligned keys: the last bits that numbers do without (6), beside those that a prefix
//!             leaves empty
//!         symbols, from the front: eight places at once, their planes, then their unary parts
//!         zeros up to a whole byte
//!         from the back, per cell: symbols that ranks do not tell (6 each), the bits of D below
//!             its highest one, whose place the exponent tells
//! ```
//! Bits are taken low ones first. A place has the symbol of the gap behind a key (`classes.rs`);
//! exponents are turned, so that a gap has one symbol whatever a group's prefix. (Those of aligned
//! keys need not be.) Cells are those of `settle.rs`. They are no finer than keys of one length are
//! apart: then they are exact, and take no more spare bits. Invariant: a key lies in its cell;
//! cells ascend and are disjoint.

mod block;
pub mod classes;
mod cost;
mod encode;
#[cfg(test)]
mod tests;

pub use block::CodedBlock;
pub use cost::CodedCost;
pub use encode::{encode_coded, gap_symbols};

/// Spare bits that a cell can have.
pub const SPARE_MAX: usize = 31;
/// Where the header has whether there is one more spare bit.
const SPARE_AT: usize = 9;
/// Where the header has the first exponent.
const FIRST_AT: usize = 10;
/// Bits of a number.
const NUMBER_BITS: usize = 63;
/// The most bits that a number does without, those that a prefix leaves empty included.
pub(super) const DROPPED_MAX: u32 = NUMBER_BITS as u32 - 1;
/// Bits before the symbols.
const HEADER_BITS: usize = 16;
/// Behind the header of an aligned block: how many of their own last bits its numbers do without.
const OWN_BITS: usize = 6;
const _: () = assert!(DROPPED_MAX >> OWN_BITS == 0);

/// What the blocks of a group share.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    /// Exponents are turned by so many: fewer than [`EXPONENTS`](classes::EXPONENTS).
    pub turn: u32,
    /// Spare bits of all cells. Those of some blocks have one more.
    pub spare: u32,
    /// No cell is finer than 2^unit.
    pub unit: u32,
    /// Whether each block's numbers do without last bits that tell none of them apart.
    pub is_aligned: bool,
}

impl Shared {
    /// How numbers behind a prefix of so many bits are coded. They are multiples of 2^unit.
    #[inline(always)]
    pub fn of_prefix(prefix_bits: usize, unit: u32, is_aligned: bool) -> Shared {
        // Without the bits that a prefix leaves empty, a gap has one exponent in all groups.
        let turn = if is_aligned { 0 } else { turn_of(prefix_bits) };
        Shared { turn, spare: 0, unit, is_aligned }
    }

    /// The last bits that the numbers of a block do without: those that a prefix leaves empty, too.
    #[inline(always)]
    pub fn dropped(&self, own: u32) -> u32 {
        if self.is_aligned { (self.unit + own).min(DROPPED_MAX) } else { 0 }
    }

    /// Bits of a block before its symbols.
    #[inline(always)]
    fn header_bits(&self) -> usize {
        HEADER_BITS + if self.is_aligned { OWN_BITS } else { 0 }
    }
}

/// How far keys of so many bits are apart at least, as numbers behind a prefix, as a power of two.
/// Keys without a common length may be next to each other.
pub fn unit_of(key_bits: Option<usize>, prefix_bits: usize) -> u32 {
    let behind = |bits: usize| NUMBER_BITS.saturating_sub(bits.saturating_sub(prefix_bits));
    key_bits.map_or(0, |bits| behind(bits).min(NUMBER_BITS - 1) as u32)
}

/// What the symbols of a coded group are turned by: so that a gap has one symbol, whatever the
/// group's prefix.
#[inline(always)]
pub fn turn_of(prefix_bits: usize) -> u32 {
    prefix_bits as u32 % classes::EXPONENTS
}

/// Places whose symbols are kept, and cells that are read, at once.
const STRIDE: usize = 8;
