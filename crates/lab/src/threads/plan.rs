//! The plan of a run, and its report.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

/// How long after the interval a sync may begin: threads may wait for a processor.
const SYNC_SLACK: Duration = Duration::from_secs(2);
/// The longest that a thread may be at one thing.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadsPlan {
    /// The first seed.
    pub seed: u64,
    /// Threads that write; beside them half as many read, and one maintains the store.
    pub threads: usize,
    /// No history begins after this time, and the last is cut short.
    pub time: Duration,
    /// The folder, new or empty: it takes the store and its checkpoints.
    pub folder: PathBuf,
    /// Whether this process has no other stores: then no thread of a store may be left.
    pub alone: bool,
    /// The longest that a thread may be at one thing.
    pub(super) patience: Duration,
    /// How long after the interval a sync may begin.
    pub(super) sync_slack: Duration,
}

impl ThreadsPlan {
    /// Histories from a seed on, in a folder that is new or empty, for some time.
    pub fn new(seed: u64, threads: usize, time: Duration, folder: PathBuf) -> Self {
        let (patience, sync_slack) = (PATIENCE, SYNC_SLACK);
        ThreadsPlan { seed, threads, time, folder, alone: false, patience, sync_slack }
    }
}

/// What was run, and what was found.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadsReport {
    /// The first seed.
    pub seed: u64,
    /// Threads that wrote.
    pub threads: usize,
    /// Histories that came to their end.
    pub histories: u64,
    /// How often a store was opened.
    pub openings: u64,
    /// Operations of the threads that write.
    pub operations: u64,
    /// Puts and deletions, each key of a batch by itself.
    pub writes: u64,
    /// Answers that were compared.
    pub answers: u64,
    /// Flushes.
    pub flushes: u64,
    /// Merges.
    pub merges: u64,
    /// Checkpoints that were made, opened and compared.
    pub checkpoints: u64,
    /// Backups that were made, verified, restored and compared.
    pub backups: u64,
    /// Stores that were verified, most of them while others wrote.
    pub verified: u64,
    /// How often a store came to rest, without superfluous files.
    pub rests: u64,
    /// The most that the first steps of a scan have cost, in milliseconds of a processor.
    pub step_cpu_ms_max: f64,
    /// The longest that a store at rest had superfluous files, in milliseconds.
    pub rest_ms_max: f64,
    /// The longest that a log under `SyncPolicy::Interval` has waited for a sync to begin, in
    /// milliseconds.
    pub unsynced_ms_max: f64,
    /// The most memory of the process between two openings, in bytes.
    pub resident_bytes_max: u64,
    /// The most that files of tables had, in bytes.
    pub table_bytes_max: u64,
    /// Time that all of it took.
    pub seconds: f64,
    /// The first thing that was wrong. None: nothing.
    pub failure: Option<ThreadsFailure>,
}

/// What was wrong.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadsFailure {
    /// The seed of the history.
    pub seed: u64,
    /// What.
    pub wrong: String,
    /// The options of the store then.
    pub setup: String,
    /// What each thread was doing.
    pub threads: Vec<String>,
    /// Where the store is.
    pub left: PathBuf,
    /// The command that runs the same plan again; threads will interleave in another way.
    pub again: String,
}
