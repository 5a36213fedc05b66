//! `stress --kills`: kills processes of this program, and checks the files that they left.
//! ```text
//! 100 processes killed: open 21, write 64, flush 17, ...
//! or: kill 17: what is wrong, and where the store is
//! ```
//! Invariant: after a failure the exit status is 1, and the folder stays.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use trommel_lab::{KillPlan, KillReport, VictimPlan, kill_test};

use crate::commands::stress::args::StressArgs;
use crate::commands::stress::{Place, tell};
use crate::output::progress::StageBar;
use crate::output::table::whole;
use crate::process::failure::{Failure, Outcome};

pub(crate) fn run(arguments: &StressArgs, kills: u32, json: bool, out: &mut dyn Write) -> Outcome {
    let place = Place::of(arguments)?;
    let folder = place.folder.clone();
    let plan = KillPlan { seed: arguments.seed, kills, folder, lie: arguments.lie };
    let program = std::env::current_exe();
    let program = program.map_err(|error| Failure::Data(format!("this program: {error}")))?;
    let command = |victim: &VictimPlan| command_of(&program, victim);
    let report = kill_test(&plan, &command, &mut StageBar::rated())?;
    let failed = report.failure.is_some();
    place.end(failed);
    tell(&report, text, failed, (json, out))
}

fn command_of(program: &Path, victim: &VictimPlan) -> Command {
    let mut command = Command::new(program);
    command.arg("victim").arg(&victim.folder);
    command.arg("--seed").arg(victim.seed.to_string());
    command.arg("--session").arg(victim.session.to_string());
    if let Some(lie) = victim.lie {
        command.arg("--lie").arg(lie.name());
    }
    command
}

fn text(report: &KillReport) -> String {
    let during = report.killed_during.iter().map(|(name, count)| format!("{name} {count}"));
    let counted = format!(
        "{} processes killed in {:.1} s, seed {}; during {}.\n\
         {} acknowledged writes compared in {} looks, and {} that were under way and are there;\n\
         {} checkpoints are whole, {} were cut short and are refused.\n",
        whole(report.kills.into()),
        report.seconds,
        report.seed,
        during.collect::<Vec<_>>().join(", "),
        whole(report.acknowledged),
        whole(report.looks.into()),
        whole(report.unacknowledged_there),
        whole(report.checkpoints_whole),
        whole(report.checkpoints_refused),
    );
    match &report.failure {
        None => format!("{counted}Nothing acknowledged is missing, no batch is torn.\n"),
        Some(failure) => format!(
            "{counted}\nFAILED at kill {}: {}\n\nThe store as it was left: {}\nAgain, at other moments: {}\n",
            failure.kill,
            failure.wrong,
            failure.left.display(),
            failure.again,
        ),
    }
}
