//! The cells of one block, read once and then searched for many numbers.

use super::gap::Fall;
use super::settle::KEYS_MAX;

/// Fills unused starts: numbers have 63 bits.
const NO_START: u64 = i64::MAX as u64;

/// The cells of a block's keys. Damaged blocks give arbitrary cells.
pub struct ReadCells {
    len: usize,
    starts: [u64; KEYS_MAX],
    lasts: [u64; KEYS_MAX],
}

impl Default for ReadCells {
    /// No cells.
    fn default() -> ReadCells {
        ReadCells { len: 0, starts: [NO_START; KEYS_MAX], lasts: [0; KEYS_MAX] }
    }
}

impl ReadCells {
    /// Removes all cells, to read another block.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.starts = [NO_START; KEYS_MAX];
        self.len = 0;
    }

    /// Appends the next key's cell, from its first number to its last one. Requires: fewer than
    /// [`KEYS_MAX`] so far.
    #[inline(always)]
    pub fn push(&mut self, start: u64, last: u64) {
        (self.starts[self.len], self.lasts[self.len]) = (start, last);
        self.len += 1;
    }

    /// The number of keys.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.len
    }

    /// Finds where `number` falls. Requires: `number` is at least `anchor`, with which the block
    /// was encoded.
    #[inline(always)]
    pub fn find(&self, number: u64, anchor: u64) -> Fall {
        let through = self.begun(number as i64);
        let next = || self.starts[..self.len].get(through).copied();
        let Some(place) = through.checked_sub(1) else {
            return Fall::Between { before: 0, end: anchor, next: next() };
        };
        let (start, end) = (self.starts[place], self.lasts[place].wrapping_add(1));
        if number < end {
            let before = start.checked_sub(1).map_or(0, |below| self.begun(below as i64));
            return Fall::In { before, through, end };
        }
        Fall::Between { before: through, end, next: next() }
    }

    /// Returns how many cells begin at or before `number`. Compares all at once.
    #[inline(always)]
    fn begun(&self, number: i64) -> usize {
        let begun = self.starts.iter().map(|&start| i64::from(start as i64 <= number));
        (begun.sum::<i64>() as usize).min(self.len)
    }
}
