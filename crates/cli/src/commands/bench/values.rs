//! `bench values`: large values, written, overwritten and read, in a table for each length.
//! ```text
//! without --peer   this program measures     with --peer   trommel-peers, with the other engines
//! ```
//! Invariant: both programs measure with the same code and the same entries.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use trommel_lab::{Contender, PeerPacking, PeerTask, ValuesPlan, ValuesReport, bench_values};

use crate::args::comparison::ComparisonArgs;
use crate::args::values::byte_count;
use crate::output::json::print_reports;
use crate::output::settings::settings_lines;
use crate::output::table::{TextTable, bytes, counted, whole};
use crate::process::failure::{Outcome, Status};
use crate::process::message::warning;

pub(crate) const EXAMPLES: &str = "Examples: three lengths; beside others; as each store does by default\n  \
    trommel bench values\n  \
    trommel bench values --peer rocksdb,fjall\n  \
    trommel bench values --value-bytes 4KiB --apart-from default --compressible --pack lz4 --peer rocksdb\n\n\
    Keys are 8 bytes. Values are loaded in random order, then overwritten at random; \"settled\" is with all that follows in the background. \
    Then all are checked: status 1 if one is wrong. Gets are of random keys: of all of them, of so few that they take a quarter of the cache, \
    and of all, a quarter as many, once the system has forgotten the files. Writes and space are those after overwriting.\n\
    Other stores are in the program trommel-peers: `cargo build --release --manifest-path crates/peers/Cargo.toml`.";

/// The size from which values are stored apart.
#[derive(Clone, Copy, Debug)]
struct ApartFrom(Option<usize>);

fn apart_from(text: &str) -> Result<ApartFrom, String> {
    match text {
        "default" => Ok(ApartFrom(None)),
        text => byte_count(text).map(|bytes| ApartFrom(Some(bytes))),
    }
}

#[derive(Debug, Args)]
pub(crate) struct BenchValuesArgs {
    /// Bytes of a value, with commas between them.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = byte_count, default_value = "4KiB,64KiB,1MiB")]
    value_bytes: Vec<usize>,
    /// Values compress to half; else not at all.
    #[arg(long)]
    compressible: bool,
    /// How stores pack, with commas between them: none, lz4, zstd:1 to zstd:22.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "none")]
    pack: Vec<PeerPacking>,
    /// From how many bytes on values are apart from their keys; default: as each store does by
    /// itself.
    #[arg(long, value_name = "BYTES", value_parser = apart_from, default_value = "1KiB")]
    apart_from: ApartFrom,
    /// The share of garbage from which on each store writes files of values anew, however young;
    /// else as each does by itself, and their space differs.
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    garbage_share: Option<f64>,
    /// Other stores beside this one: rocksdb, fjall.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    peer: Vec<Contender>,
    /// Bytes of the values that a store holds.
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "512MiB")]
    data_bytes: usize,
    /// How often each value is overwritten, on average.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 2.0)]
    overwrites: f64,
    /// Bytes of values that gets read in a round, of each kind of gets.
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "256MiB")]
    get_bytes: usize,
    /// Rounds of all stores. In each they take turns.
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Memory for what was read.
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "64MiB")]
    block_cache: usize,
    /// Threads that merge.
    #[arg(long, value_name = "N", default_value_t = 1)]
    merge_threads: usize,
    #[command(flatten)]
    comparison: ComparisonArgs,
}

pub(crate) fn run(arguments: &BenchValuesArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let (own, has_peers) = (|folder| plan(arguments, folder), !arguments.peer.is_empty());
    let (plan, reports) =
        arguments.comparison.measure(own, has_peers, bench_values, PeerTask::Values)?;
    print_reports(out, json, &reports, || text(plan.stores.contenders.len(), &reports))?;
    Ok(verdict(&reports))
}

fn plan(arguments: &BenchValuesArgs, folder: PathBuf) -> ValuesPlan {
    let memory = (arguments.block_cache, arguments.merge_threads);
    let stores = arguments.comparison.stores(&arguments.peer, memory, folder);
    ValuesPlan {
        stores,
        value_bytes: arguments.value_bytes.clone(),
        compressible: arguments.compressible,
        packings: arguments.pack.clone(),
        apart_from: arguments.apart_from.0,
        garbage_share: arguments.garbage_share,
        data_bytes: arguments.data_bytes,
        overwrites: arguments.overwrites,
        get_bytes: arguments.get_bytes,
        rounds: arguments.rounds,
    }
}

/// Returns "No" and warns if a value is not the one put last.
fn verdict(reports: &[ValuesReport]) -> Status {
    let wrong = reports.iter().filter(|report| report.wrong > 0);
    let warned = wrong.map(|report| {
        let (length, wrong) = (bytes(report.value_bytes), counted(report.wrong, "answer"));
        warning(&format!("{}, values of {length}: {wrong} wrong", report.engine));
    });
    if warned.count() == 0 { Status::Fine } else { Status::No }
}

/// Formats the stores' settings, then a table for each length and packing of values.
fn text(stores: usize, reports: &[ValuesReport]) -> String {
    let settings = reports.iter().map(|report| (name(report), &*report.settings));
    let mut text = settings_lines(stores, &settings.collect::<Vec<_>>());
    for of_cell in reports.chunks(stores) {
        text += &cell_text(of_cell);
    }
    text
}

fn name(report: &ValuesReport) -> String {
    format!("{}, {}", report.engine, report.guard)
}

/// Formats a table with a row for each step and a column for each store, with ratios to the first
/// store.
fn cell_text(reports: &[ValuesReport]) -> String {
    let Some(first) = reports.first() else { return String::new() };
    let halves = if first.compressible { ", which compress to half" } else { "" };
    let text = format!(
        "{} values of {}{halves}, packed: {}, {}\n",
        whole(first.keys),
        bytes(first.value_bytes),
        first.packing,
        counted(first.rounds, "round"),
    );
    let names: Vec<String> = reports.iter().map(name).collect();
    let heading: Vec<&str> =
        std::iter::once("step").chain(names.iter().map(String::as_str)).collect();
    let mut table = TextTable::new(1, &heading);
    for (place, step) in first.steps.iter().enumerate() {
        let cell = |report: &ValuesReport| {
            let own = &report.steps[place];
            let ratio = ratio(own.per_s, step.per_s, std::ptr::eq(report, first));
            format!("{}/s, {:.0} MB/s{ratio}", whole(own.per_s as u64), own.bytes_per_s / 1e6)
        };
        table.row(std::iter::once(step.name.clone()).chain(reports.iter().map(cell)).collect());
    }
    let written = |report: &ValuesReport| {
        report.written_per_byte.map_or("-".into(), |bytes| format!("{bytes:.2}"))
    };
    let space = |report: &ValuesReport| format!("{:.2}", report.space_per_byte);
    let row = |name: &str, cell: &dyn Fn(&ValuesReport) -> String| {
        std::iter::once(name.into()).chain(reports.iter().map(cell)).collect()
    };
    table.row(row("written per byte", &written));
    table.row(row("space per byte", &space));
    text + &table.render()
}

fn ratio(own: f64, of_first: f64, is_first: bool) -> String {
    if is_first { String::new() } else { format!(" ({:.2}x)", own / of_first) }
}
