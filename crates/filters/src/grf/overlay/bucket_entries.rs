//! The overlay's entries of one bucket, from one end to the other, some at a time.
//! ```text
//! old     e e e|e e e|e e e  a piece is read when the one before was used up
//! young   e e|e e|e          apart from these: a reader of both needs no common order
//! ```
//! A bucket may have thousands of entries, and most readers need a few. Invariants: entries that
//! are no longer wanted are left out. Forward, a stretch's next entry begins no later than any that
//! follows; backward, it ends no earlier.

use alloc::vec::Vec;

use crate::base::filter::Untraced;
use crate::base::shape::Span;
use crate::grf::base::place::{FRACTION_BITS, bucket_places};
use crate::grf::base::{Base, Spot};
use crate::grf::overlay::Overlay;
use crate::grf::overlay::chunk::Chunk;
use crate::grf::sizes::{Slots, TIERS};
use core::ops::Range;

/// Entries that are read at once.
const PIECE: usize = 16;

/// Of an entry the first bits of its keys' fractions, and its code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketEntry {
    pub(crate) fraction: u64,
    pub(crate) bits: usize,
    pub(crate) code: Span,
}

impl BucketEntry {
    /// No key of it has a greater fraction of all bits than this, which is none of them.
    fn end(&self) -> u64 {
        (self.fraction + 1) << (FRACTION_BITS - self.bits)
    }
}

/// Entries of one tier that lie side by side.
#[derive(Default)]
struct Stretch {
    /// Not read yet.
    rest: Range<usize>,
    /// The next one is the last of them.
    piece: Vec<BucketEntry>,
}

/// The entries of a bucket that were not given yet. `BACK`: from its end.
#[derive(Default)]
pub(crate) struct BucketEntries<const BACK: bool> {
    chunk: Chunk,
    slots: Slots,
    stretches: [Stretch; TIERS],
}

impl<const BACK: bool> BucketEntries<BACK> {
    /// Goes to another bucket, keeping the memory; from a place on, if there is one.
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

    /// The next entry of a tier that is wanted; None: no more.
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

    /// Goes past the entry that [`BucketEntries::peek`] has given.
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
        // What is next comes last.
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

    /// Takes some entries off the rest. Backward, entries of one group stay together. Their ends
    /// are in no order, but none of them is before the end of an entry of an earlier group.
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
