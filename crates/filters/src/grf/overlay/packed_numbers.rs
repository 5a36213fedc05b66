//! Where the numbers of packed entries' codes are, if they are apart from these.
//! ```text
//! quotients | entries | section: bits of each entry's number, by list (huffman.rs) | codes
//! ```
//! Invariant: an entry has one number, wherever it is kept.

use alloc::vec::Vec;

use crate::base::shape::Span;
use crate::grf::base::place::BUCKETS;
use crate::grf::overlay::huffman::{Numbers, Section};
use crate::grf::overlay::packed::{Entry, Packed};
use core::ops::Range;

impl<'a> Packed<'a> {
    /// Whether the section of the codes' numbers is one, in so many bytes.
    pub(crate) fn has_numbers(&self, codes: usize, room: usize) -> bool {
        let ends = |list| self.slot(list, BUCKETS - 1).end - self.slot(list, 0).start;
        let entries: Vec<usize> =
            (0..self.layout.lists()).map(|list| ends(list) as usize).collect();
        self.layout.codes() == 1 && self.numbers_section().is_one(&entries, codes, room)
    }

    /// Requires: it is there.
    fn numbers_section(&self) -> Section<'a> {
        let at = self.layout.entries_at() + (self.layout.entry_bits() * self.len()).div_ceil(8);
        Section::new(&self.bytes[at..], self.layout.lists())
    }

    /// The codes' numbers from an entry on. Requires: they are apart.
    fn code_numbers_from(&self, place: usize) -> Numbers<'a> {
        let first = |list: &usize| self.slot(*list, 0).range().start;
        let list = (0..self.layout.lists()).rev().find(|list| first(list) <= place).unwrap_or(0);
        let mut numbers = self.numbers_section().numbers_from(list);
        (first(&list)..place).for_each(|_| {
            numbers.take();
        });
        numbers
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn number_apart(&self, place: usize) -> usize {
        self.code_numbers_from(place).take()
    }

    /// As [`Packed::visit`], where the codes' numbers are apart.
    #[cold]
    #[inline(never)]
    pub(crate) fn visit_apart(&self, range: Range<usize>, mut visit: impl FnMut(Span)) {
        self.visit_numbers(range, |_, number| visit(self.code(number).span));
    }

    /// Entries and their codes' numbers. Requires: these are apart.
    pub(crate) fn visit_numbers(&self, range: Range<usize>, mut visit: impl FnMut(usize, usize)) {
        if range.is_empty() {
            return;
        }
        let mut numbers = self.code_numbers_from(range.start);
        range.for_each(|at| visit(at, numbers.take()));
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn decode_numbers(&self, out: &mut [Entry]) {
        let mut numbers = self.numbers_section().numbers_from(0);
        out.iter_mut().for_each(|entry| entry.0 |= numbers.take() as u64);
    }
}
