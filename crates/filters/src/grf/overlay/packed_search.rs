//! Searches a slot for the packed entries that match a place, or a range of places.
//! ```text
//! place x codes = quotient | remainder
//! ones of the quotient --> its entries, usually one or none --> those with the remainder
//! ```
//! Invariant: no entry that matches a place is left out.

use crate::base::filter::Trace;
use crate::base::shape::Span;
use crate::bits::packed::{LEN_MAX, load};
use crate::bits::search::first_not;
use crate::grf::base::place::PLACE_BITS;
use crate::grf::overlay::packed::{Code, Packed};
use crate::grf::sizes::Slot;
use core::ops::Range;

/// The number of entries that are compared at once.
const LANES: usize = 2;
/// Search steps among a quotient's entries: usually there are fewer than four.
const STEPS: u32 = 2;

/// The numbers of entries that may match a range of places, as quotients and remainders.
#[derive(Clone, Copy)]
struct Wanted {
    low: (usize, u64),
    high: (usize, u64),
    /// The lower place, without the bits that all entries lack.
    place: u64,
}

impl Packed<'_> {
    /// Returns the numbers of entries that may match places of a list from `low` to `high`.
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

    /// Returns the entries of a quotient, counted across all slots. Requires: it is not before the
    /// slot's first quotient.
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

    /// Returns a slot's entries from the first that may match the lower place to the last that may
    /// match the upper one. Some in between may match neither.
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

    /// Returns the start of [`Packed::between`].
    #[inline(always)]
    pub(crate) fn from<T: Trace>(&self, slot: &Slot, low: u32, trace: &mut T) -> usize {
        let (quotient, remainder) = self.wanted(slot.list, (low, low)).low;
        self.first_from(self.entries_of(slot, quotient, trace), remainder, trace)
    }

    /// Returns the first of a quotient's entries whose remainder is at least `remainder`.
    #[inline(always)]
    fn first_from<T: Trace>(&self, entries: Range<usize>, remainder: u64, trace: &mut T) -> usize {
        let bits = self.layout.entry_bits();
        // Compares the entry together with the bits after it, which does not change the result.
        let (least, start) = (remainder << 1 << (63 - bits), 8 * self.layout.entries_at());
        first_not::<STEPS>(entries.start, entries.end, |place| {
            self.touch_entry(place, trace);
            load(self.bytes, start + place * bits) < least
        })
    }

    /// Whether none of a quotient's few entries has a remainder in the range. Most places have no
    /// entry, so this branch is predictable.
    #[inline(always)]
    fn has_none<T: Trace>(
        &self,
        entries: &Range<usize>,
        (low, high): (u64, u64),
        trace: &mut T,
    ) -> bool {
        self.touch_entry(entries.start, trace);
        let bits = self.layout.entry_bits();
        let word = load(self.bytes, 8 * self.layout.entries_at() + entries.start * bits);
        let is_wanted = |lane: usize| {
            let remainder = word << (lane * bits) >> 1 >> (63 - bits);
            (lane < entries.len()) & (remainder.wrapping_sub(low) <= high - low)
        };
        !(is_wanted(0) | is_wanted(1) | (entries.len() > LANES) | (LANES * bits > LEN_MAX))
    }

    /// Visits the codes of a slot's entries that match the places from one to another, both
    /// included, until `visit` returns false.
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
        let last = if low.0 == high.0 {
            if self.has_none(&first, (low.1, high.1), trace) {
                return;
            }
            first.clone()
        } else {
            self.entries_of(slot, high.0, trace)
        };
        let mut at = self.first_from(first.clone(), low.1, trace);
        loop {
            self.touch_entry(at, trace);
            let remainder = self.remainder(at);
            let is_above = (at >= last.start) & (remainder > high.1);
            // Reading one past the last entry saves a second branch.
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

    /// Returns the place of an entry, without the bits that all entries lack, and its code.
    #[inline(always)]
    fn place_and_code(&self, at: usize, number: u64) -> (u64, Code) {
        let codes = self.layout.codes();
        let code = if self.is_apart() { self.number_apart(at) } else { (number % codes) as usize };
        (number / codes, self.code(code))
    }

    /// Visits the fraction and code of some of a slot's entries. A fraction has its code's number
    /// of bits.
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

    /// Returns the group of an entry. Entries of different groups in a slot have fractions in the
    /// order of groups, whatever their bits.
    pub(crate) fn group(&self, slot: &Slot, place: usize) -> u64 {
        (self.numbers_from(slot, place).take() / self.layout.codes()) >> self.layout.spare_bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::filter::Untraced;
    use crate::base::shape::FlushNumber;
    use crate::grf::base::place::{BUCKETS, FRACTION_BITS, bucket_places};
    use crate::grf::overlay::packed::{Entry, Recoding};
    use crate::grf::overlay::packed_writer::PackedEntriesWriter;
    use crate::grf::overlay::packed_writer::tests::{LISTS, mixed};

    /// Codes with fractions of these numbers of bits.
    fn codes(bits: &[usize]) -> Vec<Code> {
        let code = |(place, &bits): (u64, &usize)| {
            let span = Span::new(FlushNumber(place), FlushNumber(place + 1));
            Code { span: span.expect("not empty"), bits: bits as u8 }
        };
        (0..).zip(bits).map(code).collect()
    }

    /// Entries of random codes. One in `anywhere` has a random place, the others are in one bucket.
    fn entries(seed: u64, count: u64, anywhere: u64, codes: &[Code]) -> Vec<Entry> {
        let entry = |at: u64| {
            let random = mixed(seed << 32 ^ at);
            let spot = random as u32 % ((LISTS << PLACE_BITS) as u32);
            let crowded = (1 << PLACE_BITS) as u32 | (spot % (1 << FRACTION_BITS));
            let spot = if at.is_multiple_of(anywhere) { spot } else { crowded };
            let code = (random >> 40) as usize & 0xff;
            let code = code % codes.len();
            let cut = FRACTION_BITS as u8 - codes[code].bits;
            Entry::new(spot).recoded(Recoding { cut, code: code as u16 })
        };
        let mut entries: Vec<Entry> = (0..count).map(entry).collect();
        entries.sort_unstable();
        entries.dedup();
        entries
    }

    /// Any search in a bucket finds the entries that match its places.
    fn assert_found(entries: &[Entry], codes: &[Code], seed: u64) {
        let bytes = PackedEntriesWriter::default().write(entries, codes, LISTS, 0);
        assert!(Packed::is_valid(&bytes, LISTS));
        let packed = Packed::new(&bytes);
        for asked in 0..3000u64 {
            let random = mixed(seed << 32 | asked);
            let near = entries[random as usize % entries.len()].spot();
            let (list, bucket) = (near as usize >> PLACE_BITS, near as usize >> FRACTION_BITS);
            let (first, last) = bucket_places(bucket % BUCKETS);
            let place = near % (1 << PLACE_BITS);
            let low = match asked % 3 {
                0 => place,
                1 => first + (random >> 32) as u32 % (1 << FRACTION_BITS),
                _ => place.saturating_sub((random >> 44) as u32 & 0xff).max(first),
            };
            let wide =
                if asked % 2 == 0 { 0 } else { ((random >> 20) as u32 % 5000) << (asked % 9) };
            let high = low.saturating_add(wide).min(last);
            let stands = |entry: &&Entry| {
                let spare = (1u32 << (FRACTION_BITS as u8 - codes[entry.code()].bits)) - 1;
                let place = entry.spot() % (1 << PLACE_BITS);
                entry.spot() as usize >> PLACE_BITS == list && place | spare >= low && place <= high
            };
            let expected: Vec<&Entry> = entries.iter().filter(stands).collect();
            let slot = packed.slot(list, bucket % BUCKETS);
            let mut found = Vec::new();
            packed.visit_between(&slot, (low, high), &mut Untraced, |span| {
                found.push(span.lo().0 as usize);
                true
            });
            let codes_of = expected.iter().map(|entry| entry.code()).collect::<Vec<_>>();
            assert_eq!(found, codes_of, "{low:x}..={high:x} of list {list}");
            let range = packed.between(&slot, (low, high), &mut Untraced);
            assert!(range.start == packed.from(&slot, low, &mut Untraced));
            let among = &entries[range.clone()];
            assert!(expected.iter().all(|entry| among.contains(entry)), "{low:x}..={high:x}");
            let mut at = range.clone();
            packed.visit_fractions(&slot, range, |fraction, code| {
                let entry = entries[at.next().expect("as many")];
                let own = entry.spot() % (1 << FRACTION_BITS);
                let own = own >> (FRACTION_BITS as u8 - code.bits);
                assert_eq!((fraction, code), (u64::from(own), codes[entry.code()]));
            });
        }
    }

    #[test]
    fn all_entries_of_a_place_and_no_others() {
        let sets: [&[usize]; 5] =
            [&[12], &[9, 9, 9], &[14, 11, 14, 13, 12, 14, 14], &[22, 4], &[6; 250]];
        for (seed, bits) in sets.into_iter().enumerate() {
            let (seed, codes) = (seed as u64, codes(bits));
            for (count, anywhere) in [(1, 1), (40, 1), (700, 1), (900, 30), (8000, 1), (9000, 40)] {
                let entries = entries(seed * 8 + count % 7, count, anywhere, &codes);
                assert_found(&entries, &codes, seed + count);
            }
        }
    }
}
