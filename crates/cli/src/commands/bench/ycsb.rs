//! `bench ycsb`: YCSB's core workloads over this store and others, in a table for each workload.
//! ```text
//! without --peer   this program measures     with --peer   trommel-peers, with the other engines
//! ```
//! Invariant: both programs measure with the same code and the same operations.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use trommel_lab::{
    Contender, Distribution, LatencyReport, OwnTree, PeerTask, RunLength, Workload, YcsbPlan,
    YcsbReport, YcsbTree, bench_ycsb,
};

use crate::args::comparison::ComparisonArgs;
use crate::args::filter::{FilterArgs, MemoryArgs};
use crate::args::policy::PolicyArgs;
use crate::args::values::byte_count;
use crate::output::json::print_reports;
use crate::output::table::{TextTable, bytes, counted, nanoseconds, whole};
use crate::process::failure::{Failure, Outcome, Status};
use crate::process::message::warning;

pub(crate) const EXAMPLES: &str = "Examples: all workloads; two guards under updates, with RocksDB's tree; hot keys out of the cache; a \
    point of a throughput-latency curve; beside other stores\n  \
    trommel bench ycsb --workload A,B,C,D,E,F\n  \
    trommel bench ycsb --workload A --guard grf,blocked-bloom --policy rocksdb --threads 4\n  \
    trommel bench ycsb --workload C --distribution zipfian:1.2 --block-cache 1GiB\n  \
    trommel bench ycsb --workload B --threads 16 --rate 20000 --seconds 60 --direct\n  \
    trommel bench ycsb --workload A,E --peer rocksdb:bloom,fjall\n\n\
    Workloads: A 50 % reads, 50 % updates; B 95 % reads, 5 % updates; C reads; D 95 % reads of the latest keys, 5 % inserts; E 95 % scans of \
    1 to 100 entries, 5 % inserts; F 50 % reads, 50 % reads followed by a write. They follow each other on the same stores, in the order in \
    which they are named.\n\
    Other stores are in the program trommel-peers: `cargo build --release --manifest-path crates/peers/Cargo.toml`.";

/// The default number of operations.
const OPERATIONS: u64 = 200_000;
/// The default number of rounds of a workload if several stores take turns.
const ROUNDS: usize = 7;

#[derive(Debug, Args)]
pub(crate) struct BenchYcsbArgs {
    /// The workloads, with commas between them: A, B, C, D, E, F.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "A")]
    workload: Vec<Workload>,
    /// Which keys are asked for: uniform, zipfian:S, latest:S (S is the exponent). [default:
    /// latest:0.99 for D, else zipfian:0.99]
    #[arg(long, value_name = "NAME")]
    distribution: Option<Distribution>,
    /// Other stores beside this one, each with a filter or its first one: rocksdb:bloom,fjall.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    peer: Vec<Contender>,
    /// How many keys, of eight bytes, a store is filled with.
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    keys: u64,
    /// Bytes of a value. (YCSB has ten fields of a hundred bytes.)
    #[arg(long, value_name = "N", default_value_t = 1000)]
    value_bytes: usize,
    /// How many clients, each a thread. Several numbers, with commas between them: each workload
    /// is run with each.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1")]
    threads: Vec<usize>,
    /// Operations of each workload, of all clients together. [default: 200000]
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    operations: Option<u64>,
    /// Run each workload so long instead.
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// So many operations a second, of all clients together; one that comes late is timed from when
    /// it was due. [default: as fast as they go, one after the other]
    #[arg(long, value_name = "OPS")]
    rate: Option<f64>,
    /// Into how many rounds a workload is cut, in each of which every store has its turn. [default:
    /// 1 for one store, else 7]
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Gets before the first round, which are not timed.
    #[arg(long, value_name = "N", default_value_t = 0)]
    warm_up: u64,
    /// L: each workload begins with a tree of so many levels, which the flushes of the workload
    /// fill up to the next merge into the last level. (Other stores have no such trees.) [default:
    /// workloads follow each other on one store]
    #[arg(long, value_name = "L", conflicts_with_all = ["peer", "seconds"])]
    levels: Option<u32>,
    /// Z: how full the last level of this tree is, 1 to T - 1. [default: T - 1]
    #[arg(long, value_name = "Z", requires = "levels")]
    fill: Option<u32>,
    /// Search the setting with which filters take what was asked for, within 3 percent: fill again
    /// until one does.
    #[arg(long, requires = "levels")]
    fit_bits: bool,
    /// Memory for blocks that were read.
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "32MiB")]
    block_cache: usize,
    /// Past the operating system's cache, in every store that can do it.
    #[arg(long)]
    direct: bool,
    #[command(flatten)]
    memory: MemoryArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Merges wait for T runs, as --policy with delay_merges says, but not for GRF, whose levels
    /// merge after T merges into them (as in the GRF paper, section 6.4).
    #[arg(long)]
    delay_others: bool,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    comparison: ComparisonArgs,
}

pub(crate) fn run(arguments: &BenchYcsbArgs, json: bool, out: &mut dyn Write) -> Outcome {
    if arguments.policy.merge_threads().is_none() {
        return Err(Failure::Usage("--background: merges of `bench ycsb` have threads".into()));
    }
    let (own, has_peers) = (|folder| plan(arguments, folder), !arguments.peer.is_empty());
    let task = |plan| PeerTask::Ycsb(Box::new(plan));
    let (plan, reports) = arguments.comparison.measure(own, has_peers, bench_ycsb, task)?;
    print_reports(out, json, &reports, || text(&plan, &reports))?;
    Ok(verdict(&reports))
}

fn plan(arguments: &BenchYcsbArgs, folder: PathBuf) -> YcsbPlan {
    let memory = (arguments.block_cache, arguments.policy.merge_threads().unwrap_or(1));
    let stores = arguments.comparison.stores(&arguments.peer, memory, folder);
    let rounds = if stores.contenders.len() == 1 { 1 } else { ROUNDS };
    let operations = arguments.operations.unwrap_or(OPERATIONS);
    let fill = arguments.fill.unwrap_or(arguments.policy.size_ratio().saturating_sub(1));
    YcsbPlan {
        stores,
        workloads: arguments.workload.clone(),
        distribution: arguments.distribution,
        keys: arguments.keys,
        value_bytes: arguments.value_bytes,
        threads: arguments.threads.clone(),
        length: arguments.seconds.map_or(RunLength::Operations(operations), RunLength::Seconds),
        rate: arguments.rate,
        rounds: arguments.rounds.unwrap_or(rounds),
        warm_up: arguments.warm_up,
        begin: arguments.levels.map(|levels| YcsbTree { levels, fill: fill.max(1) }),
        fit_bits: arguments.fit_bits,
        direct: arguments.direct,
        tree: OwnTree {
            policy: arguments.policy.policy(),
            delay_others: arguments.delay_others,
            size_ratio: arguments.policy.size_ratio(),
            granularity: arguments.policy.granularity().name().into(),
            partition_bytes: arguments.policy.partition_bytes(),
            table_bytes: arguments.policy.table_bytes(),
            monkey: arguments.memory.monkey(),
            point_bits: arguments.memory.point_bits(),
            filter: arguments.filter.tuning(),
            elastic: arguments.filter.elastic(),
        },
    }
}

/// Returns "No" and warns if an answer was wrong.
fn verdict(reports: &[YcsbReport]) -> Status {
    let wrong = reports.iter().filter(|report| report.wrong_answers > 0);
    let warned = wrong.map(|report| {
        let (name, workload) = (name(report), report.workload);
        warning(&format!("{name}, workload {workload}: {} wrong answers", report.wrong_answers));
    });
    if warned.count() > 0 { Status::No } else { Status::Fine }
}

fn name(report: &YcsbReport) -> String {
    format!("{}, {}", report.engine, report.guard)
}

/// Formats the stores and how they were filled, then a table for each workload.
fn text(plan: &YcsbPlan, reports: &[YcsbReport]) -> String {
    let stores = reports.iter().take(plan.stores.contenders.len());
    let mut text: String = stores.map(store_text).collect();
    for of_workload in reports.chunks(plan.stores.contenders.len()) {
        text += &workload_text(of_workload);
    }
    text
}

fn store_text(report: &YcsbReport) -> String {
    format!(
        "{}: filled with {} keys, values of {} bytes: {} puts per second, {:.1} s and {:.1} s until all was settled\n  {}\n",
        name(report),
        whole(report.keys_filled),
        whole(report.value_bytes),
        whole(report.fill_ops_per_s as u64),
        report.fill_seconds - report.fill_settle_seconds,
        report.fill_settle_seconds,
        report.settings,
    )
}

fn workload_text(reports: &[YcsbReport]) -> String {
    let Some(first) = reports.first() else { return String::new() };
    let rate = first.rate.map_or("one operation after the other".into(), |rate| {
        format!("{} operations per second asked for", whole(rate as u64))
    });
    let mut text = format!(
        "{} ({}), {}, {rate}, {}\n",
        first.workload,
        first.distribution,
        counted(first.threads, "client"),
        counted(first.rounds, "round"),
    );
    let heading = ["store", "operation", "count", "mean", "p50", "p90", "p99", "p99.9", "longest"];
    let mut table = TextTable::new(2, &heading);
    for report in reports {
        for (kind, times) in report.times.kinds() {
            table.row(times_row(name(report), kind.name(), times));
        }
    }
    text += &table.render();
    let heading = [
        "store",
        "per second",
        "settled in",
        "blocks",
        "disk reads",
        "probes",
        "on disk",
        "runs",
        "bits per key",
        "wrong",
    ];
    let mut table = TextTable::new(1, &heading);
    reports.iter().for_each(|report| table.row(store_row(report)));
    text + &table.render()
}

fn times_row(store: String, kind: &str, times: &LatencyReport) -> Vec<String> {
    let ranks = [times.p50_ns, times.p90_ns, times.p99_ns, times.p999_ns, times.max_ns];
    let cells = [store, kind.into(), whole(times.ops), nanoseconds(times.mean_ns)];
    cells.into_iter().chain(ranks.map(|rank| nanoseconds(rank as f64))).collect()
}

/// Formats a store's row; blocks, disk reads and probes are per operation that reads.
fn store_row(report: &YcsbReport) -> Vec<String> {
    let cell = |number: Option<f64>, digits: usize| {
        number.map_or("-".to_string(), |number| format!("{number:.digits$}"))
    };
    vec![
        name(report),
        whole(report.ops_per_s as u64),
        format!("{:.1} s", report.settle_seconds),
        cell(report.costs.blocks_read_per_op, 3),
        cell(report.costs.disk_reads_per_op, 3),
        cell(report.costs.guard_probes_per_op, 3),
        bytes(report.disk_bytes),
        report.runs.map_or("-".into(), whole),
        cell(report.guard_bits_per_key, 2),
        whole(report.wrong_answers),
    ]
}
