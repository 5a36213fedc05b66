//! Entries of some neighbouring lists, sorted, in one allocation that never changes.
//! ```text
//! header   origin u64 | bits: fraction, its least, code, slot | lists | bytes: first, end, number | codes u16 | 0 u16 |
//!          keys that are one entry with another key u32
//! codes    of each the first flush, counted from the origin; flushes; bits of its entries' fractions u8
//! firsts   the first entry of each list, and the number of entries
//! ends     of each list where its slots end, but the last one, counted from the list's first entry
//! entries  (bucket within its slot, fraction, code) packed, sorted                            [padding]
//! ```
//! A slot is some neighbouring buckets of a list: as few as pays for so many entries. A fraction of fewer bits than the
//! others' has zeros behind, and stands for all fractions that begin as it does. Invariant: an entry's code, a
//! span, contains its flush number.

use super::group::BLOCKS_MAX;
use crate::bits::packed::{BitWriter, read};
use crate::filter::Trace;
use crate::shape::{FlushNumber, Span};
use std::ops::Range;
use std::sync::Arc;

/// Lists that a tier can have.
pub(super) const LISTS_MAX: usize = 16;
/// Buckets of a list.
pub(super) const BUCKETS: usize = BLOCKS_MAX;
const BUCKET_BITS: usize = BUCKETS.ilog2() as usize;

/// Codes that a tier can have.
pub(super) const CODES_MAX: usize = 256;
/// Bytes after the entries, for whole words to be read.
const PADDING: usize = 8;

const FRACTION_BITS_AT: usize = 8;
const LEAST_BITS_AT: usize = 9;
const CODE_BITS_AT: usize = 10;
const SLOT_BITS_AT: usize = 11;
const LISTS_AT: usize = 12;
const FIRST_BYTES_AT: usize = 13;
const END_BYTES_AT: usize = 14;
const NUMBER_BYTES_AT: usize = 15;
const CODES_AT: usize = 16;
const MERGED_AT: usize = 20;
const HEADER_BYTES: usize = 24;

/// What entries of one code share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Code {
    pub(super) span: Span,
    /// The bits of their fractions.
    pub(super) bits: u8,
}

/// An entry as one number, in the order of entries: list, bucket, fraction, code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry(u64);

impl Entry {
    const CODE_BITS: usize = 16;
    const FRACTION_BITS: usize = 32;
    const BUCKET_AT: usize = Self::CODE_BITS + Self::FRACTION_BITS;

    /// Requires: a fraction of at most 32 bits.
    #[inline(always)]
    pub(super) fn new(list: usize, bucket: usize, fraction: u64, code: usize) -> Self {
        debug_assert!(list < LISTS_MAX && bucket < BUCKETS && fraction >> 32 == 0);
        let bucket = (list << BUCKET_BITS | bucket) as u64;
        Entry(bucket << Self::BUCKET_AT | fraction << Self::CODE_BITS | code as u64)
    }

    /// The same with another code, whose entries do without the low `cut` bits of fractions.
    #[inline(always)]
    pub(super) fn recoded(self, cut: usize, code: usize) -> Self {
        let cut = Self::CODE_BITS + cut;
        Entry(self.0 >> cut << cut | code as u64)
    }

    pub(super) fn list(self) -> usize {
        self.bucket() >> BUCKET_BITS
    }

    /// The bucket, counted over all lists.
    #[inline(always)]
    fn bucket(self) -> usize {
        (self.0 >> Self::BUCKET_AT) as usize
    }

    #[inline(always)]
    fn fraction(self) -> u64 {
        self.0 >> Self::CODE_BITS & ((1 << Self::FRACTION_BITS) - 1)
    }

    #[inline(always)]
    pub(super) fn code(self) -> usize {
        self.0 as u16 as usize
    }
}

/// A place in a bucket, or a stretch of them: fractions of `long_bits` bits, both included.
#[derive(Clone, Copy)]
pub(super) struct Sought {
    pub(super) bucket: usize,
    pub(super) low: u64,
    pub(super) high: u64,
    pub(super) long_bits: usize,
}

/// A tier to be read.
#[derive(Clone, Copy)]
pub(super) struct Tier<'a> {
    bytes: &'a [u8],
    fraction_bits: usize,
    code_bits: usize,
    slot_bits: usize,
    ends_at: usize,
    entries_at: usize,
}

impl<'a> Tier<'a> {
    #[inline(always)]
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let header = bytes.first_chunk::<HEADER_BYTES>().expect("a tier has a header");
        let byte = |at: usize| usize::from(header[at]);
        let codes = usize::from(u16::from_le_bytes([header[CODES_AT], header[CODES_AT + 1]]));
        let (slot_bits, lists) = (byte(SLOT_BITS_AT), byte(LISTS_AT));
        let firsts_at = HEADER_BYTES + codes * (2 * byte(NUMBER_BYTES_AT) + 1);
        let ends_at = firsts_at + (lists + 1) * byte(FIRST_BYTES_AT);
        let ends = lists * ((BUCKETS >> slot_bits) - 1);
        Tier {
            bytes,
            fraction_bits: byte(FRACTION_BITS_AT),
            code_bits: byte(CODE_BITS_AT),
            slot_bits,
            ends_at,
            entries_at: 8 * (ends_at + ends * byte(END_BYTES_AT)),
        }
    }

    #[inline(always)]
    fn lists(&self) -> usize {
        usize::from(self.bytes[LISTS_AT])
    }

    /// The codes of entries, by their number.
    pub(super) fn codes(&self) -> impl Iterator<Item = Code> + '_ {
        let codes = u16::from_le_bytes([self.bytes[CODES_AT], self.bytes[CODES_AT + 1]]);
        (0..usize::from(codes)).map(|code| self.code(code))
    }

    #[inline(always)]
    fn code(&self, code: usize) -> Code {
        let len = usize::from(self.bytes[NUMBER_BYTES_AT]);
        let at = HEADER_BYTES + code * (2 * len + 1);
        let origin = self.bytes.first_chunk::<8>().expect("a tier has a header");
        let lo = u64::from_le_bytes(*origin) + number(self.bytes, at, len);
        let hi = lo + number(self.bytes, at + len, len);
        let span = Span::new(FlushNumber(lo), FlushNumber(hi)).expect("a code is not empty");
        Code { span, bits: self.bytes[at + 2 * len] }
    }

    #[inline(always)]
    fn first_entry(&self, list: usize) -> usize {
        let len = usize::from(self.bytes[FIRST_BYTES_AT]);
        number(self.bytes, self.ends_at - (self.lists() + 1 - list) * len, len) as usize
    }

    /// The number of entries.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.first_entry(self.lists())
    }

    /// The entries of a list.
    pub(super) fn list_len(&self, list: usize) -> usize {
        self.first_entry(list + 1) - self.first_entry(list)
    }

    /// The keys that are one entry with another key: their places and codes are equal.
    pub(super) fn merged(&self) -> u64 {
        number(self.bytes, MERGED_AT, 4)
    }

    /// The slot of a bucket, as a range of entries.
    #[inline(always)]
    pub(super) fn slot(&self, list: usize, bucket: usize) -> Range<usize> {
        let (slots, slot) = (BUCKETS >> self.slot_bits, bucket >> self.slot_bits);
        let first = self.first_entry(list);
        let len = usize::from(self.bytes[END_BYTES_AT]);
        let end = |slot: usize| {
            number(self.bytes, self.ends_at + (list * (slots - 1) + slot) * len, len) as usize
        };
        let start = if slot == 0 { first } else { first + end(slot - 1) };
        let end = if slot + 1 == slots { self.first_entry(list + 1) } else { first + end(slot) };
        start..end
    }

    /// Asks for the memory of a list's tables, without waiting for it.
    #[inline(always)]
    pub(super) fn load_tables(bytes: &[u8], list: usize) {
        // As if lists had 16 ends of one byte each.
        let at = (HEADER_BYTES + 3 * LISTS_MAX + list * BUCKETS).min(bytes.len() - 1);
        std::hint::black_box(bytes[0] ^ bytes[at]);
    }

    /// Asks for the memory of an entry, without waiting for it.
    #[inline(always)]
    pub(super) fn load_entry(&self, place: usize) {
        std::hint::black_box(self.bytes[(self.entries_at + place * self.entry_bits()) / 8]);
    }

    #[inline(always)]
    fn entry_bits(&self) -> usize {
        self.slot_bits + self.fraction_bits + self.code_bits
    }

    /// Bucket within its slot, fraction and code, as they are packed.
    #[inline(always)]
    fn entry(&self, place: usize) -> u64 {
        let bits = self.entry_bits();
        read(self.bytes, self.entries_at + place * bits, bits)
    }

    /// Of a slot, the first entry whose place is not below the bucket's fraction.
    #[inline(always)]
    fn rank<T: Trace>(&self, slot: Range<usize>, place: u64, trace: &mut T) -> usize {
        let (mut from, mut len) = (slot.start, slot.len());
        let least = place << self.code_bits;
        while len > 0 {
            let half = len / 2;
            self.touch_entry(from + half, trace);
            let before = self.entry(from + half) < least;
            from = if before { from + half + 1 } else { from };
            len = if before { len - half - 1 } else { half };
        }
        from
    }

    /// The place, as entries have it, of a fraction of `long_bits` bits in a bucket.
    #[inline(always)]
    fn place(&self, bucket: usize, fraction: u64, long_bits: usize) -> u64 {
        let within = (bucket & ((1 << self.slot_bits) - 1)) as u64;
        within << self.fraction_bits | fraction >> (long_bits - self.fraction_bits)
    }

    /// The zeros that some entries have behind their fraction.
    #[inline(always)]
    fn spare_bits(&self) -> usize {
        self.fraction_bits - usize::from(self.bytes[LEAST_BITS_AT])
    }

    /// Of a slot, the entries from the first one that may stand for the least place sought to the last one that may for the
    /// greatest. Some between them may not.
    #[inline(always)]
    pub(super) fn stretch<T: Trace>(
        &self,
        slot: Range<usize>,
        sought: &Sought,
        trace: &mut T,
    ) -> Range<usize> {
        let from = self.from(slot.clone(), sought, trace);
        let high = self.place(sought.bucket, sought.high, sought.long_bits);
        from..self.rank(slot, high + 1, trace).max(from)
    }

    /// Where [`Tier::stretch`] begins.
    #[inline(always)]
    pub(super) fn from<T: Trace>(
        &self,
        slot: Range<usize>,
        sought: &Sought,
        trace: &mut T,
    ) -> usize {
        let low = self.place(sought.bucket, sought.low, sought.long_bits);
        let spare = self.spare_bits();
        self.rank(slot, low >> spare << spare, trace)
    }

    /// The spans of a slot's entries that stand for a place sought, until `visit` has enough.
    #[inline(always)]
    pub(super) fn visit_sought<T: Trace>(
        &self,
        slot: Range<usize>,
        sought: &Sought,
        trace: &mut T,
        mut visit: impl FnMut(Span) -> bool,
    ) {
        let end = slot.end;
        let mut at = self.from(slot, sought, trace);
        let low = self.place(sought.bucket, sought.low, sought.long_bits);
        let high = self.place(sought.bucket, sought.high, sought.long_bits);
        while at < end {
            self.touch_entry(at, trace);
            let entry = self.entry(at);
            let place = entry >> self.code_bits;
            if place > high {
                return;
            }
            let code = self.code((entry & ((1 << self.code_bits) - 1)) as usize);
            let last = place | ((1 << (self.fraction_bits - usize::from(code.bits))) - 1);
            if last >= low && !visit(code.span) {
                return;
            }
            at += 1;
        }
    }

    /// The spans of entries.
    #[inline(always)]
    pub(super) fn visit<T: Trace>(
        &self,
        range: Range<usize>,
        trace: &mut T,
        mut visit: impl FnMut(Span),
    ) {
        for at in range {
            self.touch_entry(at, trace);
            let code = self.entry(at) & ((1 << self.code_bits) - 1);
            visit(self.code(code as usize).span);
        }
    }

    /// Fraction and code of a bucket's entries. The fraction has the code's bits.
    pub(super) fn visit_bucket(
        &self,
        list: usize,
        bucket: usize,
        mut visit: impl FnMut(u64, Code),
    ) {
        let within = (bucket & ((1 << self.slot_bits) - 1)) as u64;
        for at in self.slot(list, bucket) {
            let entry = self.entry(at);
            let code = self.code((entry & ((1 << self.code_bits) - 1)) as usize);
            let place = entry >> self.code_bits;
            if place >> self.fraction_bits == within {
                let fraction = place & ((1 << self.fraction_bits) - 1);
                visit(fraction >> (self.fraction_bits - usize::from(code.bits)), code);
            }
        }
    }

    /// All entries, with fractions of `long_bits` bits.
    pub(super) fn decode(&self, long_bits: usize, mut visit: impl FnMut(Entry)) {
        let slots = BUCKETS >> self.slot_bits;
        let longer = long_bits - self.fraction_bits;
        for list in 0..self.lists() {
            for slot in 0..slots {
                let bucket = list << BUCKET_BITS | slot << self.slot_bits;
                for at in self.slot(list, slot << self.slot_bits) {
                    let entry = self.entry(at);
                    let place = (bucket as u64) << self.fraction_bits
                        | entry >> self.code_bits & self.place_mask();
                    let bucket = place >> self.fraction_bits;
                    let fraction = (place & ((1 << self.fraction_bits) - 1)) << longer;
                    let code = entry & ((1 << self.code_bits) - 1);
                    visit(Entry(bucket << Entry::BUCKET_AT | fraction << Entry::CODE_BITS | code));
                }
            }
        }
    }

    #[inline(always)]
    fn place_mask(&self) -> u64 {
        (1 << (self.slot_bits + self.fraction_bits)) - 1
    }

    /// Tells `trace` what [`Tier::slot`] reads.
    #[inline(always)]
    pub(super) fn touch_tables<T: Trace>(&self, list: usize, bucket: usize, trace: &mut T) {
        let start = self.bytes.as_ptr() as usize;
        trace.touch(start, HEADER_BYTES);
        let first_bytes = usize::from(self.bytes[FIRST_BYTES_AT]);
        let first = self.ends_at - (self.lists() + 1 - list) * first_bytes;
        trace.touch(start + first, 2 * first_bytes);
        let ends = (BUCKETS >> self.slot_bits) - 1;
        let end_bytes = usize::from(self.bytes[END_BYTES_AT]);
        let end = self.ends_at + (list * ends + (bucket >> self.slot_bits)) * end_bytes;
        trace.touch(start + end, end_bytes);
    }

    #[inline(always)]
    fn touch_entry<T: Trace>(&self, place: usize, trace: &mut T) {
        let bit = self.entries_at + place * self.entry_bits();
        trace.touch(self.bytes.as_ptr() as usize + bit / 8, 8);
    }
}

/// The number of `len` bytes at `at`.
#[inline(always)]
fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    match len {
        0 => 0,
        1 => u64::from(bytes[at]),
        2 => u64::from(u16::from_le_bytes([bytes[at], bytes[at + 1]])),
        4 => {
            let number = bytes[at..].first_chunk::<4>().expect("a tier holds its tables");
            u64::from(u32::from_le_bytes(*number))
        }
        _ => {
            let number = bytes[at..].first_chunk::<8>().expect("a tier holds its tables");
            u64::from_le_bytes(*number)
        }
    }
}

/// The bytes that every number up to `most` fits in.
fn number_bytes(most: u64) -> usize {
    match most {
        0..0x100 => 1,
        0x100..0x1_0000 => 2,
        0x1_0000..0x1_0000_0000 => 4,
        _ => 8,
    }
}

/// Writes tiers; keeps its buffers.
#[derive(Default)]
pub(super) struct TierWriter {
    bytes: Vec<u8>,
    /// The entries of each bucket.
    counts: Vec<u32>,
}

impl TierWriter {
    /// Requires: sorted entries, each once, with fractions of `long_bits` bits; at least one code, at most [`CODES_MAX`].
    pub(super) fn write(
        &mut self,
        entries: &[Entry],
        codes: &[Code],
        (lists, long_bits): (usize, usize),
        merged: u64,
    ) -> Arc<[u8]> {
        self.counts.clear();
        self.counts.resize(lists * BUCKETS, 0);
        entries.iter().for_each(|entry| self.counts[entry.bucket()] += 1);
        let list_len = |counts: &[u32]| counts.iter().map(|&count| u64::from(count)).sum();
        let longest = self.counts.chunks_exact(BUCKETS).map(list_len).max().unwrap_or(0);
        let end_bytes = number_bytes(longest);
        let ends = |slot_bits: usize| lists * ((BUCKETS >> slot_bits) - 1) * end_bytes;
        let slot_bits = (0..=BUCKET_BITS)
            .min_by_key(|&bits| entries.len() * bits + 8 * ends(bits))
            .expect("there are choices");
        let code_bits = (usize::BITS - (codes.len() - 1).leading_zeros()) as usize;
        let fraction_bits = codes.iter().map(|code| code.bits).max().unwrap_or(0);
        let least_bits = codes.iter().map(|code| code.bits).min().unwrap_or(0);
        self.bytes.clear();
        let origin = codes.iter().map(|code| code.span.lo().0).min().unwrap_or(0);
        let first_bytes = number_bytes(entries.len() as u64);
        let most = codes.iter().map(|code| code.span.hi().0 - origin).max().unwrap_or(0);
        let number_bytes = number_bytes(most);
        self.bytes.extend_from_slice(&origin.to_le_bytes());
        let widths = [usize::from(fraction_bits), usize::from(least_bits), code_bits, slot_bits];
        let tables = [lists, first_bytes, end_bytes, number_bytes];
        self.bytes.extend(widths.into_iter().chain(tables).map(|width| width as u8));
        self.bytes.extend_from_slice(&(codes.len() as u16).to_le_bytes());
        self.bytes.extend_from_slice(&[0; 2]);
        let merged = u32::try_from(merged).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(&merged.to_le_bytes());
        for code in codes {
            let (lo, hi) = (code.span.lo().0, code.span.hi().0);
            self.number(lo - origin, number_bytes);
            self.number(hi - lo, number_bytes);
            self.bytes.push(code.bits);
        }
        self.write_tables((first_bytes, end_bytes), slot_bits);
        let cut = long_bits - usize::from(fraction_bits);
        let slot_mask = (1 << slot_bits) - 1;
        let bits = slot_bits + usize::from(fraction_bits) + code_bits;
        let mut out = BitWriter::new(&mut self.bytes);
        for entry in entries {
            let within = (entry.bucket() & slot_mask) as u64;
            let place = within << fraction_bits | entry.fraction() >> cut;
            out.push(place << code_bits | entry.code() as u64, bits);
        }
        out.finish();
        self.bytes.extend_from_slice(&[0; PADDING]);
        Arc::from(self.bytes.as_slice())
    }

    /// The first entry of each list, and where the slots end.
    fn write_tables(&mut self, (first_bytes, end_bytes): (usize, usize), slot_bits: usize) {
        let counts = std::mem::take(&mut self.counts);
        let mut first = 0;
        for list in counts.chunks_exact(BUCKETS) {
            self.number(first, first_bytes);
            first += list.iter().map(|&count| u64::from(count)).sum::<u64>();
        }
        self.number(first, first_bytes);
        for list in counts.chunks_exact(BUCKETS) {
            let mut slots = list.chunks_exact(1 << slot_bits);
            slots.next_back();
            let mut end = 0;
            for slot in slots {
                end += slot.iter().map(|&count| u64::from(count)).sum::<u64>();
                self.number(end, end_bytes);
            }
        }
        self.counts = counts;
    }

    fn number(&mut self, number: u64, len: usize) {
        self.bytes.extend_from_slice(&number.to_le_bytes()[..len]);
    }
}
