//! `bench compression`: sizes and times of loading, gets and scans for each packing, in a table for
//! each kind of data.
//! ```text
//! without --peer   this program measures     with --peer   trommel-peers, with the other engines
//! ```
//! Invariant: both programs measure with the same code and the same entries.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use trommel_lab::{
    CompressionPlan, CompressionReport, Contender, PackedData, PeerPacking, PeerTask,
    bench_compression,
};

use crate::args::comparison::ComparisonArgs;
use crate::args::values::byte_count;
use crate::output::json::print_reports;
use crate::output::settings::settings_lines;
use crate::output::table::{TextTable, bytes, counted, nanoseconds, whole};
use crate::process::failure::{Outcome, Status};
use crate::process::message::warning;

pub(crate) const EXAMPLES: &str = "Examples: all kinds of data; JSON at two levels; beside RocksDB\n  \
    trommel bench compression\n  \
    trommel bench compression --data json --pack lz4,zstd:3,zstd:9+dictionary --entries 1000000\n  \
    trommel bench compression --peer rocksdb\n\n\
    Entries are put in random order and merged into one run; then the folder is measured, and every value is checked: status 1 if one is wrong. \
    The cache is small, so that gets and scans read blocks from the system's cache and unpack them.\n\
    Other stores are in the program trommel-peers: `cargo build --release --manifest-path crates/peers/Cargo.toml`.";

#[derive(Debug, Args)]
pub(crate) struct BenchCompressionArgs {
    /// What values are like, with commas between them: text, json, numbers, osm. [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    data: Vec<PackedData>,
    /// How blocks are packed, with commas between them: none, lz4, zstd:1 to zstd:22, and
    /// zstd:3+dictionary. [default: none, lz4, zstd:1, zstd:3, zstd:3+dictionary]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pack: Vec<PeerPacking>,
    /// Other stores beside this one: rocksdb.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    peer: Vec<Contender>,
    /// How many entries a store is given.
    #[arg(long, value_name = "N", default_value_t = 300_000)]
    entries: usize,
    /// Gets of a round.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    gets: usize,
    /// Entries that the scan of a round reads.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    scan_entries: usize,
    /// Rounds of all stores. In each they take turns.
    #[arg(long, value_name = "N", default_value_t = 7)]
    rounds: usize,
    /// Memory for blocks that were read.
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "1MiB")]
    block_cache: usize,
    /// Threads that merge.
    #[arg(long, value_name = "N", default_value_t = 1)]
    merge_threads: usize,
    #[command(flatten)]
    comparison: ComparisonArgs,
}

pub(crate) fn run(arguments: &BenchCompressionArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let (own, has_peers) = (|folder| plan(arguments, folder), !arguments.peer.is_empty());
    let (plan, reports) =
        arguments.comparison.measure(own, has_peers, bench_compression, PeerTask::Compression)?;
    print_reports(out, json, &reports, || text(&plan, &reports))?;
    Ok(verdict(&reports))
}

fn plan(arguments: &BenchCompressionArgs, folder: PathBuf) -> CompressionPlan {
    let memory = (arguments.block_cache, arguments.merge_threads);
    let stores = arguments.comparison.stores(&arguments.peer, memory, folder);
    let (data, packings) = (&arguments.data, &arguments.pack);
    CompressionPlan {
        stores,
        data: if data.is_empty() { PackedData::ALL.to_vec() } else { data.clone() },
        packings: if packings.is_empty() { PeerPacking::usual() } else { packings.clone() },
        entries: arguments.entries,
        gets: arguments.gets,
        scan_entries: arguments.scan_entries,
        rounds: arguments.rounds,
    }
}

/// Returns "No" and warns if a value is wrong.
fn verdict(reports: &[CompressionReport]) -> Status {
    let wrong = reports.iter().filter(|report| report.wrong > 0);
    let warned = wrong.map(|report| {
        let CompressionReport { engine, data, packing, wrong, .. } = report;
        warning(&format!("{engine}, {data}, {packing}: {} wrong", counted(*wrong, "value")));
    });
    if warned.count() == 0 { Status::Fine } else { Status::No }
}

/// Formats the stores' settings, then a table for each kind of data.
fn text(plan: &CompressionPlan, reports: &[CompressionReport]) -> String {
    let stores = plan.stores.contenders.len();
    let settings = reports.iter().map(|report| (name(report), &*report.settings));
    let mut text = settings_lines(stores, &settings.collect::<Vec<_>>());
    for of_data in reports.chunks(stores * plan.packings.len()) {
        let Some(first) = of_data.first() else { continue };
        let (entries, raw) = (whole(first.entries), bytes(first.raw_bytes));
        text += &format!("{}, {entries} entries, {raw} of keys and values\n", first.data);
        let heading = ["packed", "store", "bytes", "of raw", "load", "get", "an entry scanned"];
        let mut table = TextTable::new(2, &heading);
        of_data.iter().for_each(|report| table.row(row(report)));
        text += &table.render();
    }
    text
}

fn name(report: &CompressionReport) -> String {
    format!("{}, {}", report.engine, report.guard)
}

fn row(report: &CompressionReport) -> Vec<String> {
    vec![
        report.packing.to_string(),
        name(report),
        bytes(report.folder_bytes),
        format!("{:.3}", report.folder_bytes as f64 / report.raw_bytes as f64),
        format!("{:.2} s", report.load_seconds),
        nanoseconds(report.get_ns),
        nanoseconds(report.scan_ns),
    ]
}
