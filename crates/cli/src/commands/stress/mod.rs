//! `stress`: runs simulated histories, and prints a failing one in shortened form.
//! ```text
//! 500 histories of 6,000 operations: no wrong answer      or: seed 17, step 4123: what differs
//!                                                             setup, 5 steps, the command again
//! ```
//! Invariant: the exit status is 1 if a history failed.

pub(crate) mod args;
mod commits;
mod followers;
mod kills;
mod threads;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use trommel_lab::{HistoryKind, StressFailure, StressPlan, StressReport, stress};

use crate::commands::stress::args::StressArgs;
use crate::output::progress::StageBar;
use crate::output::table::whole;
use crate::process::failure::{Failure, Outcome, Status, told};
use crate::process::temporary::TemporaryFolder;

pub(crate) fn run(arguments: &StressArgs, json: bool, out: &mut dyn Write) -> Outcome {
    if let (Some(kills), Some(followers)) = (arguments.kills, arguments.followers) {
        return followers::run(arguments, (kills, followers), json, out);
    }
    if let Some(kills) = arguments.kills {
        return kills::run(arguments, kills, json, out);
    }
    if let Some(threads) = arguments.threads.filter(|_| arguments.transactions) {
        return commits::run(arguments, threads, json, out);
    }
    if let Some(threads) = arguments.threads {
        return threads::run(arguments, threads, json, out);
    }
    let time = arguments.minutes.map(|minutes| Duration::from_secs_f64(minutes * 60.0));
    // With a time but no number, there is no limit to the number of seeds.
    let seeds = arguments.seeds.or(if time.is_none() { Some(1) } else { None });
    let kind = if arguments.transactions { HistoryKind::Transactions } else { HistoryKind::Tree };
    let plan = StressPlan { seed: arguments.seed, seeds, steps: arguments.steps, time, kind };
    let report = stress(&plan, &mut StageBar::rated())?;
    tell(&report, text, report.failure.is_some(), (json, out))
}

/// Prints a report. Exit status 1: the report is of a failure.
fn tell<R: Serialize>(
    report: &R,
    text: impl FnOnce(&R) -> String,
    failed: bool,
    (json, out): (bool, &mut dyn Write),
) -> Outcome {
    let written = match json {
        true => writeln!(out, "{}", serde_json::to_string_pretty(report)?),
        false => out.write_all(text(report).as_bytes()),
    };
    told(Ok(if failed { Status::No } else { Status::Fine }), written)
}

/// The folder of a store on the real disk.
struct Place {
    folder: PathBuf,
    temporary: Option<TemporaryFolder>,
}

impl Place {
    fn of(arguments: &StressArgs) -> Result<Self, Failure> {
        let temporary = arguments.dir.is_none().then(TemporaryFolder::new).transpose()?;
        let of_temporary = temporary.as_ref().map(|folder| folder.path().to_path_buf());
        let folder = arguments.dir.clone().or(of_temporary).unwrap_or_default();
        Ok(Place { folder, temporary })
    }

    /// Removes a temporary folder, unless it is evidence of a failure.
    fn end(self, failed: bool) {
        if let Some(temporary) = self.temporary.filter(|_| failed) {
            temporary.keep();
        }
    }
}

/// Formats the followers and backups. Histories of transactions have none.
fn beside(report: &StressReport) -> String {
    if report.followers + report.backups == 0 {
        return String::new();
    }
    format!(
        "{} followers, {} looks at them; {} backups, {} shipments of changes, {} restored; {} times files were gone.\n",
        whole(report.followers),
        whole(report.followed),
        whole(report.backups),
        whole(report.shipped),
        whole(report.restored),
        whole(report.gone),
    )
}

fn text(report: &StressReport) -> String {
    let counted = format!(
        "{} {} of {} operations, seeds from {} on: {} operations in {:.1} s, {} in a second.\n\
         {} answers compared; stores opened again {} times, {} of them after a power cut;\n\
         {} copies with a flipped bit, {} copies repaired, {} checkpoints; {} flushes, {} merges,\n\
         {} errors while the disk could fail.\n",
        whole(report.seeds),
        if report.seeds == 1 { "history" } else { "histories" },
        whole(u64::from(report.steps)),
        report.seed,
        whole(report.operations),
        report.seconds,
        whole(report.ops_per_s as u64),
        whole(report.answers),
        whole(report.reopened),
        whole(report.power_cuts),
        whole(report.rotten),
        whole(report.repairs),
        whole(report.checkpoints),
        whole(report.flushes),
        whole(report.merges),
        whole(report.errors),
    );
    let transactions = match report.commits + report.conflicts {
        0 => String::new(),
        _ => format!(
            "{} transactions have committed, {} had to fail, and did; {} calls met a locked key.\n",
            whole(report.commits),
            whole(report.conflicts),
            whole(report.lock_timeouts)
        ),
    };
    let counted = counted + &beside(report) + &transactions;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_tells_its_steps_and_how_to_repeat_it() {
        let kind = HistoryKind::Tree;
        let plan = StressPlan { seed: 3, seeds: Some(1), steps: 50, time: None, kind };
        let fine = stress(&plan, &mut trommel_lab::Silent).expect("a plan with an end");
        let status = |report: &StressReport| {
            tell(report, text, report.failure.is_some(), (false, &mut Vec::new())).ok()
        };
        assert_eq!(status(&fine), Some(Status::Fine));
        let failure = StressFailure {
            seed: 3,
            step: 41,
            wrong: "get \"a\": found nothing, expected #7".into(),
            setup: "guard grf".into(),
            history: vec!["    40  write \"a\" = #7".into(), "    41  get \"a\"".into()],
            wrong_in_short: "get \"a\": still nothing".into(),
            again: "trommel stress --seed 3 --steps 50".into(),
        };
        let failed = StressReport { failure: Some(failure), ..fine };
        assert_eq!(status(&failed), Some(Status::No));
        let text = text(&failed);
        for part in [
            "FAILED: seed 3, step 41: get",
            "Shortened to 2 operations; first opened with guard grf\n    40  write",
            "then: get \"a\": still nothing",
            "Again: trommel stress --seed 3 --steps 50\n",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
}
