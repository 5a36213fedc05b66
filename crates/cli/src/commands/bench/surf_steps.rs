//! `bench surf-steps`: measures each optimization of SuRF's trie, and prints the results.

use std::io::Write;

use clap::Args;
use trommel_lab::{SurfStepsPlan, surf_steps};

use crate::args::workload::KeySetArgs;
use crate::output::json::print_json_array;
use crate::output::progress::StageBar;
use crate::output::table::{TextTable, nanoseconds, whole};
use crate::process::failure::{Outcome, Status};
use crate::process::message::warning;

/// Which keys, and how many questions.
#[derive(Debug, Args)]
pub(crate) struct SurfStepsArgs {
    #[command(flatten)]
    keys: KeySetArgs,
    /// Points, half of them stored keys.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    queries: usize,
    /// An index of whole keys: stored ones alone are asked for, by Zipf's law (SuRF, sections 4.1.2
    /// and 4.1.3).
    #[arg(long)]
    as_index: bool,
}

pub(crate) fn run(arguments: &SurfStepsArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let plan = SurfStepsPlan {
        dist: arguments.keys.dist.clone(),
        file_format: arguments.keys.file_format,
        keys: arguments.keys.keys,
        queries: arguments.queries,
        index: arguments.as_index,
        seed: arguments.keys.seed,
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
        writeln!(out, "{} keys ({})\n{}", whole(keys), arguments.keys.dist, table.render())?;
    }
    let wrong: u64 = steps.iter().map(|step| step.wrong_answers).sum();
    if wrong > 0 {
        warning(&format!("{wrong} wrong answers"));
        return Ok(Status::No);
    }
    Ok(Status::Fine)
}
