//! Finds the packed entries of a slot that stand for a place, or for those between two.
//! ```text
//! place  = quotient | remainder
//! ones of the quotient --> its entries, most often one or none --> those with the remainder
//! ```
//! Invariant: no entry that stands for a place is left out.

use crate::base::filter::Trace;
use crate::base::shape::Span;
use crate::bits::packed::load;
use crate::bits::search::first_not;
use crate::grf::base::place::FRACTION_BITS;
use crate::grf::overlay::packed::{Code, Packed};
use crate::grf::overlay::packed_layout::SAMPLE_BITS;
use crate::grf::sizes::Slot;
use std::ops::Range;

/// Steps of the search among a quotient's entries: most have fewer than four.
const STEPS: u32 = 2;

/// A place as a slot's entries have it: without the bits that none has.
#[derive(Clone, Copy)]
struct Within {
    quotient: usize,
    remainder: u64,
}

impl Packed<'_> {
    #[inline(always)]
    fn within(&self, place: u32) -> Within {
        let layout = self.layout;
        let within = (1 << (layout.slot_bits() + FRACTION_BITS)) - 1;
        let place = (u64::from(place) & within) >> (FRACTION_BITS - layout.fraction_bits());
        let bits = layout.remainder_bits();
        Within { quotient: (place >> bits) as usize, remainder: place & ((1 << bits) - 1) }
    }

    /// The entries of one of a slot's quotients.
    #[inline(always)]
    fn entries_of<T: Trace>(&self, slot: &Slot, quotient: usize, trace: &mut T) -> Range<usize> {
        if self.layout.quotient_bits() == 0 {
            return slot.range();
        }
        let (first, quotient) = if self.layout.is_sampled() {
            self.from_sample(slot, quotient)
        } else {
            (slot.first(), quotient)
        };
        let entries = self.quotients().entries(first, quotient);
        let bit = slot.quotients as usize + quotient;
        trace.touch(self.bytes.as_ptr() as usize + self.layout.quotients_at() + bit / 8, 8);
        entries
    }

    /// Where the quotients from the last sample on begin, at or before one of a slot's, and which
    /// of these it is.
    #[inline(never)]
    fn from_sample(&self, slot: &Slot, quotient: usize) -> ((usize, usize), usize) {
        let quotient = (slot.quotients - slot.start) as usize + quotient;
        let entry = self.sample(quotient >> SAMPLE_BITS) as usize;
        let sampled = quotient >> SAMPLE_BITS << SAMPLE_BITS;
        ((entry, entry + sampled), quotient - sampled)
    }

    /// Of a slot, the entries from the first that may stand for the place `low` to the last that
    /// may for `high`. Some between them may not.
    #[inline(always)]
    pub(crate) fn between<T: Trace>(
        &self,
        slot: &Slot,
        (low, high): (u32, u32),
        trace: &mut T,
    ) -> Range<usize> {
        let from = self.from(slot, low, trace);
        let (high, code_bits) = (self.within(high), self.layout.code_bits());
        let entries = self.entries_of(slot, high.quotient, trace);
        let end = first_not::<STEPS>(entries.start, entries.end, |place| {
            self.touch_entry(place, trace);
            self.entry(place) >> code_bits <= high.remainder
        });
        from..end.max(from)
    }

    /// Where [`Packed::between`] begins.
    #[inline(always)]
    pub(crate) fn from<T: Trace>(&self, slot: &Slot, low: u32, trace: &mut T) -> usize {
        let low = self.within(low);
        self.first_of(self.entries_of(slot, low.quotient, trace), low.remainder, trace)
    }

    /// Of a quotient's entries the first that may stand for a remainder or one above.
    #[inline(always)]
    fn first_of<T: Trace>(&self, entries: Range<usize>, remainder: u64, trace: &mut T) -> usize {
        let (spare, bits) = (self.layout.spare_bits(), self.layout.entry_bits());
        let least = remainder >> spare << spare << self.layout.code_bits();
        // Compared with the entry on top of its word, and so with what follows it there: that
        // changes nothing.
        let (least, start) = (least << 1 << (63 - bits), 8 * self.layout.entries_at());
        first_not::<STEPS>(entries.start, entries.end, |place| {
            self.touch_entry(place, trace);
            load(self.bytes, start + place * bits) < least
        })
    }

    /// The codes of a slot's entries that stand for a place from one to another, both included,
    /// until `visit` has enough.
    #[inline(always)]
    pub(crate) fn visit_between<T: Trace>(
        &self,
        slot: &Slot,
        (low, high): (u32, u32),
        trace: &mut T,
        mut visit: impl FnMut(Span) -> bool,
    ) {
        let (layout, low, high) = (self.layout, self.within(low), self.within(high));
        let first = self.entries_of(slot, low.quotient, trace);
        let last = if low.quotient == high.quotient {
            first.clone()
        } else {
            self.entries_of(slot, high.quotient, trace)
        };
        let mut at = self.first_of(first.clone(), low.remainder, trace);
        loop {
            self.touch_entry(at, trace);
            let entry = self.entry(at);
            let remainder = entry >> layout.code_bits();
            let is_above = (at >= last.start) & (remainder > high.remainder);
            // Behind the slot, a read is wasted: that makes one predictable branch instead of two.
            if (at >= last.end) | is_above {
                return;
            }
            let code = self.code(self.number_of(at, entry));
            let spare = layout.fraction_bits() - usize::from(code.bits);
            let is_below = at < first.end && remainder | ((1 << spare) - 1) < low.remainder;
            if !is_below && !visit(code.span) {
                return;
            }
            at += 1;
        }
    }

    /// Fraction and code of some of a slot's entries. The fraction has the code's bits.
    pub(crate) fn visit_fractions(
        &self,
        slot: &Slot,
        range: Range<usize>,
        mut visit: impl FnMut(u64, Code),
    ) {
        let bits = self.layout.fraction_bits();
        let mut places = self.places(slot, range.start);
        let mut visit = |entry: u64, number: usize| {
            let code = self.code(number);
            let fraction = places(entry) & ((1 << bits) - 1);
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

    /// What gives the places of a slot's entries from one of them on, in order, without the bits
    /// that none has.
    fn places(&self, slot: &Slot, from: usize) -> impl FnMut(u64) -> u64 {
        let layout = self.layout;
        let has_quotients = layout.quotient_bits() > 0;
        let mut quotients = self.quotients().from(slot.first());
        if has_quotients {
            quotients.skip(from - slot.start as usize);
        }
        move |entry| {
            let quotient = if has_quotients { quotients.take() as u64 } else { 0 };
            quotient << layout.remainder_bits() | entry >> layout.code_bits()
        }
    }

    /// Entries of different groups of a slot have fractions in the groups' order, whatever bits
    /// they have.
    pub(crate) fn group(&self, slot: &Slot, place: usize) -> u64 {
        self.places(slot, place)(self.entry(place)) >> self.layout.spare_bits()
    }
}
