//! How packed entries are laid out, as one word, and which layout is the smallest.
//! ```text
//! an entry's place    slot            | quotient            | remainder
//! is kept             by where its    | as a one, behind a  | as a number
//!                     slot's end      | zero for each lesser|
//! ```
//! A quotient for each entry or two, written in unary, takes two bits of an entry where they would
//! take some five as a number: sorted numbers need not say their order. Invariant: what codes may
//! cut off fractions is of remainders.

use crate::grf::base::place::{BUCKET_BITS, BUCKETS, FRACTION_BITS, LISTS_MAX};
use crate::grf::overlay::packed::{CODES_MAX, Code, Entry};

/// Bytes of the word.
pub(crate) const LAYOUT_BYTES: usize = 8;
/// A slot of several buckets has so many entries at most, about: its quotients are looked through.
const SLOT_ENTRIES_MAX: usize = 64;
/// Where a bucket has more entries than this, quotients are sampled.
const COUNTED_MAX: usize = 160;
/// Of so many quotients, one is sampled, as a power of two.
pub(crate) const SAMPLE_BITS: usize = 8;
/// Bytes of a sample: how many entries there are before the quotient.
pub(crate) const SAMPLE_BYTES: usize = 4;

/// A field of the word: where it begins, and its bits.
#[derive(Clone, Copy)]
struct Field(u32, u32);

const ENTRIES_AT: Field = Field(0, 32);
const FRACTION: Field = Field(32, 5);
const SPARE: Field = Field(37, 5);
const CODE: Field = Field(42, 4);
const SLOT: Field = Field(46, 3);
const LISTS: Field = Field(49, 5);
const END_LOG: Field = Field(54, 2);
const QUOTIENT: Field = Field(56, 5);
const SAMPLED: Field = Field(61, 1);

impl Field {
    #[inline(always)]
    fn of(self, word: u64) -> usize {
        (word >> self.0 & ((1 << self.1) - 1)) as usize
    }

    /// Requires: a number of no more bits.
    #[inline(always)]
    fn word(self, number: usize) -> u64 {
        debug_assert!(number >> self.1 == 0, "{number} in {} bits", self.1);
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

    #[inline(always)]
    pub(crate) fn fraction_bits(self) -> usize {
        FRACTION.of(self.0)
    }

    #[inline(always)]
    pub(crate) fn spare_bits(self) -> usize {
        SPARE.of(self.0)
    }

    #[inline(always)]
    pub(crate) fn code_bits(self) -> usize {
        CODE.of(self.0)
    }

    #[inline(always)]
    pub(crate) fn slot_bits(self) -> usize {
        SLOT.of(self.0)
    }

    #[inline(always)]
    pub(crate) fn lists(self) -> usize {
        LISTS.of(self.0)
    }

    /// Bytes of where a slot ends, as a power of two: at most 2.
    #[inline(always)]
    pub(crate) fn end_log(self) -> usize {
        END_LOG.of(self.0)
    }

    /// Bits of a quotient. 0: there are none.
    #[inline(always)]
    pub(crate) fn quotient_bits(self) -> usize {
        QUOTIENT.of(self.0)
    }

    /// Whether there are samples of the quotients.
    #[inline(always)]
    pub(crate) fn is_sampled(self) -> bool {
        SAMPLED.of(self.0) == 1
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

    /// Slots of a list.
    #[inline(always)]
    pub(crate) fn slots(self) -> usize {
        BUCKETS >> self.slot_bits()
    }

    /// Bytes of a list's table.
    #[inline(always)]
    pub(crate) fn table_bytes(self) -> usize {
        self.first_bytes() + (self.slots() << self.end_log())
    }

    /// Where quotients begin, in bytes.
    #[inline(always)]
    pub(crate) fn quotients_at(self) -> usize {
        LAYOUT_BYTES + self.lists() * self.table_bytes()
    }

    /// How many quotients there are.
    pub(crate) fn quotients(self) -> usize {
        (self.lists() * self.slots()) << self.quotient_bits()
    }

    /// Bytes of the quotients of so many entries.
    pub(crate) fn quotient_bytes(self, entries: usize) -> usize {
        let bytes = (entries + self.quotients()).div_ceil(8);
        if self.quotient_bits() == 0 { 0 } else { bytes }
    }

    /// How many samples there are.
    pub(crate) fn samples(self) -> usize {
        if self.is_sampled() { self.quotients().div_ceil(1 << SAMPLE_BITS) } else { 0 }
    }

    /// Where samples begin, in bytes: behind the quotients.
    #[inline(always)]
    pub(crate) fn samples_at(self) -> usize {
        self.entries_at() - SAMPLE_BYTES * self.samples()
    }

    #[inline(always)]
    pub(crate) fn remainder_bits(self) -> usize {
        self.slot_bits() + self.fraction_bits() - self.quotient_bits()
    }

    /// Bits of an entry, its quotient left out.
    #[inline(always)]
    pub(crate) fn entry_bits(self) -> usize {
        self.remainder_bits() + self.code_bits()
    }

    /// Whether the fields of bytes of such a length can be those of so many lists.
    pub(crate) fn is_one(self, lists: usize, len: usize) -> bool {
        let bits = self.fraction_bits();
        self.lists() == lists
            && self.slot_bits() <= BUCKET_BITS
            && bits <= FRACTION_BITS
            && self.spare_bits() <= bits
            && self.code_bits() <= CODES_MAX.ilog2() as usize
            && self.end_log() <= 2
            && self.quotient_bits() <= self.slot_bits() + bits - self.spare_bits()
            && (self.quotient_bits() > 0 || !self.is_sampled())
            && self.quotients_at() + SAMPLE_BYTES * self.samples() <= self.entries_at()
            && self.entries_at() <= len
    }

    /// An entry's place, with its list on top and its code behind: entries' order. Without the
    /// lowest [`Layout::entry_bits`] it is its quotient, counted over all slots.
    #[inline(always)]
    pub(crate) fn whole(self, entry: Entry) -> u64 {
        let place = u64::from(entry.spot()) >> (FRACTION_BITS - self.fraction_bits());
        place << self.code_bits() | entry.code() as u64
    }

    /// For entries whose codes are apart.
    pub(crate) fn without_codes(self) -> Layout {
        Layout(self.0 & !CODE.word((1 << CODE.1) - 1))
    }

    /// For so many entries.
    pub(crate) fn of_entries(self, entries: usize) -> Layout {
        let word = self.0 & !ENTRIES_AT.word(u32::MAX as usize);
        let quotients = self.quotients_at() + self.quotient_bytes(entries);
        Layout(word | ENTRIES_AT.word(quotients + SAMPLE_BYTES * self.samples()))
    }

    /// The smallest one for so many entries with these codes, of which those in each bucket are
    /// counted. Where they begin is left open.
    pub(crate) fn smallest(entries: usize, codes: &[Code], counts: &[u32]) -> Layout {
        let list_len = |counts: &[u32]| counts.iter().sum::<u32>();
        let longest = counts.chunks_exact(BUCKETS).map(list_len).max().unwrap_or(0);
        let crowd = counts.iter().copied().max().unwrap_or(0) as usize;
        let bits = || codes.iter().map(|code| usize::from(code.bits));
        let (most, least) = (bits().max().unwrap_or(0), bits().min().unwrap_or(0));
        let code_bits = (usize::BITS - (codes.len() - 1).leading_zeros()) as usize;
        let end_log = match longest {
            // Where a list begins takes two bytes then.
            0..=0xff if entries <= usize::from(u16::MAX) => 0,
            0..=0xffff => 1,
            _ => 2,
        };
        let lists = counts.len() / BUCKETS;
        debug_assert!(lists <= LISTS_MAX);
        let word = FRACTION.word(most) | SPARE.word(most - least) | CODE.word(code_bits);
        let word = word | LISTS.word(lists) | END_LOG.word(end_log);
        let layouts = (0..=BUCKET_BITS)
            .filter(|&slot_bits| slot_bits == 0 || is_short(entries, lists, slot_bits))
            .map(|slot_bits| {
                let slots = lists * (BUCKETS >> slot_bits);
                let quotient_bits = quotient_bits(entries, slots).min(slot_bits + least);
                let is_sampled = quotient_bits > 0 && crowd > COUNTED_MAX;
                let word = word | SLOT.word(slot_bits) | QUOTIENT.word(quotient_bits);
                Layout(word | SAMPLED.word(usize::from(is_sampled)))
            });
        let bits = |layout: Layout| {
            entries * layout.entry_bits() + 8 * layout.of_entries(entries).entries_at()
        };
        layouts.min_by_key(|&layout| bits(layout)).expect("there are choices")
    }
}

/// Whether slots of several buckets have few entries.
fn is_short(entries: usize, lists: usize, slot_bits: usize) -> bool {
    entries << slot_bits <= SLOT_ENTRIES_MAX * lists * BUCKETS
}

/// The bits of a quotient with which entries take least: there are one to two quotients for each.
fn quotient_bits(entries: usize, slots: usize) -> usize {
    (2 * entries / slots).max(1).ilog2() as usize
}

/// What the places of a list's entries take beyond their fractions, in bits: less than nothing
/// where they are many. `longest` is the length of the chunk's longest list.
pub(crate) fn list_bits(entries: f64, longest: f64) -> f64 {
    let (first, end) = if longest <= f64::from(u8::MAX) { (2, 1) } else { (4, 2) };
    let places = |slot_bits: usize| {
        let slots = BUCKETS >> slot_bits;
        let bits = quotient_bits(entries as usize, slots);
        let quotients = if bits == 0 { 0.0 } else { entries + (slots << bits) as f64 };
        let tables = 8.0 * (first + end * slots) as f64;
        entries * (slot_bits as f64 - bits as f64) + quotients + tables
    };
    let few = |slot_bits: &usize| *slot_bits == 0 || is_short(entries as usize, 1, *slot_bits);
    (0..=BUCKET_BITS).filter(few).map(places).fold(f64::INFINITY, f64::min)
}
