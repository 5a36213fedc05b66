//! Parameters of a table's filter, beside its memory.
//! ```text
//! guard       parameters                          as people read it
//! surf-real   suffixes, share of LOUDS-Dense      surf-suffix fit, surf-size-ratio 64
//! rosetta     lengths of ranges, split of memory  rosetta-range-bits 6, rosetta-split first-cut
//! bloom       none
//! ```
//! Invariant: a filter's bytes say how it was made. So a store may be opened with other parameters
//! at any time: old tables keep their filters, new ones get others.

use std::fmt::Write as _;

use trommel_filters::{
    FilterKind, FilterOptions, PrefixRule, RencoderPlan, RosettaPlan, RosettaSplit, SurfOptions,
    SurfSuffix,
};

/// Parameters of tables' filters, beside their memory; each for the guards that it is named after.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterTuning {
    /// `surf-hash`, `surf-real`, `surf-mixed`: suffixes. (If their bits are given, `bits_per_key`
    /// has no say.) All kinds of SuRF: how many times larger its sparse levels are than its dense
    /// ones. More: smaller, slower.
    pub surf: SurfOptions,
    /// `prefix-bloom`: what the prefix of a key is. Ranges that lie within one prefix are answered.
    pub prefix: PrefixRule,
    /// `rosetta`: for which ranges, and how memory is divided. Longer ranges: more false positives
    /// for short ones.
    pub rosetta: RosettaPlan,
    /// `rencoder`: how many bits for a node. More: fewer false positives near stored keys, more for
    /// long ranges.
    pub rencoder: RencoderPlan,
    /// `arf`: how many of the ranges in which scans have found nothing are kept, the newest ones,
    /// to train the filters of new tables with. 0: filters are not trained. More: more memory (some
    /// 80 bytes each), longer flushes and merges.
    pub arf_questions: u32,
}

impl Default for FilterTuning {
    fn default() -> Self {
        FilterTuning {
            surf: SurfOptions::default(),
            prefix: PrefixRule::default(),
            rosetta: RosettaPlan::default(),
            rencoder: RencoderPlan::default(),
            arf_questions: 10_000,
        }
    }
}

impl FilterTuning {
    /// The first option that makes no sense, and why.
    pub(crate) fn problem(&self) -> Option<(&'static str, &'static str)> {
        let suffix_fits = match self.surf.suffix {
            SurfSuffix::Fitted => true,
            SurfSuffix::Bits { hash, real } => u64::from(hash) + u64::from(real) <= 64,
        };
        let rules = [
            ("filter.surf.suffix", suffix_fits, "must be at most 64 bits together"),
            ("filter.prefix", self.prefix != PrefixRule::Fixed(0), "must be 1 to 255 bytes"),
            ("filter.rosetta.range_bits", self.rosetta.range_bits <= 31, "must be 0 to 31"),
            ("filter.rencoder.probes", (1..=8).contains(&self.rencoder.probes), "must be 1 to 8"),
        ];
        let wrong = rules.into_iter().find(|(_, holds, _)| !holds);
        wrong.map(|(option, _, problem)| (option, problem))
    }

    /// A filter of this kind and size, tuned so.
    pub fn options(&self, kind: FilterKind, bits_per_key: f64) -> FilterOptions {
        FilterOptions {
            surf: self.surf.clone(),
            prefix: self.prefix,
            rosetta: self.rosetta,
            rencoder: self.rencoder,
            ..FilterOptions::new(kind, bits_per_key)
        }
    }

    /// The parameters of a filter of this kind, as people read them. None: it has none.
    pub fn told(&self, kind: FilterKind) -> Option<String> {
        match kind {
            FilterKind::SurfBase => Some(format!("surf-size-ratio {}", self.surf.size_ratio)),
            FilterKind::SurfHash | FilterKind::SurfReal | FilterKind::SurfMixed => {
                let (suffix, ratio) = (suffix_text(self.surf.suffix), self.surf.size_ratio);
                Some(format!("surf-suffix {suffix}, surf-size-ratio {ratio}"))
            }
            FilterKind::PrefixBloom => Some(format!("prefix {}", prefix_text(self.prefix))),
            FilterKind::Rosetta => {
                let split = match self.rosetta.split {
                    RosettaSplit::Single => "single",
                    RosettaSplit::Variable => "variable",
                    RosettaSplit::FirstCut => "first-cut",
                };
                let bits = self.rosetta.range_bits;
                Some(format!("rosetta-range-bits {bits}, rosetta-split {split}"))
            }
            FilterKind::Arf => Some(format!("arf-questions {}", self.arf_questions)),
            FilterKind::Rencoder => Some(format!("rencoder-probes {}", self.rencoder.probes)),
            FilterKind::BlockedBloom
            | FilterKind::Bloom
            | FilterKind::Ribbon
            | FilterKind::BinaryFuse
            | FilterKind::Xor
            | FilterKind::Snarf
            | FilterKind::Cell
            | FilterKind::Gap
            | FilterKind::Elastic => None,
        }
    }
}

fn suffix_text(suffix: SurfSuffix) -> String {
    match suffix {
        SurfSuffix::Fitted => "fit".into(),
        SurfSuffix::Bits { hash, real } => format!("hash:{hash}+real:{real}"),
    }
}

fn prefix_text(rule: PrefixRule) -> String {
    match rule {
        PrefixRule::Fixed(bytes) => bytes.to_string(),
        PrefixRule::Separator(byte) => {
            let mut text = "sep:".to_string();
            match byte {
                b'!'..=b'~' => text.push(char::from(byte)),
                _ => write!(text, "0x{byte:02x}").expect("a string takes everything"),
            }
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_named() {
        assert_eq!(FilterTuning::default().problem(), None);
        let wrong = |change: fn(&mut FilterTuning)| {
            let mut tuning = FilterTuning::default();
            change(&mut tuning);
            tuning.problem().expect("no sense").0
        };
        let suffix = |tuning: &mut FilterTuning| {
            tuning.surf.suffix = SurfSuffix::Bits { hash: u32::MAX, real: 1 };
        };
        assert_eq!(wrong(suffix), "filter.surf.suffix");
        assert_eq!(wrong(|tuning| tuning.prefix = PrefixRule::Fixed(0)), "filter.prefix");
        assert_eq!(wrong(|tuning| tuning.rosetta.range_bits = 32), "filter.rosetta.range_bits");
        assert_eq!(wrong(|tuning| tuning.rencoder.probes = 9), "filter.rencoder.probes");
    }

    #[test]
    fn a_guard_tells_what_it_was_told() {
        let tuning = FilterTuning {
            surf: SurfOptions { suffix: SurfSuffix::Bits { hash: 3, real: 5 }, size_ratio: 9 },
            prefix: PrefixRule::Separator(b'/'),
            ..FilterTuning::default()
        };
        let told = |kind| tuning.told(kind);
        let mixed = told(FilterKind::SurfMixed);
        assert_eq!(mixed.as_deref(), Some("surf-suffix hash:3+real:5, surf-size-ratio 9"));
        assert_eq!(told(FilterKind::PrefixBloom).as_deref(), Some("prefix sep:/"));
        assert_eq!(told(FilterKind::Bloom), None);
        let tabs = FilterTuning { prefix: PrefixRule::Separator(9), ..FilterTuning::default() };
        assert_eq!(tabs.told(FilterKind::PrefixBloom).as_deref(), Some("prefix sep:0x09"));
    }
}
