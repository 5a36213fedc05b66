//! What coded cells take, before they are written.
//! ```text
//! cell i takes     symbol of e_i+1  +  (e_i - c_i)  +  min(c_i - u, s)  bits
//!                  with c_i = min(e_i, e_i+1)
//! all take         fixed                            +  sum of these          with spare bits s
//! ```
//! Invariant: more spare bits take no fewer bits; from some number on they take no more.

use super::super::settle::{KEYS_MAX, Numbers, exponent};
use super::classes::{Classes, SAME};
use super::encode::symbol_of;
use super::{SPARE_MAX, Shared};

/// What the cells of some blocks take. Settling may add a bit to a cell here and there.
pub struct CodedCost {
    /// Bits of headers and symbols, and of mantissas down to the lesser gap.
    fixed: u32,
    /// How many cells have a lesser gap of each exponent, above that of the unit.
    lesser: [u32; 64],
}

impl Default for CodedCost {
    fn default() -> Self {
        CodedCost { fixed: 0, lesser: [0; 64] }
    }
}

impl CodedCost {
    /// Adds the cells of a block, whatever spare bits it has. Requires: some classes.
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
        // Half a byte is lost where symbols and mantissas meet.
        self.fixed += group.header_bits() as u32 + 4 + symbol_bits;
    }

    #[inline(always)]
    fn add_cell(&mut self, before: u32, after: u32, unit: u32) {
        let lesser = before.min(after);
        self.fixed += before - lesser;
        self.lesser[lesser.saturating_sub(unit) as usize & 63] += 1;
    }

    /// The bits that all of it takes with so many spare bits; below zero, what [`CodedCost::spare`]
    /// gives for fewer bits.
    pub fn bits(&self, spare: f64) -> f64 {
        let growing = (1..).zip(&self.lesser[1..]);
        let taken = growing.map(|(most, &cells)| f64::from(cells) * spare.min(f64::from(most)));
        f64::from(self.fixed) + taken.sum::<f64>()
    }

    /// The spare bits, on average, with which all of it takes so many bits; [`SPARE_MAX`] if it
    /// does not take so many. Below zero if it takes more without any: by what each cell lacks.
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
