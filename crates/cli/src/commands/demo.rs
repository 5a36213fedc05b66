//! `demo`: compares the guards on real keys in one table, then draws the tree.

use std::io::Write;

use clap::Args;
use serde_json::json;
use trommel::options::FilterTuning;
use trommel::{GuardKind, Policy};
use trommel_guards::{ElasticOptions, kinds};
use trommel_lab::{
    Dist, FileFormat, Kind, Measured, PartsPlan, ROUNDS, ReadPlan, ReadReport, ReadWorkload, Skew,
    TreePlan, bench_read,
};

use crate::commands::bench::read::verdict;
use crate::output::progress::StageBar;
use crate::output::table::{TextTable, bytes, nanoseconds, whole};
use crate::output::tree_json::{guard_json, levels_json};
use crate::output::tree_picture::picture;
use crate::process::failure::Outcome;
use crate::process::temporary::TemporaryFolder;

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Use only so many of the keys. [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) keys: Option<usize>,
    /// Questions of each kind per round.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) queries: usize,
}

const BITS_PER_KEY: f64 = 12.0;

const SIZE_RATIO: u32 = 10;

const RANGE_WIDTH: u64 = 64;

const VALUE_BYTES: usize = 100;

/// The questions that are shown, and their names.
const QUESTIONS: [(&str, &str); 4] = [
    ("point_miss", "missing key"),
    ("point_hit", "stored key"),
    ("empty_range", "empty range"),
    ("range_hit", "range with keys"),
];

pub(crate) fn run(arguments: &DemoArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let folder = TemporaryFolder::new()?;
    let plan = ReadPlan {
        guards: vec![GuardKind::Open, GuardKind::Table(kinds::BLOCKED_BLOOM), GuardKind::Grf],
        dist: Dist::NaturalEarth,
        file_format: FileFormat::Lines,
        keys: arguments.keys,
        tree: TreePlan {
            size_ratio: SIZE_RATIO,
            policy: Policy::default(),
            levels: 3,
            fill: SIZE_RATIO - 1,
            value_bytes: VALUE_BYTES,
            bits_per_key: BITS_PER_KEY,
            monkey: false,
            point_bits: 0,
            filter: FilterTuning::default(),
            elastic: ElasticOptions::default(),
            block_cache_bytes: None,
            direct: false,
            table_bytes: None,
            parts: PartsPlan::default(),
            seed: 42,
            synced: false,
        },
        queries: arguments.queries,
        rounds: ROUNDS,
        threads: 1,
        range_width: RANGE_WIDTH,
        pipelined: None,
        skew: Skew::None,
        workload: ReadWorkload::default(),
        kinds: Kind::ALL.to_vec(),
        asks: Vec::new(),
        full_scan: false,
        by_level: false,
        loads: 1,
        loaders: 1,
        fit_bits: false,
        folder: folder.path().to_path_buf(),
    };
    let measured = bench_read(&plan, &mut StageBar::default())?;
    let reports: Vec<ReadReport> =
        measured.iter().map(|measured| measured.report.clone()).collect();
    let tree = measured.iter().find(|measured| measured.stats.guard.kind == GuardKind::Grf);
    if json {
        let tree = tree.map(|Measured { stats, .. }| {
            json!({ "levels": levels_json(stats), "guard": guard_json(stats) })
        });
        writeln!(out, "{}", json!({ "guards": reports, "tree": tree }))?;
    } else {
        out.write_all(introduction(&reports).as_bytes())?;
        out.write_all(questions_table(&reports).as_bytes())?;
        if let Some(Measured { stats, .. }) = tree {
            write!(out, "\nThe tree that grf guards:\n\n{}", picture(stats))?;
        }
    }
    Ok(verdict(&reports))
}

fn introduction(reports: &[ReadReport]) -> String {
    let (keys, runs) = reports.first().map_or((0, 0), |report| (report.keys, report.runs));
    let wrong = reports.iter().map(|report| report.false_negatives).sum::<u64>();
    format!(
        "{} real keys: vertices of coasts and borders (Natural Earth), as Morton\n\
         codes. Each guard has its own store of {runs} sorted runs, all in memory. Missing\n\
         keys are vertices that were held out; a range takes in {RANGE_WIDTH} neighbouring codes.\n\
         What one query costs: data blocks read, filter probes, runs searched needlessly,\n\
         time; and the memory of the guard. Wrong answers: {}.\n\n",
        whole(keys),
        whole(wrong),
    )
}

/// Formats the cost of one query, for each question and guard.
fn questions_table(reports: &[ReadReport]) -> String {
    let heading = ["one query", "guard", "blocks", "probes", "needless", "time", "memory"];
    let mut table = TextTable::new(2, &heading);
    for (name, question) in QUESTIONS {
        for (place, report) in reports.iter().enumerate() {
            let kinds = report.kinds();
            let Some((_, kind)) = kinds.iter().find(|(kind, _)| *kind == name) else { continue };
            let counts =
                [kind.blocks_read_per_op, kind.guard_probes_per_op, kind.false_positive_rate];
            let mut row =
                vec![if place == 0 { question } else { "" }.to_string(), report.guard.into()];
            row.extend(counts.map(|count| format!("{count:.3}")));
            row.push(nanoseconds(kind.ns_per_op));
            row.push(bytes((report.guard_bits_per_key * report.keys as f64 / 8.0) as u64));
            table.row(row);
        }
    }
    table.render()
}
