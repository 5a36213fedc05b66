//! The filters of Trommel: keys and bytes in, answers out. No files, no threads, no clock.
//!
//! Everything here answers one question: *which sorted runs may hold this key, or this key range?*
//! A run that is left out surely holds nothing.
//!
//! Filters of one table are an open family: see [`FilterKind`]; so are filters that know in which
//! run each key is: see [`RunLocatorKind`]. What further filters are built of is public too: bytes
//! and [`bits`], [`hash`], [`fingerprint`].

mod base;
pub mod bits;
pub mod fingerprint;
mod grf;
mod locators;
mod point;
mod range;

pub use base::any_filter::{AnyFilter, AnyFilterBuilder};
pub use base::filter::{
    GlobalFilter, HashedKey, LineCounter, LowerBound, OutOfOrder, TableFilter, TableFilterBuilder,
    Trace, Untraced, UpperBound, ask_for, ask_for_lines, payload_bits,
};
pub use base::hash;
pub use base::hash::{HashUse, hash_key};
pub use base::key_batch::KeyBatch;
pub use base::kind::{FilterKind, FilterOptions, Question, TableKind, read_filter};
pub use base::monkey::{PointRate, Split};
pub use base::query::{KeyRange, Query};
pub use base::rank::{CountBounds, RankBounds};
pub use base::shape::{Codes, FlushNumber, RunIndex, Shape, Span};
pub use base::sub_filters::{
    Adjustment, SubFilter, SubFilterDirectory, SubFilterKind, SubFilterPolicy, UnitsOfTable,
};
pub use base::tuning::{FilterTuning, Tuning};
pub use base::wire::{Corrupt, Reader, Signature, Writer};
pub use bits::AlignedBytes;
pub use bits::simd::{prefetch_at, prefetch_lines};
pub use fingerprint::Fingerprints;
pub use grf::{
    Cursor, CursorBack, GrfOptions, Inserter, Part, PartBuilder, PartSize, Recoder, RunCodes,
};
pub use locators::kind::{AnyRunLocator, AnyRunLocatorBuilder, RunLocatorKind};
pub use locators::located::{
    RunLocator, RunLocatorBuilder, RunLocatorSize, RunSlot, Selected, SlotSet, SortedView,
    SortedWalk, TreePlan,
};
pub use point::blocked_bloom::{BlockedBloom, BlockedBloomBuilder};
pub use point::bloom::{Bloom, BloomBuilder};
pub use point::ribbon::{Ribbon, RibbonBuilder};
pub use range::surf::{
    Surf, SurfBuilder, SurfCursor, SurfEffort, SurfKind, SurfOptions, SurfSuffix,
};

/// The kinds of filters of one table that this crate has.
pub mod kinds {
    use crate::FilterKind;

    pub use crate::point::blocked_bloom::BLOCKED_BLOOM;
    pub use crate::point::bloom::BLOOM;
    pub use crate::point::ribbon::RIBBON;
    pub use crate::range::surf::{SURF_BASE, SURF_HASH, SURF_MIXED, SURF_REAL};

    /// All of them.
    pub const BUILT_IN: [&dyn FilterKind; 7] =
        [BLOCKED_BLOOM, BLOOM, RIBBON, SURF_BASE, SURF_HASH, SURF_REAL, SURF_MIXED];
}
