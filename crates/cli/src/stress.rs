//! `stress`: runs simulated histories, and tells the one that fails, shortened.
//! ```text
//! 500 histories of 6,000 operations: no wrong answer      or: seed 17, step 4123: what differs
//!                                                             setup, 5 steps, the command that repeats it
//! ```
//! Invariant: exit status 1 if a history failed.

use std::io::Write;
use std::time::Duration;

use trommel_lab::{StressFailure, StressPlan, StressReport, stress};

use crate::args::StressArgs;
use crate::failure::{Outcome, Status};
use crate::progress::StageBar;
use crate::table::whole;

pub(crate) fn run(arguments: &StressArgs, json: bool, out: &mut dyn Write) -> Outcome {
    let time = arguments.minutes.map(|minutes| Duration::from_secs_f64(minutes * 60.0));
    // With a time and no number, as many as there is time for.
    let seeds = arguments.seeds.or(if time.is_none() { Some(1) } else { None });
    let plan = StressPlan { seed: arguments.seed, seeds, steps: arguments.steps, time };
    let report = stress(&plan, &mut StageBar::rated())?;
    if json {
        writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?;
    } else {
        out.write_all(text(&report).as_bytes())?;
    }
    Ok(if report.failure.is_none() { Status::Fine } else { Status::No })
}

fn text(report: &StressReport) -> String {
    let counted = format!(
        "{} histories of {} operations, seeds from {} on: {} operations in {:.1} s, {} in a second.\n\
         {} answers compared; stores opened again {} times, {} of them after a power cut;\n\
         {} copies with a flipped bit; {} flushes, {} merges, {} errors while the disk could fail.\n",
        whole(report.seeds),
        whole(u64::from(report.steps)),
        report.seed,
        whole(report.operations),
        report.seconds,
        whole(report.ops_per_s as u64),
        whole(report.answers),
        whole(report.reopened),
        whole(report.power_cuts),
        whole(report.rotten),
        whole(report.flushes),
        whole(report.merges),
        whole(report.errors),
    );
    match &report.failure {
        None => format!("{counted}No wrong answer, nothing lost.\n"),
        Some(failure) => format!("{counted}\n{}", failure_text(failure)),
    }
}

fn failure_text(failure: &StressFailure) -> String {
    format!(
        "FAILED: seed {}, step {}: {}\n\nShortened to {} operations; first opened with {}\n{}\nthen: {}\n\nAgain: {}\n",
        failure.seed,
        failure.step,
        failure.wrong,
        failure.history.len(),
        failure.setup,
        failure.history.join("\n"),
        failure.wrong_in_short,
        failure.again,
    )
}
