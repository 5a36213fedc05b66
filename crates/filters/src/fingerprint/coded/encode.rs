//! Writes a block of coded cells: its symbols from the front, its mantissas from the back.

use alloc::vec::Vec;

use super::super::settle::{KEYS_MAX, Numbers, Settled, exponent};
use super::classes::{Class, Classes, ESCAPE, ESCAPE_BITS, EXPONENTS, PARITIES, SAME};
use super::{FIRST_AT, HEADER_BITS, OWN_BITS, SPARE_AT, SPARE_MAX, STRIDE, Shared};

/// Returns the symbol of an exponent. Requires: `turn` is below [`EXPONENTS`].
#[inline(always)]
pub(super) fn symbol_of(exponent: u32, turn: u32) -> u8 {
    let turned = exponent + EXPONENTS - turn;
    (if turned >= EXPONENTS { turned - EXPONENTS } else { turned }) as u8
}

/// Appends the symbol of each key's gap to the next key, before cells are settled, to learn classes
/// from. `next`: the key after the block, if known.
pub fn gap_symbols(numbers: &[u64], next: Option<u64>, turn: u32, out: &mut Vec<u8>) {
    let symbol = |low: u64, high: u64| exponent(low, high).map_or(SAME, |it| symbol_of(it, turn));
    let first = out.len();
    out.extend(numbers.windows(2).map(|pair| symbol(pair[0], pair[1])));
    let last = numbers[numbers.len() - 1];
    let before = out[first..].last().copied().unwrap_or(0);
    out.push(next.map_or(before, |next| symbol(last, next)));
}

/// Appends the block to `out`. `own`: the last bits that its numbers drop, besides those that a
/// prefix leaves empty.
///
/// Requires: there are classes; the block has the group's spare bits or one more; the dropped bits
/// are removed from the numbers.
#[inline(always)]
pub fn encode_coded(
    (block, own): (&Numbers<'_>, u32),
    group: Shared,
    classes: &Classes,
    out: &mut Vec<u8>,
) {
    let (turn, more) = (group.turn, block.spare.wrapping_sub(group.spare as usize));
    assert!(block.spare <= SPARE_MAX && more <= 1, "{} spare bits", block.spare);
    let count = block.numbers.len();
    let settled = Settled::new(block);
    let symbols = symbols_of(&settled, turn, count);
    let (number, class, symbol_bits) = classes.cheapest(&symbols[..count]);
    let mantissas: usize = settled.codes[..settled.len].iter().map(|code| code.len).sum();
    let bits = group.header_bits() + symbol_bits as usize + mantissas;
    let first = settled.codes[0].exponent as usize;
    let header = (count - 1) | number << 6 | more << SPARE_AT | first << FIRST_AT;
    let mut writer = LowBits { out, word: 0, used: 0 };
    writer.push(header as u64, HEADER_BITS);
    if group.is_aligned {
        assert!(own >> OWN_BITS == 0, "{own} bits are dropped");
        writer.push(u64::from(own), OWN_BITS);
    }
    write_symbols(&symbols[..count], class, &mut writer);
    writer.push(0, bits.next_multiple_of(8) - bits);
    write_mantissas(&settled, &symbols[..count], class, &mut writer);
    writer.finish();
}

/// Returns a symbol per key: that of the gap behind it, or `SAME` if the next key shares its cell.
#[inline(always)]
fn symbols_of(settled: &Settled, turn: u32, count: usize) -> [u8; KEYS_MAX] {
    let (mut symbols, mut cell) = ([SAME; KEYS_MAX], 0);
    for (symbol, begins) in symbols[..count - 1].iter_mut().zip(&settled.begins[1..]) {
        if *begins {
            cell += 1;
            *symbol = symbol_of(settled.codes[cell].exponent, turn);
        }
    }
    symbols[count - 1] = symbol_of(settled.codes[cell + 1].exponent, turn);
    symbols
}

fn rank(class: &Class, place: usize, symbol: u8) -> usize {
    usize::from(class.ranks[place % PARITIES][usize::from(symbol)])
}

/// Writes, for each stride, the planes of all ranks, then their unary parts.
#[inline(always)]
fn write_symbols(symbols: &[u8], class: &Class, writer: &mut LowBits<'_>) {
    for stride in symbols.chunks(STRIDE) {
        for plane in 0..class.planes {
            let bit = |(place, &symbol)| (rank(class, place, symbol) >> plane & 1) << place;
            let bits: usize = stride.iter().enumerate().map(bit).sum();
            writer.push(bits as u64, stride.len());
        }
        for (place, &symbol) in stride.iter().enumerate() {
            let zeros = rank(class, place, symbol) >> class.planes;
            writer.push(1 << zeros, zeros + 1);
        }
    }
}

/// Writes the last cell first. A cell's bits are followed by the escaped symbols up to the next
/// cell.
#[inline(always)]
fn write_mantissas(settled: &Settled, symbols: &[u8], class: &Class, writer: &mut LowBits<'_>) {
    let mut cell = settled.len - 1;
    for (place, &symbol) in symbols.iter().enumerate().rev() {
        if place + 1 == symbols.len() || symbol != SAME {
            cell -= 1;
            let code = &settled.codes[cell];
            writer.push_long(code.bits, code.len);
        }
        if rank(class, place, symbol) == ESCAPE {
            writer.push(u64::from(symbol), ESCAPE_BITS);
        }
    }
}

/// A bit string, least significant bit first.
struct LowBits<'o> {
    out: &'o mut Vec<u8>,
    word: u64,
    used: usize,
}

impl LowBits<'_> {
    /// Appends a number of `len` bits, at most 32.
    #[inline(always)]
    fn push(&mut self, number: u64, len: usize) {
        self.word |= number << self.used;
        self.used += len;
        if self.used >= 32 {
            self.out.extend_from_slice(&(self.word as u32).to_le_bytes());
            (self.word, self.used) = (self.word >> 32, self.used - 32);
        }
    }

    /// Same as [`LowBits::push`], for at most 64 bits.
    #[inline(always)]
    fn push_long(&mut self, number: u64, len: usize) {
        if len <= 32 {
            self.push(number, len);
        } else {
            self.push(number & u64::from(u32::MAX), 32);
            self.push(number >> 32, len - 32);
        }
    }

    fn finish(self) {
        let bytes = self.word.to_le_bytes();
        self.out.extend_from_slice(&bytes[..self.used.div_ceil(8)]);
    }
}
