//! Settled entries of some neighbouring lists: those whose flushes were merged, packed.
//! ```text
//! layout   one word: where entries begin; bits of fraction, spare, code, slot; lists; bytes of an end
//! tables   of each list: its first entry, and where its slots end, counted from there
//! entries  (bucket within its slot, fraction, code) packed, sorted
//! codes    of each: first flush, counted from the origin; number of flushes; bits of its entries' fractions
//! footer   origin u64 | codes u16 | bytes of a number u8 | whether entries' codes are apart u8
//!          | keys that are one entry with another key u32
//! ```
//! What a probe needs comes first, what a match needs last. A slot is some neighbouring buckets of a list: as few as pays for
//! so many entries. A fraction of fewer bits than the others' has zeros behind, and stands for all fractions that
//! begin as it does; at most `spare` bits are such zeros. Invariant: an entry's code, a span, contains its flush number.

use super::base::LINE_BYTES;
use super::place::{BUCKET_BITS, BUCKETS, FRACTION_BITS, LISTS_MAX, place_about};
use super::settled_layout::Layout;
use crate::bits::packed::{PackedReader, read};
use crate::bits::simd::prefetch_lines;
use crate::filter::{Trace, ask_for_lines};
use crate::shape::{FlushNumber, Span};
use std::ops::Range;

/// Codes that the settled entries of a chunk can have.
pub(super) const CODES_MAX: usize = 256;

pub(super) const LAYOUT_BYTES: usize = 8;
const FOOTER_BYTES: usize = 16;
/// Bytes of a list's table that has an end of one byte for each of its buckets, as most have.
const TABLE_BYTES_ABOUT: usize = 2 + BUCKETS;

/// What entries of one code share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Code {
    pub(super) span: Span,
    /// The bits of their fractions.
    pub(super) bits: u8,
}

/// An entry as one number, in the order of entries: list, place, code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry(pub(super) u64);

impl Entry {
    pub(super) const CODE_BITS: usize = 16;

    /// An entry with code 0 at a spot: list, then place.
    #[inline(always)]
    pub(super) fn new(spot: u32) -> Self {
        Entry(u64::from(spot) << Self::CODE_BITS)
    }

    /// The same with another code.
    #[inline(always)]
    pub(super) fn recoded(self, recoding: Recoding) -> Self {
        let cut = Self::CODE_BITS + usize::from(recoding.cut);
        Entry(self.0 >> cut << cut | u64::from(recoding.code))
    }

    /// The same with code 0.
    pub(super) fn bare(self) -> Self {
        Entry(self.0 >> Self::CODE_BITS << Self::CODE_BITS)
    }

    /// Its spot: list, then place.
    pub(super) fn spot(self) -> u32 {
        (self.0 >> Self::CODE_BITS) as u32
    }

    /// The bucket, counted over all lists.
    #[inline(always)]
    pub(super) fn bucket(self) -> usize {
        (self.0 >> (Self::CODE_BITS + FRACTION_BITS)) as usize
    }

    #[inline(always)]
    pub(super) fn code(self) -> usize {
        self.0 as u16 as usize
    }
}

/// What becomes of entries of one code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Recoding {
    /// Their fractions do without so many low bits.
    pub(super) cut: u8,
    pub(super) code: u16,
}

/// Settled entries to be read.
#[derive(Clone, Copy)]
pub(super) struct Settled<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) layout: Layout,
}

impl<'a> Settled<'a> {
    #[inline(always)]
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Settled { bytes, layout: Layout(number8(bytes, 0)) }
    }

    /// Whether bytes can be the settled entries of so many lists.
    pub(super) fn is_one(bytes: &[u8], lists: usize) -> bool {
        if bytes.len() < LAYOUT_BYTES + FOOTER_BYTES {
            return false;
        }
        let settled = Settled::new(bytes);
        let has_all = settled.has_a_layout(lists) && settled.has_tables() && settled.has_codes();
        has_all && settled.has_entries()
    }

    fn has_a_layout(&self, lists: usize) -> bool {
        let layout = self.layout;
        let bits = layout.fraction_bits();
        layout.lists() == lists
            && layout.slot_bits() <= BUCKET_BITS
            && bits <= FRACTION_BITS
            && layout.spare_bits() <= bits
            && layout.code_bits() <= CODES_MAX.ilog2() as usize
            && layout.end_log() <= 2
            && layout.entries_at() == LAYOUT_BYTES + lists * layout.table_bytes()
            && layout.entries_at() + FOOTER_BYTES <= self.bytes.len()
    }

    fn has_tables(&self) -> bool {
        let width = 1 << self.layout.slot_bits();
        let slots = (0..self.layout.lists())
            .flat_map(|list| (0..BUCKETS).step_by(width).map(move |bucket| (list, bucket)))
            .map(|(list, bucket)| self.slot(list, bucket));
        let mut end = 0;
        let ascend = slots.fold(true, |ascend, slot| {
            let follows = slot.start <= slot.end && slot.start == end;
            end = slot.end;
            ascend && follows
        });
        let bits = self.layout.entry_bits().checked_mul(self.len());
        let room = self.bytes.len() - FOOTER_BYTES - self.layout.entries_at();
        ascend && bits.is_some_and(|bits| bits.div_ceil(8) <= room)
    }

    fn has_codes(&self) -> bool {
        let (codes, len) = (number2(self.footer(), 8), usize::from(self.footer()[10]));
        let entries = (self.layout.entry_bits() * self.len()).div_ceil(8);
        let room = self.bytes.len() - FOOTER_BYTES - self.layout.entries_at() - entries;
        let most = self.layout.fraction_bits();
        let bits = most - self.layout.spare_bits()..=most;
        let known = |code: usize| {
            let at = self.bytes.len() - FOOTER_BYTES - (codes - code) * (2 * len + 1);
            let (lo, count) = (number(self.bytes, at, len), number(self.bytes, at + len, len));
            let lo = number8(self.footer(), 0).checked_add(lo);
            let end = lo.and_then(|lo| lo.checked_add(count));
            count > 0 && end.is_some() && bits.contains(&usize::from(self.bytes[at + 2 * len]))
        };
        (1..=CODES_MAX).contains(&codes)
            && [1, 2, 4, 8].contains(&len)
            && codes * (2 * len + 1) <= room
            && (0..codes).all(known)
            && (!self.is_apart() || self.has_numbers(codes, room - codes * (2 * len + 1)))
    }

    /// Whether the codes' numbers are in a section of their own, behind the entries (`huffman.rs`).
    #[inline(always)]
    pub(super) fn is_apart(&self) -> bool {
        self.footer()[11] != 0
    }

    /// The code's number of an entry that was read.
    #[inline(always)]
    pub(super) fn number_of(&self, place: usize, entry: u64) -> usize {
        if self.is_apart() { self.number_apart(place) } else { self.number_within(entry) }
    }

    #[inline(always)]
    fn number_within(&self, entry: u64) -> usize {
        (entry & ((1 << self.layout.code_bits()) - 1)) as usize
    }

    #[inline(always)]
    fn footer(&self) -> &'a [u8] {
        &self.bytes[self.bytes.len() - FOOTER_BYTES..]
    }

    /// What the codes are read from.
    pub(super) fn code_bytes(&self) -> &'a [u8] {
        let (codes, len) = (number2(self.footer(), 8), usize::from(self.footer()[10]));
        let at = self.bytes.len() - FOOTER_BYTES - codes * (2 * len + 1);
        &self.bytes[at..self.bytes.len() - 4]
    }

    /// The codes of entries, by their number.
    pub(super) fn codes(&self) -> impl Iterator<Item = Code> + '_ {
        (0..number2(self.footer(), 8)).map(|code| self.code(code))
    }

    #[inline(always)]
    pub(super) fn code(&self, code: usize) -> Code {
        let footer = self.footer();
        let (codes, len) = (number2(footer, 8), usize::from(footer[10]));
        let at = self.bytes.len() - FOOTER_BYTES - (codes - code) * (2 * len + 1);
        let lo = number8(footer, 0) + number(self.bytes, at, len);
        let hi = lo + number(self.bytes, at + len, len);
        let span = Span::new(FlushNumber(lo), FlushNumber(hi)).expect("a code is not empty");
        Code { span, bits: self.bytes[at + 2 * len] }
    }

    /// The number of entries.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.slot(self.layout.lists() - 1, BUCKETS - 1).end
    }

    /// Adds the entries of each bucket, counted over all lists; of a slot of several, as if they were alike.
    pub(super) fn count_buckets(&self, counts: &mut [u32]) {
        let slot_bits = self.layout.slot_bits();
        for (bucket, entries) in self.slots() {
            let counts = &mut counts[bucket..bucket + (1 << slot_bits)];
            counts.iter_mut().for_each(|count| *count += (entries >> slot_bits) as u32);
        }
    }

    /// All slots, in order.
    #[inline(always)]
    pub(super) fn slots(&self) -> Slots<'a> {
        Slots { bytes: self.bytes, layout: self.layout, at: LAYOUT_BYTES, bucket: 0, before: 0 }
    }

    /// How entries are laid out.
    #[inline(always)]
    pub(super) fn layout(&self) -> Layout {
        self.layout
    }

    /// All entries, one after the other, as they are packed.
    #[inline(always)]
    pub(super) fn packed_entries(&self) -> PackedReader<'a> {
        let at = 8 * self.layout.entries_at();
        PackedReader::new(self.bytes, at, self.layout.entry_bits())
    }

    /// The keys that are one entry with another key: their places and codes are equal.
    pub(super) fn merged(&self) -> u64 {
        number(self.footer(), 12, 4)
    }

    /// The slot of a bucket, as a range of entries.
    #[inline(always)]
    pub(super) fn slot(&self, list: usize, bucket: usize) -> Range<usize> {
        let slot = bucket >> self.layout.slot_bits();
        let table = LAYOUT_BYTES + list * self.layout.table_bytes();
        let (first, before, end) = if self.layout.has_byte_ends() {
            let end = table + 2 + slot;
            let byte = |at: usize| usize::from(self.bytes[at]);
            (number2(self.bytes, table), byte(end - 1), byte(end))
        } else {
            let len = 1 << self.layout.end_log();
            let end = table + 4 + len * slot;
            let number = |at, len| number(self.bytes, at, len) as usize;
            (number(table, 4), number(end - len, len), number(end, len))
        };
        // Before the first end there is none, but the list's first entry.
        first + if slot == 0 { 0 } else { before }..first + end
    }

    /// Asks for the memory of a list's table and of the entries of keys that lie so far across the list, as if all lists had equally
    /// many, evenly spread.
    #[inline(always)]
    pub(super) fn load_about<T: Trace>(bytes: &[u8], list: usize, across: usize, trace: &mut T) {
        const LINES: usize = 3;
        ask_for_lines(bytes, 0, 1, trace);
        ask_for_lines(bytes, LAYOUT_BYTES + list * TABLE_BYTES_ABOUT, 1, trace);
        let from = LAYOUT_BYTES + LISTS_MAX * TABLE_BYTES_ABOUT;
        let entries = bytes.len().saturating_sub(from + FOOTER_BYTES);
        let at = from + place_about(entries, list, across);
        ask_for_lines(bytes, at - LINE_BYTES, LINES, trace);
    }

    /// Asks for the memory of an entry, without waiting for it.
    #[inline(always)]
    pub(super) fn load_entry(&self, place: usize) {
        prefetch_lines(self.bytes, self.entry_byte(place), 1);
    }

    /// Where an entry begins, or the byte that it shares with the one before.
    #[inline(always)]
    fn entry_byte(&self, place: usize) -> usize {
        self.layout.entries_at() + place * self.layout.entry_bits() / 8
    }

    /// Bucket within its slot, fraction and code, as they are packed.
    #[inline(always)]
    pub(super) fn entry(&self, place: usize) -> u64 {
        let bits = self.layout.entry_bits();
        read(self.bytes, 8 * self.layout.entries_at() + place * bits, bits)
    }

    /// The spans of entries.
    #[inline(always)]
    pub(super) fn visit<T: Trace>(
        &self,
        range: Range<usize>,
        trace: &mut T,
        mut visit: impl FnMut(Span),
    ) {
        if self.is_apart() {
            return self.visit_apart(range, visit);
        }
        for at in range {
            self.touch_entry(at, trace);
            visit(self.code(self.number_within(self.entry(at))).span);
        }
    }

    /// Fraction and code of entries. The fraction has the code's bits.
    pub(super) fn visit_fractions(&self, range: Range<usize>, mut visit: impl FnMut(u64, Code)) {
        let (bits, code_bits) = (self.layout.fraction_bits(), self.layout.code_bits());
        let mut visit = |entry: u64, number: usize| {
            let code = self.code(number);
            let fraction = entry >> code_bits & ((1 << bits) - 1);
            visit(fraction >> (bits - usize::from(code.bits)), code);
        };
        if self.is_apart() {
            return self.visit_numbers(range, |at, number| visit(self.entry(at), number));
        }
        for at in range {
            let entry = self.entry(at);
            visit(entry, self.number_within(entry));
        }
    }

    /// Entries of different groups have fractions in the groups' order, whatever bits they have.
    pub(super) fn group(&self, place: usize) -> u64 {
        self.entry(place) >> self.layout.code_bits() >> self.layout.spare_bits()
    }

    /// Gives `out` all entries, in order, in place of what it has.
    #[inline(always)]
    pub(super) fn decode(&self, out: &mut Vec<Entry>) {
        let layout = self.layout;
        let code_bits = layout.code_bits();
        let longer = FRACTION_BITS - layout.fraction_bits();
        let mut entries = self.packed_entries();
        out.resize(self.len(), Entry(0));
        let mut rest = &mut out[..];
        for (bucket, count) in self.slots() {
            let first = (bucket as u64) << FRACTION_BITS;
            let (targets, others) = rest.split_at_mut(count);
            rest = others;
            for target in targets {
                let entry = entries.take();
                let spot = first + (entry >> code_bits << longer);
                let code = entry & ((1 << code_bits) - 1);
                *target = Entry(spot << Entry::CODE_BITS | code);
            }
        }
        if self.is_apart() {
            self.decode_numbers(out);
        }
    }

    /// Tells `trace` what [`Settled::slot`] reads.
    #[inline(always)]
    pub(super) fn touch_table<T: Trace>(&self, list: usize, bucket: usize, trace: &mut T) {
        let start = self.bytes.as_ptr() as usize;
        trace.touch(start, LAYOUT_BYTES);
        let table = start + LAYOUT_BYTES + list * self.layout.table_bytes();
        trace.touch(table, 2);
        let ends = table + self.layout.first_bytes();
        trace.touch(ends + (bucket >> self.layout.slot_bits() << self.layout.end_log()), 1);
    }

    #[inline(always)]
    pub(super) fn touch_entry<T: Trace>(&self, place: usize, trace: &mut T) {
        trace.touch(self.bytes.as_ptr() as usize + self.entry_byte(place), 8);
    }
}

/// Of each slot the first bucket, counted over all lists, and how many entries the slot has.
pub(super) struct Slots<'a> {
    bytes: &'a [u8],
    layout: Layout,
    /// Where the next end, or the table of the next list, is.
    at: usize,
    bucket: usize,
    /// The entries of the list before the slot.
    before: usize,
}

impl Iterator for Slots<'_> {
    type Item = (usize, usize);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, usize)> {
        let (bucket, len) = (self.bucket, 1 << self.layout.end_log());
        if bucket == self.layout.lists() << BUCKET_BITS {
            return None;
        }
        if bucket % BUCKETS == 0 {
            (self.at, self.before) = (self.at + self.layout.first_bytes(), 0);
        }
        let end = number(self.bytes, self.at, len) as usize;
        let entries = end - self.before;
        self.before = end;
        self.at += len;
        self.bucket += 1 << self.layout.slot_bits();
        Some((bucket, entries))
    }
}

/// The number of two bytes at `at`.
#[inline(always)]
fn number2(bytes: &[u8], at: usize) -> usize {
    let number = bytes[at..].first_chunk().expect("a tier holds its tables");
    usize::from(u16::from_le_bytes(*number))
}

/// The number of eight bytes at `at`.
#[inline(always)]
fn number8(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("a tier holds its tables"))
}

/// The number of `len` bytes at `at`: 1, 2, 4 or 8 of them.
#[inline(always)]
fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    match len {
        1 => u64::from(bytes[at]),
        2 => number2(bytes, at) as u64,
        4 => {
            let number = bytes[at..].first_chunk().expect("a tier holds its tables");
            u64::from(u32::from_le_bytes(*number))
        }
        _ => number8(bytes, at),
    }
}
