//! The plan and the report of a run.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

/// How long after the interval a sync may begin, since threads may wait for a processor.
const SYNC_SLACK: Duration = Duration::from_secs(2);
/// The longest time that a thread may spend on one activity.
const PATIENCE: Duration = Duration::from_secs(60);

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadsPlan {
    /// The first seed.
    pub seed: u64,
    /// Writer threads. Half as many threads read, and one maintains the store.
    pub threads: usize,
    /// The time after which no history begins, and the last one is cut short.
    pub time: Duration,
    /// The folder, new or empty, for the store and its checkpoints.
    pub folder: PathBuf,
    /// Whether this process has no other stores, so that no thread of a store may be left over.
    pub alone: bool,
    /// The longest time that a thread may spend on one activity.
    pub(super) patience: Duration,
    /// How long after the interval a sync may begin.
    pub(super) sync_slack: Duration,
}

impl ThreadsPlan {
    /// Plans histories from a seed on, in a new or empty folder.
    pub fn new(seed: u64, threads: usize, time: Duration, folder: PathBuf) -> Self {
        let (patience, sync_slack) = (PATIENCE, SYNC_SLACK);
        ThreadsPlan { seed, threads, time, folder, alone: false, patience, sync_slack }
    }
}

/// What ran, and what was found.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadsReport {
    /// The first seed.
    pub seed: u64,
    /// Writer threads.
    pub threads: usize,
    /// Histories that were completed.
    pub histories: u64,
    /// How often a store was opened.
    pub openings: u64,
    /// Operations of the writer threads.
    pub operations: u64,
    /// Puts and deletions; each key of a batch counts.
    pub writes: u64,
    /// Answers that were checked.
    pub answers: u64,
    /// Flushes.
    pub flushes: u64,
    /// Merges.
    pub merges: u64,
    /// Checkpoints that were made, opened and compared.
    pub checkpoints: u64,
    /// Backups that were made, verified, restored and compared.
    pub backups: u64,
    /// Shipments of changes whose ends were restored and compared.
    pub shipments: u64,
    /// Verifications of the store, most of them while others wrote.
    pub verified: u64,
    /// How often a store at rest had no superfluous files.
    pub rests: u64,
    /// The highest cost of a scan's first steps, in milliseconds of CPU time.
    pub step_cpu_ms_max: f64,
    /// The longest time that a store at rest had superfluous files, in milliseconds.
    pub rest_ms_max: f64,
    /// The longest time that a log under `SyncPolicy::Interval` waited for a sync to begin, in
    /// milliseconds.
    pub unsynced_ms_max: f64,
    /// The most memory of the process between two openings, in bytes.
    pub resident_bytes_max: u64,
    /// The peak size of the tables' files, in bytes.
    pub table_bytes_max: u64,
    /// The time of the whole run.
    pub seconds: f64,
    /// The first failure, if there was one.
    pub failure: Option<ThreadsFailure>,
}

/// A failure of a history.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadsFailure {
    /// The seed of the history.
    pub seed: u64,
    /// What is wrong.
    pub wrong: String,
    /// The options of the store at that time.
    pub setup: String,
    /// What each thread was doing.
    pub threads: Vec<String>,
    /// The folder in which the store was left.
    pub left: PathBuf,
    /// The command that repeats the plan; threads will interleave differently.
    pub again: String,
}
