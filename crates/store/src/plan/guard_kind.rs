//! What answers which runs may hold a key: the guards, by name.
//! ```text
//! none                   every run is searched
//! bloom, surf-real, ...  a filter for each table         grf, grf-coded, ...  one for the tree
//! chucky, remix, ...     one that knows the run of each key
//! ```
//! Invariant: a name is one guard, whoever has registered it.

use std::fmt;
use std::str::FromStr;

use trommel_filters::{FilterKind, Fingerprints, RateLaw, RunCodes, RunLocatorKind, kinds};

use crate::plan::registry;

/// What answers the question: which runs may hold this key or this key range?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GuardKind {
    /// `none`: nothing. Every run is searched; fence pointers alone help. The baseline.
    Open,
    /// A filter of this kind for each table, by the kind's name: `blocked-bloom`, ...
    Table(&'static dyn FilterKind),
    /// `grf`: the Global Range Filter, one filter for the whole tree, points and ranges.
    Grf,
    /// `grf-spline`: the same with the GRF paper's fingerprints alone.
    GrfSpline,
    /// `grf-gap`: the same with fingerprints as fine as the gaps between keys.
    GrfGap,
    /// `grf-coded`: as `grf-gap`, in fewer bits.
    GrfCoded,
    /// `grf-cell`: the same with the plainest fingerprints, against which the others are tested.
    GrfCell,
    /// `grf-huffman`: the same with the run of each key in a Huffman code, which every merge
    /// rewrites.
    GrfHuffman,
    /// One filter for the whole tree that knows in which run each key is now, by the kind's name:
    /// `remix`, ...
    Locator(&'static dyn RunLocatorKind),
}

impl GuardKind {
    /// The guards that are not of an open family.
    pub(crate) const CLOSED: [GuardKind; 7] = [
        GuardKind::Open,
        GuardKind::Grf,
        GuardKind::GrfSpline,
        GuardKind::GrfGap,
        GuardKind::GrfCoded,
        GuardKind::GrfCell,
        GuardKind::GrfHuffman,
    ];

    /// The built-in guard with a Bloom filter for each table.
    pub const BLOOM: GuardKind = GuardKind::Table(kinds::BLOOM);
    /// The built-in guard with a Bloom filter for each table whose bits for a key lie in one cache
    /// line.
    pub const BLOCKED_BLOOM: GuardKind = GuardKind::Table(kinds::BLOCKED_BLOOM);

    /// Every guard that is known, built in or registered. The order: `none`, filters of one table,
    /// those of the whole tree.
    pub fn all() -> Vec<GuardKind> {
        let (open, global) = Self::CLOSED.split_first().expect("there is one");
        let tables = registry::filters().into_iter().map(GuardKind::Table);
        let locator = registry::locators().into_iter().map(GuardKind::Locator);
        [*open].into_iter().chain(tables).chain(global.iter().copied()).chain(locator).collect()
    }

    /// The name that people write.
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

    /// How the global range filter makes fingerprints; None: the guard is another one.
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

    /// What the global range filter keeps beside a key's fingerprint. Of use where there are
    /// [`GuardKind::fingerprints`].
    pub fn run_codes(self) -> RunCodes {
        match self {
            GuardKind::GrfHuffman => RunCodes::Huffman,
            _ => RunCodes::Shape,
        }
    }

    /// The kind of filter that it gives each table; None: it is another guard.
    pub fn table_filter(self) -> Option<&'static dyn FilterKind> {
        match self {
            GuardKind::Table(kind) => Some(kind),
            _ => None,
        }
    }

    /// Its kind, if it is one filter that knows in which run each key is now.
    pub fn locator(self) -> Option<&'static dyn RunLocatorKind> {
        match self {
            GuardKind::Locator(kind) => Some(kind),
            _ => None,
        }
    }

    /// How the false positives of its tables' filters fall with their memory, which Monkey divides.
    /// None: it has no filter for each table, or one whose rate does not follow from its memory.
    pub fn rate_law(self) -> Option<RateLaw> {
        self.table_filter().and_then(FilterKind::rate_law)
    }

    /// Whether it can answer for ranges of keys.
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
    /// What there is.
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
