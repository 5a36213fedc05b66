//! Wrong arguments: the parser's message, and the known names in place of an unknown one.
//! ```text
//! trommel bench raed      ->  error: unrecognized subcommand 'raed' ...
//!                             Commands there are: read, probe, fpr, ...
//! trommel get --gaurd x   ->  error: unexpected argument '--gaurd' ...
//!                             Options there are: --db, --guard, ...
//! ```
//! Invariant: help and version go to standard output with status 0, all else to standard error with
//! status 2.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Command, CommandFactory};

use crate::command_line::Arguments;

/// Prints the parser's message and the known names; returns the exit status.
pub(crate) fn tell(error: &clap::Error, typed: impl IntoIterator<Item = OsString>) -> ExitCode {
    // If standard error cannot be written, no output is left for a message.
    let _ = error.print();
    if let Some(known) = known(error.kind(), typed) {
        eprintln!("{known}");
    }
    ExitCode::from(error.exit_code() as u8)
}

fn known(kind: ErrorKind, typed: impl IntoIterator<Item = OsString>) -> Option<String> {
    match kind {
        ErrorKind::UnknownArgument => {
            let command = command_of(typed);
            let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
            let options = shown.filter_map(|argument| argument.get_long());
            let options: Vec<String> = options.map(|name| format!("--{name}")).collect();
            Some(format!("Options there are: {}", options.join(", ")))
        }
        ErrorKind::InvalidSubcommand => {
            let command = command_of(typed);
            let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
            let names: Vec<&str> = shown.map(Command::get_name).collect();
            Some(format!("Commands there are: {}", names.join(", ")))
        }
        ErrorKind::InvalidUtf8 => {
            Some("Keys and values that are no UTF-8 text are written with --hex".into())
        }
        _ => None,
    }
}

/// The innermost command that was typed. No option before a command's name takes a value, so the
/// first word that names a command is it.
fn command_of(typed: impl IntoIterator<Item = OsString>) -> Command {
    let mut command = Arguments::command();
    command.build();
    for word in typed {
        let named = word.to_str().and_then(|word| command.find_subcommand(word)).cloned();
        command = named.unwrap_or(command);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(kind: ErrorKind, typed: &str) -> String {
        known(kind, typed.split(' ').map(OsString::from)).expect("a list")
    }

    #[test]
    fn the_names_are_those_of_the_command_that_was_typed() {
        let get = listed(ErrorKind::UnknownArgument, "--json get --db read --frob");
        assert!(get.contains("--db, ") && get.contains("--hex") && get.contains("--json"), "{get}");
        assert!(!get.contains("--levels"), "{get}");
        let read = listed(ErrorKind::UnknownArgument, "bench read --frob");
        assert!(read.contains("--levels") && read.contains("--json"), "{read}");
        let commands = listed(ErrorKind::InvalidSubcommand, "frob");
        assert!(commands.contains("load, get, put") && commands.contains("demo"), "{commands}");
        assert!(!commands.contains("victim"), "what nobody types is not listed: {commands}");
        let benches = listed(ErrorKind::InvalidSubcommand, "bench frob");
        assert!(benches.contains("read, probe") && !benches.contains("load"), "{benches}");
    }
}
