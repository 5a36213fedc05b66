//! The size of coded cells, before they are written.
//! ```text
//! cell i takes     symbol of e_i+1  +  (e_i - c_i)  +  min(c_i - u, s)  bits
//!                  with c_i = min(e_i, e_i+1)
//! all cells take   fixed                            +  sum of these          with spare bits s
//! ```
//! Invariant: more spare bits never take fewer bits; beyond some number they take no more.

use super::super::settle::{KEYS_MAX, Numbers, exponent};
use super::classes::{Classes, SAME};
use super::encode::symbol_of;
use super::{SPARE_MAX, Shared};

/// The size of the cells of some blocks. Settling may add a bit to some cells.
pub struct CodedCost {
    /// Bits of headers and symbols, and of mantissas down to the smaller gap.
    fixed: u32,
    /// The number of cells whose smaller gap has each exponent, relative to the unit's.
    lesser: [u32; 64],
}

impl Default for CodedCost {
    fn default() -> Self {
        CodedCost { fixed: 0, lesser: [0; 64] }
    }
}

impl CodedCost {
    /// Adds the cells of a block; its own spare bits do not matter. Requires: there are classes.
    #[inline(always)]
    pub fn add(&mut self, block: &Numbers<'_>, group: Shared, classes: &Classes) {
        let turn = group.turn;
        let mut symbols = [SAME; KEYS_MAX];
        let mut before = exponent(block.anchor.wrapping_sub(1), block.numbers[0]).unwrap_or(0);
        let ends = block.numbers.iter().skip(1).copied().chain(block.next);
        for ((&low, high), symbol) in block.numbers.iter().zip(ends).zip(&mut symbols) {
            if let Some(after) = exponent(low, high) {
                *symbol = symbol_of(after, turn);
                self.add_cell(before, after, block.unit);
                before = after;
            }
        }
        if block.next.is_none() {
            symbols[block.numbers.len() - 1] = symbol_of(before, turn);
            self.add_cell(before, before, block.unit);
        }
        let (_, _, symbol_bits) = classes.cheapest(&symbols[..block.numbers.len()]);
        // Half a byte is lost on average where symbols and mantissas meet.
        self.fixed += group.header_bits() as u32 + 4 + symbol_bits;
    }

    #[inline(always)]
    fn add_cell(&mut self, before: u32, after: u32, unit: u32) {
        let lesser = before.min(after);
        self.fixed += before - lesser;
        self.lesser[lesser.saturating_sub(unit) as usize & 63] += 1;
    }

    /// Returns the bits that all cells take with `spare` spare bits. The inverse of
    /// [`CodedCost::spare`], for negative values, too.
    pub fn bits(&self, spare: f64) -> f64 {
        let growing = (1..).zip(&self.lesser[1..]);
        let taken = growing.map(|(most, &cells)| f64::from(cells) * spare.min(f64::from(most)));
        f64::from(self.fixed) + taken.sum::<f64>()
    }

    /// Returns the average spare bits with which all cells take `bits`; at most [`SPARE_MAX`].
    /// Negative: they take more even without any; then it is what each cell lacks.
    pub fn spare(&self, bits: f64) -> f64 {
        let mut left = bits - f64::from(self.fixed);
        let mut growing: u32 = self.lesser[1..].iter().sum();
        if left < 0.0 {
            return left / f64::from(growing.max(1));
        }
        for spare in 0..SPARE_MAX {
            let next = f64::from(growing);
            if left < next {
                return spare as f64 + left / next;
            }
            left -= next;
            growing -= self.lesser[spare + 1];
        }
        SPARE_MAX as f64
    }
}
