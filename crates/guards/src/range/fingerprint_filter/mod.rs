//! Filters of one table from ordered fingerprints: `snarf`, `cell`, `gap`, `coded`.
//! ```text
//! key ──directory──> group ──heads or line──> block ──fingerprints──> place:
//!                                                       keys before it, keys through it
//!
//! one key      through > before                     a range      through(upper) > before(lower)
//! lower bound  the cell after the place             upper bound  the cell before it
//! count        through(upper) - before(lower), in all blocks
//! ```
//! The groups and blocks are those of the global range filter's base, used in place. If there is a
//! model of text, codes stand for keys throughout.
//!
//! Invariant: places are monotone in keys, and every key of the table lies in a cell. So a lookup
//! with the places of a range's ends finds every key between them.

mod bounds;
mod builder;
mod counts;
mod encoding;
mod image;
mod kind;
mod place;
#[cfg(test)]
mod tests;
mod waiting;

pub use builder::FingerprintFilterBuilder;
pub use kind::{CELL, CODED, GAP, SNARF};

use image::Frame;
use place::{CellPosition, View, cut};
use trommel_filters::bits::simd::fastest;
use trommel_filters::{
    Corrupt, CountBounds, FilterKind, HashedKey, KeyCode, KeyRange, LowerBound, PlacedModel,
    TableFilter, TextTables, Trace, Untraced, UpperBound,
};

/// A filter of ordered fingerprints over checked bytes: `snarf`, `cell`, `gap` or `coded`, as the
/// bytes say.
#[derive(Clone, Debug)]
pub struct FingerprintFilter<B> {
    bytes: B,
    frame: Frame,
}

impl<B: AsRef<[u8]>> FingerprintFilter<B> {
    /// Checks bytes that [`FingerprintFilterBuilder`] made, except the fingerprints, which may have
    /// any bits. Takes time proportional to the blocks, each of some sixty keys.
    pub fn read(bytes: B) -> Result<Self, Corrupt> {
        let frame = Frame::read(bytes.as_ref())?;
        Ok(FingerprintFilter { bytes, frame })
    }

    #[inline(always)]
    fn view(&self) -> View<'_> {
        View::new(self.bytes.as_ref(), &self.frame)
    }

    /// Returns the tables of its model of text.
    fn text(&self) -> Option<TextTables<'_>> {
        self.frame.text.as_ref().map(|text| text.of(self.bytes.as_ref()))
    }

    fn place(&self, key: &[u8]) -> CellPosition {
        let mut code = KeyCode::new();
        let name = self.text().map_or(key, |text| text.encode(cut(key), &mut code));
        find(&self.view(), name, &mut Untraced)
    }

    #[inline]
    fn ask<T: Trace>(&self, key: &[u8], trace: &mut T) -> bool {
        match &self.frame.text {
            None => self.ask_name(key, trace),
            Some(text) => self.ask_coded(text, key, trace),
        }
    }

    /// Looks up a key by its code.
    #[inline(never)]
    fn ask_coded<T: Trace>(&self, text: &PlacedModel, key: &[u8], trace: &mut T) -> bool {
        let text = text.of(self.bytes.as_ref());
        self.ask_name(text.encode(cut(key), &mut KeyCode::new()), trace)
    }

    /// Looks up a name: a key, or its code if there is a model of text.
    #[inline(always)]
    fn ask_name<T: Trace>(&self, name: &[u8], trace: &mut T) -> bool {
        let (image, frame) = (self.bytes.as_ref(), &self.frame);
        fastest(
            #[inline(always)]
            move || View::new(image, frame).may_contain(name, trace),
        )
    }

    /// Looks up a range of names.
    #[inline(always)]
    fn ask_names<T: Trace>(&self, range: &KeyRange<'_>, trace: &mut T) -> bool {
        let view = &self.view();
        let low = find(view, range.lower(), trace);
        if low.is_in_cell() {
            return true; // its key may be in the range, whatever the range's end
        }
        match range.upper() {
            Some(upper) if view.is_beside(&low, upper) => false,
            Some(key) => view.may_overlap(&low, Some(&find(view, key, trace))),
            None => view.may_overlap(&low, None),
        }
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

    fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
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
        let Some(text) = self.text() else { return self.ask_names(range, trace) };
        let (mut low, mut high) = (KeyCode::new(), KeyCode::new());
        let range = KeyRange::new(cut(range.lower()), range.upper().map(cut));
        let range = range.expect("what is left of keys ascends as they do");
        self.ask_names(&text.range(&range, (&mut low, &mut high)), trace)
    }

    fn lower_bound(&self, key: &[u8]) -> Option<LowerBound> {
        let place = self.place(key);
        if place.is_in_cell() {
            return Some(LowerBound::From { key: key.to_vec(), unsure: true });
        }
        let Some(mut start) = self.view().first_from(&place) else { return Some(LowerBound::End) };
        if let Some(text) = self.text() {
            start = text.keys_around(&start).below;
        }
        // By rounding, the cell's start may be below the key.
        Some(LowerBound::From { key: start.max(key.to_vec()), unsure: false })
    }

    fn upper_bound(&self, key: &[u8]) -> Option<UpperBound> {
        let (place, after) = (self.place(key), [key, &[0]].concat());
        if place.is_in_cell() {
            return Some(UpperBound::Before { end: after, unsure: true });
        }
        let Some(mut end) = self.view().end_before(&place) else { return Some(UpperBound::Start) };
        if let Some(text) = self.text() {
            end = end.and_then(|end| text.keys_around(&end).above);
        }
        let end = end.map_or(after.clone(), |end| end.min(after));
        Some(UpperBound::Before { end, unsure: false })
    }

    fn count(&self, range: &KeyRange<'_>) -> Option<CountBounds> {
        let view = self.view();
        let place = |key| self.place(key);
        // No key is below the empty one.
        let bounded = Some(range.lower()).filter(|lower| !lower.is_empty());
        view.count(bounded.map(place).as_ref(), range.upper().map(place).as_ref())
    }
}
