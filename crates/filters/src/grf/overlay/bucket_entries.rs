//! Iterates over the overlay entries of one bucket, in either direction, a piece at a time.
//! ```text
//! old     e e e|e e e|e e e  a piece is read when the previous one is used up
//! young   e e|e e|e          separate from the old ones: readers need no common order
//! ```
//! A bucket may have thousands of entries, and most readers need few.
//!
//! Invariants: unwanted entries are left out. Forward, the next entry of a stretch starts no later
//! than any that follows. Backward, it ends no earlier.

use alloc::vec::Vec;

use crate::base::filter::Untraced;
use crate::base::shape::Span;
use crate::grf::base::place::{FRACTION_BITS, bucket_places};
use crate::grf::base::{Base, Spot};
use crate::grf::overlay::Overlay;
use crate::grf::overlay::chunk::Chunk;
use crate::grf::sizes::{Slots, TIERS};
use core::ops::Range;

/// Entries per piece.
const PIECE: usize = 16;

/// An entry's fraction, which is a prefix of its keys' fractions, and its code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketEntry {
    pub(crate) fraction: u64,
    pub(crate) bits: usize,
    pub(crate) code: Span,
}

impl BucketEntry {
    /// Returns the smallest full-length fraction above all keys of the entry.
    fn end(&self) -> u64 {
        (self.fraction + 1) << (FRACTION_BITS - self.bits)
    }
}

/// Consecutive entries of one tier.
#[derive(Default)]
struct Stretch {
    /// Entries that are not read yet.
    rest: Range<usize>,
    /// Entries that are read; the next one is the last.
    piece: Vec<BucketEntry>,
}

/// The remaining entries of a bucket. `BACK`: from its end.
#[derive(Default)]
pub(crate) struct BucketEntries<const BACK: bool> {
    chunk: Chunk,
    slots: Slots,
    stretches: [Stretch; TIERS],
}

impl<const BACK: bool> BucketEntries<BACK> {
    /// Moves to another bucket, reusing the memory. `from`: begin at this place.
    pub(crate) fn read(
        &mut self,
        (overlay, base): (&Overlay, &Base),
        (list, bucket): (usize, usize),
        from: Option<&Spot>,
    ) {
        let entries = overlay.list(list, base);
        self.chunk = entries.chunk.clone();
        let (mut low, mut high) = bucket_places(bucket);
        match from.map(Spot::place) {
            Some(place) if BACK => high = place,
            Some(place) => low = place,
            None => {}
        }
        self.slots = Slots::default();
        for (tier, stretch) in self.stretches.iter_mut().enumerate() {
            stretch.begin(self.chunk.tier(tier).map_or(0..0, |packed| {
                self.slots[tier] = packed.slot(entries.list, bucket);
                packed.between(&self.slots[tier], (low, high), &mut Untraced)
            }));
        }
    }

    /// Returns the next wanted entry of a tier. None: there are no more.
    pub(crate) fn peek(
        &mut self,
        tier: usize,
        wanted: impl Fn(Span) -> bool,
    ) -> Option<BucketEntry> {
        loop {
            let stretch = &mut self.stretches[tier];
            match stretch.piece.last() {
                Some(entry) if wanted(entry.code) => return Some(*entry),
                Some(_) => drop(stretch.piece.pop()),
                None if stretch.rest.is_empty() => return None,
                None => self.read_piece(tier, &wanted),
            }
        }
    }

    /// Moves past the entry that [`BucketEntries::peek`] returned.
    pub(crate) fn pass(&mut self, tier: usize) {
        self.stretches[tier].piece.pop();
    }

    fn read_piece(&mut self, tier: usize, wanted: impl Fn(Span) -> bool) {
        let packed = self.chunk.tier(tier).expect("some are left");
        let (slot, stretch) = (&self.slots[tier], &mut self.stretches[tier]);
        let range = stretch.next_piece::<BACK>(|at| packed.group(slot, at));
        let piece = &mut stretch.piece;
        piece.reserve(range.len());
        packed.visit_fractions(slot, range, |fraction, code| {
            if wanted(code.span) {
                let bits = usize::from(code.bits);
                piece.push(BucketEntry { fraction, bits, code: code.span });
            }
        });
        // The next entry is last.
        if BACK {
            piece.sort_by_key(BucketEntry::end);
        } else {
            piece.reverse();
        }
    }
}

impl Stretch {
    fn begin(&mut self, rest: Range<usize>) {
        self.rest = rest;
        self.piece.clear();
    }

    /// Takes a piece off the rest. Backward, entries of one group stay together. Their ends are in
    /// no order, but none is below the end of an entry of an earlier group.
    fn next_piece<const BACK: bool>(&mut self, group: impl Fn(usize) -> u64) -> Range<usize> {
        let Range { start, end } = self.rest;
        if !BACK {
            let middle = end.min(start + PIECE);
            self.rest = middle..end;
            return start..middle;
        }
        let mut middle = end.saturating_sub(PIECE).max(start);
        while middle > start && group(middle - 1) == group(middle) {
            middle -= 1;
        }
        self.rest = start..middle;
        middle..end
    }
}
