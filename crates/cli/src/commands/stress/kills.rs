//! `stress --kills`: kills processes of this program, and checks what they left.
//! ```text
//! 100 processes killed: open 21, write 64, flush 17, ...
//! or: kill 17: what is wrong, and where the store is
//! ```
//! Invariant: exit status 1 if something was wrong; then the folder stays.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use trommel_lab::{KillPlan, KillReport, VictimPlan, kill_test};

use crate::commands::stress::args::StressArgs;
use crate::output::progress::StageBar;
use crate::output::table::whole;
use crate::process::failure::{Failure, Outcome, Status};
use crate::process::temporary::TemporaryFolder;

pub(crate) fn run(arguments: &StressArgs, kills: u32, json: bool, out: &mut dyn Write) -> Outcome {
    let temporary = arguments.dir.is_none().then(TemporaryFolder::new).transpose()?;
    let of_temporary = temporary.as_ref().map(|folder| folder.path().to_path_buf());
    let folder = arguments.dir.clone().or(of_temporary).unwrap_or_default();
    let plan = KillPlan { seed: arguments.seed, kills, folder, lie: arguments.lie };
    let program = std::env::current_exe();
    let program = program.map_err(|error| Failure::Data(format!("this program: {error}")))?;
    let command = |victim: &VictimPlan| command_of(&program, victim);
    let report = kill_test(&plan, &command, &mut StageBar::rated())?;
    if let Some(temporary) = temporary.filter(|_| report.failure.is_some()) {
        // The folder stays as evidence.
        temporary.keep();
    }
    if json {
        writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?;
    } else {
        out.write_all(text(&report).as_bytes())?;
    }
    Ok(if report.failure.is_none() { Status::Fine } else { Status::No })
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
