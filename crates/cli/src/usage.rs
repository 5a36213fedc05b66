//! Reports wrong arguments: the parser's message, and the known names instead of an unknown one.
//! ```text
//! trommel bench raed      ->  error: unrecognized subcommand 'raed' ...
//!                             Commands there are: read, probe, fpr, ...
//! trommel get --gaurd x   ->  error: unexpected argument '--gaurd' ...
//!                             Options there are: --db, --guard, ...
//! trommel verify words    ->  error: unexpected argument 'words' ...
//!                             A store is named with --db: trommel verify --db words
//! ```
//! Invariant: help and version go to standard output with status 0; everything else goes to
//! standard error with status 2.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};

use crate::command_line::Arguments;
use crate::output::shell::quoted;
use crate::process::message;

/// Prints the parser's message and the known names. Returns the exit status.
pub(crate) fn tell(error: &clap::Error, typed: &[OsString]) -> ExitCode {
    let typed: Vec<String> = typed.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let status = error.exit_code() as u8;
    let hint = hint(error, &typed);
    if status != 0 && typed.iter().any(|word| word == "--json") {
        message::speak_json();
        let text = error.render().to_string();
        let text = text.trim_start_matches("error: ").trim_end();
        message::error("usage", status, text, hint.as_deref());
        return ExitCode::from(status);
    }
    // If standard error cannot be written, no output is left for a message.
    let _ = error.print();
    if let Some(hint) = hint {
        message::line(&hint);
    }
    ExitCode::from(status)
}

fn hint(error: &clap::Error, typed: &[String]) -> Option<String> {
    let is_word = matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if word == "-" || !word.starts_with('-'));
    let store = || with_store_named(typed).filter(|_| is_word);
    match error.kind() {
        ErrorKind::UnknownArgument => store().or_else(|| known(error.kind(), typed)),
        kind => known(kind, typed),
    }
}

fn known(kind: ErrorKind, typed: &[String]) -> Option<String> {
    let (command, _) = command_of(typed);
    match kind {
        ErrorKind::UnknownArgument => {
            let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
            let options = shown.filter_map(|argument| argument.get_long());
            let options: Vec<String> = options.map(|name| format!("--{name}")).collect();
            Some(format!("Options there are: {}", options.join(", ")))
        }
        ErrorKind::InvalidSubcommand => {
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

/// Returns the typed line with --db before its first free word. None: the command takes no store,
/// or a store was named.
fn with_store_named(typed: &[String]) -> Option<String> {
    let (command, behind_name) = command_of(typed);
    let takes_value = |word: &String| {
        let name = word.strip_prefix("--").unwrap_or_default();
        let option = command.get_arguments().find(|option| option.get_long() == Some(name));
        option.is_some_and(|option| option.get_action().takes_values())
    };
    let is_required = |name: &str| {
        let mut options = command.get_arguments().filter(|option| option.is_required_set());
        options.any(|option| option.get_long() == Some(name))
    };
    if !is_required("db") || typed.iter().any(|word| word == "--db" || word.starts_with("--db=")) {
        return None;
    }
    let is_free = |place: &usize| {
        !typed[*place].starts_with('-') && (*place == 0 || !takes_value(&typed[*place - 1]))
    };
    let first = (behind_name..typed.len()).find(is_free)?;
    let mut line: Vec<String> = typed.iter().cloned().map(quoted).collect();
    line.insert(first, "--db".into());
    Some(format!("A store is named with --db: trommel {}", line.join(" ")))
}

/// Returns the innermost command that was typed, and the place behind its name. No option before a
/// command's name takes a value, so the first word that names a command is the command.
fn command_of(typed: &[String]) -> (Command, usize) {
    let mut command = Arguments::command();
    command.build();
    let mut behind_name = 0;
    for (place, word) in typed.iter().enumerate() {
        if let Some(named) = command.find_subcommand(word).cloned() {
            (command, behind_name) = (named, place + 1);
        }
    }
    (command, behind_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(kind: ErrorKind, typed: &str) -> String {
        known(kind, &words(typed)).expect("a list")
    }

    fn words(typed: &str) -> Vec<String> {
        typed.split(' ').map(String::from).collect()
    }

    #[test] // `trommel verify words` told that 'words' was not expected, and nothing else.
    fn a_store_without_its_option_is_told_the_right_form() {
        let hint = |typed| with_store_named(&words(typed));
        let form = |line: &str| Some(format!("A store is named with --db: trommel {line}"));
        assert_eq!(hint("verify words"), form("verify --db words"));
        assert_eq!(
            hint("--json get --guard grf words key"),
            form("--json get --guard grf --db words key")
        );
        assert_eq!(hint("checkpoint words copy"), form("checkpoint --db words copy"));
        assert_eq!(hint("verify it's"), form(r"verify --db 'it'\''s'"));
        assert_eq!((hint("get --db words key more"), hint("demo words")), (None, None));
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
