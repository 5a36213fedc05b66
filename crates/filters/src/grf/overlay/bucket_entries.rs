//! The overlay's entries of one bucket, from one end to the other, some at a time.
//! ```text
//! packed    e e e|e e e|e e e  a piece is read when the one before was used up
//! recent    e e|e e|e          apart from these: a reader of both needs no common order
//! ```
//! A bucket may have thousands of entries, and most readers need a few. Invariants: entries that
//! are no longer wanted are left out. Forward, a stretch's next entry begins no later than any that
//! follows; backward, it ends no earlier.

use crate::base::filter::Untraced;
use crate::base::shape::Span;
use crate::grf::base::place::{FRACTION_BITS, bucket_places};
use crate::grf::base::{Base, Spot};
use crate::grf::overlay::Overlay;
use crate::grf::overlay::chunk::Chunk;
use crate::grf::overlay::packed::Packed;
use crate::grf::overlay::recent::Recent;
use crate::grf::sizes::Slot;
use std::ops::Range;

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

/// Entries of one kind that lie side by side.
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
    slot: Slot,
    packed: Stretch,
    recent: Stretch,
}

/// The kinds of entries.
#[derive(Clone, Copy)]
pub(crate) enum Age {
    Packed,
    Recent,
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
        let packed = self.chunk.packed();
        self.slot = packed.map_or(Slot::default(), |packed| packed.slot(entries.list, bucket));
        let slot = |packed: Packed<'_>| packed.between(&self.slot, (low, high), &mut Untraced);
        let words = |recent: Recent<'_>| recent.between(recent.list(entries.list), (low, high));
        self.packed.begin(packed.map_or(0..0, slot));
        self.recent.begin(self.chunk.recent().map_or(0..0, words));
    }

    /// The next entry of a kind that is wanted; None: no more.
    pub(crate) fn peek(&mut self, age: Age, wanted: impl Fn(Span) -> bool) -> Option<BucketEntry> {
        loop {
            let stretch = self.stretch(age);
            match stretch.piece.last() {
                Some(entry) if wanted(entry.code) => return Some(*entry),
                Some(_) => drop(stretch.piece.pop()),
                None if stretch.rest.is_empty() => return None,
                None => self.read_piece(age, &wanted),
            }
        }
    }

    /// Goes past the entry that [`BucketEntries::peek`] has given.
    pub(crate) fn pass(&mut self, age: Age) {
        self.stretch(age).piece.pop();
    }

    fn stretch(&mut self, age: Age) -> &mut Stretch {
        match age {
            Age::Packed => &mut self.packed,
            Age::Recent => &mut self.recent,
        }
    }

    fn read_piece(&mut self, age: Age, wanted: impl Fn(Span) -> bool) {
        match age {
            Age::Packed => {
                let packed = self.chunk.packed().expect("some are left");
                let range = self.packed.next_piece::<BACK>(|at| packed.group(&self.slot, at));
                let piece = &mut self.packed.piece;
                piece.reserve(range.len());
                packed.visit_fractions(&self.slot, range, |fraction, code| {
                    if wanted(code.span) {
                        let bits = usize::from(code.bits);
                        piece.push(BucketEntry { fraction, bits, code: code.span });
                    }
                });
            }
            Age::Recent => {
                let recent = self.chunk.recent().expect("some are left");
                let range = self.recent.next_piece::<BACK>(|at| at as u64);
                let entries = recent.words(range).iter().map(|&word| {
                    let fraction = u64::from(Recent::place_of(word)) & ((1 << FRACTION_BITS) - 1);
                    BucketEntry { fraction, bits: FRACTION_BITS, code: recent.code_of(word) }
                });
                self.recent.piece.extend(entries.filter(|entry| wanted(entry.code)));
            }
        }
        // What is next comes last.
        let piece = &mut self.stretch(age).piece;
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
