//! Settings of the tables' filters, as typed on the command line.
//! ```text
//! --surf-suffix hash:4+real:8   --prefix-rule sep:/   --rosetta-range-bits 10   --elastic-units 4
//! ```
//! Invariants: without these options a filter has its defaults; `stats` prints settings as they are
//! typed.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgGroup, ArgMatches, Args, Command, Error, FromArgMatches};
use trommel::Options;
use trommel::options::{FilterTuning, TuningOption};
use trommel_guards::ElasticOptions;

use crate::args::store_options::{Selected, Selection};

/// The selection of options that divide the guard's memory.
#[derive(Clone, Debug)]
pub(crate) struct Dividing;

impl Selection for Dividing {
    const GROUP: &'static str = "MemoryArgs";
    const NAMES: &'static [&'static str] = &["monkey", "point_bits"];
}

/// The options that divide the guard's memory.
pub(crate) type MemoryArgs = Selected<Dividing>;

impl MemoryArgs {
    /// Whether runs share it as Monkey divides it. Where several guards are compared, this applies
    /// to guards with a filter per table whose rate follows from its bits.
    pub(crate) fn monkey(&self) -> bool {
        self.options.monkey
    }

    /// How many bits of a key's fingerprint are of a hash, which serves point queries only.
    pub(crate) fn point_bits(&self) -> u8 {
        self.options.point_bits
    }
}

/// Settings of the tables' filters besides their memory. Each kind of filter lists its own
/// settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilterArgs {
    tuning: FilterTuning,
    /// Names and texts of the settings that were typed.
    typed: Vec<(&'static str, String)>,
    /// None: not typed.
    pub(crate) elastic_units: Option<u8>,
}

const HEADING: &str = "Options of single guards";

impl FilterArgs {
    /// The settings of the tables' filters.
    pub(crate) fn tuning(&self) -> FilterTuning {
        self.tuning.clone()
    }

    /// Returns the options with the typed settings.
    pub(crate) fn set_in(&self, mut options: Options) -> Options {
        for (name, text) in &self.typed {
            options.set(name, text).expect("it was read before");
        }
        options
    }

    /// Returns the options of the guard `elastic`.
    pub(crate) fn elastic(&self) -> ElasticOptions {
        self.tuning.get()
    }
}

impl Args for FilterArgs {
    fn augment_args(command: Command) -> Command {
        let argument = |option: &'static TuningOption| {
            Arg::new(option.name)
                .long(option.name.replace('_', "-"))
                .value_name("VALUE")
                .default_value(option.default_text())
                .help_heading(HEADING)
                .help(format!("{} ({})", option.help, option.limits))
        };
        let all = Options::filter_list();
        let group = ArgGroup::new("FilterArgs").multiple(true);
        let command = command.group(group.args(all.iter().map(|option| option.name)));
        all.into_iter().map(argument).fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for FilterArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut tuning = FilterTuning::new();
        for option in Options::filter_list() {
            if let Some(text) = matches.get_one::<String>(option.name) {
                (option.read)(&mut tuning, text).map_err(|problem| {
                    let name = option.name.replace('_', "-");
                    Error::raw(ErrorKind::ValueValidation, format!("--{name} {problem}\n"))
                })?;
            }
        }
        let is_typed = |name| matches.value_source(name) == Some(ValueSource::CommandLine);
        let names = Options::filter_list().into_iter().map(|option| option.name);
        let typed = names.filter(|name| is_typed(name));
        let typed = typed.filter_map(|name| Some((name, matches.get_one::<String>(name)?.clone())));
        let typed = typed.collect();
        let units = tuning.get::<ElasticOptions>().units;
        Ok(FilterArgs { tuning, typed, elastic_units: is_typed("elastic_units").then_some(units) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use trommel::options::SurfSuffix;
    use trommel_guards::{PrefixRule, kinds};

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        filter: FilterArgs,
    }

    fn typed(text: &str) -> FilterArgs {
        trommel_guards::register().expect("no other filter has these names");
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
            (kinds::PREFIX_BLOOM, "--prefix-rule 3"),
            (kinds::PREFIX_BLOOM, "--prefix-rule sep:/"),
            (kinds::PREFIX_BLOOM, "--prefix-rule sep:0x00"),
            (kinds::PREFIX_RIBBON, "--prefix-levels 12+sep:/+all"),
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
        let suffix = |text: &str| text.parse::<SurfSuffix>();
        let prefix = |text: &str| text.parse::<PrefixRule>();
        assert_eq!(suffix("real:8"), Ok(SurfSuffix::Bits { hash: 0, real: 8 }));
        assert_eq!(suffix("real:8+hash:1"), Ok(SurfSuffix::Bits { hash: 1, real: 8 }));
        assert_eq!(prefix("sep:0x2f"), Ok(PrefixRule::Separator(b'/')));
        for wrong in ["", "8", "hash", "hash:", "hash:-1", "soft:3", "hash:1+hash:2"] {
            assert!(suffix(wrong).expect_err(wrong).contains("hash:BITS"), "{wrong}");
        }
        for wrong in ["", "0", "256", "sep:", "sep:ab", "sep:0x100", "/"] {
            assert!(prefix(wrong).expect_err(wrong).contains("sep:/"), "{wrong}");
        }
        trommel_guards::register().expect("no other filter has these names");
        let error = Typed::try_parse_from(["test", "--rosetta-split", "even"]).err();
        let error = error.expect("no split").to_string();
        assert!(error.contains("--rosetta-split 'even': there are: single"), "{error}");
    }
}
