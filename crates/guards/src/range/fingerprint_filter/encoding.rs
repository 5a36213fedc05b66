//! The encodings of a table's fingerprints, and their names elsewhere.
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

/// The encoding of a table's fingerprints; all have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Positions on a line, as in the SNARF and GRF papers.
    Snarf,
    /// Prefixes that tell a key from its neighbours.
    Cell,
    /// Numbers with a resolution that follows the gaps between keys.
    Gap,
    /// The same in fewer bits.
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
