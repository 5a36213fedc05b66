//! Gap fingerprints: a key's resolution follows the distance to its nearer neighbour, without the
//! fixed boundaries of a trie.
//! ```text
//! block: header u16: keys - 1 (6), spare bits s (4), base (6)
//!        a nibble per key, and one for the next block's first key:
//!            0 the same cell; 1..14 exponent - base + 1; 15 the exponent is among the bits
//!        per cell: [the next exponent: 6 bits] the bits of D below its highest one,
//!            whose position the exponent implies
//! ```
//! `settle.rs` defines the cells. Invariant: a key lies in its cell; cells ascend and are disjoint.

use alloc::vec::Vec;

use super::settle::{Code, KEYS_MAX, Numbers, Settled};
use crate::base::filter::Trace;
use crate::bits::packed::BitWriter;
use crate::bits::simd::fastest;

/// The maximum spare bits of a cell.
pub const SPARE_MAX: usize = 15;
/// Bytes before the nibbles.
const HEADER_BYTES: usize = 2;
/// The nibble of a key in the previous key's cell.
const SAME: usize = 0;
/// The nibble of an exponent that is stored among the bits.
const ESCAPE: usize = 15;
const EXPONENT_BITS: usize = 6;
const EXPONENT_MAX: u32 = (1 << EXPONENT_BITS) - 1;
/// The number of exponents that a nibble can encode.
const NIBBLE_EXPONENTS: usize = 14;
/// Cells that are read at once, if each has a single key and no exponent after the first is
/// escaped.
const STRIDE: usize = 8;
/// The maximum length of a D that one load reads.
const READ_MAX: usize = 56;

/// Converts a view to a number of 63 bits: gap fingerprints drop the last bit.
#[inline(always)]
pub fn number(view: u64) -> u64 {
    view >> 1
}

/// Returns the smallest view of a number.
pub fn first_view(number: u64) -> u64 {
    number << 1
}

/// Returns the largest view of a number. Cells may reach beyond all numbers.
pub fn last_view(number: u64) -> u64 {
    number.min(u64::MAX >> 1) << 1 | 1
}

/// Appends the block to `out`.
#[inline(always)]
pub fn encode_gaps(block: &Numbers<'_>, out: &mut Vec<u8>) {
    assert!(block.spare <= SPARE_MAX, "{} spare bits", block.spare);
    // The reader knows no unit.
    let settled = Settled::new(&Numbers { unit: 0, ..*block });
    write_block(block, &settled, out);
}

/// Writes the cells, and then the exponent of the next block's first cell.
fn write_block(block: &Numbers<'_>, settled: &Settled, out: &mut Vec<u8>) {
    let codes = &settled.codes[..settled.len];
    let begins = &settled.begins[..=block.numbers.len()];
    let base = best_base(codes);
    let escaped = |code: &Code| {
        let exponent = code.exponent as usize;
        exponent < base || exponent >= base + NIBBLE_EXPONENTS
    };
    let header = (block.numbers.len() - 1) | block.spare << 6 | base << 10;
    out.extend_from_slice(&(header as u16).to_le_bytes());
    let (mut cells, mut nibbles) = (codes.iter(), [0u8; KEYS_MAX / 2 + 1]);
    for (place, _) in begins.iter().enumerate().filter(|(_, begins)| **begins) {
        let code = cells.next().expect("a cell for each key that begins one");
        let nibble = if escaped(code) { ESCAPE } else { code.exponent as usize - base + 1 } as u8;
        nibbles[place / 2] |= nibble << (4 * (place % 2));
    }
    out.extend_from_slice(&nibbles[..begins.len().div_ceil(2)]);
    let mut bits = BitWriter::new(out);
    let write_exponent = |bits: &mut BitWriter<'_>, code: &Code| {
        if escaped(code) {
            bits.push(u64::from(code.exponent), EXPONENT_BITS);
        }
    };
    write_exponent(&mut bits, &codes[0]);
    for pair in codes.windows(2) {
        write_exponent(&mut bits, &pair[1]);
        bits.push(pair[0].bits, pair[0].len);
    }
    bits.finish();
}

/// Returns the base that leaves the fewest exponents to escapes.
fn best_base(codes: &[Code]) -> usize {
    let exponents = codes.iter().map(|code| code.exponent as usize);
    let (mut least, mut most) = (usize::MAX, 0);
    for exponent in exponents.clone() {
        (least, most) = (least.min(exponent), most.max(exponent));
    }
    if most - least < NIBBLE_EXPONENTS {
        return least;
    }
    let mut counts = [0usize; 64 + NIBBLE_EXPONENTS];
    exponents.for_each(|exponent| counts[exponent] += 1);
    let held = |base: &usize| counts[*base..*base + NIBBLE_EXPONENTS].iter().sum::<usize>();
    (least..=most).rev().max_by_key(held).unwrap_or(least)
}

/// A number's place among a block's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fall {
    /// In a cell.
    In {
        /// The number of keys before the cell.
        before: usize,
        /// The number of keys before the cell's end.
        through: usize,
        /// The end of the cell, exclusive.
        end: u64,
    },
    /// Between two cells.
    Between {
        /// The number of keys below.
        before: usize,
        /// The end of the previous cell, exclusive.
        end: u64,
        /// The start of the next cell, if there is one.
        next: Option<u64>,
    },
}

impl Fall {
    /// Whether `number` has the same place. Requires: it is at least the number that was looked up.
    #[inline(always)]
    pub fn reaches(&self, number: u64) -> bool {
        match *self {
            Fall::In { end, .. } => number < end,
            Fall::Between { next, .. } => next.is_none_or(|next| number < next),
        }
    }

    /// Shifts the numbers left by `zeros` bits.
    #[inline(always)]
    pub(super) fn with_zeros(self, zeros: u32) -> Fall {
        let shift = |number: u64| number.wrapping_shl(zeros);
        match self {
            Fall::In { before, through, end } => Fall::In { before, through, end: shift(end) },
            Fall::Between { before, end, next } => {
                Fall::Between { before, end: shift(end), next: next.map(shift) }
            }
        }
    }

    /// The number of keys whose cells end before the number, and of those whose cells begin at or
    /// before it.
    #[inline(always)]
    pub fn ranks(&self) -> (usize, usize) {
        match *self {
            Fall::In { before, through, .. } => (before, through),
            Fall::Between { before, .. } => (before, before),
        }
    }
}

/// The bytes that must be readable from a block's start, whatever its length: no block is longer.
pub const WINDOW: usize = 1024 + size_of::<u64>();
const _: () = assert!(
    HEADER_BYTES + KEYS_MAX / 2 + 1 + KEYS_MAX * (EXPONENT_BITS + 64) / 8
        < WINDOW - size_of::<u64>()
);

/// A view of a block. Damaged bytes give arbitrary results.
#[derive(Clone, Copy)]
pub struct GapBlock<'a> {
    window: &'a [u8; WINDOW],
    count: usize,
    spare: u32,
    base: u32,
}

impl<'a> GapBlock<'a> {
    /// Reads the header. Requires: `bytes` begin with a block and have at least [`WINDOW`] bytes.
    #[inline(always)]
    pub fn new(bytes: &'a [u8]) -> Self {
        let window = bytes.first_chunk::<WINDOW>().expect("blocks are padded");
        let header = u32::from(u16::from_le_bytes([window[0], window[1]]));
        let count = (header & 63) as usize + 1;
        GapBlock { window, count, spare: header >> 6 & 15, base: header >> 10 }
    }

    /// The number of keys.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Finds where `number` falls. Requires: `number` is at least `anchor`, with which the block
    /// was encoded.
    #[inline(always)]
    pub fn find<T: Trace>(&self, number: u64, anchor: u64, trace: &mut T) -> Fall {
        let block = *self;
        let (fall, bits) = fastest(
            #[inline(always)]
            move || block.find_at(number, anchor),
        );
        trace.touch(self.window.as_ptr() as usize, bits / 8 + 1);
        fall
    }

    /// Finds where a number falls, and returns how many bits were read. A separate function, so
    /// that the loop has all registers.
    #[inline(always)]
    fn find_at(self, number: u64, anchor: u64) -> (Fall, usize) {
        // The last cell that begins at or before the number, the keys before it, and those before
        // its end.
        let (mut last, mut last_width, mut before, mut through) = (anchor, 0, 0, 0);
        let mut next = None;
        let mut walk = Walk::new(&self);
        let mut start = anchor.wrapping_sub(1);
        while walk.place <= self.count {
            if let Some(stride) = Stride::read(&self, start, walk) {
                let begun = stride.begun(number);
                if begun > 0 {
                    (last, last_width) = (stride.starts[begun - 1], stride.widths[begun - 1]);
                    (before, through) = (walk.place + begun - 2, walk.place + begun - 1);
                }
                walk.at = stride.ends[begun.max(1) - 1];
                if begun < STRIDE {
                    next = Some(stride.starts[begun]);
                    break;
                }
                (start, walk.place, walk.exponent) = (last, walk.place + STRIDE, stride.exponent);
                continue;
            }
            let width;
            (start, width, walk) = self.step(start, walk);
            if start > number {
                next = Some(start);
                break;
            }
            (last, last_width) = (start, width);
            (before, through) = (through, walk.place - 1);
        }
        let end = last.wrapping_add(u64::from(through > 0).wrapping_shl(last_width));
        if number < end {
            return (Fall::In { before, through, end }, walk.at);
        }
        (Fall::Between { before: through, end, next }, walk.at)
    }

    /// Visits the smallest and the largest number of each key's cell, in order.
    #[inline(always)]
    pub fn for_each_bounds(&self, anchor: u64, mut visit: impl FnMut(u64, u64)) {
        let (mut walk, mut start, mut done) = (Walk::new(self), anchor.wrapping_sub(1), 0);
        while walk.place <= self.count {
            let width;
            (start, width, walk) = self.step(start, walk);
            (done..walk.place - 1)
                .for_each(|_| visit(start, start.wrapping_add(1u64.wrapping_shl(width) - 1)));
            done = walk.place - 1;
        }
    }

    /// Steps from a cell's start to the next cell: returns its start and width. Requires: it
    /// exists.
    #[inline(always)]
    fn step(&self, start: u64, walk: Walk) -> (u64, u32, Walk) {
        const HIGHEST: u64 = 1 << 63;
        let after = walk.read_exponent(self);
        let width = walk.exponent.min(after.exponent).saturating_sub(self.spare);
        let len = (walk.exponent - width) as usize;
        let multiple = if len <= READ_MAX {
            let bits = u64::from_be_bytes(self.eight(after.at / 8)) << (after.at % 8);
            (bits >> 1 | HIGHEST) >> (63 - len)
        } else {
            self.long_multiple(after.at, len)
        };
        let start = start.wrapping_add(multiple.wrapping_shl(width));
        (start, width, Walk { at: after.at + len, ..after })
    }

    /// [`Walk::read_exponent`] for keys in the previous cell and for escaped exponents. Returns the
    /// walk packed.
    #[cold]
    #[inline(never)]
    fn rare_exponent(&self, mut place: usize, mut at: usize) -> u64 {
        while self.nibble(place) == SAME as u32 && place < self.count {
            place += 1;
        }
        let nibble = self.nibble(place);
        let mut exponent = self.base.wrapping_add(nibble).wrapping_sub(1);
        if nibble == ESCAPE as u32 {
            exponent = self.bits(at, EXPONENT_BITS) as u32;
            at += EXPONENT_BITS;
        }
        Walk { place: place + 1, exponent: exponent & EXPONENT_MAX, at }.pack()
    }

    #[cold]
    #[inline(never)]
    fn long_multiple(&self, at: usize, len: usize) -> u64 {
        let high = 1u64.wrapping_shl(len as u32) | self.bits(at, 32).wrapping_shl(len as u32 - 32);
        high | self.bits(at + 32, len - 32)
    }

    /// Loads eight bytes of the block.
    #[inline(always)]
    fn eight(&self, at: usize) -> [u8; 8] {
        let at = at & (WINDOW - 9); // within the window; no block reaches beyond it
        *self.window[at..].first_chunk::<8>().expect("eight bytes of the window")
    }

    /// Returns the number of `len` bits at bit `at`. Requires: 1 to 56 bits.
    #[inline(always)]
    fn bits(&self, at: usize, len: usize) -> u64 {
        u64::from_be_bytes(self.eight(at / 8)) << (at % 8) >> (64 - len)
    }

    /// Returns eight nibbles, the first one in the lowest bits.
    #[inline(always)]
    fn nibbles(&self, place: usize) -> u32 {
        let word = u64::from_le_bytes(self.eight(HEADER_BYTES + place / 2));
        (word >> (4 * (place % 2))) as u32
    }

    #[inline(always)]
    fn nibble(&self, place: usize) -> u32 {
        let byte = self.window[(HEADER_BYTES + place / 2) & (WINDOW - 9)];
        u32::from(byte >> (4 * (place % 2))) & 15
    }
}

/// A position in a block. A value type, so that a search keeps it in registers.
#[derive(Clone, Copy)]
struct Walk {
    /// The key whose nibble comes next.
    place: usize,
    /// The exponent of the next cell.
    exponent: u32,
    /// The position of that cell's bits.
    at: usize,
}

impl Walk {
    #[inline(always)]
    fn new(block: &GapBlock<'_>) -> Walk {
        let at = 8 * (HEADER_BYTES + (block.count + 2) / 2);
        Walk { place: 0, exponent: 0, at }.read_exponent(block)
    }

    /// Moves to the next key that begins a cell, or to the key after the block. Requires: one is
    /// left.
    #[inline(always)]
    fn read_exponent(self, block: &GapBlock<'_>) -> Walk {
        let nibble = block.nibble(self.place);
        let exponent = block.base.wrapping_add(nibble).wrapping_sub(1);
        if nibble.wrapping_sub(1) < NIBBLE_EXPONENTS as u32 {
            return Walk { place: self.place + 1, exponent, at: self.at };
        }
        Walk::unpack(block.rare_exponent(self.place, self.at))
    }

    /// Packs the walk into one word, so that the rare path costs the search no registers.
    fn pack(&self) -> u64 {
        u64::from(self.exponent) | (self.place as u64) << 8 | (self.at as u64) << 32
    }

    #[inline(always)]
    fn unpack(word: u64) -> Walk {
        let (place, exponent) = ((word as u32 >> 8) as usize, word as u32 & 0xff);
        Walk { place, exponent, at: (word >> 32) as usize }
    }
}

/// Consecutive cells read at once. Their bits are independent of each other; only the sums are
/// sequential. SIMD registers read several in the time of one.
struct Stride {
    starts: [u64; STRIDE],
    widths: [u32; STRIDE],
    /// The end of each cell's bits.
    ends: [usize; STRIDE],
    /// The exponent of the cell after these.
    exponent: u32,
}

impl Stride {
    /// Reads the next cells of the walk. None: some of them must be read one by one.
    #[inline(always)]
    fn read(block: &GapBlock<'_>, start: u64, walk: Walk) -> Option<Stride> {
        const HIGHEST: u64 = 1 << 63;
        if walk.place + STRIDE > block.count + 1 {
            return None;
        }
        let nibbles = block.nibbles(walk.place);
        if has_zero(nibbles) || has_zero(!nibbles) {
            return None;
        }
        let mut exponents = [walk.exponent; STRIDE + 1];
        for (lane, exponent) in exponents[1..].iter_mut().enumerate() {
            *exponent = block.base + (nibbles >> (4 * lane) & 15) - 1;
        }
        let (mut widths, mut lens) = ([0; STRIDE], [0; STRIDE]);
        for lane in 0..STRIDE {
            let width = exponents[lane].min(exponents[lane + 1]).saturating_sub(block.spare);
            (widths[lane], lens[lane]) = (width, exponents[lane] - width);
        }
        if lens.iter().any(|&len| len as usize > READ_MAX) {
            return None;
        }
        let (mut ats, mut ends, mut at) = ([0; STRIDE], [0; STRIDE], walk.at);
        for lane in 0..STRIDE {
            ats[lane] = at;
            at += lens[lane] as usize;
            ends[lane] = at;
        }
        let mut starts = [0; STRIDE];
        for lane in 0..STRIDE {
            let bits = u64::from_be_bytes(block.eight(ats[lane] / 8)) << (ats[lane] % 8);
            starts[lane] = (bits >> 1 | HIGHEST) >> (63 - lens[lane]) << (widths[lane] & 63);
        }
        let mut sum = start;
        for start in &mut starts {
            sum = sum.wrapping_add(*start);
            *start = sum;
        }
        Some(Stride { starts, widths, ends, exponent: exponents[STRIDE] })
    }

    /// Returns how many of the cells begin at or before `number`.
    #[inline(always)]
    fn begun(&self, number: u64) -> usize {
        self.starts.iter().map(|&start| usize::from(start <= number)).sum()
    }
}

/// Whether one of the eight nibbles is zero.
#[inline(always)]
fn has_zero(nibbles: u32) -> bool {
    nibbles.wrapping_sub(0x1111_1111) & !nibbles & 0x8888_8888 != 0
}

#[cfg(test)]
mod tests {
    use super::super::settle_laws::{assert_cells, for_drawn_blocks, for_edge_blocks};
    use super::*;
    use crate::base::filter::Untraced;

    fn assert_block(numbers: &Numbers<'_>) {
        let mut bytes = Vec::new();
        encode_gaps(numbers, &mut bytes);
        bytes.extend([0; WINDOW]);
        let (block, mut bounds) = (GapBlock::new(&bytes), Vec::new());
        assert_eq!(block.count(), numbers.numbers.len());
        block.for_each_bounds(numbers.anchor, |low, high| bounds.push((low, high)));
        let find = |number| block.find(number, numbers.anchor, &mut Untraced);
        assert_cells(numbers, &bounds, find);
    }

    #[test]
    fn keys_of_every_distribution_lie_in_their_cells() {
        for_drawn_blocks(&[0, 1, 4, SPARE_MAX], assert_block);
    }

    #[test]
    fn the_edges_of_the_numbers() {
        for_edge_blocks(&[0, 5, SPARE_MAX], assert_block);
    }
}
