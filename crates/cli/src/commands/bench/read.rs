//! `bench read`: measures reads of a tree of known shape for each guard, and prints the results.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use trommel_lab::{
    Ask, DeletedBy, Deletion, Dist, FilterMemory, Kind, PartsPlan, ROUNDS, ReadWorkload,
};
use trommel_lab::{
    ManyReport, Measured, PipelinedReport, ReadPlan, ReadReport, TreePlan, TurnsReport, bench_read,
};

use crate::args::filter::MemoryArgs;
use crate::args::policy::policy;
use crate::args::values::byte_count;
use crate::args::watch::WatchArgs;
use crate::args::workload::WorkloadArgs;
use crate::output::json::print_json;
use crate::output::table::{TextTable, nanoseconds, whole};
use crate::process::failure::{Outcome, Status};
use crate::process::message::warning;
use crate::process::temporary::TemporaryFolder;
use crate::watch::watcher::Listener;

#[derive(Debug, Args)]
pub(crate) struct BenchReadArgs {
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
    /// When runs merge. One of lazy-leveling, leveling, tiering, rocksdb, levelled-from:LEVEL.
    #[arg(long, value_name = "NAME", value_parser = policy, default_value = "lazy-leveling")]
    pub(crate) policy: trommel::Policy,
    /// L: how many levels the tree has; 1 gives one run.
    #[arg(long, value_name = "L", default_value_t = 3)]
    pub(crate) levels: u32,
    /// Z: how full the last level is, 1 to T - 1. [default: T - 1]
    #[arg(long, value_name = "Z")]
    pub(crate) fill: Option<u32>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    /// Bytes of a value.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) value_bytes: usize,
    /// Memory for blocks. [default: more than the data takes]
    #[arg(long, value_name = "BYTES", value_parser = byte_count)]
    pub(crate) block_cache: Option<usize>,
    /// Bytes after which a run goes on in another file.
    #[arg(long, value_name = "BYTES", value_parser = byte_count)]
    pub(crate) table_bytes: Option<usize>,
    /// Bytes of a partition. Each partition of the last level has a part of a global range filter.
    #[arg(long, value_name = "BYTES", value_parser = byte_count)]
    pub(crate) partition_bytes: Option<usize>,
    /// Memory of grf. In bytes, or per cent of what it takes (50%): parts that are asked less get
    /// fewer bits. The store is loaded without a limit, and all questions are asked
    /// once before they are measured.
    #[arg(long, value_name = "SIZE", value_parser = filter_memory)]
    pub(crate) filter_memory: Option<FilterMemory>,
    /// Tables past the operating system's cache. (What is measured first is read into the block
    /// cache alone.)
    #[arg(long)]
    pub(crate) direct: bool,
    /// Ask for stored keys through a queue, too, so many at once, beside one after the other.
    #[arg(long = "async", value_name = "DEPTH", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) pipelined: Option<u32>,
    /// How often each kind is asked. Guards take turns; medians are printed.
    #[arg(long, value_name = "N", default_value_t = ROUNDS)]
    pub(crate) rounds: usize,
    /// Delete that share of the keys, in a hundred stretches, one after the other while the newer
    /// runs are written (but for the last flush). Misses and empty ranges are where they were.
    #[arg(long, value_name = "SHARE", conflicts_with = "correlated")]
    deleted: Option<f64>,
    /// How they are deleted: key (one after the other), range (a range for each stretch).
    #[arg(long, value_name = "NAME", default_value = "key", requires = "deleted")]
    deleted_by: DeletedBy,
    /// Where the keys of newer runs come from, if not from where those of the last run do: a shift
    /// of the workload. As --dist, but for files of lines alone.
    #[arg(long, value_name = "NAME", conflicts_with = "deleted")]
    inserts: Option<Dist>,
    /// Closed seeks of which that share finds nothing, 0.1 or so to 0.99; several shares with
    /// commas between them. Their ranges are of the keys' first eight bytes, as wide as it takes.
    #[arg(long, value_name = "SHARES", value_delimiter = ',')]
    empty: Vec<f64>,
    /// What is asked, with commas between them: point_miss, point_hit, point_half, empty_range,
    /// range_hit, seek, seek_next_50. [default: all, and counts and batches]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = kind, hide_default_value = true, default_values_t = Kind::ALL)]
    pub(crate) kinds: Vec<Kind>,
    /// What else is asked, that no stored key answers, with commas between them: the questions of
    /// `bench fpr --ask`. Every answer is checked to be empty.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) ask: Vec<Ask>,
    /// Scan every store from end to end and back, too.
    #[arg(long)]
    pub(crate) full_scan: bool,
    /// Count what gets cost by the level of their key, and how often each table is asked.
    #[arg(long)]
    pub(crate) by_level: bool,
    /// How often each store is loaded, in turns; the median time counts.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) loads: usize,
    /// How many stores are loaded at once. More: loading then takes each of them longer.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) loaders: usize,
    /// Load a guard again, up to four times, with other --bits-per-key, if it takes over 3 % more
    /// or less than that: filters round, and some have a least size.
    #[arg(long)]
    pub(crate) fit_bits: bool,
    /// Never wait for the disk. Loading then measures the store, not how fast the disk has what
    /// flushes and merges wrote.
    #[arg(long)]
    pub(crate) no_sync: bool,
    /// Where to make the stores, a folder for each guard; they stay there. [default: a temporary
    /// folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) db: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

impl BenchReadArgs {
    fn parts(&self) -> PartsPlan {
        let partition_bytes = self.partition_bytes.map(|bytes| bytes as u64);
        PartsPlan { partition_bytes, filter_memory: self.filter_memory }
    }

    /// Returns the special properties of keys and questions.
    pub(crate) fn special(&self) -> ReadWorkload {
        let by = self.deleted_by;
        ReadWorkload {
            correlated: self.workload.correlated,
            deleted: self.deleted.map(|share| Deletion { share, by }),
            inserts: self.inserts.clone(),
            empty_shares: self.empty.clone(),
        }
    }
}

/// Parses a number of bytes, or a share like 50%.
fn filter_memory(text: &str) -> Result<FilterMemory, String> {
    let Some(number) = text.strip_suffix('%') else {
        return byte_count(text).map(|bytes| FilterMemory::Bytes(bytes as u64));
    };
    let share = number.parse().ok().filter(|share: &f64| (0.0..=100.0).contains(share));
    let share = share.map(|share| FilterMemory::Share(share / 100.0));
    share.ok_or_else(|| format!("'{text}' is no share like 50%"))
}

/// Parses the name of a kind of question.
fn kind(name: &str) -> Result<Kind, String> {
    let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    let known = Kind::ALL.map(Kind::name).join(", ");
    found.ok_or_else(|| format!("there is no kind of question '{name}'; there are: {known}"))
}

pub(crate) fn run(arguments: &BenchReadArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let temporary = match &arguments.db {
        Some(_) => None,
        None => Some(TemporaryFolder::new()?),
    };
    let folder = match (&arguments.db, &temporary) {
        (Some(folder), _) => folder.clone(),
        (None, Some(folder)) => folder.path().to_path_buf(),
        (None, None) => unreachable!("without --db there is a temporary folder"),
    };
    let workload = &arguments.workload;
    let plan = ReadPlan {
        guards: workload.guards(),
        dist: workload.dist.clone(),
        file_format: workload.file_format,
        keys: workload.keys,
        tree: TreePlan {
            size_ratio: workload.size_ratio,
            policy: arguments.policy.clone(),
            levels: arguments.levels,
            fill: arguments.fill.unwrap_or(workload.size_ratio.saturating_sub(1)),
            value_bytes: arguments.value_bytes,
            bits_per_key: workload.bits_per_key,
            monkey: arguments.memory.monkey(),
            point_bits: arguments.memory.point_bits(),
            filter: workload.filter.tuning(),
            elastic: workload.filter.elastic(),
            block_cache_bytes: arguments.block_cache,
            direct: arguments.direct,
            table_bytes: arguments.table_bytes.map(|bytes| bytes as u64),
            parts: arguments.parts(),
            seed: workload.seed,
            synced: !arguments.no_sync,
        },
        queries: workload.queries,
        rounds: arguments.rounds,
        threads: workload.threads,
        range_width: workload.range_width,
        pipelined: arguments.pipelined.map(|depth| depth as usize),
        skew: workload.skew,
        workload: arguments.special(),
        kinds: arguments.kinds.clone(),
        asks: arguments.ask.clone(),
        full_scan: arguments.full_scan,
        by_level: arguments.by_level,
        loads: arguments.loads,
        loaders: arguments.loaders,
        fit_bits: arguments.fit_bits,
        folder,
    };
    let mut listener = Listener::new(arguments.watch, json, out)?;
    let measured = bench_read(&plan, &mut listener)?;
    listener.end()?;
    let reports: Vec<ReadReport> =
        measured.into_iter().map(|Measured { report, .. }| report).collect();
    if json {
        print_json(out, &reports)?;
    } else {
        reports.iter().try_for_each(|report| out.write_all(read_text(report).as_bytes()))?;
    }
    Ok(verdict(&reports))
}

/// Returns "No" and warns if an answer was wrong. Also warns if a tree has not the planned shape.
pub(crate) fn verdict(reports: &[ReadReport]) -> Status {
    let mut status = Status::Fine;
    for report in reports {
        if report.false_negatives > 0 {
            warning(&format!("{}: {} wrong answers", report.guard, report.false_negatives));
            status = Status::No;
        }
        if report.runs != report.runs_planned {
            let (runs, planned) = (report.runs, report.runs_planned);
            warning(&format!("{}: the tree has {runs} runs, not {planned}", report.guard));
        }
    }
    status
}

fn read_text(report: &ReadReport) -> String {
    let levels: Vec<String> = report.levels.iter().map(|level| level.runs.to_string()).collect();
    let (load, rebuild) = (&report.load, report.guard_rebuild_peak_bytes);
    let heading = format!(
        "{}: {} keys ({}, skew {}), {} runs ({}), {:.2} bits per key in the guard, rebuild peak {}; {}\n  \
         loaded in {:.2} s ({:.2} s in the guard), write amplification {:.2}; wrong answers: {}\n",
        report.guard,
        whole(report.keys),
        report.dist,
        report.skew,
        report.runs,
        levels.join("/"),
        report.guard_bits_per_key,
        crate::output::table::bytes(rebuild),
        crate::output::table::counted(report.threads, "thread"),
        load.seconds,
        load.guard_seconds,
        load.write_amplification,
        report.false_negatives,
    );
    let mut table = TextTable::new(
        1,
        &[
            "question",
            "time",
            "per second",
            "p99",
            "blocks",
            "disk reads",
            "probes",
            "filter lines",
            "needless runs",
        ],
    );
    let kinds = report.kinds().into_iter().map(|(name, kind)| (name.to_string(), kind));
    let closed = report.closed_seek.iter();
    let closed =
        closed.map(|seek| (format!("closed_seek, {} % empty", seek.empty_percent), &seek.cost));
    let asked = report.asked.iter().map(|asked| (asked.question.to_string(), &asked.cost));
    for (name, kind) in kinds.chain(closed).chain(asked) {
        let per_second = whole(kind.ops_per_s as u64);
        let mut cells = vec![name, nanoseconds(kind.ns_per_op), per_second];
        cells.push(nanoseconds(kind.ns_p99));
        let counts = [
            kind.blocks_read_per_op,
            kind.disk_reads_per_op,
            kind.guard_probes_per_op,
            kind.guard_lines_per_op,
            kind.false_positive_rate,
        ];
        cells.extend(counts.map(|count| format!("{count:.4}")));
        table.row(cells);
    }
    let batches = report.multi_get.as_ref().map_or(String::new(), batches_text);
    let pipelined = report.pipelined.as_ref().map_or(String::new(), pipelined_text);
    let special = special_text(report);
    format!("{heading}{special}{}{}{batches}{pipelined}", table.render(), scans_text(report))
}

/// Formats the costs of counts and of full scans.
fn scans_text(report: &ReadReport) -> String {
    let counted = report.count.as_ref().map_or(String::new(), |count| {
        format!(
            " counting a range of about a thousand keys: {}, off by {:.3} % (at worst {:.2} %)\n",
            nanoseconds(count.ns_per_op),
            100.0 * count.mean_relative_error,
            100.0 * count.worst_relative_error,
        )
    });
    let scanned = report.full_scan.as_ref().map_or(String::new(), |scan| {
        let (forward, backward) = (scan.ns_per_entry, scan.backward_ns_per_entry);
        let times = format!("{forward:.1} ns per entry, backward {backward:.1}");
        format!(" scans of all {} entries: {times}\n", whole(scan.entries))
    });
    counted + &scanned + &by_level_text(report)
}

/// Formats the costs of gets by the level of their key, and the shares of the tables.
fn by_level_text(report: &ReadReport) -> String {
    if report.by_level.is_empty() {
        return String::new();
    }
    let heading = ["gets of keys in", "gets", "needless runs", "blocks", "filter lines"];
    let mut table = TextTable::new(1, &heading);
    for cost in &report.by_level {
        let counts = [cost.needless_runs_per_op, cost.blocks_read_per_op, cost.guard_lines_per_op];
        let cells = [cost.place.clone(), whole(cost.gets)].into_iter();
        table.row(cells.chain(counts.map(|count| format!("{count:.4}"))).collect());
    }
    let asked = report.by_table.iter().map(|table| table.asked);
    let (most, least) = (asked.clone().max().unwrap_or(0), asked.min().unwrap_or(0));
    let tables = report.by_table.len() as u64;
    let of_tables = format!(
        "{}, asked {} to {} times each",
        crate::output::table::counted(tables, "table"),
        whole(least),
        whole(most)
    );
    format!("{} {of_tables}\n", table.render())
}

/// Formats the special properties of keys and questions.
fn special_text(report: &ReadReport) -> String {
    let correlated = report.correlated.map(|most| {
        format!("  misses and empty ranges begin at most {most} behind a stored key\n")
    });
    let deleted = report.deleted.as_ref().map(|deleted| {
        let (keys, stretches) = (whole(deleted.keys), whole(deleted.stretches));
        format!("  {keys} more keys were deleted, in {stretches} stretches, by {}\n", deleted.by)
    });
    let shift = report.shift.as_ref().map(|shift| {
        format!(
            "  {} keys of newer runs are {}: {} in the guard per insert; needless runs per miss {:.4} before them, {:.4} after, per \
             empty range {:.4}, {:.4}\n",
            whole(shift.new_keys),
            shift.inserts,
            nanoseconds(shift.guard_ns_per_insert),
            shift.before.point_miss,
            shift.after.point_miss,
            shift.before.empty_range,
            shift.after.empty_range,
        )
    });
    [correlated, deleted, shift].into_iter().flatten().collect()
}

/// Formats the costs of questions in batches, and how much more they cost alone.
fn batches_text(many: &ManyReport) -> String {
    let kinds = [
        ("point_miss", &many.point_miss),
        ("point_hit", &many.point_hit),
        ("empty_range", &many.empty_range),
    ];
    let of_kind = |(name, turns): (&str, &TurnsReport)| {
        let (together, alone) = (turns.ns_per_op, turns.alone_ns_per_op);
        let times = alone / together;
        format!("{name} {}, alone {} ({times:.2})", nanoseconds(together), nanoseconds(alone))
    };
    format!(" multi_get of {}: {}\n", many.batch, kinds.map(of_kind).join("; "))
}

fn pipelined_text(report: &PipelinedReport) -> String {
    format!(
        " stored keys, {} at once ({}, {}): {}, one after the other {}: {:.2} times as fast\n",
        report.depth,
        report.overlap,
        if report.direct { "past the system's cache" } else { "through the system's cache" },
        nanoseconds(report.queue_ns),
        nanoseconds(report.one_by_one_ns),
        report.times_as_fast,
    )
}
