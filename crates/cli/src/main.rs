//! The command `trommel`: loads, reads, shows and measures stores. All printing lives here.
//! ```text
//! arguments -> command -> standard output (one JSON object with --json)   exit status
//!                      -> standard error: progress, messages              0 fine   1 not found, check failed
//!                                                                         2 usage  3 corrupt, I/O error
//! ```
//! Invariant: with `--json` standard output holds one JSON value and nothing else; with `--watch`, before it, one for each look.

mod args;
mod bench;
mod bench_args;
mod checkpoint;
mod chucky_codes;
mod compact;
mod compare;
mod delete_range;
mod demo;
mod dump;
mod failure;
mod filter_args;
mod fpr;
mod guards;
mod inspect;
mod io_args;
mod keytext;
mod kill;
mod lab;
mod load;
mod partitions;
mod peer_program;
mod point;
mod policy_args;
mod progress;
mod record_args;
mod repair;
mod replay;
mod scan;
mod sight;
mod signals;
mod stats;
mod stress;
mod stress_threads;
mod surf_steps;
mod svg;
mod table;
mod temporary;
mod threads;
mod usage;
mod verify;
mod watch;
mod watch_view;
mod way_out;
mod write;
mod ycsb;

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Arguments, BenchCommand, Command};
use crate::failure::{Outcome, Status};

fn main() -> ExitCode {
    if let Err(error) = trommel_guards::register() {
        unreachable!("{error}: the guards of the papers are registered first");
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage::tell(&error, std::env::args_os().skip(1)),
    };
    let mut out = BufWriter::new(std::io::stdout().lock());
    let outcome = run(&arguments, &mut out);
    let flushed = out.flush().map_err(failure::Failure::from);
    match outcome.and_then(|status| flushed.map(|()| status)) {
        Ok(Status::Fine) => ExitCode::SUCCESS,
        Ok(Status::No) => ExitCode::from(1),
        Err(failure) => failure.tell(&arguments.command),
    }
}

fn run(arguments: &Arguments, out: &mut dyn Write) -> Outcome {
    let json = arguments.json;
    match &arguments.command {
        Command::Load(load) => load::run(load, json, out),
        Command::Get(get) => point::get(get, json, out),
        Command::Put(put) => point::put(put, json, out),
        Command::Delete(delete) => point::delete(delete, json, out),
        Command::DeleteRange(range) => delete_range::run(range, json, out),
        Command::Scan(scan) => scan::scan(scan, json, out),
        Command::Count(count) => scan::count(count, json, out),
        Command::Compact(compact) => compact::run(compact, json, out),
        Command::Stats(stats) => stats::run(stats, json, out),
        Command::Inspect(inspect) => inspect::run(inspect, json, out),
        Command::Replay(replay) => replay::run(replay, json, out),
        Command::Verify(verify) => verify::run(verify, json, out),
        Command::Dump(dump) => dump::run(dump, json, out),
        Command::Checkpoint(checkpoint) => checkpoint::run(checkpoint, json, out),
        Command::Repair(repair) => repair::run(repair, json, out),
        Command::Bench(BenchCommand::Read(read)) => bench::read(read, json, out),
        Command::Bench(BenchCommand::Compare(compare)) => compare::run(compare, json, out),
        Command::Bench(BenchCommand::Write(write)) => write::run(write, json, out),
        Command::Bench(BenchCommand::Ycsb(ycsb)) => ycsb::run(ycsb, json, out),
        Command::Bench(BenchCommand::Probe(probe)) => bench::probe(probe, json, out),
        Command::Bench(BenchCommand::Readers(readers)) => threads::readers(readers, json, out),
        Command::Bench(BenchCommand::Open(open)) => threads::open(open, json, out),
        Command::Bench(BenchCommand::Fpr(fpr)) => fpr::run(fpr, json, out),
        Command::Bench(BenchCommand::ChuckyCodes(codes)) => chucky_codes::run(codes, json, out),
        Command::Bench(BenchCommand::SurfSteps(steps)) => surf_steps::run(steps, json, out),
        Command::Lab(lab) => lab::run(lab, json, out),
        Command::Stress(stress) => stress::run(stress, json, out),
        Command::Victim(victim) => kill::victim(victim),
        Command::Demo(demo) => demo::run(demo, json, out),
    }
}
