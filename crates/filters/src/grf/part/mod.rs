//! A part: the filter of one key range, which is queried, extended and stored as a whole.
//! ```text
//! key --> list ~~~> bucket ~~~> base: in a cell?      -> [0, base end)
//!                     '~~~~~~~> overlay: at the place? -> codes
//! ~~> prefetched before it is read
//! ```
//! A range query needs two places and everything between them. A point query needs one place: its
//! state fits into registers, and base and overlay are searched side by side.
//!
//! Invariant: a point query is answered like a range of its key alone, or with "no" where hash bits
//! prove absence.

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
use crate::fingerprint::empty_queries::EmptyQueries;
use crate::fingerprint::query_mix::QueryMix;
use crate::grf::base::{Base, Role, Spot};
use crate::grf::options::GrfOptions;
use crate::grf::overlay::Overlay;
use crate::grf::sizes::allocated_bytes;
use crate::text::code::KeyCode;
use crate::text::model::TextModel;
use alloc::sync::Arc;

/// The measured memory of a part: all heap bytes, including the allocator's overhead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartSize {
    /// Heap memory of the base, in bytes.
    pub base_bytes: u64,
    /// Heap memory of the overlay, in bytes.
    pub overlay_bytes: u64,
    /// The number of keys in the base.
    pub base_entries: u64,
    /// The number of entries in the overlay. Entries of equal place and code count as one.
    pub overlay_entries: u64,
}

/// The filter of a key range: the keys of its last level, and those flushed since.
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

    /// The code of all base keys. None: there are none.
    fn base_code(&self) -> Option<Span> {
        Span::new(FlushNumber(0), self.base.end)
    }

    /// The options it was built with.
    pub fn options(&self) -> &GrfOptions {
        &self.options
    }

    /// The query mix it was built for.
    pub fn query_mix(&self) -> QueryMix {
        self.base.query_mix
    }

    /// Some of the queries by which its bits were divided.
    pub fn empty_queries(&self) -> &EmptyQueries {
        &self.base.empty_queries
    }

    /// The end of the base's flush numbers: the code of its keys is [0, `base_end`).
    pub fn base_end(&self) -> FlushNumber {
        self.base.end
    }

    /// Garbage collection (GRF paper, section 4.2): returns the part with each code as wide as a
    /// version with the runs of `shape` allows. It serves lists that no flush touches for long.
    /// Takes time proportional to the lists whose codes change. Requires: as for
    /// [`Part::inserter`].
    #[must_use]
    pub fn collect_garbage(&self, shape: &Shape) -> Part {
        let overlay = self.overlay.collect_garbage(&self.base, &self.options, shape);
        Part { overlay, ..self.clone() }
    }

    /// Adds the codes of all matching entries. If it adds nothing, no run holds anything for
    /// `query`.
    pub fn candidates(&self, query: &Query<'_>, codes: &mut Codes) {
        self.candidates_traced(query, codes, &mut Untraced);
    }

    /// Same as [`Part::candidates`]. Reports to `trace` which memory it reads.
    pub fn candidates_traced<T: Trace>(&self, query: &Query<'_>, codes: &mut Codes, trace: &mut T) {
        match &self.base.text {
            None => self.ask(query, codes, trace),
            Some(text) => self.ask_coded(text, query, codes, trace),
        }
    }

    /// Answers a query by the codes of its keys.
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

    /// Returns the place of a name: of a key, or of its code if there is a model of text.
    fn spot<T: Trace>(&self, key: &[u8], role: Role<'_>, trace: &mut T) -> Spot {
        fastest(
            #[inline(always)]
            move || self.spot_now(key, role, trace),
        )
    }

    #[inline(always)]
    fn spot_now<T: Trace>(&self, key: &[u8], role: Role<'_>, trace: &mut T) -> Spot {
        let Part { base, overlay, .. } = self;
        // Base and overlay are read side by side: both are prefetched before either is read.
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

    /// Adds the codes of all entries that may belong to the name `key`.
    #[inline(always)]
    fn ask_point<T: Trace>(&self, key: &[u8], codes: &mut Codes, trace: &mut T) {
        let Part { base, overlay, .. } = self;
        base.directory.load_about(key, trace);
        let found = base.list_of(key, trace);
        let across = base.load_about(found, trace);
        let entries = overlay.list(found.list, base);
        entries.load_about(across, trace);
        // Most evenly spread keys lie on lines. Their path is separate, so that all state stays in
        // registers.
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

    /// Returns the memory of the part.
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
