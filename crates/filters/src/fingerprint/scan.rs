//! The starts of a block's cells, spread to bytes, and eight of them compared at once.
//! ```text
//! nibbles    7 3 9 ...          starts, less the block's base, of the cells after the first
//! starts     07 03 09 ... 7f    a byte each; past the last cell NONE
//! lens       s  5+s s ...       bits stored for each
//! ```
//! Plain loops over arrays of fixed length, which the compiler turns into vector code. Invariant: for cells before the
//! last one, `lens` is what `Cells` in `cell.rs` computes one by one.

use super::cell::CELLS_MAX;

/// Bytes that hold the nibbles of the largest block.
pub(super) const NIBBLE_BYTES: usize = CELLS_MAX / 2;
/// Cells in a word.
pub(super) const LANES: usize = 8;
/// Greater than every start.
const NONE: u8 = 0x7f;
const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = ONES << 7;

/// The cells of a block after the first one.
pub(super) struct Scan {
    starts: [u8; CELLS_MAX],
    lens: [u8; CELLS_MAX],
}

impl Scan {
    /// Spreads the nibbles of `count` cells with `spare` spare bits. Requires: no escapes among them.
    #[inline]
    pub(super) fn new(nibbles: &[u8; NIBBLE_BYTES], count: usize, spare: usize) -> Scan {
        let mut starts = [0; CELLS_MAX];
        for (pair, &byte) in starts.chunks_exact_mut(2).zip(nibbles) {
            (pair[0], pair[1]) = (byte & 15, byte >> 4);
        }
        let count = count as u8;
        for (place, start) in starts.iter_mut().enumerate() {
            *start = if place as u8 + 1 < count { *start } else { NONE };
        }
        let mut lens = [0; CELLS_MAX];
        for place in 0..CELLS_MAX - 1 {
            let rise = starts[place + 1].saturating_sub(starts[place]);
            lens[place] = rise.saturating_sub(1) + spare as u8;
        }
        Scan { starts, lens }
    }

    /// The start of a cell (0: the second of the block), less the block's base; None after the last cell.
    #[inline]
    pub(super) fn start(&self, place: usize) -> Option<usize> {
        let start = self.starts[place];
        (start != NONE).then_some(usize::from(start))
    }

    /// The top bits of the bytes of the cells that start at most at `limit`, from 8 `word` on.
    #[inline]
    pub(super) fn at_most(&self, word: usize, limit: usize) -> u64 {
        let starts = lanes(&self.starts, word);
        let limit = limit.min(15) as u64 | 0x80;
        (limit * ONES).wrapping_sub(starts) & TOPS
    }

    /// The bits stored for the first `lanes` cells from 8 `word` on. Requires: the last cell is not among them.
    #[inline]
    pub(super) fn bits_before(&self, word: usize, lanes_before: usize) -> usize {
        let below = (1u64 << (8 * lanes_before)).wrapping_sub(1);
        sum(lanes(&self.lens, word) & below)
    }

    /// The bits stored for the eight cells from 8 `word` on; meaningless if the last cell is among them.
    #[inline]
    pub(super) fn bits(&self, word: usize) -> usize {
        sum(lanes(&self.lens, word))
    }
}

#[inline]
fn lanes(bytes: &[u8; CELLS_MAX], word: usize) -> u64 {
    let lanes = bytes[LANES * word..].first_chunk::<LANES>().expect("words of the array");
    u64::from_le_bytes(*lanes)
}

/// The sum of the eight bytes, if it is below 256: lengths without escapes are at most 28.
#[inline]
fn sum(bytes: u64) -> usize {
    (bytes.wrapping_mul(ONES) >> 56) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_at_once_are_as_one_by_one() {
        let mut nibbles = [0u8; NIBBLE_BYTES];
        for (place, byte) in nibbles.iter_mut().enumerate() {
            *byte = ((place * 71 % 15) | (((place * 37 + 5) % 15) << 4)) as u8;
        }
        let nibble = |place: usize| usize::from(nibbles[place / 2] >> (4 * (place % 2)) & 15);
        for (count, spare) in [(2, 0), (3, 15), (17, 4), (63, 5), (64, 15)] {
            let scan = Scan::new(&nibbles, count, spare);
            for place in 0..count - 1 {
                assert_eq!(scan.start(place), Some(nibble(place)));
                let (word, lane) = (place / LANES, place % LANES);
                for limit in 0..20 {
                    let found = scan.at_most(word, limit) >> (8 * lane + 7) & 1 == 1;
                    assert_eq!(found, nibble(place) <= limit);
                }
                let len = |at: usize| nibble(at + 1).saturating_sub(nibble(at) + 1) + spare;
                let before: usize = (word * LANES..place).map(len).sum();
                assert_eq!(scan.bits_before(word, lane), before, "{count} {spare} {place}");
            }
            assert_eq!(scan.start(count - 1), None);
            let past = scan.at_most((count - 1) / LANES, 15) >> (8 * ((count - 1) % LANES));
            assert_eq!(past, 0, "nothing starts after the last cell");
        }
    }
}
