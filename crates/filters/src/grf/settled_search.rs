//! Finds settled entries by their place.
//! ```text
//! slot     e e e [e e] e e      those that may stand for a place: its fraction begins as theirs, whose other bits are zeros
//! ```
//! Invariant: what is not found surely stands for no place that was asked for.

use super::place::FRACTION_BITS;
use super::settled::Settled;
use crate::bits::packed::load;
use crate::bits::search::first_not;
use crate::filter::Trace;
use crate::shape::Span;
use std::ops::Range;

/// Steps of the search in a slot: most have fewer than sixteen entries.
const SLOT_STEPS: u32 = 4;

impl Settled<'_> {
    /// A place as entries have it: within its slot, and without the bits that none has.
    #[inline(always)]
    fn packed(&self, place: u32) -> u64 {
        let within = (1 << (self.layout.slot_bits() + FRACTION_BITS)) - 1;
        (u64::from(place) & within) >> (FRACTION_BITS - self.layout.fraction_bits())
    }

    /// Of a slot, the entries from the first that may stand for the place `low` to the last that may for `high`. Some
    /// between them may not.
    #[inline(always)]
    pub(super) fn between<T: Trace>(
        &self,
        slot: Range<usize>,
        (low, high): (u32, u32),
        trace: &mut T,
    ) -> Range<usize> {
        let from = self.from(slot.clone(), low, trace);
        let (high, code_bits) = (self.packed(high), self.layout.code_bits());
        let end = first_not::<SLOT_STEPS>(from, slot.end, |place| {
            self.touch_entry(place, trace);
            self.entry(place) >> code_bits <= high
        });
        from..end
    }

    /// Where [`Settled::between`] begins.
    #[inline(always)]
    pub(super) fn from<T: Trace>(&self, slot: Range<usize>, low: u32, trace: &mut T) -> usize {
        let (spare, bits) = (self.layout.spare_bits(), self.layout.entry_bits());
        let least = self.packed(low) >> spare << spare << self.layout.code_bits();
        // Compared with the entry on top of its word, and so with what follows it there: that changes nothing.
        let (least, start) = (least << 1 << (63 - bits), 8 * self.layout.entries_at());
        first_not::<SLOT_STEPS>(slot.start, slot.end, |place| {
            self.touch_entry(place, trace);
            load(self.bytes, start + place * bits) < least
        })
    }

    /// The codes of a slot's entries that stand for a place from one to another, both included, until `visit` has enough.
    #[inline(always)]
    pub(super) fn visit_between<T: Trace>(
        &self,
        slot: Range<usize>,
        (low, high): (u32, u32),
        trace: &mut T,
        mut visit: impl FnMut(Span) -> bool,
    ) {
        let (end, code_bits) = (slot.end, self.layout.code_bits());
        let mut at = self.from(slot, low, trace);
        let (low, high) = (self.packed(low), self.packed(high));
        loop {
            self.touch_entry(at, trace);
            let entry = self.entry(at);
            let packed = entry >> code_bits;
            // Behind the slot something is read in vain: one turn that is foretold, instead of two.
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
