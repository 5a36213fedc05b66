//! How often each byte follows each other byte, in compact tables.
//! ```text
//! byte    -> slot          one per byte that occurs, and one per stretch of bytes that do not
//! slot    -> row           the shares of what follows it; rare slots share a row
//! row     sums of shares:  end of key | slot 1 | slot 2 | ...             0 ..= 65535
//! ```
//! Invariant: the sums of a row ascend, by at least the number of bytes in each slot. So every
//! byte, and the end of the key, has a width above zero.

use alloc::boxed::Box;

use super::code::WORDS_MAX;

/// The length of the longest code, in bits.
pub(super) const CODE_BITS_MAX: u32 = WORDS_MAX as u32 * u64::BITS;

/// The sum of all shares in a row.
pub(super) const SHARES: u32 = u16::MAX as u32;

/// A model of keys: the distribution of each byte, given the byte before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextModel {
    /// Codes are truncated to this many bits.
    pub(super) code_bits: u32,
    /// The common prefix of nearly all keys.
    pub(super) prefix: Box<[u8]>,
    /// The slot of each byte.
    pub(super) slots: Box<[u8; 256]>,
    /// The first byte of each slot. The next slot's first byte ends it.
    pub(super) firsts: Box<[u8]>,
    /// The row for what follows each slot.
    pub(super) row_of: Box<[u8]>,
    /// The row for what follows the prefix.
    pub(super) first_row: u8,
    /// For each row, the sum of shares before the first slot, before the second one, ..., and the
    /// total.
    pub(super) sums: Box<[Sum]>,
}

/// A sum of shares, as stored in files.
pub(super) type Sum = [u8; 2];

/// The tables of a model, in memory of their own or inside an image.
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
    /// Truncates codes to `code_bits`, at most 512. Keys that lie closer together get equal codes.
    #[must_use]
    pub fn with_code_bits(self, code_bits: u32) -> Self {
        TextModel { code_bits: code_bits.min(CODE_BITS_MAX), ..self }
    }

    /// The maximum length of its codes, in bits.
    pub(crate) fn code_bits(&self) -> u32 {
        self.code_bits
    }

    /// Returns views of its tables.
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

    /// Returns the size of each allocation, in bytes.
    pub(crate) fn allocations(&self) -> [usize; 6] {
        let slots = self.firsts.len();
        [size_of::<TextModel>(), self.prefix.len(), 256, slots, slots, 2 * self.sums.len()]
    }

    /// The approximate size of the model, in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        self.allocations().iter().sum()
    }
}

impl TextTables<'_> {
    /// The number of sums per row.
    #[inline(always)]
    pub(super) fn row_len(&self) -> usize {
        self.firsts.len() + 1
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        self.sums.len() / self.row_len()
    }

    /// The number of bytes in a slot.
    #[inline(always)]
    pub(super) fn slot_len(&self, slot: usize) -> u32 {
        let end = self.firsts.get(slot + 1).map_or(256, |&next| u32::from(next));
        end - u32::from(self.firsts[slot])
    }
}
