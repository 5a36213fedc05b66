//! The encodings that a table's fingerprints may have, and their names elsewhere.
//! ```text
//! encoding   filter kind   fingerprints   group
//! Snarf      snarf         Spline         Spline
//! Cell       cell          Cell           Cell
//! Gap        gap           Gap            Gap
//! ```
//! Invariant: each encoding has one filter kind, and all groups of a filter have one encoding.

use trommel_filters::fingerprint::Fingerprints;
use trommel_filters::fingerprint::group::Kind;
use trommel_filters::{AnyFilterBuilder, FilterKind, FilterOptions, TableKind};

use super::{FingerprintFilter, FingerprintFilterBuilder};

/// What a table's fingerprints are; all of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Positions on a line: the SNARF paper's, and the GRF paper's.
    Snarf,
    /// Prefixes that tell a key from its neighbours.
    Cell,
    /// Numbers as fine as the gaps around them.
    Gap,
}

impl Encoding {
    pub(super) const ALL: [Encoding; 3] = [Encoding::Snarf, Encoding::Cell, Encoding::Gap];

    pub(super) fn kind(self) -> &'static dyn FilterKind {
        match self {
            Encoding::Snarf => SNARF,
            Encoding::Cell => CELL,
            Encoding::Gap => GAP,
        }
    }

    pub(super) const fn tag(self) -> u16 {
        match self {
            Encoding::Snarf => 10,
            Encoding::Cell => 11,
            Encoding::Gap => 12,
        }
    }

    pub(super) fn of_tag(tag: u16) -> Option<Encoding> {
        Self::ALL.into_iter().find(|encoding| encoding.tag() == tag)
    }

    pub(super) fn fingerprints(self) -> Fingerprints {
        match self {
            Encoding::Snarf => Fingerprints::Spline,
            Encoding::Cell => Fingerprints::Cell,
            Encoding::Gap => Fingerprints::Gap,
        }
    }

    pub(super) fn group_kind(self) -> Kind {
        match self {
            Encoding::Snarf => Kind::Spline,
            Encoding::Cell => Kind::Cell,
            Encoding::Gap => Kind::Gap,
        }
    }
}

/// `snarf`: positions of keys on a line through their neighbours.
pub const SNARF: &dyn FilterKind =
    &kind("snarf", Encoding::Snarf, |options| builder(Encoding::Snarf, options));

/// `cell`: prefixes that tell keys from their neighbours.
pub const CELL: &dyn FilterKind =
    &kind("cell", Encoding::Cell, |options| builder(Encoding::Cell, options));

/// `gap`: numbers as fine as the gaps beside a key.
pub const GAP: &dyn FilterKind =
    &kind("gap", Encoding::Gap, |options| builder(Encoding::Gap, options));

type Builder = Box<dyn AnyFilterBuilder>;

const fn kind(
    name: &'static str,
    encoding: Encoding,
    builder: fn(&FilterOptions) -> Builder,
) -> TableKind {
    TableKind::new(name, builder, |bytes| Ok(Box::new(FingerprintFilter::read(bytes)?)))
        .with_tag(encoding.tag())
        .with_ranges()
}

fn builder(encoding: Encoding, options: &FilterOptions) -> Builder {
    Box::new(FingerprintFilterBuilder::new(encoding, options.bits_per_key))
}
