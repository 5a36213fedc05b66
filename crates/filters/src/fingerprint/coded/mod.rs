//! Coded cells: a key is kept as finely as its nearer neighbour asks for, and exponents take as few
//! bits as their frequency allows.
//! ```text
//! block   keys - 1 (6) | class (3) | one more spare bit (1) | exponent of the first cell (6)
//!         symbols, from the front: eight places at once, their planes, then their unary parts
//!         zeros up to a whole byte
//!         from the back, per cell: symbols that ranks do not tell (6 each), the bits of D below
//!             its highest one, whose place the exponent tells
//! ```
//! Bits are taken low ones first. A place has the symbol of the gap behind a key (`classes.rs`);
//! exponents are turned, so that a gap has one symbol whatever a group's prefix. Cells are those of
//! `settle.rs`. They are no finer than keys of one length are apart: then they are exact, and take
//! no more spare bits. Invariant: a key lies in its cell; cells ascend and are disjoint.

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
/// Bits before the symbols.
const HEADER_BITS: usize = 16;
/// What the blocks of a group share.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    /// Exponents are turned by so many: fewer than [`EXPONENTS`](classes::EXPONENTS).
    pub turn: u32,
    /// Spare bits of all cells. Those of some blocks have one more.
    pub spare: u32,
    /// No cell is finer than 2^unit.
    pub unit: u32,
}

/// Places whose symbols are kept, and cells that are read, at once.
const STRIDE: usize = 8;
