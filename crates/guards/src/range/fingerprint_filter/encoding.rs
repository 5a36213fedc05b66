//! The encodings that a table's fingerprints may have, and their names elsewhere.
//! ```text
//! encoding   filter kind   fingerprints   group
//! Snarf      snarf         Spline         Spline
//! Cell       cell          Cell           Cell
//! Gap        gap           Gap            Gap
//! Coded      coded         Coded          Coded
//! ```
//! Invariant: each encoding has one filter kind, and all groups of a filter have one encoding.

use trommel_filters::fingerprint::Fingerprints;
use trommel_filters::fingerprint::group::Kind;

/// What a table's fingerprints are; all of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Positions on a line: the SNARF paper's, and the GRF paper's.
    Snarf,
    /// Prefixes that tell a key from its neighbours.
    Cell,
    /// Numbers as fine as the gaps around them.
    Gap,
    /// As these, in fewer bits.
    Coded,
}

impl Encoding {
    pub(super) const ALL: [Encoding; 4] =
        [Encoding::Snarf, Encoding::Cell, Encoding::Gap, Encoding::Coded];

    pub(super) const fn tag(self) -> u16 {
        match self {
            Encoding::Snarf => 10,
            Encoding::Cell => 11,
            Encoding::Gap => 12,
            Encoding::Coded => 18,
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
            Encoding::Coded => Fingerprints::Coded,
        }
    }

    pub(super) fn group_kind(self) -> Kind {
        match self {
            Encoding::Snarf => Kind::Spline,
            Encoding::Cell => Kind::Cell,
            Encoding::Gap => Kind::Gap,
            Encoding::Coded => Kind::Coded,
        }
    }
}
