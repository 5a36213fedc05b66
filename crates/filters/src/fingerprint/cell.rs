//! Cell fingerprints: the shortest prefix, in bits, that tells a key from both neighbours, plus
//! spare bits.
//! ```text
//! group prefix   cell (start = bits shared with the previous cell, plus the one that differs)
//! 10110          0 0 [spare]             start 0
//! 10110            1 0 1 0 [spare]       start 2: shares one bit; the 1 that differs is implied
//! 10110                  1 [spare]       start 5: the previous cell's 0 at bit 4 is not stored
//! 10110          1 [spare]               start 1
//!
//! block: header (u16: count, spare bits, escapes?, base) [long base: 3 bytes] [escape bytes: u8]
//!        a nibble per start but the first: start - base; or 15: a varint among the escapes
//!        [escapes]  each cell's bits from its start on, without known zeros
//! ```
//! Starts count from the end of the group's prefix. Invariant: the cells of a block are in key
//! order, and disjoint except where truncated at the block's edges. A key lies in its cell.

use super::trie::{NIBBLE_BYTES, Stretch, Trie};
use crate::base::filter::Trace;
use crate::bits::key_bits::bits_at;
use crate::bits::packed::{LEN_MAX, load_or_zero, top, word_or_zero};
use core::cmp::Ordering;

/// The maximum number of cells in a block.
pub const CELLS_MAX: usize = 64;
/// The maximum spare bits of a cell.
pub const SPARE_MAX: usize = 15;
/// The nibble of a start that is stored among the escapes.
pub(super) const ESCAPE: usize = 15;
/// The header's base field if the base follows the header.
pub(super) const BASE_LONG: usize = 31;
/// The header's flag for escapes.
pub(super) const HAS_ESCAPES: u16 = 1 << 10;

pub(super) fn header_count(count: usize) -> u16 {
    (count - 1) as u16
}

pub(super) fn header_spare(spare: usize) -> u16 {
    (spare as u16) << 6
}

pub(super) fn header_base(base: usize) -> u16 {
    (base as u16) << 11
}

/// A key's bits after its group's prefix.
#[derive(Clone, Copy)]
pub struct Tail<'a> {
    key: &'a [u8],
    start: usize,
    view: u64,
    short: bool,
}

impl<'a> Tail<'a> {
    /// The bits of `key` from bit `start` on.
    #[inline(always)]
    pub fn new(key: &'a [u8], start: usize) -> Self {
        Tail { key, start, view: bits_at(key, start), short: key.len() * 8 <= start + 64 }
    }

    /// Returns the first 64 bits.
    #[inline]
    pub fn view(&self) -> u64 {
        self.view
    }

    /// Returns 64 bits from bit `at` on.
    #[inline(always)]
    pub fn bits(&self, at: usize) -> u64 {
        match (self.short, at < 64) {
            (true, true) => self.view << at,
            (true, false) => 0,
            _ => bits_at(self.key, self.start + at),
        }
    }
}

/// A cell's start and the position of its bits, which are not read yet.
#[derive(Clone, Copy)]
struct Cell {
    start: usize,
    run: usize,
    gap: usize,
    at: usize,
}

/// The bytes that must be readable from a block's start: the header and the most nibbles.
pub const HEAD_BYTES: usize = 2 + 3 + 1 + NIBBLE_BYTES + 2;

/// A view of a block. Damaged bytes give arbitrary results.
pub struct Block<'a> {
    bytes: &'a [u8],
    count: usize,
    spare: usize,
    base: usize,
    nibbles_at: usize,
    escapes_at: usize,
    bits_at: usize,
}

impl<'a> Block<'a> {
    /// Reads the header. Requires: `bytes` begin with a block and have at least [`HEAD_BYTES`].
    #[inline(always)]
    pub fn new(bytes: &'a [u8]) -> Self {
        let header = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
        let (count, spare) = ((header & 63) + 1, header >> 6 & 15);
        let (mut base, mut at) = (header >> 11, 2);
        if base == BASE_LONG {
            base = usize::from(bytes[2]) | usize::from(bytes[3]) << 8 | usize::from(bytes[4]) << 16;
            at += 3;
        }
        let mut escape_bytes = 0;
        if header & usize::from(HAS_ESCAPES) != 0 {
            escape_bytes = usize::from(bytes[at]);
            at += 1;
        }
        let escapes_at = at + count / 2;
        let bits_at = (escapes_at + escape_bytes) * 8;
        Block { bytes, count, spare, base, nibbles_at: at, escapes_at, bits_at }
    }

    fn address(&self) -> usize {
        self.bytes.as_ptr() as usize
    }

    #[inline(always)]
    fn cells(&self) -> Cells<'_> {
        let (at, escapes_at) = (self.bits_at, self.escapes_at);
        let lone_run = if self.count == 1 { self.base } else { 0 };
        Cells { block: self, place: 0, start: 0, at, nibbles: 0, escapes_at, lone_run }
    }

    /// Compares a cell's bits with the key's, and returns the bit at which they first differ.
    #[inline(always)]
    fn compare<T: Trace>(&self, cell: &Cell, tail: &Tail<'_>, trace: &mut T) -> (Ordering, usize) {
        let (stored, len) = (cell.run + self.spare, cell.run + cell.gap + self.spare);
        trace.touch(self.address() + cell.at / 8, stored / 8 + 1);
        if len > 56 {
            return self.compare_long(cell, tail);
        }
        let bits = self.short_bits(cell);
        let asked = top(tail.bits(cell.start), len);
        let difference = bits ^ asked;
        if difference == 0 {
            return (Ordering::Equal, cell.start + len);
        }
        let place = len - (64 - difference.leading_zeros() as usize);
        (bits.cmp(&asked), cell.start + place)
    }

    /// Returns a cell's bits from its start on, with the known zero inserted. Requires: at most 56
    /// bits.
    #[inline(always)]
    fn short_bits(&self, cell: &Cell) -> u64 {
        let stored = top(load_or_zero(self.bytes, cell.at), cell.run + self.spare);
        if cell.gap == 0 {
            return stored;
        }
        let low = (1 << self.spare) - 1;
        (stored & !low) << 1 | stored & low
    }

    #[cold]
    fn compare_long(&self, cell: &Cell, tail: &Tail<'_>) -> (Ordering, usize) {
        let zero_at = cell.start + cell.run;
        if let Some(found) = first_difference(self.bytes, cell.at, tail, cell.start, cell.run) {
            return found;
        }
        if cell.gap == 1 && tail.bits(zero_at) >> 63 == 1 {
            return (Ordering::Less, zero_at);
        }
        let rest = zero_at + cell.gap;
        let found = first_difference(self.bytes, cell.at + cell.run, tail, rest, self.spare);
        found.unwrap_or((Ordering::Equal, rest + self.spare))
    }

    /// Finds where a key falls among the cells.
    #[inline(always)]
    pub fn find<T: Trace>(&self, key: &Tail<'_>, trace: &mut T) -> CellPlace {
        trace.touch(self.address(), self.bits_at / 8);
        if self.count == 1 {
            self.find_lone(key, trace)
        } else if self.bits_at == self.escapes_at * 8 {
            self.find_on_path::<false, _>(key, trace)
        } else {
            self.find_on_path::<true, _>(key, trace)
        }
    }

    /// Whether a key lies in a cell, with less work than [`find`](Self::find). Compares only the
    /// one cell that could hold it, which rules out most absent keys.
    #[inline(always)]
    pub fn holds<T: Trace>(&self, key: &Tail<'_>, trace: &mut T) -> bool {
        if self.count == 1 || self.bits_at != self.escapes_at * 8 {
            return self.find(key, trace).is_in();
        }
        trace.touch(self.address(), self.bits_at / 8);
        let nibbles = self.bytes[self.nibbles_at..].first_chunk().expect("blocks are padded");
        let trie = Trie::<false>::new(nibbles, &[], (self.base, self.spare), self.count);
        let path = trie.path(key.bits(self.base.saturating_sub(1)));
        let place = path.ilog2() as usize;
        let (start, at) = match place {
            0 => (0, self.bits_at),
            _ => (trie.start(place), self.bits_at + trie.bits_before(place)),
        };
        let Stretch { run, gap } = trie.stretch(place, start);
        let (order, _) = self.compare(&Cell { start, run, gap, at }, key, trace);
        order == Ordering::Equal
            && (self.follow(&trie, path & !1, key, trace).0 == place
                || self.find(key, trace).is_in())
    }

    /// [`Block::find`] for a block of one cell.
    #[inline(never)]
    fn find_lone<T: Trace>(&self, key: &Tail<'_>, trace: &mut T) -> CellPlace {
        let cell = Cell { start: 0, run: self.base, gap: 0, at: self.bits_at };
        let fall = match self.compare(&cell, key, trace) {
            (Ordering::Less, differs) => return self.after_all(differs + 1),
            (Ordering::Equal, _) => Fall::In,
            (Ordering::Greater, shared) => Fall::NearAfter { split: 0, shared },
        };
        CellPlace { before: 0, fall }
    }

    /// [`Block::find`] by a trie of the cells' starts: the key's path names the cells to compare.
    /// Requires: more than one cell.
    #[inline(always)]
    fn find_on_path<const ESCAPES: bool, T: Trace>(
        &self,
        key: &Tail<'_>,
        trace: &mut T,
    ) -> CellPlace {
        let nibbles = self.bytes[self.nibbles_at..].first_chunk().expect("blocks are padded");
        let escapes = self.bytes.get(self.escapes_at..).unwrap_or_default();
        let trie = Trie::<ESCAPES>::new(nibbles, escapes, (self.base, self.spare), self.count);
        let path = trie.path(key.bits(self.base.saturating_sub(1)));
        let (mut place, mut start, mut at) = self.follow(&trie, path & !1, key, trace);
        loop {
            let Stretch { run, gap } = trie.stretch(place, start);
            let matched = match self.compare(&Cell { start, run, gap, at }, key, trace) {
                (Ordering::Less, differs) => differs + 1,
                (Ordering::Equal, _) => return CellPlace { before: place, fall: Fall::In },
                (Ordering::Greater, shared) => {
                    let fall = Fall::NearAfter { split: start, shared };
                    return CellPlace { before: place, fall };
                }
            };
            // Rarely, the key falls at a cell that is not on the path.
            let Some(next) = trie.next(place, matched) else { return self.after_all(matched) };
            start = trie.start(next);
            if start < matched {
                let fall = Fall::NearBefore { split: start, shared: matched - 1 };
                return CellPlace { before: next, fall };
            }
            (place, at) = (next, self.bits_at + trie.bits_before(next));
        }
    }

    /// Follows a path from the first cell, while the key shares the bits of the cells left behind.
    /// These bits end where such a cell differs from the next one on the path. The loads do not
    /// depend on each other. Returns the cell reached, its start, and the position of its bits.
    #[inline(always)]
    fn follow<const ESCAPES: bool, T: Trace>(
        &self,
        trie: &Trie<'_, ESCAPES>,
        mut path: u64,
        key: &Tail<'_>,
        trace: &mut T,
    ) -> (usize, usize, usize) {
        let (mut place, mut start, mut at) = (0, 0, self.bits_at);
        while path != 0 {
            let next = path.trailing_zeros() as usize;
            let next_start = trie.start(next);
            let len = next_start.wrapping_sub(start + 1);
            trace.touch(self.address() + at / 8, 1);
            let differences = load_or_zero(self.bytes, at) ^ key.bits(start);
            // The next bit belongs to the path: it is 1 where the cell has a 0.
            if len >= LEN_MAX || differences >> 1 >> (63 - len) != 0 {
                break;
            }
            (place, start, at) = (next, next_start, self.bits_at + trie.bits_before(next));
            path &= path - 1;
        }
        (place, start, at)
    }

    fn after_all(&self, matched: usize) -> CellPlace {
        CellPlace { before: self.count, fall: Fall::AfterAll { shared: matched - 1 } }
    }

    /// The number of cells.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Visits the smallest and the largest view of keys in each cell, in order.
    pub fn for_each_bounds(&self, mut visit: impl FnMut(u64, u64)) {
        let mut view = 0u64;
        for cell in self.cells() {
            if cell.start > 0 && cell.start <= 64 {
                let one = 1 << (64 - cell.start);
                view = view & !(one - 1) | one;
            }
            let end = cell.start + cell.run + cell.gap + self.spare;
            view = self.fill_view(view, &cell);
            let free = u64::MAX.checked_shr(end as u32).unwrap_or(0);
            visit(view & !free, view | free);
        }
    }

    /// Combines the cell's bits with the bits before its start.
    fn fill_view(&self, view: u64, cell: &Cell) -> u64 {
        let rest = (cell.at + cell.run, cell.start + cell.run + cell.gap, self.spare);
        let mut filled = if cell.start == 0 { 0 } else { view };
        for (mut from, mut to, mut len) in [(cell.at, cell.start, cell.run), rest] {
            while len > 0 && to < 64 {
                let step = len.min(56);
                filled |= (top(load_or_zero(self.bytes, from), step) << (64 - step)) >> to;
                (from, to, len) = (from + step, to + step, len - step);
            }
        }
        filled
    }
}

/// Returns the first bit in which stored bits differ from a key's, and their order.
fn first_difference(
    bytes: &[u8],
    mut from: usize,
    tail: &Tail<'_>,
    mut to: usize,
    mut len: usize,
) -> Option<(Ordering, usize)> {
    while len > 0 {
        let step = len.min(56);
        let (stored, asked) = (top(load_or_zero(bytes, from), step), top(tail.bits(to), step));
        let difference = stored ^ asked;
        if difference != 0 {
            let place = step - (64 - difference.leading_zeros() as usize);
            return Some((stored.cmp(&asked), to + place));
        }
        (from, to, len) = (from + step, to + step, len - step);
    }
    None
}

/// A key's place among a block's cells.
#[derive(Clone, Copy, Debug)]
pub struct CellPlace {
    /// The number of cells whose keys are all below the key.
    pub before: usize,
    /// The key's position relative to the nearest cells.
    pub fall: Fall,
}

impl CellPlace {
    /// Whether the key lies in a cell. False: no key of the block equals it.
    #[inline(always)]
    pub fn is_in(&self) -> bool {
        matches!(self.fall, Fall::In)
    }
}

/// A key in a cell, or between two. Between two, `split` is the bit after the first one in which
/// the two cells differ. `shared` counts the bits that the key shares with the nearer cell: at
/// least `split`.
#[derive(Clone, Copy, Debug)]
pub enum Fall {
    /// In a cell.
    In,
    /// After a cell with which it shares more bits than with the next one.
    NearBefore {
        /// The bit after the first in which the two cells differ.
        split: usize,
        /// The bits shared with the nearer cell.
        shared: usize,
    },
    /// Before a cell with which it shares more bits than with the previous one.
    NearAfter {
        /// The bit after the first in which the two cells differ.
        split: usize,
        /// The bits shared with the nearer cell.
        shared: usize,
    },
    /// After the last cell.
    AfterAll {
        /// The bits shared with the last cell.
        shared: usize,
    },
}

/// Iterates over a block's cells in order. Without unpredictable branches, except for escapes.
struct Cells<'a> {
    block: &'a Block<'a>,
    place: usize,
    start: usize,
    at: usize,
    /// The next nibbles, the first one in the lowest bits.
    nibbles: u64,
    escapes_at: usize,
    /// The run of a block's only cell, or 0.
    lone_run: usize,
}

impl Cells<'_> {
    /// Returns the start of the cell at `place`. Requires: called once per place, in order.
    #[inline(always)]
    fn start_at(&mut self, place: usize) -> usize {
        const NIBBLES: usize = 16;
        if place % NIBBLES == 1 {
            self.nibbles =
                word_or_zero(self.block.bytes, self.block.nibbles_at + place / 2).swap_bytes();
        }
        let nibble = self.nibbles as usize & 15;
        self.nibbles >>= 4;
        if nibble == ESCAPE { self.escape() } else { self.block.base + nibble }
    }

    #[cold]
    fn escape(&mut self) -> usize {
        take_escape(self.block.bytes, &mut self.escapes_at)
    }
}

/// Reads a start among the escapes and moves `at` past it: at most three bytes of seven bits.
/// Damaged bytes give arbitrary results.
#[inline(always)]
pub(super) fn take_escape(bytes: &[u8], at: &mut usize) -> usize {
    let mut start = 0;
    for shift in [0, 7, 14] {
        let byte = usize::from(bytes.get(*at).copied().unwrap_or(0));
        *at += 1;
        start |= (byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    start
}

impl Iterator for Cells<'_> {
    type Item = Cell;

    #[inline(always)]
    fn next(&mut self) -> Option<Cell> {
        if self.place == self.block.count {
            return None;
        }
        self.place += 1;
        let next = if self.place < self.block.count { self.start_at(self.place) } else { 0 };
        let run = next.saturating_sub(self.start + 1) + self.lone_run;
        let gap = usize::from(next > self.start);
        let cell = Cell { start: self.start, run, gap, at: self.at };
        self.start = next;
        self.at += run + self.block.spare;
        Some(cell)
    }
}
