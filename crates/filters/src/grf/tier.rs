//! Entries of some neighbouring lists, sorted, in one allocation that never changes.
//! ```text
//! layout   one word: where entries begin; bits of fraction, spare, code, slot; lists; wide
//! tables   of each list: its first entry, and where its slots end, counted from there
//! entries  (bucket within its slot, fraction, code) packed, sorted
//! codes    of each: first flush, counted from the origin; number of flushes; bits of its entries' fractions
//! footer   origin u64 | codes u16 | bytes of a number u8 | 0 u8 | keys that are one entry with another key u32
//! ```
//! What a probe needs comes first, what a match needs last. A slot is some neighbouring buckets of a list: as few as pays for
//! so many entries. A fraction of fewer bits than the others' has zeros behind, and stands for all fractions that
//! begin as it does; at most `spare` bits are such zeros. Invariant: an entry's code, a span, contains its flush number.

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

const LAYOUT_BYTES: usize = 8;
const FOOTER_BYTES: usize = 16;

/// How a tier is laid out, as one word.
#[derive(Clone, Copy)]
struct Layout {
    /// Where entries begin, in bytes.
    entries_at: usize,
    fraction_bits: usize,
    spare_bits: usize,
    code_bits: usize,
    slot_bits: usize,
    lists: usize,
    /// Tables have numbers of four bytes; else firsts two and ends one.
    wide: bool,
}

impl Layout {
    #[inline(always)]
    fn of(word: u64) -> Self {
        let field = |at: u32, bits: u32| (word >> at & ((1 << bits) - 1)) as usize;
        Layout {
            entries_at: field(0, 16),
            fraction_bits: field(16, 6),
            spare_bits: field(24, 6),
            code_bits: field(32, 6),
            slot_bits: field(40, 3),
            lists: field(48, 6),
            wide: field(56, 1) == 1,
        }
    }

    fn word(&self) -> u64 {
        let fields = [
            (self.entries_at, 0),
            (self.fraction_bits, 16),
            (self.spare_bits, 24),
            (self.code_bits, 32),
            (self.slot_bits, 40),
            (self.lists, 48),
            (usize::from(self.wide), 56),
        ];
        fields.into_iter().fold(0, |word, (field, at)| word | (field as u64) << at)
    }

    #[inline(always)]
    fn slots(&self) -> usize {
        BUCKETS >> self.slot_bits
    }

    /// Bytes of a list's table.
    #[inline(always)]
    fn table_bytes(&self) -> usize {
        if self.wide { 4 + 4 * self.slots() } else { 2 + self.slots() }
    }

    #[inline(always)]
    fn entry_bits(&self) -> usize {
        self.slot_bits + self.fraction_bits + self.code_bits
    }
}

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
    layout: Layout,
}

impl<'a> Tier<'a> {
    #[inline(always)]
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Tier { bytes, layout: Layout::of(number8(bytes, 0)) }
    }

    #[inline(always)]
    fn footer(&self) -> &'a [u8] {
        &self.bytes[self.bytes.len() - FOOTER_BYTES..]
    }

    /// The codes of entries, by their number.
    pub(super) fn codes(&self) -> impl Iterator<Item = Code> + '_ {
        (0..number2(self.footer(), 8)).map(|code| self.code(code))
    }

    #[inline(always)]
    fn code(&self, code: usize) -> Code {
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
        self.slot(self.layout.lists - 1, BUCKETS - 1).end
    }

    /// The entries of a list.
    pub(super) fn list_len(&self, list: usize) -> usize {
        self.slot(list, BUCKETS - 1).end - self.slot(list, 0).start
    }

    /// The keys that are one entry with another key: their places and codes are equal.
    pub(super) fn merged(&self) -> u64 {
        number(self.footer(), 12, 4)
    }

    /// The slot of a bucket, as a range of entries.
    #[inline(always)]
    pub(super) fn slot(&self, list: usize, bucket: usize) -> Range<usize> {
        let slot = bucket >> self.layout.slot_bits;
        let table = LAYOUT_BYTES + list * self.layout.table_bytes();
        let (first, before, end) = if self.layout.wide {
            let end = table + 4 + 4 * slot;
            let number = |at| number(self.bytes, at, 4) as usize;
            (number(table), number(end - 4), number(end))
        } else {
            let end = table + 2 + slot;
            let byte = |at: usize| usize::from(self.bytes[at]);
            (number2(self.bytes, table), byte(end - 1), byte(end))
        };
        // Before the first end there is none, but the list's first entry.
        first + if slot == 0 { 0 } else { before }..first + end
    }

    /// Asks for the memory of a list's table, without waiting for it.
    #[inline(always)]
    pub(super) fn load_table(bytes: &[u8], list: usize) {
        // As if lists had 16 ends of one byte each.
        let at = (LAYOUT_BYTES + list * (2 + BUCKETS)).min(bytes.len() - 1);
        std::hint::black_box(bytes[0] ^ bytes[at]);
    }

    /// Asks for the memory of an entry, without waiting for it.
    #[inline(always)]
    pub(super) fn load_entry(&self, place: usize) {
        let at = self.layout.entries_at + place * self.layout.entry_bits() / 8;
        std::hint::black_box(self.bytes[at]);
    }

    /// Bucket within its slot, fraction and code, as they are packed.
    #[inline(always)]
    fn entry(&self, place: usize) -> u64 {
        let bits = self.layout.entry_bits();
        read(self.bytes, 8 * self.layout.entries_at + place * bits, bits)
    }

    /// Of a slot, the first entry whose place is not below the bucket's fraction.
    #[inline(always)]
    fn rank<T: Trace>(&self, slot: Range<usize>, place: u64, trace: &mut T) -> usize {
        let (mut from, mut len) = (slot.start, slot.len());
        let least = place << self.layout.code_bits;
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
        let within = (bucket & ((1 << self.layout.slot_bits) - 1)) as u64;
        within << self.layout.fraction_bits | fraction >> (long_bits - self.layout.fraction_bits)
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
        let spare = self.layout.spare_bits;
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
            let place = entry >> self.layout.code_bits;
            if place > high {
                return;
            }
            let code = self.code((entry & ((1 << self.layout.code_bits) - 1)) as usize);
            let last = place | ((1 << (self.layout.fraction_bits - usize::from(code.bits))) - 1);
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
            let code = self.entry(at) & ((1 << self.layout.code_bits) - 1);
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
        let within = (bucket & ((1 << self.layout.slot_bits) - 1)) as u64;
        for at in self.slot(list, bucket) {
            let entry = self.entry(at);
            let code = self.code((entry & ((1 << self.layout.code_bits) - 1)) as usize);
            let place = entry >> self.layout.code_bits;
            if place >> self.layout.fraction_bits == within {
                let fraction = place & ((1 << self.layout.fraction_bits) - 1);
                visit(fraction >> (self.layout.fraction_bits - usize::from(code.bits)), code);
            }
        }
    }

    /// All entries, with fractions of `long_bits` bits.
    pub(super) fn decode(&self, long_bits: usize, mut visit: impl FnMut(Entry)) {
        let slots = self.layout.slots();
        let longer = long_bits - self.layout.fraction_bits;
        for list in 0..self.layout.lists {
            for slot in 0..slots {
                let bucket = list << BUCKET_BITS | slot << self.layout.slot_bits;
                for at in self.slot(list, slot << self.layout.slot_bits) {
                    let entry = self.entry(at);
                    let place = (bucket as u64) << self.layout.fraction_bits
                        | entry >> self.layout.code_bits & self.place_mask();
                    let bucket = place >> self.layout.fraction_bits;
                    let fraction = (place & ((1 << self.layout.fraction_bits) - 1)) << longer;
                    let code = entry & ((1 << self.layout.code_bits) - 1);
                    visit(Entry(bucket << Entry::BUCKET_AT | fraction << Entry::CODE_BITS | code));
                }
            }
        }
    }

    #[inline(always)]
    fn place_mask(&self) -> u64 {
        (1 << (self.layout.slot_bits + self.layout.fraction_bits)) - 1
    }

    /// Tells `trace` what [`Tier::slot`] reads.
    #[inline(always)]
    pub(super) fn touch_table<T: Trace>(&self, list: usize, bucket: usize, trace: &mut T) {
        let start = self.bytes.as_ptr() as usize;
        trace.touch(start, LAYOUT_BYTES);
        let table = start + LAYOUT_BYTES + list * self.layout.table_bytes();
        trace.touch(table, 2);
        let end_bytes = if self.layout.wide { 4 } else { 1 };
        trace.touch(table + 2 * end_bytes + (bucket >> self.layout.slot_bits) * end_bytes, 1);
    }

    #[inline(always)]
    fn touch_entry<T: Trace>(&self, place: usize, trace: &mut T) {
        let at = self.layout.entries_at + place * self.layout.entry_bits() / 8;
        trace.touch(self.bytes.as_ptr() as usize + at, 8);
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
        let layout = self.layout(entries.len(), codes, lists);
        self.bytes.clear();
        self.bytes.extend_from_slice(&layout.word().to_le_bytes());
        self.write_tables(&layout);
        let cut = long_bits - layout.fraction_bits;
        let slot_mask = (1 << layout.slot_bits) - 1;
        let mut out = BitWriter::new(&mut self.bytes);
        for entry in entries {
            let within = (entry.bucket() & slot_mask) as u64;
            let place = within << layout.fraction_bits | entry.fraction() >> cut;
            out.push(place << layout.code_bits | entry.code() as u64, layout.entry_bits());
        }
        out.finish();
        self.write_codes(codes, merged);
        Arc::from(self.bytes.as_slice())
    }

    /// The smallest layout for so many entries, of which those in each bucket are counted.
    fn layout(&self, entries: usize, codes: &[Code], lists: usize) -> Layout {
        let list_len = |counts: &[u32]| counts.iter().map(|&count| count as usize).sum();
        let longest = self.counts.chunks_exact(BUCKETS).map(list_len).max().unwrap_or(0);
        let bits = || codes.iter().map(|code| usize::from(code.bits));
        let (most, least) = (bits().max().unwrap_or(0), bits().min().unwrap_or(0));
        let mut layout = Layout {
            entries_at: 0,
            fraction_bits: most,
            spare_bits: most - least,
            code_bits: (usize::BITS - (codes.len() - 1).leading_zeros()) as usize,
            slot_bits: 0,
            lists,
            wide: longest > usize::from(u8::MAX) || entries > usize::from(u16::MAX),
        };
        let tables = |slot_bits| lists * Layout { slot_bits, ..layout }.table_bytes();
        layout.slot_bits = (0..=BUCKET_BITS)
            .min_by_key(|&slot_bits| entries * slot_bits + 8 * tables(slot_bits))
            .expect("there are choices");
        layout.entries_at = LAYOUT_BYTES + lists * layout.table_bytes();
        layout
    }

    /// The first entry of each list, and where its slots end.
    fn write_tables(&mut self, layout: &Layout) {
        let (first_bytes, end_bytes) = if layout.wide { (4, 4) } else { (2, 1) };
        let mut first = 0u32;
        for list in self.counts.chunks_exact(BUCKETS) {
            self.bytes.extend_from_slice(&first.to_le_bytes()[..first_bytes]);
            let mut end = 0u32;
            for slot in list.chunks_exact(1 << layout.slot_bits) {
                end += slot.iter().sum::<u32>();
                self.bytes.extend_from_slice(&end.to_le_bytes()[..end_bytes]);
            }
            first += end;
        }
    }

    /// Codes and footer.
    fn write_codes(&mut self, codes: &[Code], merged: u64) {
        let origin = codes.iter().map(|code| code.span.lo().0).min().unwrap_or(0);
        let most = codes.iter().map(|code| code.span.hi().0 - origin).max().unwrap_or(0);
        let len = number_bytes(most);
        for code in codes {
            let (lo, hi) = (code.span.lo().0, code.span.hi().0);
            self.bytes.extend_from_slice(&(lo - origin).to_le_bytes()[..len]);
            self.bytes.extend_from_slice(&(hi - lo).to_le_bytes()[..len]);
            self.bytes.push(code.bits);
        }
        self.bytes.extend_from_slice(&origin.to_le_bytes());
        self.bytes.extend_from_slice(&(codes.len() as u16).to_le_bytes());
        self.bytes.extend_from_slice(&[len as u8, 0]);
        let merged = u32::try_from(merged).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(&merged.to_le_bytes());
    }
}
