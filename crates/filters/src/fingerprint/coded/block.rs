//! Reads a block of coded cells.

use super::classes::{
    ClassBytes, ESCAPE, ESCAPE_BITS, EXPONENTS, PARITIES, PLANES_MAX, SAME, SYMBOLS,
};
use super::{FIRST_AT, HEADER_BITS, OWN_BITS, SPARE_AT, STRIDE, Shared};
use crate::base::filter::Trace;
use crate::bits::simd::fastest;
use crate::fingerprint::gap::{Fall, WINDOW};
use crate::fingerprint::settle::width;

/// The maximum number of bits that one load reads.
const READ_MAX: u32 = 56;
/// Bits of a stride's symbols that are decoded at once.
const SYMBOL_BITS: usize = 57;
/// The bits of a class's byte that hold a symbol.
const SYMBOL_MASK: u8 = SYMBOLS as u8 - 1;

/// A view of a block. Damaged bytes give arbitrary results.
#[derive(Clone, Copy)]
pub struct CodedBlock<'a> {
    window: &'a [u8; WINDOW],
    class: &'a ClassBytes,
    /// The end of the block, in bits.
    end: usize,
    count: usize,
    spare: u32,
    unit: u32,
    /// The number of dropped last bits.
    dropped: u32,
    /// The bit position of the symbols.
    symbols: usize,
    turn: u32,
    first: u32,
}

impl<'a> CodedBlock<'a> {
    /// Reads the header. `group` is what the block was written with; `classes` returns the class of
    /// a number. Requires: `bytes` begin with a block of `len` bytes and have at least [`WINDOW`]
    /// bytes.
    #[inline(always)]
    pub fn new(
        bytes: &'a [u8],
        len: usize,
        group: Shared,
        classes: impl FnOnce(usize) -> &'a ClassBytes,
    ) -> Self {
        let window = bytes.first_chunk::<WINDOW>().expect("blocks are padded");
        let header = little(window, 0);
        CodedBlock {
            window,
            class: classes((header >> 6 & 7) as usize),
            end: len.wrapping_mul(8),
            turn: group.turn,
            unit: if group.is_aligned { 0 } else { group.unit },
            dropped: group.dropped((header >> HEADER_BITS) as u32 & ((1 << OWN_BITS) - 1)),
            symbols: group.header_bits(),
            count: (header & 63) as usize + 1,
            spare: group.spare + ((header >> SPARE_AT) as u32 & 1),
            first: (header >> FIRST_AT) as u32 & (SYMBOLS as u32 - 1),
        }
    }

    /// Returns the number of keys in the block that `bytes` begin with.
    #[inline(always)]
    pub fn count_of(bytes: &[u8]) -> usize {
        bytes.first().map_or(0, |first| usize::from(first & 63)) + 1
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
        let (block, dropped) = (*self, self.dropped);
        let (fall, symbols_end, mantissas) = fastest(
            #[inline(always)]
            move || block.find_at(number >> dropped, anchor >> dropped),
        );
        let address = self.window.as_ptr() as usize;
        trace.touch(address, symbols_end / 8 + 1);
        let from = (mantissas / 8).min(self.end / 8);
        trace.touch(address + from, self.end / 8 - from);
        fall.with_zeros(dropped)
    }

    /// Finds where a number falls, and returns how far symbols and mantissas were read. A separate
    /// function, so that the loop has all registers.
    #[inline(always)]
    fn find_at(self, number: u64, anchor: u64) -> (Fall, usize, usize) {
        // The last cell that begins at or before the number, the keys before it, and those before
        // its end.
        let (mut last, mut last_width, mut before, mut through) = (anchor, 0, 0, 0);
        let mut next = None;
        let mut walk = Walk::new(&self);
        let mut start = anchor.wrapping_sub(1);
        while walk.place < self.count {
            if let Some(stride) = Stride::read(&self, start, &walk) {
                let begun = stride.begun(number);
                if begun > 0 {
                    (last, last_width) = (stride.starts[begun - 1], stride.widths[begun - 1]);
                    (before, through) = (walk.place + begun - 1, walk.place + begun);
                }
                if begun < stride.len {
                    walk.mantissas = stride.mantissas;
                    next = Some(stride.starts[begun]);
                    break;
                }
                (start, walk) = (last, stride.after(&walk));
                continue;
            }
            let cell;
            (cell, walk) = self.cell(start, walk);
            if cell.start > number {
                next = Some(cell.start);
                break;
            }
            start = cell.start;
            (last, last_width) = (cell.start, cell.width);
            (before, through) = (cell.before, walk.place);
        }
        let end = last.wrapping_add(u64::from(through > 0).wrapping_shl(last_width));
        let fall = if number < end {
            Fall::In { before, through, end }
        } else {
            Fall::Between { before: through, end, next }
        };
        (fall, walk.symbols, walk.mantissas)
    }

    /// Visits the smallest and the largest number of each key's cell, in order.
    #[inline(always)]
    pub fn for_each_bounds(&self, anchor: u64, mut visit: impl FnMut(u64, u64)) {
        let dropped = self.dropped;
        let mut visit = |start: u64, last: u64| {
            visit(start << dropped, last.wrapping_add(1).wrapping_shl(dropped).wrapping_sub(1));
        };
        let (mut walk, mut start) = (Walk::new(self), (anchor >> dropped).wrapping_sub(1));
        while walk.place < self.count {
            if let Some(stride) = Stride::read(self, start, &walk) {
                for (&start, &width) in stride.starts.iter().zip(&stride.widths).take(stride.len) {
                    visit(start, start.wrapping_add(1u64.wrapping_shl(width) - 1));
                }
                (start, walk) = (stride.starts[stride.len - 1], stride.after(&walk));
                continue;
            }
            let cell;
            (cell, walk) = self.cell(start, walk);
            start = cell.start;
            let last = start.wrapping_add(1u64.wrapping_shl(cell.width) - 1);
            (cell.before..walk.place).for_each(|_| visit(start, last));
        }
    }

    /// Reads the next cell, whatever its symbols. `start`: that of the previous cell.
    #[cold]
    #[inline(never)]
    fn cell(&self, start: u64, mut walk: Walk) -> (Cell, Walk) {
        let before = walk.place;
        let mut after = 0;
        while walk.place < self.count {
            let symbol = walk.take_symbol(self);
            if symbol != SAME || walk.place == self.count {
                after = self.exponent(symbol);
                break;
            }
        }
        let width = width(walk.exponent.min(after), self.spare, self.unit);
        let len = walk.exponent - width;
        walk.mantissas = walk.mantissas.wrapping_sub(len as usize);
        let multiple = if len <= READ_MAX {
            self.bits(walk.mantissas, len) | 1u64.wrapping_shl(len)
        } else {
            let high = self.bits(walk.mantissas.wrapping_add(32), len - 32);
            1u64.wrapping_shl(len) | high << 32 | self.bits(walk.mantissas, 32)
        };
        walk.exponent = after;
        let start = start.wrapping_add(multiple.wrapping_shl(width));
        (Cell { start, width, before }, walk)
    }

    /// Returns the number of `len` bits at bit `at`. Requires: at most 56 bits.
    #[inline(always)]
    fn bits(&self, at: usize, len: u32) -> u64 {
        (little(self.window, at / 8) >> (at % 8)) & ((1 << len) - 1)
    }

    /// Returns the symbol of a rank; an arbitrary one for escapes.
    #[inline(always)]
    fn symbol(&self, place: usize, rank: usize) -> u8 {
        self.class[(place % PARITIES) * (ESCAPE + 1) + (rank & ESCAPE)]
    }

    /// Returns the exponent of a symbol.
    #[inline(always)]
    fn exponent(&self, symbol: u8) -> u32 {
        let turned = u32::from(symbol) + self.turn;
        if turned >= EXPONENTS { turned - EXPONENTS } else { turned }
    }

    /// The number of planes.
    #[inline(always)]
    fn planes(&self) -> usize {
        usize::from(self.class[ESCAPE] / SYMBOLS as u8).min(PLANES_MAX)
    }
}

/// Loads eight bytes of the block, little-endian.
#[inline(always)]
fn little(window: &[u8; WINDOW], at: usize) -> u64 {
    let at = at & (WINDOW - 9); // within the window; no block reaches beyond it
    u64::from_le_bytes(*window[at..].first_chunk::<8>().expect("eight bytes of the window"))
}

/// A cell of one or several keys.
struct Cell {
    start: u64,
    width: u32,
    /// The number of keys before it.
    before: usize,
}

/// A position in a block.
#[derive(Clone, Copy)]
struct Walk {
    /// The key whose symbol comes next.
    place: usize,
    /// The exponent of the next cell.
    exponent: u32,
    /// The bit position of the next symbol: of its unary part, or of the planes where a stride
    /// begins.
    symbols: usize,
    /// The bit position of the stride's planes.
    planes: usize,
    /// The bit position of the last mantissa read.
    mantissas: usize,
}

impl Walk {
    #[inline(always)]
    fn new(block: &CodedBlock<'_>) -> Walk {
        let (exponent, mantissas) = (block.first, block.end);
        Walk { place: 0, exponent, symbols: block.symbols, planes: 0, mantissas }
    }

    /// Reads the next symbol, wherever it is stored.
    fn take_symbol(&mut self, block: &CodedBlock<'_>) -> u8 {
        let lane = self.place % STRIDE;
        let lanes = (block.count - (self.place - lane)).min(STRIDE);
        let planes = block.planes();
        if lane == 0 {
            self.planes = self.symbols;
            self.symbols += planes * lanes;
        }
        let zeros = (block.bits(self.symbols, READ_MAX) | 1 << ESCAPE).trailing_zeros() as usize;
        self.symbols += zeros + 1;
        let mut rank = zeros << planes;
        for plane in 0..planes {
            rank |= (block.bits(self.planes + plane * lanes + lane, 1) as usize) << plane;
        }
        let place = self.place;
        self.place += 1;
        if rank < ESCAPE {
            return block.symbol(place, rank) & SYMBOL_MASK;
        }
        self.mantissas = self.mantissas.wrapping_sub(ESCAPE_BITS);
        block.bits(self.mantissas, ESCAPE_BITS as u32) as u8
    }
}

/// Consecutive cells read at once. Their bits are independent of each other; only the sums are
/// sequential. SIMD registers read several in the time of one.
struct Stride {
    /// The number of valid cells, of one key each; later ones are meaningless.
    len: usize,
    starts: [u64; STRIDE],
    widths: [u32; STRIDE],
    /// The exponent of the cell after these.
    exponent: u32,
    /// The bit positions of the next stride's symbols and of this one's mantissas.
    symbols: usize,
    mantissas: usize,
}

impl Stride {
    /// Reads the next cells of the walk. None: some of them must be read one by one.
    #[inline(always)]
    fn read(block: &CodedBlock<'_>, start: u64, walk: &Walk) -> Option<Stride> {
        if !walk.place.is_multiple_of(STRIDE) {
            return None;
        }
        let len = (block.count - walk.place).min(STRIDE);
        let (symbols, symbols_end) = read_symbols(block, walk.symbols, len)?;
        let mut exponents = [walk.exponent; STRIDE + 1];
        for lane in 0..STRIDE {
            exponents[lane + 1] = block.exponent(symbols[lane]);
        }
        let (mut widths, mut lens) = ([0; STRIDE], [0; STRIDE]);
        for lane in 0..STRIDE {
            let lesser = exponents[lane].min(exponents[lane + 1]);
            let width = width(lesser, block.spare, block.unit);
            (widths[lane], lens[lane]) = (width, exponents[lane] - width);
        }
        if lens.iter().any(|&len| len > READ_MAX) {
            return None;
        }
        let (mut ats, mut at) = ([0; STRIDE], walk.mantissas);
        for lane in 0..STRIDE {
            at = at.wrapping_sub(lens[lane] as usize);
            ats[lane] = at;
        }
        let mut starts = [0; STRIDE];
        for lane in 0..STRIDE {
            let word = little(block.window, ats[lane] / 8) >> (ats[lane] % 8);
            let high = 1u64 << (lens[lane] & 63);
            starts[lane] = (word & (high - 1) | high) << (widths[lane] & 63);
        }
        let mut sum = start;
        for start in &mut starts {
            sum = sum.wrapping_add(*start);
            *start = sum;
        }
        if len < STRIDE {
            for (lane, start) in starts.iter_mut().enumerate() {
                *start = if lane < len { *start } else { i64::MAX as u64 }; // below no number
            }
        }
        let mantissas = ats[len - 1];
        Some(Stride {
            len,
            starts,
            widths,
            exponent: exponents[len],
            symbols: symbols_end,
            mantissas,
        })
    }

    /// Returns the walk after these cells.
    #[inline(always)]
    fn after(&self, walk: &Walk) -> Walk {
        Walk {
            place: walk.place + self.len,
            exponent: self.exponent,
            symbols: self.symbols,
            planes: walk.planes,
            mantissas: self.mantissas,
        }
    }

    /// Returns how many of the cells begin at or before `number`.
    #[inline(always)]
    fn begun(&self, number: u64) -> usize {
        // Numbers have 63 bits, and comparing signed ones takes fewer instructions.
        let begun = self.starts.iter().map(|&start| i64::from(start as i64 <= number as i64));
        (begun.sum::<i64>() as usize).min(self.len)
    }
}

/// Reads the symbols of the next `len` places and returns where the next ones begin. Further lanes
/// repeat the last symbol. None: one is no exponent or is escaped, or the ranks take too many bits.
///
/// All lanes are processed at once, one byte each in a word.
#[inline(always)]
fn read_symbols(block: &CodedBlock<'_>, at: usize, len: usize) -> Option<([u8; STRIDE], usize)> {
    let planes = block.planes();
    let word = (little(block.window, at / 8) >> (at % 8)) & ((1 << SYMBOL_BITS) - 1);
    let plane_bits = planes * len;
    let (mut unary, mut rest) = (word >> plane_bits, 0);
    let mut ones = [0; STRIDE];
    for one in &mut ones {
        *one = unary.trailing_zeros() as u8;
        (rest, unary) = (unary, unary & unary.wrapping_sub(1));
    }
    // With too few ones the last lane has none. A short stride looks at the bits after it, too.
    if rest == 0 {
        return None;
    }
    let ends = u64::from_le_bytes(ones);
    let zeros = ends.wrapping_sub((ends << 8).wrapping_add(BYTES << 8));
    let lanes = (1 << len) - 1;
    let low = in_bytes(word & if planes > 0 { lanes } else { 0 });
    let high = in_bytes((word >> len) & if planes > 1 { lanes } else { 0 });
    let ranks = (zeros << planes | low | high << 1).to_le_bytes();
    let mut symbols = [0; STRIDE];
    for lane in 0..STRIDE {
        symbols[lane] = block.symbol(lane, usize::from(ranks[lane])) & SYMBOL_MASK;
    }
    let (last, known) = (u64::from(symbols[len - 1]) * BYTES, u64::MAX >> (8 * (STRIDE - len)));
    let symbols = u64::from_le_bytes(symbols) & known | last & !known;
    if has_no_exponent(symbols) {
        return None;
    }
    Some((symbols.to_le_bytes(), at + plane_bits + usize::from(ones[len - 1]) + 1))
}

/// A one in each byte.
const BYTES: u64 = u64::MAX / 255;

/// Spreads the low eight bits to one byte each.
#[inline(always)]
fn in_bytes(bits: u64) -> u64 {
    let own_bit = (bits & 255).wrapping_mul(BYTES) & 0x8040_2010_0804_0201;
    (own_bit + 127 * BYTES) >> 7 & BYTES
}

/// Whether a byte is `SAME`, the largest symbol.
#[inline(always)]
fn has_no_exponent(symbols: u64) -> bool {
    (symbols + BYTES) & BYTES << 6 != 0
}
