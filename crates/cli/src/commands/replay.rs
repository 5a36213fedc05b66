//! `replay`: makes a page that plays back how a tree grew, step by step.
//! ```text
//! trommel replay grown.html --size-ratio 4 --flushes 80    store of its own, step by step --+
//! trommel replay run.html --run FILE                       what `load --record` wrote ------+
//!                                                          recording (JSON) <---------------+
//! recording, replay.html, palette --> one file, which needs no network
//! ```
//! Invariant: the page only draws the recording. Codes, positions and their runs come from the
//! filter's code.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use trommel::{GuardKind, Policy};
use trommel_lab::experiment::palette;
use trommel_lab::{Recording, ReplayEvent, ReplayPlan, ReplayStep, read_recording, record_replay};

use crate::args::guards::guard;
use crate::output::progress::StageBar;
use crate::output::table::{counted, whole};
use crate::process::failure::{Failure, Outcome, Status};
use crate::process::temporary::TemporaryFolder;

pub(crate) const EXAMPLES: &str = "Examples: the trees of the GRF paper's Figures 7 and 8; runs that are merged at once; more levels\n  \
    trommel replay grown.html\n  \
    trommel replay leveling.html --policy leveling\n  \
    trommel replay deep.html --size-ratio 3 --flushes 250\n\n\
    What a store did while it was written\n  \
    trommel bench write --keys 200000 --write-buffer 256KiB --size-ratio 4 --record run.jsonl\n  \
    trommel replay run.html --run run.jsonl";

/// The page, with placeholders for the recording and the colours.
const PAGE: &str = include_str!("replay.html");
const RECORDING: &str = "/*RECORDING*/null";
const COLOUR_LIST: &str = "/*COLOURS*/[]";
const PALETTE: &str = "/*PALETTE*/";
const START: &str = "/*START*/0";
/// The fewest runs, in two levels or more, of a tree worth showing first.
const RUNS_TO_SEE: usize = 3;

/// The tree to record, and where the page goes.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The page (HTML) to write.
    #[arg(value_name = "FILE")]
    page: PathBuf,
    /// Play this run back, which `load --record` or `bench write --record` has written, instead of
    /// a tree that is grown for it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["guard", "bits_per_key", "size_ratio", "policy", "flushes", "keys_per_flush", "follow", "seed"])]
    run: Option<PathBuf>,
    /// A guard that answers with codes.
    #[arg(long, value_name = "NAME", value_parser = guard, default_value = "grf")]
    guard: GuardKind,
    /// Memory of the guard, in bits per key.
    #[arg(long, value_name = "BITS", default_value_t = 12.0)]
    bits_per_key: f64,
    /// T: units that a level takes before it is emptied.
    #[arg(long, value_name = "T", default_value_t = 4)]
    size_ratio: u32,
    /// When runs merge. One of lazy-leveling, leveling, tiering, rocksdb, levelled-from:LEVEL.
    #[arg(long, value_name = "NAME", value_parser = crate::args::policy::policy, default_value = "lazy-leveling")]
    policy: Policy,
    /// How many memtables are flushed.
    #[arg(long, value_name = "N", default_value_t = 80)]
    flushes: u64,
    /// How many keys each of them has.
    #[arg(long, value_name = "N", default_value_t = 50)]
    keys_per_flush: u64,
    /// How many keys can be chosen on the page.
    #[arg(long, value_name = "N", default_value_t = 40)]
    follow: u64,
    /// Seed of the keys.
    #[arg(long, value_name = "S", default_value_t = 42)]
    seed: u64,
}

pub(crate) fn run(arguments: &ReplayArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let recording = match &arguments.run {
        Some(file) if is_same_file(file, &arguments.page) => {
            let problem = "the page would be written over the recording; name another file for it";
            return Err(Failure::Usage(format!("{}: {problem}", file.display())));
        }
        Some(file) => read_recording(file)?,
        None => grown(arguments)?,
    };
    let page = page(&recording)?;
    let failed = |error| Failure::Data(format!("{}: {error}", arguments.page.display()));
    std::fs::write(&arguments.page, page).map_err(failed)?;
    let of_kind = |kind: fn(&ReplayEvent) -> bool| {
        recording.steps.iter().filter(|step| kind(&step.event)).count() as u64
    };
    let flushes = of_kind(|event| matches!(event, ReplayEvent::Flush { .. }));
    let merges = of_kind(|event| matches!(event, ReplayEvent::Merge { .. }));
    let keys = recording.head.keys.len() as u64;
    if json {
        let page = arguments.page.display().to_string();
        let report = json!({ "page": page, "flushes": flushes, "merges": merges, "keys": keys });
        writeln!(out, "{report}")?;
    } else {
        let (merges, keys) = (counted(merges, "merge"), counted(keys, "key"));
        let page = arguments.page.display();
        let flushes = whole(flushes);
        writeln!(out, "{page}: {flushes} flushed, {merges}, {keys} to follow")?;
    }
    Ok(Status::Fine)
}

/// Whether two paths lead to the same existing file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn grown(arguments: &ReplayArgs) -> Result<Recording, Failure> {
    let folder = TemporaryFolder::new()?;
    let plan = ReplayPlan {
        guard: arguments.guard,
        bits_per_key: arguments.bits_per_key,
        size_ratio: arguments.size_ratio,
        policy: arguments.policy.clone(),
        flushes: arguments.flushes,
        keys_per_flush: arguments.keys_per_flush,
        followed: arguments.follow,
        seed: arguments.seed,
        folder: folder.path().join("db"),
    };
    Ok(record_replay(&plan, &mut StageBar::default())?)
}

fn page(recording: &Recording) -> Result<String, Failure> {
    // In a script, a string that contains the end tag would end the script.
    let script = |json: String| json.replace('<', "\\u003c");
    let names: Vec<&str> = palette::LEVELS.iter().map(|colour| colour.name).collect();
    let start = first_to_see(&recording.steps).to_string();
    // The recording is inserted last, so that its text cannot be taken for a placeholder.
    let places = [
        (PALETTE, palette::variables()),
        (COLOUR_LIST, script(serde_json::to_string(&names)?)),
        (START, start),
        (RECORDING, script(serde_json::to_string(recording)?)),
    ];
    let filled = |page: String, (place, text): (&str, String)| page.replacen(place, &text, 1);
    Ok(places.into_iter().fold(PAGE.to_string(), filled))
}

/// Returns the first step with enough runs in two levels or more; if there is none, the first step
/// with the most runs.
fn first_to_see(steps: &[ReplayStep]) -> usize {
    let runs = |step: &ReplayStep| step.levels.iter().map(Vec::len).sum::<usize>();
    let is_seen = |step: &ReplayStep| {
        let levels = step.levels.iter().filter(|runs| !runs.is_empty()).count();
        levels >= 2 && runs(step) >= RUNS_TO_SEE
    };
    let most = steps.iter().map(runs).max().unwrap_or(0);
    let first = steps.iter().position(is_seen);
    first.or_else(|| steps.iter().position(|step| runs(step) == most)).unwrap_or(0)
}

#[cfg(test)]
mod tests;
