//! `bench surf-steps`: what makes SuRF's trie fast, step by step.

use std::io::Write;

use clap::Args;
use trommel_lab::{Dist, FileFormat, SurfStepsPlan, surf_steps};

use crate::output::json::print_json_array;
use crate::output::progress::StageBar;
use crate::output::table::{TextTable, nanoseconds, whole};
use crate::process::failure::{Outcome, Status};

/// Which keys, and how many questions.
#[derive(Debug, Args)]
pub(crate) struct SurfStepsArgs {
    #[arg(long, value_name = "NAME", default_value = "uniform", help = crate::args::workload::dist_help())]
    dist: Dist,
    /// How a file of keys is written: lines, u64le.
    #[arg(long, value_name = "NAME", default_value = "lines")]
    file_format: FileFormat,
    /// How many keys. [default: 1000000, or all of a file]
    #[arg(long, value_name = "N")]
    keys: Option<usize>,
    /// Points, half of which are stored keys.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    queries: usize,
    /// Seed of keys and questions.
    #[arg(long, value_name = "S", default_value_t = 42)]
    seed: u64,
}

pub(crate) fn run(arguments: &SurfStepsArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let plan = SurfStepsPlan {
        dist: arguments.dist.clone(),
        file_format: arguments.file_format,
        keys: arguments.keys,
        queries: arguments.queries,
        seed: arguments.seed,
    };
    let steps = surf_steps(&plan, &mut StageBar::default())?;
    if json {
        print_json_array(out, &steps)?;
    } else {
        let mut table = TextTable::new(1, &["step", "a point", "bits per key"]);
        for step in &steps {
            let bits = format!("{:.2}", step.filter_bits_per_key);
            table.row(vec![step.step.into(), nanoseconds(step.ns_per_op), bits]);
        }
        let keys = steps.first().map_or(0, |step| step.keys);
        writeln!(out, "{} keys ({})\n{}", whole(keys), arguments.dist, table.render())?;
    }
    let wrong: u64 = steps.iter().map(|step| step.wrong_answers).sum();
    if wrong > 0 {
        eprintln!("trommel: {wrong} wrong answers");
        return Ok(Status::No);
    }
    Ok(Status::Fine)
}
