//! Further filters for Trommel: those of the papers that the store is compared with.
//!
//! [`register`] is all that a program needs to call: then the store knows them by their names, and
//! reads them wherever they are on disk. A program that names one by its value in [`kinds`] need
//! not even do that.

mod advice;
mod elastic;
pub mod kinds;
mod locators;
mod point;
mod range;
mod register;

pub use advice::{Advice, Asked, advise, advise_for};
pub use elastic::{
    Elastic, ElasticBuilder, ElasticDirectory, ElasticOptions, ElasticPolicy, ElasticUnits,
};
pub use locators::chucky::{
    Alignment, Chucky, ChuckyBuilder, ChuckyPlain, ChuckyPlainBuilder, ChuckyShape, ChuckyTables,
    Cuckoo, CuckooBuilder, LevelModel,
};
pub use locators::remix::{Remix, RemixBuilder, SortedRemix, SortedRemixBuilder};
pub use point::fuse::{BinaryFuse, BinaryFuseBuilder, Xor, XorBuilder};
pub use range::arf::{Arf, ArfBuilder, ArfOptions};
pub use range::base::prefix_rule::PrefixRule;
pub use range::fingerprint_filter::{FingerprintFilter, FingerprintFilterBuilder};
pub use range::prefix::{PrefixBloom, PrefixBloomBuilder};
pub use range::prefix_ribbon::{PrefixLevel, PrefixLevels, PrefixRibbon, PrefixRibbonBuilder};
pub use range::rencoder::{Rencoder, RencoderBuilder, RencoderPlan};
pub use range::rosetta::{Rosetta, RosettaBuilder, RosettaPlan, RosettaSplit};
pub use register::{all_guards, register};

/// The README's example compiles and runs as it stands.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
