//! What was measured of one store under one workload.

use serde::{Deserialize, Serialize};

use crate::compare::PeerCounts;
use crate::ycsb::latency::LatencyReport;
use crate::ycsb::request::Distribution;
use crate::ycsb::workload::{Operation, Workload};

/// What `bench ycsb` measured. The field names are an interface.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct YcsbReport {
    /// The engine.
    pub engine: String,
    /// Its filter.
    pub guard: String,
    /// The workload.
    pub workload: Workload,
    /// How requests are spread over the keys.
    pub distribution: Distribution,
    /// How many clients.
    pub threads: u64,
    /// Operations per second that were asked for, of all clients; none: as fast as they go.
    pub rate: Option<f64>,
    /// Operations, of all clients.
    pub ops: u64,
    /// How long they took: the turns of all rounds, without what was left to be done in the
    /// background.
    pub seconds: f64,
    /// How long the background work took, after the turns.
    pub settle_seconds: f64,
    /// Operations per second.
    pub ops_per_s: f64,
    /// Operations per second of each round.
    pub ops_per_s_of_rounds: Vec<f64>,
    /// How many rounds the operations were cut into.
    pub rounds: u64,
    /// Gets before the first round, untimed.
    pub warm_up: u64,
    /// Times of single operations.
    #[serde(flatten)]
    pub times: TimesReport,
    /// What the store counted.
    #[serde(flatten)]
    pub costs: CostReport,
    /// Answers that were wrong. Of the last workload also entries that a scan of everything found
    /// wrong afterwards. Must be 0.
    pub wrong_answers: u64,
    /// Keys in the store at the end.
    pub keys: u64,
    /// Keys that the store was filled with.
    pub keys_filled: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Filling: until the last put was through, and everything settled.
    pub fill_seconds: f64,
    /// How much of that was after the last put.
    pub fill_settle_seconds: f64,
    /// Puts per second until the last one was through.
    pub fill_ops_per_s: f64,
    /// Bytes of the store's folder at the end.
    pub disk_bytes: u64,
    /// Sorted runs at the begin of this workload. None: the engine has none.
    pub runs_filled: Option<u64>,
    /// Sorted runs at the end. None: the engine has none.
    pub runs: Option<u64>,
    /// Entries of the smallest run, at the begin or at the end. None: unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default)]
    pub smallest_run_keys: Option<u64>,
    /// Memtables that became runs during this workload. None: the engine does not tell.
    pub flushes: Option<u64>,
    /// Memory of filters at the begin of this workload, in bits per key.
    pub guard_bits_per_key_filled: Option<f64>,
    /// Memory of filters at the end, in bits per key.
    pub guard_bits_per_key: Option<f64>,
    /// Bits per key that were asked for.
    pub bits_per_key: f64,
    /// Bits per key that the filter was told.
    pub bits_setting: f64,
    /// No setting that was tried takes what was asked for, within 3 percent.
    pub unfit: bool,
    /// Bytes of memory for blocks.
    pub block_cache_bytes: u64,
    /// Whether direct I/O was asked for.
    pub direct: bool,
    /// When runs of this store merge, if it is this store.
    pub policy: String,
    /// The seed.
    pub seed: u64,
    /// Everything that was set, and the engine's version.
    pub settings: String,
}

/// Times of single operations.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TimesReport {
    /// Of all operations.
    pub all: LatencyReport,
    /// Of gets. (Like those below: none if there was none.)
    pub read: Option<LatencyReport>,
    /// Of writes of keys that were there.
    pub update: Option<LatencyReport>,
    /// Of writes of keys that were not there.
    pub insert: Option<LatencyReport>,
    /// Of scans.
    pub scan: Option<LatencyReport>,
    /// Of gets followed by a write: both together.
    pub read_modify_write: Option<LatencyReport>,
}

/// What a store counted, if it tells. The numbers per operation are of operations that read: gets,
/// scans, gets followed by a write.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CostReport {
    /// Operations that read.
    pub reads: u64,
    /// Blocks that were asked for, cached or not.
    pub blocks_read_per_op: Option<f64>,
    /// Of these, blocks that came from the disk.
    pub disk_reads_per_op: Option<f64>,
    /// Filter probes.
    pub guard_probes_per_op: Option<f64>,
    /// Runs that were searched needlessly.
    pub needless_runs_per_op: Option<f64>,
    /// Bytes of tables that flushes and merges wrote, those after the turns included.
    pub table_bytes_written: Option<u64>,
    /// How long writers were slowed down or stopped, all together.
    pub stall_seconds: Option<f64>,
}

impl CostReport {
    /// Of so many operations that read, between two moments.
    pub(crate) fn of(reads: u64, counts: Option<(PeerCounts, PeerCounts)>) -> Self {
        let per_read = |field: fn(&PeerCounts) -> u64| {
            let (before, after) = counts?;
            Some((field(&after) - field(&before)) as f64 / reads.max(1) as f64)
        };
        CostReport {
            reads,
            blocks_read_per_op: per_read(|counts| counts.blocks_read),
            disk_reads_per_op: per_read(|counts| counts.disk_reads),
            guard_probes_per_op: per_read(|counts| counts.guard_probes),
            needless_runs_per_op: per_read(|counts| counts.needless_runs),
            table_bytes_written: counts
                .map(|(before, after)| after.table_bytes - before.table_bytes),
            stall_seconds: counts.map(|(before, after)| after.stall_seconds - before.stall_seconds),
        }
    }
}

impl TimesReport {
    /// The kinds of operations that there were.
    pub fn kinds(&self) -> Vec<(Operation, &LatencyReport)> {
        let of_kind = |kind| match kind {
            Operation::Read => &self.read,
            Operation::Update => &self.update,
            Operation::Insert => &self.insert,
            Operation::Scan => &self.scan,
            Operation::ReadModifyWrite => &self.read_modify_write,
        };
        let kinds = Operation::ALL.into_iter();
        kinds.filter_map(|kind| Some((kind, of_kind(kind).as_ref()?))).collect()
    }
}
