//! The kind `elastic` for the store: sub-filters on disk, and the policy that decides which of them
//! are in memory.
//!
//! Invariant: the store uses it through traits only.

use trommel_filters::{
    AlignedBytes, AnyFilter, AnyFilterBuilder, Corrupt, FilterKind, FilterOptions, FilterTuning,
    SubFilterDirectory, SubFilterKind, SubFilterPolicy, Tuning, TuningOption, read_tuning,
    read_tuning_or_auto, text_or_auto,
};

use super::directory::TAG;
use super::{Elastic, ElasticBuilder, ElasticDirectory, ElasticPolicy};

/// `elastic`: ElasticBF, several small Bloom filters per table. The store keeps those in memory
/// that are worth it.
pub const ELASTIC: &dyn FilterKind = &ElasticKind;

struct ElasticKind;

/// How `elastic` divides its memory. `bits_per_key` is the memory budget of all tables, per key.
/// Each table has more than that on disk, in sub-filters. It has as many of them in memory as are
/// worth it for its gets.
#[derive(Clone, Debug, PartialEq)]
pub struct ElasticOptions {
    /// Sub-filters per table on disk, 1 to 32. More: hot tables can have fewer needless reads;
    /// tables take longer to write.
    pub units: u8,
    /// Bits per key of one sub-filter. None: so many that a table of average heat has three. Less:
    /// finer steps, more cache lines per probe. Multiples of 1.44 are best.
    pub unit_bits_per_key: Option<f64>,
    /// A table that was not accessed during this many counted gets may lose a sub-filter. None: as
    /// many gets as there are tables.
    pub life_time: Option<u64>,
    /// One get in this many is counted. More: gets cost less, sub-filters adapt later.
    pub sample_gets: u32,
}

impl Default for ElasticOptions {
    fn default() -> Self {
        ElasticOptions { units: 8, unit_bits_per_key: None, life_time: None, sample_gets: 16 }
    }
}

impl Tuning for ElasticOptions {
    fn problem(&self) -> Option<(&'static str, &'static str)> {
        let sensible = |bits: f64| (0.5..=16.0).contains(&bits);
        let rules = [
            ("elastic.units", (1..=32).contains(&self.units), "must be 1 to 32"),
            (
                "elastic.unit_bits_per_key",
                self.unit_bits_per_key.is_none_or(sensible),
                "must be 0.5 to 16",
            ),
            ("elastic.sample_gets", self.sample_gets > 0, "must be at least 1"),
        ];
        let wrong = rules.into_iter().find(|(_, holds, _)| !holds);
        wrong.map(|(option, _, problem)| (option, problem))
    }
}

const OPTIONS: &[TuningOption] = &[
    TuningOption {
        name: "elastic_units",
        limits: "1 to 32",
        help: "elastic: units of a table on disk; as many of them are in memory as gets for it are \
               worth",
        read: |tuning, text| {
            read_tuning(tuning, text, |own: &mut ElasticOptions, units| own.units = units)
        },
        write: |tuning| tuning.get::<ElasticOptions>().units.to_string(),
    },
    TuningOption {
        name: "elastic_unit_bits",
        limits: "0.5 to 16, or auto: a table of medium heat has three",
        help: "elastic: bits per key of one unit",
        read: |tuning, text| {
            read_tuning_or_auto(tuning, text, |own: &mut ElasticOptions, bits| {
                own.unit_bits_per_key = bits;
            })
        },
        write: |tuning| text_or_auto(tuning.get::<ElasticOptions>().unit_bits_per_key),
    },
    TuningOption {
        name: "elastic_life_time",
        limits: "any number, or auto: as many as there are tables",
        help: "elastic: counted gets until an unasked table may lose a unit",
        read: |tuning, text| {
            read_tuning_or_auto(tuning, text, |own: &mut ElasticOptions, gets| {
                own.life_time = gets;
            })
        },
        write: |tuning| text_or_auto(tuning.get::<ElasticOptions>().life_time),
    },
    TuningOption {
        name: "elastic_sample_gets",
        limits: "at least 1",
        help: "elastic: one get in so many is counted. More: gets cost less, units follow later",
        read: |tuning, text| {
            read_tuning(tuning, text, |own: &mut ElasticOptions, gets| own.sample_gets = gets)
        },
        write: |tuning| tuning.get::<ElasticOptions>().sample_gets.to_string(),
    },
];

/// The number of sub-filters that share a filter's bits, 1 to 32. None: the default, at most 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElasticUnits(pub Option<u8>);

impl Tuning for ElasticUnits {}

impl FilterKind for ElasticKind {
    fn name(&self) -> &'static str {
        "elastic"
    }

    fn tag(&self) -> Option<u16> {
        Some(TAG)
    }

    fn knows_ranges(&self) -> bool {
        false
    }

    fn builder(&self, options: &FilterOptions) -> Box<dyn AnyFilterBuilder> {
        let ElasticUnits(units) = options.tuning.get();
        Box::new(ElasticBuilder::new(options.bits_per_key, units))
    }

    fn read(&self, bytes: AlignedBytes) -> Result<Box<dyn AnyFilter>, Corrupt> {
        Ok(Box::new(Elastic::read(bytes)?))
    }

    fn sub_filters(&self) -> Option<&dyn SubFilterKind> {
        Some(self)
    }

    fn tuning_options(&self) -> &'static [TuningOption] {
        OPTIONS
    }
}

impl SubFilterKind for ElasticKind {
    fn on_disk(&self, mut options: FilterOptions) -> FilterOptions {
        let ElasticOptions { units, unit_bits_per_key, .. } = options.tuning.get();
        let probes = (options.bits_per_key * std::f64::consts::LN_2 / 3.0).round().max(1.0);
        let sub_filter_bits = unit_bits_per_key.unwrap_or(probes * std::f64::consts::LOG2_E);
        options.bits_per_key = sub_filter_bits * f64::from(units);
        options.tuning.set(ElasticUnits(Some(units)));
        options
    }

    fn directory_bytes_max(&self) -> usize {
        ElasticDirectory::SIZE_MAX
    }

    fn read_directory(
        &self,
        tail: &[u8],
        filter_bytes: u64,
    ) -> Result<Box<dyn SubFilterDirectory>, Corrupt> {
        Ok(Box::new(ElasticDirectory::read(tail, filter_bytes)?))
    }

    fn policy(&self, tuning: &FilterTuning) -> Box<dyn SubFilterPolicy> {
        Box::new(ElasticPolicy::new(tuning.get::<ElasticOptions>().life_time))
    }

    fn sample_gets(&self, tuning: &FilterTuning) -> u32 {
        tuning.get::<ElasticOptions>().sample_gets
    }
}
