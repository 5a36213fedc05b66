//! Kills a real process under load with SIGKILL, again and again, and compares its files with its
//! promises.
//! ```text
//! session 1: spawn -> writes, flushes, merges ...  -> SIGKILL -> open, compare, verify, close
//! session 2: spawn -> opens what is there, other options      -> SIGKILL -> (sometimes no look)
//! session 3: spawn -> ...
//! ```
//! The operating system has every acknowledged write, synced or not, so a kill may lose none. The
//! simulation (`stress`) tests what a power cut may lose.
//!
//! Invariant: the killer keeps the expected state; the victim only reports its progress.

mod check;
mod child;
mod history;
mod lane_models;
mod session;
mod spaces;
mod watched;
mod wire;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use check::{BEFORE, check_copies, check_store, keep_copy};
use serde::Serialize;

use crate::error::LabError;
use crate::keys::rng::{Rng, scramble};
use crate::progress::Progress;
pub(crate) use child::options as options_of_a_life;
pub use child::{Lie, VictimPlan, run_victim};
use lane_models::LaneModels;
use session::Aim;
use wire::Activity;

/// The most consecutive sessions without a check: each doubles the possible states.
const BLIND_MAX: u32 = 2;

/// How often, and in which folder, processes are killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KillPlan {
    /// The seed of writes, options and moments of kills. Moments are times, so no two runs are the
    /// same.
    pub seed: u64,
    /// How many processes are killed.
    pub kills: u32,
    /// The folder, new or empty, for the store and the files of the test.
    pub folder: PathBuf,
    /// A lie that the test must find.
    pub lie: Option<Lie>,
}

/// The results of a kill test.
#[derive(Clone, Debug, Serialize)]
pub struct KillReport {
    /// The seed.
    pub seed: u64,
    /// Processes that were killed.
    pub kills: u32,
    /// How many kills came during each activity; a kill may come during several, or none.
    pub killed_during: BTreeMap<&'static str, u32>,
    /// How often the store was checked. Otherwise the next process opened it as it was.
    pub looks: u32,
    /// Acknowledged writes.
    pub acknowledged: u64,
    /// Writes that were not acknowledged but are there.
    pub unacknowledged_there: u64,
    /// Checkpoints that open and have the right contents.
    pub checkpoints_whole: u64,
    /// Incomplete checkpoints, which are refused.
    pub checkpoints_refused: u64,
    /// The time of the whole test.
    pub seconds: f64,
    /// The first failure, if there was one.
    pub failure: Option<KillFailure>,
}

/// A failure of the test.
#[derive(Clone, Debug, Serialize)]
pub struct KillFailure {
    /// The number of the kill after which it was found.
    pub kill: u32,
    /// What is wrong.
    pub wrong: String,
    /// The store as the killed process left it.
    pub left: PathBuf,
    /// The command that repeats the test, with other moments of kills.
    pub again: String,
}

/// Kills processes until one leaves something wrong. `victim` returns the command that runs
/// [`run_victim`] with standard output as its pipe.
///
/// # Errors
/// `Folder` if the folder cannot be used.
pub fn kill_test(
    plan: &KillPlan,
    victim: &dyn Fn(&VictimPlan) -> Command,
    progress: &mut dyn Progress,
) -> crate::error::Result<KillReport> {
    make_empty(&plan.folder)?;
    let mut test = KillTest {
        plan,
        rng: Rng::new(plan.seed),
        lanes: LaneModels::new(plan.seed),
        blind: 0,
        report: empty_report(plan.seed),
    };
    let start = Instant::now();
    progress.stage("kills", plan.kills.into());
    for session in 1..=plan.kills {
        if let Err(wrong) = test.kill_one(session, victim) {
            test.report.failure = Some(test.failure(session, wrong));
            break;
        }
        progress.advance(1);
    }
    test.report.seconds = start.elapsed().as_secs_f64();
    Ok(test.report)
}

/// Creates a folder, or accepts an empty one. An error if it has files.
pub(crate) fn make_empty(folder: &Path) -> crate::error::Result<()> {
    let problem = |problem: String| LabError::Folder { path: folder.to_path_buf(), problem };
    std::fs::create_dir_all(folder).map_err(|error| problem(error.to_string()))?;
    let mut files = std::fs::read_dir(folder).map_err(|error| problem(error.to_string()))?;
    if files.next().is_some() {
        return Err(problem("is not empty: name a folder that is new or empty".into()));
    }
    Ok(())
}

fn empty_report(seed: u64) -> KillReport {
    KillReport {
        seed,
        kills: 0,
        killed_during: Activity::ALL.iter().map(|activity| (activity.name(), 0)).collect(),
        looks: 0,
        acknowledged: 0,
        unacknowledged_there: 0,
        checkpoints_whole: 0,
        checkpoints_refused: 0,
        seconds: 0.0,
        failure: None,
    }
}

struct KillTest<'p> {
    plan: &'p KillPlan,
    rng: Rng,
    lanes: LaneModels,
    /// Sessions since the last check.
    blind: u32,
    report: KillReport,
}

impl KillTest<'_> {
    fn kill_one(
        &mut self,
        session: u32,
        victim: &dyn Fn(&VictimPlan) -> Command,
    ) -> Result<(), String> {
        let KillPlan { seed, folder, lie, .. } = self.plan;
        // The draws of a session follow from its number alone.
        self.rng = Rng::new(seed ^ scramble(u64::from(session) << 32));
        let plan = VictimPlan { folder: folder.clone(), seed: *seed, session, lie: *lie };
        let heard = session::run(victim(&plan), Aim::draw_from(&mut self.rng))?;
        self.report.kills += 1;
        for activity in heard.under_way() {
            *self.report.killed_during.entry(activity.name()).or_default() += 1;
        }
        self.report.acknowledged += heard.done.iter().map(|&done| u64::from(done)).sum::<u64>();
        keep_copy(folder).map_err(|error| format!("the store cannot be copied: {error}"))?;
        let before = self.lanes.lens();
        self.lanes.add_session(session, &heard);
        let copies = check_copies(folder, &self.lanes, &before, &heard, &mut self.rng)?;
        self.report.checkpoints_whole += copies.0;
        self.report.checkpoints_refused += copies.1;
        let is_last = session == self.plan.kills;
        self.blind += 1;
        // Without a log, the next process continues from the actual state, so that state must be
        // known.
        let may_wait = self.blind <= BLIND_MAX && !self.lanes.has_unlogged();
        if may_wait && !is_last && self.rng.below(4) == 0 {
            return Ok(());
        }
        self.blind = 0;
        self.report.looks += 1;
        self.report.unacknowledged_there += check_store(folder, &mut self.lanes, &mut self.rng)?;
        Ok(())
    }

    fn failure(&self, kill: u32, wrong: String) -> KillFailure {
        let KillPlan { seed, kills, folder, .. } = self.plan;
        let again = format!("trommel stress --kills {kills} --seed {seed}");
        KillFailure { kill, wrong, left: folder.join(BEFORE), again }
    }
}
