//! `bench read` and `bench probe`: measure, then print.

use std::io::Write;

use serde::Serialize;
use trommel_lab::{
    ManyReport, Measured, PipelinedReport, ProbePlan, ProbeReport, ReadPlan, ReadReport, TreePlan,
    TurnsReport, bench_probe, bench_read,
};

use crate::bench_args::{BenchProbeArgs, BenchReadArgs};
use crate::failure::{Failure, Outcome, Status};
use crate::progress::StageBar;
use crate::table::{TextTable, nanoseconds, whole};
use crate::temporary::TemporaryFolder;
use crate::watch::Listener;

pub(crate) fn read(arguments: &BenchReadArgs, json: bool, out: &mut dyn Write) -> Outcome {
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
            monkey: arguments.memory.monkey,
            point_bits: arguments.memory.point_bits,
            filter: workload.filter.tuning(),
            elastic: workload.filter.elastic(),
            block_cache_bytes: arguments.block_cache,
            direct: arguments.direct,
            table_bytes: arguments.table_bytes.map(|bytes| bytes as u64),
            seed: workload.seed,
            synced: !arguments.no_sync,
        },
        queries: workload.queries,
        threads: arguments.threads,
        range_width: workload.range_width,
        pipelined: arguments.pipelined.map(|depth| depth as usize),
        skew: arguments.skew,
        workload: arguments.special(),
        kinds: arguments.kinds.clone(),
        full_scan: arguments.full_scan,
        by_level: arguments.by_level,
        loads: arguments.loads,
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

/// "No" if an answer was wrong. Says so, and says if a tree has not the planned shape.
pub(crate) fn verdict(reports: &[ReadReport]) -> Status {
    let mut status = Status::Fine;
    for report in reports {
        if report.false_negatives > 0 {
            eprintln!("trommel: {}: {} wrong answers", report.guard, report.false_negatives);
            status = Status::No;
        }
        if report.runs != report.runs_planned {
            let (runs, planned) = (report.runs, report.runs_planned);
            eprintln!("trommel: {}: the tree has {runs} runs, not {planned}", report.guard);
        }
    }
    status
}

/// One object, or an array of several.
pub(crate) fn print_json<T: Serialize>(out: &mut dyn Write, reports: &[T]) -> Result<(), Failure> {
    match reports {
        [report] => serde_json::to_writer(&mut *out, report)?,
        reports => serde_json::to_writer(&mut *out, reports)?,
    }
    writeln!(out)?;
    Ok(())
}

/// An array, of one object too.
pub(crate) fn print_json_array<T: Serialize>(
    out: &mut dyn Write,
    reports: &[T],
) -> Result<(), Failure> {
    serde_json::to_writer(&mut *out, reports)?;
    writeln!(out)?;
    Ok(())
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
        crate::table::bytes(rebuild),
        crate::table::counted(report.threads, "thread"),
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
    for (name, kind) in kinds.chain(closed) {
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

/// What counting costs, and scans from end to end.
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

/// What gets cost by the level of their key, and how the tables share them.
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
        crate::table::counted(tables, "table"),
        whole(least),
        whole(most)
    );
    format!("{} {of_tables}\n", table.render())
}

/// What was special about keys and questions.
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

/// What questions cost in batches, and how much more they cost alone.
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

pub(crate) fn probe(arguments: &BenchProbeArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let workload = &arguments.workload;
    let plan = ProbePlan {
        guards: workload.guards(),
        dist: workload.dist.clone(),
        file_format: workload.file_format,
        keys: workload.keys,
        bits_per_key: workload.bits_per_key,
        filter: workload.filter.tuning(),
        elastic_units: workload.filter.elastic_units,
        size_ratio: workload.size_ratio,
        queries: workload.queries,
        range_width: workload.range_width,
        correlated: workload.correlated,
        seed: workload.seed,
    };
    let reports = bench_probe(&plan, &mut StageBar::default())?;
    if json {
        print_json(out, &reports)?;
    } else {
        out.write_all(probe_text(&reports).as_bytes())?;
    }
    let denied: u64 = reports.iter().map(|report| report.false_negatives).sum();
    if denied > 0 {
        eprintln!("trommel: {denied} stored keys or ranges were denied");
        return Ok(Status::No);
    }
    Ok(Status::Fine)
}

fn probe_text(reports: &[ProbeReport]) -> String {
    let mut table = TextTable::new(1, &probe_heading(reports));
    let mut row = |name: &str, cell: &dyn Fn(&ProbeReport) -> String| {
        table.row(std::iter::once(name.to_string()).chain(reports.iter().map(cell)).collect());
    };
    let time = |ns: Option<f64>| ns.map_or("-".to_string(), nanoseconds);
    let rate =
        |rate: Option<f64>| rate.map_or("-".to_string(), |rate| format!("{:.3} %", 100.0 * rate));
    row("bits per key", &|report| format!("{:.2}", report.guard_bits_per_key));
    row("build, per key", &|report| time(Some(report.build_ns_per_key)));
    row("insert, per key", &|report| time(Some(report.insert_ns_per_key)));
    row("probe: point, miss", &|report| time(report.probe_ns.point_miss));
    row("probe: point, hit", &|report| time(report.probe_ns.point_hit));
    row("probe: empty range", &|report| time(report.probe_ns.empty_range));
    row("batches of 16: point, miss", &|report| {
        time(report.batch_ns.as_ref().and_then(|batch| batch.point_miss))
    });
    row("batches of 16: point, hit", &|report| {
        time(report.batch_ns.as_ref().and_then(|batch| batch.point_hit))
    });
    row("all tables: point, miss", &|report| {
        time(report.probe_all_ns.as_ref().and_then(|all| all.point_miss))
    });
    row("all tables: point, hit", &|report| {
        time(report.probe_all_ns.as_ref().and_then(|all| all.point_hit))
    });
    row("all tables: empty range", &|report| {
        time(report.probe_all_ns.as_ref().and_then(|all| all.empty_range))
    });
    row("read of one cache line", &|report| time(Some(report.line_ns)));
    row("false positives: point", &|report| rate(report.false_positive_rate.point_miss));
    row("false positives: range", &|report| rate(report.false_positive_rate.empty_range));
    row("false negatives", &|report| whole(report.false_negatives));
    table.render()
}

fn probe_heading(reports: &[ProbeReport]) -> Vec<&'static str> {
    std::iter::once("").chain(reports.iter().map(|report| report.guard)).collect()
}
