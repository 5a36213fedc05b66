//! How often each byte follows each other one, in compact tables.
//! ```text
//! byte    -> slot          bytes that occur have one each; each stretch of others has one
//! slot    -> row           of what follows it; seldom slots share one
//! row     sums of shares:  end of key | slot 1 | slot 2 | ...             0 ..= 65535
//! ```
//! Invariant: sums ascend strictly, by at least as much as a slot has bytes. So every byte, and the
//! end of the key, has a width above zero.

use alloc::boxed::Box;

use super::code::WORDS_MAX;

/// Bits of the longest code.
pub(super) const CODE_BITS_MAX: u32 = WORDS_MAX as u32 * u64::BITS;

/// What all shares of a row are together.
pub(super) const SHARES: u32 = u16::MAX as u32;

/// A model of keys' bytes, each given the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextModel {
    /// Codes are cut behind so many bits.
    pub(super) code_bits: u32,
    /// What the keys begin with, nearly all of them.
    pub(super) prefix: Box<[u8]>,
    /// The slot of each byte.
    pub(super) slots: Box<[u8; 256]>,
    /// The first byte of each slot. Where each begins tells how many bytes it has.
    pub(super) firsts: Box<[u8]>,
    /// The row of what follows each slot.
    pub(super) row_of: Box<[u8]>,
    /// The row of what follows the prefix.
    pub(super) first_row: u8,
    /// Of each row, the sums of shares before the first slot, before the second one, ..., and at
    /// the end.
    pub(super) sums: Box<[Sum]>,
}

/// A sum of shares, as files have it.
pub(super) type Sum = [u8; 2];

/// The tables of a model, wherever they lie.
#[derive(Clone, Copy)]
pub struct TextTables<'a> {
    pub(super) code_bits: u32,
    pub(super) prefix: &'a [u8],
    pub(super) slots: &'a [u8; 256],
    pub(super) firsts: &'a [u8],
    pub(super) row_of: &'a [u8],
    pub(super) first_row: u8,
    pub(super) sums: &'a [Sum],
}

impl TextModel {
    /// With codes of at most so many bits, 512 at most: keys that lie closer together tie.
    #[must_use]
    pub fn with_code_bits(self, code_bits: u32) -> Self {
        TextModel { code_bits: code_bits.min(CODE_BITS_MAX), ..self }
    }

    /// Bits of its codes, at most.
    pub(crate) fn code_bits(&self) -> u32 {
        self.code_bits
    }

    /// Its tables.
    #[inline(always)]
    pub(super) fn tables(&self) -> TextTables<'_> {
        TextTables {
            code_bits: self.code_bits,
            prefix: &self.prefix,
            slots: &self.slots,
            firsts: &self.firsts,
            row_of: &self.row_of,
            first_row: self.first_row,
            sums: &self.sums,
        }
    }

    /// Its allocations' sizes.
    pub(crate) fn allocations(&self) -> [usize; 6] {
        let slots = self.firsts.len();
        [size_of::<TextModel>(), self.prefix.len(), 256, slots, slots, 2 * self.sums.len()]
    }

    /// The bytes that it takes, about.
    pub(crate) fn size_bytes(&self) -> usize {
        self.allocations().iter().sum()
    }
}

impl TextTables<'_> {
    /// Sums of a row.
    #[inline(always)]
    pub(super) fn row_len(&self) -> usize {
        self.firsts.len() + 1
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        self.sums.len() / self.row_len()
    }

    /// How many bytes a slot has.
    #[inline(always)]
    pub(super) fn slot_len(&self, slot: usize) -> u32 {
        let end = self.firsts.get(slot + 1).map_or(256, |&next| u32::from(next));
        end - u32::from(self.firsts[slot])
    }
}
