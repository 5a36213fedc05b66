//! `bench probe`: measures the filters alone, and prints the results.

use std::io::Write;

use clap::Args;
use trommel_lab::{Ask, ProbePlan, ProbeReport, ProbeThreads, bench_probe};

use crate::args::workload::WorkloadArgs;
use crate::output::json::print_json;
use crate::output::progress::StageBar;
use crate::output::table::{TextTable, nanoseconds, whole};
use crate::process::failure::{Outcome, Status};
use crate::process::message::warning;

#[derive(Debug, Args)]
pub(crate) struct BenchProbeArgs {
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
    /// Look for what each filter must be told to take --bits-per-key, within 3 percent: five builds
    /// at most. Filters round, so what they are told is not what they take.
    #[arg(long)]
    fit_bits: bool,
    /// So many ranges train arf before it is asked. Ranges then begin at one of twice as many keys
    /// as are stored, or with --correlated behind it, by Zipf's law (YCSB's workload C).
    #[arg(long, value_name = "N")]
    train: Option<usize>,
    /// Count, too, the runs of a tree of 19 that each filter has searched for nothing, for these
    /// questions (those of `bench fpr --ask`).
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    ask: Vec<Ask>,
}

pub(crate) fn run(arguments: &BenchProbeArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let workload = &arguments.workload;
    let plan = ProbePlan {
        guards: workload.guards(),
        dist: workload.dist.clone(),
        file_format: workload.file_format,
        keys: workload.keys,
        bits_per_key: workload.bits_per_key,
        fit_bits: arguments.fit_bits,
        filter: workload.filter.tuning(),
        elastic_units: workload.filter.elastic_units,
        size_ratio: workload.size_ratio,
        queries: workload.queries,
        range_width: workload.range_width,
        correlated: workload.correlated,
        skew: workload.skew,
        threads: workload.threads,
        asks: arguments.ask.clone(),
        training: arguments.train,
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
        warning(&format!("{denied} stored keys or ranges were denied"));
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
    row("bits per key", &|report| {
        let unfit = if report.unfit == Some(true) { " (unfit)" } else { "" };
        format!("{:.2}{unfit}", report.guard_bits_per_key)
    });
    row("build, per key", &|report| time(Some(report.build_ns_per_key)));
    row("insert, per key", &|report| time(Some(report.insert_ns_per_key)));
    row("probe: point, miss", &|report| time(report.probe_ns.point_miss));
    row("probe: point, hit", &|report| time(report.probe_ns.point_hit));
    row("probe: empty range", &|report| time(report.probe_ns.empty_range));
    if reports.iter().any(|report| report.probe_ns.mixed_range.is_some()) {
        row("probe: mixed range", &|report| time(report.probe_ns.mixed_range));
    }
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
    if let Some(together) = reports.first().and_then(|report| report.together.as_ref()) {
        let of = |name: &str| format!("{} threads, {name}", together.threads);
        let times = |report: &ProbeReport, of: fn(&ProbeThreads) -> f64| {
            report.together.as_ref().map_or("-".to_string(), |one| format!("{:.2} times", of(one)))
        };
        row(&of("one filter"), &|report| times(report, |one| one.times_as_fast));
        row(&of("each its own"), &|report| times(report, |one| one.apart_times_as_fast));
    }
    row("read of one cache line", &|report| time(Some(report.line_ns)));
    row("false positives: point", &|report| rate(report.false_positive_rate.point_miss));
    row("false positives: range", &|report| rate(report.false_positive_rate.empty_range));
    let asked = reports.first().map_or(&[][..], |report| &report.asked);
    for (place, ask) in asked.iter().enumerate() {
        row(&format!("runs searched: {}", ask.question), &|report| {
            report.asked[place]
                .needless_runs_per_op
                .map_or("-".to_string(), |runs| format!("{runs:.3}"))
        });
    }
    row("false negatives", &|report| whole(report.false_negatives));
    table.render()
}

fn probe_heading(reports: &[ProbeReport]) -> Vec<&'static str> {
    std::iter::once("").chain(reports.iter().map(|report| report.guard)).collect()
}
