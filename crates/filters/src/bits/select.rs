//! Select of zeros: finds the n-th zero bit, least significant bit first.
//! ```text
//! words        ...1101 0011
//! zero 0 is bit 2, zero 1 is bit 3, zero 2 is bit 5
//! ```
//! Invariant: the result is the same on every machine.

use super::simd;
use core::hint::select_unpredictable;

const WORD_BYTES: usize = size_of::<u64>();

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = ONES << 7;

/// Returns the position of the one that has `rank` ones below it, without special instructions.
/// Requires: it exists.
#[inline(always)]
pub fn select_one(word: u64, rank: u32) -> u32 {
    let pairs = word - ((word >> 1) & 0x5555_5555_5555_5555);
    let nibbles = (pairs & 0x3333_3333_3333_3333) + ((pairs >> 2) & 0x3333_3333_3333_3333);
    let bytes = (nibbles + (nibbles >> 4)) & 0x0f0f_0f0f_0f0f_0f0f;
    // `sums`: the ones up to the end of each byte. `passed`: a top bit for each byte that ends at
    // or before `rank` ones.
    let sums = bytes.wrapping_mul(ONES);
    let passed = (((u64::from(rank) * ONES) | TOPS) - (sums & !TOPS)) & TOPS;
    let byte = passed.count_ones() * 8;
    let mut left = rank - (sums << 8 >> byte) as u32 % 256;
    let mut rest = word >> byte & 0xff;
    while left > 0 {
        rest &= rest - 1;
        left -= 1;
    }
    byte + rest.trailing_zeros()
}

/// Returns the position of the zero that has `rank` zeros below it. Counts in little-endian words
/// from byte `at` on; past the end all bits are zeros. Looks at `WORDS` words at once, which
/// usually suffice. Requires: the last meaningful byte is followed by enough bytes for an
/// eight-byte load.
#[inline(always)]
pub fn select_zero<const WORDS: usize>(bytes: &[u8], at: usize, rank: u32) -> usize {
    let end = at + WORDS * WORD_BYTES;
    let Some(words) = bytes.get(at..end) else { return select_zero_on(bytes, at, 0, rank) };
    let zeros: [u64; WORDS] = core::array::from_fn(|word| !little_word(words, WORD_BYTES * word));
    // The right word cannot be predicted, so all words are counted, without branches.
    let (mut word, mut before, mut place) = (zeros[0], 0, 0);
    let mut through = zeros[0].count_ones();
    for (index, &next) in zeros.iter().enumerate().skip(1) {
        let is_passed = rank >= through;
        word = select_unpredictable(is_passed, next, word);
        before = select_unpredictable(is_passed, through, before);
        place = select_unpredictable(is_passed, 64 * index, place);
        through += next.count_ones();
    }
    if rank >= through {
        return select_zero_on(bytes, at, WORDS * WORD_BYTES, rank - through);
    }
    place + simd::select_one(word, rank - before) as usize
}

/// Continues [`select_zero`] after the first `skipped` bytes.
#[cold]
fn select_zero_on(bytes: &[u8], at: usize, mut skipped: usize, mut rank: u32) -> usize {
    loop {
        let zeros = !little_word(bytes, at + skipped);
        let count = zeros.count_ones();
        if rank < count {
            return skipped * 8 + simd::select_one(zeros, rank) as usize;
        }
        (skipped, rank) = (skipped + WORD_BYTES, rank - count);
    }
}

/// Loads eight bytes at `at`, little-endian. Returns 0 past the end, where only damaged bytes lead.
#[inline(always)]
pub fn little_word(bytes: &[u8], at: usize) -> u64 {
    let chunk = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
    chunk.map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bit_found_has_so_many_below_it() {
        let mut word = 0x9e37_79b9_7f4a_7c15u64;
        for round in 0..2000 {
            word = word.wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(23) ^ round;
            let word = match round % 4 {
                0 => word,
                1 => word & word << 7 & word >> 3,
                2 => word | word << 5 | word >> 9,
                _ => u64::MAX << (round % 64),
            };
            let mut places = (0..64).filter(|bit| word >> bit & 1 == 1);
            for rank in 0..word.count_ones() {
                assert_eq!(Some(select_one(word, rank)), places.next(), "{word:x} {rank}");
            }
        }
    }

    #[test]
    fn zeros_are_found_in_any_word() {
        let mut bytes = vec![0xff; 40];
        for bit in [70usize, 71, 130, 199] {
            bytes[bit / 8] &= !(1 << (bit % 8));
        }
        bytes.extend([0; 8]);
        for (rank, bit) in [70, 71, 130, 199, 320].into_iter().enumerate() {
            assert_eq!(select_zero::<4>(&bytes, 0, rank as u32), bit);
            assert_eq!(select_zero::<2>(&bytes, 0, rank as u32), bit);
            assert_eq!(select_zero::<4>(&bytes, 8, rank as u32), bit - 64);
        }
        // Past the end of the bytes there are zeros, too.
        assert_eq!(select_zero::<4>(&bytes, 0, 4 + 8 * 8 + 100), 320 + 8 * 8 + 100);
    }
}
