//! The filters of Trommel, an LSM-tree: keys and bytes in, answers out. They use no files, threads
//! or clock.
//!
//! Every filter answers one question: *which sorted runs may hold this key, or this key range?* A
//! run that it leaves out surely holds nothing.
//!
//! # One filter for the whole tree
//!
//! A [`Part`] indexes the keys of all runs. With each key it stores a *code*: the span of flushes
//! in which the entry was written. A run has a [`Span`] of flushes, too. It may hold a key only if
//! its span meets a code of that key.
//!
//! ```
//! use trommel_filters::{Codes, FlushNumber, GrfOptions, KeyRange, PartBuilder};
//! use trommel_filters::{Query, Shape, Span};
//!
//! // The oldest run has what was flushed before number 7.
//! let mut builder = PartBuilder::new(&GrfOptions::default());
//! ["bern", "chur", "zug"].iter().for_each(|key| builder.push(key.as_bytes()));
//! let old = builder.finish(FlushNumber(7));
//!
//! // Flush 7 brings two keys. A filter is a value: `old` still answers for older versions.
//! let shape = Shape::of_round(old.base_end(), FlushNumber(7), 10);
//! let mut inserter = old.inserter(FlushNumber(7), &shape);
//! ["basel", "chur"].iter().for_each(|key| inserter.push(key.as_bytes()));
//! let new = inserter.finish();
//!
//! let mut codes = Codes::new();
//! new.candidates(&Query::Point(b"chur"), &mut codes);
//! assert!(codes.may_meet(Span::of_flush(FlushNumber(7))));
//!
//! codes.clear();
//! let range = KeyRange::new(b"d", Some(b"y")).expect("it begins before it ends");
//! new.candidates(&Query::Range(range), &mut codes);
//! assert!(codes.is_empty()); // no run has anything there
//! ```
//!
//! # A filter for each table
//!
//! A [`FilterKind`] builds a filter's bytes from sorted keys, and reads them back.
//!
//! ```
//! use trommel_filters::{AlignedBytes, FilterOptions, KeyRange, kinds};
//!
//! # fn main() -> Result<(), Box<dyn core::error::Error>> {
//! let mut builder = FilterOptions::new(kinds::SURF_REAL, 16.0).builder();
//! builder.add(b"bern")?;
//! builder.add(b"zug")?;
//! let filter = kinds::SURF_REAL.read(AlignedBytes::from_slice(&builder.finish()))?;
//! assert!(filter.may_contain(b"zug"));
//! assert!(!filter.may_overlap(&KeyRange::new(b"d", Some(b"y")).expect("in order")));
//! # Ok(())
//! # }
//! ```
//!
//! # Where to go on
//!
//! | to | begin with |
//! |---|---|
//! | keep a filter as a file | [`Part::write_image`], [`Part::read_image`]; bytes: FORMAT.md |
//! | keep sorted keys and their values in little memory | [`FstMap`] |
//! | look up many keys at once | [`Part::candidates_many`] |
//! | scan a range and learn the run of each next entry | [`Part::cursor`] |
//! | choose bits per key and fingerprints | [`GrfOptions`] |
//! | write a filter of your own | [`TableFilter`], [`TableFilterBuilder`], [`TableKind`] |
//! | write a filter that merges update, such as Chucky | [`RunLocatorKind`] |
//! | count the cache lines that a probe reads | [`Trace`], [`LineCounter`] |
//! | build on bits, hash, fingerprints | [`bits`], [`hash`](mod@hash), [`fingerprint`] |
//!
//! Readers check bytes from disk and return [`Corrupt`] if they are wrong. No bytes make a filter
//! of a table panic. Images of a [`Part`] guard against accidents only: those with a forged
//! checksum may give a part that panics.

#![cfg_attr(not(test), no_std)]

#[macro_use]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod base;
pub mod bits;
pub mod fingerprint;
mod grf;
mod locators;
mod point;
mod range;
mod text;

pub use base::any_filter::{AnyFilter, AnyFilterBuilder};
pub use base::filter::{
    GlobalFilter, HashedKey, LineCounter, LowerBound, OutOfOrder, TableFilter, TableFilterBuilder,
    Trace, Untraced, UpperBound, payload_bits, prefetch_lines_traced, prefetch_traced,
};
pub use base::filter_builder::FilterBuilder;
pub use base::hash;
pub use base::hash::{HashUse, hash_key};

pub use base::key_list::KeyList;
pub use base::kind::{FilterKind, FilterOptions, Question, TableKind, read_filter};
pub use base::monkey::{RateLaw, Split};
pub use base::query::{KeyRange, Query};
pub use base::rank::{CountBounds, RankBounds};
pub use base::shape::{Codes, FlushNumber, RunIndex, Shape, Span};
pub use base::sub_filters::{
    Adjustment, SubFilter, SubFilterDirectory, SubFilterKind, SubFilterPolicy, TableSubFilters,
};
pub use base::tuning::{FilterTuning, Tuning};
pub use base::tuning_option::{TuningOption, read_tuning, read_tuning_or_auto, text_or_auto};
pub use base::wire::{Corrupt, Reader, Signature, Writer};
pub use bits::AlignedBytes;
pub use bits::simd::{prefetch_at, prefetch_lines};
pub use fingerprint::Fingerprints;
pub use fingerprint::empty_queries::{EmptyQueries, EmptyQuery};
pub use fingerprint::query_mix::QueryMix;
pub use grf::{
    Cursor, CursorBack, GrfOptions, Inserter, Part, PartBuilder, PartSize, Recoder, RunCodes,
};
pub use locators::kind::{AnyRunLocator, AnyRunLocatorBuilder, RunLocatorKind};
pub use locators::run_locator::{
    Move, RunLocator, RunLocatorBuilder, RunLocatorSize, RunSlot, Selected, SlotSet, SortedView,
    SortedWalk, TreePlan,
};
pub use point::blocked_bloom::{BlockedBloom, BlockedBloomBuilder};
pub use point::bloom::{Bloom, BloomBuilder};
pub use point::ribbon::{Ribbon, RibbonBuilder};
pub use range::surf::{
    FstCursor, FstKeys, FstMap, FstMapBuilder, Surf, SurfBuilder, SurfCursor, SurfEffort, SurfKind,
    SurfOptions, SurfSuffix,
};
pub use text::code::KeyCode;
pub use text::decode::KeysAround;
pub use text::model::{TextModel, TextTables};
pub use text::named::NamedGroupsBuilder;
pub use text::positions::KeyPositions;
pub use text::sample::KeySample;
pub use text::wire::PlacedModel;

/// Compiles and runs the README's example as it stands.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The kinds of table filters in this crate.
pub mod kinds {
    use crate::FilterKind;

    pub use crate::point::blocked_bloom::BLOCKED_BLOOM;
    pub use crate::point::bloom::BLOOM;
    pub use crate::point::ribbon::RIBBON;
    pub use crate::range::surf::{SURF_BASE, SURF_HASH, SURF_MIXED, SURF_REAL};

    /// All kinds of this module.
    pub const BUILT_IN: [&dyn FilterKind; 7] =
        [BLOCKED_BLOOM, BLOOM, RIBBON, SURF_BASE, SURF_HASH, SURF_REAL, SURF_MIXED];
}
