//! `trommel-peers`: reads a task as JSON from standard input, and writes reports as JSON to
//! standard output.
//! ```text
//! trommel bench compare, ycsb, ...   -->  task  -->  trommel-peers  -->  reports  -->  a table
//! trommel import FOLDER              -->  task  -->  trommel-peers  -->  entries  -->  a store
//! ```
//! Invariant: standard output holds the reports or the stream of entries, and nothing else.
//! Progress goes to standard error.

mod export;
mod fjall;
mod leveldb;
mod lmdb;
mod lock;
mod redb;
mod rocks;
mod rocks_transactions;
mod surreal;
#[cfg(test)]
mod tests;

use std::io::{BufWriter, Read, Write};
use std::process::ExitCode;

use trommel_lab::{
    Engine, LabError, PeerTask, Progress, Trommel, bench_compare, bench_compression,
    bench_transactions, bench_values, bench_ycsb,
};

use crate::export::export;
use crate::fjall::Fjall;
use crate::lmdb::Lmdb;
use crate::redb::Redb;
use crate::rocks::Rocks;
use crate::rocks_transactions::CheckedRocks;
use crate::surreal::Surreal;

const USAGE: &str = "trommel-peers reads a task as JSON from standard input: `trommel bench compare`, `bench ycsb`, `bench transactions`, `bench compression`, `bench values` and `trommel import` write one.";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err((status, message)) => {
            eprintln!("trommel-peers: {message}");
            ExitCode::from(status)
        }
    }
}

/// Runs the task. An error has an exit status: 2 for a wrong plan, 3 for a failed store or disk.
fn run() -> Result<(), (u8, String)> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| (3, error.to_string()))?;
    let task: PeerTask =
        serde_json::from_str(&text).map_err(|error| (2, format!("{error}. {USAGE}")))?;
    let done = match &task {
        PeerTask::Compare(plan) => bench_compare(plan, &engines(), &mut Told).map(print),
        PeerTask::Ycsb(plan) => bench_ycsb(plan, &engines(), &mut Told).map(print),
        PeerTask::Transactions(plan) => {
            bench_transactions(plan, &transactional_engines(), &mut Told).map(print)
        }
        PeerTask::Compression(plan) => {
            bench_compression(plan, &packing_engines(), &mut Told).map(print)
        }
        PeerTask::Values(plan) => bench_values(plan, &separating_engines(), &mut Told).map(print),
        PeerTask::Export { folder, column_family } => {
            let out = BufWriter::with_capacity(1 << 18, std::io::stdout().lock());
            export(folder, column_family, out).map(|_| Ok(()))
        }
    };
    let written = done.map_err(|error| match error {
        LabError::Plan(problem) => (2, problem),
        error => (3, error.to_string()),
    })?;
    written.map_err(|error| (3, error.to_string()))
}

/// Prints reports as JSON.
fn print<R: serde::Serialize>(reports: Vec<R>) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, &reports)?;
    out.write_all(b"\n")
}

/// Every engine. A new one needs a line here.
fn engines() -> Vec<Box<dyn Engine>> {
    vec![
        Box::new(Trommel),
        Box::new(Rocks),
        Box::new(Fjall),
        Box::new(Surreal),
        Box::new(Redb),
        Box::new(Lmdb),
    ]
}

/// Every engine whose transactions are measured.
fn transactional_engines() -> Vec<Box<dyn Engine>> {
    vec![Box::new(Trommel), Box::new(Rocks), Box::new(CheckedRocks)]
}

/// Every engine whose compression can be set.
fn packing_engines() -> Vec<Box<dyn Engine>> {
    vec![Box::new(Trommel), Box::new(Rocks)]
}

/// Every engine that stores large values apart from their keys.
fn separating_engines() -> Vec<Box<dyn Engine>> {
    vec![Box::new(Trommel), Box::new(Rocks), Box::new(Fjall)]
}

/// Prints each stage to standard error.
struct Told;

impl Progress for Told {
    fn stage(&mut self, name: &str, _steps: u64) {
        eprintln!("trommel-peers: {name}");
    }

    fn advance(&mut self, _steps: u64) {}
}
