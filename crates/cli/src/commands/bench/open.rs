//! `bench open`: measures opening a store, and prints the results.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use trommel_lab::{OpenPlan, bench_open};

use crate::output::json::print_json;
use crate::output::progress::StageBar;
use crate::output::table::{TextTable, bytes, nanoseconds};
use crate::process::failure::{Outcome, Status};
use crate::process::temporary::TemporaryFolder;

#[derive(Debug, Args)]
pub(crate) struct BenchOpenArgs {
    /// Keys in the store.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    keys: u64,
    /// Bytes of a value.
    #[arg(long, value_name = "N", default_value_t = 20)]
    value_bytes: usize,
    /// Rounds, of which the median counts.
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// Seed of the keys.
    #[arg(long, value_name = "S", default_value_t = 42)]
    seed: u64,
    /// The store's folder: a new one, or that of an earlier run with as many keys. [default: a
    /// temporary folder]
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,
}

pub(crate) fn run(arguments: &BenchOpenArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let temporary = TemporaryFolder::new()?;
    let plan = OpenPlan {
        keys: arguments.keys,
        value_bytes: arguments.value_bytes,
        rounds: arguments.rounds,
        seed: arguments.seed,
        folder: arguments.db.clone().unwrap_or_else(|| temporary.path().join("store")),
    };
    let report = bench_open(&plan, &mut StageBar::default())?;
    if json {
        print_json(out, std::slice::from_ref(&report))?;
        return Ok(Status::Fine);
    }
    let time = |seconds: f64| nanoseconds(seconds * 1e9);
    let mut table = TextTable::new(1, &["", "time", "filter"]);
    let mut row = |name: &str, seconds, filter: &str| {
        table.row(vec![name.to_string(), time(seconds), filter.to_string()]);
    };
    row(
        &format!("reading the image, {}", bytes(report.image_bytes)),
        report.read_image_seconds,
        "",
    );
    row("opening with it", report.open_seconds, &report.open_filter);
    row("opening without a guard", report.open_unguarded_seconds, "none");
    row("reading all keys", report.read_keys_seconds, "");
    row("opening without the image", report.rebuild_seconds, &report.rebuild_filter);
    out.write_all(table.render().as_bytes())?;
    writeln!(
        out,
        " opening over reading the image {:.2}; without it, over reading all keys {:.2}",
        report.open_over_read_image, report.rebuild_over_read_keys
    )?;
    Ok(Status::Fine)
}
