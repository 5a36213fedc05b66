//! The settings of this store's tree and filters, in a JSON form for another process.
//!
//! Invariant: decoding gives what was encoded. The forms below have the same fields as the options
//! that they stand for.

use serde::{Deserialize, Serialize};
use trommel::options::{FilterTuning, OptionValues, SurfOptions, SurfSuffix};
use trommel::{GuardKind, Options, Policy};
use trommel_guards::{
    ArfOptions, ElasticOptions, PrefixRule, RencoderPlan, RosettaPlan, RosettaSplit,
};

use crate::error::Result;

/// The settings of this store's tree, and of its filters besides their memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnTree {
    /// The merge policy.
    #[serde(with = "as_text")]
    pub policy: Policy,
    /// Whether the policy delays merges for all guards except GRF's. GRF merges after T merges into
    /// a level (GRF, section 6.4).
    pub delay_others: bool,
    /// T, the size ratio.
    pub size_ratio: u32,
    /// The name of the granularity: how much of a level one merge rewrites.
    pub granularity: String,
    /// Bytes of a partition of the last level.
    pub partition_bytes: u64,
    /// Bytes of a table.
    pub table_bytes: u64,
    /// Whether runs share the filters' memory as Monkey divides it, where a guard can.
    pub monkey: bool,
    /// How many bits of a key's fingerprint are of a hash, which serves point queries only.
    pub point_bits: u8,
    /// Settings of the tables' filters.
    #[serde(with = "TuningForm")]
    pub filter: FilterTuning,
    /// Options of the guard `elastic`.
    #[serde(with = "ElasticForm")]
    pub elastic: ElasticOptions,
}

impl Default for OwnTree {
    fn default() -> Self {
        let OptionValues { policy, size_ratio, granularity, partition_bytes, table_bytes, .. } =
            OptionValues::default();
        let OptionValues { monkey, point_bits, filter, .. } = OptionValues::default();
        OwnTree {
            policy,
            delay_others: false,
            size_ratio,
            granularity: granularity.name().into(),
            partition_bytes,
            table_bytes,
            monkey,
            point_bits,
            filter,
            elastic: ElasticOptions::default(),
        }
    }
}

impl OwnTree {
    /// Returns the options `others`, with this tree for `guard`.
    pub(crate) fn options(&self, guard: GuardKind, others: Options) -> Result<Options> {
        let delays =
            self.policy.delay_merges || (self.delay_others && guard.fingerprints().is_none());
        let unknown = |problem| trommel::Error::Option { option: "granularity".into(), problem };
        Ok(others
            .policy(self.policy.clone().delay_merges(delays))
            .size_ratio(self.size_ratio)
            .granularity(self.granularity.parse().map_err(unknown)?)
            .partition_bytes(self.partition_bytes)
            .table_bytes(self.table_bytes)
            .monkey(self.monkey && guard.rate_law().is_some())
            .point_bits(self.point_bits)
            .filter(self.filter.clone().with(self.elastic.clone())))
    }
}

/// Serializes a value as its text.
mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::fmt::Display;
    use std::str::FromStr;

    pub(super) fn serialize<S: Serializer>(
        value: &impl Display,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, T: FromStr<Err = String>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "FilterTuning")]
struct TuningForm {
    #[serde(with = "SurfForm", getter = "FilterTuning::get")]
    surf: SurfOptions,
    #[serde(with = "PrefixForm", getter = "FilterTuning::get")]
    prefix: PrefixRule,
    #[serde(with = "RosettaForm", getter = "FilterTuning::get")]
    rosetta: RosettaPlan,
    #[serde(with = "RencoderForm", getter = "FilterTuning::get")]
    rencoder: RencoderPlan,
    #[serde(getter = "arf_questions")]
    arf_questions: u32,
}

fn arf_questions(tuning: &FilterTuning) -> u32 {
    tuning.get::<ArfOptions>().questions
}

impl From<TuningForm> for FilterTuning {
    fn from(form: TuningForm) -> Self {
        FilterTuning::new()
            .with(form.surf)
            .with(form.prefix)
            .with(form.rosetta)
            .with(form.rencoder)
            .with(ArfOptions { questions: form.arf_questions })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SurfOptions")]
struct SurfForm {
    #[serde(with = "SuffixForm")]
    suffix: SurfSuffix,
    size_ratio: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SurfSuffix")]
enum SuffixForm {
    Fitted,
    Bits { hash: u32, real: u32 },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "PrefixRule")]
enum PrefixForm {
    Fixed(u8),
    Separator(u8),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "RosettaPlan")]
struct RosettaForm {
    range_bits: u8,
    #[serde(with = "SplitForm")]
    split: RosettaSplit,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "RosettaSplit")]
enum SplitForm {
    Single,
    Variable,
    FirstCut,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "RencoderPlan")]
struct RencoderForm {
    probes: u8,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ElasticOptions")]
struct ElasticForm {
    units: u8,
    unit_bits_per_key: Option<f64>,
    life_time: Option<u64>,
    sample_gets: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_arrives() {
        let set = OwnTree {
            policy: Policy::levelled_from(2).ratios(vec![3, 5]).delay_merges(true),
            delay_others: true,
            size_ratio: 7,
            granularity: "partial".into(),
            partition_bytes: 1 << 40,
            table_bytes: 12345,
            monkey: true,
            point_bits: 3,
            filter: FilterTuning::new()
                .with(SurfOptions { suffix: SurfSuffix::Bits { hash: 3, real: 5 }, size_ratio: 9 })
                .with(PrefixRule::Separator(b'/'))
                .with(RosettaPlan { range_bits: 10, split: RosettaSplit::Variable })
                .with(RencoderPlan { probes: 5 })
                .with(ArfOptions { questions: 70 }),
            elastic: ElasticOptions {
                units: 3,
                unit_bits_per_key: Some(1.5),
                life_time: Some(9),
                sample_gets: 2,
            },
        };
        for tree in [OwnTree::default(), set] {
            let json = serde_json::to_string(&tree).expect("serializes");
            assert_eq!(serde_json::from_str::<OwnTree>(&json).expect("reads"), tree);
        }
    }

    #[test]
    fn a_store_is_opened_as_it_was_told() {
        let bloom: GuardKind = "bloom".parse().expect("a guard");
        let tree = OwnTree {
            monkey: true,
            point_bits: 4,
            policy: Policy::levelled_from(2),
            ..OwnTree::default()
        };
        let of = |guard| tree.options(guard, Options::new().guard(guard));
        let options = of(bloom).expect("known names");
        assert_eq!((options.monkey, options.point_bits, options.guard), (true, 4, bloom));
        assert_eq!(options.policy, Policy::levelled_from(2));
        let tree = OwnTree { delay_others: true, ..tree.clone() };
        let delays = |guard| tree.options(guard, Options::default()).map(|o| o.policy.delay_merges);
        let both = [bloom, GuardKind::Grf].map(|guard| delays(guard).expect("known names"));
        assert_eq!(both, [true, false]);
        assert!(!of(GuardKind::Grf).expect("known names").monkey, "it has no filters of tables");
        let wrong = OwnTree { granularity: "whole".into(), ..tree };
        assert!(wrong.options(bloom, Options::default()).is_err());
    }
}
