//! The options of a store as arguments, derived from the store's own list.
//! ```text
//! Options::list() --> --bits-per-key BITS, --policy TEXT, ...     --preset NAME: where they begin
//!                \--> `Selected`: some of them, for commands that choose the others themselves
//! ```
//! Invariant: an option that is not typed has the preset's value, and counts as not set.

use std::marker::PhantomData;

use clap::parser::ValueSource;
use clap::{Arg, ArgGroup, ArgMatches, Args, Command, Error, FromArgMatches, error::ErrorKind};
use trommel::Options;
use trommel::options::OptionInfo;

use crate::args::filter::Dividing;
use crate::args::guards::guard_help;
use crate::args::policy::Merging;

/// Options of a store.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreOptions(pub(crate) Options);

/// Left out: each command decides whether a store may be created.
const OF_COMMANDS: &str = "create_if_missing";
const PRESET: &str = "preset";

/// Additional shorter names, by which some options were first known.
const ALIASES: [(&str, &str); 4] = [
    ("write_buffer_bytes", "write-buffer"),
    ("block_cache_bytes", "block-cache"),
    ("merge_bytes_per_second", "merge-rate"),
    ("background", "merge-threads"),
];

fn typed() -> impl Iterator<Item = &'static OptionInfo> {
    Options::list().iter().filter(|option| option.name != OF_COMMANDS)
}

fn argument(option: &'static OptionInfo) -> Arg {
    let alias = ALIASES.iter().find(|(name, _)| *name == option.name).map(|(_, alias)| *alias);
    let help = match option.name {
        "guard" => guard_help(),
        _ => format!("{} ({})", first_sentence(&plain(option.help)), option.limits),
    };
    let whole = format!("{} ({})", plain(option.help), option.limits);
    let argument = Arg::new(option.name)
        .long(option.name.replace('_', "-"))
        .visible_alias_of(alias)
        .value_name(value_name(option.kind))
        .allow_negative_numbers(true)
        .default_value(option.default_text())
        .long_help(if option.name == "guard" { guard_help() } else { whole })
        .help(help);
    match option.name {
        "direct" => argument.num_args(0..=1).require_equals(true).default_missing_value("all"),
        _ if option.kind == "switch" => {
            argument.num_args(0..=1).require_equals(true).default_missing_value("true")
        }
        _ => argument,
    }
}

/// Adds a visible alias to an argument, if there is one.
trait AliasOf {
    fn visible_alias_of(self, alias: Option<&'static str>) -> Self;
}

impl AliasOf for Arg {
    fn visible_alias_of(self, alias: Option<&'static str>) -> Self {
        match alias {
            Some(alias) => self.visible_alias(alias),
            None => self,
        }
    }
}

/// Strips links and marks from Markdown.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown.trim();
    while let Some((before, link)) = rest.split_once("](") {
        text += before;
        rest = link.split_once(')').map_or("", |(_, after)| after);
    }
    text += rest;
    text.replace(['[', ']', '`'], "").trim_end_matches('.').into()
}

/// Returns the placeholder of the value in help.
fn value_name(kind: &str) -> &'static str {
    match kind {
        "number" => "N",
        "switch" => "BOOL",
        _ => "NAME",
    }
}

fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(first, _)| first)
}

impl Args for StoreOptions {
    fn augment_args(command: Command) -> Command {
        let preset = Arg::new(PRESET)
            .long(PRESET)
            .value_name("NAME")
            .help(format!("Options for a kind of machine: {}", Options::PRESETS.join(", ")));
        let names = typed().map(|option| option.name).chain([PRESET]);
        let group = ArgGroup::new("StoreOptions").multiple(true).args(names);
        // Some commands take only these parts.
        let parts = [group_of::<Merging>(), group_of::<Dividing>()];
        let command = parts.into_iter().fold(command.group(group), Command::group);
        typed().map(argument).fold(command.arg(preset), Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for StoreOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let preset = matches.get_one::<String>(PRESET).map(|name| Options::preset(name));
        let mut options = preset.transpose().map_err(wrong)?.unwrap_or_default();
        set_typed(&mut options, matches, typed())?;
        Ok(StoreOptions(options))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn wrong(error: trommel::Error) -> Error {
    Error::raw(ErrorKind::ValueValidation, format!("{error}\n"))
}

/// Sets those of these options that were typed.
fn set_typed(
    options: &mut Options,
    matches: &ArgMatches,
    mut of: impl Iterator<Item = &'static OptionInfo>,
) -> Result<(), Error> {
    of.try_for_each(|option| {
        let text = matches.get_one::<String>(option.name);
        let is_typed = matches.value_source(option.name) == Some(ValueSource::CommandLine);
        match text.filter(|_| is_typed) {
            Some(text) => options.set(option.name, text).map_err(wrong),
            None => Ok(()),
        }
    })
}

/// A selection of options from the list, for commands that do not take the others.
pub(crate) trait Selection {
    /// The name of the group.
    const GROUP: &'static str;
    /// The names of the options.
    const NAMES: &'static [&'static str];
}

/// The typed options of a selection.
#[derive(Clone, Debug)]
pub(crate) struct Selected<S> {
    pub(crate) options: Box<Options>,
    selection: PhantomData<S>,
}

fn group_of<S: Selection>() -> ArgGroup {
    ArgGroup::new(S::GROUP).multiple(true).args(S::NAMES)
}

fn selected<S: Selection>() -> impl Iterator<Item = &'static OptionInfo> {
    typed().filter(|option| S::NAMES.contains(&option.name))
}

impl<S: Selection> Args for Selected<S> {
    fn augment_args(command: Command) -> Command {
        selected::<S>().map(argument).fold(command.group(group_of::<S>()), Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<S: Selection> FromArgMatches for Selected<S> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut options = Options::default();
        set_typed(&mut options, matches, selected::<S>())?;
        Ok(Selected { options: Box::new(options), selection: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};
    use trommel::{Policy, SyncPolicy};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: StoreOptions,
    }

    fn line(words: &[&str]) -> Result<Options, Error> {
        Line::try_parse_from(["x"].iter().chain(words)).map(|line| line.options.0)
    }

    #[test]
    fn what_is_typed_is_set_and_nothing_else() {
        let options =
            line(&["--bits-per-key", "14", "--sync", "always", "--monkey"]).expect("sound");
        assert_eq!((options.bits_per_key, options.sync), (14.0, SyncPolicy::Always));
        assert!(options.monkey && options.is_set("monkey") && !options.is_set("guard"));
        assert_eq!(line(&[]).expect("nothing"), Options::default());
        let policy = line(&["--policy", "leveling ratios=4,6"]).expect("sound").policy.clone();
        assert_eq!(policy, Policy::leveling().ratios(vec![4, 6]));
    }

    #[test]
    fn presets_are_where_options_begin() {
        let options = line(&["--preset", "small-device", "--write-buffer", "3MiB"]).expect("sound");
        assert_eq!(options, Options::small_device().write_buffer_bytes(3 << 20));
        let message = line(&["--preset", "large"]).expect_err("unknown").to_string();
        assert!(message.contains("many-stores"), "{message}");
    }

    #[test]
    fn short_forms_are_known_and_wrong_values_are_told() {
        let options =
            line(&["--direct", "--block-cache", "1g", "--merge-threads", "3"]).expect("sound");
        assert_eq!(options.text_of("direct").expect("known"), "all");
        assert_eq!(
            (options.block_cache_bytes, &*options.text_of("background").expect("known")),
            (1 << 30, "3")
        );
        assert!(line(&["--direct=reads,merges"]).expect("sound").direct.merges);
        let message = line(&["--policy", "levelling"]).expect_err("unknown").to_string();
        assert!(message.contains("lazy-leveling"), "{message}");
    }

    #[test]
    fn help_is_plain() {
        assert_eq!(plain(" A `b`, [`C`](d::C) and [e](f)."), "A b, C and e");
        let help = Line::command().render_long_help().to_string();
        assert!(!help.contains("](") && help.contains("--merge-bytes-per-second"), "{help}");
    }
}
