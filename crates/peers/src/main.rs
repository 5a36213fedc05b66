//! `trommel-peers`: a plan as JSON on standard input, reports as JSON on standard output.
//! ```text
//! trommel bench compare --peer rocksdb  -->  plan  -->  trommel-peers  -->  reports  -->  a table
//! ```
//! Invariant: standard output holds the reports and nothing else; what is being done is told on standard error.

mod rocks;
#[cfg(test)]
mod rocks_tests;

use std::io::{Read, Write};
use std::process::ExitCode;

use trommel_lab::{ComparePlan, Engine, LabError, Progress, Trommel, bench_compare};

use crate::rocks::Rocks;

const USAGE: &str =
    "trommel-peers reads a plan as JSON from standard input: `trommel bench compare` writes one.";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err((status, message)) => {
            eprintln!("trommel-peers: {message}");
            ExitCode::from(status)
        }
    }
}

/// The exit status tells wrong plans (2) from stores and disks that failed (3).
fn run() -> Result<(), (u8, String)> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| (3, error.to_string()))?;
    let plan: ComparePlan =
        serde_json::from_str(&text).map_err(|error| (2, format!("{error}. {USAGE}")))?;
    let reports = bench_compare(&plan, &engines(), &mut Told).map_err(|error| match error {
        LabError::Plan(problem) => (2, problem),
        error => (3, error.to_string()),
    })?;
    let told = serde_json::to_vec(&reports).map_err(|error| (3, error.to_string()))?;
    let mut out = std::io::stdout().lock();
    out.write_all(&told).and_then(|()| out.write_all(b"\n")).map_err(|error| (3, error.to_string()))
}

/// Every engine there is. Another one is a line here.
fn engines() -> Vec<Box<dyn Engine>> {
    vec![Box::new(Trommel), Box::new(Rocks)]
}

/// Tells each stage on standard error.
struct Told;

impl Progress for Told {
    fn stage(&mut self, name: &str, _steps: u64) {
        eprintln!("trommel-peers: {name}");
    }

    fn advance(&mut self, _steps: u64) {}
}
