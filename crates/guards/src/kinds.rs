//! Kinds of filters: those of this crate, and those built into the store.

use trommel_filters::{FilterKind, RunLocatorKind};

pub use trommel_filters::kinds::*;

pub use crate::elastic::ELASTIC;
pub use crate::locators::chucky::{CHUCKY, CHUCKY_PLAIN};
pub use crate::locators::remix::{REMIX, REMIX_SORTED};
pub use crate::point::fuse::{BINARY_FUSE, XOR};
pub use crate::range::arf::ARF;
pub use crate::range::fingerprint_filter::{CELL, CODED, GAP, SNARF};
pub use crate::range::prefix::PREFIX_BLOOM;
pub use crate::range::prefix_ribbon::PREFIX_RIBBON;
pub use crate::range::rencoder::RENCODER;
pub use crate::range::rosetta::ROSETTA;

/// The kinds of table filters in this crate.
pub const FURTHER: [&dyn FilterKind; 12] = [
    BINARY_FUSE,
    XOR,
    SNARF,
    CELL,
    GAP,
    CODED,
    ROSETTA,
    RENCODER,
    PREFIX_BLOOM,
    PREFIX_RIBBON,
    ARF,
    ELASTIC,
];

/// All kinds of table filters, built-in ones included.
pub const TABLE_FILTERS: [&dyn FilterKind; 19] = [
    BLOCKED_BLOOM,
    BLOOM,
    RIBBON,
    BINARY_FUSE,
    XOR,
    SURF_BASE,
    SURF_HASH,
    SURF_REAL,
    SURF_MIXED,
    SNARF,
    CELL,
    GAP,
    CODED,
    ROSETTA,
    RENCODER,
    PREFIX_BLOOM,
    PREFIX_RIBBON,
    ARF,
    ELASTIC,
];

/// All kinds of run locators: filters that know each key's current run.
pub const RUN_LOCATORS: [&dyn RunLocatorKind; 4] = [CHUCKY, CHUCKY_PLAIN, REMIX, REMIX_SORTED];
