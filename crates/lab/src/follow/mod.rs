//! Processes that follow a store while the process that writes it is killed again and again.
//! ```text
//! writer      attempt 1, 2, 3 ...  --> store   failed appends, full disks, merges, drops, SIGKILL
//!                  '-- went well ----> ledger  its number, and which attempt it was
//! followers   store at number n    <-- equal? --> what the attempts up to n make of nothing
//! ```
//! Each attempt follows from its number and the seed. So a follower derives the contents at any
//! sequence number from the ledger alone.
//!
//! Invariant: a follower reads the store only through `Db::follow`. The writer does not know about
//! followers.

mod attempt;
mod faulty;
mod ledger;
mod reader;
mod writer;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};
use crate::keys::rng::Rng;
use crate::kill::make_empty;
use crate::progress::Progress;

/// The longest time between two kills, in milliseconds.
const LIFE_MAX_MS: u64 = 700;

/// The followers, and how often the writer is killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowPlan {
    /// The seed of the writes, the faults and the moments of kills.
    pub seed: u64,
    /// How often the writer is killed.
    pub kills: u32,
    /// Follower processes.
    pub followers: u32,
    /// The folder, new or empty, for the store and the files of the test.
    pub folder: PathBuf,
}

/// The role of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowRole {
    /// The folder of the test.
    pub folder: PathBuf,
    /// The seed of the test.
    pub seed: u64,
    /// Its number among the processes of its kind.
    pub number: u32,
    /// Whether it is the writer.
    pub writes: bool,
}

/// The results of one follower.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FollowerReport {
    /// Answers that were compared.
    pub answers: u64,
    /// Values among them that were long enough to be stored apart.
    pub long: u64,
    /// Moments at which the store was checked.
    pub moments: u64,
    /// Checks of a held moment after the follower had moved on.
    pub held: u64,
    /// Reads that ended with `Gone`.
    pub gone: u64,
    /// The newest sequence number.
    pub sequence: u64,
    /// The first error, if there was one.
    pub wrong: Option<String>,
}

/// The results of a test.
#[derive(Clone, Debug, Serialize)]
pub struct FollowReport {
    /// The seed.
    pub seed: u64,
    /// How often the writer was killed.
    pub kills: u32,
    /// Answers that all followers compared.
    pub answers: u64,
    /// Successful writes.
    pub acknowledged: u64,
    /// The results of each follower.
    pub followers: Vec<FollowerReport>,
    /// The time of the whole test.
    pub seconds: f64,
    /// The first error, if there was one.
    pub failure: Option<String>,
}

/// Runs one process. A follower writes its results to `out`.
///
/// # Errors
/// `Victim`: the writer cannot go on.
pub fn run_follow_role(role: &FollowRole, out: &mut dyn std::io::Write) -> Result<()> {
    if role.writes {
        return writer::run(role);
    }
    let report = reader::run(role);
    let text = serde_json::to_string(&report).map_err(|error| LabError::Victim(error.to_string()));
    writeln!(out, "{}", text?).map_err(|error| LabError::Victim(error.to_string()))
}

/// Kills writers as often as planned, and then compares one last time. `process` returns the
/// command that runs [`run_follow_role`].
///
/// # Errors
/// `Folder` if the folder cannot be used; `Victim` if a process cannot be started.
pub fn follow_test(
    plan: &FollowPlan,
    process: &dyn Fn(&FollowRole) -> Command,
    progress: &mut dyn Progress,
) -> Result<FollowReport> {
    make_empty(&plan.folder)?;
    let start = |writes: bool, number: u32| -> Result<Child> {
        let (folder, seed) = (plan.folder.clone(), plan.seed);
        let mut command = process(&FollowRole { folder, seed, number, writes });
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.spawn().map_err(|error| LabError::Victim(format!("a process: {error}")))
    };
    let (mut rng, begun) = (Rng::new(plan.seed), Instant::now());
    let mut writer = start(true, 0)?;
    let followers = (0..plan.followers).map(|number| start(false, number));
    let mut followers = followers.collect::<Result<Vec<Child>>>()?;
    progress.stage("kills", plan.kills.into());
    let (mut kills, mut failure) = (0, None);
    while kills < plan.kills && failure.is_none() {
        std::thread::sleep(Duration::from_millis(1 + rng.below(LIFE_MAX_MS)));
        failure = ended_early(&mut writer, "the writer")
            .or_else(|| followers.iter_mut().find_map(|child| ended_early(child, "a follower")));
        let _ = writer.kill();
        let _ = writer.wait();
        kills += 1;
        writer = start(true, kills)?;
        progress.advance(1);
    }
    let written = std::fs::write(plan.folder.join(ledger::END), b"");
    written.map_err(|error| LabError::Victim(error.to_string()))?;
    let closed = writer.wait().map_err(|error| LabError::Victim(error.to_string()))?;
    if !closed.success() {
        failure.get_or_insert(format!("the writer: {closed}"));
    }
    let followers: Vec<FollowerReport> = followers.into_iter().map(report_of).collect();
    let wrong = followers.iter().find_map(|follower| follower.wrong.clone());
    Ok(FollowReport {
        seed: plan.seed,
        kills,
        answers: followers.iter().map(|follower| follower.answers).sum(),
        acknowledged: acknowledged(&plan.folder),
        followers,
        seconds: begun.elapsed().as_secs_f64(),
        failure: wrong.or(failure),
    })
}

fn acknowledged(folder: &Path) -> u64 {
    let all = ledger::Ledger::open(folder).all();
    all.iter().filter(|done| done.attempt != ledger::LAST_OF_ALL).count() as u64
}

fn ended_early(child: &mut Child, who: &str) -> Option<String> {
    let ended = child.try_wait().ok().flatten()?;
    Some(format!("{who} has ended: {ended}"))
}

/// Waits for a follower, and reads its results.
fn report_of(mut child: Child) -> FollowerReport {
    let mut text = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        let _ = pipe.read_to_string(&mut text);
    }
    let ended = child.wait();
    serde_json::from_str(&text).unwrap_or_else(|_| {
        let wrong = Some(format!("a follower has told nothing: {ended:?}"));
        FollowerReport { wrong, ..FollowerReport::default() }
    })
}
