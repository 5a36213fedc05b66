//! The kinds of guards, by name. A guard answers which runs may hold a key.
//! ```text
//! none                   every run is searched
//! bloom, surf-real, ...  a filter for each table         grf, grf-coded, ...  one for the tree
//! chucky, remix, ...     one filter that knows the run of each key
//! ```
//! Invariant: a name stands for one guard, whoever registered it.

use std::fmt;
use std::str::FromStr;

use trommel_filters::{FilterKind, Fingerprints, RateLaw, RunCodes, RunLocatorKind, kinds};

use crate::plan::registry;

/// Which filter answers the question: which runs may hold this key or this key range?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GuardKind {
    /// `none`: no filter. Every run is searched; only fence pointers help. The baseline.
    Open,
    /// A filter of this kind for each table, under the kind's name: `blocked-bloom`, ...
    Table(&'static dyn FilterKind),
    /// `grf`: the Global Range Filter, one filter for the whole tree, for keys and ranges.
    Grf,
    /// `grf-spline`: as `grf`, but only with the GRF paper's fingerprints.
    GrfSpline,
    /// `grf-gap`: as `grf`, with fingerprints as fine as the gaps between keys.
    GrfGap,
    /// `grf-coded`: as `grf-gap`, in fewer bits.
    GrfCoded,
    /// `grf-cell`: as `grf`, with the simplest fingerprints. The others are tested against them.
    GrfCell,
    /// `grf-huffman`: as `grf`, but the run of each key is a Huffman code, which every merge
    /// rewrites.
    GrfHuffman,
    /// One filter for the whole tree that knows which run each key is in now, under the kind's
    /// name: `remix`, ...
    Locator(&'static dyn RunLocatorKind),
}

impl GuardKind {
    /// The guards outside the open families `Table` and `Locator`.
    pub(crate) const CLOSED: [GuardKind; 7] = [
        GuardKind::Open,
        GuardKind::Grf,
        GuardKind::GrfSpline,
        GuardKind::GrfGap,
        GuardKind::GrfCoded,
        GuardKind::GrfCell,
        GuardKind::GrfHuffman,
    ];

    /// The built-in guard with one Bloom filter per table.
    pub const BLOOM: GuardKind = GuardKind::Table(kinds::BLOOM);
    /// The built-in guard with one Bloom filter per table that keeps a key's bits in one cache
    /// line.
    pub const BLOCKED_BLOOM: GuardKind = GuardKind::Table(kinds::BLOCKED_BLOOM);

    /// Returns every known guard, built in or registered: first `none`, then filters of single
    /// tables, then filters of the whole tree.
    pub fn all() -> Vec<GuardKind> {
        let (open, global) = Self::CLOSED.split_first().expect("there is one");
        let tables = registry::filters().into_iter().map(GuardKind::Table);
        let locator = registry::locators().into_iter().map(GuardKind::Locator);
        [*open].into_iter().chain(tables).chain(global.iter().copied()).chain(locator).collect()
    }

    /// Returns the name as users write it.
    pub fn name(self) -> &'static str {
        match self {
            GuardKind::Open => "none",
            GuardKind::Table(kind) => kind.name(),
            GuardKind::Grf => "grf",
            GuardKind::GrfSpline => "grf-spline",
            GuardKind::GrfGap => "grf-gap",
            GuardKind::GrfCoded => "grf-coded",
            GuardKind::GrfCell => "grf-cell",
            GuardKind::GrfHuffman => "grf-huffman",
            GuardKind::Locator(kind) => kind.name(),
        }
    }

    /// Returns how the global range filter makes fingerprints. None for any other guard.
    pub fn fingerprints(self) -> Option<Fingerprints> {
        match self {
            GuardKind::Open | GuardKind::Table(_) | GuardKind::Locator(_) => None,
            GuardKind::Grf | GuardKind::GrfHuffman => Some(Fingerprints::Auto),
            GuardKind::GrfSpline => Some(Fingerprints::Spline),
            GuardKind::GrfGap => Some(Fingerprints::Gap),
            GuardKind::GrfCoded => Some(Fingerprints::Coded),
            GuardKind::GrfCell => Some(Fingerprints::Cell),
        }
    }

    /// Returns what the global range filter stores beside a key's fingerprint. Only meaningful if
    /// there are [`GuardKind::fingerprints`].
    pub fn run_codes(self) -> RunCodes {
        match self {
            GuardKind::GrfHuffman => RunCodes::Huffman,
            _ => RunCodes::Shape,
        }
    }

    /// Returns the kind of filter that each table gets. None for any other guard.
    pub fn table_filter(self) -> Option<&'static dyn FilterKind> {
        match self {
            GuardKind::Table(kind) => Some(kind),
            _ => None,
        }
    }

    /// Returns the kind, if the guard is one filter that knows which run each key is in now.
    pub fn locator(self) -> Option<&'static dyn RunLocatorKind> {
        match self {
            GuardKind::Locator(kind) => Some(kind),
            _ => None,
        }
    }

    /// Returns how the false positive rate of the tables' filters falls with their memory; Monkey
    /// divides memory by this law. None: the guard has no filter per table, or its rate does not
    /// follow from its memory.
    pub fn rate_law(self) -> Option<RateLaw> {
        self.table_filter().and_then(FilterKind::rate_law)
    }

    /// Whether the guard can answer for ranges of keys.
    pub fn knows_ranges(self) -> bool {
        match self {
            GuardKind::Table(kind) => kind.knows_ranges(),
            GuardKind::Locator(kind) => kind.knows_ranges(),
            _ => self.fingerprints().is_some(),
        }
    }
}

impl fmt::Display for GuardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for GuardKind {
    /// A text that lists the known guards.
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let all = Self::all();
        all.iter().copied().find(|kind| kind.name() == name).ok_or_else(|| {
            let known = all.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
            format!("there is no guard '{name}'; there are: {known}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_guard_lists_the_known_ones() {
        assert_eq!("grf".parse::<GuardKind>().expect("known"), GuardKind::Grf);
        let message = "blom".parse::<GuardKind>().expect_err("unknown");
        assert!(message.contains("none, blocked-bloom, "), "{message}");
    }
}
