//! `stress --kills --followers`: kills a writer process while other processes follow the store.
//! ```text
//! 100 writers killed beside 3 followers: 1,234,567 answers at 8,765 numbers ...
//! or: what is wrong, and where the store is
//! ```
//! Invariant: after a failure the exit status is 1, and the folder stays.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use trommel_lab::{FollowPlan, FollowReport, FollowRole, follow_test};

use crate::commands::stress::args::StressArgs;
use crate::commands::stress::{Place, tell};
use crate::output::progress::StageBar;
use crate::output::table::whole;
use crate::process::failure::{Failure, Outcome};

pub(crate) fn run(
    arguments: &StressArgs,
    (kills, followers): (u32, u32),
    json: bool,
    out: &mut dyn Write,
) -> Outcome {
    let place = Place::of(arguments)?;
    let folder = place.folder.clone();
    let plan = FollowPlan { seed: arguments.seed, kills, followers, folder: folder.clone() };
    let program = std::env::current_exe();
    let program = program.map_err(|error| Failure::Data(format!("this program: {error}")))?;
    let command = |role: &FollowRole| command_of(&program, role);
    let report = follow_test(&plan, &command, &mut StageBar::rated())?;
    let failed = report.failure.is_some();
    place.end(failed);
    tell(&report, |report| text(report, &folder), failed, (json, out))
}

fn command_of(program: &Path, role: &FollowRole) -> Command {
    let mut command = Command::new(program);
    command.arg("victim").arg(&role.folder);
    command.arg("--seed").arg(role.seed.to_string());
    command.arg("--session").arg(role.number.to_string());
    command.arg("--along").arg(if role.writes { "writer" } else { "reader" });
    command
}

fn text(report: &FollowReport, folder: &Path) -> String {
    let of_all = |count: fn(&trommel_lab::FollowerReport) -> u64| {
        whole(report.followers.iter().map(count).sum())
    };
    let counted = format!(
        "{} writers killed beside {} followers in {:.1} s, seed {}; {} writes went well.\n\
         {} answers compared at {} numbers, and {} times at older ones; {} values were long enough to be apart.\n\
         {} reads were told that a file is gone.\n",
        whole(report.kills.into()),
        report.followers.len(),
        report.seconds,
        report.seed,
        whole(report.acknowledged),
        whole(report.answers),
        of_all(|follower| follower.moments),
        of_all(|follower| follower.held),
        of_all(|follower| follower.long),
        of_all(|follower| follower.gone),
    );
    match &report.failure {
        None => format!("{counted}None is wrong, and none is from a state that never was.\n"),
        Some(wrong) => {
            format!("{counted}\nFAILED: {wrong}\n\nThe store: {}\n", folder.display())
        }
    }
}
