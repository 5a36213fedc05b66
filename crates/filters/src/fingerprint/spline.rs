//! Spline fingerprints: a model maps keys to positions, which are rounded.
//! ```text
//! key's number --line through the group's ends--> position  = quotient . remainder (r bits)
//! block: a fixed number of quotients
//!        keys u16 | per quotient a one for each key in it, then a zero | remainders, in order
//! ```
//! This fingerprint of the papers (SNARF; GRF, section 4) is small for smoothly distributed keys.
//! It takes about `r + 2` bits for an error rate of 2^-r. The line uses integers, so build and
//! probe agree.
//!
//! Invariant: positions are monotone in keys; a key's position belongs to its block.

use alloc::vec::Vec;

use crate::base::filter::Trace;
use crate::bits::packed::{LEN_MAX, load_or_zero, top, write_packed};
use crate::bits::select::{little_word, select_zero};
use crate::bits::simd::select_one;
use core::ops::Range;

/// Bytes of a layout in the group header.
pub const LAYOUT_BYTES: usize = 3;
/// Bytes of a model in the group header.
pub const MODEL_BYTES: usize = 1 + LAYOUT_BYTES + 8;
/// Bits of a position below a block's resolution, which the overlay keeps.
pub const FINE_BITS: u32 = 8;
/// The fractional bits of a factor, in positions per number.
const FACTOR_BITS: u32 = 36;
/// Numbers are shifted right until they have at most this many bits.
const NUMBER_BITS: u32 = 32;
/// Bytes before a block's quotients.
const COUNT_BYTES: usize = 2;
/// The upper limit of positions in a group, exclusive.
pub const POSITIONS_END: u64 = 1 << (64 - FACTOR_BITS);
/// The maximum number of bits in a remainder.
pub const REMAINDER_MAX: u32 = 20;
/// Keys of a quotient that are compared at once.
const LANES: usize = 2;
const _: () = assert!(LANES * REMAINDER_MAX as usize <= LEN_MAX);

/// The layout of positions in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bits per remainder.
    pub remainder_bits: u32,
    /// Quotients per block.
    pub quotients: u32,
}

impl Layout {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let quotients = u16::try_from(self.quotients).expect("fewer quotients than that");
        out.push(self.remainder_bits as u8);
        out.extend_from_slice(&quotients.to_le_bytes());
    }

    /// Reads what `write` wrote. Requires: enough bytes.
    #[inline(always)]
    pub fn read(bytes: &[u8]) -> Layout {
        let quotients = u32::from(u16::from_le_bytes([bytes[1], bytes[2]]));
        Layout { remainder_bits: u32::from(bytes[0]), quotients }
    }

    /// The number of positions in a block.
    #[inline(always)]
    pub fn positions(&self) -> u64 {
        u64::from(self.quotients) << self.remainder_bits
    }
}

/// A line from numbers to positions, across all blocks of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    shift: u32,
    factor: u64,
    /// The layout of positions in a block.
    pub layout: Layout,
}

impl Model {
    /// The line that maps the numbers 0 to `most` to all positions of `blocks` blocks.
    pub fn new(most: u64, blocks: usize, layout: Layout) -> Model {
        let shift = (64 - most.leading_zeros()).saturating_sub(NUMBER_BITS);
        let positions = blocks as u64 * layout.positions();
        assert!(positions < POSITIONS_END, "{positions} positions");
        let factor = ((positions << FACTOR_BITS) - 1) / ((most >> shift) + 1);
        Model { shift, factor, layout }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.shift as u8);
        self.layout.write(out);
        out.extend_from_slice(&self.factor.to_le_bytes());
    }

    /// Reads what `write` wrote. Requires: enough bytes.
    #[inline(always)]
    pub fn read(bytes: &[u8]) -> Model {
        let bytes = bytes.first_chunk::<MODEL_BYTES>().expect("a model's bytes");
        let factor = bytes.last_chunk::<8>().expect("a model ends with them");
        let layout = Layout::read(&bytes[1..]);
        Model { shift: u32::from(bytes[0]), factor: u64::from_le_bytes(*factor), layout }
    }

    /// Whether the model can be used for `blocks` blocks. A newly made one always can.
    pub fn is_sound(&self, blocks: usize) -> bool {
        let Layout { remainder_bits, quotients } = self.layout;
        self.factor > 0
            && self.shift <= NUMBER_BITS
            && remainder_bits <= REMAINDER_MAX
            && quotients > 0
            && (blocks as u64 * self.block_positions()) < POSITIONS_END
    }

    /// The number of positions in a block.
    #[inline(always)]
    pub fn block_positions(&self) -> u64 {
        self.layout.positions()
    }

    /// Returns the position of a number with [`FINE_BITS`] more bits than blocks keep. None: it is
    /// beyond the positions of `blocks` blocks.
    #[inline(always)]
    pub fn fine_position(&self, number: u64, blocks: usize) -> Option<u64> {
        let number = number >> self.shift;
        if number >> NUMBER_BITS != 0 {
            return None;
        }
        let product = u128::from(number) * u128::from(self.factor);
        let fine = u64::try_from(product >> (FACTOR_BITS - FINE_BITS)).ok()?;
        (fine >> FINE_BITS < blocks as u64 * self.block_positions()).then_some(fine)
    }

    /// Returns the position of a number within the line's range. The product fits, as that of the
    /// largest such number does.
    #[inline(always)]
    pub fn position(&self, number: u64) -> u64 {
        (number >> self.shift).wrapping_mul(self.factor) >> FACTOR_BITS
    }

    /// Returns the smallest number whose fine position is at least `fine`, or the maximum if there
    /// is none.
    pub fn first_number(&self, fine: u64) -> u64 {
        let first =
            (u128::from(fine) << (FACTOR_BITS - FINE_BITS)).div_ceil(u128::from(self.factor));
        match u64::try_from(first) {
            Ok(first) if first <= u64::MAX >> self.shift => first << self.shift,
            _ => u64::MAX,
        }
    }

    /// Returns the smallest number without a position: beyond all of `blocks` blocks, or with more
    /// bits than the line covers.
    pub fn first_beyond(&self, blocks: usize) -> u64 {
        let positions = blocks as u64 * self.block_positions();
        let undrawn = 1u64.checked_shl(NUMBER_BITS + self.shift).unwrap_or(u64::MAX);
        self.first_number(positions << FINE_BITS).min(undrawn)
    }
}

/// Appends a block of keys at these ascending positions. `first` is the block's first position.
#[inline(always)]
pub fn encode_positions(layout: &Layout, first: u32, positions: &[u32], out: &mut Vec<u8>) {
    let count = u16::try_from(positions.len()).expect("a group has fewer keys");
    out.extend_from_slice(&count.to_le_bytes());
    write_quotients(layout, first, positions, out);
    let mask = (1 << layout.remainder_bits) - 1;
    let remainders = positions.iter().map(|position| (position - first) & mask);
    write_packed(remainders, layout.remainder_bits as usize, out);
}

/// Writes, per quotient, a one for each key in it, then a zero.
#[inline(always)]
fn write_quotients(layout: &Layout, first: u32, positions: &[u32], out: &mut Vec<u8>) {
    let quotient = |position: u32| ((position - first) >> layout.remainder_bits) as usize;
    let bits = layout.quotients as usize + positions.len();
    let last = positions.last().map_or(0, |&last| quotient(last));
    assert!(last + positions.len() <= bits, "a position of another block");
    let len = out.len() + bits.div_ceil(8);
    let (mut word, mut from) = (0u64, 0);
    for (place, &position) in positions.iter().enumerate() {
        let bit = quotient(position) + place;
        while bit - from >= 64 {
            out.extend_from_slice(&word.to_le_bytes());
            (word, from) = (0, from + 64);
        }
        word |= 1 << (bit - from);
    }
    out.extend_from_slice(&word.to_le_bytes());
    out.resize(len, 0);
}

/// The number of keys in a block, whatever its model.
#[inline(always)]
pub fn block_count(bytes: &[u8]) -> usize {
    usize::from(u16::from_le_bytes([bytes[0], bytes[1]]))
}

/// A view of a block. Damaged bytes give arbitrary results.
pub struct SplineBlock<'a> {
    bytes: &'a [u8],
    count: usize,
    layout: Layout,
}

impl<'a> SplineBlock<'a> {
    /// Requires: `bytes` begin with a block of this layout and are padded.
    #[inline(always)]
    pub fn new(bytes: &'a [u8], layout: Layout) -> Self {
        SplineBlock { bytes, count: block_count(bytes), layout }
    }

    /// The number of keys.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the bit position of a key's remainder.
    #[inline(always)]
    fn remainder_at(&self, place: usize) -> usize {
        let unary_bytes = (self.layout.quotients as usize + self.count).div_ceil(8);
        8 * (COUNT_BYTES + unary_bytes) + place * self.layout.remainder_bits as usize
    }

    #[inline(always)]
    fn remainder(&self, place: usize) -> u64 {
        let bits = self.layout.remainder_bits as usize;
        top(load_or_zero(self.bytes, self.remainder_at(place)), bits)
    }

    /// Returns the number of keys below `position`, which is relative to the block's first one, and
    /// the number of keys at or below it.
    #[inline(always)]
    pub fn find<T: Trace>(&self, position: u64, trace: &mut T) -> (usize, usize) {
        let bits = self.layout.remainder_bits as usize;
        let quotient = (position >> bits) as usize;
        let remainder = position & ((1 << bits) - 1);
        let keys = self.keys_of(quotient);
        trace.touch(self.bytes.as_ptr() as usize, COUNT_BYTES + (quotient + keys.end) / 8);
        let at = self.remainder_at(keys.start);
        trace.touch(self.bytes.as_ptr() as usize + at / 8, keys.len() * bits / 8);
        let (mut before, mut through) = (keys.start, keys.start);
        let mut count = |other: u64, is_key: bool| {
            before += usize::from(is_key & (other < remainder));
            through += usize::from(is_key & (other <= remainder));
        };
        // Few quotients have more keys, and how many they have cannot be predicted.
        let word = load_or_zero(self.bytes, at);
        for lane in 0..LANES {
            count(word << (lane * bits) >> 1 >> (63 - bits), lane < keys.len());
        }
        for place in keys.start + LANES..keys.end {
            count(self.remainder(place), true);
        }
        (before, through)
    }

    /// Returns the index range of a quotient's keys.
    #[inline(always)]
    fn keys_of(&self, quotient: usize) -> Range<usize> {
        let Some(before) = quotient.checked_sub(1) else {
            return 0..self.ones(0);
        };
        let zero = select_zero::<4>(self.bytes, COUNT_BYTES, before as u32);
        let start = zero - before;
        start..start + self.ones(zero + 1)
    }

    /// Returns the number of consecutive ones from `bit` on.
    #[inline(always)]
    fn ones(&self, bit: usize) -> usize {
        let word = little_word(self.bytes, COUNT_BYTES + bit / 8) >> (bit % 8);
        let ones = (!word).trailing_zeros() as usize;
        if ones < 57 { ones } else { self.many_ones(bit) }
    }

    #[cold]
    fn many_ones(&self, bit: usize) -> usize {
        (bit..).take_while(|&bit| self.is_set(bit)).count()
    }

    #[inline(always)]
    fn is_set(&self, bit: usize) -> bool {
        self.bytes.get(COUNT_BYTES + bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    }

    /// Visits the position of each key in order, relative to the block's first one.
    pub fn for_each_position(&self, mut visit: impl FnMut(u64)) {
        let (mut place, bits) = (0, self.layout.quotients as usize + self.count);
        for from in (0..bits).step_by(64) {
            let mut word = self.unary(from);
            while word != 0 && from + (word.trailing_zeros() as usize) < bits {
                let quotient = (from + word.trailing_zeros() as usize - place) as u64;
                visit(quotient << self.layout.remainder_bits | self.remainder(place));
                (place, word) = (place + 1, word & (word - 1));
            }
        }
    }

    /// Returns the position of a key, as [`SplineBlock::for_each_position`] visits it. Requires:
    /// the key exists.
    pub fn position_of(&self, place: usize) -> u64 {
        let bits = self.layout.quotients as usize + self.count;
        let mut before = place;
        for from in (0..bits).step_by(64) {
            let word = self.unary(from);
            let ones = word.count_ones() as usize;
            if before < ones {
                let quotient = (from + select_one(word, before as u32) as usize - place) as u64;
                return quotient << self.layout.remainder_bits | self.remainder(place);
            }
            before -= ones;
        }
        0 // reached with damaged bytes only
    }

    /// Returns 64 bits of the quotients from `bit` on.
    #[inline(always)]
    fn unary(&self, bit: usize) -> u64 {
        little_word(self.bytes, COUNT_BYTES + bit / 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::filter::Untraced;
    use crate::bits::packed::PADDING;

    fn mixed(number: u64) -> u64 {
        let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
    }

    #[test]
    fn positions_are_monotone_and_invertible() {
        for bits in [1u32, 5, 20, 31, 32, 33, 50, 63, 64] {
            let most = u64::MAX >> (64 - bits);
            for (blocks, quotients, remainder_bits) in
                [(1, 1, 0), (3, 80, 7), (16, 90, 9), (1, 7, 20)]
            {
                let layout = Layout { remainder_bits, quotients };
                let model = Model::new(most, blocks, layout);
                let mut bytes = Vec::new();
                model.write(&mut bytes);
                assert_eq!((bytes.len(), Model::read(&bytes)), (MODEL_BYTES, model));
                let positions = blocks as u64 * model.block_positions();
                let last = model.fine_position(most, blocks).expect("all numbers have positions");
                assert!(last >> FINE_BITS < positions);
                let mut numbers: Vec<u64> = (0..2000).map(|i| mixed(i) >> (64 - bits)).collect();
                numbers.extend([0, most, most / 2]);
                numbers.sort_unstable();
                let fine = |number: &u64| model.fine_position(*number, blocks).expect("has one");
                assert!(numbers.iter().map(fine).is_sorted());
                for number in numbers {
                    let fine = fine(&number);
                    assert_eq!(model.position(number), fine >> FINE_BITS);
                    assert!(model.first_number(fine) <= number, "{number}");
                    assert!(number == most || number < model.first_number(fine + 1).max(1));
                }
            }
        }
    }

    #[test]
    fn numbers_behind_a_short_line_have_no_position() {
        for (most, quotients, remainder_bits) in [(1, 2048, 16), (2, 120, 20), (14, 2000, 17)] {
            let model = Model::new(most, 1, Layout { remainder_bits, quotients });
            let beyond = model.first_beyond(1);
            // Around those where the product has a bit more.
            for bits in 1..=4u128 {
                let about = (bits << 92).div_ceil(u128::from(model.factor)) as u64;
                for number in (about - 3..about + 4).filter(|&it| it >= beyond) {
                    assert_eq!(model.fine_position(number, 1), None, "{most}: {number}");
                }
            }
        }
    }

    #[test]
    fn keys_are_found_at_their_positions() {
        for (seed, count) in [0, 1, 2, 60, 64, 250, 1024].into_iter().enumerate() {
            for (quotients, remainder_bits) in [(1, 9), (90, 7), (64, 0), (300, 3), (3, 10)] {
                let layout = Layout { remainder_bits, quotients };
                let most = layout.positions();
                let skewed = |i: u64| (mixed(i ^ (seed as u64) << 20) % most) >> (i % 4);
                let mut positions: Vec<u32> = (0..count).map(|i| skewed(i) as u32).collect();
                positions.sort_unstable();
                let mut bytes = Vec::new();
                encode_positions(&layout, 0, &positions, &mut bytes);
                bytes.extend([0; PADDING]);
                let block = SplineBlock::new(&bytes, layout);
                assert_eq!(block.count(), positions.len());
                let mut read = Vec::new();
                block.for_each_position(|position| read.push(position as u32));
                let by_place = |place| block.position_of(place) as u32;
                assert!((0..read.len()).map(by_place).eq(read.iter().copied()));
                assert_eq!(read, positions);
                for asked in (0..most.min(3000)).chain(positions.iter().map(|&p| u64::from(p))) {
                    let before = positions.partition_point(|&p| u64::from(p) < asked);
                    let through = positions.partition_point(|&p| u64::from(p) <= asked);
                    assert_eq!(block.find(asked, &mut Untraced), (before, through), "{asked}");
                }
            }
        }
    }
}
