//! The packed entries of consecutive lists: one tier of a chunk.
//! ```text
//! layout     packed_layout.rs
//! tables     per list: its first entry, and the ends of its slots relative to that
//! quotients  of the entries, in unary: quotients.rs
//! samples    if some buckets have many entries: the ones before every 512th quotient bit, u32
//! entries    remainders, packed, ascending within a quotient
//! codes      per code: first flush, relative to the origin; number of flushes; fraction bits of
//!            its entries
//! footer     origin u64 | codes u16 | bytes of a number u8 | whether entries' codes are apart u8
//!            | keys that share an entry with another key u32
//! ```
//! What every probe reads comes first, what only matches read comes last. A slot is a range of
//! consecutive buckets of a list, with some dozen entries. Place and code form one number, which is
//! split into quotient and remainder. A fraction shorter than the longest ends in zeros, at most
//! `spare` of them, and stands for all fractions with its prefix.
//!
//! Invariant: an entry's code, a span, contains the key's flush number.

use alloc::vec::Vec;

use crate::base::filter::{Trace, prefetch_lines_traced};
use crate::base::shape::{FlushNumber, Span};
use crate::bits::packed::{PackedReader, read};
use crate::bits::simd::prefetch_lines;
use crate::grf::base::place::{BUCKET_BITS, BUCKETS, FRACTION_BITS, LISTS_MAX, place_about};
use crate::grf::overlay::packed_layout::{LAYOUT_BYTES, Layout, SAMPLE_BYTES};
use crate::grf::overlay::quotients::{Quotients, QuotientsOf, last_sample};
use crate::grf::sizes::{LINE_BYTES, Slot};
use core::ops::Range;

/// The maximum number of codes in a chunk's packed entries.
pub(crate) const CODES_MAX: usize = 256;

const FOOTER_BYTES: usize = 16;
/// The approximate size of a list's table, and the approximate share of quotients in the rest.
const TABLE_BYTES_ABOUT: usize = 2 + BUCKETS / 4;
const QUOTIENTS_SHARE: usize = 8;

/// What entries with the same code share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Code {
    pub(crate) span: Span,
    /// The fraction bits of these entries.
    pub(crate) bits: u8,
}

/// An entry as one number: list, place, code. Entries sort by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry(pub(crate) u64);

impl Entry {
    pub(crate) const CODE_BITS: usize = 16;

    /// An entry with code 0 at a spot (list, place).
    #[inline(always)]
    pub(crate) fn new(spot: u32) -> Self {
        Entry(u64::from(spot) << Self::CODE_BITS)
    }

    /// Returns the entry with another code.
    #[inline(always)]
    pub(crate) fn recoded(self, recoding: Recoding) -> Self {
        let cut = Self::CODE_BITS + usize::from(recoding.cut);
        Entry(self.0 >> cut << cut | u64::from(recoding.code))
    }

    /// Returns the entry with code 0.
    pub(crate) fn bare(self) -> Self {
        Entry(self.0 >> Self::CODE_BITS << Self::CODE_BITS)
    }

    /// Returns its spot (list, place).
    pub(crate) fn spot(self) -> u32 {
        (self.0 >> Self::CODE_BITS) as u32
    }

    /// Returns its bucket, counted across all lists.
    #[inline(always)]
    pub(crate) fn bucket(self) -> usize {
        (self.0 >> (Self::CODE_BITS + FRACTION_BITS)) as usize
    }

    #[inline(always)]
    pub(crate) fn code(self) -> usize {
        self.0 as u16 as usize
    }
}

/// A change of code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recoding {
    /// The number of low fraction bits to drop.
    pub(crate) cut: u8,
    pub(crate) code: u16,
}

/// A view of packed entries.
#[derive(Clone, Copy)]
pub(crate) struct Packed<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) layout: Layout<'a>,
}

impl<'a> Packed<'a> {
    #[inline(always)]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let layout = bytes.first_chunk().expect("a tier holds its layout");
        Packed { bytes, layout: Layout(layout) }
    }

    /// Whether `bytes` can be the packed entries of `lists` lists.
    pub(crate) fn is_valid(bytes: &[u8], lists: usize) -> bool {
        if bytes.len() < LAYOUT_BYTES + FOOTER_BYTES {
            return false;
        }
        let packed = Packed::new(bytes);
        let has_all = packed.has_a_layout(lists) && packed.has_tables() && packed.has_codes();
        has_all && packed.has_entries()
    }

    fn has_a_layout(&self, lists: usize) -> bool {
        let len = self.bytes.len() - FOOTER_BYTES;
        self.layout.is_valid(lists, len)
            && self.layout.begin_of(self.len()) == self.layout.entries_at()
    }

    fn has_tables(&self) -> bool {
        let width = 1 << self.layout.slot_bits();
        let slots = (0..self.layout.lists())
            .flat_map(|list| (0..BUCKETS).step_by(width).map(move |bucket| (list, bucket)))
            .map(|(list, bucket)| self.slot(list, bucket).range());
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
            && (self.is_apart() || self.layout.codes() == codes as u64)
            && (!self.is_apart() || self.has_numbers(codes, room - codes * (2 * len + 1)))
    }

    /// Whether the numbers of entries' codes are in a separate section behind the entries
    /// (`huffman.rs`).
    #[inline(always)]
    pub(crate) fn is_apart(&self) -> bool {
        self.footer()[11] != 0
    }

    #[inline(always)]
    fn footer(&self) -> &'a [u8] {
        &self.bytes[self.bytes.len() - FOOTER_BYTES..]
    }

    /// Returns the codes in the order of their numbers.
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
        self.slot(self.layout.lists() - 1, BUCKETS - 1).range().end
    }

    /// Adds the number of entries in each bucket to `counts`. Within a slot of several buckets,
    /// entries are assumed to be evenly spread.
    pub(crate) fn count_buckets(&self, counts: &mut [u32]) {
        let slot_bits = self.layout.slot_bits();
        for (bucket, entries) in self.slots() {
            let counts = &mut counts[bucket..bucket + (1 << slot_bits)];
            counts.iter_mut().for_each(|count| *count += (entries >> slot_bits) as u32);
        }
    }

    /// Returns all slots in order.
    #[inline(always)]
    pub(crate) fn slots(&self) -> Slots<'a> {
        Slots { bytes: self.bytes, layout: self.layout, at: LAYOUT_BYTES, bucket: 0, before: 0 }
    }

    /// Returns the numbers of all entries from `place` on, which is in `slot`.
    #[inline(always)]
    pub(crate) fn numbers_from(&self, slot: &Slot, place: usize) -> EntryNumbers<'a> {
        let bits = self.layout.entry_bits();
        let at = 8 * self.layout.entries_at() + place * bits;
        let first = match self.layout.is_sampled() {
            true => last_sample(self.samples(), place),
            false => slot.first(),
        };
        let mut quotients = self.quotients().from(first);
        quotients.skip(place - first.0);
        EntryNumbers { quotients, remainders: PackedReader::new(self.bytes, at, bits), bits }
    }

    /// The number of keys that share an entry with another key.
    pub(crate) fn merged(&self) -> u64 {
        number(self.footer(), 12, 4)
    }

    /// Returns the slot of a bucket.
    #[inline(always)]
    pub(crate) fn slot(&self, list: usize, bucket: usize) -> Slot {
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
        // The first slot begins at the list's first entry.
        let start = first + if slot == 0 { 0 } else { before };
        let bucket = slot << self.layout.slot_bits();
        let spot = (list << BUCKET_BITS | bucket) << FRACTION_BITS;
        let quotient = self.layout.number(spot as u64) >> self.layout.entry_bits();
        let quotients = start + quotient as usize;
        let (start, end, list) = (start as u32, (first + end) as u32, list as u32);
        Slot { start, end, list, quotients: quotients as u32 }
    }

    /// Prefetches a list's table, and the likely positions of a key's quotients and entries.
    /// `across`: the key's relative position in the list. Entries are assumed to be evenly spread
    /// over all lists.
    #[inline(always)]
    pub(crate) fn load_about<T: Trace>(bytes: &[u8], list: usize, across: usize, trace: &mut T) {
        const LINES: usize = 3;
        prefetch_lines_traced(bytes, 0, 1, trace);
        prefetch_lines_traced(bytes, LAYOUT_BYTES + list * TABLE_BYTES_ABOUT, 1, trace);
        let from = LAYOUT_BYTES + LISTS_MAX * TABLE_BYTES_ABOUT;
        let rest = bytes.len().saturating_sub(from + FOOTER_BYTES);
        let quotients = rest / QUOTIENTS_SHARE;
        prefetch_lines_traced(bytes, from + place_about(quotients, list, across), 1, trace);
        let at = from + quotients + place_about(rest - quotients, list, across);
        prefetch_lines_traced(bytes, at - LINE_BYTES, LINES, trace);
    }

    /// Prefetches a slot.
    #[inline(always)]
    pub(crate) fn load_slot(&self, slot: &Slot) {
        let quotients = self.layout.quotients_at() + slot.quotients as usize / 8;
        prefetch_lines(self.bytes, quotients, 1);
        prefetch_lines(self.bytes, self.entry_byte(slot.start as usize), 1);
    }

    /// Returns the byte in which an entry begins.
    #[inline(always)]
    fn entry_byte(&self, place: usize) -> usize {
        self.layout.entries_at() + place * self.layout.entry_bits() / 8
    }

    /// Returns the samples of the quotients: the number of entries before each.
    #[inline(always)]
    pub(crate) fn samples(&self) -> &'a [[u8; SAMPLE_BYTES]] {
        let bytes = &self.bytes[self.layout.quotients_at()..self.layout.entries_at()];
        let samples = SAMPLE_BYTES * self.layout.samples(self.len());
        bytes[bytes.len() - samples..].as_chunks().0
    }

    /// Returns the quotients of all entries.
    #[inline(always)]
    pub(crate) fn quotients(&self) -> Quotients<'a> {
        Quotients { bytes: self.bytes, at: self.layout.quotients_at() }
    }

    /// Returns the remainder of an entry's number.
    #[inline(always)]
    pub(crate) fn remainder(&self, place: usize) -> u64 {
        let bits = self.layout.entry_bits();
        read(self.bytes, 8 * self.layout.entries_at() + place * bits, bits)
    }

    /// Visits the spans of entries, the first of which is in `slot`.
    #[inline(always)]
    pub(crate) fn visit<T: Trace>(
        &self,
        slot: &Slot,
        range: Range<usize>,
        trace: &mut T,
        mut visit: impl FnMut(Span),
    ) {
        if self.is_apart() {
            return self.visit_apart(range, visit);
        }
        let (mut numbers, codes) = (self.numbers_from(slot, range.start), self.layout.codes());
        for at in range {
            self.touch_entry(at, trace);
            visit(self.code((numbers.take() % codes) as usize).span);
        }
    }

    /// Replaces `out` by all entries in order.
    #[inline(always)]
    pub(crate) fn decode(&self, out: &mut Vec<Entry>) {
        let (by_codes, bits) = (Divisor::new(self.layout.codes()), self.layout.fraction_bits());
        let mut numbers = self.numbers_from(&Slot::default(), 0);
        out.clear();
        out.extend((0..self.len()).map(|_| {
            let (place, code) = by_codes.divide(numbers.take());
            Entry(place << (FRACTION_BITS - bits) << Entry::CODE_BITS | code)
        }));
        if self.is_apart() {
            self.decode_numbers(out);
        }
    }

    /// Reports to `trace` what [`Packed::slot`] reads.
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
    /// Whether entries ascend and each is in its slot. Requires: layout, tables and codes are
    /// valid.
    fn has_entries(&self) -> bool {
        let bits = self.len() + self.layout.quotients();
        if self.quotients().count(bits) != self.len() {
            return false;
        }
        let mut numbers = self.numbers_from(&Slot::default(), 0);
        let bucket_numbers = self.layout.number(1 << FRACTION_BITS);
        let mut last = 0;
        let are_right = self.slots().all(|(bucket, count)| {
            let first = bucket as u64 * bucket_numbers;
            let end = first + (bucket_numbers << self.layout.slot_bits());
            (0..count).all(|_| {
                let number = numbers.take();
                number >= core::mem::replace(&mut last, number) && (first..end).contains(&number)
            })
        });
        let samples = self.samples();
        are_right && self.quotients().samples(samples.len()) == samples
    }
}

/// Iterates over the numbers of entries.
pub(crate) struct EntryNumbers<'a> {
    quotients: QuotientsOf<'a>,
    remainders: PackedReader<'a>,
    bits: usize,
}

impl EntryNumbers<'_> {
    /// Returns the quotient of the next entry.
    #[cold]
    pub(crate) fn quotient(mut self) -> usize {
        self.quotients.take()
    }

    /// Returns the number of the next entry; after the last one, an arbitrary number.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> u64 {
        (self.quotients.take() as u64) << self.bits | self.remainders.take()
    }
}

/// Divides entries' numbers by the number of codes, by multiplication.
#[derive(Clone, Copy)]
pub(crate) struct Divisor {
    by: u64,
    factor: u64,
}

impl Divisor {
    /// Numbers have at most 38 bits and divisors at most 9, so quotients are exact even though the
    /// factor is rounded up.
    const SHIFT: u32 = 58;

    pub(crate) fn new(by: u64) -> Self {
        Divisor { by, factor: (1u64 << Self::SHIFT).div_ceil(by) }
    }

    /// Returns quotient and remainder: place and code.
    #[inline(always)]
    pub(crate) fn divide(self, number: u64) -> (u64, u64) {
        let quotient = ((u128::from(number) * u128::from(self.factor)) >> Self::SHIFT) as u64;
        (quotient, number - quotient * self.by)
    }
}

/// Iterates over slots: their first buckets, counted across all lists, and their numbers of
/// entries.
pub(crate) struct Slots<'a> {
    bytes: &'a [u8],
    layout: Layout<'a>,
    /// The position of the next end, or of the next list's table.
    at: usize,
    bucket: usize,
    /// The number of the list's entries before the slot.
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

/// Reads a number of two bytes at `at`.
#[inline(always)]
fn number2(bytes: &[u8], at: usize) -> usize {
    let number = bytes[at..].first_chunk().expect("a tier holds its tables");
    usize::from(u16::from_le_bytes(*number))
}

/// Reads a number of eight bytes at `at`.
#[inline(always)]
fn number8(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("a tier holds its tables"))
}

/// Reads a number of `len` bytes at `at`: 1, 2, 4 or 8.
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

#[cfg(test)]
mod tests {
    use super::Divisor;

    #[test]
    fn numbers_are_divided_as_by_a_division() {
        for by in 1..=256u64 {
            let most = (1u64 << 38) - 1;
            let around = (0..38).flat_map(|bit| [1u64 << bit, (1 << bit) - 1, (1 << bit) * by]);
            for number in around.chain([most, most / by * by, most / by * by - 1]) {
                let number = number.min(most);
                assert_eq!(Divisor::new(by).divide(number), (number / by, number % by), "{by}");
            }
        }
    }
}
