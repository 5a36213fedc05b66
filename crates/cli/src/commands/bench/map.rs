//! `bench map`: compares the succinct trie with other ordered maps.

use std::io::Write;

use clap::Args;
use trommel_lab::{Dist, FileFormat, MapPlan, bench_map};

use crate::output::json::print_json_array;
use crate::output::progress::StageBar;
use crate::output::table::{TextTable, nanoseconds, whole};
use crate::process::failure::{Outcome, Status};
use crate::process::message::warning;

/// Which keys, and how many questions.
#[derive(Debug, Args)]
pub(crate) struct MapArgs {
    #[arg(long, value_name = "NAME", default_value = "uniform64", help = crate::args::workload::dist_help())]
    dist: Dist,
    /// How many keys. [default: 1000000, or all of a file]
    #[arg(long, value_name = "N")]
    keys: Option<usize>,
    /// Gets in a round; there are a tenth as many scans, of 50 to 100 entries.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    queries: usize,
    /// Seed of keys and questions.
    #[arg(long, value_name = "S", default_value_t = 42)]
    seed: u64,
}

pub(crate) fn run(arguments: &MapArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let plan = MapPlan {
        dist: arguments.dist.clone(),
        file_format: FileFormat::Lines,
        keys: arguments.keys,
        queries: arguments.queries,
        seed: arguments.seed,
    };
    let reports = bench_map(&plan, &mut StageBar::default())?;
    if json {
        print_json_array(out, &reports)?;
    } else {
        let heading = ["map", "a get", "a scan", "build, per key", "bytes per key"];
        let mut table = TextTable::new(1, &heading);
        for report in &reports {
            let times = [report.get.ns_per_op, report.scan.ns_per_op, report.build_ns_per_key];
            let bytes = format!("{:.2}", report.bytes_per_key);
            let cells = times.map(nanoseconds).into_iter().chain([bytes]);
            table.row(std::iter::once(report.map.to_string()).chain(cells).collect());
        }
        let keys = reports.first().map_or(0, |report| report.keys);
        writeln!(out, "{} keys ({})\n{}", whole(keys), arguments.dist, table.render())?;
    }
    let wrong: u64 = reports.iter().map(|report| report.wrong_answers).sum();
    if wrong > 0 {
        warning(&format!("{wrong} wrong answers"));
        return Ok(Status::No);
    }
    Ok(Status::Fine)
}
