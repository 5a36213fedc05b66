//! How the settled entries of a chunk are laid out.
//! ```text
//! word   where entries begin u16 | bits of a fraction, spare, of a code, of a slot; lists; bytes of an
//!        end, as a power of two: u8 each
//! ```
//! Invariant: the word is all that a reader needs to find a list's table and an entry.

use super::place::BUCKETS;

/// How a tier is laid out, as one word of fields.
#[derive(Clone, Copy)]
pub(super) struct Layout(pub(super) u64);

impl Layout {
    #[inline(always)]
    fn field(self, at: u32) -> usize {
        (self.0 >> at & 0xff) as usize
    }

    /// Where entries begin, in bytes.
    #[inline(always)]
    pub(super) fn entries_at(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    #[inline(always)]
    pub(super) fn fraction_bits(self) -> usize {
        self.field(16)
    }

    #[inline(always)]
    pub(super) fn spare_bits(self) -> usize {
        self.field(24)
    }

    #[inline(always)]
    pub(super) fn code_bits(self) -> usize {
        self.field(32)
    }

    #[inline(always)]
    pub(super) fn slot_bits(self) -> usize {
        self.field(40)
    }

    #[inline(always)]
    pub(super) fn lists(self) -> usize {
        self.field(48)
    }

    /// Bytes of where a slot ends, as a power of two: at most 2.
    #[inline(always)]
    pub(super) fn end_log(self) -> usize {
        self.field(56)
    }

    /// Whether where a slot ends is one byte: so it is in all but long lists.
    #[inline(always)]
    pub(super) fn has_byte_ends(self) -> bool {
        self.0 >> 56 == 0
    }

    /// Bytes of a list's first entry: two where ends have one, else four.
    #[inline(always)]
    pub(super) fn first_bytes(self) -> usize {
        if self.has_byte_ends() { 2 } else { 4 }
    }

    #[inline(always)]
    pub(super) fn slots(self) -> usize {
        BUCKETS >> self.slot_bits()
    }

    /// Bytes of a list's table.
    #[inline(always)]
    pub(super) fn table_bytes(self) -> usize {
        self.first_bytes() + (self.slots() << self.end_log())
    }

    #[inline(always)]
    pub(super) fn entry_bits(self) -> usize {
        self.slot_bits() + self.fraction_bits() + self.code_bits()
    }
}
