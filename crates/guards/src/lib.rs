//! Further filters for Trommel: those of published papers, to compare the store's own with.
//!
//! A program calls [`register`] once. The store then knows these filters by name, and reads them
//! wherever they are on disk. A program that uses the values in [`kinds`] need not register them.

mod advice;
mod elastic;
pub mod kinds;
mod locators;
mod point;
mod range;
mod register;

pub use advice::{Advice, QueryWeights, advise, advise_for};
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

/// Compiles and runs the README's example as it stands.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
