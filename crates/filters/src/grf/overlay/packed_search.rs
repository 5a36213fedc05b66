//! Finds the packed entries of a slot that stand for a place, or for those between two.
//! ```text
//! place x codes = quotient | remainder
//! ones of the quotient --> its entries, most often one or none --> those with the remainder
//! ```
//! Invariant: no entry that stands for a place is left out.

use crate::base::filter::Trace;
use crate::base::shape::Span;
use crate::bits::packed::load;
use crate::bits::search::first_not;
use crate::grf::base::place::PLACE_BITS;
use crate::grf::overlay::packed::{Code, Packed};
use crate::grf::sizes::Slot;
use std::ops::Range;

/// Steps of the search among a quotient's entries: most have fewer than four.
const STEPS: u32 = 2;

/// The numbers that entries between two places may have, each as quotient and remainder.
#[derive(Clone, Copy)]
struct Wanted {
    low: (usize, u64),
    high: (usize, u64),
    /// The lower place, without the bits that none has.
    place: u64,
}

impl Packed<'_> {
    /// The numbers of those that may stand for places of a list from one to another.
    #[inline(always)]
    fn wanted(&self, list: u32, (low, high): (u32, u32)) -> Wanted {
        let (layout, spare) = (self.layout, self.layout.spare_bits());
        let place = |place: u32| layout.place(u64::from(list) << PLACE_BITS | u64::from(place));
        let (place, high) = (place(low), place(high));
        let (low, end) = ((place >> spare << spare) * layout.codes(), (high + 1) * layout.codes());
        Wanted { low: self.split(low), high: self.split(end - 1), place }
    }

    #[inline(always)]
    fn split(&self, number: u64) -> (usize, u64) {
        let bits = self.layout.entry_bits();
        ((number >> bits) as usize, number & ((1 << bits) - 1))
    }

    /// The entries of a quotient, counted over all slots, which is not before a slot's first one.
    #[inline(always)]
    fn entries_of<T: Trace>(&self, slot: &Slot, quotient: usize, trace: &mut T) -> Range<usize> {
        if self.layout.is_sampled() {
            let end = slot.end as usize;
            return self.quotients().sampled_entries(self.samples(), quotient, end);
        }
        let (entry, bit) = slot.first();
        let at = self.layout.quotients_at() + (entry + quotient) / 8;
        trace.touch(self.bytes.as_ptr() as usize + at, 8);
        self.quotients().entries((entry, bit), quotient - (bit - entry))
    }

    /// Of a slot, the entries from the first that may stand for the place `low` to the last that
    /// may for `high`. Some between them may not.
    #[inline(always)]
    pub(crate) fn between<T: Trace>(
        &self,
        slot: &Slot,
        places: (u32, u32),
        trace: &mut T,
    ) -> Range<usize> {
        let Wanted { low, high, .. } = self.wanted(slot.list, places);
        let from = self.first_from(self.entries_of(slot, low.0, trace), low.1, trace);
        let entries = self.entries_of(slot, high.0, trace);
        let end = first_not::<STEPS>(entries.start, entries.end, |place| {
            self.touch_entry(place, trace);
            self.remainder(place) <= high.1
        });
        from..end.max(from)
    }

    /// Where [`Packed::between`] begins.
    #[inline(always)]
    pub(crate) fn from<T: Trace>(&self, slot: &Slot, low: u32, trace: &mut T) -> usize {
        let (quotient, remainder) = self.wanted(slot.list, (low, low)).low;
        self.first_from(self.entries_of(slot, quotient, trace), remainder, trace)
    }

    /// Of a quotient's entries the first whose remainder is not below another one.
    #[inline(always)]
    fn first_from<T: Trace>(&self, entries: Range<usize>, remainder: u64, trace: &mut T) -> usize {
        let bits = self.layout.entry_bits();
        // Compared with the entry on top of its word, and so with what follows it there: that
        // changes nothing.
        let (least, start) = (remainder << 1 << (63 - bits), 8 * self.layout.entries_at());
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
        places: (u32, u32),
        trace: &mut T,
        mut visit: impl FnMut(Span) -> bool,
    ) {
        let Wanted { low, high, place } = self.wanted(slot.list, places);
        let first = self.entries_of(slot, low.0, trace);
        let last =
            if low.0 == high.0 { first.clone() } else { self.entries_of(slot, high.0, trace) };
        let mut at = self.first_from(first.clone(), low.1, trace);
        loop {
            self.touch_entry(at, trace);
            let remainder = self.remainder(at);
            let is_above = (at >= last.start) & (remainder > high.1);
            // Behind the entries, a read is wasted: that makes one predictable branch, not two.
            if (at >= last.end) | is_above {
                return;
            }
            let quotient = match at {
                _ if at < first.end => low.0,
                _ if at >= last.start => high.0,
                _ => self.numbers_from(slot, at).quotient(),
            };
            let number = (quotient as u64) << self.layout.entry_bits() | remainder;
            let (own, code) = self.place_and_code(at, number);
            let spare = self.layout.fraction_bits() - usize::from(code.bits);
            if own | ((1 << spare) - 1) >= place && !visit(code.span) {
                return;
            }
            at += 1;
        }
    }

    /// The place of an entry, without the bits that none has, and its code.
    #[inline(always)]
    fn place_and_code(&self, at: usize, number: u64) -> (u64, Code) {
        let codes = self.layout.codes();
        let code = if self.is_apart() { self.number_apart(at) } else { (number % codes) as usize };
        (number / codes, self.code(code))
    }

    /// Fraction and code of some of a slot's entries. The fraction has the code's bits.
    pub(crate) fn visit_fractions(
        &self,
        slot: &Slot,
        range: Range<usize>,
        mut visit: impl FnMut(u64, Code),
    ) {
        let bits = self.layout.fraction_bits();
        let mut numbers = self.numbers_from(slot, range.start);
        for at in range {
            let (place, code) = self.place_and_code(at, numbers.take());
            let fraction = place & ((1 << bits) - 1);
            visit(fraction >> (bits - usize::from(code.bits)), code);
        }
    }

    /// Entries of different groups of a slot have fractions in the groups' order, whatever bits
    /// they have.
    pub(crate) fn group(&self, slot: &Slot, place: usize) -> u64 {
        self.numbers_from(slot, place).take() / self.layout.codes() >> self.layout.spare_bits()
    }
}
