//! The kinds of SuRF, by what they store after a key's shortest distinguishing prefix.
//!
//! Invariant: tags are unique.

use alloc::boxed::Box;
use alloc::string::ToString;

use crate::base::kind::{FilterKind, FilterOptions, TableKind};
use crate::base::monkey::RateLaw;
use crate::base::tuning::Tuning;
use crate::base::tuning_option::{TuningOption, read_tuning};
use crate::range::surf::suffix::SurfKind;
use crate::range::surf::{Surf, SurfBuilder, SurfOptions, SurfSuffix};

impl SurfKind {
    /// The name in options.
    pub fn name(self) -> &'static str {
        self.filter_kind().name()
    }

    /// Returns this as a kind of table filter.
    pub const fn filter_kind(self) -> &'static dyn FilterKind {
        match self {
            SurfKind::Base => SURF_BASE,
            SurfKind::Hash => SURF_HASH,
            SurfKind::Real => SURF_REAL,
            SurfKind::Mixed => SURF_MIXED,
        }
    }
}

/// `surf-base`: a succinct trie of the keys' shortest distinguishing prefixes.
pub const SURF_BASE: &dyn FilterKind =
    &kind("surf-base", SurfKind::Base, |options| builder(SurfKind::Base, options))
        .with_tuning_options(OPTIONS.split_at(1).1);

/// `surf-hash`: SuRF with some bits of each key's hash.
pub const SURF_HASH: &dyn FilterKind =
    &kind("surf-hash", SurfKind::Hash, |options| builder(SurfKind::Hash, options))
        .with_rate_law(SUFFIX);

/// `surf-real`: SuRF with some further bits of each key.
pub const SURF_REAL: &dyn FilterKind =
    &kind("surf-real", SurfKind::Real, |options| builder(SurfKind::Real, options))
        .with_rate_law(SUFFIX);

/// `surf-mixed`: SuRF with hash bits and further key bits.
pub const SURF_MIXED: &dyn FilterKind =
    &kind("surf-mixed", SurfKind::Mixed, |options| builder(SurfKind::Mixed, options))
        .with_rate_law(SUFFIX);

/// Each suffix bit halves the rate. The size of the trie is not known in advance and is ignored.
const SUFFIX: RateLaw = RateLaw::of_fingerprints(1.0);

type Builder = Box<dyn crate::base::any_filter::AnyFilterBuilder>;

const fn kind(
    name: &'static str,
    of: SurfKind,
    builder: fn(&FilterOptions) -> Builder,
) -> TableKind {
    TableKind::new(name, builder, |bytes| Ok(Box::new(Surf::read(bytes)?)))
        .with_tag(of.tag())
        .with_ranges()
        .with_tuning_options(OPTIONS)
}

fn builder(kind: SurfKind, options: &FilterOptions) -> Builder {
    Box::new(SurfBuilder::new(kind, options.bits_per_key, &options.tuning.get()))
}

const OPTIONS: &[TuningOption] = &[
    TuningOption {
        name: "surf_suffix",
        limits: "fit, or bits, at most 64: hash:8, real:8, hash:4+real:8",
        help: "surf-hash, surf-real, surf-mixed: what is kept of a key behind its shortest prefix; \
               fit: as the bits per key say",
        read: |tuning, text| {
            read_tuning(tuning, text, |surf: &mut SurfOptions, suffix| surf.suffix = suffix)
        },
        write: |tuning| tuning.get::<SurfOptions>().suffix.to_string(),
    },
    TuningOption {
        name: "surf_size_ratio",
        limits: "any number",
        help: "All kinds of SuRF: how many times larger its sparse levels are than its dense ones. \
               More: smaller, slower",
        read: |tuning, text| {
            read_tuning(tuning, text, |surf: &mut SurfOptions, ratio| surf.size_ratio = ratio)
        },
        write: |tuning| tuning.get::<SurfOptions>().size_ratio.to_string(),
    },
];

impl Tuning for SurfOptions {
    fn problem(&self) -> Option<(&'static str, &'static str)> {
        let fits = match self.suffix {
            SurfSuffix::Fitted => true,
            SurfSuffix::Bits { hash, real } => u64::from(hash) + u64::from(real) <= 64,
        };
        (!fits).then_some(("filter.surf.suffix", "must be at most 64 bits together"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suffix_beyond_a_word_is_named() {
        assert_eq!(SurfOptions::default().problem(), None);
        let suffix = SurfSuffix::Bits { hash: u32::MAX, real: 1 };
        let wrong = SurfOptions { suffix, ..SurfOptions::default() };
        assert_eq!(wrong.problem().map(|(option, _)| option), Some("filter.surf.suffix"));
    }
}
