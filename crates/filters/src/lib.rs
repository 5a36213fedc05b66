//! The filters of Trommel: keys and bytes in, answers out. No files, no threads, no clock.
//!
//! Everything here answers one question: *which sorted runs may hold this key, or this key range?*
//! A run that is left out surely holds nothing.

mod arf;
mod bits;
mod blocked_bloom;
mod bloom;
mod chucky;
mod elastic;
mod family;
mod filter;
mod fingerprint;
mod fuse;
mod grf;
mod hash;
mod located;
mod locator;
mod monkey;
mod prefix;
mod prints;
mod query;
mod rank;
mod remix;
mod rencoder;
mod ribbon;
mod rosetta;
mod shape;
mod surf;
mod wire;

pub use arf::{Arf, ArfBuilder};
pub use bits::AlignedBytes;
pub use bits::simd::{prefetch_at, prefetch_lines};
pub use blocked_bloom::{BlockedBloom, BlockedBloomBuilder};
pub use bloom::{Bloom, BloomBuilder};
pub use chucky::{
    Alignment, Chucky, ChuckyBuilder, ChuckyPlain, ChuckyPlainBuilder, ChuckyShape, ChuckyTables,
    Cuckoo, CuckooBuilder, LevelModel,
};
pub use elastic::{
    Adjustment, Elastic, ElasticBuilder, ElasticDirectory, ElasticPolicy, ElasticUnit, UnitsOfTable,
};
pub use family::{AnyFilter, AnyFilterBuilder, FilterOptions};
pub use filter::{
    FilterKind, GlobalFilter, HashedKey, LineCounter, LowerBound, OutOfOrder, TableFilter,
    TableFilterBuilder, Trace, Untraced, UpperBound,
};
pub use fingerprint::Fingerprints;
pub use fuse::{BinaryFuse, BinaryFuseBuilder, Xor, XorBuilder};
pub use grf::{
    Cursor, CursorBack, GrfOptions, Inserter, Part, PartBuilder, PartSize, Recoder, RunCodes,
};
pub use hash::{HashUse, hash_key};
pub use located::{Located, LocatedBuilder, LocatedSize, RunSlot, SlotSet, TreePlan};
pub use locator::{AnyLocated, AnyLocatedBuilder, LocatedKind};
pub use monkey::{PointRate, Split};
pub use prefix::{PrefixBloom, PrefixBloomBuilder, PrefixRule};
pub use prints::{FingerprintFilter, FingerprintFilterBuilder};
pub use query::{KeyRange, Query};
pub use rank::{CountBounds, RankBounds};
pub use remix::{Remix, RemixBuilder, RemixWalk, Selected, SortedRemix, SortedRemixBuilder};
pub use rencoder::{Rencoder, RencoderBuilder, RencoderPlan};
pub use ribbon::{Ribbon, RibbonBuilder};
pub use rosetta::{Rosetta, RosettaBuilder, RosettaPlan, RosettaSplit};
pub use shape::{Codes, FlushNumber, RunIndex, Shape, Span};
pub use surf::{Surf, SurfBuilder, SurfCursor, SurfEffort, SurfOptions, SurfSuffix};
pub use wire::{Corrupt, Reader, Writer};
