//! `bench write`: measures writing, and prints the results.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use trommel::{GuardKind, SyncPolicy};
use trommel_lab::{WritePattern, WritePlan, WriteReport, bench_writes};

use crate::args::filter::{FilterArgs, MemoryArgs};
use crate::args::guards::guard;
use crate::args::policy::PolicyArgs;
use crate::args::record::RecordArgs;
use crate::args::values::byte_count;
use crate::args::watch::WatchArgs;
use crate::output::json::print_json;
use crate::output::table::{TextTable, nanoseconds, whole};
use crate::process::failure::{Failure, Outcome, Status};
use crate::process::message::warning;
use crate::process::temporary::TemporaryFolder;
use crate::watch::watcher::Listener;

/// The time between two syncs with `--sync interval`.
const INTERVAL: Duration = Duration::from_secs(1);

/// How many keys a recording follows if none are named.
const FOLLOWED: u64 = 12;

#[derive(Debug, Args)]
pub(crate) struct BenchWriteArgs {
    /// How many threads write at once.
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// When a write is safe on disk: before it returns, within a second, or when its run is
    /// written.
    #[arg(long, value_enum, default_value_t = SyncName::Interval)]
    sync: SyncName,
    /// Never wait for the disk. Writing then measures the store, not how fast the disk has what
    /// flushes and merges wrote.
    #[arg(long, conflicts_with = "sync")]
    no_sync: bool,
    /// The guards to compare, with commas between them.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = guard, default_value = "grf")]
    guard: Vec<GuardKind>,
    /// Memory of the guard, in bits per key.
    #[arg(long, value_name = "BITS", allow_negative_numbers = true, default_value_t = 12.0)]
    bits_per_key: f64,
    #[command(flatten)]
    memory: MemoryArgs,
    /// How many writes, of all threads together.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    keys: u64,
    /// Bytes of a value.
    #[arg(long, value_name = "N", default_value_t = 100)]
    value_bytes: usize,
    /// Write so many bytes of keys and values a second, of all threads together. A late write is
    /// timed from when it was due. [default: as fast as writes go]
    #[arg(long, value_name = "BYTES", value_parser = byte_count)]
    rate: Option<usize>,
    /// Which keys: each once in no order, each once ascending, keys that are there already, or each
    /// once with every second one deleted again a two-hundredth of the keys later.
    #[arg(long, value_enum, default_value_t = PatternName::Random)]
    pattern: PatternName,
    /// Memory for new entries.
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "4MiB")]
    write_buffer: usize,
    #[command(flatten)]
    policy: PolicyArgs,
    /// How often everything is written anew, by all guards in turns. Medians are printed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    rounds: usize,
    /// Merges drop deletions that hide nothing.
    #[arg(long)]
    eager_tombstones: bool,
    /// Seed of keys and values.
    #[arg(long, value_name = "S", default_value_t = 42)]
    seed: u64,
    /// Where to make the stores, a folder for each guard; those of the last round stay there.
    /// [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    filter: FilterArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SyncName {
    Always,
    Interval,
    Never,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PatternName {
    Random,
    Sequential,
    Update,
    ShortLived,
}

pub(crate) fn run(arguments: &BenchWriteArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let temporary = arguments.db.is_none().then(TemporaryFolder::new).transpose()?;
    let temporary = temporary.as_ref().map(|folder| folder.path().to_path_buf());
    let folder = arguments.db.clone().or(temporary).unwrap_or_default();
    if arguments.record.is_asked_for() && arguments.guard.len() > 1 {
        return Err(Failure::Usage("--record: one guard at a time, a file for each".into()));
    }
    let mut plans = Vec::new();
    let mut listener = Listener::new(arguments.watch, json, out)?;
    for &guard in &arguments.guard {
        let mut plan = plan(arguments, guard, folder.join(guard.name()));
        let followed = || plan.some_keys(FOLLOWED);
        plan.record = arguments.record.plan(true, arguments.bits_per_key, followed)?;
        plans.push(plan);
    }
    let keeps = arguments.db.is_some();
    let reports = bench_writes(&plans, arguments.rounds, keeps, &mut listener)?;
    listener.end()?;
    if json {
        print_json(out, &reports)?;
    } else {
        out.write_all(as_text(&reports).as_bytes())?;
    }
    let wrong: u64 = reports.iter().map(|report| report.wrong_answers).sum();
    if wrong > 0 {
        warning(&format!("{wrong} wrong answers"));
        return Ok(Status::No);
    }
    Ok(Status::Fine)
}

fn plan(arguments: &BenchWriteArgs, guard: GuardKind, folder: PathBuf) -> WritePlan {
    WritePlan {
        guard,
        bits_per_key: arguments.bits_per_key,
        monkey: arguments.memory.monkey() && guard.rate_law().is_some(),
        point_bits: arguments.memory.point_bits(),
        filter: arguments.filter.tuning(),
        elastic: arguments.filter.elastic(),
        threads: arguments.threads,
        sync: match arguments.sync {
            SyncName::Always => SyncPolicy::Always,
            SyncName::Interval => SyncPolicy::Interval(INTERVAL),
            SyncName::Never => SyncPolicy::Never,
        },
        synced: !arguments.no_sync,
        keys: arguments.keys,
        value_bytes: arguments.value_bytes,
        bytes_per_second: arguments.rate.map(|bytes| bytes as u64),
        pattern: match arguments.pattern {
            PatternName::Random => WritePattern::Random,
            PatternName::Sequential => WritePattern::Sequential,
            PatternName::Update => WritePattern::Update,
            PatternName::ShortLived => WritePattern::ShortLived,
        },
        write_buffer_bytes: arguments.write_buffer,
        size_ratio: arguments.policy.size_ratio(),
        policy: arguments.policy.policy(),
        granularity: arguments.policy.granularity(),
        partition_bytes: arguments.policy.partition_bytes(),
        merge_threads: arguments.policy.merge_threads().unwrap_or(1),
        is_stepped: arguments.policy.merge_threads().is_none(),
        table_bytes: arguments.policy.table_bytes(),
        eager_tombstones: arguments.eager_tombstones,
        seed: arguments.seed,
        folder,
        record: None,
    }
}

fn as_text(reports: &[WriteReport]) -> String {
    let heading: Vec<&str> =
        std::iter::once("").chain(reports.iter().map(|report| report.guard)).collect();
    let mut table = TextTable::new(1, &heading);
    let mut row = |name: &str, cell: &dyn Fn(&WriteReport) -> String| {
        table.row(std::iter::once(name.to_string()).chain(reports.iter().map(cell)).collect());
    };
    row("writes", &|report| whole(report.keys));
    row("writers", &|report| whole(report.threads));
    row("writes per second", &|report| whole(report.ops_per_s as u64));
    row("a write, median", &|report| nanoseconds(report.put_ns.p50 as f64));
    row("99 %", &|report| nanoseconds(report.put_ns.p99 as f64));
    row("99.9 %", &|report| nanoseconds(report.put_ns.p999 as f64));
    row("longest", &|report| nanoseconds(report.put_ns.max as f64));
    row("stalls", &|report| format!("{} ({:.2} s)", report.stalls.count, report.stalls.seconds));
    row("threads that merge", &|report| whole(report.merge_threads));
    row("policy", &|report| report.policy.to_string());
    row("write amplification", &|report| format!("{:.2}", report.write_amplification));
    row("an entry is written", &|report| format!("{:.2} times", report.table_writes));
    row("by the closed form", &|report| format!("{:.2}", report.table_writes_expected));
    row("by Dostoevsky's", &|report| format!("{:.2}", report.table_writes_dostoevsky));
    row("space amplification, peak", &|report| format!("{:.2}", report.space_amplification_peak));
    row("peak per byte at the end", &|report| format!("{:.2}", report.space_peak_per_end));
    row("guard, per write", &|report| nanoseconds(report.guard_ns_per_key));
    row("flushes", &|report| whole(report.flushes));
    row("merges", &|report| whole(report.merges));
    row("wrong answers", &|report| whole(report.wrong_answers));
    table.render()
}
