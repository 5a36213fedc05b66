//! A model as bytes (docs/format.md).

use super::learn::slot_of_each;
use super::model::{CODE_BITS_MAX, SHARES, TextModel};
use crate::base::wire::{Corrupt, Reader, Writer};

impl TextModel {
    /// Appends what [`TextModel::read`] needs.
    pub(crate) fn write(&self, out: &mut Writer) {
        out.varint(u64::from(self.code_bits));
        out.string(&self.prefix);
        out.varint(self.firsts.len() as u64);
        out.bytes(&self.firsts);
        out.bytes(&self.row_of);
        out.u8(self.first_row);
        out.varint(self.rows() as u64);
        self.sums.iter().for_each(|&sum| out.u16(sum));
    }

    /// The model that was written. An error: none was, or it would not keep order.
    pub(crate) fn read(input: &mut Reader<'_>) -> Result<TextModel, Corrupt> {
        let code_bits = input.varint()?;
        if code_bits > u64::from(CODE_BITS_MAX) {
            return Err(input.corrupt("so long codes"));
        }
        let code_bits = code_bits as u32;
        let prefix = input.string()?.into();
        let count = input.len()?;
        let firsts: Box<[u8]> = input.bytes(count)?.into();
        if firsts.first() != Some(&0) || !firsts.is_sorted_by(|a, b| a < b) {
            return Err(input.corrupt("the bytes of a model of text"));
        }
        let row_of = input.bytes(count)?.into();
        let first_row = input.u8()?;
        let rows = input.len()?;
        let sums = input.bytes(rows.saturating_mul(2 * (count + 1)))?;
        let (sums, _) = sums.as_chunks();
        let sums = sums.iter().map(|sum| u16::from_le_bytes(*sum)).collect();
        let slots = slot_of_each(&firsts);
        let model = TextModel { code_bits, prefix, slots, firsts, row_of, first_row, sums };
        if !model.is_sound() {
            return Err(input.corrupt("the shares of a model of text"));
        }
        Ok(model)
    }

    /// Whether every byte has a width above zero in every row, and every row is there.
    fn is_sound(&self) -> bool {
        let rows = self.row_of.iter().chain([&self.first_row]);
        let widths = |row: &[u16]| {
            row[0] > 0
                && row.windows(2).enumerate().all(|(slot, pair)| {
                    u32::from(pair[0]) + self.slot_len(slot) <= u32::from(pair[1])
                })
        };
        rows.max().is_some_and(|&most| usize::from(most) < self.rows())
            && self.sums.chunks_exact(self.row_len()).all(widths)
            && self.sums.iter().all(|&sum| u32::from(sum) <= SHARES)
    }
}
