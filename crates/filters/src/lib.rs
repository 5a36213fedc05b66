//! The filters of Trommel: keys and bytes in, answers out. No files, no threads, no clock.
//!
//! Everything here answers one question: *which sorted runs may hold this key, or this key range?*
//! A run that is left out surely holds nothing.

mod base;
mod bits;
mod elastic;
mod family;
mod fingerprint;
mod grf;
mod locators;
mod point;
mod range;

pub use base::filter::{
    FilterKind, GlobalFilter, HashedKey, LineCounter, LowerBound, OutOfOrder, TableFilter,
    TableFilterBuilder, Trace, Untraced, UpperBound,
};
pub use base::hash::{HashUse, hash_key};
pub use base::monkey::{PointRate, Split};
pub use base::query::{KeyRange, Query};
pub use base::rank::{CountBounds, RankBounds};
pub use base::shape::{Codes, FlushNumber, RunIndex, Shape, Span};
pub use base::wire::{Corrupt, Reader, Writer};
pub use bits::AlignedBytes;
pub use bits::simd::{prefetch_at, prefetch_lines};
pub use elastic::{
    Adjustment, Elastic, ElasticBuilder, ElasticDirectory, ElasticPolicy, ElasticUnit, UnitsOfTable,
};
pub use family::{AnyFilter, AnyFilterBuilder, FilterOptions};
pub use fingerprint::Fingerprints;
pub use grf::{
    Cursor, CursorBack, GrfOptions, Inserter, Part, PartBuilder, PartSize, Recoder, RunCodes,
};
pub use locators::chucky::{
    Alignment, Chucky, ChuckyBuilder, ChuckyPlain, ChuckyPlainBuilder, ChuckyShape, ChuckyTables,
    Cuckoo, CuckooBuilder, LevelModel,
};
pub use locators::located::{Located, LocatedBuilder, LocatedSize, RunSlot, SlotSet, TreePlan};
pub use locators::locator::{AnyLocated, AnyLocatedBuilder, LocatedKind};
pub use locators::remix::{
    Remix, RemixBuilder, RemixWalk, Selected, SortedRemix, SortedRemixBuilder,
};
pub use point::blocked_bloom::{BlockedBloom, BlockedBloomBuilder};
pub use point::bloom::{Bloom, BloomBuilder};
pub use point::fuse::{BinaryFuse, BinaryFuseBuilder, Xor, XorBuilder};
pub use point::ribbon::{Ribbon, RibbonBuilder};
pub use range::arf::{Arf, ArfBuilder};
pub use range::fingerprint_filter::{FingerprintFilter, FingerprintFilterBuilder};
pub use range::prefix::{PrefixBloom, PrefixBloomBuilder, PrefixRule};
pub use range::rencoder::{Rencoder, RencoderBuilder, RencoderPlan};
pub use range::rosetta::{Rosetta, RosettaBuilder, RosettaPlan, RosettaSplit};
pub use range::surf::{Surf, SurfBuilder, SurfCursor, SurfEffort, SurfOptions, SurfSuffix};
