//! Writes a block of cell fingerprints. `cell.rs` draws the format and reads it.
//!
//! Invariant: every stored bit is a bit of its key, so a cell of any length is a prefix of its key.

use alloc::vec::Vec;

use super::cell::{
    BASE_LONG, CELLS_MAX, ESCAPE, HAS_ESCAPES, SPARE_MAX, header_base, header_count, header_spare,
};
use super::keys::KeyBuffer;
use crate::bits::key_bits::bits_at;
use crate::bits::packed::{BitWriter, top};
use core::ops::Range;

/// The contents of a block: consecutive keys of a buffer, without their common first `prefix_bits`
/// bits.
pub struct BlockPlan<'a> {
    /// The keys.
    pub keys: &'a KeyBuffer,
    /// The index range of the block's keys.
    pub range: Range<usize>,
    /// The length of the group's common prefix, in bits.
    pub prefix_bits: usize,
    /// The bits of a cell beyond those that tell it from its neighbours.
    pub spare_bits: usize,
    /// The length of the cell, before spare bits, if the block has one key.
    pub lone_bits: usize,
}

/// Appends the block to `out`.
#[inline(always)]
pub fn encode_block(plan: &BlockPlan<'_>, out: &mut Vec<u8>) {
    let count = plan.range.len();
    assert!((1..=CELLS_MAX).contains(&count), "{count} keys in a block");
    assert!(plan.spare_bits <= SPARE_MAX, "{} spare bits", plan.spare_bits);
    let mut starts = [0usize; CELLS_MAX];
    let commons = &plan.keys.commons()[plan.range.clone()];
    for (start, common) in starts.iter_mut().zip(commons).skip(1) {
        *start = *common as usize + 1 - plan.prefix_bits;
    }
    let starts = &starts[..count];
    let base = if count == 1 { plan.lone_bits } else { best_base(&starts[1..]) };
    write_header(out, count, plan.spare_bits, base, &starts[1..]);
    write_nibbles(out, base, &starts[1..]);
    let mut bits = BitWriter::new(out);
    for (place, &start) in starts.iter().enumerate() {
        let key = plan.keys.get(plan.range.start + place);
        let next = starts.get(place + 1).copied().unwrap_or(0);
        let (run, gap) = if count == 1 { (base, 0) } else { run_and_gap(start, next) };
        let (from, spare) = (plan.prefix_bits + start, plan.spare_bits);
        if run + gap + spare <= 64 {
            let word = top(bits_at(key, from), run + gap + spare);
            // Removes the known zero.
            let low = word & ((1 << spare) - 1);
            bits.push(word >> gap >> spare << spare | low, run + spare);
        } else {
            write_key_bits(&mut bits, key, from, run);
            write_key_bits(&mut bits, key, from + run + gap, spare);
        }
    }
    bits.finish();
}

/// Returns the bits from a cell's start to the next one's, and whether a known zero follows.
#[inline]
fn run_and_gap(start: usize, next: usize) -> (usize, usize) {
    if next > start { (next - start - 1, 1) } else { (0, 0) }
}

fn write_key_bits(out: &mut BitWriter<'_>, key: &[u8], mut from: usize, mut len: usize) {
    while len > 64 {
        out.push(bits_at(key, from), 64);
        (from, len) = (from + 64, len - 64);
    }
    if len > 0 {
        out.push(bits_at(key, from) >> (64 - len), len);
    }
}

/// Returns the base that needs the fewest escapes.
fn best_base(starts: &[usize]) -> usize {
    let (mut least, mut most) = (usize::MAX, 0);
    for &start in starts {
        (least, most) = (least.min(start), most.max(start));
    }
    if most - least < ESCAPE {
        return least;
    }
    let mut sorted = starts.to_vec();
    sorted.sort_unstable();
    let (mut best, mut best_held, mut end) = (least, 0, 0);
    for (place, &base) in sorted.iter().enumerate() {
        end += sorted[end..].iter().take_while(|&&start| fits(base, start)).count();
        if end - place > best_held {
            (best, best_held) = (base, end - place);
        }
    }
    best
}

fn fits(base: usize, start: usize) -> bool {
    start >= base && start - base < ESCAPE
}

fn write_header(out: &mut Vec<u8>, count: usize, spare: usize, base: usize, starts: &[usize]) {
    let escapes = starts.iter().filter(|&&start| !fits(base, start));
    let escape_bytes: usize = escapes.map(|&start| varint_len(start)).sum();
    let flag = if escape_bytes > 0 { HAS_ESCAPES } else { 0 };
    let short_base = base.min(BASE_LONG);
    let header = header_count(count) | header_spare(spare) | flag | header_base(short_base);
    out.extend_from_slice(&header.to_le_bytes());
    if short_base == BASE_LONG {
        out.extend_from_slice(&(base as u32).to_le_bytes()[..3]);
    }
    if flag != 0 {
        out.push(u8::try_from(escape_bytes).expect("at most 63 escapes of at most three bytes"));
    }
}

fn write_nibbles(out: &mut Vec<u8>, base: usize, starts: &[usize]) {
    let nibble = |start: usize| if fits(base, start) { start - base } else { ESCAPE };
    for pair in starts.chunks(2) {
        let high = pair.get(1).map_or(0, |&start| nibble(start));
        out.push((nibble(pair[0]) | high << 4) as u8);
    }
    for &start in starts.iter().filter(|&&start| !fits(base, start)) {
        write_varint(out, start);
    }
}

fn varint_len(value: usize) -> usize {
    match value {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        _ => 3,
    }
}

/// Writes seven bits per byte, at most three bytes: starts are below 2^21.
fn write_varint(out: &mut Vec<u8>, mut value: usize) {
    assert!(value < 1 << 21, "a start at bit {value}");
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
