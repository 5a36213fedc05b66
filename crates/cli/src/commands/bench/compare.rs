//! `bench compare`: `trommel-peers` measures this store and another engine, and this command prints
//! the report.
//! ```text
//! plan as JSON --> trommel-peers, which has the other engines --> reports as JSON --> a table
//! ```

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use trommel_lab::{AnswerReport, Ask, ComparePlan, CompareReport, Contender, PeerTask, ShapeName};

use crate::args::values::byte_count;
use crate::output::json::print_reports;
use crate::output::table::{TextTable, nanoseconds, whole};
use crate::process::failure::{Outcome, Status};
use crate::process::message::warning;
use crate::process::peer_program::PeerProgram;
use crate::process::temporary::TemporaryFolder;

pub(crate) const EXAMPLES: &str = "Examples: the same sorted runs in both; each as it is by default; prefixes that no key has\n  \
    trommel bench compare --peer rocksdb --shape runs\n  \
    trommel bench compare --peer rocksdb --shape default\n  \
    trommel bench compare --peer rocksdb:prefix-bloom:12,rocksdb:bloom --dist user-time --ask second-part,next\n\n\
    The program trommel-peers is built with `cargo build --release --manifest-path crates/peers/Cargo.toml`.";

#[derive(Debug, Args)]
pub(crate) struct BenchCompareArgs {
    /// The other engines, with commas between them: rocksdb; of shape default also fjall,
    /// surrealkv, redb. With a filter as rocksdb:bloom.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "rocksdb")]
    peer: Vec<Contender>,
    /// Filters of an engine, each in a store of its own, if --peer names none. rocksdb has bloom,
    /// ribbon, prefix-bloom:N (of N bytes), min-max, none, each also as bloom+universal; others
    /// have some of them.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "bloom,prefix-bloom:6,none"
    )]
    filters: Vec<String>,
    /// This store's guard.
    #[arg(long, value_name = "NAME", value_parser = crate::args::guards::guard, default_value = "grf")]
    guard: trommel::GuardKind,
    /// The trees: the same keys in the same sorted runs, or as each engine makes them by default.
    #[arg(long, value_enum, default_value_t = TreeShape::Runs)]
    shape: TreeShape,
    /// How many keys. [default: 1000000, or all of a set]
    #[arg(long, value_name = "N")]
    keys: Option<usize>,
    /// Where keys come from, as for bench read.
    #[arg(long, value_name = "NAME", default_value = "uniform")]
    dist: String,
    /// Bytes of a value.
    #[arg(long, value_name = "N", default_value_t = 256)]
    value_bytes: usize,
    /// Memory of the filters of both, in bits per key.
    #[arg(long, value_name = "BITS", default_value_t = 10.0)]
    bits_per_key: f64,
    /// Memory for blocks, of both. [default: more than the data takes]
    #[arg(long, value_name = "BYTES", value_parser = byte_count)]
    block_cache: Option<usize>,
    /// T of the tree of given runs: it has T - 1 runs in each level but the last of three.
    #[arg(long, value_name = "T", default_value_t = 11)]
    size_ratio: u32,
    /// What else is asked, that no stored key answers, with commas between them: the questions of
    /// `bench fpr --ask`. Every answer is checked to be empty.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    ask: Vec<Ask>,
    /// Questions of each kind per round.
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    queries: usize,
    /// Neighbouring keys of a range.
    #[arg(long, value_name = "W", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    range_width: u64,
    /// How often stores of default shape are filled, in turns; the median counts.
    #[arg(long, value_name = "N", default_value_t = 3)]
    loads: usize,
    /// Seed of keys and questions.
    #[arg(long, value_name = "S", default_value_t = 42)]
    seed: u64,
    /// Show CPU time of the thread that asks instead of time, of questions: on a busy machine, if
    /// everything is cached.
    #[arg(long)]
    cpu: bool,
    /// The program. [default: trommel-peers beside this program, or in PATH]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Where to make the stores, a folder for each; they stay there. [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,
}

/// How trees are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TreeShape {
    /// As each engine does by default.
    Default,
    /// The same keys in the same sorted runs.
    Runs,
}

pub(crate) fn run(arguments: &BenchCompareArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let program = PeerProgram::find(arguments.program.as_deref())?;
    let temporary = TemporaryFolder::new()?;
    let folder = arguments.db.clone().unwrap_or_else(|| temporary.path().to_path_buf());
    let task = PeerTask::Compare(plan(arguments, folder));
    let reports: Vec<CompareReport> = program.ask(&task)?;
    print_reports(out, json, &reports, || text(&reports, arguments.cpu))?;
    Ok(verdict(&reports))
}

fn plan(arguments: &BenchCompareArgs, folder: PathBuf) -> ComparePlan {
    let own = Contender { engine: "trommel".into(), filter: arguments.guard.name().into() };
    let others = arguments.peer.iter().flat_map(|peer| with_filters(peer, &arguments.filters));
    ComparePlan {
        contenders: std::iter::once(own).chain(others).collect(),
        shape: match arguments.shape {
            TreeShape::Default => ShapeName::Default,
            TreeShape::Runs => ShapeName::Runs,
        },
        keys: arguments.keys,
        dist: arguments.dist.clone(),
        value_bytes: arguments.value_bytes,
        bits_per_key: arguments.bits_per_key,
        block_cache_bytes: arguments.block_cache,
        size_ratio: arguments.size_ratio,
        asks: arguments.ask.clone(),
        queries: arguments.queries,
        range_width: arguments.range_width,
        loads: arguments.loads,
        seed: arguments.seed,
        folder,
    }
}

/// Returns a peer with its named filter, or with each of the engine's filters.
fn with_filters(peer: &Contender, filters: &[String]) -> Vec<Contender> {
    if !peer.filter.is_empty() {
        return vec![peer.clone()];
    }
    let with = |filter: &String| Contender { filter: filter.clone(), ..peer.clone() };
    filters.iter().map(with).collect()
}

/// Returns "No" and warns if an answer was wrong. Also warns if a tree has not the planned shape.
fn verdict(reports: &[CompareReport]) -> Status {
    let mut status = Status::Fine;
    for report in reports {
        let name = format!("{} with {}", report.engine, report.guard);
        if report.false_negatives > 0 {
            warning(&format!("{name}: {} wrong answers", report.false_negatives));
            status = Status::No;
        }
        if report.runs_planned.is_some() && report.runs != report.runs_planned {
            let number = |runs: Option<u64>| runs.map_or("no".into(), |runs| runs.to_string());
            let (runs, planned) = (number(report.runs), number(report.runs_planned));
            warning(&format!("{name}: the tree has {runs} runs, not {planned}"));
        }
    }
    status
}

/// Formats the settings and one table: the first store's times, and the others' times with their
/// ratios to the first.
fn text(reports: &[CompareReport], cpu: bool) -> String {
    let mut text = String::new();
    for report in reports {
        let runs = report.runs.map_or("no runs".into(), |runs| format!("{runs} runs"));
        let bits = report.guard_bits_per_key;
        let bits = bits.map_or("unknown".into(), |bits| format!("{bits:.2} bits per key"));
        text.push_str(&format!(
            "{}: {} keys ({}), {} bytes of value; {runs}, filters {bits}; wrong answers: {}\n  {}\n",
            name(report),
            whole(report.keys),
            report.dist,
            report.value_bytes,
            report.false_negatives,
            report.settings,
        ));
    }
    let Some(first) = reports.first() else { return text };
    let names: Vec<String> =
        std::iter::once(String::new()).chain(reports.iter().map(name)).collect();
    let mut table = TextTable::new(1, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let time = |answer: &AnswerReport| if cpu { answer.cpu_ns_per_op } else { answer.ns_per_op };
    for (place, (kind, _)) in first.kinds().into_iter().enumerate() {
        let times = reports.iter().map(|report| time(report.kinds()[place].1)).collect();
        table.row(row(kind, times));
    }
    for (place, asked) in first.asked.iter().enumerate() {
        let times = reports.iter().map(|report| time(&report.asked[place].answer)).collect();
        table.row(row(&asked.question, times));
    }
    if first.shape == ShapeName::Default {
        table.row(row("fill_random", reports.iter().map(|report| report.load.ns_per_op).collect()));
    }
    text + &table.render()
}

fn name(report: &CompareReport) -> String {
    format!("{}, {}", report.engine, report.guard)
}

fn row(kind: &str, times: Vec<f64>) -> Vec<String> {
    let cells = times.iter().enumerate().map(|(place, time)| match place {
        0 => nanoseconds(*time),
        _ => format!("{} ({:.2}x)", nanoseconds(*time), time / times[0]),
    });
    std::iter::once(kind.to_string()).chain(cells).collect()
}

#[cfg(test)]
mod tests;
