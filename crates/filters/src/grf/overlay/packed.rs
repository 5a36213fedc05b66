//! The packed entries of some neighbouring lists: those whose flushes were merged.
//! ```text
//! layout   one word: where entries begin; bits of fraction, spare, code, slot; lists; bytes of
//!          an end
//! tables   of each list: its first entry, and where its slots end, counted from there
//! entries  (bucket within its slot, fraction, code) packed, sorted
//! codes    of each: first flush, counted from the origin; number of flushes; bits of its
//!          entries' fractions
//! footer   origin u64 | codes u16 | bytes of a number u8 | whether entries' codes are apart u8
//!          | keys that are one entry with another key u32
//! ```
//! What a probe needs comes first, what a match needs last. A slot is some neighbouring buckets of
//! a list: as few as pays for so many entries. A fraction of fewer bits than the others ends in
//! zeros, at most `spare` of them. It stands for all fractions that begin as it does. Invariant: an
//! entry's code, a span, contains its flush number.

use crate::base::filter::{Trace, ask_for_lines};
use crate::base::shape::{FlushNumber, Span};
use crate::bits::packed::{PackedReader, load, read};
use crate::bits::search::first_not;
use crate::bits::simd::prefetch_lines;
use crate::grf::base::place::{BUCKET_BITS, BUCKETS, FRACTION_BITS, LISTS_MAX, place_about};
use crate::grf::overlay::huffman::{Numbers, Section};
use crate::grf::sizes::LINE_BYTES;
use std::ops::Range;

/// Codes that the packed entries of a chunk can have.
pub(crate) const CODES_MAX: usize = 256;

pub(crate) const LAYOUT_BYTES: usize = 8;
const FOOTER_BYTES: usize = 16;
/// Bytes of a list's table that has an end of one byte for each of its buckets, as most have.
const TABLE_BYTES_ABOUT: usize = 2 + BUCKETS;

/// Steps of the search in a slot: most have fewer than sixteen entries.
const SLOT_STEPS: u32 = 4;

/// What entries of one code share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Code {
    pub(crate) span: Span,
    /// The bits of their fractions.
    pub(crate) bits: u8,
}

/// An entry as one number, in the order of entries: list, place, code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry(pub(crate) u64);

impl Entry {
    pub(crate) const CODE_BITS: usize = 16;

    /// An entry with code 0 at a spot: list, then place.
    #[inline(always)]
    pub(crate) fn new(spot: u32) -> Self {
        Entry(u64::from(spot) << Self::CODE_BITS)
    }

    /// The same with another code.
    #[inline(always)]
    pub(crate) fn recoded(self, recoding: Recoding) -> Self {
        let cut = Self::CODE_BITS + usize::from(recoding.cut);
        Entry(self.0 >> cut << cut | u64::from(recoding.code))
    }

    /// The same with code 0.
    pub(crate) fn bare(self) -> Self {
        Entry(self.0 >> Self::CODE_BITS << Self::CODE_BITS)
    }

    /// Its spot: list, then place.
    pub(crate) fn spot(self) -> u32 {
        (self.0 >> Self::CODE_BITS) as u32
    }

    /// The bucket, counted over all lists.
    #[inline(always)]
    pub(crate) fn bucket(self) -> usize {
        (self.0 >> (Self::CODE_BITS + FRACTION_BITS)) as usize
    }

    #[inline(always)]
    pub(crate) fn code(self) -> usize {
        self.0 as u16 as usize
    }
}

/// What becomes of entries of one code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recoding {
    /// Their fractions do without so many low bits.
    pub(crate) cut: u8,
    pub(crate) code: u16,
}

/// How a tier is laid out, as one word of fields.
#[derive(Clone, Copy)]
pub(crate) struct Layout(pub(crate) u64);

impl Layout {
    #[inline(always)]
    fn field(self, at: u32) -> usize {
        (self.0 >> at & 0xff) as usize
    }

    /// Where entries begin, in bytes.
    #[inline(always)]
    pub(crate) fn entries_at(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    #[inline(always)]
    pub(crate) fn fraction_bits(self) -> usize {
        self.field(16)
    }

    #[inline(always)]
    pub(crate) fn spare_bits(self) -> usize {
        self.field(24)
    }

    #[inline(always)]
    pub(crate) fn code_bits(self) -> usize {
        self.field(32)
    }

    #[inline(always)]
    pub(crate) fn slot_bits(self) -> usize {
        self.field(40)
    }

    #[inline(always)]
    pub(crate) fn lists(self) -> usize {
        self.field(48)
    }

    /// Bytes of where a slot ends, as a power of two: at most 2.
    #[inline(always)]
    pub(crate) fn end_log(self) -> usize {
        self.field(56)
    }

    /// Whether where a slot ends is one byte: so it is in all but long lists.
    #[inline(always)]
    pub(crate) fn has_byte_ends(self) -> bool {
        self.0 >> 56 == 0
    }

    /// Bytes of a list's first entry: two where ends have one, else four.
    #[inline(always)]
    pub(crate) fn first_bytes(self) -> usize {
        if self.has_byte_ends() { 2 } else { 4 }
    }

    #[inline(always)]
    pub(crate) fn slots(self) -> usize {
        BUCKETS >> self.slot_bits()
    }

    /// Bytes of a list's table.
    #[inline(always)]
    pub(crate) fn table_bytes(self) -> usize {
        self.first_bytes() + (self.slots() << self.end_log())
    }

    #[inline(always)]
    pub(crate) fn entry_bits(self) -> usize {
        self.slot_bits() + self.fraction_bits() + self.code_bits()
    }
}

/// Packed entries to be read.
#[derive(Clone, Copy)]
pub(crate) struct Packed<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) layout: Layout,
}

impl<'a> Packed<'a> {
    #[inline(always)]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Packed { bytes, layout: Layout(number8(bytes, 0)) }
    }

    /// Whether bytes can be the packed entries of so many lists.
    pub(crate) fn is_one(bytes: &[u8], lists: usize) -> bool {
        if bytes.len() < LAYOUT_BYTES + FOOTER_BYTES {
            return false;
        }
        let packed = Packed::new(bytes);
        let has_all = packed.has_a_layout(lists) && packed.has_tables() && packed.has_codes();
        has_all && packed.has_entries()
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
    pub(crate) fn is_apart(&self) -> bool {
        self.footer()[11] != 0
    }

    /// The code's number of an entry that was read.
    #[inline(always)]
    pub(crate) fn number_of(&self, place: usize, entry: u64) -> usize {
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
    pub(crate) fn code_bytes(&self) -> &'a [u8] {
        let (codes, len) = (number2(self.footer(), 8), usize::from(self.footer()[10]));
        let at = self.bytes.len() - FOOTER_BYTES - codes * (2 * len + 1);
        &self.bytes[at..self.bytes.len() - 4]
    }

    /// The codes of entries, by their number.
    pub(crate) fn codes(&self) -> impl Iterator<Item = Code> + '_ {
        (0..number2(self.footer(), 8)).map(|code| self.code(code))
    }

    #[inline(always)]
    pub(crate) fn code(&self, code: usize) -> Code {
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
    pub(crate) fn len(&self) -> usize {
        self.slot(self.layout.lists() - 1, BUCKETS - 1).end
    }

    /// Adds the entries of each bucket, counted over all lists; of a slot of several, as if they
    /// were alike.
    pub(crate) fn count_buckets(&self, counts: &mut [u32]) {
        let slot_bits = self.layout.slot_bits();
        for (bucket, entries) in self.slots() {
            let counts = &mut counts[bucket..bucket + (1 << slot_bits)];
            counts.iter_mut().for_each(|count| *count += (entries >> slot_bits) as u32);
        }
    }

    /// All slots, in order.
    #[inline(always)]
    pub(crate) fn slots(&self) -> Slots<'a> {
        Slots { bytes: self.bytes, layout: self.layout, at: LAYOUT_BYTES, bucket: 0, before: 0 }
    }

    /// All entries, one after the other, as they are packed.
    #[inline(always)]
    pub(crate) fn packed_entries(&self) -> PackedReader<'a> {
        let at = 8 * self.layout.entries_at();
        PackedReader::new(self.bytes, at, self.layout.entry_bits())
    }

    /// The keys that are one entry with another key: their places and codes are equal.
    pub(crate) fn merged(&self) -> u64 {
        number(self.footer(), 12, 4)
    }

    /// The slot of a bucket, as a range of entries.
    #[inline(always)]
    pub(crate) fn slot(&self, list: usize, bucket: usize) -> Range<usize> {
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

    /// Prefetches a list's table, and the likely place of the entries of keys that lie so far
    /// across the list. Entries are taken as evenly spread over all lists.
    #[inline(always)]
    pub(crate) fn load_about<T: Trace>(bytes: &[u8], list: usize, across: usize, trace: &mut T) {
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
    pub(crate) fn load_entry(&self, place: usize) {
        prefetch_lines(self.bytes, self.entry_byte(place), 1);
    }

    /// Where an entry begins, or the byte that it shares with the one before.
    #[inline(always)]
    fn entry_byte(&self, place: usize) -> usize {
        self.layout.entries_at() + place * self.layout.entry_bits() / 8
    }

    /// Bucket within its slot, fraction and code, as they are packed.
    #[inline(always)]
    pub(crate) fn entry(&self, place: usize) -> u64 {
        let bits = self.layout.entry_bits();
        read(self.bytes, 8 * self.layout.entries_at() + place * bits, bits)
    }

    /// The spans of entries.
    #[inline(always)]
    pub(crate) fn visit<T: Trace>(
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
    pub(crate) fn visit_fractions(&self, range: Range<usize>, mut visit: impl FnMut(u64, Code)) {
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
    pub(crate) fn group(&self, place: usize) -> u64 {
        self.entry(place) >> self.layout.code_bits() >> self.layout.spare_bits()
    }

    /// Gives `out` all entries, in order, in place of what it has.
    #[inline(always)]
    pub(crate) fn decode(&self, out: &mut Vec<Entry>) {
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

    /// Tells `trace` what [`Packed::slot`] reads.
    #[inline(always)]
    pub(crate) fn touch_table<T: Trace>(&self, list: usize, bucket: usize, trace: &mut T) {
        let start = self.bytes.as_ptr() as usize;
        trace.touch(start, LAYOUT_BYTES);
        let table = start + LAYOUT_BYTES + list * self.layout.table_bytes();
        trace.touch(table, 2);
        let ends = table + self.layout.first_bytes();
        trace.touch(ends + (bucket >> self.layout.slot_bits() << self.layout.end_log()), 1);
    }

    #[inline(always)]
    pub(crate) fn touch_entry<T: Trace>(&self, place: usize, trace: &mut T) {
        trace.touch(self.bytes.as_ptr() as usize + self.entry_byte(place), 8);
    }
}

impl Packed<'_> {
    /// Whether the entries of each slot ascend, and each has a code. Requires: layout, tables and
    /// codes are right.
    pub(crate) fn has_entries(&self) -> bool {
        let mut entries = self.packed_entries();
        let code_bits = self.layout.code_bits();
        let codes = self.codes().count() as u64;
        self.slots().all(|(_, count)| {
            let mut last = 0;
            (0..count).all(|_| {
                let entry = entries.take();
                let is_one = entry >= last && entry & ((1 << code_bits) - 1) < codes;
                last = entry;
                is_one
            })
        })
    }
}

impl Packed<'_> {
    /// A place as entries have it: within its slot, and without the bits that none has.
    #[inline(always)]
    fn shortened(&self, place: u32) -> u64 {
        let within = (1 << (self.layout.slot_bits() + FRACTION_BITS)) - 1;
        (u64::from(place) & within) >> (FRACTION_BITS - self.layout.fraction_bits())
    }

    /// Of a slot, the entries from the first that may stand for the place `low` to the last that
    /// may for `high`. Some between them may not.
    #[inline(always)]
    pub(crate) fn between<T: Trace>(
        &self,
        slot: Range<usize>,
        (low, high): (u32, u32),
        trace: &mut T,
    ) -> Range<usize> {
        let from = self.from(slot.clone(), low, trace);
        let (high, code_bits) = (self.shortened(high), self.layout.code_bits());
        let end = first_not::<SLOT_STEPS>(from, slot.end, |place| {
            self.touch_entry(place, trace);
            self.entry(place) >> code_bits <= high
        });
        from..end
    }

    /// Where [`Packed::between`] begins.
    #[inline(always)]
    pub(crate) fn from<T: Trace>(&self, slot: Range<usize>, low: u32, trace: &mut T) -> usize {
        let (spare, bits) = (self.layout.spare_bits(), self.layout.entry_bits());
        let least = self.shortened(low) >> spare << spare << self.layout.code_bits();
        // Compared with the entry on top of its word, and so with what follows it there: that
        // changes nothing.
        let (least, start) = (least << 1 << (63 - bits), 8 * self.layout.entries_at());
        first_not::<SLOT_STEPS>(slot.start, slot.end, |place| {
            self.touch_entry(place, trace);
            load(self.bytes, start + place * bits) < least
        })
    }

    /// The codes of a slot's entries that stand for a place from one to another, both included,
    /// until `visit` has enough.
    #[inline(always)]
    pub(crate) fn visit_between<T: Trace>(
        &self,
        slot: Range<usize>,
        (low, high): (u32, u32),
        trace: &mut T,
        mut visit: impl FnMut(Span) -> bool,
    ) {
        let (end, code_bits) = (slot.end, self.layout.code_bits());
        let mut at = self.from(slot, low, trace);
        let (low, high) = (self.shortened(low), self.shortened(high));
        loop {
            self.touch_entry(at, trace);
            let entry = self.entry(at);
            let packed = entry >> code_bits;
            // Behind the slot, a read is wasted: that makes one predictable branch instead of two.
            if (at >= end) | (packed > high) {
                return;
            }
            let code = self.code(self.number_of(at, entry));
            let spare = self.layout.fraction_bits() - usize::from(code.bits);
            if packed | ((1 << spare) - 1) >= low && !visit(code.span) {
                return;
            }
            at += 1;
        }
    }
}

impl<'a> Packed<'a> {
    /// Whether the section of the codes' numbers is one, in so many bytes.
    pub(crate) fn has_numbers(&self, codes: usize, room: usize) -> bool {
        let ends = |list| self.slot(list, BUCKETS - 1).end - self.slot(list, 0).start;
        let entries: Vec<usize> = (0..self.layout.lists()).map(ends).collect();
        self.layout.code_bits() == 0 && self.numbers_section().is_one(&entries, codes, room)
    }

    /// Requires: it is there.
    fn numbers_section(&self) -> Section<'a> {
        let at = self.layout.entries_at() + (self.layout.entry_bits() * self.len()).div_ceil(8);
        Section::new(&self.bytes[at..], self.layout.lists())
    }

    /// The codes' numbers from an entry on. Requires: they are apart.
    fn numbers_from(&self, place: usize) -> Numbers<'a> {
        let first = |list: &usize| self.slot(*list, 0).start;
        let list = (0..self.layout.lists()).rev().find(|list| first(list) <= place).unwrap_or(0);
        let mut numbers = self.numbers_section().numbers_from(list);
        (first(&list)..place).for_each(|_| {
            numbers.take();
        });
        numbers
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn number_apart(&self, place: usize) -> usize {
        self.numbers_from(place).take()
    }

    /// As [`Packed::visit`], where the codes' numbers are apart.
    #[cold]
    #[inline(never)]
    pub(crate) fn visit_apart(&self, range: Range<usize>, mut visit: impl FnMut(Span)) {
        self.visit_numbers(range, |_, number| visit(self.code(number).span));
    }

    /// Entries and their codes' numbers. Requires: these are apart.
    pub(crate) fn visit_numbers(&self, range: Range<usize>, mut visit: impl FnMut(usize, usize)) {
        if range.is_empty() {
            return;
        }
        let mut numbers = self.numbers_from(range.start);
        range.for_each(|at| visit(at, numbers.take()));
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn decode_numbers(&self, out: &mut [Entry]) {
        let mut numbers = self.numbers_section().numbers_from(0);
        out.iter_mut().for_each(|entry| entry.0 |= numbers.take() as u64);
    }
}

/// Of each slot the first bucket, counted over all lists, and how many entries the slot has.
pub(crate) struct Slots<'a> {
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
