//! The fingerprints of one table's keys as a filter: `snarf`, `cell`, `gap`, `coded`.
//! ```text
//! key ──directory──> group ──heads or line──> block ──fingerprints──> place:
//!                                                       keys before it, keys through it
//!
//! one key      through > before                     a range      through(upper) > before(lower)
//! lower bound  the cell after the place             upper bound  the cell before it
//! count        through(upper) - before(lower), in all blocks
//! ```
//! These are the groups and blocks of the global range filter's base, read in place. Invariant:
//! places are monotone in keys, and a key of the table lies in a cell. A lookup with the places of
//! a range's ends thus finds every key between them.

mod bounds;
mod builder;
mod counts;
mod encoding;
mod image;
mod kind;
mod place;
#[cfg(test)]
mod tests;

pub use builder::FingerprintFilterBuilder;
pub use kind::{CELL, CODED, GAP, SNARF};

use image::Frame;
use place::{CellPosition, View};
use trommel_filters::bits::simd::fastest;
use trommel_filters::{
    Corrupt, CountBounds, FilterKind, HashedKey, KeyRange, LowerBound, TableFilter, Trace,
    Untraced, UpperBound,
};

/// A filter of fingerprints in key order, over checked bytes: `snarf`, `cell`, `gap` or
/// `coded`, as the bytes say.
#[derive(Clone, Debug)]
pub struct FingerprintFilter<B> {
    bytes: B,
    frame: Frame,
}

impl<B: AsRef<[u8]>> FingerprintFilter<B> {
    /// Checks bytes that [`FingerprintFilterBuilder`] made: all but the fingerprints themselves,
    /// any of which may be. Takes time in proportion to the blocks, of some sixty keys each.
    pub fn read(bytes: B) -> Result<Self, Corrupt> {
        let frame = Frame::read(bytes.as_ref())?;
        Ok(FingerprintFilter { bytes, frame })
    }

    #[inline(always)]
    fn view(&self) -> View<'_> {
        View::new(self.bytes.as_ref(), &self.frame)
    }

    fn place(&self, key: &[u8]) -> CellPosition {
        find(&self.view(), key, &mut Untraced)
    }

    #[inline]
    fn ask<T: Trace>(&self, key: &[u8], trace: &mut T) -> bool {
        let (image, frame) = (self.bytes.as_ref(), &self.frame);
        fastest(
            #[inline(always)]
            move || View::new(image, frame).may_contain(key, trace),
        )
    }
}

/// Finds the place of a key.
#[inline(always)]
fn find<T: Trace>(view: &View<'_>, key: &[u8], trace: &mut T) -> CellPosition {
    fastest(
        #[inline(always)]
        move || view.place(key, trace),
    )
}

impl<B: AsRef<[u8]>> TableFilter for FingerprintFilter<B> {
    fn kind(&self) -> &'static dyn FilterKind {
        self.frame.encoding.kind()
    }

    fn size_bytes(&self) -> usize {
        self.bytes.as_ref().len()
    }

    #[inline]
    fn may_contain(&self, key: &[u8]) -> bool {
        self.ask(key, &mut Untraced)
    }

    #[inline]
    fn may_contain_traced<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) -> bool {
        self.ask(key.key(), trace)
    }

    fn may_overlap_traced<T: Trace>(&self, range: &KeyRange<'_>, trace: &mut T) -> bool {
        let view = &self.view();
        let low = find(view, range.lower(), trace);
        if low.is_in_cell() {
            return true; // whose key may be in the range, whatever its end is
        }
        match range.upper() {
            Some(upper) if view.is_beside(&low, upper) => false,
            Some(key) => view.may_overlap(&low, Some(&find(view, key, trace))),
            None => view.may_overlap(&low, None),
        }
    }

    fn lower_bound(&self, key: &[u8]) -> Option<LowerBound> {
        let place = self.place(key);
        if place.is_in_cell() {
            return Some(LowerBound::From { key: key.to_vec(), unsure: true });
        }
        Some(match self.view().first_from(&place) {
            // Rounding may have put the cell's start before the key.
            Some(start) => LowerBound::From { key: start.max(key.to_vec()), unsure: false },
            None => LowerBound::End,
        })
    }

    fn upper_bound(&self, key: &[u8]) -> Option<UpperBound> {
        let (place, after) = (self.place(key), [key, &[0]].concat());
        if place.is_in_cell() {
            return Some(UpperBound::Before { end: after, unsure: true });
        }
        Some(match self.view().end_before(&place, after) {
            Some(end) => UpperBound::Before { end, unsure: false },
            None => UpperBound::Start,
        })
    }

    fn count(&self, range: &KeyRange<'_>) -> Option<CountBounds> {
        let view = self.view();
        let place = |key| self.place(key);
        // No key is below the empty one.
        let bounded = Some(range.lower()).filter(|lower| !lower.is_empty());
        view.count(bounded.map(place).as_ref(), range.upper().map(place).as_ref())
    }
}
