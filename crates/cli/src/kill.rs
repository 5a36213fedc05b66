//! `stress --kills`: kills processes of this program, and tells what they left.
//! ```text
//! 100 processes killed: open 21, write 64, flush 17, ...      or: kill 17: what is wrong, and where the store is
//! ```
//! Invariant: exit status 1 if something was wrong; then the folder stays.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use trommel_lab::{KillPlan, KillReport, Lie, VictimPlan, kill_test, run_victim};

use crate::args::StressArgs;
use crate::failure::{Failure, Outcome, Status};
use crate::progress::StageBar;
use crate::table::whole;
use crate::temporary::TemporaryFolder;

#[derive(Debug, Args)]
pub(crate) struct VictimArgs {
    folder: PathBuf,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    session: u32,
    #[arg(long, value_parser = lie)]
    lie: Option<Lie>,
}

/// Reads the name of a lie.
pub(crate) fn lie(name: &str) -> Result<Lie, String> {
    Lie::named(name).ok_or_else(|| "there are: early-ack, split-batch, lost-write".into())
}

/// Is the process that is to be killed.
pub(crate) fn victim(arguments: &VictimArgs) -> Outcome {
    let VictimArgs { folder, seed, session, lie } = arguments;
    let plan = VictimPlan { folder: folder.clone(), seed: *seed, session: *session, lie: *lie };
    // A door of its own to the pipe: that of the whole program is for one thread at a time.
    let pipe = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    run_victim(&plan, pipe)?;
    Ok(Status::Fine)
}

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
        // What is wrong is to be looked at.
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
