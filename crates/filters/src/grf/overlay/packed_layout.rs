//! The layout of packed entries, and the choice of the smallest one.
//! ```text
//! an entry's number    (list, bucket, fraction) x codes + code
//!     = quotient       | remainder
//!     in unary         | in a fixed number of bits (quotients.rs)
//! ```
//! Sorted numbers need not store their order: with about one quotient per entry, in unary, each
//! takes two bits more than its remainder (Elias-Fano coding). A number of codes that is no power
//! of two wastes no bits. Fields are stored as a probe needs them: one load each, without
//! arithmetic.
//!
//! Invariant: entries sort by their numbers.

use crate::base::real::log2;
use crate::bits::packed::PACKED_BITS_MAX;
use crate::grf::base::place::{BUCKET_BITS, BUCKETS, FRACTION_BITS, LISTS_MAX};
use crate::grf::overlay::packed::{CODES_MAX, Code, Entry};
use crate::grf::overlay::quotients::SAMPLED_BITS;

/// The approximate maximum of entries in a slot of several buckets: a search reads its quotients.
const SLOT_ENTRIES_MAX: usize = 24;
/// If a bucket has more entries than this, quotients are sampled.
const COUNTED_MAX: usize = 160;
/// Bytes per sample: the number of entries before it.
pub(crate) const SAMPLE_BYTES: usize = 4;

/// The offset of each field: numbers of four, two and two bytes, then of one byte each.
const ENTRIES_AT: usize = 0;
const QUOTIENTS_AT: usize = ENTRIES_AT + 4;
const CODES: usize = QUOTIENTS_AT + 2;
/// Bits of a remainder.
const ENTRY_BITS: usize = CODES + 2;
/// Low fraction bits that all entries lack.
const CUT: usize = ENTRY_BITS + 1;
const SPARE: usize = CUT + 1;
const SLOT: usize = SPARE + 1;
const TABLE_BYTES: usize = SLOT + 1;
const END_LOG: usize = TABLE_BYTES + 1;
const LISTS: usize = END_LOG + 1;
const SAMPLED: usize = LISTS + 1;

/// Bytes of a layout.
pub(crate) const LAYOUT_BYTES: usize = SAMPLED + 1;
const _: () = assert!(LAYOUT_BYTES == 16);

/// A layout as stored.
pub(crate) type LayoutBytes = [u8; LAYOUT_BYTES];

/// The layout of packed entries.
#[derive(Clone, Copy)]
pub(crate) struct Layout<'a>(pub(crate) &'a LayoutBytes);

impl Layout<'_> {
    #[inline(always)]
    fn byte(self, at: usize) -> usize {
        usize::from(self.0[at])
    }

    #[inline(always)]
    fn two_bytes(self, at: usize) -> usize {
        usize::from(u16::from_le_bytes([self.0[at], self.0[at + 1]]))
    }

    /// The byte offset of the entries.
    #[inline(always)]
    pub(crate) fn entries_at(self) -> usize {
        let bytes = self.0[ENTRIES_AT..].first_chunk().expect("a layout has all fields");
        u32::from_le_bytes(*bytes) as usize
    }

    /// The byte offset of the quotients.
    #[inline(always)]
    pub(crate) fn quotients_at(self) -> usize {
        self.two_bytes(QUOTIENTS_AT)
    }

    /// The number of codes that entries' numbers encode; 1 if codes are stored separately.
    #[inline(always)]
    pub(crate) fn codes(self) -> u64 {
        self.two_bytes(CODES) as u64
    }

    /// Bits of a remainder.
    #[inline(always)]
    pub(crate) fn entry_bits(self) -> usize {
        self.byte(ENTRY_BITS)
    }

    #[inline(always)]
    pub(crate) fn fraction_bits(self) -> usize {
        FRACTION_BITS - self.byte(CUT)
    }

    #[inline(always)]
    pub(crate) fn spare_bits(self) -> usize {
        self.byte(SPARE)
    }

    #[inline(always)]
    pub(crate) fn slot_bits(self) -> usize {
        self.byte(SLOT)
    }

    /// Bytes of a list's table.
    #[inline(always)]
    pub(crate) fn table_bytes(self) -> usize {
        self.byte(TABLE_BYTES)
    }

    /// Bytes of a slot's end, as a power of two: at most 2.
    #[inline(always)]
    pub(crate) fn end_log(self) -> usize {
        self.byte(END_LOG)
    }

    #[inline(always)]
    pub(crate) fn lists(self) -> usize {
        self.byte(LISTS)
    }

    /// Whether quotients have samples.
    #[inline(always)]
    pub(crate) fn is_sampled(self) -> bool {
        self.byte(SAMPLED) != 0
    }

    /// Whether the end of a slot takes one byte, as in all but long lists.
    #[inline(always)]
    pub(crate) fn has_byte_ends(self) -> bool {
        self.end_log() == 0
    }

    /// Bytes of a list's first entry: two if ends have one byte, else four.
    #[inline(always)]
    pub(crate) fn first_bytes(self) -> usize {
        first_bytes(self.end_log())
    }

    /// The number of quotients. Those of a valid layout have a bit each.
    pub(crate) fn quotients(self) -> usize {
        self.all_quotients() as usize
    }

    fn all_quotients(self) -> u64 {
        let numbers = self.number((self.lists() << BUCKET_BITS << FRACTION_BITS) as u64);
        numbers.div_ceil(1 << self.entry_bits())
    }

    /// The bytes of the quotients of `entries` entries.
    pub(crate) fn quotient_bytes(self, entries: usize) -> usize {
        (entries + self.quotients()).div_ceil(8)
    }

    /// The number of samples for `entries` entries.
    pub(crate) fn samples(self, entries: usize) -> usize {
        let bits = entries + self.quotients();
        if self.is_sampled() { bits.div_ceil(SAMPLED_BITS) } else { 0 }
    }

    /// Returns the place at a spot, without the bits that all entries lack.
    #[inline(always)]
    pub(crate) fn place(self, spot: u64) -> u64 {
        spot >> self.byte(CUT)
    }

    /// Returns the smallest number of an entry at a spot.
    #[inline(always)]
    pub(crate) fn number(self, spot: u64) -> u64 {
        self.place(spot) * self.codes()
    }

    /// Returns the number of an entry. Requires: its code is among the layout's.
    #[inline(always)]
    pub(crate) fn number_of(self, entry: Entry) -> u64 {
        let spot = u64::from(entry.spot());
        debug_assert!(self.place(spot) << self.byte(CUT) == spot, "a fraction is too long");
        self.number(u64::from(entry.spot())) + entry.code() as u64
    }

    /// Whether the fields are valid for `lists` lists in `len` bytes.
    pub(crate) fn is_valid(self, lists: usize, len: usize) -> bool {
        self.lists() == lists
            && self.slot_bits() <= BUCKET_BITS
            && self.byte(CUT) <= FRACTION_BITS
            && self.spare_bits() <= self.fraction_bits()
            && self.entry_bits() <= PACKED_BITS_MAX
            && (1..=CODES_MAX as u64).contains(&self.codes())
            && self.end_log() <= 2
            && self.table_bytes() == table_bytes(self.slot_bits(), self.end_log())
            && self.quotients_at() == LAYOUT_BYTES + lists * self.table_bytes()
            && self.byte(SAMPLED) <= 1
            && self.entries_at() <= len
            && self.quotients_at() <= self.entries_at()
            && self.all_quotients() / 8 <= len as u64
    }

    /// Returns the byte offset of the entries if there are `entries` of them.
    pub(crate) fn begin_of(self, entries: usize) -> usize {
        let quotients = self.quotients_at() + self.quotient_bytes(entries);
        quotients + SAMPLE_BYTES * self.samples(entries)
    }

    /// Returns the layout for `entries` entries.
    pub(crate) fn of_entries(self, entries: usize) -> LayoutBytes {
        let mut fields = *self.0;
        let begin = u32::try_from(self.begin_of(entries)).expect("a chunk is smaller than 4 GB");
        fields[ENTRIES_AT..QUOTIENTS_AT].copy_from_slice(&begin.to_le_bytes());
        fields
    }
}

/// Returns the smallest layout for entries with these codes. `counts`: the entries of each bucket;
/// `within`: whether numbers include codes. The offset of the entries is not set.
pub(crate) fn smallest_layout(
    entries: usize,
    (codes, within): (&[Code], bool),
    counts: &[u32],
) -> LayoutBytes {
    debug_assert!(codes.len() <= CODES_MAX && counts.len() <= LISTS_MAX * BUCKETS);
    let list_len = |counts: &[u32]| counts.iter().sum::<u32>();
    let longest = counts.chunks_exact(BUCKETS).map(list_len).max().unwrap_or(0);
    let crowd = counts.iter().copied().max().unwrap_or(0) as usize;
    let bits = || codes.iter().map(|code| usize::from(code.bits));
    let (most, least) = (bits().max().unwrap_or(0), bits().min().unwrap_or(0));
    let codes_within = if within { codes.len() } else { 1 };
    let end_log = match longest {
        // The start of a list takes two bytes then.
        0..=0xff if entries <= usize::from(u16::MAX) => 0,
        0..=0xffff => 1,
        _ => 2,
    };
    let numbers = ((counts.len() as u64) << most) * codes_within as u64;
    let entry_bits = ((numbers / entries as u64).max(1).ilog2() as usize).min(PACKED_BITS_MAX);
    let (slot, lists) = (slot_bits(entries, counts.len()), counts.len() / BUCKETS);
    let table_bytes = table_bytes(slot, end_log);
    let quotients_at = LAYOUT_BYTES + lists * table_bytes;
    let mut fields = LayoutBytes::default();
    fields[QUOTIENTS_AT..CODES].copy_from_slice(&(quotients_at as u16).to_le_bytes());
    fields[CODES..ENTRY_BITS].copy_from_slice(&(codes_within as u16).to_le_bytes());
    let small = [entry_bits, FRACTION_BITS - most, most - least, slot, table_bytes, end_log, lists];
    for (field, number) in fields[ENTRY_BITS..].iter_mut().zip(small) {
        *field = u8::try_from(number).expect("fields of a byte are small");
    }
    fields[SAMPLED] = u8::from(crowd > COUNTED_MAX);
    fields
}

/// Bytes of a list's first entry.
#[inline(always)]
fn first_bytes(end_log: usize) -> usize {
    if end_log == 0 { 2 } else { 4 }
}

/// Bytes of a list's table.
fn table_bytes(slot_bits: usize, end_log: usize) -> usize {
    first_bytes(end_log) + (BUCKETS >> slot_bits << end_log)
}

/// The number of buckets per slot, as a power of two, so that slots have few entries.
fn slot_bits(entries: usize, buckets: usize) -> usize {
    let room = (SLOT_ENTRIES_MAX * buckets / entries.max(1)).max(1);
    (room.ilog2() as usize).min(BUCKET_BITS)
}

/// The bits that the places of a list's entries take beyond their fractions; negative if there are
/// many entries. `longest`: the length of the chunk's longest list.
pub(crate) fn list_bits(entries: f64, longest: f64) -> f64 {
    // Bits of a quotient in unary, approximately: 1 + 2^f - f, with f between 0 and 1.
    const UNARY: f64 = 1.94;
    let entries = entries.max(1.0);
    let (first, end) = if longest <= f64::from(u8::MAX) { (2, 1) } else { (4, 2) };
    let tables = 8 * (first + end * (BUCKETS >> slot_bits(entries as usize, BUCKETS)));
    entries * (BUCKET_BITS as f64 - log2(entries) + UNARY) + tables as f64
}
