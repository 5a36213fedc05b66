//! Cell fingerprints: a key's shortest prefix, in bits, that tells it from both neighbours, and
//! some spare bits.
//! ```text
//! group prefix   cell (start = bits shared with the cell before, and the one that differs)
//! 10110          0 0 [spare]             start 0
//! 10110            1 0 1 0 [spare]       start 2: shares one bit; the 1 that differs is not kept
//! 10110                  1 [spare]       start 5: the cell before has a 0 at bit 4, not kept
//! 10110          1 [spare]               start 1
//!
//! block: header (u16: count, spare bits, escapes?, base) [long base: 3 bytes] [escape bytes: u8]
//!        a nibble per start but the first: start - base; or 15: a varint among the escapes
//!        [escapes]  the cells' bits from their start on, without known zeros
//! ```
//! All starts count from the end of the group's prefix. Invariant: cells of a block are in key
//! order, and disjoint but for cuts at the block's edges; a key lies in its cell.

use super::trie::{NIBBLE_BYTES, Stretch, Trie};
use crate::base::filter::Trace;
use crate::bits::key_bits::bits_at;
use crate::bits::packed::{LEN_MAX, load_or_zero, top, word_or_zero};
use core::cmp::Ordering;

/// Cells that a block can have.
pub const CELLS_MAX: usize = 64;
/// Spare bits that a cell can have.
pub const SPARE_MAX: usize = 15;
/// The nibble of a start that is written among the escapes.
pub(super) const ESCAPE: usize = 15;
/// The base in a header whose base follows it.
pub(super) const BASE_LONG: usize = 31;
/// The header's flag: there are escapes.
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

/// A key's bits from its group's prefix on.
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

    /// The first 64 bits.
    #[inline]
    pub fn view(&self) -> u64 {
        self.view
    }

    /// 64 bits from bit `at` on.
    #[inline(always)]
    pub fn bits(&self, at: usize) -> u64 {
        match (self.short, at < 64) {
            (true, true) => self.view << at,
            (true, false) => 0,
            _ => bits_at(self.key, self.start + at),
        }
    }
}

/// One cell, not yet read: where it starts and where its bits are.
#[derive(Clone, Copy)]
struct Cell {
    start: usize,
    run: usize,
    gap: usize,
    at: usize,
}

/// Bytes that can be read from a block's start on: its header and all nibbles that there may be.
pub const HEAD_BYTES: usize = 2 + 3 + 1 + NIBBLE_BYTES + 2;

/// A block to be read. Of damaged bytes, any: then what is found means nothing.
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
    /// Reads the header. Requires: `bytes` begin with a block and go on for [`HEAD_BYTES`].
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

    /// The order of a cell's bits and of the key's in their place, and at which bit they differ.
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

    /// The bits of a cell from its start on, the known zero put back. Requires: at most 56 of them.
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

    /// Where a key falls among the cells.
    #[inline(always)]
    pub fn find<T: Trace>(&self, key: &Tail<'_>, trace: &mut T) -> Found {
        trace.touch(self.address(), self.bits_at / 8);
        if self.count == 1 {
            self.find_lone(key, trace)
        } else if self.bits_at == self.escapes_at * 8 {
            self.find_on_path::<false, _>(key, trace)
        } else {
            self.find_on_path::<true, _>(key, trace)
        }
    }

    /// Whether a key lies in a cell: less work than to find where it falls. The one cell that it
    /// can lie in is compared first, which is the end of most keys that lie in none.
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

    /// [`Block::find`], of a lone cell.
    #[inline(never)]
    fn find_lone<T: Trace>(&self, key: &Tail<'_>, trace: &mut T) -> Found {
        let cell = Cell { start: 0, run: self.base, gap: 0, at: self.bits_at };
        let fall = match self.compare(&cell, key, trace) {
            (Ordering::Less, differs) => return self.after_all(differs + 1),
            (Ordering::Equal, _) => Fall::In,
            (Ordering::Greater, shared) => Fall::NearAfter { split: 0, shared },
        };
        Found { before: 0, fall }
    }

    /// [`Block::find`]: the path through the trie that the starts make names the cells to compare.
    /// Requires: not a lone cell.
    #[inline(always)]
    fn find_on_path<const ESCAPES: bool, T: Trace>(&self, key: &Tail<'_>, trace: &mut T) -> Found {
        let nibbles = self.bytes[self.nibbles_at..].first_chunk().expect("blocks are padded");
        let escapes = self.bytes.get(self.escapes_at..).unwrap_or_default();
        let trie = Trie::<ESCAPES>::new(nibbles, escapes, (self.base, self.spare), self.count);
        let path = trie.path(key.bits(self.base.saturating_sub(1)));
        let (mut place, mut start, mut at) = self.follow(&trie, path & !1, key, trace);
        loop {
            let Stretch { run, gap } = trie.stretch(place, start);
            let matched = match self.compare(&Cell { start, run, gap, at }, key, trace) {
                (Ordering::Less, differs) => differs + 1,
                (Ordering::Equal, _) => return Found { before: place, fall: Fall::In },
                (Ordering::Greater, shared) => {
                    let fall = Fall::NearAfter { split: start, shared };
                    return Found { before: place, fall };
                }
            };
            // Hardly ever a cell that the path did not lead to.
            let Some(next) = trie.next(place, matched) else { return self.after_all(matched) };
            start = trie.start(next);
            if start < matched {
                let fall = Fall::NearBefore { split: start, shared: matched - 1 };
                return Found { before: next, fall };
            }
            (place, at) = (next, self.bits_at + trie.bits_before(next));
        }
    }

    /// Goes along a path from the first cell, as long as the key shares the bits of the cells left
    /// behind. These bits end where such a cell differs from what follows on the path. None of
    /// these loads waits for another. Gives the cell that is come to, its start, and where its bits
    /// are.
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
            // The next bit is the path's: 1, where the cell has a 0.
            if len >= LEN_MAX || differences >> 1 >> (63 - len) != 0 {
                break;
            }
            (place, start, at) = (next, next_start, self.bits_at + trie.bits_before(next));
            path &= path - 1;
        }
        (place, start, at)
    }

    fn after_all(&self, matched: usize) -> Found {
        Found { before: self.count, fall: Fall::AfterAll { shared: matched - 1 } }
    }

    /// The number of cells.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Per cell, in order, the least and the greatest view that a key of it can have.
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

    /// Puts the cell's bits into the view of the bits before its start.
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

/// The first bit in which stored bits differ from a key's: their order and its place in the key.
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

/// Where a key falls among a block's cells.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The cells whose keys are all below the key.
    pub before: usize,
    /// Where beside the cells.
    pub fall: Fall,
}

impl Found {
    /// Whether the key lies in a cell. False: no key of the block equals it.
    #[inline(always)]
    pub fn is_in(&self) -> bool {
        matches!(self.fall, Fall::In)
    }
}

/// The key lies in a cell, or between two. In the latter case, `split` is the first bit after the
/// one in which these two differ. `shared` counts the bits that the key shares with the nearer one:
/// at least `split`.
#[derive(Clone, Copy, Debug)]
pub enum Fall {
    /// In a cell.
    In,
    /// After a cell that it shares more with than with the next one.
    NearBefore {
        /// The bit after the first that differs.
        split: usize,
        /// Bits that the nearer one shares.
        shared: usize,
    },
    /// Before a cell that it shares more with than with the one before.
    NearAfter {
        /// The bit after the first that differs.
        split: usize,
        /// Bits that the nearer one shares.
        shared: usize,
    },
    /// After the last cell.
    AfterAll {
        /// Bits that the last cell shares.
        shared: usize,
    },
}

/// The cells of a block, in order. Without turns that cannot be foreseen, but for escapes.
struct Cells<'a> {
    block: &'a Block<'a>,
    place: usize,
    start: usize,
    at: usize,
    /// The next nibbles, the first one lowest.
    nibbles: u64,
    escapes_at: usize,
    /// The run of a block's only cell; else 0.
    lone_run: usize,
}

impl Cells<'_> {
    /// Where the cell at `place` starts. Requires: asked for in order, once each.
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

/// The start that is written at a place among the escapes, behind which it goes on: at most three
/// bytes of seven bits. Of damaged bytes, any.
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
