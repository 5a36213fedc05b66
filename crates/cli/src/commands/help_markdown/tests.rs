//! Tests of the text, for a small program and for this one.

use clap::{Args, CommandFactory, Parser};

use super::*;
use crate::command_line::Arguments;

#[derive(Args)]
struct SizeArgs {
    /// How large. More: slower.
    #[arg(long, value_name = "N", default_value_t = 3)]
    size: u32,
    /// Whether it grows (as it likes), and it is a long sentence, of more words than may stand in a
    /// line of this list.
    #[arg(long)]
    grow: bool,
}

#[derive(Parser)]
#[command(name = "trommel")]
enum Small {
    /// Make one.
    #[command(after_help = "Examples: one; two\n  trommel make --size 1\n  trommel make")]
    Make {
        #[command(flatten)]
        size: SizeArgs,
        /// Its name.
        name: String,
    },
    /// Take one.
    Take(SizeArgs),
    /// Nobody sees it.
    #[command(hide = true)]
    Hidden,
}

fn small() -> String {
    let mut program = Small::command();
    program.build();
    text(&program)
}

#[test]
fn shared_options_have_a_section_and_are_linked() {
    let text = small();
    let make = "\n## make\n\nMake one.\n\n```sh\ntrommel make <NAME>\ntrommel make --size 1\n```\n\n\
                - `NAME`: Its name.\n- [size](#size-options) options\n";
    assert!(text.contains(make), "{text}");
    let shared = "\n## Size options\n\n- `--size N`: How large (3).\n- `--grow`: Whether it grows";
    assert!(text.contains(shared), "{text}");
    assert!(!text.contains("Hidden") && !text.contains("--help"), "{text}");
}

#[test]
fn a_sentence_ends_where_the_next_one_begins() {
    assert_eq!(sentence("A list: 0, 1, ... without 3. And more"), "A list: 0, 1, ... without 3");
    assert_eq!(sentence("It is so [default: never]"), "It is so");
    let long = "When reads are done at once: in a ring, or by threads of a pool that wait";
    assert_eq!(sentence(long), "When reads are done at once");
    let about = "Mend a store. It takes long. Exit status 1 if it cannot: it is told. More";
    assert_eq!(in_short(about), "Mend a store. Exit status 1 if it cannot: it is told.");
}

#[test]
fn every_command_and_option_of_this_program_is_there() {
    let mut program = Arguments::command();
    program.build();
    let text = text(&program);
    for command in leaves(&program) {
        let options = command.get_arguments().filter(|one| !one.is_hide_set());
        for option in options.filter_map(Arg::get_long).filter(|name| *name != "help") {
            let found =
                text.contains(&format!("`--{option}`")) || text.contains(&format!("`--{option} "));
            assert!(found, "{}: --{option}", command.get_name());
        }
    }
}

/// Splits a line into words like a shell, for lines without pipes and variables.
fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(|word| word.trim_matches('\'').to_string()).collect()
}

#[test]
fn every_command_has_an_example_that_this_program_takes() {
    let mut program = Arguments::command();
    program.build();
    for command in leaves(&program) {
        let name = command.get_name();
        let line = example(command).unwrap_or_else(|| panic!("{name}: no example"));
        let parsed = Arguments::try_parse_from(words(&line));
        assert!(parsed.is_ok(), "{name}: {line}: {}", parsed.unwrap_err());
    }
}
