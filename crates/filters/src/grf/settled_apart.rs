//! Settled entries whose codes' numbers are apart from them, Huffman-coded (`huffman.rs`).
//! ```text
//! entries  (bucket within its slot, fraction) packed | section of numbers | codes
//! ```
//! A probe compares fractions as it does elsewhere; only a match reads numbers, from the first of its list on. None of this
//! stands in the way of entries with their codes beside them. Invariant: a list has as many numbers as entries.

use super::huffman::{Numbers, Section};
use super::place::BUCKETS;
use super::settled::{Entry, Settled};
use crate::shape::Span;
use std::ops::Range;

impl<'a> Settled<'a> {
    /// Whether the section of the codes' numbers is one, in so many bytes.
    pub(super) fn has_numbers(&self, codes: usize, room: usize) -> bool {
        let ends = |list| self.slot(list, BUCKETS - 1).end - self.slot(list, 0).start;
        let entries: Vec<usize> = (0..self.layout.lists()).map(ends).collect();
        self.layout.code_bits() == 0 && self.numbers_section().is_one(&entries, codes, room)
    }

    /// Requires: it is there.
    fn numbers_section(&self) -> Section<'a> {
        let at = self.layout.entries_at() + (self.layout.entry_bits() * self.len()).div_ceil(8);
        Section::new(&self.bytes[at..], self.layout.lists())
    }

    /// The codes' numbers from an entry on. Requires: they are apart.
    fn numbers_from(&self, place: usize) -> Numbers<'a> {
        let first = |list: &usize| self.slot(*list, 0).start;
        let list = (0..self.layout.lists()).rev().find(|list| first(list) <= place).unwrap_or(0);
        let mut numbers = self.numbers_section().numbers_from(list);
        (first(&list)..place).for_each(|_| {
            numbers.take();
        });
        numbers
    }

    #[cold]
    #[inline(never)]
    pub(super) fn number_apart(&self, place: usize) -> usize {
        self.numbers_from(place).take()
    }

    /// As [`Settled::visit`], where the codes' numbers are apart.
    #[cold]
    #[inline(never)]
    pub(super) fn visit_apart(&self, range: Range<usize>, mut visit: impl FnMut(Span)) {
        self.visit_numbers(range, |_, number| visit(self.code(number).span));
    }

    /// Entries and their codes' numbers. Requires: these are apart.
    pub(super) fn visit_numbers(&self, range: Range<usize>, mut visit: impl FnMut(usize, usize)) {
        if range.is_empty() {
            return;
        }
        let mut numbers = self.numbers_from(range.start);
        range.for_each(|at| visit(at, numbers.take()));
    }

    #[cold]
    #[inline(never)]
    pub(super) fn decode_numbers(&self, out: &mut [Entry]) {
        let mut numbers = self.numbers_section().numbers_from(0);
        out.iter_mut().for_each(|entry| entry.0 |= numbers.take() as u64);
    }
}
