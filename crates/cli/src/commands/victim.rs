//! `victim`: the process that `stress --kills` starts and kills, or a follower process.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;

use clap::Args;
use trommel_lab::{FollowRole, Lie, VictimPlan, run_follow_role, run_victim};

use crate::commands::stress::args::lie;
use crate::process::failure::{Outcome, Status};

#[derive(Debug, Args)]
pub(crate) struct VictimArgs {
    folder: PathBuf,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    session: u32,
    #[arg(long, value_parser = lie)]
    lie: Option<Lie>,
    /// With followers: whether it writes, or reads along.
    #[arg(long, value_name = "ROLE", value_parser = ["writer", "reader"])]
    along: Option<String>,
}

/// Runs the process.
pub(crate) fn run(arguments: &VictimArgs) -> Outcome {
    let VictimArgs { folder, seed, session, lie, along } = arguments;
    if let Some(role) = along {
        let (folder, seed, number) = (folder.clone(), *seed, *session);
        let role = FollowRole { folder, seed, number, writes: role == "writer" };
        run_follow_role(&role, &mut std::io::stdout())?;
        return Ok(Status::Fine);
    }
    let plan = VictimPlan { folder: folder.clone(), seed: *seed, session: *session, lie: *lie };
    // Standard output is locked for one thread, so the pipe gets a separate handle.
    let pipe = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    run_victim(&plan, pipe)?;
    Ok(Status::Fine)
}
