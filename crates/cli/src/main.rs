//! The command `trommel`: loads, reads, shows and measures stores. All printing is done in this
//! crate.
//! ```text
//! arguments -> command -> standard output: text, or one JSON object with --json
//!                      -> standard error: progress, messages (with --json, one object in a line)
//!                      -> exit status: 0 fine, 1 not found or failed, 2 usage, 3 corrupt or I/O
//! ```
//! Invariant: with `--json`, standard output holds one JSON value and nothing else. With `--watch`,
//! one value for each look comes before it.

mod args;
mod command_line;
mod commands;
mod help;
mod hint;
mod output;
mod process;
mod usage;
mod watch;

use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::command_line::{Arguments, BenchCommand, Command};
use crate::commands::{
    backup, bench, changes, checkpoint, compact, completions, count, delete, delete_range, demo,
    dump, export, get, help_markdown, import, inspect, keyspaces, lab, load, man, put, repair,
    replay, scan, stats, stress, upgrade, verify, victim,
};
use crate::process::failure::{Outcome, Status, told};
use crate::process::message;

fn main() -> ExitCode {
    if let Err(error) = trommel_guards::register() {
        unreachable!("{error}: the guards of the papers are registered first");
    }
    let typed: Vec<OsString> = std::env::args_os().collect();
    let arguments = match parsed(&typed) {
        Ok(arguments) => arguments,
        Err(error) => return usage::tell(&error, typed.get(1..).unwrap_or_default()),
    };
    if arguments.json {
        message::speak_json();
    }
    let mut out = BufWriter::new(std::io::stdout().lock());
    let outcome = run(&arguments, &mut out);
    match told(outcome, out.flush()) {
        Ok(Status::Fine) => ExitCode::SUCCESS,
        Ok(Status::No) => ExitCode::from(1),
        Err(failure) => failure.tell(|failure| hint::of(failure, &arguments.command)),
    }
}

fn parsed(typed: &[OsString]) -> Result<Arguments, clap::Error> {
    let mut program = help::program(typed);
    let mut matches = program.try_get_matches_from_mut(typed)?;
    Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut program))
}

fn run(arguments: &Arguments, out: &mut dyn Write) -> Outcome {
    let json = arguments.json;
    match &arguments.command {
        Command::Load(load) => load::run(load, json, out),
        Command::Export(export) => export::run(export, json, out),
        Command::Import(import) => import::run(import, json, out),
        Command::Get(get) => get::run(get, json, out),
        Command::Put(put) => put::run(put, json, out),
        Command::Delete(delete) => delete::run(delete, json, out),
        Command::DeleteRange(range) => delete_range::run(range, json, out),
        Command::Scan(scan) => scan::run(scan, json, out),
        Command::Changes(changes) => changes::run(changes, json, out),
        Command::Count(count) => count::run(count, json, out),
        Command::Compact(compact) => compact::run(compact, json, out),
        Command::Stats(stats) => stats::run(stats, json, out),
        Command::Inspect(inspect) => inspect::run(inspect, json, out),
        Command::Replay(replay) => replay::run(replay, json, out),
        Command::Verify(verify) => verify::run(verify, json, out),
        Command::Dump(dump) => dump::run(dump, json, out),
        Command::Checkpoint(checkpoint) => checkpoint::run(checkpoint, json, out),
        Command::Backup(arguments) => backup::back_up(arguments, json, out),
        Command::Backups(arguments) => backup::list(arguments, json, out),
        Command::Restore(arguments) => backup::restore(arguments, json, out),
        Command::Keyspaces(keyspaces) => keyspaces::run(keyspaces, json, out),
        Command::Repair(repair) => repair::run(repair, json, out),
        Command::Upgrade(upgrade) => upgrade::run(upgrade, json, out),
        Command::Bench(BenchCommand::Read(read)) => bench::read::run(read, json, out),
        Command::Bench(BenchCommand::Compare(compare)) => bench::compare::run(compare, json, out),
        Command::Bench(BenchCommand::Write(write)) => bench::write::run(write, json, out),
        Command::Bench(BenchCommand::Ycsb(ycsb)) => bench::ycsb::run(ycsb, json, out),
        Command::Bench(BenchCommand::Transactions(transactions)) => {
            bench::transactions::run(transactions, json, out)
        }
        Command::Bench(BenchCommand::Values(values)) => bench::values::run(values, json, out),
        Command::Bench(BenchCommand::Compression(compression)) => {
            bench::compression::run(compression, json, out)
        }
        Command::Bench(BenchCommand::Probe(probe)) => bench::probe::run(probe, json, out),
        Command::Bench(BenchCommand::Readers(readers)) => bench::readers::run(readers, json, out),
        Command::Bench(BenchCommand::Open(open)) => bench::open::run(open, json, out),
        Command::Bench(BenchCommand::Fpr(fpr)) => bench::fpr::run(fpr, json, out),
        Command::Bench(BenchCommand::ChuckyCodes(codes)) => {
            bench::chucky_codes::run(codes, json, out)
        }
        Command::Bench(BenchCommand::Map(map)) => bench::map::run(map, json, out),
        Command::Bench(BenchCommand::SurfSteps(steps)) => bench::surf_steps::run(steps, json, out),
        Command::Lab(lab) => lab::run(lab, json, out),
        Command::Stress(stress) => stress::run(stress, json, out),
        Command::Victim(victim) => victim::run(victim),
        Command::Completions(shell) => completions::run(shell, &Arguments::command(), json, out),
        Command::Man(man) => man::run(man, Arguments::command(), json, out),
        Command::HelpMarkdown => help_markdown::run(Arguments::command(), out),
        Command::Demo(demo) => demo::run(demo, json, out),
    }
}
