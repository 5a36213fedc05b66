//! The filters of Trommel: keys and bytes in, answers out. No files, no threads, no clock.
//!
//! Everything here answers one question: *which sorted runs may hold this key, or this key range?*
//! A run that is left out surely holds nothing.

mod bits;
mod bloom;
mod filter;
mod fingerprint;
mod grf;
mod hash;
mod query;
mod shape;
mod wire;

pub use bits::AlignedBytes;
pub use bloom::{BlockedBloom, BlockedBloomBuilder};
pub use filter::{
    FilterKind, GlobalFilter, LineCounter, PointFilter, RangeFilter, Trace, Untraced,
};
pub use grf::{
    CountBounds, Cursor, CursorBack, Fingerprints, GrfOptions, Inserter, Part, PartBuilder,
    PartSize, RankBounds,
};
pub use hash::{HashUse, hash_key};
pub use query::{KeyRange, Query};
pub use shape::{Codes, FlushNumber, RunIndex, Shape, Span};
pub use wire::{Corrupt, Reader, Writer};
