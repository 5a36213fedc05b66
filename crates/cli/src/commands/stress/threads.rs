//! `stress --threads --disk`: threads write and read a store on the real disk, checked against a
//! model.
//! ```text
//! 60 s, 4 threads: 12 histories, ...: no wrong answer
//! or: seed 17: what is wrong, the threads, the folder
//! ```
//! Invariant: after a failure the exit status is 1, and the folder stays.

use std::io::Write;
use std::time::Duration;

use trommel_lab::{ThreadsFailure, ThreadsPlan, ThreadsReport, stress_threads};

use crate::commands::stress::args::StressArgs;
use crate::commands::stress::{Place, tell};
use crate::output::progress::StageBar;
use crate::output::table::whole;
use crate::process::failure::Outcome;

/// The default time.
const USUAL_TIME: Duration = Duration::from_secs(60);

pub(crate) fn run(arguments: &StressArgs, threads: u8, json: bool, out: &mut dyn Write) -> Outcome {
    let place = Place::of(arguments)?;
    let (time, folder) = (time(arguments), place.folder.clone());
    let mut plan = ThreadsPlan::new(arguments.seed, threads.into(), time, folder);
    plan.alone = true;
    let report = stress_threads(&plan, &mut StageBar::rated())?;
    let failed = report.failure.is_some();
    place.end(failed);
    tell(&report, text, failed, (json, out))
}

/// Returns how long the run takes.
pub(super) fn time(arguments: &StressArgs) -> Duration {
    let minutes = arguments.minutes.map(|minutes| Duration::from_secs_f64(minutes * 60.0));
    arguments.seconds.map(Duration::from_secs).or(minutes).unwrap_or(USUAL_TIME)
}

fn text(report: &ThreadsReport) -> String {
    let counted = format!(
        "{} writing {}, half as many readers and a keeper, for {:.1} s: {} {}, seeds from {} on, {} openings.\n\
         {} operations, {} writes, {} answers compared; {} flushes, {} merges; {} checkpoints, {} backups and {} shipments opened and compared,\n\
         {} stores verified, {} at rest without a file too many ({:.0} ms at most until then); tables took {:.0} MiB at most.\n\
         The first steps of a scan took {:.1} ms of a processor at most; a log under an interval waited {:.0} ms at most for a sync.\n",
        report.threads,
        if report.threads == 1 { "thread" } else { "threads" },
        report.seconds,
        whole(report.histories),
        if report.histories == 1 { "history" } else { "histories" },
        report.seed,
        whole(report.openings),
        whole(report.operations),
        whole(report.writes),
        whole(report.answers),
        whole(report.flushes),
        whole(report.merges),
        whole(report.checkpoints),
        whole(report.backups),
        whole(report.shipments),
        whole(report.verified),
        whole(report.rests),
        report.rest_ms_max,
        report.table_bytes_max as f64 / f64::from(1 << 20),
        report.step_cpu_ms_max,
        report.unsynced_ms_max,
    );
    match &report.failure {
        None => format!("{counted}No wrong answer, nothing lost, nobody waited for ever.\n"),
        Some(failure) => format!("{counted}\n{}", failure_text(failure)),
    }
}

fn failure_text(failure: &ThreadsFailure) -> String {
    format!(
        "FAILED: seed {}: {}\n\nOpened with {}\n\nThe threads then:\n  {}\n\nThe folder: {}\nThe same plan again (threads interleave in another way): {}\n",
        failure.seed,
        failure.wrong,
        failure.setup,
        failure.threads.join("\n  "),
        failure.left.display(),
        failure.again,
    )
}
