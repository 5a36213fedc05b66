//! The Global Range Filter: one filter for all runs of a part of the tree.
//! ```text
//! key --locate--> (group, block)
//!     --place---> fingerprint, fraction -----+--> base: the keys of the last level   -> [0, base end)
//!                                            +--> overlay: places and codes          -> [n, n + 1), [m, m + 10) ...
//! ```
//! A part is a value: an insert makes a new part that shares what it did not touch. Invariant: for every key that was
//! pushed, the answer to a query that covers it has a code that contains its flush number.

mod base;
mod batch;
mod between;
mod bounds;
mod bucket_entries;
mod builder;
mod chunk;
mod count;
mod cursor;
mod entry_budget;
mod extent;
mod fraction;
mod huffman;
mod image;
mod inserter;
mod line;
mod list;
mod overlay;
mod place;
mod point;
mod point_bits;
mod positions;
mod recoder;
mod runs;
mod settled;
mod settled_apart;
mod settled_check;
mod settled_layout;
mod settled_search;
mod settled_writer;
mod young;

pub use builder::PartBuilder;
pub use cursor::{Cursor, CursorBack};
pub use inserter::Inserter;
pub use recoder::Recoder;

use crate::bits::simd::{Work, fastest};
use crate::filter::{GlobalFilter, Trace, Untraced};
use crate::fingerprint::Fingerprints;
use crate::query::Query;
use crate::shape::{Codes, FlushNumber, Shape, Span};
use base::{Base, Role, Spot};
use overlay::Overlay;
use std::sync::Arc;

/// How a key above the last level says in which run it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunCodes {
    /// By its flush number, or a span around it: merges write nothing.
    #[default]
    Shape,
    /// By the span of its run, Huffman-coded as the GRF paper's GRF_H has it, to be compared with: every merge has to find
    /// each of its keys and write its output's span there ([`Part::recoder`]). (In the last level nothing is
    /// written: the base's keys have one run.)
    Huffman,
}

/// The knobs of a global range filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrfOptions {
    /// Filter memory in bits per key of the whole tree, everything included, when the last level is full and
    /// the next merge into it is due. More: fewer needless reads.
    pub bits_per_key: f64,
    /// How many times larger a level is than the one above: says how much of the tree lies above the last level, unless a
    /// builder is told ([`PartBuilder::with_overlay_shares`]).
    pub size_ratio: u32,
    /// What is kept beside the fingerprint of a key above the last level.
    pub run_codes: RunCodes,
    /// How keys of the base become fingerprints.
    pub fingerprints: Fingerprints,
    /// Of the bits of a key of the base, so many (at most 16) are of a hash, which single keys alone are compared with. They
    /// rescue queries for keys that are close to stored ones, where all that keeps order says "maybe"; ranges pay for
    /// them. 0: none.
    pub point_bits: u8,
}

impl Default for GrfOptions {
    fn default() -> Self {
        GrfOptions {
            bits_per_key: 12.0,
            size_ratio: 10,
            run_codes: RunCodes::Shape,
            fingerprints: Fingerprints::Auto,
            point_bits: 0,
        }
    }
}

/// How the budget of a part is spent.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Split {
    /// Bits for each key of the base.
    base_bits: f64,
    /// Bits of the fractions of settled entries in the overlay.
    settled_bits: u8,
}

impl GrfOptions {
    /// Bits that an entry's fraction has more than a key of the base takes. With these, another bit for the base and
    /// another bit for the overlay would lower the false positive rate by as much: an entry stands for a fraction of a
    /// block of 64 keys, and base keys spend 3 to 4 bits on order alone.
    const FRACTION_BEYOND_BASE: f64 = 2.9;
    /// Bits of an entry beside its fraction: code, share of its tables, words of young ones. Tables are shared by more
    /// entries where the overlay has a greater share of all keys.
    const ENTRY_BITS: f64 = 8.0;
    const ENTRY_BITS_SHARED: f64 = 5.8;
    /// The same where the overlay has more than a quarter of all keys.
    const ENTRY_BITS_OF_MANY: f64 = 7.35;
    const ENTRY_BITS_SHARED_OF_MANY: f64 = 3.3;
    /// Less would tell nothing, however little an overlay of nearly all keys leaves.
    const BASE_BITS_LEAST: f64 = 1.0;
    /// The most that any filling of the tree may take, in times of the budget; a little is left for chance.
    const FILLING_MAX: f64 = 1.225;

    fn entry_bits(overlay_share: f64) -> f64 {
        let few = Self::ENTRY_BITS - Self::ENTRY_BITS_SHARED * overlay_share;
        let many = Self::ENTRY_BITS_OF_MANY - Self::ENTRY_BITS_SHARED_OF_MANY * overlay_share;
        few.max(many)
    }

    /// What is left for a base key, if just before the base is built anew such a share of all keys is in the overlay, and such a
    /// one when the last level is full.
    fn split(&self, overlay_share: f64, full_share: f64) -> Split {
        let overlay = |share: f64| share * (Self::FRACTION_BEYOND_BASE + Self::entry_bits(share));
        let when_full = self.bits_per_key - overlay(full_share);
        let at_most = Self::FILLING_MAX * self.bits_per_key - overlay(overlay_share);
        let base_bits = when_full.min(at_most).max(Self::BASE_BITS_LEAST);
        let settled_bits = (base_bits + Self::FRACTION_BEYOND_BASE).clamp(6.0, 17.0) as u8;
        Split { base_bits, settled_bits }
    }
}

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
    /// A part without keys.
    pub fn empty(options: &GrfOptions) -> Part {
        PartBuilder::new(options).finish(FlushNumber(0))
    }

    fn of_base(options: GrfOptions, base: Base) -> Part {
        let overlay = Overlay::empty(&base);
        Part { options, base: Arc::new(base), overlay }
    }

    fn base(&self) -> &Base {
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

    /// The end of the base's flush numbers: its keys' code is [0, `base_end`).
    pub fn base_end(&self) -> FlushNumber {
        self.base.end
    }

    /// Starts to add the keys of one flush, for a version with the runs of `shape` (and that flush, where none of these
    /// has it yet). This part stays as it is. Lists that are touched keep no more of any code than such a version
    /// needs; a shape without runs keeps all. Requires: the new part is asked by that version and later ones alone.
    pub fn inserter(&self, flush: FlushNumber, shape: &Shape) -> Inserter {
        Inserter::new(self, flush, shape)
    }

    /// Starts to write the span of a merge's output beside its keys, which were those of the runs with the spans `inputs`, and
    /// are `pushed` in order. A part with [`RunCodes::Shape`] stays as it is. Requires: the output's span has all inputs'
    /// in it.
    ///
    /// What is not pushed keeps its span, which meets the output's: nothing is lost if a key was dropped, or a merge takes
    /// a part of a run. And as the output's span contains the flush number of each entry, the new part answers
    /// rightly for older versions too: at worst it names more of the merge's inputs than hold the key.
    pub fn recoder(&self, inputs: &[Span], output: Span) -> Recoder {
        Recoder::new(self, inputs, output)
    }

    /// The part with no more of any code than a version with the runs of `shape` needs: garbage collection (GRF paper,
    /// section 4.2), for lists that no flush touches for long. Takes time in proportion to the lists with something to
    /// forget. Requires: as for [`Part::inserter`].
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
        match query {
            Query::Point(key) => self.ask_point(key, codes, trace),
            Query::Range(range) => {
                let low = self.spot(range.lower(), Role::Low, trace);
                let high = range.upper().map(|key| self.spot(key, Role::High(&low), trace));
                if self.base.may_overlap(&low, high.as_ref()) {
                    self.base_code().into_iter().for_each(|code| codes.push(code));
                }
                self.overlay.collect(&self.base, &low, high.as_ref(), codes, trace);
            }
        }
    }

    /// The place of a key.
    fn spot<T: Trace>(&self, key: &[u8], role: Role<'_>, trace: &mut T) -> Spot {
        fastest(FindSpot { part: self, key, role, trace })
    }

    /// The entries that may have keys from `from` on, in key order.
    pub fn cursor(&self, from: &[u8]) -> Cursor {
        self.cursor_on(Some(from))
    }

    /// The entries that may have keys up to `from` (None: up to the end), in reverse key order.
    pub fn cursor_back(&self, from: Option<&[u8]>) -> CursorBack {
        self.cursor_on(from)
    }

    /// Either of both; `from` None: from the end that is first on the way.
    pub fn cursor_on<const BACK: bool>(&self, from: Option<&[u8]>) -> Cursor<BACK> {
        Cursor::new(self.clone(), from.or((!BACK).then_some(&[])))
    }

    /// The memory it takes.
    pub fn size(&self) -> PartSize {
        let base_bytes = self.base.bytes();
        let mut overlay_bytes = 0;
        let overlay_entries = self.overlay.measure(|bytes| overlay_bytes += allocated_bytes(bytes));
        PartSize { base_bytes, overlay_bytes, base_entries: self.base.entries, overlay_entries }
    }
}

/// Finds the place of a key in a part.
struct FindSpot<'a, T> {
    part: &'a Part,
    key: &'a [u8],
    role: Role<'a>,
    trace: &'a mut T,
}

impl<T: Trace> Work for FindSpot<'_, T> {
    type Output = Spot;

    #[inline(always)]
    fn run(self) -> Spot {
        let FindSpot { part: Part { base, overlay, .. }, key, role, trace } = self;
        // Base and overlay are read side by side: both are asked for before either is waited for.
        base.directory.load_about(key, trace);
        let found = base.list_of(key, trace);
        let across = base.load_about(found, trace);
        let entries = overlay.list(found.list, base);
        entries.load_about(across, trace);
        let site = base.locate_in(found, key, trace);
        site.load_block();
        let slot = entries.slot(site.bucket);
        let mut spot = base.place(&site, role, trace);
        spot.slot = slot;
        spot
    }
}

impl GlobalFilter for Part {
    fn candidates(&self, query: &Query<'_>, codes: &mut Codes) {
        self.candidates_traced(query, codes, &mut Untraced);
    }
}

/// What an allocation of `bytes` takes: a size word before it, rounded to the allocator's grain.
fn allocated_bytes(bytes: usize) -> u64 {
    const SIZE_WORD: usize = 8;
    const GRAIN: usize = 16;
    const LEAST: usize = 32;
    let taken = (bytes + SIZE_WORD).next_multiple_of(GRAIN).max(LEAST);
    if bytes == 0 { 0 } else { taken as u64 }
}
