//! Coded cells: a key's resolution follows the distance to its nearer neighbour, and exponents are
//! coded by frequency.
//! ```text
//! block   keys - 1 (6) | class (3) | one more spare bit (1) | exponent of the first cell (6)
//!         aligned keys: the number of dropped last bits (6), besides those that a prefix leaves
//!             empty
//!         symbols, from the front: for eight places their planes, then their unary parts
//!         zeros up to a whole byte
//!         from the back, per cell: escaped symbols (6 each), the bits of D below its highest
//!             one, whose position the exponent implies
//! ```
//! Bits are stored least significant first. A place has the symbol of the gap behind its key
//! (`classes.rs`). Exponents are rotated, so that a gap has the same symbol for any prefix length.
//! (Those of aligned keys are not.)
//!
//! `settle.rs` defines the cells. Keys of equal length have a minimum distance, and no cell is
//! narrower: then it is exact and takes no more spare bits.
//!
//! Invariant: a key lies in its cell; cells ascend and are disjoint.

mod block;
pub mod classes;
mod cost;
mod encode;
#[cfg(test)]
mod tests;

pub use block::CodedBlock;
pub use cost::CodedCost;
pub use encode::{encode_coded, gap_symbols};

/// The maximum spare bits of a cell.
pub const SPARE_MAX: usize = 31;
/// The header's bit offset of the flag for one more spare bit.
const SPARE_AT: usize = 9;
/// The header's bit offset of the first exponent.
const FIRST_AT: usize = 10;
/// Bits per number.
const NUMBER_BITS: usize = 63;
/// The maximum number of dropped bits, including those that a prefix leaves empty.
pub(super) const DROPPED_MAX: u32 = NUMBER_BITS as u32 - 1;
/// Bits before the symbols.
const HEADER_BITS: usize = 16;
/// After the header of aligned blocks: how many last bits of their own numbers drop.
const OWN_BITS: usize = 6;
const _: () = assert!(DROPPED_MAX >> OWN_BITS == 0);

/// What the blocks of a group share.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    /// The rotation of exponents: below [`EXPONENTS`](classes::EXPONENTS).
    pub turn: u32,
    /// Spare bits of all cells; those of some blocks have one more.
    pub spare: u32,
    /// No cell is narrower than 2^unit.
    pub unit: u32,
    /// Whether each block's numbers drop last bits that tell none of them apart.
    pub is_aligned: bool,
}

impl Shared {
    /// The parameters of numbers after a prefix of `prefix_bits`. These are multiples of 2^`unit`.
    #[inline(always)]
    pub fn of_prefix(prefix_bits: usize, unit: u32, is_aligned: bool) -> Shared {
        // Numbers without their empty bits need no rotation: a gap has one exponent for any prefix.
        let turn = if is_aligned { 0 } else { turn_of(prefix_bits) };
        Shared { turn, spare: 0, unit, is_aligned }
    }

    /// Returns how many last bits a block's numbers drop, including those that a prefix leaves
    /// empty.
    #[inline(always)]
    pub fn dropped(&self, own: u32) -> u32 {
        if self.is_aligned { (self.unit + own).min(DROPPED_MAX) } else { 0 }
    }

    /// The number of bits before the symbols.
    #[inline(always)]
    fn header_bits(&self) -> usize {
        HEADER_BITS + if self.is_aligned { OWN_BITS } else { 0 }
    }
}

/// Returns the minimum distance of keys of `key_bits` bits as numbers after a prefix, as a power of
/// two. Keys of different lengths may be adjacent.
pub fn unit_of(key_bits: Option<usize>, prefix_bits: usize) -> u32 {
    let behind = |bits: usize| NUMBER_BITS.saturating_sub(bits.saturating_sub(prefix_bits));
    key_bits.map_or(0, |bits| behind(bits).min(NUMBER_BITS - 1) as u32)
}

/// Returns the rotation of exponents, with which a gap has one symbol for any prefix length.
#[inline(always)]
pub fn turn_of(prefix_bits: usize) -> u32 {
    prefix_bits as u32 % classes::EXPONENTS
}

/// The number of places whose symbols are stored together, and of cells that are read at once.
const STRIDE: usize = 8;
