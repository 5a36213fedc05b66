//! Help that fits on a screen: commands that read or write one thing show only their usual options.
//! ```text
//! trommel scan --help        --db, --from, --to, --limit ...
//! trommel scan --help-all    these, and how the store is opened: caches, policies, filters
//! ```
//! Invariant: options that help does not show are accepted all the same.

use std::ffi::OsString;

use clap::{Args, Command, CommandFactory};

use crate::args::store::StoreArgs;
use crate::command_line::Arguments;

/// Commands with short help, and the store options that it shows.
const SHORT: [(&str, &[&str]); 7] = [
    ("get", &["db"]),
    ("put", &["db", "sync"]),
    ("delete", &["db", "sync"]),
    ("delete-range", &["db", "sync"]),
    ("scan", &["db"]),
    ("count", &["db", "guard"]),
    ("export", &["db"]),
];

/// The own options of these commands that few users need.
const RARE: [&str; 1] = ["keys_only"];

/// Returns the program for parsing: with short help, unless the typed words ask for all options.
pub(crate) fn program(typed: &[OsString]) -> Command {
    let program = Arguments::command();
    if typed.iter().any(|word| word == "--help-all") {
        return program;
    }
    SHORT.iter().fold(program, |program, (name, shown)| {
        program.mut_subcommand(name, |command| shortened(command, shown))
    })
}

fn shortened(command: Command, shown: &[&str]) -> Command {
    let store = StoreArgs::augment_args(Command::new("store"));
    let is_rare = |id: &str| {
        let is_of_stores = store.get_arguments().any(|option| option.get_id() == id);
        is_of_stores && !shown.contains(&id) || RARE.contains(&id)
    };
    command.mut_args(|option| match is_rare(option.get_id().as_str()) {
        true => option.hide(true),
        false => option,
    })
}
