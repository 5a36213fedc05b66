//! `stress --transactions --threads --disk`: runs transactions in threads, and replays them one by
//! one.
//! ```text
//! 60 s, 4 threads: 300,000 commits, ...: as if one had come after the other
//! or: seed 17: what is wrong, the options, the folder
//! ```
//! Invariant: after a failure the exit status is 1, and the folder stays.

use std::io::Write;

use trommel_lab::{CommitsFailure, CommitsPlan, CommitsReport, stress_commits};

use crate::commands::stress::args::StressArgs;
use crate::commands::stress::threads::time;
use crate::commands::stress::{Place, tell};
use crate::output::progress::StageBar;
use crate::output::table::whole;
use crate::process::failure::Outcome;

pub(crate) fn run(arguments: &StressArgs, threads: u8, json: bool, out: &mut dyn Write) -> Outcome {
    let place = Place::of(arguments)?;
    let plan = CommitsPlan {
        seed: arguments.seed,
        threads: threads.into(),
        time: time(arguments),
        folder: place.folder.clone(),
    };
    let report = stress_commits(&plan, &mut StageBar::rated())?;
    let failed = report.failure.is_some();
    place.end(failed);
    tell(&report, text, failed, (json, out))
}

fn text(report: &CommitsReport) -> String {
    let counted = format!(
        "{} {} for {:.1} s: {} {}, seeds from {} on, {} openings.\n\
         {} transactions have committed, {} had to be given up; {} reads made again in the order of commits,\n\
         {} added to counters; {} flushes, {} merges.\n",
        report.threads,
        if report.threads == 1 { "thread" } else { "threads" },
        report.seconds,
        whole(report.histories),
        if report.histories == 1 { "history" } else { "histories" },
        report.seed,
        whole(report.openings),
        whole(report.commits),
        whole(report.conflicts),
        whole(report.reads),
        whole(report.adds),
        whole(report.flushes),
        whole(report.merges),
    );
    match &report.failure {
        None => {
            format!("{counted}Every read is what it was: as if one had come after the other.\n")
        }
        Some(failure) => format!("{counted}\n{}", failure_text(failure)),
    }
}

fn failure_text(failure: &CommitsFailure) -> String {
    format!(
        "FAILED: seed {}: {}\n\nOpened with {}\n\nThe folder: {}\nThe same plan again (threads interleave in another way): {}\n",
        failure.seed,
        failure.wrong,
        failure.setup,
        failure.left.display(),
        failure.again,
    )
}
