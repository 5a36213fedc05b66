//! Settings of the tables' filters, as they are typed.
//! ```text
//! --surf-suffix hash:4+real:8    --prefix sep:/    --rosetta-range-bits 10    --elastic-units 4
//! ```
//! Invariants: without any of these a filter has its defaults; `stats` prints them as they are
//! typed.

use clap::{Args, ValueEnum};
use trommel::Options;
use trommel::options::{FilterTuning, SurfOptions, SurfSuffix};
use trommel_guards::{
    ArfOptions, ElasticOptions, PrefixRule, RencoderPlan, RosettaPlan, RosettaSplit,
};

/// How the guard's memory is divided.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct MemoryArgs {
    /// Divide the guard's memory as Monkey does: more bits per key for small runs, fewer for large
    /// ones, as many on average. For guards with a filter for each table whose rate follows from
    /// its bits. (Where several guards are compared, others are as they are without it.)
    #[arg(long)]
    pub(crate) monkey: bool,
    /// Of a key's bits, those of a hash for single keys alone. They help if the keys that are asked
    /// for are close to stored ones.
    #[arg(long, value_name = "BITS", default_value_t = Options::default().point_bits)]
    pub(crate) point_bits: u8,
}

/// Where help shows them. (A heading of the whole struct would take what follows it, too.)
const HEADING: &str = "Options of single guards";

/// Settings of the tables' filters, besides their memory.
#[derive(Clone, Debug, Args)]
pub(crate) struct FilterArgs {
    /// surf-hash, surf-real, surf-mixed: what is kept of a key behind its shortest prefix: fit (as
    /// --bits-per-key says), or bits, at most 64: hash:8, real:8, hash:4+real:8.
    #[arg(long, help_heading = HEADING, value_name = "BITS", value_parser = suffix, default_value = "fit")]
    surf_suffix: SurfSuffix,
    /// All kinds of SuRF: how many times larger its sparse levels are than its dense ones. More:
    /// smaller, slower.
    #[arg(long, help_heading = HEADING, value_name = "R", default_value_t = SurfOptions::default().size_ratio)]
    surf_size_ratio: u32,
    /// prefix-bloom: the prefix of a key: a number of first bytes (6), or all up to the first
    /// separator (sep:/ or sep:0x2f). Ranges within one prefix are answered.
    #[arg(long, help_heading = HEADING, value_name = "RULE", value_parser = prefix, default_value = "6")]
    prefix: PrefixRule,
    /// rosetta: made for ranges of up to 2^BITS numbers, 0 to 31.
    #[arg(long, help_heading = HEADING, value_name = "BITS", default_value_t = RosettaPlan::default().range_bits)]
    rosetta_range_bits: u8,
    /// rosetta: how its memory is divided over its levels.
    #[arg(long, help_heading = HEADING, value_enum, default_value_t = Split::FirstCut)]
    rosetta_split: Split,
    /// rencoder: cache lines for a node, 1 to 8. More: fewer false positives near stored keys, more
    /// for long ranges.
    #[arg(long, help_heading = HEADING, value_name = "N", default_value_t = RencoderPlan::default().probes)]
    rencoder_probes: u8,
    /// arf: ranges in which scans found nothing, so many of the newest, train the filters of new
    /// tables.
    #[arg(long, help_heading = HEADING, value_name = "N", default_value_t = ArfOptions::default().questions)]
    arf_questions: u32,
    /// elastic: units of a table on disk, 1 to 32; as many of them are in memory as gets for it are
    /// worth. [default: 8]
    #[arg(long, help_heading = HEADING, value_name = "N")]
    pub(crate) elastic_units: Option<u8>,
    /// elastic: bits per key of one unit. [default: a table of medium heat has three]
    #[arg(long, help_heading = HEADING, value_name = "BITS")]
    elastic_unit_bits: Option<f64>,
    /// elastic: a table that was not asked for during so many counted gets may lose a unit.
    /// [default: as many as there are tables]
    #[arg(long, help_heading = HEADING, value_name = "GETS")]
    elastic_life_time: Option<u64>,
    /// elastic: one get in so many is counted. More: gets cost less, units follow later.
    #[arg(long, help_heading = HEADING, value_name = "N", default_value_t = ElasticOptions::default().sample_gets)]
    elastic_sample_gets: u32,
}

/// How the memory of a Rosetta filter is divided over its levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Split {
    /// All to the last one: the fewest false positives near stored keys, the most probes.
    Single,
    /// The more, the more often a level is asked.
    Variable,
    /// One rate, whatever level a question begins at: the fewest probes.
    FirstCut,
}

impl From<Split> for RosettaSplit {
    fn from(split: Split) -> Self {
        match split {
            Split::Single => Self::Single,
            Split::Variable => Self::Variable,
            Split::FirstCut => Self::FirstCut,
        }
    }
}

impl FilterArgs {
    /// The settings of the tables' filters.
    pub(crate) fn tuning(&self) -> FilterTuning {
        FilterTuning::new()
            .with(SurfOptions { suffix: self.surf_suffix, size_ratio: self.surf_size_ratio })
            .with(self.prefix)
            .with(RosettaPlan {
                range_bits: self.rosetta_range_bits,
                split: self.rosetta_split.into(),
            })
            .with(RencoderPlan { probes: self.rencoder_probes })
            .with(ArfOptions { questions: self.arf_questions })
    }

    /// What the guard `elastic` is told.
    pub(crate) fn elastic(&self) -> ElasticOptions {
        ElasticOptions {
            units: self.elastic_units.unwrap_or(ElasticOptions::default().units),
            unit_bits_per_key: self.elastic_unit_bits,
            life_time: self.elastic_life_time,
            sample_gets: self.elastic_sample_gets,
        }
    }
}

/// Reads `fit`, or bits of a key's hash and of the key itself.
fn suffix(text: &str) -> Result<SurfSuffix, String> {
    let known = || "there are: fit, hash:BITS, real:BITS, hash:BITS+real:BITS".to_string();
    if text == "fit" {
        return Ok(SurfSuffix::Fitted);
    }
    let (mut hash, mut real) = (None, None);
    for part in text.split('+') {
        let (name, bits) = part.split_once(':').ok_or_else(known)?;
        let place = match name {
            "hash" => &mut hash,
            "real" => &mut real,
            _ => return Err(known()),
        };
        let bits = bits.parse::<u32>().map_err(|_| known())?;
        if place.replace(bits).is_some() {
            return Err(known());
        }
    }
    Ok(SurfSuffix::Bits { hash: hash.unwrap_or(0), real: real.unwrap_or(0) })
}

/// Reads a number of bytes, or the byte behind `sep:`.
fn prefix(text: &str) -> Result<PrefixRule, String> {
    let known = || "a number of bytes, 1 to 255, or sep:/ or sep:0x2f".to_string();
    let Some(byte) = text.strip_prefix("sep:") else {
        let bytes = text.parse::<u8>().ok().filter(|bytes| *bytes > 0);
        return bytes.map(PrefixRule::Fixed).ok_or_else(known);
    };
    match (byte.as_bytes(), byte.strip_prefix("0x")) {
        ([byte], _) => Ok(PrefixRule::Separator(*byte)),
        (_, Some(hex)) => {
            u8::from_str_radix(hex, 16).map(PrefixRule::Separator).map_err(|_| known())
        }
        _ => Err(known()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use trommel_guards::kinds;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        filter: FilterArgs,
    }

    fn typed(text: &str) -> FilterArgs {
        let words = std::iter::once("test").chain(text.split_whitespace());
        Typed::try_parse_from(words).unwrap_or_else(|error| panic!("{text}: {error}")).filter
    }

    #[test]
    fn nothing_typed_is_the_default() {
        assert_eq!(typed("").tuning(), FilterTuning::default());
        assert_eq!(typed("").elastic(), ElasticOptions::default());
    }

    #[test]
    fn what_is_typed_is_told_and_what_is_told_can_be_typed() {
        for (kind, text) in [
            (kinds::SURF_MIXED, "--surf-suffix hash:3+real:5 --surf-size-ratio 1"),
            (kinds::SURF_REAL, "--surf-suffix fit --surf-size-ratio 64"),
            (kinds::SURF_BASE, "--surf-size-ratio 7"),
            (kinds::PREFIX_BLOOM, "--prefix 3"),
            (kinds::PREFIX_BLOOM, "--prefix sep:/"),
            (kinds::PREFIX_BLOOM, "--prefix sep:0x00"),
            (kinds::ROSETTA, "--rosetta-range-bits 10 --rosetta-split single"),
            (kinds::ROSETTA, "--rosetta-range-bits 0 --rosetta-split variable"),
            (kinds::RENCODER, "--rencoder-probes 5"),
            (kinds::ARF, "--arf-questions 70"),
        ] {
            let tuning = typed(text).tuning();
            let typed = kind.tuning_text(&tuning).expect("it has options");
            assert_eq!(format!("--{}", typed.replace(", ", " --")), text);
        }
        let elastic = typed("--elastic-units 3 --elastic-unit-bits 1.5 --elastic-life-time 9");
        let expected = ElasticOptions {
            units: 3,
            unit_bits_per_key: Some(1.5),
            life_time: Some(9),
            ..ElasticOptions::default()
        };
        assert_eq!(elastic.elastic(), expected);
    }

    #[test]
    fn short_forms_are_known_and_wrong_ones_are_not() {
        assert_eq!(suffix("real:8"), Ok(SurfSuffix::Bits { hash: 0, real: 8 }));
        assert_eq!(suffix("real:8+hash:1"), Ok(SurfSuffix::Bits { hash: 1, real: 8 }));
        assert_eq!(prefix("sep:0x2f"), Ok(PrefixRule::Separator(b'/')));
        for wrong in ["", "8", "hash", "hash:", "hash:-1", "soft:3", "hash:1+hash:2"] {
            assert!(suffix(wrong).expect_err(wrong).contains("hash:BITS"), "{wrong}");
        }
        for wrong in ["", "0", "256", "sep:", "sep:ab", "sep:0x100", "/"] {
            assert!(prefix(wrong).expect_err(wrong).contains("sep:/"), "{wrong}");
        }
    }
}
