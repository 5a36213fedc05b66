//! The starts of a block's cells, eight at a time, spread to the bytes of a word, and compared at once.
//! ```text
//! nibbles    7 3 9 ...          starts, less the block's base, of the cells after the first
//! starts     07 03 09 ... 7f    a byte each; past the last cell NONE
//! lens       s  5+s s ...       bits stored for each
//! ```
//! Words are made when a search comes to them: most searches end before the last one. Invariant: for cells before the
//! last one, `lens` is what `Cells` in `cell.rs` computes one by one.

use super::cell::{CELLS_MAX, ESCAPE};

/// Bytes that hold the nibbles of the largest block.
pub(super) const NIBBLE_BYTES: usize = CELLS_MAX / 2;
/// Cells in a word.
pub(super) const LANES: usize = 8;
/// Bytes that hold the nibbles of a word.
const WORD_BYTES: usize = LANES / 2;
/// Greater than every start.
const NONE: u64 = 0x7f;
const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = ONES << 7;

/// The cells of a block after the first one.
pub(super) struct Scan<'a> {
    nibbles: &'a [u8; NIBBLE_BYTES],
    /// How many they are.
    count: usize,
    spare: usize,
}

/// Eight of them.
pub(super) struct Word {
    starts: u64,
    /// The start of the cell after each.
    nexts: u64,
    /// The bits stored for each.
    lens: u64,
}

impl<'a> Scan<'a> {
    /// Reads the nibbles of a block of `count` cells with `spare` spare bits.
    #[inline(always)]
    pub(super) fn new(nibbles: &'a [u8; NIBBLE_BYTES], count: usize, spare: usize) -> Self {
        Scan { nibbles, count: count - 1, spare }
    }

    /// The cells from 8 `word` on; of one with escapes, nothing else is known. Requires: there is one.
    #[inline(always)]
    pub(super) fn word(&self, word: usize) -> Word {
        let at = word * WORD_BYTES;
        let nibbles = self.nibbles[at..].first_chunk::<WORD_BYTES>().expect("words of the array");
        let left = self.count - word * LANES;
        let past = if left < LANES { u64::MAX << (8 * left) } else { 0 };
        let starts = spread(u32::from_le_bytes(*nibbles)) & !past | past & (NONE * ONES);
        let after = if left > LANES { u64::from(self.nibbles[at + WORD_BYTES] & 15) } else { NONE };
        let nexts = starts >> 8 | after << 56;
        // One less than the rise, with the top bit set, if there is a rise; else without.
        let rises = (nexts | TOPS) - starts - ONES;
        let risen = (rises & TOPS) - ((rises & TOPS) >> 7);
        Word { starts, nexts, lens: (rises & risen) + self.spare as u64 * ONES }
    }
}

impl Word {
    /// The start of a cell, less the block's base. Requires: there is the cell.
    #[inline(always)]
    pub(super) fn start(&self, lane: usize) -> usize {
        (self.starts >> (8 * lane)) as usize & 0x7f
    }

    /// The start of the cell after it; None after the last cell.
    #[inline(always)]
    pub(super) fn next(&self, lane: usize) -> Option<usize> {
        let next = self.nexts >> (8 * lane) & 0x7f;
        (next != NONE).then_some(next as usize)
    }

    /// The top bits of the bytes of the cells that start at most at `limit`.
    #[inline(always)]
    pub(super) fn at_most(&self, limit: usize) -> u64 {
        let limit = limit.min(15) as u64 | 0x80;
        (limit * ONES).wrapping_sub(self.starts) & TOPS
    }

    /// Whether a cell or the one after it has a nibble that stands for an escape.
    #[inline(always)]
    pub(super) fn has_escapes(&self) -> bool {
        let is_any = |starts: u64| {
            let other = starts ^ (ESCAPE as u64 * ONES);
            other.wrapping_sub(ONES) & !other & TOPS != 0
        };
        is_any(self.starts) || is_any(self.nexts)
    }

    /// The bits stored for the first `lanes` cells. Requires: the last cell is not among them.
    #[inline(always)]
    pub(super) fn bits_before(&self, lanes: usize) -> usize {
        let below = (1u64 << (8 * lanes)).wrapping_sub(1);
        sum(self.lens & below)
    }

    /// The bits stored for all; meaningless if the last cell is among them.
    #[inline(always)]
    pub(super) fn bits(&self) -> usize {
        sum(self.lens)
    }
}

/// Eight nibbles, the lowest first, as bytes.
#[inline(always)]
fn spread(nibbles: u32) -> u64 {
    let halves = u64::from(nibbles);
    let quarters = (halves | halves << 16) & 0x0000_ffff_0000_ffff;
    let bytes = (quarters | quarters << 8) & 0x00ff_00ff_00ff_00ff;
    (bytes | bytes << 4) & 0x0f0f_0f0f_0f0f_0f0f
}

/// The sum of the eight bytes, if it is below 256: lengths without escapes are at most 28.
#[inline(always)]
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
                let (at, lane) = (place / LANES, place % LANES);
                let word = scan.word(at);
                assert!(!word.has_escapes());
                assert_eq!(word.start(lane), nibble(place));
                assert_eq!(word.next(lane), (place + 2 < count).then(|| nibble(place + 1)));
                for limit in 0..20 {
                    let found = word.at_most(limit) >> (8 * lane + 7) & 1 == 1;
                    assert_eq!(found, nibble(place) <= limit);
                }
                let len = |at: usize| nibble(at + 1).saturating_sub(nibble(at) + 1) + spare;
                let before: usize = (at * LANES..place).map(len).sum();
                assert_eq!(word.bits_before(lane), before, "{count} {spare} {place}");
                if (at + 1) * LANES < count - 1 {
                    assert_eq!(word.bits(), (at * LANES..(at + 1) * LANES).map(len).sum::<usize>());
                }
            }
            for place in 0..count - 1 {
                let mut escaped = nibbles;
                escaped[place / 2] |= (ESCAPE << (4 * (place % 2))) as u8;
                let scan = Scan::new(&escaped, count, spare);
                for at in 0..(count - 1).div_ceil(LANES) {
                    // The cell before such a one is as long as that one's start tells.
                    let is_odd = at == place / LANES || place == (at + 1) * LANES;
                    assert_eq!(scan.word(at).has_escapes(), is_odd, "{count}, {place}, {at}");
                }
            }
            let last = scan.word((count - 2) / LANES);
            let past = (count - 2) % LANES + 1;
            assert_eq!(
                last.at_most(15) >> (8 * past - 1) >> 1,
                0,
                "none starts past the last cell"
            );
        }
    }
}
