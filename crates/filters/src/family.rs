//! The family of filters of one table, behind one door.
//! ```text
//! sorted keys ──> AnyFilterBuilder ──> bytes | kind u16 | version u8 | parameter u8 |
//!                                            │
//! bytes ────────> AnyFilter::read <───────┘     checked once, then borrowed
//! ```
//! Invariant: the last four bytes of every filter say which one it is, so that bytes read as no
//! other filter.

use crate::base::filter::{
    FilterKind, HashedKey, LowerBound, OutOfOrder, TableFilter, TableFilterBuilder, Trace,
    UpperBound,
};
use crate::base::query::KeyRange;
use crate::base::rank::CountBounds;
use crate::base::wire::{Corrupt, Reader};
use crate::elastic::{Elastic, ElasticBuilder};
use crate::point::blocked_bloom::{BlockedBloom, BlockedBloomBuilder};
use crate::point::bloom::{Bloom, BloomBuilder};
use crate::point::fuse::{BinaryFuse, BinaryFuseBuilder, Xor, XorBuilder};
use crate::point::ribbon::{Ribbon, RibbonBuilder};
use crate::range::arf::{Arf, ArfBuilder};
use crate::range::fingerprint_filter::{FingerprintFilter, FingerprintFilterBuilder};
use crate::range::prefix::{PrefixBloom, PrefixBloomBuilder, PrefixRule};
use crate::range::rencoder::{Rencoder, RencoderBuilder, RencoderPlan};
use crate::range::rosetta::{Rosetta, RosettaBuilder, RosettaPlan};
use crate::range::surf::{Surf, SurfBuilder, SurfOptions};

/// What the last bytes of a filter are: its kind's tag, the version of its format, a number of its
/// own.
const TRAILER_BYTES: usize = 4;

/// How the filter of a table is made.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterOptions {
    /// Which filter.
    pub kind: FilterKind,
    /// Its size, everything included, as near as the filter can come to it. More: fewer false
    /// positives.
    pub bits_per_key: f64,
    /// `rosetta`: for which ranges.
    pub rosetta: RosettaPlan,
    /// `rencoder`: how many bits for a node.
    pub rencoder: RencoderPlan,
    /// `prefix-bloom`: what the prefix of a key is.
    pub prefix: PrefixRule,
    /// Of `elastic`: how many units share these bits, 1 to 32. None: as many as is usual, at most
    /// 8.
    pub elastic_units: Option<u8>,
    /// Of `arf`: ranges that it is trained with, each its first key and its last one, if it has
    /// one. More: it knows better what is asked like them; building takes longer.
    pub arf_questions: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// For the kinds of SuRF: its suffixes, and how much of it is LOUDS-Dense.
    pub surf: SurfOptions,
}

impl FilterOptions {
    /// A filter of so many bits for each key, all else as it usually is.
    pub fn new(kind: FilterKind, bits_per_key: f64) -> Self {
        FilterOptions {
            kind,
            bits_per_key,
            rosetta: RosettaPlan::default(),
            rencoder: RencoderPlan::default(),
            prefix: PrefixRule::default(),
            elastic_units: None,
            arf_questions: Vec::new(),
            surf: SurfOptions::default(),
        }
    }
}

/// Makes the filter that its options ask for.
pub struct AnyFilterBuilder(Builder);

enum Builder {
    BlockedBloom(BlockedBloomBuilder),
    Fingerprints(Box<FingerprintFilterBuilder>),
    Bloom(BloomBuilder),
    Ribbon(RibbonBuilder),
    BinaryFuse(BinaryFuseBuilder),
    Xor(XorBuilder),
    Rosetta(RosettaBuilder),
    Rencoder(RencoderBuilder),
    PrefixBloom(PrefixBloomBuilder),
    Arf(ArfBuilder),
    Elastic(ElasticBuilder),
    Surf(SurfBuilder),
}

/// A filter of any kind, over its bytes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyFilter<B> {
    /// `blocked-bloom`.
    BlockedBloom(BlockedBloom<B>),
    /// `snarf`, `cell` and `gap`.
    Fingerprints(FingerprintFilter<B>),
    /// `bloom`.
    Bloom(Bloom<B>),
    /// `ribbon`.
    Ribbon(Ribbon<B>),
    /// `binary-fuse`.
    BinaryFuse(BinaryFuse<B>),
    /// `xor`.
    Xor(Xor<B>),
    /// `rosetta`.
    Rosetta(Rosetta<B>),
    /// `rencoder`.
    Rencoder(Rencoder<B>),
    /// `prefix-bloom`.
    PrefixBloom(PrefixBloom<B>),
    /// `arf`.
    Arf(Arf<B>),
    /// `elastic`, all its units.
    Elastic(Elastic<B>),
    /// `surf-base`, `surf-hash`, `surf-real`, `surf-mixed`.
    Surf(Surf<B>),
}

/// Does the same with the filter or builder of whichever kind.
macro_rules! with_each {
    ($family:ident, $value:expr, $name:ident => $action:expr) => {
        match $value {
            $family::BlockedBloom($name) => $action,
            $family::Fingerprints($name) => $action,
            $family::Bloom($name) => $action,
            $family::Ribbon($name) => $action,
            $family::BinaryFuse($name) => $action,
            $family::Xor($name) => $action,
            $family::Rosetta($name) => $action,
            $family::Rencoder($name) => $action,
            $family::PrefixBloom($name) => $action,
            $family::Arf($name) => $action,
            $family::Elastic($name) => $action,
            $family::Surf($name) => $action,
        }
    };
}

impl AnyFilterBuilder {
    /// No key yet.
    pub fn new(options: &FilterOptions) -> Self {
        let bits = options.bits_per_key;
        let fingerprints = |builder| Builder::Fingerprints(Box::new(builder));
        AnyFilterBuilder(match options.kind {
            FilterKind::BlockedBloom => Builder::BlockedBloom(BlockedBloomBuilder::new(bits)),
            FilterKind::Snarf => fingerprints(FingerprintFilterBuilder::snarf(bits)),
            FilterKind::Cell => fingerprints(FingerprintFilterBuilder::cell(bits)),
            FilterKind::Gap => fingerprints(FingerprintFilterBuilder::gap(bits)),
            FilterKind::Bloom => Builder::Bloom(BloomBuilder::new(bits)),
            FilterKind::Ribbon => Builder::Ribbon(RibbonBuilder::new(bits)),
            FilterKind::BinaryFuse => Builder::BinaryFuse(BinaryFuseBuilder::new(bits)),
            FilterKind::Xor => Builder::Xor(XorBuilder::new(bits)),
            FilterKind::Rosetta => Builder::Rosetta(RosettaBuilder::new(bits, options.rosetta)),
            FilterKind::Rencoder => Builder::Rencoder(RencoderBuilder::new(bits, options.rencoder)),
            FilterKind::PrefixBloom => {
                Builder::PrefixBloom(PrefixBloomBuilder::new(bits, options.prefix))
            }
            FilterKind::Arf => Builder::Arf(trained_arf(bits, &options.arf_questions)),
            FilterKind::Elastic => {
                Builder::Elastic(ElasticBuilder::new(bits, options.elastic_units))
            }
            kind @ (FilterKind::SurfBase
            | FilterKind::SurfHash
            | FilterKind::SurfReal
            | FilterKind::SurfMixed) => Builder::Surf(SurfBuilder::new(kind, bits, &options.surf)),
        })
    }
}

/// An ARF that knows these questions already.
fn trained_arf(bits_per_key: f64, questions: &[(Vec<u8>, Option<Vec<u8>>)]) -> ArfBuilder {
    let mut builder = ArfBuilder::new(bits_per_key);
    let ranges = questions.iter().filter_map(|(low, high)| KeyRange::new(low, high.as_deref()));
    ranges.for_each(|range| builder.train(&range));
    builder
}

impl TableFilterBuilder for AnyFilterBuilder {
    #[inline]
    fn add(&mut self, key: &[u8]) -> Result<(), OutOfOrder> {
        with_each!(Builder, &mut self.0, builder => builder.add(key))
    }

    fn finish(self) -> Vec<u8> {
        with_each!(Builder, self.0, builder => builder.finish())
    }
}

/// The kind that a filter's bytes name.
fn kind_of(bytes: &[u8]) -> Result<FilterKind, Corrupt> {
    let at = bytes.len().checked_sub(TRAILER_BYTES);
    let at = at.ok_or(Corrupt { at: 0, what: "the trailer of a filter" })?;
    let tag = Reader::new(&bytes[at..]).u16()?;
    FilterKind::from_tag(tag).ok_or(Corrupt { at, what: "the tag of a filter that is known" })
}

impl<B: AsRef<[u8]>> AnyFilter<B> {
    /// Checks the bytes that a builder made. Best over [`AlignedBytes`](crate::AlignedBytes): then
    /// a probe touches fewest cache lines. The owner of the bytes keeps a checksum of them: not
    /// every wrong bit can be told.
    pub fn read(bytes: B) -> Result<Self, Corrupt> {
        Ok(match kind_of(bytes.as_ref())? {
            FilterKind::BlockedBloom => AnyFilter::BlockedBloom(BlockedBloom::read(bytes)?),
            FilterKind::Snarf | FilterKind::Cell | FilterKind::Gap => {
                AnyFilter::Fingerprints(FingerprintFilter::read(bytes)?)
            }
            FilterKind::Bloom => AnyFilter::Bloom(Bloom::read(bytes)?),
            FilterKind::Ribbon => AnyFilter::Ribbon(Ribbon::read(bytes)?),
            FilterKind::BinaryFuse => AnyFilter::BinaryFuse(BinaryFuse::read(bytes)?),
            FilterKind::Xor => AnyFilter::Xor(Xor::read(bytes)?),
            FilterKind::Rosetta => AnyFilter::Rosetta(Rosetta::read(bytes)?),
            FilterKind::Rencoder => AnyFilter::Rencoder(Rencoder::read(bytes)?),
            FilterKind::PrefixBloom => AnyFilter::PrefixBloom(PrefixBloom::read(bytes)?),
            FilterKind::Arf => AnyFilter::Arf(Arf::read(bytes)?),
            FilterKind::Elastic => AnyFilter::Elastic(Elastic::read(bytes)?),
            FilterKind::SurfBase
            | FilterKind::SurfHash
            | FilterKind::SurfReal
            | FilterKind::SurfMixed => AnyFilter::Surf(Surf::read(bytes)?),
        })
    }
}

impl<B: AsRef<[u8]>> TableFilter for AnyFilter<B> {
    fn kind(&self) -> FilterKind {
        with_each!(AnyFilter, self, filter => filter.kind())
    }

    fn size_bytes(&self) -> usize {
        with_each!(AnyFilter, self, filter => filter.size_bytes())
    }

    #[inline]
    fn may_contain(&self, key: &[u8]) -> bool {
        with_each!(AnyFilter, self, filter => filter.may_contain(key))
    }

    #[inline]
    fn may_contain_traced<T: Trace>(&self, key: &HashedKey<'_>, trace: &mut T) -> bool {
        with_each!(AnyFilter, self, filter => filter.may_contain_traced(key, trace))
    }

    #[inline]
    fn may_overlap_traced<T: Trace>(&self, range: &KeyRange<'_>, trace: &mut T) -> bool {
        with_each!(AnyFilter, self, filter => filter.may_overlap_traced(range, trace))
    }

    fn lower_bound(&self, key: &[u8]) -> Option<LowerBound> {
        with_each!(AnyFilter, self, filter => filter.lower_bound(key))
    }

    fn upper_bound(&self, key: &[u8]) -> Option<UpperBound> {
        with_each!(AnyFilter, self, filter => filter.upper_bound(key))
    }

    fn count(&self, range: &KeyRange<'_>) -> Option<CountBounds> {
        with_each!(AnyFilter, self, filter => filter.count(range))
    }
}
