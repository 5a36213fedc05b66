//! Access to the numbers of packed entries' codes, if these are stored separately.
//! ```text
//! quotients | entries | section: bits of each entry's number, by list (huffman.rs) | codes
//! ```
//! Invariant: an entry's code has the same number in either representation.

use alloc::vec::Vec;

use crate::base::shape::Span;
use crate::grf::base::place::BUCKETS;
use crate::grf::overlay::huffman::{Numbers, Section};
use crate::grf::overlay::packed::{Entry, Packed};
use core::ops::Range;

impl<'a> Packed<'a> {
    /// Whether the section of codes' numbers is valid and fits into `room` bytes.
    pub(crate) fn has_numbers(&self, codes: usize, room: usize) -> bool {
        let ends = |list| self.slot(list, BUCKETS - 1).end - self.slot(list, 0).start;
        let entries: Vec<usize> =
            (0..self.layout.lists()).map(|list| ends(list) as usize).collect();
        self.layout.codes() == 1 && self.numbers_section().is_valid(&entries, codes, room)
    }

    /// Requires: the section exists.
    fn numbers_section(&self) -> Section<'a> {
        let at = self.layout.entries_at() + (self.layout.entry_bits() * self.len()).div_ceil(8);
        Section::new(&self.bytes[at..], self.layout.lists())
    }

    /// Returns the numbers of codes from an entry on. Requires: they are separate.
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

    /// Same as [`Packed::visit`], with separate numbers of codes.
    #[cold]
    #[inline(never)]
    pub(crate) fn visit_apart(&self, range: Range<usize>, mut visit: impl FnMut(Span)) {
        self.visit_numbers(range, |_, number| visit(self.code(number).span));
    }

    /// Visits entries with the numbers of their codes. Requires: these are separate.
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
