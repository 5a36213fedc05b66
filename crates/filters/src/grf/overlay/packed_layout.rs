//! How packed entries are laid out, as one word, and which layout is the smallest.
//! ```text
//! an entry's number    (list, bucket, fraction) x codes + code
//!     = quotient       | remainder
//!     kept in unary    | as so many bits (quotients.rs)
//! ```
//! Sorted numbers need not say their order: with a quotient for each entry or two, in unary, they
//! take two bits more than those of the remainder. Codes that are no power of two take no more
//! than they must. Invariant: entries' order is that of their numbers.

use crate::bits::packed::PACKED_BITS_MAX;
use crate::grf::base::place::{BUCKET_BITS, BUCKETS, FRACTION_BITS, LISTS_MAX};
use crate::grf::overlay::packed::{CODES_MAX, Code, Entry};
use crate::grf::overlay::quotients::SAMPLED_BITS;

/// Bytes of the word.
pub(crate) const LAYOUT_BYTES: usize = 8;
/// A slot of several buckets has so many entries at most, about: its quotients are looked through.
const SLOT_ENTRIES_MAX: usize = 24;
/// Where a bucket has more entries than this, quotients are sampled.
const COUNTED_MAX: usize = 160;
/// Bytes of a sample: how many entries there are before it.
pub(crate) const SAMPLE_BYTES: usize = 4;

/// A field of the word: where it begins, and its bits.
#[derive(Clone, Copy)]
struct Field(u32, u32);

const ENTRIES_AT: Field = Field(0, 28);
const ENTRY: Field = Field(28, 6);
const FRACTION: Field = Field(34, 5);
const SPARE: Field = Field(39, 5);
/// How many codes there are but one.
const OTHER_CODES: Field = Field(44, 8);
const SLOT: Field = Field(52, 3);
const LISTS: Field = Field(55, 5);
const SAMPLED: Field = Field(60, 1);
const END_LOG: Field = Field(61, 2);

impl Field {
    #[inline(always)]
    fn of(self, word: u64) -> usize {
        (word >> self.0 & ((1 << self.1) - 1)) as usize
    }

    /// Requires: a number of no more bits.
    #[inline(always)]
    fn word(self, number: usize) -> u64 {
        assert!(number >> self.1 == 0, "{number} in {} bits", self.1);
        (number as u64) << self.0
    }
}

/// How packed entries are laid out, as one word of fields.
#[derive(Clone, Copy)]
pub(crate) struct Layout(pub(crate) u64);

impl Layout {
    /// Where entries begin, in bytes.
    #[inline(always)]
    pub(crate) fn entries_at(self) -> usize {
        ENTRIES_AT.of(self.0)
    }

    /// Bits of a remainder.
    #[inline(always)]
    pub(crate) fn entry_bits(self) -> usize {
        ENTRY.of(self.0)
    }

    #[inline(always)]
    pub(crate) fn fraction_bits(self) -> usize {
        FRACTION.of(self.0)
    }

    #[inline(always)]
    pub(crate) fn spare_bits(self) -> usize {
        SPARE.of(self.0)
    }

    /// Codes among which numbers tell; 1, too, if codes are apart.
    #[inline(always)]
    pub(crate) fn codes(self) -> u64 {
        OTHER_CODES.of(self.0) as u64 + 1
    }

    #[inline(always)]
    pub(crate) fn slot_bits(self) -> usize {
        SLOT.of(self.0)
    }

    #[inline(always)]
    pub(crate) fn lists(self) -> usize {
        LISTS.of(self.0)
    }

    /// Whether there are samples of the quotients.
    #[inline(always)]
    pub(crate) fn is_sampled(self) -> bool {
        SAMPLED.of(self.0) == 1
    }

    /// Bytes of where a slot ends, as a power of two: at most 2.
    #[inline(always)]
    pub(crate) fn end_log(self) -> usize {
        END_LOG.of(self.0)
    }

    /// Whether where a slot ends is one byte: so it is in all but long lists.
    #[inline(always)]
    pub(crate) fn has_byte_ends(self) -> bool {
        self.end_log() == 0
    }

    /// Bytes of a list's first entry: two where ends have one, else four.
    #[inline(always)]
    pub(crate) fn first_bytes(self) -> usize {
        if self.has_byte_ends() { 2 } else { 4 }
    }

    /// Bytes of a list's table.
    #[inline(always)]
    pub(crate) fn table_bytes(self) -> usize {
        self.first_bytes() + (BUCKETS >> self.slot_bits() << self.end_log())
    }

    /// Where quotients begin, in bytes.
    #[inline(always)]
    pub(crate) fn quotients_at(self) -> usize {
        LAYOUT_BYTES + self.lists() * self.table_bytes()
    }

    /// How many quotients there are.
    pub(crate) fn quotients(self) -> usize {
        let numbers = self.number((self.lists() << BUCKET_BITS << FRACTION_BITS) as u64);
        numbers.div_ceil(1 << self.entry_bits()) as usize
    }

    /// Bytes of the quotients of so many entries.
    pub(crate) fn quotient_bytes(self, entries: usize) -> usize {
        (entries + self.quotients()).div_ceil(8)
    }

    /// How many samples there are of so many entries.
    pub(crate) fn samples(self, entries: usize) -> usize {
        let bits = entries + self.quotients();
        if self.is_sampled() { bits.div_ceil(SAMPLED_BITS) } else { 0 }
    }

    /// The place at a spot, without the bits that none has.
    #[inline(always)]
    pub(crate) fn place(self, spot: u64) -> u64 {
        spot >> (FRACTION_BITS - self.fraction_bits())
    }

    /// The least number of an entry at a spot.
    #[inline(always)]
    pub(crate) fn number(self, spot: u64) -> u64 {
        self.place(spot) * self.codes()
    }

    /// The number of an entry. Requires: its code is among the layout's.
    #[inline(always)]
    pub(crate) fn number_of(self, entry: Entry) -> u64 {
        self.number(u64::from(entry.spot())) + entry.code() as u64
    }

    /// Whether the fields of bytes of such a length can be those of so many lists.
    pub(crate) fn is_one(self, lists: usize, len: usize) -> bool {
        self.lists() == lists
            && self.slot_bits() <= BUCKET_BITS
            && self.fraction_bits() <= FRACTION_BITS
            && self.spare_bits() <= self.fraction_bits()
            && self.entry_bits() <= PACKED_BITS_MAX
            && self.end_log() <= 2
            && self.entries_at() <= len
            && self.quotients_at() <= self.entries_at()
    }

    /// Where so many entries begin.
    pub(crate) fn begin_of(self, entries: usize) -> usize {
        let quotients = self.quotients_at() + self.quotient_bytes(entries);
        quotients + SAMPLE_BYTES * self.samples(entries)
    }

    /// For so many entries.
    pub(crate) fn of_entries(self, entries: usize) -> Layout {
        let word = self.0 >> ENTRIES_AT.1 << ENTRIES_AT.1;
        Layout(word | ENTRIES_AT.word(self.begin_of(entries)))
    }

    /// The smallest one for so many entries with these codes, of which those in each bucket are
    /// counted; `within`: numbers tell codes, too. Where entries begin is left open.
    pub(crate) fn smallest(
        entries: usize,
        (codes, within): (&[Code], bool),
        counts: &[u32],
    ) -> Layout {
        debug_assert!(codes.len() <= CODES_MAX && counts.len() <= LISTS_MAX * BUCKETS);
        let list_len = |counts: &[u32]| counts.iter().sum::<u32>();
        let longest = counts.chunks_exact(BUCKETS).map(list_len).max().unwrap_or(0);
        let crowd = counts.iter().copied().max().unwrap_or(0) as usize;
        let bits = || codes.iter().map(|code| usize::from(code.bits));
        let (most, least) = (bits().max().unwrap_or(0), bits().min().unwrap_or(0));
        let others = if within { codes.len() - 1 } else { 0 };
        let end_log = match longest {
            // Where a list begins takes two bytes then.
            0..=0xff if entries <= usize::from(u16::MAX) => 0,
            0..=0xffff => 1,
            _ => 2,
        };
        let numbers = (counts.len() << most) * (others + 1);
        let entry_bits = (numbers / entries).max(1).ilog2() as usize;
        let word = FRACTION.word(most)
            | SPARE.word(most - least)
            | ENTRY.word(entry_bits.min(PACKED_BITS_MAX))
            | OTHER_CODES.word(others)
            | SLOT.word(slot_bits(entries, counts.len()))
            | LISTS.word(counts.len() / BUCKETS)
            | SAMPLED.word(usize::from(crowd > COUNTED_MAX))
            | END_LOG.word(end_log);
        Layout(word)
    }
}

/// The buckets of a slot, as a power of two: as many as have few entries together.
fn slot_bits(entries: usize, buckets: usize) -> usize {
    let room = (SLOT_ENTRIES_MAX * buckets / entries.max(1)).max(1);
    (room.ilog2() as usize).min(BUCKET_BITS)
}

/// What the places of a list's entries take beyond their fractions, in bits: less than nothing
/// where they are many. `longest` is the length of the chunk's longest list.
pub(crate) fn list_bits(entries: f64, longest: f64) -> f64 {
    // Of a quotient, in unary, about: 1 + 2^f - f with f of 0 to 1.
    const UNARY: f64 = 1.94;
    let entries = entries.max(1.0);
    let (first, end) = if longest <= f64::from(u8::MAX) { (2, 1) } else { (4, 2) };
    let tables = 8 * (first + end * (BUCKETS >> slot_bits(entries as usize, BUCKETS)));
    entries * (BUCKET_BITS as f64 - entries.log2() + UNARY) + tables as f64
}
