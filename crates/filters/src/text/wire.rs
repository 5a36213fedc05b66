//! A model as bytes (FORMAT.md), copied out of an image or used in place.
//! ```text
//! bytes  ... | code bits | prefix | firsts, rows of slots | first row | sums | ...
//! placed                   from..to from..to     ...                    from..to
//! ```
//! Invariant: a model that was read keeps order, whatever the bytes are.

use alloc::boxed::Box;

use super::learn::slot_of_each;
use super::model::{CODE_BITS_MAX, SHARES, Sum, TextModel, TextTables};
use crate::base::wire::{Corrupt, Reader, Writer};
use core::ops::Range;

/// The positions of a model's tables within an image.
#[derive(Clone, Debug)]
pub struct PlacedModel {
    code_bits: u32,
    first_row: u8,
    slots: Box<[u8; 256]>,
    prefix: Range<usize>,
    firsts: Range<usize>,
    row_of: Range<usize>,
    sums: Range<usize>,
}

impl PlacedModel {
    /// Reads the model that [`TextModel::write`] wrote. Positions count from the start of the
    /// reader's bytes.
    ///
    /// # Errors
    /// The bytes are no model, or one that would not keep order.
    pub fn read(input: &mut Reader<'_>) -> Result<PlacedModel, Corrupt> {
        let code_bits = input.varint()?;
        if code_bits > u64::from(CODE_BITS_MAX) {
            return Err(input.corrupt("so long codes"));
        }
        let prefix = input.len()?;
        let prefix = placed(input, prefix)?;
        let count = input.len()?;
        let firsts = placed(input, count)?;
        let bytes = &input.whole()[firsts.clone()];
        if bytes.first() != Some(&0) || !bytes.is_sorted_by(|a, b| a < b) {
            return Err(input.corrupt("the bytes of a model of text"));
        }
        let slots = slot_of_each(bytes);
        let row_of = placed(input, count)?;
        let first_row = input.u8()?;
        let rows = input.len()?;
        let sums = placed(input, rows.saturating_mul(size_of::<Sum>() * (count + 1)))?;
        let code_bits = code_bits as u32;
        let model = PlacedModel { code_bits, first_row, slots, prefix, firsts, row_of, sums };
        if !model.of(input.whole()).is_sound() {
            return Err(input.corrupt("the shares of a model of text"));
        }
        Ok(model)
    }

    /// Returns the tables. Requires: the bytes that it was read from.
    #[inline(always)]
    pub fn of<'b>(&'b self, bytes: &'b [u8]) -> TextTables<'b> {
        TextTables {
            code_bits: self.code_bits,
            prefix: &bytes[self.prefix.clone()],
            slots: &self.slots,
            firsts: &bytes[self.firsts.clone()],
            row_of: &bytes[self.row_of.clone()],
            first_row: self.first_row,
            sums: bytes[self.sums.clone()].as_chunks().0,
        }
    }
}

/// Skips `count` bytes and returns their range.
fn placed(input: &mut Reader<'_>, count: usize) -> Result<Range<usize>, Corrupt> {
    input.bytes(count)?;
    Ok(input.at() - count..input.at())
}

impl TextModel {
    /// Appends the bytes that [`PlacedModel::read`] reads.
    pub fn write(&self, out: &mut Writer) {
        out.varint(u64::from(self.code_bits));
        out.string(&self.prefix);
        out.varint(self.firsts.len() as u64);
        out.bytes(&self.firsts);
        out.bytes(&self.row_of);
        out.u8(self.first_row);
        out.varint(self.tables().rows() as u64);
        out.bytes(self.sums.as_flattened());
    }

    /// Same as [`PlacedModel::read`], but copies the tables.
    pub(crate) fn read(input: &mut Reader<'_>) -> Result<TextModel, Corrupt> {
        let placed = PlacedModel::read(input)?;
        let TextTables { code_bits, prefix, firsts, row_of, first_row, sums, .. } =
            placed.of(input.whole());
        let [prefix, firsts, row_of] = [prefix, firsts, row_of].map(Box::from);
        let (sums, slots) = (sums.into(), placed.slots.clone());
        Ok(TextModel { code_bits, prefix, slots, firsts, row_of, first_row, sums })
    }
}

impl TextTables<'_> {
    /// Whether every byte has a width above zero in every row, and no row number is out of range.
    fn is_sound(&self) -> bool {
        let rows = self.row_of.iter().chain([&self.first_row]);
        let number = |sum: &Sum| u32::from(u16::from_le_bytes(*sum));
        let widths = |row: &[Sum]| {
            number(&row[0]) > 0
                && row
                    .windows(2)
                    .enumerate()
                    .all(|(slot, pair)| number(&pair[0]) + self.slot_len(slot) <= number(&pair[1]))
        };
        rows.max().is_some_and(|&most| usize::from(most) < self.rows())
            && self.sums.chunks_exact(self.row_len()).all(widths)
            && self.sums.iter().all(|sum| number(sum) <= SHARES)
    }
}
