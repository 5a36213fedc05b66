//! `bench transactions`: measures transactions over this store and others, and prints a table for
//! each workload.
//! ```text
//! without --peer   this program measures     with --peer   trommel-peers, with the other engines
//! ```
//! Invariant: both programs measure with the same code and the same transactions.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use trommel_lab::{
    Contender, KindTimes, PeerTask, RunLength, TransactionWorkload, TransactionsPlan,
    TransactionsReport, bench_transactions,
};

use crate::args::comparison::ComparisonArgs;
use crate::args::values::byte_count;
use crate::output::json::print_reports;
use crate::output::table::{TextTable, counted, nanoseconds, whole};
use crate::process::failure::{Outcome, Status};
use crate::process::message::warning;

pub(crate) const EXAMPLES: &str = "Examples: all workloads; with one client and with four, beside RocksDB; put_if_absent beside a put\n  \
    trommel bench transactions\n  \
    trommel bench transactions --workload counter-hot,tpcc --threads 1,4 --seconds 10 --peer rocksdb\n  \
    trommel bench transactions --workload put-if-absent --keys 5000000 --rounds 19 --block-cache 1GiB\n\n\
    Workloads: unique-insert put_if_absent of new keys, one in eight of which is there; unique-insert-tx the same by get, put, commit; \
    counter-hot and counter-cold increments of few and of all counters; read10-write2 ten gets, two puts; long-scan a scan and a put; \
    tpcc new orders, payments and order status of TPC-C (no deliveries, nobody types: no result of TPC-C); put-if-absent beside a plain put. \
    What the store then holds is checked; status 1 if it is not what the commits say.\n\
    Other stores are in the program trommel-peers: `cargo build --release --manifest-path crates/peers/Cargo.toml`.";

/// The default number of operations.
const OPERATIONS: u64 = 100_000;
/// The default number of rounds of a workload if several stores take turns.
const ROUNDS: usize = 7;

#[derive(Debug, Args)]
pub(crate) struct BenchTransactionsArgs {
    /// The workloads, with commas between them. [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    workload: Vec<TransactionWorkload>,
    /// Other stores beside this one: rocksdb (its optimistic transactions, which do not check what
    /// scans have read), rocksdb-checked (they check the keys that scans have found).
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    peer: Vec<Contender>,
    /// How many clients, each a thread. Several numbers, with commas between them: each workload
    /// is run with each.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,4")]
    threads: Vec<usize>,
    /// Operations of each workload, of all clients together. [default: 100000]
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    operations: Option<u64>,
    /// Run each workload so long instead.
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// How many keys, of eight bytes, a store is filled with. Of tpcc: how many items, 100,000 at
    /// most, as the standard has; with fewer there are fewer customers, too.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    keys: u64,
    /// Bytes of a value; those of tpcc are the standard's.
    #[arg(long, value_name = "N", default_value_t = 100)]
    value_bytes: usize,
    /// Into how many rounds a workload is cut, in each of which every store has its turn. [default:
    /// 1 for one store, else 7]
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Counters of counter-hot.
    #[arg(long, value_name = "N", default_value_t = 8)]
    hot: u64,
    /// Entries that a transaction of long-scan reads.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    scan_entries: usize,
    /// Warehouses of tpcc.
    #[arg(long, value_name = "N", default_value_t = 4)]
    warehouses: u32,
    /// Memory for blocks that were read.
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "256MiB")]
    block_cache: usize,
    /// Threads that merge.
    #[arg(long, value_name = "N", default_value_t = 1)]
    merge_threads: usize,
    #[command(flatten)]
    comparison: ComparisonArgs,
}

pub(crate) fn run(arguments: &BenchTransactionsArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let (own, has_peers) = (|folder| plan(arguments, folder), !arguments.peer.is_empty());
    let (plan, reports) =
        arguments.comparison.measure(own, has_peers, bench_transactions, PeerTask::Transactions)?;
    print_reports(out, json, &reports, || text(&plan, &reports))?;
    Ok(verdict(&reports))
}

fn plan(arguments: &BenchTransactionsArgs, folder: PathBuf) -> TransactionsPlan {
    let memory = (arguments.block_cache, arguments.merge_threads);
    let stores = arguments.comparison.stores(&arguments.peer, memory, folder);
    let rounds = if stores.contenders.len() == 1 { 1 } else { ROUNDS };
    let operations = arguments.operations.unwrap_or(OPERATIONS);
    let workloads = match arguments.workload.is_empty() {
        true => TransactionWorkload::ALL.to_vec(),
        false => arguments.workload.clone(),
    };
    TransactionsPlan {
        stores,
        workloads,
        keys: arguments.keys,
        value_bytes: arguments.value_bytes,
        threads: arguments.threads.clone(),
        length: arguments.seconds.map_or(RunLength::Operations(operations), RunLength::Seconds),
        rounds: arguments.rounds.unwrap_or(rounds),
        hot: arguments.hot,
        scan_entries: arguments.scan_entries,
        warehouses: arguments.warehouses,
    }
}

/// Returns "No" and warns if the contents of a store contradict its commits.
fn verdict(reports: &[TransactionsReport]) -> Status {
    let mut status = Status::Fine;
    for report in reports {
        for problem in &report.broken {
            let clients = counted(report.threads, "client");
            warning(&format!("{}, {}, {clients}: {problem}", name(report), report.workload));
            status = Status::No;
        }
    }
    status
}

fn name(report: &TransactionsReport) -> String {
    format!("{}, {}", report.engine, report.guard)
}

/// Formats the stores' settings, then a table for each workload and number of clients.
fn text(plan: &TransactionsPlan, reports: &[TransactionsReport]) -> String {
    let stores = plan.stores.contenders.len();
    let settings = |report: &TransactionsReport| format!("{}: {}\n", name(report), report.settings);
    let mut text: String = reports.iter().take(stores).map(settings).collect();
    for of_cell in reports.chunks(stores) {
        text += &cell_text(of_cell);
    }
    text
}

fn cell_text(reports: &[TransactionsReport]) -> String {
    let Some(first) = reports.first() else { return String::new() };
    let (clients, rounds) = (counted(first.threads, "client"), counted(first.rounds, "round"));
    let mut text = format!("{}, {clients}, {} keys, {rounds}\n", first.workload, whole(first.keys));
    let heading = [
        "store",
        "commits/s",
        "of the first",
        "conflicts per commit",
        "refused",
        "probes",
        "blocks",
        "disk reads",
        "broken",
    ];
    let mut table = TextTable::new(1, &heading);
    reports.iter().for_each(|report| table.row(store_row(report, first)));
    text += &table.render();
    let heading = ["store", "kind", "count", "mean", "p50", "p90", "p99", "p99.9", "longest"];
    let mut table = TextTable::new(2, &heading);
    for report in reports {
        report.kinds.iter().for_each(|kind| table.row(times_row(name(report), kind)));
    }
    text += &table.render();
    for report in reports {
        if let Some(times) = report.times_a_put {
            let name = name(report);
            text += &format!("{name}: put_if_absent takes {times:.2} times a put's time\n");
        }
    }
    text
}

/// Formats a store's row; probes, blocks and disk reads are per commit.
fn store_row(report: &TransactionsReport, first: &TransactionsReport) -> Vec<String> {
    let cell = |number: Option<f64>| number.map_or("-".into(), |number| format!("{number:.3}"));
    vec![
        name(report),
        whole(report.commits_per_s as u64),
        format!("{:.2}x", report.commits_per_s / first.commits_per_s),
        format!("{:.4}", report.conflicts_per_commit),
        whole(report.refused),
        cell(report.guard_probes_per_commit),
        cell(report.blocks_read_per_commit),
        cell(report.disk_reads_per_commit),
        whole(report.broken.len() as u64),
    ]
}

fn times_row(store: String, kind: &KindTimes) -> Vec<String> {
    let times = &kind.times;
    let ranks = [times.p50_ns, times.p90_ns, times.p99_ns, times.p999_ns, times.max_ns];
    let cells = [store, kind.kind.clone(), whole(kind.done), nanoseconds(times.mean_ns)];
    cells.into_iter().chain(ranks.map(|rank| nanoseconds(rank as f64))).collect()
}
