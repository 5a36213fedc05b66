//! `completions`: prints a shell's script that completes commands as they are typed.

use std::io::Write;

use clap::{Args, Command};
use clap_complete::Shell;
use serde_json::json;

use crate::process::failure::{Outcome, Status};

pub(crate) const EXAMPLES: &str = "Examples: a look at it; for this user, from the next shell on\n  \
    trommel completions bash\n  \
    trommel completions bash > ~/.local/share/bash-completion/completions/trommel";

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn run(
    arguments: &CompletionsArgs,
    program: &Command,
    json: bool,
    out: &mut dyn Write,
) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut shown(program), "trommel", &mut script);
    if json {
        let script = String::from_utf8_lossy(&script);
        let shell = arguments.shell.to_string();
        writeln!(out, "{}", json!({ "shell": shell, "script": script }))?;
    } else {
        out.write_all(&script)?;
    }
    Ok(Status::Fine)
}

/// Returns the program without hidden commands, which the generators would include.
fn shown(program: &Command) -> Command {
    let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
    Command::new("trommel")
        .version(env!("CARGO_PKG_VERSION"))
        .args(program.get_arguments())
        .subcommands(commands)
}
