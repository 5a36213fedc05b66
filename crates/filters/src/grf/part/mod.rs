//! A part: the filter of one key range, which is asked, extended and written as a whole.
//! ```text
//! key --> list ~~~> bucket ~~~> base: in a cell?      -> [0, base end)
//!                     '~~~~~~~> overlay: at the place? -> codes
//! ~~> is asked for before it is waited for
//! ```
//! A range asks for two places and what lies between them. A key has one place, so what is found
//! stays in registers, and base and overlay are searched side by side. Invariant: the answer for a
//! key is that of a range of this key alone, or a no where hash bits tell more.

mod batch;
pub(super) mod builder;
mod count;
pub(super) mod cursor;
mod image;
pub(super) mod inserter;
pub(super) mod recoder;

use crate::base::filter::{GlobalFilter, Trace, Untraced};
use crate::base::query::Query;
use crate::base::shape::{Codes, FlushNumber, Shape, Span};
use crate::bits::simd::fastest;
use crate::fingerprint::asked::Asked;
use crate::fingerprint::questions::Questions;
use crate::grf::base::{Base, Role, Spot};
use crate::grf::options::GrfOptions;
use crate::grf::overlay::Overlay;
use crate::grf::sizes::allocated_bytes;
use crate::text::code::KeyCode;
use crate::text::model::TextModel;
use alloc::sync::Arc;

/// What a part takes, measured: every heap byte, what the allocator adds included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartSize {
    /// Heap bytes of the base.
    pub base_bytes: u64,
    /// Heap bytes of the overlay.
    pub overlay_bytes: u64,
    /// Keys of the base.
    pub base_entries: u64,
    /// Entries of the overlay; equal places with equal codes are one.
    pub overlay_entries: u64,
}

/// A key range's filter: its last level and what was flushed since.
#[derive(Clone)]
pub struct Part {
    options: GrfOptions,
    base: Arc<Base>,
    overlay: Overlay,
}

impl Part {
    pub(crate) fn of_base(options: GrfOptions, base: Base) -> Part {
        let overlay = Overlay::empty(&base);
        Part { options, base: Arc::new(base), overlay }
    }

    pub(crate) fn base(&self) -> &Base {
        &self.base
    }

    fn overlay(&self) -> &Overlay {
        &self.overlay
    }

    /// The code of every base key; None if there are none.
    fn base_code(&self) -> Option<Span> {
        Span::new(FlushNumber(0), self.base.end)
    }

    /// The knobs it was built with.
    pub fn options(&self) -> &GrfOptions {
        &self.options
    }

    /// What it was built to be asked for.
    pub fn asked(&self) -> Asked {
        self.base.asked
    }

    /// Some of the questions by which its bits are divided.
    pub fn questions(&self) -> &Questions {
        &self.base.questions
    }

    /// The end of the base's flush numbers: its keys' code is [0, `base_end`).
    pub fn base_end(&self) -> FlushNumber {
        self.base.end
    }

    /// Garbage collection (GRF paper, section 4.2): the part with codes as wide as a version with
    /// the runs of `shape` allows. It serves lists that no flush touches for long. Takes time in
    /// proportion to the lists with something to forget. Requires: as for [`Part::inserter`].
    #[must_use]
    pub fn collect_garbage(&self, shape: &Shape) -> Part {
        let overlay = self.overlay.collect_garbage(&self.base, &self.options, shape);
        Part { overlay, ..self.clone() }
    }

    /// Adds the codes of all entries that match. Nothing added: no run holds anything for `query`.
    pub fn candidates(&self, query: &Query<'_>, codes: &mut Codes) {
        self.candidates_traced(query, codes, &mut Untraced);
    }

    /// As [`Part::candidates`], and tells `trace` which memory it reads.
    pub fn candidates_traced<T: Trace>(&self, query: &Query<'_>, codes: &mut Codes, trace: &mut T) {
        match &self.base.text {
            None => self.ask(query, codes, trace),
            Some(text) => self.ask_coded(text, query, codes, trace),
        }
    }

    /// Asks for the codes of the keys that a query names.
    #[inline(never)]
    fn ask_coded<T: Trace>(
        &self,
        text: &TextModel,
        query: &Query<'_>,
        codes: &mut Codes,
        trace: &mut T,
    ) {
        let (mut low, mut high) = (KeyCode::new(), KeyCode::new());
        let query = match query {
            Query::Point(key) => Query::Point(text.encode(key, &mut low)),
            Query::Range(range) => Query::Range(text.range(range, (&mut low, &mut high))),
        };
        self.ask(&query, codes, trace);
    }

    #[inline(always)]
    fn ask<T: Trace>(&self, query: &Query<'_>, codes: &mut Codes, trace: &mut T) {
        match query {
            Query::Point(key) => fastest(
                #[inline(always)]
                move || self.ask_point(key, codes, trace),
            ),
            Query::Range(range) => {
                let low = self.spot(range.lower(), Role::Low, trace);
                let high = range.upper().map(|key| self.spot(key, Role::High(&low), trace));
                if self.base.may_overlap(&low, high.as_ref()) && self.base.may_hold_in(range, trace)
                {
                    self.base_code().into_iter().for_each(|code| codes.push(code));
                }
                self.overlay.collect(&self.base, &low, high.as_ref(), codes, trace);
            }
        }
    }

    /// The place of a key, or of its code if there is a model of text.
    fn spot<T: Trace>(&self, key: &[u8], role: Role<'_>, trace: &mut T) -> Spot {
        fastest(
            #[inline(always)]
            move || self.spot_now(key, role, trace),
        )
    }

    #[inline(always)]
    fn spot_now<T: Trace>(&self, key: &[u8], role: Role<'_>, trace: &mut T) -> Spot {
        let Part { base, overlay, .. } = self;
        // Base and overlay are read side by side: both are asked for before either is waited for.
        base.directory.load_about(key, trace);
        let found = base.list_of(key, trace);
        let across = base.load_about(found, trace);
        let entries = overlay.list(found.list, base);
        entries.load_about(across, trace);
        let site = base.locate_in(found, key, trace);
        site.load_block();
        let slots = entries.slots(site.bucket);
        let mut spot = base.place(&site, role, trace);
        spot.slots = slots;
        spot
    }

    /// Adds the codes of all entries that may be `key`'s: its code, if there is a model of text.
    #[inline(always)]
    fn ask_point<T: Trace>(&self, key: &[u8], codes: &mut Codes, trace: &mut T) {
        let Part { base, overlay, .. } = self;
        base.directory.load_about(key, trace);
        let found = base.list_of(key, trace);
        let across = base.load_about(found, trace);
        let entries = overlay.list(found.list, base);
        entries.load_about(across, trace);
        // Most evenly spread keys lie on lines. These have a path of their own, on which all that
        // is known of a key stays in registers.
        let (slots, spot) = match base.positions(found, key) {
            Some(positions) => {
                positions.load();
                let slots = entries.slots(positions.bucket_key().1);
                (slots, base.place_on_line(&positions, trace))
            }
            None => {
                let site = base.locate_in(found, key, trace);
                site.load_block();
                let slots = entries.slots(site.bucket);
                (slots, base.place(&site, Role::Point, trace))
            }
        };
        if base.may_hold(key, &spot) {
            self.base_code().into_iter().for_each(|code| codes.push(code));
        }
        let places = (spot.place(), spot.place());
        entries.collect((spot.bucket, &slots), places, codes, trace);
    }

    /// The memory it takes.
    pub fn size(&self) -> PartSize {
        let base_bytes = self.base.bytes();
        let mut overlay_bytes = 0;
        let overlay_entries = self.overlay.measure(|bytes| overlay_bytes += allocated_bytes(bytes));
        PartSize { base_bytes, overlay_bytes, base_entries: self.base.entries, overlay_entries }
    }
}

impl GlobalFilter for Part {
    fn candidates(&self, query: &Query<'_>, codes: &mut Codes) {
        self.candidates_traced(query, codes, &mut Untraced);
    }
}
